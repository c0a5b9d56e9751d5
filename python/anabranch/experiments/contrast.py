"""Comparisons: which rows of a table belong together, and what their differences say.

Conditions are compared on the same seeds, traces and samples, pair by pair. P-values are corrected for the number of
tests of a contrast (Holm). Where the table itself chooses the reference (the best mean), all pairs of conditions count
as tests: whoever compares with the best has looked at all of them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
import polars as pl

from anabranch import InputError
from anabranch.experiments import columns, statistics
from anabranch.experiments.contrast_spec import Contrast, Labels
from anabranch.experiments.document import alternatives
from anabranch.experiments.statistics import SIGNIFICANCE, Array, Interval, Paired


class Verdict(StrEnum):
    """What a comparison with the reference says."""

    REFERENCE = "reference"
    BETTER = "better"
    WORSE = "worse"
    EQUIVALENT = "equivalent"
    IDENTICAL = "identical"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Entry:
    """One of the compared.

    Attributes:
        labels: Its values of the compared axes.
        mean: The mean, with the interval of Student's t.
        median: The median, with a bootstrap interval.
        difference: What its differences from the reference say; ``None`` for the reference.
        quantiles: How much each quantile of the contrast differs from that of the reference.
        p_value: Of the paired t-test, corrected.
        equivalence_p_value: Of the equivalence test, corrected; NaN without a margin.
        verdict: What that says.
        more_seeds: How many more seeds would decide, if the difference is as observed: 0 where it is decided, ``None``
            where no practical number would.
    """

    labels: Labels
    mean: Interval
    median: Interval
    difference: Paired | None
    quantiles: Mapping[float, Interval]
    p_value: float
    equivalence_p_value: float
    verdict: Verdict
    more_seeds: int | None


@dataclass(frozen=True)
class Comparison:
    """The compared of a contrast, under one combination of the axes that are not compared.

    Attributes:
        contrast: The contrast.
        facet: The values of the other axes.
        entries: The compared, the best mean first.
        pairs: How many pairs each has.
        seeds: From how many seeds.
        dropped: Pairs without a value for each of the compared.
        tests: The number of tests that p-values are corrected for.
        notes: What should be known of it, in sentences.
    """

    contrast: Contrast
    facet: Labels
    entries: tuple[Entry, ...]
    pairs: int
    seeds: int
    dropped: int
    tests: int
    notes: tuple[str, ...]

    @property
    def reference(self) -> Entry:
        """What the others are compared with."""
        return next(entry for entry in self.entries if entry.verdict is Verdict.REFERENCE)

    @property
    def width(self) -> float:
        """Half the width of the widest interval of a difference, over the reference's mean; infinite if unknown."""
        widths = [entry.difference.mean.half_width for entry in self.entries if entry.difference is not None]
        centre = abs(self.reference.mean.estimate)
        if any(map(math.isnan, widths)) or (centre == 0 and any(widths)):
            return math.inf
        return max(widths, default=0.0) / centre if centre else 0.0


@dataclass(frozen=True)
class _Block:
    """The values of a comparison: a column per compared, a row per pair."""

    facet: Labels
    labels: list[Labels]
    values: Array
    seeds: int
    dropped: int

    def means(self) -> list[float]:
        return [float(np.mean(column)) for column in self.values.T]


def compare(table: pl.DataFrame, contrast: Contrast, axes: Sequence[str]) -> list[Comparison]:
    """Compares what a contrast says.

    Args:
        table: A row per session.
        contrast: What is compared.
        axes: The columns that were varied.

    Raises:
        InputError: The table has no such column, or it has no numbers.
    """
    check_metric(table, contrast.metric)
    rows, notes = _usable(table, contrast.metric)
    blocks = [block for block in _blocks(rows, contrast, axes) if len(block.labels) > 1 and len(block.values)]
    tests = [_tests(block, contrast) for block in blocks]
    p_values = _corrected(blocks, tests, contrast, lambda a, b, _: statistics.paired_p_value(a, b))
    equivalence = _corrected(blocks, tests, contrast, lambda a, b, reference: _equivalence(contrast, a, b, reference))
    number = sum(map(len, tests))
    return [
        _comparison(block, contrast, p_values[position], equivalence[position], number, notes)
        for position, block in enumerate(blocks)
    ]


def check_metric(table: pl.DataFrame, metric: str) -> None:
    """Refuses what is no column of numbers.

    Raises:
        InputError: It is none.
    """
    if metric not in table.columns:
        raise InputError(f"the table has no column `{metric}`{alternatives(metric, table.columns)}")
    if not (table[metric].dtype.is_numeric() or table[metric].dtype == pl.Boolean):
        raise InputError(f"`{metric}` is a column of texts; expected one of numbers")


def _usable(table: pl.DataFrame, metric: str) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The rows that count, and what should be known of the others."""
    notes = []
    if failed := table.filter(pl.col("error").is_not_null()).height:
        notes.append(f"{failed} runs failed and have no values")
    rows = table.filter(pl.col("error").is_null())
    if "cut_off" in rows.columns and (cut := rows.filter(pl.col("cut_off")).height):
        notes.append(f"{cut} of {rows.height} sessions were cut off and count until then only, so they may seem better")
    rows = rows.with_columns(_vary(rows).alias(_VARIES))
    if rows.height and not rows[_VARIES].any() and rows["seed"].n_unique() > 1:
        notes.append("the seed changes nothing in these runs, so only one seed counts: see the key `offset` of traces")
    return rows.with_columns(pl.col(metric).cast(pl.Float64)), tuple(notes)


_VARIES = "_varies"


def _vary(rows: pl.DataFrame) -> pl.Expr:
    """Whether runs of several seeds differ: no two runs in real time are alike, whatever their scenario draws."""
    if "run.seed_matters" not in rows.columns:
        return pl.lit(value=True)
    live = pl.col(columns.TRIES).is_not_null() if columns.TRIES in rows.columns else pl.lit(value=False)
    return pl.col("run.seed_matters").fill_null(value=True) | live


def _blocks(rows: pl.DataFrame, contrast: Contrast, axes: Sequence[str]) -> Iterator[_Block]:
    others = [axis for axis in axes if axis not in contrast.between and axis not in contrast.units]
    # Sessions of one run share its network, so their mean is one value.
    runs = rows.group_by([*axes, "seed"], maintain_order=True).agg(
        pl.col(contrast.metric).mean(), pl.col(_VARIES).any()
    )
    facets = runs.partition_by(others, maintain_order=True, as_dict=True) if others else {(): runs}
    for key, everything in facets.items():
        part = everything
        if not part[_VARIES].any():
            # The same run with several numbers is one run.
            part = part.filter(pl.col("seed") == part["seed"].min())
        groups = part.partition_by(list(contrast.between), maintain_order=True, as_dict=True)
        pair = ["seed", *contrast.units]
        values = {
            str(number): group.select(*pair, pl.col(contrast.metric).alias(str(number)))
            for number, group in enumerate(groups.values())
        }
        joined = _joined(list(values.values()), pair)
        whole = joined.drop_nulls()
        yield _Block(
            facet=dict(zip(others, key, strict=True)),
            labels=[dict(zip(contrast.between, labels, strict=True)) for labels in groups],
            values=whole.select(list(values)).to_numpy().astype(np.float64),
            seeds=whole["seed"].n_unique(),
            dropped=joined.height - whole.height,
        )


def _joined(parts: Sequence[pl.DataFrame], pair: Sequence[str]) -> pl.DataFrame:
    """The values of all groups beside each other, by pair."""
    joined = parts[0]
    for part in parts[1:]:
        joined = joined.join(part, on=list(pair), how="full", coalesce=True, maintain_order="left_right")
    return joined


def _tests(block: _Block, contrast: Contrast) -> list[tuple[int, int]]:
    """The pairs of columns that are tested."""
    everything = list(itertools.combinations(range(len(block.labels)), 2))
    if contrast.reference is None:
        return everything
    reference = _reference(block, contrast)
    return [pair for pair in everything if reference in pair]


def _reference(block: _Block, contrast: Contrast) -> int:
    if contrast.reference is not None:
        for position, labels in enumerate(block.labels):
            if labels == contrast.reference:
                return position
        names = ", ".join(f"{key}={value}" for key, value in contrast.reference.items())
        raise InputError(f"the table has no values of the reference {names}")
    means = block.means()
    return int(np.argmax(means) if contrast.higher_is_better else np.argmin(means))


_Test = Callable[[Array, Array, float], float]


def _corrected(
    blocks: Sequence[_Block], tests: Sequence[list[tuple[int, int]]], contrast: Contrast, test: _Test
) -> list[dict[tuple[int, int], float]]:
    """The p-values of all tests of a contrast, corrected for their number, by block."""
    raw = [
        test(block.values[:, a], block.values[:, b], block.means()[_reference(block, contrast)])
        for block, pairs in zip(blocks, tests, strict=True)
        for a, b in pairs
    ]
    corrected = iter(statistics.holm(raw))
    return [{pair: next(corrected) for pair in pairs} for pairs in tests]


def _equivalence(contrast: Contrast, first: Array, second: Array, reference: float) -> float:
    return math.nan if contrast.margin is None else statistics.equivalence(first, second, contrast.margin.of(reference))


def _comparison(
    block: _Block,
    contrast: Contrast,
    p_values: Mapping[tuple[int, int], float],
    equivalence: Mapping[tuple[int, int], float],
    tests: int,
    notes: tuple[str, ...],
) -> Comparison:
    reference = _reference(block, contrast)
    entries = []
    for position, labels in enumerate(block.labels):
        pair = (min(position, reference), max(position, reference))
        values = block.values[:, position]
        entry = Entry(
            labels=labels,
            mean=statistics.mean(values),
            median=statistics.median(values),
            difference=None,
            quantiles={},
            p_value=math.nan,
            equivalence_p_value=math.nan,
            verdict=Verdict.REFERENCE,
            more_seeds=0,
        )
        if position != reference:
            other = block.values[:, reference]
            difference = statistics.paired(values, other)
            entry = replace(
                entry,
                difference=difference,
                quantiles={q: statistics.quantile_difference(values, other, q) for q in contrast.quantiles},
                p_value=p_values[pair],
                equivalence_p_value=equivalence[pair],
            )
            entry = _decided(entry, difference, block, contrast, tests)
        entries.append(entry)
    entries.sort(key=lambda entry: entry.mean.estimate, reverse=contrast.higher_is_better)
    pairs = len(block.values)
    if block.dropped:
        notes = (*notes, f"{block.dropped} pairs lack a value and are left out")
    return Comparison(contrast, block.facet, tuple(entries), pairs, block.seeds, block.dropped, tests, notes)


def _decided(entry: Entry, difference: Paired, block: _Block, contrast: Contrast, tests: int) -> Entry:
    """The entry with its verdict."""
    if difference.pairs > 1 and difference.mean.estimate == 0 and difference.mean.half_width == 0:
        return replace(entry, verdict=Verdict.IDENTICAL)
    if entry.equivalence_p_value < SIGNIFICANCE:
        # A difference may be certain and still have no practical meaning, which the margin says.
        return replace(entry, verdict=Verdict.EQUIVALENT)
    if entry.p_value < SIGNIFICANCE:
        better = (difference.mean.estimate > 0) == contrast.higher_is_better
        return replace(entry, verdict=Verdict.BETTER if better else Verdict.WORSE)
    needed = statistics.pairs_for(difference.effect_size, tests=tests)
    per_seed = difference.pairs / block.seeds
    more = None if needed is None else max(1, math.ceil(needed / per_seed) - block.seeds)
    return replace(entry, verdict=Verdict.UNDECIDED, more_seeds=more)


def rows(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """A row per entry, for tables and JSON."""
    for entry in comparison.entries:
        difference = entry.difference
        yield {
            "metric": comparison.contrast.metric,
            **comparison.facet,
            **entry.labels,
            "verdict": str(entry.verdict),
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
            "p_value_holm": _known(entry.p_value),
            "p_value": _known(difference.p_value) if difference else None,
            "p_value_wilcoxon": _known(difference.wilcoxon_p_value) if difference else None,
            "p_value_equivalence_holm": _known(entry.equivalence_p_value),
            "effect_size": _known(difference.effect_size) if difference else None,
            "more_seeds": entry.more_seeds,
        }


def _interval(name: str, interval: Interval) -> dict[str, float | None]:
    return {
        name: _known(interval.estimate),
        f"{name}_low": _known(interval.low),
        f"{name}_high": _known(interval.high),
    }


def _known(value: float) -> float | None:
    """JSON has neither NaN nor infinity."""
    return value if math.isfinite(value) else None
