"""The figure of a comparison: one column per run, the same axes in every column."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from anabranch.figures import panels, style
from anabranch.recording import Mark, SessionRecording

_COLUMN_IN = 4.6
_PANELS_IN = 5.35
_ABOVE_IN = 1.25
# One more line of subtitles, and what fits into one.
_LINE_IN = 0.17
_SUBTITLE_CHARACTERS = 70


@dataclass(frozen=True)
class Column:
    """One run of a comparison.

    Attributes:
        title: What distinguishes it from the others, such as its scheduler.
        subtitle: Its outcome in a few words.
        recording: The session to draw.
        marks: Scheduled changes of the network.
    """

    title: str
    subtitle: str
    recording: SessionRecording
    marks: Sequence[Mark] = ()


@dataclass(frozen=True)
class _Row:
    title: str
    height: float
    draw: Callable[[Axes, SessionRecording], object]


def compare(columns: Sequence[Column], *, title: str) -> Figure:
    """Draws runs side by side: throughput per path, playout buffer, discards and path switches over time.

    Args:
        columns: The runs, at least one.
        title: The first line, in bold.

    Returns:
        A figure, about 700 pixels wide per run at its own resolution.
    """
    if not columns:
        raise ValueError("a comparison needs at least one run")
    with style.applied():
        return _draw(columns, title)


def _buffer_if_any(axes: Axes, recording: SessionRecording) -> None:
    if recording.plays:
        panels.playout_buffer(axes, recording)


def _rows(columns: Sequence[Column], colours: dict[str, str]) -> list[_Row]:
    averaged = max(panels.bin_width_s(c.recording) for c in columns)
    rows = []
    streamed = any(c.recording.shown for c in columns)
    if streamed:
        rows.append(_Row("Bitrate on screen (Mb/s); the darker, the more pixels", 2.2, panels.bitrate))
    rows.append(
        _Row(
            f"Throughput per path (Mb/s, mean over {averaged:.3g} s)",
            2.4,
            lambda a, r: panels.throughput(a, r, colours),
        )
    )
    if any(c.recording.plays for c in columns):
        rows.append(_Row("Playout buffer (s)", 2.0, _buffer_if_any))
    if any(c.recording.plays and not c.recording.shown for c in columns):
        rows.append(
            _Row("Discarded pictures per second", 1.3, lambda a, r: panels.counts(a, r, r.discards, "discards"))
        )
    if any(len(c.recording.paths) > 1 for c in columns):
        rows.append(
            _Row("Path switches per second", 1.3, lambda a, r: panels.counts(a, r, r.path_switches, "path-switches"))
        )
    return rows


def _draw(columns: Sequence[Column], title: str) -> Figure:
    names = list(dict.fromkeys(s.path for c in columns for s in c.recording.paths))
    colours = style.path_colours(names)
    rows = _rows(columns, colours)
    width_in = _COLUMN_IN * len(columns) + 0.6
    subtitles = [textwrap.wrap(c.subtitle, _SUBTITLE_CHARACTERS) for c in columns]
    above_in = _ABOVE_IN + _LINE_IN * (max(1, *map(len, subtitles)) - 1)
    height_in = _PANELS_IN + above_in
    figure = Figure(figsize=(width_in, height_in))
    left = 0.5 / width_in
    grid = figure.add_gridspec(
        len(rows),
        len(columns),
        height_ratios=[r.height for r in rows],
        hspace=0.42,
        wspace=0.06,
        left=left,
        right=1.0 - 0.2 / width_in,
        top=1.0 - above_in / height_in,
        bottom=0.52 / height_in,
    )
    end = max((float(c.recording.times_s[-1]) for c in columns if len(c.recording.times_s)), default=1.0)
    for number, row in enumerate(rows):
        top = 0.0
        line: list[Axes] = []
        for position, column in enumerate(columns):
            axes = figure.add_subplot(grid[number, position])
            row.draw(axes, column.recording)
            top = max(top, axes.get_ylim()[1])
            line.append(axes)
        for position, (axes, column) in enumerate(zip(line, columns, strict=True)):
            axes.set_xlim(0.0, end)
            axes.set_ylim(0.0, top)
            style.few_ticks(axes, max(int(row.height * 1.8), 2))
            axes.tick_params(
                labelleft=position == 0,
                labelbottom=number == len(rows) - 1,
                length=3.0 if number == len(rows) - 1 else 0.0,
            )
            if position == 0:
                axes.set_title(row.title)
            panels.stalls(axes, column.recording)
            panels.scenario_marks(axes, column.marks, labelled=number == 0)
            if number == len(rows) - 1:
                axes.set_xlabel("Time (s)")
            if number == 0:
                at = axes.get_position()
                y = 1.0 - 0.62 / height_in
                figure.text(at.x0, y, column.title, fontsize=10.5, fontweight="bold", va="center")
                text = "\n".join(subtitles[position])
                figure.text(at.x0, y - 0.12 / height_in, text, fontsize=8.5, color=style.MUTED, va="top")
    figure.text(left, 1.0 - 0.25 / height_in, title, fontsize=12.5, fontweight="bold", va="center")
    _legend(figure, columns, colours, (width_in, height_in))
    return figure


def _legend(figure: Figure, columns: Sequence[Column], colours: dict[str, str], size_in: tuple[float, float]) -> None:
    handles: list[Line2D | Patch] = [Line2D([], [], color=c, label=name) for name, c in colours.items()]
    if any(len(c.recording.stalls_s) for c in columns):
        handles.append(Patch(facecolor=style.STALL, alpha=0.35, label="stall"))
    if any(np.size(c.recording.underflows_s) for c in columns):
        handles.append(
            Line2D([], [], linestyle="none", marker="v", markersize=4.5, color=style.INK, label="buffer underflow")
        )
    figure.legend(
        handles=handles,
        loc="center right",
        bbox_to_anchor=(1.0 - 0.12 / size_in[0], 1.0 - 0.25 / size_in[1]),
        ncols=len(handles),
        handlelength=1.4,
        handletextpad=0.5,
        columnspacing=1.3,
    )
