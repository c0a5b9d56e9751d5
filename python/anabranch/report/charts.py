"""The charts of a sweep: differences with intervals, distributions, and means over an axis."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from anabranch.experiments import statistics, summary
from anabranch.experiments.blocks import mean_of_condition
from anabranch.experiments.contrast import Alternative, Comparison, ContrastVerdict
from anabranch.experiments.plan import Figure
from anabranch.experiments.statistics import Array
from anabranch.report.document import IntervalChart, Item, Line, LineChart, MapChart, Tile, Tone
from anabranch.wording import numerals, quantities
from anabranch.wording.quantities import Quantity

TONES: Mapping[ContrastVerdict, Tone] = {
    ContrastVerdict.REFERENCE: "plain",
    ContrastVerdict.BETTER: "good",
    ContrastVerdict.WORSE: "bad",
    ContrastVerdict.EQUIVALENT: "same",
    ContrastVerdict.IDENTICAL: "same",
    ContrastVerdict.UNDECIDED: "open",
}
"""How the verdicts of comparisons are coloured."""

MOST_LINES = 18
"""More lines cannot be told apart: six colours with three kinds of dashes."""

MOST_PANELS = 12
"""More panels of one figure are not drawn."""

_DASHES = 3
# A screen is not wider; a line of more points only makes the page larger.
_MOST_STEPS = 400
_BEFORE = 1e-4


def facet(labels: Mapping[str, Any]) -> str:
    """The values of the axes that a chart does not vary."""
    names = quantities.of_keys(list(labels))
    return ", ".join(f"{names[key]} = {value}" for key, value in labels.items())


def differences(comparison: Comparison, name: str) -> IntervalChart:
    """The paired differences of a comparison from its reference, with intervals and verdicts."""
    contrast, reference = comparison.contrast, comparison.reference
    quantity = quantities.of_metric(contrast.metric)
    better = "right" if contrast.higher_is_better else "left"
    scale, of = quantity.scale, f" ({quantity.unit})" if quantity.unit else ""
    return IntervalChart(
        title=f"Difference of {quantity.name} from {summary.named(reference.labels)}",
        x_label=f"paired difference of {quantity.labelled} from {summary.named(reference.labels)}; better is {better}",
        short_label=f"difference{of}; better is {better}",
        items=[_item(entry, scale) for entry in comparison.entries],
        margin=None if contrast.margin is None else contrast.margin.of(reference.mean.estimate) * scale,
        note=facet(comparison.facet),
        name=name,
        where=comparison.facet,
        headed=True,
    )


def _item(entry: Alternative, scale: float) -> Item:
    label = summary.named(entry.labels)
    if entry.difference is None:
        mean = numerals.plus_minus(entry.mean.estimate * scale, entry.mean.half_width * scale)
        return Item(label, 0.0, 0.0, 0.0, "reference", "plain", f"mean {mean}", entry.labels)
    found = entry.difference.mean
    ends = (found.low, found.high) if math.isfinite(found.half_width) else (found.estimate, found.estimate)
    difference = numerals.plus_minus(found.estimate * scale, found.half_width * scale)
    return Item(
        label=label,
        estimate=found.estimate * scale,
        low=ends[0] * scale,
        high=ends[1] * scale,
        verdict=summary.verdict(entry),
        tone=TONES[entry.verdict],
        note=f"difference {difference}, p {summary.p_value(entry.p_value)}",
        labels=entry.labels,
    )


def of_figure(figure: Figure, sessions: pl.DataFrame, axes: Sequence[str], name: str) -> Iterator[LineChart]:
    """The charts of a figure of a plan: one for each combination of the axes that it does not mention.

    Args:
        figure: What is drawn.
        sessions: A row per session.
        axes: The axes that make conditions; those of networks are pooled, as seeds are.
        name: What the exported files are called; a number follows.
    """
    if figure.y not in sessions.columns:
        return
    rows = sessions.filter(pl.col("error").is_null() & pl.col(figure.y).is_not_null())
    rows = rows.with_columns(pl.col(figure.y).cast(pl.Float64))
    others = [axis for axis in axes if axis != figure.x and axis not in figure.by]
    panels = rows.partition_by(others, maintain_order=True, as_dict=True) if others else {(): rows}
    for number, (key, part) in enumerate(itertools.islice(panels.items(), MOST_PANELS)):
        where = dict(zip(others, key, strict=True))
        if part.height:
            yield _panel(figure, part, where, f"{name}-{number + 1}" if others else name)


def maps(figure: Figure, comparisons: Sequence[Comparison], name: str) -> Iterator[MapChart]:
    """The maps of a figure of a plan: one for each of the compared, and for each combination of the other axes.

    Args:
        figure: What is drawn; it has ``x`` and ``rows``.
        comparisons: What the plan's comparisons found.
        name: What the exported files are called; a number follows.
    """
    assert figure.x is not None
    assert figure.rows is not None
    axes, quantity = (figure.x, figure.rows), quantities.of_metric(figure.y)
    own = [c for c in comparisons if c.contrast.metric == figure.y and set(axes) <= set(c.facet)]
    widest = max((_size(entry) for comparison in own for entry in comparison.entries), default=0.0)
    panels: dict[tuple[str, str], dict[tuple[str, str], Tile]] = {}
    for comparison in own:
        where = facet({axis: value for axis, value in comparison.facet.items() if axis not in axes})
        place = (str(comparison.facet[figure.rows]), str(comparison.facet[figure.x]))
        for entry in comparison.entries:
            if entry.difference is not None:
                tile = _tile(entry, quantity, widest)
                panels.setdefault((summary.named(entry.labels), where), {})[place] = tile
    names = quantities.of_keys(list(axes))
    # The compared by name, and the values of other axes in the order of the plan.
    for number, ((compared, where), tiles) in enumerate(sorted(panels.items(), key=lambda panel: panel[0][0]), start=1):
        rows, columns = (list(dict.fromkeys(place[axis] for place in tiles)) for axis in (0, 1))
        yield MapChart(
            title=f"{compared}: difference of {quantity.labelled} from {summary.named(own[0].reference.labels)}",
            x_label=names[figure.x],
            y_label=names[figure.rows],
            columns=columns,
            rows=rows,
            tiles=[[tiles.get((row, column), Tile("", "plain", 0.0)) for column in columns] for row in rows],
            note=where,
            name=f"{name}-{number}",
        )


def _size(entry: Alternative) -> float:
    return abs(entry.difference.mean.estimate) if entry.difference is not None else 0.0


def _tile(entry: Alternative, quantity: Quantity, widest: float) -> Tile:
    """What is certain is coloured, the stronger the larger it is."""
    assert entry.difference is not None
    mean, scale = entry.difference.mean, quantity.scale
    text = numerals.column([mean.estimate * scale], most=2)[0]
    if not text.strip("0."):
        text = "0"
    certain = entry.verdict in (ContrastVerdict.BETTER, ContrastVerdict.WORSE)
    strength = math.sqrt(_size(entry) / widest) if certain and widest else 0.0
    sign = "+" if mean.estimate > 0 and text != "0" else ""
    interval = numerals.plus_minus(mean.estimate * scale, mean.half_width * scale)
    note = f"{interval} {quantity.unit}, {summary.verdict(entry)}, p {summary.p_value(entry.p_value)}"
    return Tile(f"{sign}{text}", TONES[entry.verdict], strength, note)


def _panel(figure: Figure, rows: pl.DataFrame, where: Mapping[str, Any], name: str) -> LineChart:
    groups = rows.partition_by(list(figure.by), maintain_order=True, as_dict=True) if figure.by else {(): rows}
    shown = dict(itertools.islice(groups.items(), MOST_LINES))
    places = _places(list(shown))
    quantity = quantities.of_metric(figure.y)
    categories = [] if figure.x is None else _categories(rows, figure.x)
    lines = []
    for labels, part in shown.items():
        text = " + ".join(map(str, labels)) or quantity.name
        drawn = _distribution(part, quantity) if figure.x is None else _means(part, figure, categories)
        own = dict(zip(figure.by, labels, strict=True)) if labels else {}
        lines.append(Line(text, **drawn, colour=places[labels][0], dash=places[labels][1], labels=own))
    more = len(groups) - len(shown)
    notes = [facet(where), f"{more} conditions more are not drawn" if more else ""]
    if figure.x is None:
        values = rows[figure.y].to_numpy() * quantity.scale
        logarithmic = _is_logarithmic(values)
        view = None if logarithmic else _view(values)
        outside = 0.0 if view is None else float(np.mean((values < view[0]) | (values > view[1])))
        notes.append(_of_view(outside, rows.height) if view else "")
        return LineChart(
            f"Distribution of {quantity.name}",
            quantity.labelled,
            "share of sessions",
            lines,
            stepped=True,
            logarithmic=logarithmic,
            view=view,
            outside=outside,
            note="; ".join(filter(None, notes)),
            name=name,
            axis=figure.y,
            where=where,
        )
    names = quantities.of_keys([figure.x, *figure.by])
    title = f"{capitalized(quantity.name)} by {names[figure.x]}, mean with 95 % interval"
    return LineChart(
        title,
        names[figure.x],
        quantity.labelled,
        lines,
        categories=categories,
        note="; ".join(filter(None, notes)),
        name=name,
        axis=figure.x,
        where=where,
    )


def capitalized(text: str) -> str:
    """The text as the beginning of a title."""
    return f"{text[0].upper()}{text[1:]}"


# The middle of a distribution whose tails are long lies between these quantiles.
_TAIL = 0.02
# Tails that take no more than this share of the axis are shown.
_LONG_TAILS = 0.5
# Where the middle spans more than a decade and a half, a linear axis shows only its upper end.
_DECADES = 1.5


def _middle(values: Array) -> tuple[float, float]:
    low, high = np.quantile(values, (_TAIL, 1 - _TAIL))
    return float(low), float(high)


def _is_logarithmic(values: Array) -> bool:
    """Whether a logarithmic axis shows a distribution better."""
    low, high = _middle(values)
    return float(values.min()) > 0 and high > low * 10**_DECADES


def _view(values: Array) -> tuple[float, float] | None:
    """The part of the axis of a distribution without its tails, if these would take most of it."""
    low, high = _middle(values)
    if not 0 < high - low < float(np.ptp(values)) * (1 - _LONG_TAILS):
        return None
    margin = (high - low) * _TAIL
    return low - margin, high + margin


def _of_view(outside: float, sessions: int) -> str:
    """What a chart says of the values that it does not show at first."""
    return f"{round(outside * sessions)} of {sessions} sessions are outside of what is shown at first"


def _places(labels: Sequence[tuple[Any, ...]]) -> dict[tuple[Any, ...], tuple[int, int]]:
    """Colour and dashes of each line: of two axes the first is the colour and the second the dashes."""
    from anabranch.figures import style

    first = list(dict.fromkeys(label[:1] for label in labels))
    rest = list(dict.fromkeys(label[1:] for label in labels))
    if len(rest) > 1 and len(first) <= len(style.PATHS) and len(rest) <= _DASHES:
        return {label: (first.index(label[:1]), rest.index(label[1:])) for label in labels}
    return {label: (i % len(style.PATHS), i // len(style.PATHS) % _DASHES) for i, label in enumerate(labels)}


def _distribution(rows: pl.DataFrame, quantity: Quantity) -> dict[str, Any]:
    """The empirical distribution."""
    values, shares = statistics.distribution(rows[quantity.key].to_numpy())
    if len(values) > _MOST_STEPS:
        kept = np.unique(np.linspace(0, len(values) - 1, _MOST_STEPS).round().astype(int))
        values, shares = values[kept], shares[kept]
    scale = quantity.scale
    # The line begins at zero, a little before the first value: one place has one value.
    first = [((float(values[0]) - _before(values)) * scale, 0.0)] if len(values) else []
    points = [*first, *zip((values * scale).tolist(), shares.tolist(), strict=True)]
    return {"x": [x for x, _ in points], "y": [y for _, y in points]}


def _before(values: Array) -> float:
    """How far before the first value the line of a distribution begins, in the unit of the values."""
    spread = float(np.ptp(values)) or abs(float(values[0])) or 1.0
    # A logarithmic axis has no place for zero.
    return _BEFORE * min(spread, float(values[0])) if values[0] > 0 else _BEFORE * spread


def _categories(rows: pl.DataFrame, axis: str) -> list[str]:
    """The texts of an axis in its order; empty where its values are numbers."""
    if rows[axis].dtype.is_numeric():
        return []
    return [str(value) for value in rows[axis].unique(maintain_order=True)]


def _means(rows: pl.DataFrame, figure: Figure, categories: Sequence[str]) -> dict[str, Any]:
    """Means with intervals over an axis."""
    assert figure.x is not None
    scale = quantities.of_metric(figure.y).scale
    found: dict[float, statistics.Interval] = {}
    for (value,), part in rows.partition_by(figure.x, maintain_order=True, as_dict=True).items():
        at = float(categories.index(str(value))) if categories else float(value)
        found[at] = mean_of_condition(part, figure.y)
    places = sorted(found)
    return {
        "x": places,
        "y": [found[at].estimate * scale for at in places],
        "low": [numerals.known(found[at].low * scale) for at in places],
        "high": [numerals.known(found[at].high * scale) for at in places],
    }
