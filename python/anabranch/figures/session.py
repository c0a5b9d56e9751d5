"""The picture of one session: what the paths carried and what the viewer saw, over one time axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from anabranch.figures import labels, panels, stack, style
from anabranch.figures.stack import Panel
from anabranch.results import series
from anabranch.results.recording import Mark, SessionRecording
from anabranch.results.series import SessionSeries


def draw_session(
    recording: SessionRecording,
    *,
    title: str,
    subtitle: str,
    marks: Sequence[Mark] = (),
    ending: labels.Ending | None = None,
    paths: Sequence[str] = (),
) -> Figure:
    """Draws one session.

    Args:
        recording: What to draw.
        title: The first line, in bold.
        subtitle: The second line.
        marks: Scheduled changes of the network.
        ending: How it ended, if not of its own.
        paths: The paths of the scenario, which decide on colours; those of the session where absent.

    Returns:
        A figure, as wide as a page's text.
    """
    with style.applied():
        styles = style.path_styles(paths or [path.path for path in recording.paths])
        session = series.of_session(recording)
        return stack.draw(
            _panels(session, styles),
            title=title,
            subtitle=subtitle,
            happened=(marks, ending),
            span_s=float(recording.times_s[-1]) if len(recording.times_s) else 1.0,
            legend=_legend(recording),
            behind=lambda axes: panels.stalls(axes, session),
        )


def _panels(session: SessionSeries, styles: Mapping[str, style.PathStyle]) -> list[Panel]:
    found, recording = [], session.recording
    if recording.shown:
        found.append(Panel("Bitrate on screen (Mb/s) and resolution", 2.6, lambda axes: panels.bitrate(axes, session)))
    if recording.plays:
        found.append(Panel("Playout buffer (s)", 2.0, lambda axes: panels.playout_buffer(axes, session)))
    found += _throughput_panels(session, styles)
    if any(len(path.disabled_s) for path in session.paths):
        rows = 0.35 * len(session.paths)
        found.append(Panel("Paths in use", rows, lambda axes: panels.paths_in_use(axes, session, styles)))
    found.append(Panel("Congestion window (packets)", 2.4, lambda axes: panels.window(axes, session, styles)))
    for title, has, per_second, name in (
        ("Discarded pictures per second", session.has_discards, session.discards_per_s, "discards"),
        ("Path switches per second", session.has_switches, session.switches_per_s, "path-switches"),
    ):
        if has:
            found.append(Panel(title, 1.2, partial(panels.counts, session=session, per_second=per_second, name=name)))
    names = panels.note_names([session])
    return found + [
        Panel(panels.note_title(name), 1.5, partial(panels.notes, session=session, name=name, styles=styles))
        for name in names
    ]


def _throughput_panels(session: SessionSeries, styles: Mapping[str, style.PathStyle]) -> list[Panel]:
    tops = panels.path_tops([session], styles)
    titles = panels.path_titles([session], tops)

    def drawn(path: str) -> Callable[[Axes], None]:
        return lambda axes: panels.throughput(axes, session, path, styles[path], tops[path])

    return [Panel(titles[path], 1.3, drawn(path)) for path in tops]


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
