"""The picture of one session: what the paths carried and what the viewer saw, over one time axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from anabranch.figures import panels, style
from anabranch.recording import Mark, SessionRecording

_WIDTH_IN = 10.0
# A unit of panel height, and what the title and the time axis take above and below the panels.
_UNIT_IN = 0.56
_ABOVE_IN = 0.95
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
        A figure, about 1500 pixels wide at its own resolution.
    """
    with style.applied():
        return _draw(recording, title, subtitle, marks)


def _panels(recording: SessionRecording) -> list[_Panel]:
    colours = style.path_colours([s.path for s in recording.paths])
    averaged = panels.bin_width_s(recording)
    found = [
        _Panel(
            f"Throughput per path (Mb/s, mean over {averaged:.3g} s)",
            3.0,
            lambda axes: panels.throughput(axes, recording, colours),
        ),
        _Panel("Congestion window (packets)", 2.4, lambda axes: panels.window(axes, recording, colours)),
    ]
    if recording.plays:
        found.append(_Panel("Playout buffer (s)", 2.0, lambda axes: panels.playout_buffer(axes, recording)))
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
    height_in = units * _UNIT_IN + _ABOVE_IN + _BELOW_IN
    figure = Figure(figsize=(_WIDTH_IN, height_in))
    grid = figure.add_gridspec(
        len(content),
        1,
        height_ratios=[p.height for p in content],
        hspace=gap / (sum(p.height for p in content) / len(content)),
        left=0.055,
        right=0.915,
        top=1.0 - _ABOVE_IN / height_in,
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
    figure.text(0.055, 1.0 - 0.24 / height_in, title, fontsize=12.5, fontweight="bold", va="center")
    figure.text(0.055, 1.0 - 0.50 / height_in, subtitle, fontsize=9.5, color=style.MUTED, va="center")
    handles = _legend(recording)
    if handles:
        figure.legend(
            handles=handles,
            loc="center right",
            bbox_to_anchor=(0.922, 1.0 - 0.24 / height_in),
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
