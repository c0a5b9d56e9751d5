"""Runs that were made once and are read again, such as those in real time: a table of their sessions, as Parquet.

A row has the values of the plan's axes, the seed, what criteria read, and whether the run counts (``error``). A
table of results whose runs were not kept has a row per result, without a seed.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import polars as pl

from anabranch.errors import InputError
from anabranch.experiments.study import Row
from anabranch.results.frames import frame
from anabranch.system import outputs

KERNEL = "live.kernel"
"""The column with the kernel of a run."""

DATA = Path(str(resources.files("anabranch") / "data"))
"""The shipped tables."""


def read(file: Path) -> list[Row]:
    """The rows of a table.

    Raises:
        InputError: It is none.
    """
    try:
        rows: list[Row] = list(pl.read_parquet(file).to_dicts())
        return rows
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f"{file}: this is no table of kept runs, in Parquet: {error}") from error


def columns(file: Path) -> tuple[str, ...]:
    """The columns of a table; none where it is yet to be made."""
    return tuple(pl.read_parquet_schema(file)) if file.exists() else ()


def identity(labels: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """What names a run in a table: the values of its axes, its seed and its number."""
    return tuple(sorted((key, value) for key, value in labels.items() if value is not None))


def identities(file: Path, names: Sequence[str]) -> set[tuple[tuple[str, Any], ...]]:
    """The runs of a table."""
    rows = read(file) if file.exists() else []
    return {identity({name: row.get(name) for name in names}) for row in rows}


def check_kernel(file: Path) -> None:
    """Refuses a table of runs that were made with another kernel than this machine's.

    Raises:
        InputError: It is one.
    """
    kernels: set[Any] = {row.get(KERNEL) for row in read(file)} if file.exists() else set()
    if other := sorted(kernels - {platform.release(), None}):
        raise InputError(
            f"{file}: these runs were made with Linux {other[0]}, and this machine has {platform.release()}; "
            "keep its runs in another file"
        )


def add(file: Path, more: Sequence[Mapping[str, Any]], order: Sequence[str]) -> None:
    """Adds rows; the table is sorted by these columns, so that the same runs are the same file.

    Raises:
        InputError: The runs there were made with another kernel.
        OSError: It cannot be written.
    """
    check_kernel(file)
    old = read(file) if file.exists() else []
    whole = frame([*old, *more]).sort(order)
    with outputs.writing(file), outputs.replacing(file) as new:
        whole.write_parquet(new, compression="zstd", statistics=False)
