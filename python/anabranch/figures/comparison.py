"""The figure of a comparison: one column per run or session, the same axes in every column, three in a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from anabranch.figures import labels, panels, style
from anabranch.figures.panels import Row
from anabranch.results import series
from anabranch.results.recording import Mark, SessionRecording
from anabranch.results.series import SessionSeries
from anabranch.results.timeline import Kind

_HEIGHTS: Mapping[Kind, float] = {
    "bitrate": 2.2,
    "buffer": 2.0,
    "throughput": 1.5,
    "discards": 1.2,
    "switches": 1.2,
    "note": 1.4,
}

# The width of a figure with several columns: 1800 pixels at the resolution of `style`, so that it fits on a screen.
_WIDTH_IN = 9.0
_ALONE_IN = 7.2
# More columns in a row would be narrower than their labels; the rest goes below.
_IN_A_ROW = 3
_LEFT_IN, _RIGHT_IN, _BETWEEN_IN = 0.5, 0.15, 0.24
# A unit of panel height, and what the titles of panels and the time axis take.
_UNIT_IN = 0.4
_TITLE_IN = 0.27
_AXIS_IN = 0.55
_TITLE_PAD_POINTS = 5.0
# Lines of the figure's title, and of a column's title and subtitle: size of the letters in points, height in inches.
_HEADING = (12.5, 0.24)
_NAME = (10.5, 0.19)
_OUTCOME = (8.5, 0.165)
_AROUND_HEADING_IN = 0.13


@dataclass(frozen=True)
class Column:
    """One run of a comparison, or one session of a run.

    Attributes:
        title: What distinguishes it from the others, such as its scheduler.
        subtitle: Its outcome in a few words.
        recording: The session to draw.
        marks: Scheduled changes of the network.
        ending: How it ended, if not of its own.
        paths: The paths of its scenario, which decide on colours; those of the session where absent.
    """

    title: str
    subtitle: str
    recording: SessionRecording
    marks: Sequence[Mark] = ()
    ending: labels.Ending | None = None
    paths: Sequence[str] = ()


@dataclass(frozen=True)
class _Sheet:
    """The columns with everything that their places depend on.

    Attributes:
        columns: In order; up to three stand in a row.
        sessions: What is drawn in each column.
        rows: The panels of each column.
        styles: Those of all paths.
        strips: The labels of each column's events.
        explained: What numbered labels stand for.
        column_in: The width of a column.
        span_s: The time that each shows.
    """

    columns: Sequence[Column]
    sessions: Sequence[SessionSeries]
    rows: Sequence[Row]
    styles: Mapping[str, style.PathStyle]
    strips: Sequence[labels.Strip]
    explained: Sequence[str]
    column_in: float
    span_s: float

    @property
    def in_a_row(self) -> int:
        return _in_a_row(len(self.columns))

    @property
    def strip_in(self) -> float:
        return max(strip.height_in for strip in self.strips)

    @property
    def panels_in(self) -> float:
        return sum(row.height * _UNIT_IN + _TITLE_IN for row in self.rows) + self.strip_in

    def head(self, column: Column) -> tuple[list[str], list[str]]:
        """Title and subtitle of a column in lines."""
        return (
            style.wrapped(column.title, self.column_in, _NAME[0], bold=True),
            style.wrapped(column.subtitle, self.column_in, _OUTCOME[0]),
        )

    @property
    def head_in(self) -> float:
        heads = [self.head(column) for column in self.columns]
        return max(len(title) * _NAME[1] + len(subtitle) * _OUTCOME[1] for title, subtitle in heads) + 0.03


def compare(columns: Sequence[Column], *, title: str) -> Figure:
    """Draws runs or sessions side by side: bitrate, throughput per path, playout buffer, discards, path switches.

    Args:
        columns: The runs or sessions, at least one.
        title: The first line, in bold.

    Returns:
        A figure at most 1800 pixels wide at its own resolution, with up to three columns in a row.
    """
    if not columns:
        raise ValueError("a comparison needs at least one run")
    with style.applied():
        return _draw(columns, title)


def _path_names(columns: Sequence[Column]) -> list[str]:
    names = [name for c in columns for name in (*c.paths, *(path.path for path in c.recording.paths))]
    return list(dict.fromkeys(names))


def _in_a_row(columns: int) -> int:
    """How many columns stand in a row: up to three, and two of four."""
    return 2 if columns == 4 else min(columns, _IN_A_ROW)


def _sheet(columns: Sequence[Column], width_in: float) -> _Sheet:
    in_a_row = _in_a_row(len(columns))
    column_in = (width_in - _LEFT_IN - _RIGHT_IN - _BETWEEN_IN * (in_a_row - 1)) / in_a_row
    span = max((float(c.recording.times_s[-1]) for c in columns if len(c.recording.times_s)), default=1.0)
    strips = labels.strips([(column.marks, column.ending) for column in columns], span, column_in)
    explained = labels.explanation([column.marks for column in columns], strips, width_in - _LEFT_IN - _RIGHT_IN)
    most = series.MOST_INTERVALS if len(columns) == 1 else series.NARROW_INTERVALS
    sessions = [series.of_session(column.recording, most=most, span_s=span) for column in columns]
    styles = style.path_styles(_path_names(columns))
    rows = panels.rows(sessions, _HEIGHTS, styles, shades="; the darker, the more pixels")
    return _Sheet(columns, sessions, rows, styles, strips, explained, column_in, span)


def _draw(columns: Sequence[Column], title: str) -> Figure:
    width_in = _ALONE_IN if len(columns) == 1 else _WIDTH_IN
    sheet = _sheet(columns, width_in)
    handles = panels.legend([column.recording for column in columns])
    lines = style.wrapped(title, width_in - _LEFT_IN - _RIGHT_IN - _legend_in(handles), _HEADING[0], bold=True)
    above_in = len(lines) * _HEADING[1] + _AROUND_HEADING_IN
    block_in = sheet.head_in + sheet.panels_in + _AXIS_IN
    blocks = -(-len(columns) // sheet.in_a_row)
    height_in = above_in + blocks * block_in + labels.ROW_IN * len(sheet.explained) + 0.1
    figure = Figure(figsize=(width_in, height_in))
    left = _LEFT_IN / width_in
    for position, line in enumerate(lines):
        y = 1.0 - ((position + 0.5) * _HEADING[1] + 0.06) / height_in
        figure.text(left, y, line, fontsize=_HEADING[0], fontweight="bold", va="center")
    _legend(figure, handles)
    drawn = [
        _column(figure, sheet, number, above_in + number // sheet.in_a_row * block_in) for number in range(len(columns))
    ]
    for row, together in zip(sheet.rows, zip(*drawn, strict=True), strict=True):
        _share_axis(row, together)
    labels.add_explanation(figure, sheet.explained, _LEFT_IN)
    return figure


def _share_axis(row: Row, together: Sequence[Axes]) -> None:
    """Gives the panels of a row the same vertical axis."""
    # A session without a graph has no range of its own.
    limits = [axes.get_ylim() for axes, graph in zip(together, row.graphs, strict=True) if graph is not None]
    # What an author emitted may be negative.
    bottom = min(low for low, _ in limits) if row.kind == "note" else 0.0
    for axes in together:
        axes.set_ylim(bottom, max(high for _, high in limits))


def _column(figure: Figure, sheet: _Sheet, number: int, above_in: float) -> list[Axes]:
    """Draws a column, whose head begins so far below the upper edge; returns its panels."""
    width_in, height_in = figure.get_size_inches()
    column = sheet.columns[number]
    left_in = _LEFT_IN + number % sheet.in_a_row * (sheet.column_in + _BETWEEN_IN)
    _head(figure, sheet.head(column), left_in, above_in)
    top_in = above_in + sheet.head_in
    found: list[Axes] = []
    for position, row in enumerate(sheet.rows):
        top_in += _TITLE_IN + (sheet.strip_in if position == 0 else 0.0)
        panel_in = row.height * _UNIT_IN
        box = (left_in / width_in, 1.0 - (top_in + panel_in) / height_in)
        axes = figure.add_axes((*box, sheet.column_in / width_in, panel_in / height_in))
        axes.set_xlim(0.0, sheet.span_s)
        row.draw(axes, number=number, styles=sheet.styles)
        panels.stalls(axes, sheet.sessions[number])
        panels.scenario_marks(axes, column.marks)
        panels.ending(axes, column.ending)
        _dress(axes, row, first=number % sheet.in_a_row == 0, last=position == len(sheet.rows) - 1)
        if number % sheet.in_a_row == 0:
            # The labels of events stand between the first panel and its title.
            style.title(axes, row.title, _TITLE_PAD_POINTS + (0.0 if position else sheet.strip_in * 72.0))
        found.append(axes)
        top_in += panel_in
    labels.add_strip(figure, found[0], sheet.strips[number])
    return found


def _dress(axes: Axes, row: Row, *, first: bool, last: bool) -> None:
    """Ticks, and their labels where a column or a row begins."""
    style.few_ticks(axes, max(int(row.height * 1.8), 2))
    axes.tick_params(axis="y", labelleft=first)
    style.time_axis(axes, shown=last)
    if last:
        axes.set_xlabel("Time (s)")


def _head(figure: Figure, head: tuple[list[str], list[str]], left_in: float, above_in: float) -> None:
    """Title and subtitle of a column."""
    width_in, height_in = figure.get_size_inches()
    (title, subtitle), top_in = head, above_in
    for lines, (size, line_in), bold in ((title, _NAME, True), (subtitle, _OUTCOME, False)):
        for line in lines:
            figure.text(
                left_in / width_in,
                1.0 - (top_in + line_in / 2.0) / height_in,
                line,
                fontsize=size,
                fontweight="bold" if bold else "normal",
                color=style.INK if bold else style.MUTED,
                va="center",
                gid="column-head",
            )
            top_in += line_in


def _legend_in(handles: Sequence[Line2D | Patch]) -> float:
    """About the width of the legend: its texts, its symbols, and room between them."""
    return sum(style.text_width_in(str(handle.get_label()), 8.5) + 0.45 for handle in handles)


def _legend(figure: Figure, handles: Sequence[Line2D | Patch]) -> None:
    if not handles:
        return
    width_in, height_in = figure.get_size_inches()
    figure.legend(
        handles=handles,
        loc="center right",
        bbox_to_anchor=(1.0 - _RIGHT_IN / width_in, 1.0 - (_HEADING[1] / 2.0 + 0.06) / height_in),
        ncols=len(handles),
        handlelength=1.4,
        handletextpad=0.5,
        columnspacing=1.3,
        borderpad=0.0,
        borderaxespad=0.0,
    )
