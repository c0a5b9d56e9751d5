"""Rows as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl


def frame(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Rows as a table, with the columns in the order in which they first appear."""
    names = dict.fromkeys(key for row in rows for key in row)
    series = [_column(name, [row.get(name) for row in rows]) for name in names]
    return pl.DataFrame(series)


def _column(name: str, values: list[Any]) -> pl.Series:
    kinds = set(map(type, values)) - {type(None)}
    if not kinds or (float in kinds and kinds <= {float, int}):
        # A column without a value is one of numbers that were not observed.
        return pl.Series(name, values, dtype=pl.String if name == "error" else pl.Float64, strict=False)
    if len(kinds) > 1:
        values = [None if value is None else str(value) for value in values]
    return pl.Series(name, values, dtype=pl.UInt64 if name == "seed" else None)
