"""The picture of one session: what the paths carried and what the viewer saw, over one time axis."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from anabranch.figures import panels, style
from anabranch.recording import Mark, SessionRecording

# The width of a page's text, so that letters keep their size in print.
_WIDTH_IN = 7.2
_LEFT_IN = 0.5
_RIGHT_IN = 0.85
# A unit of panel height, and what the title and the time axis take above and below the panels.
_UNIT_IN = 0.48
_ABOVE_IN = 0.78
_LINE_IN = 0.17
# Characters of the subtitle that fit into a line.
_SUBTITLE_CHARACTERS = 108
_BELOW_IN = 0.55


@dataclass(frozen=True)
class _Panel:
    title: str
    height: float
    draw: Callable[[Axes], list[panels.Label] | None]


def draw_session(recording: SessionRecording, *, title: str, subtitle: str, marks: Sequence[Mark] = ()) -> Figure:
    """Draws one session.

    Args:
        recording: What to draw.
        title: The first line, in bold.
        subtitle: The second line.
        marks: Scheduled changes of the network.

    Returns:
        A figure, as wide as a page's text.
    """
    with style.applied():
        return _draw(recording, title, subtitle, marks)


def _panels(recording: SessionRecording) -> list[_Panel]:
    colours = style.path_colours([s.path for s in recording.paths])
    averaged = panels.bin_width_s(recording)
    found = []
    if recording.shown:
        found.append(
            _Panel("Bitrate on screen (Mb/s) and resolution", 2.6, lambda axes: panels.bitrate(axes, recording))
        )
    if recording.plays:
        found.append(_Panel("Playout buffer (s)", 2.0, lambda axes: panels.playout_buffer(axes, recording)))
    found.append(
        _Panel(
            f"Throughput per path (Mb/s, mean over {averaged:.3g} s)",
            2.6,
            lambda axes: panels.throughput(axes, recording, colours),
        )
    )
    if any(len(path.disabled_s) for path in recording.paths):
        rows = 0.35 * len(recording.paths)
        found.append(_Panel("Paths in use", rows, lambda axes: panels.paths_in_use(axes, recording, colours)))
    found.append(_Panel("Congestion window (packets)", 2.4, lambda axes: panels.window(axes, recording, colours)))
    # A DASH player decodes nothing here, so it has no pictures to discard.
    if recording.plays and not recording.shown:
        found.append(
            _Panel(
                "Discarded pictures per second",
                1.2,
                lambda axes: panels.counts(axes, recording, recording.discards, "discards"),
            )
        )
    if len(recording.paths) > 1:
        found.append(
            _Panel(
                "Path switches per second",
                1.2,
                lambda axes: panels.counts(axes, recording, recording.path_switches, "path-switches"),
            )
        )
    return found


def _draw(recording: SessionRecording, title: str, subtitle: str, marks: Sequence[Mark]) -> Figure:
    content = _panels(recording)
    gap = 0.62  # Between panels, in units: room for the next panel's title.
    units = sum(p.height for p in content) + gap * (len(content) - 1)
    lines = textwrap.wrap(subtitle, _SUBTITLE_CHARACTERS)
    above_in = _ABOVE_IN + _LINE_IN * max(len(lines) - 1, 0)
    height_in = units * _UNIT_IN + above_in + _BELOW_IN
    figure = Figure(figsize=(_WIDTH_IN, height_in))
    grid = figure.add_gridspec(
        len(content),
        1,
        height_ratios=[p.height for p in content],
        hspace=gap / (sum(p.height for p in content) / len(content)),
        left=_LEFT_IN / _WIDTH_IN,
        right=1.0 - _RIGHT_IN / _WIDTH_IN,
        top=1.0 - above_in / height_in,
        bottom=_BELOW_IN / height_in,
    )
    first: Axes | None = None
    for row, panel in enumerate(content):
        axes = figure.add_subplot(grid[row], sharex=first)
        labels = panel.draw(axes)
        axes.set_title(panel.title)
        panels.stalls(axes, recording)
        panels.scenario_marks(axes, marks, labelled=first is None)
        style.place_end_labels(axes, labels or [])
        last = row == len(content) - 1
        axes.tick_params(axis="x", labelbottom=last, length=3.0 if last else 0.0)
        style.few_ticks(axes, max(int(panel.height * 1.6), 2))
        first = first or axes
    assert first is not None
    first.set_xlim(0.0, float(recording.times_s[-1]) if len(recording.times_s) else 1.0)
    figure.axes[-1].set_xlabel("Time (s)")
    left = _LEFT_IN / _WIDTH_IN
    figure.text(left, 1.0 - 0.20 / height_in, title, fontsize=11.0, fontweight="bold", va="center")
    text = "\n".join(lines)
    figure.text(left, 1.0 - 0.34 / height_in, text, fontsize=8.5, color=style.MUTED, va="top", linespacing=1.35)
    handles = _legend(recording)
    if handles:
        figure.legend(
            handles=handles,
            loc="center right",
            bbox_to_anchor=(1.0 - (_RIGHT_IN - 0.08) / _WIDTH_IN, 1.0 - 0.20 / height_in),
            ncols=len(handles),
            handletextpad=0.5,
            columnspacing=1.4,
        )
    return figure


def _legend(recording: SessionRecording) -> list[Artist]:
    """What the end labels do not explain, as far as it occurs."""
    handles: list[Artist] = []
    if len(recording.stalls_s):
        handles.append(Patch(facecolor=style.STALL, alpha=0.35, label="stall"))
    if len(recording.underflows_s):
        handles.append(
            Line2D([], [], linestyle="none", marker="v", markersize=4.5, color=style.INK, label="buffer underflow")
        )
    return handles
