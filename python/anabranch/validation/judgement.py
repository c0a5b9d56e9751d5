"""Comparison of the simulated and live runs of a test case."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from anabranch.experiments import statistics
from anabranch.experiments.statistics import Array, Interval
from anabranch.validation.cases import TestCase
from anabranch.validation.criteria import USUAL_GOODPUT, USUAL_SHARE, ComparedQuantity, Criterion, Part
from anabranch.validation.measurement import Measurement


class Equivalence(StrEnum):
    """Result of the comparison of an interval with a tolerance.

    It is that of two one-sided tests at 5 % (Schuirmann 1987): the 90 % interval of the difference lies inside the
    tolerance. An interval that includes zero proves nothing, because a poor measurement has a wide one.
    """

    EQUIVALENT = "equivalent"
    DIFFERS = "differs"
    INCONCLUSIVE = "inconclusive"

    @property
    def word(self) -> str:
        """The word in tables."""
        return "pass" if self is Equivalence.EQUIVALENT else self.value

    @staticmethod
    def within(interval: Interval, low: float, high: float) -> Equivalence:
        """Equivalent if the whole interval is inside the bounds, and different if it is wholly outside."""
        if low <= interval.low and interval.high <= high:
            return Equivalence.EQUIVALENT
        if interval.high < low or high < interval.low:
            return Equivalence.DIFFERS
        return Equivalence.INCONCLUSIVE

    @staticmethod
    def within_share(interval: Interval, share: float) -> Equivalence:
        """The same of an interval of logarithms: the ratio may differ by this share, up or down."""
        return Equivalence.within(interval, math.log(1.0 - share), math.log(1.0 + share))

    @staticmethod
    def either(verdicts: Sequence[Equivalence]) -> Equivalence:
        """One tolerance suffices for equivalence; to differ, all must be exceeded."""
        if Equivalence.EQUIVALENT in verdicts:
            return Equivalence.EQUIVALENT
        return Equivalence.DIFFERS if set(verdicts) == {Equivalence.DIFFERS} else Equivalence.INCONCLUSIVE

    @staticmethod
    def all_of(verdicts: Sequence[Equivalence]) -> Equivalence:
        """All must be equivalent; to differ, one suffices."""
        if Equivalence.DIFFERS in verdicts:
            return Equivalence.DIFFERS
        return Equivalence.INCONCLUSIVE if Equivalence.INCONCLUSIVE in verdicts else Equivalence.EQUIVALENT


@dataclass(frozen=True)
class Compared:
    """A quantity in simulation and live.

    Attributes:
        criterion: The quantity and its tolerance.
        simulated: The mean of the simulated runs.
        live: The mean of the live runs.
        ratio: log(simulated / live).
        difference: simulated - live.
        verdict: Result of the comparison.
    """

    criterion: Criterion
    simulated: float
    live: float
    ratio: Interval
    difference: Interval
    verdict: Equivalence

    @property
    def means_agree(self) -> bool:
        """Whether the two means are within a tolerance of each other, however widely they are known."""
        share, number = self.criterion.share, self.criterion.number
        by_share = share is not None and abs(self.simulated - self.live) <= share * self.live
        return by_share or (number is not None and abs(self.simulated - self.live) <= number)

    @staticmethod
    def of(
        case: TestCase, criterion: Criterion, simulated: Sequence[Measurement], live: Sequence[Measurement]
    ) -> Compared:
        """Compares a quantity."""
        first, second = _values(criterion, simulated), _values(criterion, live)
        ratio = statistics.mean_difference(_logs(first), _logs(second), paired=case.paired)
        difference = statistics.mean_difference(first, second, paired=case.paired)
        verdicts = []
        if criterion.share is not None:
            verdicts.append(Equivalence.within_share(ratio, criterion.share))
        if criterion.number is not None:
            verdicts.append(Equivalence.within(difference, -criterion.number, criterion.number))
        means = (float(np.mean(first)), float(np.mean(second)))
        return Compared(criterion, *means, ratio, difference, Equivalence.either(verdicts))


def _values(criterion: Criterion, runs: Sequence[Measurement]) -> Array:
    # Runs have what their test case compares.
    return np.array([run.get(criterion.quantity) for run in runs], dtype=float)


def _logs(values: Array) -> Array:
    # A count of zero has no logarithm; it makes the ratio so wide that the difference decides.
    return np.log(np.maximum(values, sys.float_info.min))


@dataclass(frozen=True)
class Judgement:
    """Results of a test case: one comparison per criterion."""

    compared: tuple[Compared, ...]

    @staticmethod
    def of(case: TestCase, simulated: Sequence[Measurement], live: Sequence[Measurement]) -> Judgement | None:
        """Compares runs; ``None`` without any. Those of a paired test case have the seeds in the same order."""
        if not live or not simulated:
            return None
        return Judgement(tuple(Compared.of(case, criterion, simulated, live) for criterion in case.criteria))

    @property
    def verdict(self) -> Equivalence:
        """The result of all criteria."""
        return Equivalence.all_of([compared.verdict for compared in self.compared])

    @property
    def usual(self) -> Equivalence:
        """For (a): whether the goodput is within the tolerance of most test cases."""
        for compared in self.compared:
            if compared.criterion.quantity is ComparedQuantity.GOODPUT:
                return Equivalence.within_share(compared.ratio, USUAL_GOODPUT)
        return Equivalence.INCONCLUSIVE


def part_verdict(part: Part, judgements: Sequence[Judgement | None]) -> Equivalence:
    """The result of a part. A test case without a live run is inconclusive."""
    verdicts = [Equivalence.INCONCLUSIVE if each is None else each.verdict for each in judgements]
    if part is not Part.ONE_PATH:
        return Equivalence.all_of(verdicts)
    usual = [Equivalence.INCONCLUSIVE if each is None else each.usual for each in judgements]
    if usual.count(Equivalence.EQUIVALENT) / len(usual) >= USUAL_SHARE:
        return Equivalence.all_of(verdicts)
    too_many = usual.count(Equivalence.DIFFERS) / len(usual) > 1.0 - USUAL_SHARE
    return Equivalence.all_of([*verdicts, Equivalence.DIFFERS if too_many else Equivalence.INCONCLUSIVE])
