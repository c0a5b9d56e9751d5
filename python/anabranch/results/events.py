"""The table of all events of endpoints, links and players."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

    from anabranch import _core


def frame(outcome: _core.Outcome) -> pl.DataFrame | None:
    """The events of a run, oldest first, one row each; ``None`` if none were recorded.

    A value that an event does not have is null. ``docs/reference/events.md`` explains the columns.
    """
    columns = outcome.events()
    return None if columns is None else of_columns(columns)


def of_columns(columns: Mapping[str, tuple[Any, ...]]) -> pl.DataFrame:
    """A table of columns as the compiled part gives them."""
    import polars as pl

    return pl.DataFrame([_series(name, column) for name, column in columns.items()])


def _series(name: str, column: tuple[Any, ...]) -> pl.Series:
    """A column of the compiled part, its marks for absent values replaced by nulls."""
    import polars as pl

    kind, values, *rest = column
    if kind == "float":
        return pl.Series(name, values).fill_nan(None)
    if kind == "integer":
        integers = pl.Series(name, values)
        return integers.set(integers == rest[0], None)
    if kind == "flag":
        flags = pl.Series(name, values)
        return flags.set(flags < 0, None).cast(pl.Boolean)
    codes, words = pl.Series(values), pl.Series(name, rest[0], dtype=pl.String)
    return words.gather(codes.set(codes < 0, None)).cast(pl.Categorical).alias(name)
