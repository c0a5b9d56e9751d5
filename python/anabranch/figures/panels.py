"""The panels that figures are made of: the graphs of sessions, and what stands behind and above them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.transforms import blended_transform_factory

from anabranch.figures import labels, style
from anabranch.results import timeline
from anabranch.results.recording import Array, Mark, SessionRecording
from anabranch.results.series import SessionSeries
from anabranch.results.timeline import Graph, Kind, Line, Role

# The lines of more events than this are pale, so that they do not hide what they cross.
_FEW_EVENTS = 20
# Paths share one scale, but those that would fill less than the inverse of this of it have their own.
_FLATTEST = 2.0
# What part of a line is its end.
_END_PART = 0.05
_UNDERFLOW: Mapping[str, Any] = {"linestyle": "none", "marker": "v", "markersize": 4.5, "color": style.INK}

Label = tuple[float, str, str]
"""What stands at the end of a line: its height in data units, the text, the colour."""


def _end_height(line: Array) -> float | None:
    """Where the eye sees a line end: the mean of its last part, since a single value scatters."""
    tail = line[-math.ceil(len(line) * _END_PART) :]
    tail = tail[~np.isnan(tail)]
    return float(tail.mean()) if len(tail) else None


@dataclass(frozen=True)
class Row:
    """Graphs of one kind and title: a panel for each session.

    Attributes:
        kind: What they show.
        title: What stands above them.
        height: In units of panel height.
        graphs: That of each session, absent where a session has none.
        top: Where the axis ends, if not with what is drawn.
    """

    kind: Kind
    title: str
    height: float
    graphs: Sequence[Graph | None]
    top: float | None

    def draw(self, axes: Axes, *, number: int, styles: Mapping[str, style.PathStyle]) -> list[Label]:
        """Draws the graph of a session; returns labels for the right edge."""
        graph = self.graphs[number]
        labelled: list[Label] = []
        if graph is not None:
            labelled = _bitrate(axes, graph) if graph.kind == "bitrate" else _lines(axes, graph, styles)
        elif self.kind == "throughput":
            _say_missing(axes)
        if self.top is not None:
            axes.set_ylim(0.0, self.top)
        return labelled


def rows(
    sessions: Sequence[SessionSeries], heights: Mapping[Kind, float], paths: Iterable[str], *, shades: str
) -> list[Row]:
    """The graphs of sessions, row by row.

    Args:
        sessions: The sessions.
        heights: The kinds that are drawn, with the heights of their panels.
        paths: The order of the paths.
        shades: What the title of bitrates says of their shades.
    """
    graphs = [{(g.kind, g.title): g for g in timeline.of_session(each) if g.kind in heights} for each in sessions]
    kinds, order = get_args(Kind), list(paths)

    def place(graph: Graph) -> tuple[int, int, str]:
        return kinds.index(graph.kind), order.index(graph.path) if graph.path else 0, graph.title

    distinct = sorted({key: graph for own in graphs for key, graph in own.items()}.values(), key=place)
    found = [(each, [own.get((each.kind, each.title)) for own in graphs]) for each in distinct]
    # A session without discards is drawn next to one with some.
    found = [(each, row) for each, row in found if any(graph is not None and graph.is_shown for graph in row)]
    tops = _tops({each.path: row for each, row in found if each.path is not None})
    titles = _throughput_titles(found, tops, timeline.averaged(max(session.averaged_s for session in sessions)))
    return [
        Row(
            kind=each.kind,
            title=titles[each.path] if each.path is not None else _title(each, shades),
            height=heights[each.kind],
            graphs=row,
            top=None if each.path is None else tops[each.path],
        )
        for each, row in found
    ]


def _title(graph: Graph, shades: str) -> str:
    if graph.unit == "per s":
        return f"{graph.title} per second"
    unit = ", ".join(filter(None, (graph.unit, graph.detail)))
    return f"{graph.title} ({unit}){shades if graph.kind == 'bitrate' else ''}"


def _throughput_titles(
    found: Sequence[tuple[Graph, Sequence[Graph | None]]], tops: Mapping[str, float], averaged: str
) -> dict[str, str]:
    """What the throughput of each path is called, with the path's capacity where that lies above the axis."""
    titles: dict[str, str] = {}
    for each, row in found:
        if each.path is None:
            continue
        lines = [line for graph in row if graph is not None for line in graph.lines if line.role == "capacity"]
        highest = max(map(_peak, lines), default=0.0)
        above = f" up to {highest:.3g}" if highest > tops[each.path] else ""
        shaded = f", {averaged}; shaded: link" if not titles else ";"
        note = f"{shaded} capacity{above}" if above or not titles else ""
        titles[each.path] = f"{each.title} ({each.unit}{note})"
    return titles


def _tops(rows: Mapping[str, Sequence[Graph | None]]) -> dict[str, float]:
    """Where the axis of each path's throughput ends: the same for all paths, unless one would be too flat."""
    tops = {path: max(_top(graph) for graph in row if graph is not None) for path, row in rows.items()}
    highest = max(tops.values(), default=1.0) or 1.0
    return {path: highest if top * _FLATTEST >= highest else top or highest for path, top in tops.items()}


def _top(graph: Graph) -> float:
    highest = max(map(_peak, graph.lines))
    return (highest if graph.limit is None else min(highest, graph.limit)) * 1.06


def _peak(line: Line) -> float:
    """The highest value; zero where nothing is known."""
    return float(np.nanmax(line.values, initial=0.0))


def _say_missing(axes: Axes) -> None:
    axes.text(
        0.5,
        0.5,
        "not a path of this session",
        transform=axes.transAxes,
        color=style.MUTED,
        ha="center",
        va="center",
        bbox={"facecolor": "white", "linewidth": 0, "pad": 2.0},
    )


def _bitrate(axes: Axes, graph: Graph) -> list[Label]:
    """The bitrate as steps, shaded by resolution; returns labels that name the resolutions."""
    (line,) = graph.lines
    by_resolution: dict[str, list[float]] = {}
    spans, heights = graph.times_s.reshape(-1, 2), line.values[::2].tolist()
    for span, height, resolution in zip(spans, heights, graph.texts, strict=True):
        axes.fill_between(span, 0.0, height, color=style.resolution_shade(resolution), linewidth=0)
        by_resolution.setdefault(resolution, []).append(height)
    axes.plot(graph.times_s, line.values, color=style.INK, linewidth=0.9, gid="bitrate")
    axes.set_ylim(bottom=0.0)
    return [
        (_middle(found), name, style.darker(style.resolution_shade(name)))
        for name, found in by_resolution.items()
        if name
    ]


def _middle(values: Sequence[float]) -> float:
    return (min(values) + max(values)) / 2.0


def _lines(axes: Axes, graph: Graph, styles: Mapping[str, style.PathStyle]) -> list[Label]:
    """The lines of a graph as their roles demand; returns labels for the ends of those of several paths."""
    labelled = []
    for line in graph.lines:
        own = None if line.path is None else styles[line.path]
        _LOOKS[line.role](axes, graph, line, own)
        if graph.path is None and (own or line.role == "total"):
            # What was emitted ends with its last number.
            drawn = line.values[~np.isnan(line.values)] if line.role == "note" else line.values
            labelled.append((_end_height(drawn) or 0.0, line.name, own.colour if own else style.INK))
    if graph.kind == "window":
        axes.set_ylim(bottom=0.0)
    _underflows(axes, graph.underflows_s)
    return labelled


def _of_path(axes: Axes, graph: Graph, line: Line, own: style.PathStyle | None) -> None:
    """A value of a path, with its range in each interval."""
    assert own is not None
    if line.extremes is not None:
        # Where no subflow uses the path the range has a gap, as the line has.
        axes.fill_between(graph.times_s, *line.extremes, color=own.colour, alpha=0.18, linewidth=0)
    # A title names the path of a graph that has but one.
    look = own.line if graph.path is None else {"color": own.colour}
    axes.plot(graph.times_s, line.values, **look, gid=f"{graph.kind}-{line.path}")


def _total(axes: Axes, graph: Graph, line: Line, _: style.PathStyle | None) -> None:
    # Below the paths' lines: where one path carries all, its own line must be seen.
    axes.plot(graph.times_s, line.values, color=style.INK, linewidth=1.0, zorder=1.9, gid=f"{graph.kind}-total")


def _capacity(axes: Axes, graph: Graph, line: Line, own: style.PathStyle | None) -> None:
    assert own is not None
    look: dict[str, Any] = {"color": own.colour}
    axes.fill_between(graph.times_s, 0.0, line.values, step="mid", alpha=0.16, linewidth=0, zorder=0.8, **look)
    look |= {"drawstyle": "steps-mid", "alpha": 0.5, "linewidth": 0.7, "zorder": 0.9}
    axes.plot(graph.times_s, line.values, gid=f"capacity-{line.path}", **look)


def playout_buffer(axes: Axes, times_s: Array, level_s: Array) -> None:
    """Playing time ahead of the viewer, in seconds."""
    axes.fill_between(times_s, 0.0, level_s, color=style.BUFFER, alpha=0.16, linewidth=0)
    axes.plot(times_s, level_s, color=style.BUFFER, gid="buffer")
    axes.set_ylim(bottom=0.0)


def _counts(axes: Axes, graph: Graph, line: Line, _: style.PathStyle | None) -> None:
    """Something countable, as filled steps."""
    look: dict[str, Any] = {"color": style.COUNTS, "alpha": 0.6, "linewidth": 0}
    axes.fill_between(graph.times_s, 0.0, line.values, step="mid", gid=graph.kind, **look)
    axes.set_ylim(0.0, max(_peak(line) * 1.08, 1.0))


def _note(axes: Axes, graph: Graph, line: Line, own: style.PathStyle | None) -> None:
    """The mean of what was emitted in each interval of time. It goes on where in some nothing was emitted."""
    known = ~np.isnan(line.values)
    look = {"color": style.INK} if own is None else own.line
    axes.plot(graph.times_s[known], line.values[known], **look, gid=f"note-{graph.title}-{line.path or 'connection'}")


_LOOKS: Mapping[Role, Callable[[Axes, Graph, Line, style.PathStyle | None], None]] = {
    "capacity": _capacity,
    "path": _of_path,
    "total": _total,
    "buffer": lambda axes, graph, line, _: playout_buffer(axes, graph.times_s, line.values),
    "discards": _counts,
    "switches": _counts,
    "note": _note,
}


def _underflows(axes: Axes, instants_s: Array) -> None:
    """Buffer underflows as ticks at the upper edge."""
    if not len(instants_s):
        return
    axes.plot(
        instants_s,
        np.full(len(instants_s), 0.98),
        **_UNDERFLOW,
        clip_on=False,
        transform=blended_transform_factory(axes.transData, axes.transAxes),
        gid="underflows",
    )


def paths_in_use(axes: Axes, session: SessionSeries, styles: Mapping[str, style.PathStyle]) -> list[Label]:
    """A bar per path, with gaps where the path policy forbids new data on it; returns labels that name the paths."""
    named, recording = [], session.recording
    for row, path in enumerate(reversed(recording.paths)):
        known = np.flatnonzero(~np.isnan(path.cwnd_packets))
        if not len(known):
            continue
        begin, end = float(recording.times_s[known[0]]), float(recording.times_s[known[-1]])
        edges = [begin, *np.clip(path.disabled_s, begin, end).ravel().tolist(), end]
        # The last sample may lie after the session's end, where the last span ends.
        bars = [(a, b - a) for a, b in zip(edges[::2], edges[1::2], strict=True) if b - a > recording.interval_s]
        axes.broken_barh(bars, (row + 0.2, 0.6), facecolor=styles[path.path].colour, gid=f"in-use-{path.path}")
        named.append((row + 0.5, path.path, styles[path.path].colour))
    axes.set_ylim(0.0, len(recording.paths))
    axes.yaxis.set_visible(False)
    return named


def legend(recordings: Sequence[SessionRecording]) -> list[Line2D | Patch]:
    """What neither titles nor labels explain, as far as it occurs."""
    handles: list[Line2D | Patch] = []
    if any(len(recording.stalls_s) for recording in recordings):
        handles.append(stall_key())
    if any(len(recording.underflows_s) for recording in recordings):
        handles.append(Line2D([], [], label="buffer underflow", **_UNDERFLOW))
    return handles


def stall_key() -> Patch:
    """The entry of stalls in a legend."""
    return Patch(facecolor=style.STALL, alpha=0.35, label="stall")


def stalls(axes: Axes, session: SessionSeries) -> None:
    """The stalls as shaded spans behind everything else."""
    spans_s = session.recording.stalls_s
    if not len(spans_s):
        return
    corners = [[(a, 0.0), (a, 1.0), (b, 1.0), (b, 0.0)] for a, b in spans_s.tolist()]
    spans = PolyCollection(
        corners,
        facecolor=style.STALL,
        # Without an edge, a stall shorter than a pixel would vanish.
        edgecolor=style.STALL,
        linewidth=0.5,
        alpha=0.35,
        transform=blended_transform_factory(axes.transData, axes.transAxes),
        zorder=0.5,
    )
    spans.set_gid("stalls")
    axes.add_collection(spans, autolim=False)


def scenario_marks(axes: Axes, marks: Sequence[Mark]) -> None:
    """Scheduled changes of the network as vertical lines."""
    if not marks:
        return
    transform = blended_transform_factory(axes.transData, axes.transAxes)
    lines = [[(at, 0.0), (at, 1.0)] for at in (m.at_s for m in marks)]
    axes.add_collection(
        LineCollection(
            lines,
            colors=style.INK,
            linewidths=0.9,
            linestyles=labels.DASHED,
            transform=transform,
            alpha=1.0 if len(marks) <= _FEW_EVENTS else 0.25,
        ),
        autolim=False,
    )


def ending(axes: Axes, end: labels.Ending | None) -> None:
    """The end of a session that was stuck or cut off: a line, and hatching where the rest of it would be."""
    if end is None:
        return
    axes.axvline(end.at_s, color=style.INK, linewidth=1.6, clip_on=False, gid="ending")
    right = axes.get_xlim()[1]
    if right > end.at_s:
        axes.axvspan(end.at_s, right, facecolor="none", edgecolor=style.STALL, hatch="////", linewidth=0, zorder=0.4)
