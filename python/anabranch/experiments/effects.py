"""Main effects and the interaction of two factors, such as schedulers and congestion controls.

Every unit has a value in each place of a grid, so the tests are those of repeated measures. They do not assume that all
differences vary alike: the degrees of freedom are corrected as Greenhouse and Geisser do (Psychometrika 24, 1959).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anabranch.experiments import statistics
from anabranch.experiments.statistics import Array, Interval


@dataclass(frozen=True)
class Level:
    """A value of a factor.

    Attributes:
        label: The value.
        mean: The mean over the other factor and all units.
        difference: How much that differs from the factor's reference; ``None`` of the reference.
    """

    label: Any
    mean: Interval
    difference: Interval | None


@dataclass(frozen=True)
class Effect:
    """What a factor changes on average over the other one, or how far one changes what the other does.

    Attributes:
        factors: The factor of a main effect; both of the interaction.
        p_value: That there is no such effect, corrected as the other tests of the family.
        levels: The values of the factor, in the order of the table; empty of the interaction.
    """

    factors: tuple[str, ...]
    p_value: float
    levels: tuple[Level, ...] = ()

    @property
    def is_certain(self) -> bool:
        """Whether the effect is there."""
        return self.p_value < statistics.SIGNIFICANCE


def p_values(grid: Array) -> list[float]:
    """Of both main effects and the interaction, before any correction.

    Args:
        grid: The values by unit, first factor, and second factor.
    """
    from scipy import linalg

    _, first, second = grid.shape
    of_first, of_second = linalg.helmert(first), linalg.helmert(second)
    return [
        f_test(grid.mean(axis=2) @ of_first.T),
        f_test(grid.mean(axis=1) @ of_second.T),
        f_test(np.einsum("uab,ia,jb->uij", grid, of_first, of_second).reshape(len(grid), -1)),
    ]


def f_test(contrasts: Array) -> float:
    """Of repeated measures: that all orthonormal contrasts are zero on average.

    Args:
        contrasts: A row per unit, a column per contrast.
    """
    from scipy import stats

    units, number = contrasts.shape
    if units < 2:
        return math.nan
    centre = contrasts.mean(axis=0)
    covariance = np.atleast_2d(np.cov(contrasts, rowvar=False))
    error = float(np.trace(covariance)) / number
    effect = units * float(np.sum(centre**2)) / number
    if error <= effect * _ROUNDING:
        return 0.0 if effect else 1.0
    # Between 1/number, where one contrast has all the variance, and 1.
    epsilon = float(np.trace(covariance) ** 2 / (number * np.sum(covariance**2)))
    return float(stats.f.sf(effect / error, number * epsilon, number * epsilon * (units - 1)))


_ROUNDING = 1e-20


def levels(grid: Array, labels: Sequence[Any], reference: Any, *, higher_is_better: bool) -> tuple[Level, ...]:
    """The values of the first factor of grid.

    Args:
        grid: The values by unit, this factor, and the other one.
        labels: The values of this factor.
        reference: Which of them the others are compared with; the best where ``None``.
        higher_is_better: Which is the best.
    """
    averages = grid.mean(axis=2)
    centres = averages.mean(axis=0)
    chosen = int(np.argmax(centres) if higher_is_better else np.argmin(centres))
    if reference is not None:
        chosen = list(labels).index(reference)
    return tuple(
        Level(
            label,
            statistics.mean(averages[:, position]),
            None if position == chosen else statistics.mean(averages[:, position] - averages[:, chosen]),
        )
        for position, label in enumerate(labels)
    )
