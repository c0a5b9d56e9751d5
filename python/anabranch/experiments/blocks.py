"""The values that a comparison takes from a table: a column per condition, a row per pair."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from anabranch.experiments import statistics, unfinished
from anabranch.experiments.contrast_spec import Contrast, Labels
from anabranch.experiments.sampling import Indices, Unit
from anabranch.experiments.statistics import Array, Interval
from anabranch.experiments.variation import SAMPLED_COLUMNS
from anabranch.results import columns
from anabranch.wording.summary import plural


@dataclass(frozen=True, eq=False)
class Block:
    """The values of a comparison.

    Attributes:
        contrast: What is compared.
        facet: The values of the axes that are not compared.
        labels: The conditions.
        values: A column per condition, a row per pair.
        units: The unit of each pair, numbered from 0.
        unit: What was sampled.
        seeds: How many seeds there are.
        dropped: Pairs without a value for each condition.
        notes: What should be known of it, in sentences.
    """

    contrast: Contrast
    facet: Labels
    labels: list[Labels]
    values: Array
    units: Indices
    unit: Unit
    seeds: int
    dropped: int
    notes: tuple[str, ...]

    @property
    def count(self) -> int:
        """The number of units."""
        return int(self.units.max()) + 1

    def grid(self, means: Array) -> Array | None:
        """Means of units, a column per condition, by both compared axes; ``None`` if there are not two, or gaps."""
        if len(self.contrast.between) != _FACTORS:
            return None
        axes = [list(dict.fromkeys(each[axis] for each in self.labels)) for axis in self.contrast.between]
        places = {tuple(each.values()): column for column, each in enumerate(self.labels)}
        chosen = [places[place] for place in itertools.product(*axes) if place in places]
        if len(chosen) < len(axes[0]) * len(axes[1]) or any(len(axis) < _FACTORS for axis in axes):
            return None
        found: Array = means[:, chosen].reshape(len(means), len(axes[0]), len(axes[1]))
        return found


_FACTORS = 2


def blocks(table: pl.DataFrame, contrast: Contrast, axes: Sequence[str]) -> Iterator[Block]:
    """What a contrast compares, for each combination of the axes that it does not mention.

    Raises:
        InputError: A session is not finished, and none may be.
    """
    rows, notes = _usable(table, contrast)
    others = [axis for axis in axes if axis not in contrast.between and axis not in contrast.units]
    # What the whole table says, before a metric is chosen: a count may be the same with every seed by chance.
    rows = rows.with_columns(_vary(rows, axes))
    if rows.height and not rows[_VARIES].any() and rows["seed"].n_unique() > 1:
        notes = (*notes, _SEED_WITHOUT_EFFECT)
    # Sessions of one run share its network, so their mean is one value.
    runs = rows.group_by([*axes, "seed"], maintain_order=True).agg(
        pl.col(contrast.metric).mean(), pl.col(_VARIES).any()
    )
    facets = runs.partition_by(others, maintain_order=True, as_dict=True) if others else {(): runs}
    for key, part in facets.items():
        found = _block(part, contrast, dict(zip(others, key, strict=True)), notes)
        if found is not None:
            yield found


_VARIES = "_varies"
_SEED_WITHOUT_EFFECT = (
    "the seed changes nothing in these runs, so only one seed counts; "
    '`trace_offset = "random"` in [set] begins all recordings of a run at the same random place'
)


def _usable(table: pl.DataFrame, contrast: Contrast) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The rows that count, and what should be known of the others."""
    failed = table.filter(pl.col("error").is_not_null()).height
    notes = (f"{plural(failed, 'run failed and has', 'runs failed and have')} no values",) if failed else ()
    rows = table.filter(pl.col("error").is_null()).with_columns(pl.col(contrast.metric).cast(pl.Float64))
    rows, more = unfinished.counted(rows, contrast)
    return rows, (*notes, *more)


def _vary(rows: pl.DataFrame, axes: Sequence[str]) -> pl.Series:
    """Whether runs of several seeds differ, by row.

    No two runs in real time are alike, whatever their scenario draws. A simulation may draw nothing and still follow
    the seed, which its plan can write into any key: then its numbers differ.
    """
    if "run.seed_matters" not in rows.columns:
        return pl.Series(_VARIES, [True] * rows.height, dtype=pl.Boolean)
    live = pl.col(columns.TRIES).is_not_null() if columns.TRIES in rows.columns else pl.lit(value=False)
    random = rows.select((pl.col("run.seed_matters").fill_null(value=True) | live).alias(_VARIES))[_VARIES]
    if random.all():
        return random
    condition = [*axes, *(["session"] if "session" in rows.columns else [])]
    measured = [c for c in rows.columns if c not in {*condition, "seed", "run", "run.seed_matters", "error"}]
    different = pl.col(measured).n_unique()
    several = (different.over(condition) if condition else different) > 1
    return random | rows.with_columns(pl.any_horizontal(several).alias(_VARIES))[_VARIES]


def _block(everything: pl.DataFrame, contrast: Contrast, facet: Labels, notes: tuple[str, ...]) -> Block | None:
    """The pairs of a part of the runs; ``None`` where nothing can be compared."""
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
    if len(groups) < _FACTORS or not whole.height:
        return None
    unit, by = _unit(part, contrast.networks)
    return Block(
        contrast=contrast,
        facet=facet,
        labels=[dict(zip(contrast.between, labels, strict=True)) for labels in groups],
        values=whole.select(list(values)).to_numpy().astype(np.float64),
        units=np.unique(whole[by].to_numpy(), return_inverse=True)[1].astype(np.int64),
        unit=unit,
        seeds=whole["seed"].n_unique(),
        dropped=joined.height - whole.height,
        notes=notes,
    )


def _joined(parts: Sequence[pl.DataFrame], pair: Sequence[str]) -> pl.DataFrame:
    """The values of all groups in columns, by pair."""
    joined = parts[0]
    for part in parts[1:]:
        joined = joined.join(part, on=list(pair), how="full", coalesce=True, maintain_order="left_right")
    return joined


def mean_of_condition(rows: pl.DataFrame, metric: str) -> Interval:
    """The mean of a condition's sessions, with the interval of its networks, or of its seeds where there is one."""
    rows = rows.filter(pl.col(metric).is_not_null())
    _, by = _unit(rows, [column for column in SAMPLED_COLUMNS if column in rows.columns])
    value = pl.col(metric).cast(pl.Float64).mean()
    runs = rows.group_by([*dict.fromkeys((by, "seed"))], maintain_order=True).agg(value)
    return statistics.mean(runs.group_by(by, maintain_order=True).agg(value)[metric].to_numpy())


def _unit(part: pl.DataFrame, networks: Sequence[str]) -> tuple[Unit, str]:
    """What was sampled, and its column: of several samples the smallest, which limits what can be known.

    The values of another sample are then fixed: the mean of a network is over all of them.
    """
    counts = {column: part[column].n_unique() for column in networks}
    several = [column for column, count in counts.items() if count > 1]
    if not several:
        return Unit.SEED, "seed"
    return Unit.NETWORK, min(several, key=lambda column: counts[column])
