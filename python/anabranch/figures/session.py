"""The picture of one session: what the paths carried and what the viewer saw, over one time axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from anabranch.figures import labels, panels, style
from anabranch.results import series
from anabranch.results.recording import Mark, SessionRecording
from anabranch.results.series import SessionSeries

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


@dataclass(frozen=True)
class _Panel:
    title: str
    height: float
    draw: Callable[[Axes], list[panels.Label] | None]


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
        return _draw(series.of_session(recording), title, subtitle, (marks, ending), styles)


def _panels(session: SessionSeries, styles: Mapping[str, style.PathStyle]) -> list[_Panel]:
    found, recording = [], session.recording
    if recording.shown:
        found.append(_Panel("Bitrate on screen (Mb/s) and resolution", 2.6, lambda axes: panels.bitrate(axes, session)))
    if recording.plays:
        found.append(_Panel("Playout buffer (s)", 2.0, lambda axes: panels.playout_buffer(axes, session)))
    found += _throughput_panels(session, styles)
    if any(len(path.disabled_s) for path in session.paths):
        rows = 0.35 * len(session.paths)
        found.append(_Panel("Paths in use", rows, lambda axes: panels.paths_in_use(axes, session, styles)))
    found.append(_Panel("Congestion window (packets)", 2.4, lambda axes: panels.window(axes, session, styles)))
    for title, has, per_second, name in (
        ("Discarded pictures per second", session.has_discards, session.discards_per_s, "discards"),
        ("Path switches per second", session.has_switches, session.switches_per_s, "path-switches"),
    ):
        if has:
            found.append(_Panel(title, 1.2, partial(panels.counts, session=session, per_second=per_second, name=name)))
    names = panels.note_names([session])
    return found + [
        _Panel(panels.note_title(name), 1.5, partial(panels.notes, session=session, name=name, styles=styles))
        for name in names
    ]


def _throughput_panels(session: SessionSeries, styles: Mapping[str, style.PathStyle]) -> list[_Panel]:
    tops = panels.path_tops([session], styles)
    titles = panels.path_titles([session], tops)

    def drawn(path: str) -> Callable[[Axes], None]:
        return lambda axes: panels.throughput(axes, session, path, styles[path], tops[path])

    return [_Panel(titles[path], 1.3, drawn(path)) for path in tops]


def _draw(
    session: SessionSeries,
    title: str,
    subtitle: str,
    happened: tuple[Sequence[Mark], labels.Ending | None],
    styles: Mapping[str, style.PathStyle],
) -> Figure:
    content, recording = _panels(session, styles), session.recording
    gap = 0.62  # Between panels, in units: room for the next panel's title.
    units = sum(p.height for p in content) + gap * (len(content) - 1)
    width_in = _WIDTH_IN - _LEFT_IN - _RIGHT_IN
    span = float(recording.times_s[-1]) if len(recording.times_s) else 1.0
    [strip] = labels.strips([happened], span, width_in)
    explained = labels.explanation([happened[0]], [strip], width_in)
    lines = style.wrapped(subtitle, _WIDTH_IN - _LEFT_IN - 0.1, 8.5)
    above_in = _ABOVE_IN + _LINE_IN * max(len(lines) - 1, 0) + strip.height_in
    below_in = _BELOW_IN + labels.ROW_IN * len(explained)
    height_in = units * _UNIT_IN + above_in + below_in
    figure = Figure(figsize=(_WIDTH_IN, height_in))
    grid = figure.add_gridspec(
        len(content),
        1,
        height_ratios=[p.height for p in content],
        hspace=gap / (sum(p.height for p in content) / len(content)),
        left=_LEFT_IN / _WIDTH_IN,
        right=1.0 - _RIGHT_IN / _WIDTH_IN,
        top=1.0 - above_in / height_in,
        bottom=below_in / height_in,
    )
    first: Axes | None = None
    for row, panel in enumerate(content):
        axes = figure.add_subplot(grid[row], sharex=first)
        axes.set_xlim(0.0, span)
        _fill(axes, panel, session, happened)
        # The labels of events stand between the first panel and its title.
        axes.set_title(panel.title, pad=_TITLE_PAD_POINTS + (strip.height_in * 72.0 if first is None else 0.0))
        last = row == len(content) - 1
        axes.tick_params(axis="x", labelbottom=last, length=3.0 if last else 0.0)
        first = first or axes
    assert first is not None
    figure.axes[-1].set_xlabel("Time (s)")
    labels.add_strip(figure, first, strip)
    labels.add_explanation(figure, explained, _LEFT_IN)
    _head(figure, title, lines, _legend(recording))
    return figure


def _fill(
    axes: Axes, panel: _Panel, session: SessionSeries, happened: tuple[Sequence[Mark], labels.Ending | None]
) -> None:
    ends = panel.draw(axes)
    panels.stalls(axes, session)
    panels.scenario_marks(axes, happened[0])
    panels.ending(axes, happened[1])
    style.place_end_labels(axes, ends or [])
    style.few_ticks(axes, max(int(panel.height * 1.6), 2))


def _head(figure: Figure, title: str, lines: Sequence[str], handles: list[Artist]) -> None:
    """Title, subtitle and legend."""
    height_in = figure.get_figheight()
    left = _LEFT_IN / _WIDTH_IN
    figure.text(left, 1.0 - 0.20 / height_in, title, fontsize=11.0, fontweight="bold", va="center")
    text = "\n".join(lines)
    figure.text(left, 1.0 - 0.34 / height_in, text, fontsize=8.5, color=style.MUTED, va="top", linespacing=1.35)
    if handles:
        figure.legend(
            handles=handles,
            loc="center right",
            bbox_to_anchor=(1.0 - (_RIGHT_IN - 0.08) / _WIDTH_IN, 1.0 - 0.20 / height_in),
            ncols=len(handles),
            handletextpad=0.5,
            columnspacing=1.4,
        )


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
