"""The table of all events of endpoints, links and players."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

    from anabranch import _core


def frame(outcome: _core.Outcome) -> pl.DataFrame | None:
    """The events of a run, oldest first, one row each; ``None`` if none were recorded.

    A value that an event does not have is null. ``docs/reference/events.md`` explains the columns.
    """
    import polars as pl

    columns = outcome.events()
    if columns is None:
        return None
    series = []
    for name, column in columns.items():
        if column[0] == "integer":
            values = pl.Series(name, column[1])
            series.append(values.set(values == column[2], None))
        elif column[0] == "float":
            series.append(pl.Series(name, column[1]).fill_nan(None))
        elif column[0] == "flag":
            values = pl.Series(name, column[1])
            series.append(values.set(values < 0, None).cast(pl.Boolean))
        else:
            codes = pl.Series(column[1])
            words = pl.Series(name, column[2], dtype=pl.String)
            series.append(words.gather(codes.set(codes < 0, None)).cast(pl.Categorical).alias(name))
    return pl.DataFrame(series)
