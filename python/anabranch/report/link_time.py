"""Where the link time of a sweep's conditions went: the columns of the reducer ``link_time``."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from anabranch.experiments import summary
from anabranch.report import shares
from anabranch.report.document import Bar, Column, Grid, Section, ShareChart
from anabranch.results import linktime
from anabranch.wording import causes, quantities
from anabranch.wording.summary import plural

_MOST_BARS = 60
"""Of more conditions the first ones have a bar; the table has all."""

_CAPTION = "Link time by condition: means with 95 % intervals (Student's t over networks, or over seeds of one network)"


def section(sessions: pl.DataFrame, axes: Sequence[str]) -> Section:
    """A bar and a row of a table per condition; nothing where the plan does not name the reducer.

    Args:
        sessions: A row per session.
        axes: The axes that make conditions.
    """
    columns = {cause: each for each in sessions.columns if (cause := causes.of_column(each)) is not None}
    rows = sessions.filter(pl.col("error").is_null())
    rows = rows.filter(pl.col(columns[linktime.USEFUL]).is_not_null()) if columns else rows.clear()
    if not rows.height:
        return Section("Link time")
    parts = rows.partition_by(list(axes), maintain_order=True, as_dict=True) if axes else {(): rows}
    found = {labels: _means(part, columns) for labels, part in parts.items()}
    known = shares.Causes()
    bars = [
        Bar(
            summary.named(dict(zip(axes, labels, strict=True))) or "all sessions",
            known.pieces(means[linktime.USEFUL], _lost(means)),
            f"Mean of {plural(parts[labels].height, 'session')}.",
        )
        for labels, means in list(found.items())[:_MOST_BARS]
    ]
    more = len(found) - len(bars)
    note = f"{plural(more, 'condition')} more are in the table." if more else ""
    chart = ShareChart(
        "Of what the links could have carried while a response was due", bars, known.fillings(), note, "link-time"
    )
    shown = [cause for cause in columns if any(means[cause] >= shares.LEAST_SHARE for means in found.values())]
    heads = [Column(name, key=axis) for axis, name in quantities.of_keys(axes).items()]
    heads += [Column(causes.SHORT[cause], "%", number=True, key=columns[cause]) for cause in shown]
    texts = [summary.means(list(parts.values()), columns[cause]) for cause in shown]
    body = [[*map(str, labels), *own] for labels, *own in zip(parts, *texts, strict=True)]
    return Section("Link time", [chart, Grid(heads, body, caption=_CAPTION, name="link-time", folded=True)])


def _means(rows: pl.DataFrame, columns: dict[str, str]) -> dict[str, float]:
    return {cause: float(rows[column].cast(pl.Float64).mean() or 0.0) for cause, column in columns.items()}  # type: ignore[arg-type]


def _lost(means: dict[str, float]) -> list[tuple[str, float, str]]:
    return [(cause, share, causes.CAUSES[cause]) for cause, share in means.items() if cause != linktime.USEFUL]
