"""The same runs in several tables, such as those of two versions: what differs, run by run."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from anabranch.errors import InputError
from anabranch.experiments import contrast, table
from anabranch.experiments.contrast import Comparison
from anabranch.experiments.contrast_spec import Contrast
from anabranch.experiments.table import About
from anabranch.experiments.variation import SAMPLED_COLUMNS
from anabranch.wording.summary import plural, seeds_in_words

_TABLE = "table"
_METRIC = "metric"
_VALUE = "value"
# So many digits distinguish digests.
_DIGITS = 12
DERIVED = ("-segments", "-comparisons", "-effects")
"""The endings of tables that are made of the table of sessions."""

METRICS = ("startup_s", "stalls", "stall_s", "mean_bitrate_bps", "qoe_linear", "goodput_bps")
"""What is compared by default, as far as the tables have it."""


def is_table(path: Path) -> bool:
    """Whether this is a table, or a store with tables."""
    return path.suffix == ".parquet" or (path / "store.json").is_file()


@dataclass(frozen=True)
class Read:
    """A table that was read.

    Attributes:
        path: What was given.
        frame: A row per session.
        about: What the table says of itself.
    """

    path: Path
    frame: pl.DataFrame
    about: About

    @property
    def seeds(self) -> list[int]:
        """The seeds of its runs."""
        return sorted(self.frame["seed"].unique().to_list())


def read(paths: Sequence[Path]) -> list[Read]:
    """Reads tables, or those of stores.

    Raises:
        InputError: A file is no table.
    """
    return [Read(path, *table.read(_file(path))) for path in paths]


def differences(tables: Sequence[Read]) -> dict[str, list[str]]:
    """In what tables differ as wholes: the seeds first, then options of the sweep, and what made the runs."""
    found = {
        "seeds": [seeds_in_words(each.seeds) for each in tables],
        "options": [shlex.join(each.about.changes) or "-" for each in tables],
        "version": [each.about.version for each in tables],
        "build": [each.about.library_sha256[:_DIGITS] for each in tables],
        "question": [each.about.question for each in tables],
    }
    return {key: values for key, values in found.items() if len(set(values)) > 1}


def of_seeds(tables: Sequence[Read]) -> str | None:
    """What to know of the tables' seeds before they are compared; ``None`` where they are the same."""
    if all(each.seeds == tables[0].seeds for each in tables):
        return None
    common = set.intersection(*(set(each.seeds) for each in tables))
    return f"the tables have different seeds; runs of {plural(len(common), 'seed')} that all have are compared"


def compare(tables: Sequence[Read], metrics: Sequence[str]) -> list[Comparison]:
    """Compares tables with the first of them, a comparison per metric; pairs are runs with the same values and seed.

    Raises:
        InputError: A metric is no column of numbers, or the tables have no run in common.
    """
    paths, frames = [each.path for each in tables], [each.frame for each in tables]
    wanted = list(metrics) or [m for m in METRICS if all(m in frame.columns for frame in frames)]
    for path, frame in zip(paths, frames, strict=True):
        for metric in wanted:
            try:
                contrast.check_metric(frame, metric)
            except InputError as error:
                raise InputError(f"{path}: {error}") from error
    if not wanted:
        raise InputError(f"the tables have none of {', '.join(METRICS)} in common; choose with --metric")
    axes = _common_axes(paths, [each.about for each in tables])
    names = _names(paths, [each.about for each in tables])
    parts = [_long(frame, name, axes, wanted) for frame, name in zip(frames, names, strict=True)]
    found = contrast.compare(
        pl.concat(parts, how="diagonal_relaxed"),
        Contrast(
            _VALUE,
            higher_is_better=True,
            between=(_TABLE,),
            units=axes,
            networks=tuple(axis for axis in axes if axis in SAMPLED_COLUMNS),
            reference={_TABLE: names[0]},
        ),
        (_TABLE, _METRIC, *axes),
    )
    if not found:
        raise InputError("the tables have no run in common: no row with the same values and the same seed")
    others = "the other table" if len(tables) == 2 else "each other table"
    counted = f"{others} with the first one, in {plural(len(found), 'metric')}"
    return [replace(each, family=replace(each.family, counted=counted)) for each in found]


def metric_of(comparison: Comparison) -> str:
    """The metric that it is about."""
    return str(comparison.facet[_METRIC])


def _file(path: Path) -> Path:
    if not path.is_dir():
        return path
    files = [file for file in sorted(path.glob("*.parquet")) if not file.stem.endswith(DERIVED)]
    if len(files) == 1:
        return files[0]
    if not files:
        raise InputError(f"{path}: this store has no table yet; `anabranch sweep PLAN --store {path}` writes it")
    raise InputError(f"{path}: this store has several tables; expected one of {', '.join(map(str, files))}")


def _common_axes(paths: Sequence[Path], abouts: Sequence[About]) -> tuple[str, ...]:
    for path, about in zip(paths, abouts, strict=True):
        if set(about.axes) != set(abouts[0].axes):
            theirs = ", ".join(about.axes) or "nothing"
            first = ", ".join(abouts[0].axes) or "nothing"
            raise InputError(
                f"{path}: its plan varies {theirs}, that of {paths[0]} {first}; expected tables of one plan"
            )
    return abouts[0].axes


def _names(paths: Sequence[Path], abouts: Sequence[About]) -> list[str]:
    """A name for each table: its version, if these differ, or else the way to it."""
    versions = [about.version for about in abouts]
    return versions if len(set(versions)) == len(versions) else [str(path) for path in paths]


def _long(frame: pl.DataFrame, name: str, axes: Sequence[str], metrics: Sequence[str]) -> pl.DataFrame:
    """A row per session and metric."""
    kept = [c for c in ("cut_off", "run.seed_matters") if c in frame.columns]
    parts = [
        frame.select(
            pl.lit(name).alias(_TABLE),
            pl.lit(metric).alias(_METRIC),
            *axes,
            "seed",
            "error",
            *kept,
            pl.col(metric).cast(pl.Float64).alias(_VALUE),
        )
        for metric in metrics
    ]
    return pl.concat(parts)
