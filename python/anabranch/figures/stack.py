"""Panels above each other over one time axis, with title, subtitle, legend, and the events of the scenario."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec

from anabranch.figures import labels, panels, style
from anabranch.results.recording import Mark

# The width of a page's text, so that letters keep their size in print.
_WIDTH_IN = 7.2
_LEFT_IN = 0.5
_RIGHT_IN = 0.85
# A unit of panel height, and what the title and the time axis take above and below the panels.
_UNIT_IN = 0.48
_ABOVE_IN = 0.78
_LINE_IN = 0.17
_BELOW_IN = 0.55
_TITLE_PAD_POINTS = 5.0
# A legend of more entries has rows of its own, each of so many columns and as high as this.
_MOST_IN_TITLE_ROW = 3
_LEGEND_COLUMNS = 4
_LEGEND_ROW_IN = 0.19


@dataclass(frozen=True)
class Panel:
    """A panel.

    Attributes:
        title: What it shows.
        height: In units of panel height.
        draw: Draws it; may return labels for the ends of lines.
    """

    title: str
    height: float
    draw: Callable[[Axes], list[panels.Label] | None]


Happened = tuple[Sequence[Mark], labels.Ending | None]
"""Scheduled changes of the network, and how the session ended, if not of its own."""


def draw(
    content: Sequence[Panel],
    *,
    title: str,
    subtitle: str,
    happened: Happened,
    span_s: float,
    legend: Sequence[Artist],
    behind: Callable[[Axes], None] | None = None,
    begin_s: float = 0.0,
) -> Figure:
    """Draws panels, within `style.applied`.

    Args:
        content: From top to bottom, at least one.
        title: The first line, in bold.
        subtitle: The lines below it.
        happened: What is marked in all panels.
        span_s: The time that they show.
        legend: What the labels of lines do not explain.
        behind: Draws into each panel what stands behind its lines.
        begin_s: Where this time begins.

    Returns:
        A figure, as wide as a page's text.
    """
    gap = 0.62  # Between panels, in units: room for the next panel's title.
    units = sum(p.height for p in content) + gap * (len(content) - 1)
    width_in = _WIDTH_IN - _LEFT_IN - _RIGHT_IN
    [strip] = labels.strips([_from(happened, begin_s)], span_s, width_in)
    explained = labels.explanation([happened[0]], [strip], width_in)
    lines = style.wrapped(subtitle, _WIDTH_IN - _LEFT_IN - 0.1, 8.5)
    rows = math.ceil(len(legend) / _LEGEND_COLUMNS) if len(legend) > _MOST_IN_TITLE_ROW else 0
    above_in = _ABOVE_IN + _LINE_IN * max(len(lines) - 1, 0) + strip.height_in + rows * _LEGEND_ROW_IN
    below_in = _BELOW_IN + labels.ROW_IN * len(explained)
    height_in = units * _UNIT_IN + above_in + below_in
    figure = Figure(figsize=(_WIDTH_IN, height_in))
    grid = _grid(figure, content, gap, above_in, below_in)
    first: Axes | None = None
    for row, panel in enumerate(content):
        axes = figure.add_subplot(grid[row], sharex=first)
        axes.set_xlim(begin_s, begin_s + span_s)
        _fill(axes, panel, happened, behind)
        # The labels of events stand between the first panel and its title.
        style.title(axes, panel.title, _TITLE_PAD_POINTS + (strip.height_in * 72.0 if first is None else 0.0))
        style.time_axis(axes, shown=row == len(content) - 1)
        first = first or axes
    assert first is not None
    figure.axes[-1].set_xlabel("Time (s)")
    labels.add_strip(figure, first, strip)
    labels.add_explanation(figure, explained, _LEFT_IN)
    _head(figure, title, lines, legend)
    return figure


def _grid(figure: Figure, content: Sequence[Panel], gap: float, above_in: float, below_in: float) -> GridSpec:
    """The places of the panels, with a gap between them in units."""
    height_in = float(figure.get_figheight())
    return figure.add_gridspec(
        len(content),
        1,
        height_ratios=[panel.height for panel in content],
        hspace=gap / (sum(panel.height for panel in content) / len(content)),
        left=_LEFT_IN / _WIDTH_IN,
        right=1.0 - _RIGHT_IN / _WIDTH_IN,
        top=1.0 - above_in / height_in,
        bottom=below_in / height_in,
    )


def _from(happened: Happened, begin_s: float) -> Happened:
    """The same with times that count from another instant."""
    marks, end = happened
    shifted = [Mark(mark.at_s - begin_s, mark.text) for mark in marks]
    return shifted, None if end is None else labels.Ending(end.at_s - begin_s, end.text)


def _fill(axes: Axes, panel: Panel, happened: Happened, behind: Callable[[Axes], None] | None) -> None:
    ends = panel.draw(axes)
    if behind is not None:
        behind(axes)
    panels.scenario_marks(axes, happened[0])
    panels.ending(axes, happened[1])
    style.place_end_labels(axes, ends or [])
    style.few_ticks(axes, max(int(panel.height * 1.6), 2))


def _head(figure: Figure, title: str, lines: Sequence[str], handles: Sequence[Artist]) -> None:
    """Title, subtitle and legend."""
    height_in = figure.get_figheight()
    left = _LEFT_IN / _WIDTH_IN
    figure.text(left, 1.0 - 0.20 / height_in, title, fontsize=11.0, fontweight="bold", va="center")
    text = "\n".join(lines)
    figure.text(left, 1.0 - 0.34 / height_in, text, fontsize=8.5, color=style.MUTED, va="top", linespacing=1.35)
    if not handles:
        return
    fits = len(handles) <= _MOST_IN_TITLE_ROW
    below_in = 0.40 + _LINE_IN * len(lines)
    figure.legend(
        handles=list(handles),
        loc="center right" if fits else "upper left",
        bbox_to_anchor=(1.0 - (_RIGHT_IN - 0.08) / _WIDTH_IN, 1.0 - 0.20 / height_in)
        if fits
        else (left, 1.0 - below_in / height_in),
        ncols=len(handles) if fits else _LEGEND_COLUMNS,
        handletextpad=0.5,
        columnspacing=1.4,
        borderaxespad=0.5 if fits else 0.0,
        borderpad=0.4 if fits else 0.0,
    )
