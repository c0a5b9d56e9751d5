"""Which sessions of a large table get their timeline into the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from anabranch.wording.summary import plural

KNOWN = "_known"
"""The column that says whether a row's run can be made again."""

_ROW = "_row"


def choose(sessions: pl.DataFrame, by: Sequence[str], metric: str | None, most: int) -> list[int]:
    """The rows whose timelines are made: all where there are few.

    Of many, each condition in turn gives the session with the median of a metric, then its lowest, its highest, and
    those between, until there are enough. Where there are more conditions than timelines, every n-th condition counts.

    Args:
        sessions: A row per session.
        by: The columns that make conditions.
        metric: The metric; the rows' order where absent.
        most: How many at most.

    Returns:
        The rows in ascending order.
    """
    if most < 1:
        return []
    rows = sessions.with_row_index(_ROW).filter(pl.col("error").is_null() & pl.col(KNOWN))
    if rows.height <= most:
        return [int(row) for row in rows[_ROW]]
    order = [_ROW] if metric is None else [pl.col(metric).cast(pl.Float64), pl.col(_ROW)]
    groups = rows.sort(order, maintain_order=True).partition_by(list(by), maintain_order=True) if by else [rows]
    ranked = [[int(row) for row in group[_ROW]] for group in groups]
    # A stride keeps conditions from all along the axes.
    ranked = ranked[:: -(-len(ranked) // most)]
    chosen: dict[int, None] = {}
    for share in _shares():
        for group in ranked:
            if len(chosen) == most or len(chosen) == sum(map(len, ranked)):
                return sorted(chosen)
            chosen[group[round(share * (len(group) - 1))]] = None
    raise AssertionError("the shares have no end")


def _shares() -> Iterator[float]:
    """A half, the ends, the quarters, the eighths, and each further halving."""
    yield from (0.5, 0.0, 1.0)
    parts = 4
    while True:
        yield from (numerator / parts for numerator in range(1, parts, 2))
        parts *= 2


def note(chosen: int, sessions: int, by: Sequence[str], metric: str | None) -> str:
    """What the page says of the choice."""
    if chosen == sessions:
        return f"Each of the {plural(sessions, 'session')} opens its timeline."
    if not chosen:
        return "The page has no timelines. The command in a row makes the timeline of its session."
    of = f"each value of {by[0]}" if by else "the table"
    if len(by) > 1:
        of = f"each combination of {', '.join(by[:-1])} and {by[-1]}"
    rule = (
        f"For {of} they are the session with the median {metric}, then the one with the lowest, the one with the "
        "highest, and sessions between these, as far as there is room. "
        if metric
        else ""
    )
    return (
        f"{chosen} of {sessions} sessions open their timeline. {rule}"
        "The command in any other row makes the timeline of its session."
    )
