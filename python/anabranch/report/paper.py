"""The charts of a report as figures for a two-column paper: one column wide, letters of seven points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import matplotlib as mpl
import matplotlib.colors
import matplotlib.patches
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from anabranch.figures import style
from anabranch.report.document import IntervalChart, Item, Line, LineChart, MapChart, Tone

# The column of ACM's and IEEE's styles is 3.33 and 3.5 inches wide.
_WIDTH_IN = 3.4
_HEIGHT_IN = 2.1
_ROW_IN = 0.155
_AROUND_IN = 0.55
_LINE_IN = 0.11
# What the labels of the vertical axis take, next to which the label of the other axis is centred.
_LABELS_IN = 0.6
_SIZES: dict[str, Any] = {
    "font.size": 7.0,
    "axes.labelsize": 7.0,
    "axes.titlesize": 7.0,
    "xtick.labelsize": 6.5,
    "ytick.labelsize": 6.5,
    "legend.fontsize": 6.0,
    "lines.linewidth": 1.0,
}
_DASHES: tuple[Any, ...] = ("-", (0, (4.5, 1.5)), (0, (1.4, 1.1)))
# Dots of one colour differ by shape, as lines do by dashes.
_MARKERS = ("o", "s", "^")
_TONES: Mapping[Tone, tuple[str, str]] = {
    "good": ("#00734f", "^"),
    "bad": ("#b04a00", "v"),
    "same": ("#0067a3", "s"),
    "open": ("#6d6a60", "o"),
    "plain": (style.INK, "o"),
}
# Pale by itself: what converts an SVG for a paper may ignore opacity.
_BAND = "#e0edf5"
# Next to each other on a categorical axis.
_DODGE = 0.1
_FEW_LINES = 6
# Free at the edges of a figure.
_EDGE_IN = 0.05


def draw(chart: LineChart | IntervalChart | MapChart) -> Figure:
    """Draws a chart; its title is left to the caption of the paper."""
    with style.applied(), mpl.rc_context(cast(Any, _SIZES)):
        if isinstance(chart, MapChart):
            return maps([chart])
        return _intervals(chart) if isinstance(chart, IntervalChart) else _lines(chart)


_TILE_IN = 0.2
# The most saturated colour leaves its text readable.
_STRONGEST = 0.75


def panels(charts: Sequence[LineChart] | Sequence[MapChart], columns: int = 1) -> Figure:
    """Draws the panels of one figure: maps next to each other, or one chart."""
    first = charts[0]
    if isinstance(first, MapChart):
        return maps([each for each in charts if isinstance(each, MapChart)], columns)
    return draw(first)


def maps(charts: Sequence[MapChart], columns: int = 1) -> Figure:
    """Draws maps in rows and columns."""
    with style.applied(), mpl.rc_context(cast(Any, _SIZES)):
        rows = -(-len(charts) // columns)
        height = sum(max(len(c.rows) for c in charts[i * columns : (i + 1) * columns]) for i in range(rows)) * _TILE_IN
        figure = Figure(figsize=(_WIDTH_IN * columns, height + rows * _AROUND_IN + 0.1), layout="constrained")
        for number, chart in enumerate(charts):
            _map(figure.add_subplot(rows, columns, number + 1), chart, titled=len(charts) > 1)
        return figure


def _map(axes: Axes, chart: MapChart, *, titled: bool) -> None:
    for row, tiles in enumerate(chart.tiles):
        for column, tile in enumerate(tiles):
            colour = (*mpl.colors.to_rgb(_TONES[tile.tone][0]), _STRONGEST * tile.strength)
            axes.add_patch(mpl.patches.Rectangle((column, row), 1, 1, facecolor=colour, edgecolor="white"))
            marked = f"{tile.text}{_UNCERTAIN if tile.tone == 'open' else ''}"
            axes.text(column + 0.5, row + 0.5, marked, ha="center", va="center", fontsize=6.0, color=style.INK)
    axes.set_xlim(0, len(chart.columns))
    axes.set_ylim(len(chart.rows), 0)
    axes.set_xticks([i + 0.5 for i in range(len(chart.columns))], list(chart.columns))
    axes.set_yticks([i + 0.5 for i in range(len(chart.rows))], list(chart.rows))
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.set_xlabel(chart.x_label)
    axes.set_ylabel(chart.y_label)
    if titled:
        axes.set_title(f"{chart.title.partition(':')[0]}{f', {chart.note}' if chart.note else ''}", loc="left")


_UNCERTAIN = "?"


def _intervals(chart: IntervalChart) -> Figure:
    label = _within(chart.x_label, _WIDTH_IN)
    height_in = len(chart.items) * _ROW_IN + _AROUND_IN + max(label.count("\n") - 1, 0) * _LINE_IN
    figure = Figure(figsize=(_WIDTH_IN, height_in), layout="constrained")
    axes = figure.add_subplot()
    rows = range(len(chart.items) - 1, -1, -1)
    if chart.margin is not None:
        axes.axvspan(-chart.margin, chart.margin, color=_BAND, linewidth=0)
    axes.axvline(0.0, color=style.MUTED, linewidth=0.7)
    for row, item in zip(rows, chart.items, strict=True):
        _item(axes, row, item)
    axes.set_yticks(list(rows), [item.label for item in chart.items])
    axes.set_ylim(-0.6, len(chart.items) - 0.4)
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x")
    # There is room below the names of the rows, too.
    axes.set_xlabel(label, x=1.0, horizontalalignment="right")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))
    return figure


def _within(label: str, width_in: float) -> str:
    """The label of an axis in lines of at most this width."""
    return "\n".join(style.wrapped(label, width_in - 2 * _EDGE_IN, _SIZES["axes.labelsize"]))


def _item(axes: Axes, row: int, item: Item) -> None:
    colour, marker = _TONES[item.tone]
    axes.plot([item.low, item.high], [row, row], color=colour, linewidth=1.1)
    face = "white" if item.tone == "open" else colour
    axes.plot([item.estimate], [row], marker=marker, color=colour, markerfacecolor=face, markersize=3.4)


def _lines(chart: LineChart) -> Figure:
    legend_rows = -(-len(chart.lines) // 2) if len(chart.lines) > 1 else 0
    figure = Figure(figsize=(_WIDTH_IN, _HEIGHT_IN + legend_rows * _LINE_IN), layout="constrained")
    axes = figure.add_subplot()
    # Where colour alone tells lines apart, their dashes do so, too, for prints without colour.
    alike = len({line.dash for line in chart.lines}) == 1
    for number, line in enumerate(chart.lines):
        # Next to each other where they have the same places.
        shift = (number - (len(chart.lines) - 1) / 2) * min(_DODGE, 0.5 / len(chart.lines)) if chart.categories else 0.0
        _line(axes, replace(line, dash=number) if alike else line, [x + shift for x in line.x], chart)
    if chart.categories:
        axes.set_xticks(range(len(chart.categories)), list(chart.categories))
        axes.set_xlim(-0.5, len(chart.categories) - 0.5)
    if chart.stepped:
        axes.set_ylim(0.0, 1.02)
    if chart.logarithmic:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(style.PlainLogarithms())
        axes.xaxis.set_minor_formatter(style.PlainLogarithms())
    if chart.view is not None:
        axes.set_xlim(*chart.view)
        outside = f"{chart.outside:.1%} of the sessions are outside".replace("%", "\N{NO-BREAK SPACE}%")
        # A distribution leaves one of two corners free.
        x, y, side, edge = (0.01, 0.97, "left", "top") if _rises_late(chart) else (0.99, 0.03, "right", "bottom")
        axes.text(x, y, outside, transform=axes.transAxes, ha=side, va=edge, fontsize=5.5, color=style.MUTED)
    axes.set_xlabel(_within(chart.x_label, _WIDTH_IN - _LABELS_IN))
    axes.set_ylabel(_within(chart.y_label, _HEIGHT_IN - _AROUND_IN))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))
    if len(chart.lines) > 1:
        columns = 2 if len(chart.lines) <= _FEW_LINES else 3
        figure.legend(loc="outside upper left", ncols=columns, handlelength=2.2, columnspacing=1.0, borderpad=0.0)
    return figure


def _rises_late(chart: LineChart) -> bool:
    """Whether distributions have most of their values in the right half of what is shown."""
    low, high = chart.view or (0.0, 0.0)
    middle = (low * high) ** 0.5 if chart.logarithmic else (low + high) / 2
    reached = [
        max((y or 0.0 for x, y in zip(line.x, line.y, strict=True) if x <= middle), default=0.0) for line in chart.lines
    ]
    return sum(reached) < len(reached) / 2


def _line(axes: Axes, line: Line, xs: Sequence[float], chart: LineChart) -> None:
    look = {"color": style.PATHS[line.colour % len(style.PATHS)].colour, "linestyle": _DASHES[line.dash % len(_DASHES)]}
    values = [float("nan") if y is None else y for y in line.y]
    if chart.stepped:
        axes.plot(xs, values, drawstyle="steps-post", label=line.name, **look)
        return
    if chart.categories:
        # Between categories there is nothing that a line could show.
        look["linestyle"], marker = "none", _MARKERS[line.dash % len(_MARKERS)]
        axes.plot(xs, values, marker=marker, markersize=3.2, label=line.name, **look)
    else:
        axes.plot(xs, values, marker="o", markersize=2.4, label=line.name, **look)
    for x, low, high in zip(xs, line.low, line.high, strict=False):
        if low is not None and high is not None:
            axes.plot([x, x], [low, high], color=look["color"], linewidth=0.8)
