"""Comparisons: which rows of a table belong together, and what their differences say.

Conditions are compared on the same seeds, traces and samples, pair by pair. Where there are several networks, a network
is one value in intervals and tests, and where there is one, a seed is (`anabranch.experiments.sampling`).

P-values are corrected for the number of tests of all comparisons of a plan (Holm), unless the plan has several families
of them. Where the table itself chooses the reference (the best mean), all pairs of conditions count as tests: who
compares with the best has looked at all of them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from anabranch.errors import InputError, alternatives
from anabranch.experiments import effects, sampling, statistics
from anabranch.experiments.blocks import Block, blocks
from anabranch.experiments.contrast_spec import Contrast, Labels
from anabranch.experiments.effects import Effect
from anabranch.experiments.family import Family
from anabranch.experiments.sampling import Differences, More, Unit, Values
from anabranch.experiments.statistics import SIGNIFICANCE, Interval
from anabranch.wording.numerals import known


class ContrastVerdict(StrEnum):
    """What a comparison with the reference says."""

    REFERENCE = "reference"
    BETTER = "better"
    WORSE = "worse"
    EQUIVALENT = "equivalent"
    IDENTICAL = "identical"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Alternative:
    """One of the compared.

    Attributes:
        labels: Its values of the compared axes.
        values: Its values of the metric.
        difference: Its differences from the reference; ``None`` for the reference.
        quantiles: How much each quantile of the contrast differs from that of the reference.
        p_value: Of the paired t-test, corrected.
        equivalence_p_value: Of the equivalence test, corrected; NaN without a margin.
        verdict: What that says.
        seeds: How many seeds there are.
        unit: What was sampled.
        tests: The number of tests that p-values are corrected for.
    """

    labels: Labels
    values: Values
    difference: Differences | None
    quantiles: Mapping[float, Interval]
    p_value: float
    equivalence_p_value: float
    verdict: ContrastVerdict
    seeds: int
    unit: Unit
    tests: int

    @cached_property
    def more(self) -> More | None:
        """How many more seeds or networks would decide, if the difference is as observed.

        ``None`` where it is decided, and where no practical number would.
        """
        if self.difference is None or self.verdict is not ContrastVerdict.UNDECIDED:
            return None
        return self.difference.more(self.unit, self.seeds, self.tests)

    @property
    def mean(self) -> Interval:
        """The mean, with the interval of Student's t."""
        return self.values.mean

    @property
    def median(self) -> Interval:
        """The median, with a bootstrap interval."""
        return self.values.median

    @property
    def tests_disagree(self) -> bool:
        """Whether only one of t-test and Wilcoxon's test is below 5 % before any correction, and both could be."""
        if self.difference is None or not _can_reach(len(self.difference.by_unit)):
            return False
        p_values = (self.difference.p_value, self.difference.wilcoxon_p_value)
        return not any(map(math.isnan, p_values)) and len({p < SIGNIFICANCE for p in p_values}) > 1


def _can_reach(units: int) -> bool:
    """Whether Wilcoxon's test of so many values can be below 5 %: its smallest p-value is that of equal signs."""
    return 2.0 ** (1 - units) < SIGNIFICANCE


@dataclass(frozen=True)
class Comparison:
    """The compared of a contrast, under one combination of the axes that are not compared.

    Attributes:
        contrast: The contrast.
        facet: The values of the other axes.
        entries: The compared, the best mean first.
        unit: What was sampled.
        units: How many networks there are, or seeds.
        pairs: How many pairs each has.
        seeds: From how many seeds.
        dropped: Pairs without a value for each of the compared.
        family: The tests that p-values are corrected for.
        notes: What should be known of it, in sentences.
        effects: The main effects and the interaction, where two axes are compared in all combinations.
    """

    contrast: Contrast
    facet: Labels
    entries: tuple[Alternative, ...]
    unit: Unit
    units: int
    pairs: int
    seeds: int
    dropped: int
    family: Family
    notes: tuple[str, ...]
    effects: tuple[Effect, ...] = ()

    @property
    def tests(self) -> int:
        """The number of tests that p-values are corrected for."""
        return self.family.tests

    @property
    def reference(self) -> Alternative:
        """What the others are compared with."""
        return next(entry for entry in self.entries if entry.verdict is ContrastVerdict.REFERENCE)

    @property
    def width(self) -> float:
        """Half the width of the widest interval of a difference, over the reference's mean; infinite if unknown."""
        return self._relative([each.mean.half_width for each in self._differences])

    @property
    def least_width(self) -> float:
        """What that would be with any number of seeds on the same networks; zero where networks do not limit it."""
        if self.unit is Unit.SEED:
            return 0.0
        return self._relative([each.least_half_width for each in self._differences])

    @property
    def _differences(self) -> list[Differences]:
        return [entry.difference for entry in self.entries if entry.difference is not None]

    def _relative(self, widths: Sequence[float]) -> float:
        centre = abs(self.reference.mean.estimate)
        if any(map(math.isnan, widths)) or (centre == 0 and any(widths)):
            return math.inf
        return max(widths, default=0.0) / centre if centre else 0.0


def compare(table: pl.DataFrame, contrast: Contrast, axes: Sequence[str]) -> list[Comparison]:
    """Compares what one contrast says; see `compare_all`."""
    return compare_all(table, [contrast], axes)


def compare_all(table: pl.DataFrame, contrasts: Sequence[Contrast], axes: Sequence[str]) -> list[Comparison]:
    """Compares what the contrasts of a plan say; p-values are corrected family by family.

    Args:
        table: A row per session.
        contrasts: What is compared.
        axes: The columns that were varied.

    Raises:
        InputError: The table has no such column, or it has no numbers; or a session is not finished, and none may be.
    """
    for contrast in contrasts:
        check_metric(table, contrast.metric)
    found = [_Tested.of(block) for contrast in contrasts for block in blocks(table, contrast, axes)]
    comparisons: dict[int, Comparison] = {}
    for name in dict.fromkeys(each.block.contrast.family for each in found):
        own = [position for position, each in enumerate(found) if each.block.contrast.family == name]
        corrected = _corrected([found[position] for position in own])
        comparisons |= dict(zip(own, corrected, strict=True))
    return [comparisons[position] for position in range(len(found))]


def check_metric(table: pl.DataFrame, metric: str) -> None:
    """Refuses what is no column of numbers.

    Raises:
        InputError: It is none.
    """
    if metric not in table.columns:
        raise InputError(f"the table has no column `{metric}`{alternatives(metric, table.columns)}")
    if not (table[metric].dtype.is_numeric() or table[metric].dtype == pl.Boolean):
        raise InputError(f"`{metric}` is a column of texts; expected one of numbers")


@dataclass(frozen=True)
class _Tested:
    """A block with its tests, before any correction.

    Attributes:
        block: The block.
        reference: The column of the reference.
        pairs: The pairs of columns that are tested.
        p_values: A t-test for each of them.
        equivalence: An equivalence test for each of them; NaN without a margin.
        of_effects: Of both main effects and the interaction; empty where there are none.
    """

    block: Block
    reference: int
    pairs: list[tuple[int, int]]
    p_values: list[float]
    equivalence: list[float]
    of_effects: list[float]

    @staticmethod
    def of(block: Block) -> _Tested:
        contrast = block.contrast
        means = sampling.unit_means(block.values, block.units)
        reference = _reference(block, means.mean(axis=0))
        pairs = list(itertools.combinations(range(len(block.labels)), 2))
        if contrast.reference is not None:
            pairs = [pair for pair in pairs if reference in pair]
        differences = means[:, [a for a, _ in pairs]] - means[:, [b for _, b in pairs]]
        equivalence = np.full(len(pairs), math.nan)
        if contrast.margin is not None:
            margin = contrast.margin.of(float(means[:, reference].mean()))
            equivalence = statistics.equivalence(differences, margin)
        grid = block.grid(means)
        of_effects = [] if grid is None else effects.p_values(grid)
        p_values = statistics.p_values(differences)
        return _Tested(block, reference, pairs, p_values.tolist(), equivalence.tolist(), of_effects)


def _reference(block: Block, means: statistics.Array) -> int:
    contrast = block.contrast
    if contrast.reference is None:
        return int(np.argmax(means) if contrast.higher_is_better else np.argmin(means))
    for position, labels in enumerate(block.labels):
        if labels == contrast.reference:
            return position
    names = ", ".join(f"{key}={value}" for key, value in contrast.reference.items())
    raise InputError(f"the table has no values of the reference {names}")


def _corrected(found: Sequence[_Tested]) -> list[Comparison]:
    """The comparisons of a family.

    Tests of equivalence are corrected among themselves. Of a pair only one of both hypotheses can be true, that it does
    not differ or that it differs by more than the margin.
    """
    family = Family.of([(each.block, len(each.pairs), len(each.of_effects)) for each in found])
    p_values = iter(statistics.holm([p for each in found for p in (*each.p_values, *each.of_effects)]))
    equivalence = iter(statistics.holm([p for each in found for p in each.equivalence]))
    return [
        _comparison(
            replace(
                each,
                p_values=[next(p_values) for _ in each.p_values],
                of_effects=[next(p_values) for _ in each.of_effects],
                equivalence=[next(equivalence) for _ in each.equivalence],
            ),
            family,
        )
        for each in found
    ]


def _comparison(tested: _Tested, family: Family) -> Comparison:
    """From tests that are corrected."""
    block = tested.block
    entries = [_entry(tested, position, family) for position in range(len(block.labels))]
    entries.sort(key=lambda entry: entry.mean.estimate, reverse=block.contrast.higher_is_better)
    notes = block.notes
    if block.dropped:
        notes = (*notes, f"{block.dropped} pairs lack a value and are left out")
    if doubtful := [entry for entry in entries if entry.tests_disagree]:
        notes = (*notes, _disagreement(doubtful))
    return Comparison(
        contrast=block.contrast,
        facet=block.facet,
        entries=tuple(entries),
        unit=block.unit,
        units=block.count,
        pairs=len(block.values),
        seeds=block.seeds,
        dropped=block.dropped,
        family=family,
        notes=notes,
        effects=tuple(_effects(tested)),
    )


def _disagreement(entries: Sequence[Alternative]) -> str:
    names = "; ".join(
        f"{' + '.join(map(str, entry.labels.values()))} (p {entry.difference.p_value:.3f} and "
        f"{entry.difference.wilcoxon_p_value:.3f})"
        for entry in entries
        if entry.difference is not None
    )
    return f"t-test and Wilcoxon's test disagree before any correction, so differences are far from normal: {names}"


def _entry(tested: _Tested, position: int, family: Family) -> Alternative:
    block, reference = tested.block, tested.reference
    values = Values(block.values[:, position], block.units)
    entry = Alternative(
        labels=block.labels[position],
        values=values,
        difference=None,
        quantiles={},
        p_value=math.nan,
        equivalence_p_value=math.nan,
        verdict=ContrastVerdict.REFERENCE,
        seeds=block.seeds,
        unit=block.unit,
        tests=family.tests,
    )
    if position == reference:
        return entry
    test = tested.pairs.index((min(position, reference), max(position, reference)))
    other = block.values[:, reference]
    difference = Differences(values.values, other, block.units)
    shares = block.contrast.quantiles
    entry = replace(
        entry,
        difference=difference,
        quantiles={q: sampling.quantile_difference(values.values, other, block.units, q) for q in shares},
        p_value=tested.p_values[test],
        equivalence_p_value=tested.equivalence[test],
    )
    return replace(entry, verdict=_verdict(entry, difference, block.contrast))


def _verdict(entry: Alternative, difference: Differences, contrast: Contrast) -> ContrastVerdict:
    if difference.pairs > 1 and not np.any(difference.first != difference.second):
        return ContrastVerdict.IDENTICAL
    if entry.equivalence_p_value < SIGNIFICANCE:
        # A difference may be certain and still have no practical meaning, which the margin says.
        return ContrastVerdict.EQUIVALENT
    if entry.p_value < SIGNIFICANCE:
        better = (difference.mean.estimate > 0) == contrast.higher_is_better
        return ContrastVerdict.BETTER if better else ContrastVerdict.WORSE
    return ContrastVerdict.UNDECIDED


def _effects(tested: _Tested) -> Iterator[Effect]:
    block = tested.block
    grid = block.grid(sampling.unit_means(block.values, block.units)) if tested.of_effects else None
    if grid is None:
        return
    contrast = block.contrast
    named = contrast.reference or {}
    for axis, own, p in zip(contrast.between, (grid, grid.swapaxes(1, 2)), tested.of_effects, strict=False):
        labels = list(dict.fromkeys(each[axis] for each in block.labels))
        found = effects.levels(own, labels, named.get(axis), higher_is_better=contrast.higher_is_better)
        yield Effect((axis,), p, found)
    yield Effect(contrast.between, tested.of_effects[-1])


def rows(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """A row per entry, for tables and JSON."""
    for entry in comparison.entries:
        difference = entry.difference
        yield {
            "metric": comparison.contrast.metric,
            **comparison.facet,
            **entry.labels,
            "verdict": str(entry.verdict),
            "unit": str(comparison.unit),
            "units": comparison.units,
            "pairs": comparison.pairs,
            "seeds": comparison.seeds,
            **_interval("mean", entry.mean),
            **_interval("median", entry.median),
            **(_interval("difference", difference.mean) if difference else {}),
            **(_interval("difference_bootstrap", difference.bootstrap) if difference else {}),
            **(_interval("difference_median", difference.median) if difference else {}),
            **{
                key: value
                for share, interval in entry.quantiles.items()
                for key, value in _interval(f"difference_q{share * 100:g}", interval).items()
            },
            "p_value_holm": known(entry.p_value),
            "p_value": known(difference.p_value) if difference else None,
            "p_value_wilcoxon": known(difference.wilcoxon_p_value) if difference else None,
            "p_value_equivalence_holm": known(entry.equivalence_p_value),
            "effect_size": known(difference.effect_size) if difference else None,
            "more_seeds": _more(entry, Unit.SEED),
            "more_networks": _more(entry, Unit.NETWORK),
        }


def _more(entry: Alternative, unit: Unit) -> int | None:
    """How many more of these would decide: 0 where it is decided."""
    if entry.verdict is not ContrastVerdict.UNDECIDED:
        return 0
    return entry.more.number if entry.more is not None and entry.more.of is unit else None


def effect_rows(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """A row per level of a main effect and one of the interaction, for tables and JSON."""
    for effect in comparison.effects:
        head = {"metric": comparison.contrast.metric, **comparison.facet, "factors": " x ".join(effect.factors)}
        p_value = {"p_value_holm": known(effect.p_value)}
        if not effect.levels:
            yield {**head, "level": None, **p_value}
        for level in effect.levels:
            difference = {} if level.difference is None else _interval("difference", level.difference)
            yield {**head, "level": level.label, **p_value, **_interval("mean", level.mean), **difference}


def _interval(name: str, interval: Interval) -> dict[str, float | None]:
    return {
        name: known(interval.estimate),
        f"{name}_low": known(interval.low),
        f"{name}_high": known(interval.high),
    }
