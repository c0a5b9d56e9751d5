"""The panels that figures are made of: each draws one kind of series of one session into given axes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.transforms import blended_transform_factory

from anabranch.figures import labels, style
from anabranch.results.recording import Array, Mark
from anabranch.results.series import SessionSeries

# Capacity is drawn up to so many times what was carried, without the burst of the start.
_MOST_HEADROOM = 2.0
_WITHOUT_BURSTS = 0.98
# The lines of more events than this are pale, so that they do not hide what they cross.
_FEW_EVENTS = 20
# Paths share one scale, but those that would fill less than the inverse of this of it have their own.
_FLATTEST = 2.0
# What part of a line is its end.
_END_PART = 0.05

Label = tuple[float, str, str]
"""What stands at the end of a line: its height in data units, the text, the colour."""


def _end_height(line: Array) -> float | None:
    """Where the eye sees a line end: the mean of its last part, since a single value scatters."""
    tail = line[-math.ceil(len(line) * _END_PART) :]
    tail = tail[~np.isnan(tail)]
    return float(tail.mean()) if len(tail) else None


def path_titles(sessions: Sequence[SessionSeries], tops: Mapping[str, float]) -> dict[str, str]:
    """What the throughput panel of each path is called, with its capacity where that lies above the axis."""
    averaged = max(session.averaged_s for session in sessions)
    titles: dict[str, str] = {}
    for path, top in tops.items():
        highest = max((_peak(p.capacity_bps) for each in sessions for p in each.paths if p.name == path), default=0.0)
        above = f" up to {highest:.3g}" if highest > top else ""
        if not titles:
            note = f", mean over {averaged:.3g} s; shaded: link capacity{above}"
        else:
            note = f"; capacity{above}" if above else ""
        titles[path] = f"Throughput of {path} (Mb/s{note})"
    return titles


def path_tops(sessions: Sequence[SessionSeries], names: Iterable[str]) -> dict[str, float]:
    """Where the axis of each path's throughput ends, in Mb/s: the same for all paths, unless one would be too flat.

    Capacity far above what was carried is cut off: the throughput is what the panel is about.

    Args:
        sessions: The sessions.
        names: The order of the paths; those that no session has are left out.
    """
    tops: dict[str, float] = {}
    for path in (path for session in sessions for path in session.paths):
        carried = _peak(path.throughput_bps)
        usual = _peak(path.throughput_bps, _WITHOUT_BURSTS)
        capacity = _peak(path.capacity_bps)
        top = max(carried, min(capacity, usual * _MOST_HEADROOM if carried else capacity))
        tops[path.name] = max(tops.get(path.name, 0.0), top * 1.06)
    highest = max(tops.values(), default=1.0) or 1.0
    ordered = {path: tops[path] for path in names if path in tops}
    return {path: highest if top * _FLATTEST >= highest else top or highest for path, top in ordered.items()}


def _peak(bps: Array, quantile: float = 1.0) -> float:
    """The highest value in Mb/s, or a quantile; zero where nothing is known or there is no limit."""
    known = bps[~np.isnan(bps)]
    return float(np.quantile(known, quantile)) / 1e6 if len(known) else 0.0


def throughput(axes: Axes, session: SessionSeries, name: str, path_style: style.PathStyle, top: float) -> None:
    """Throughput of a path in Mb/s over the capacity of its slowest link; a session without the path says so."""
    axes.set_ylim(0.0, top)
    path = next((path for path in session.paths if path.name == name), None)
    if path is None:
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
        return
    middles, capacity = session.middles_s, path.capacity_bps / 1e6
    colour = path_style.colour
    axes.fill_between(middles, 0.0, capacity, step="mid", color=colour, alpha=0.16, linewidth=0, zorder=0.8)
    axes.plot(
        middles,
        capacity,
        drawstyle="steps-mid",
        color=colour,
        alpha=0.5,
        linewidth=0.7,
        zorder=0.9,
        gid=f"capacity-{name}",
    )
    axes.plot(middles, path.throughput_bps / 1e6, color=colour, gid=f"throughput-{name}")


def bitrate(axes: Axes, session: SessionSeries) -> list[Label]:
    """The bitrate on screen in Mb/s as steps, shaded by resolution; returns labels that name the resolutions."""
    edges: list[float] = []
    heights: list[float] = []
    by_resolution: dict[str, list[float]] = {}
    for shown in session.recording.shown:
        height = shown.bitrate_bps / 1e6
        axes.fill_between(
            [shown.begin_s, shown.end_s], 0.0, height, color=style.resolution_shade(shown.resolution), linewidth=0
        )
        edges += [shown.begin_s, shown.end_s]
        heights += [height, height]
        by_resolution.setdefault(shown.resolution, []).append(height)
    axes.plot(edges, heights, color=style.INK, linewidth=0.9, gid="bitrate")
    axes.set_ylim(bottom=0.0)
    return [
        (_middle(found), name, style.darker(style.resolution_shade(name)))
        for name, found in by_resolution.items()
        if name
    ]


def _middle(values: Sequence[float]) -> float:
    return (min(values) + max(values)) / 2.0


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


def window(axes: Axes, session: SessionSeries, styles: Mapping[str, style.PathStyle]) -> list[Label]:
    """Congestion window per path in packets, with its range in each interval; returns labels for the lines' ends."""
    named = []
    times = session.state_times_s
    for path in session.paths:
        line, lowest, highest = path.window_packets
        if np.isnan(line).all():
            continue
        # Where no subflow uses the path the range has a gap, as the line has.
        axes.fill_between(times, lowest, highest, color=styles[path.name].colour, alpha=0.18, linewidth=0)
        axes.plot(times, line, **styles[path.name].line, gid=f"window-{path.name}")
        named.append((_end_height(line) or 0.0, path.name, styles[path.name].colour))
    if len(named) > 1:
        line = session.total_window_packets
        # Below the paths' lines: where one path carries all, its own line must be seen.
        axes.plot(times, line, color=style.INK, linewidth=1.0, zorder=1.9, gid="window-total")
        named.append((_end_height(line) or 0.0, "total", style.INK))
    axes.set_ylim(bottom=0.0)
    return named


def playout_buffer(axes: Axes, session: SessionSeries) -> None:
    """Playing time ahead of the viewer, in seconds, with the buffer underflows as ticks above it."""
    middles, level, underflows = session.middles_s, session.buffer_s, session.recording.underflows_s
    axes.fill_between(middles, 0.0, level, color=style.BUFFER, alpha=0.16, linewidth=0)
    axes.plot(middles, level, color=style.BUFFER, gid="buffer")
    axes.set_ylim(bottom=0.0)
    if len(underflows):
        axes.plot(
            underflows,
            np.full(len(underflows), 0.98),
            linestyle="none",
            marker="v",
            markersize=4.5,
            color=style.INK,
            clip_on=False,
            transform=blended_transform_factory(axes.transData, axes.transAxes),
            gid="underflows",
        )


def note_names(sessions: Iterable[SessionSeries]) -> list[str]:
    """The names under which algorithms emitted finite numbers, in order."""
    series = (series for session in sessions for series in session.recording.notes)
    return sorted({one.name for one in series if np.isfinite(one.values).any()})


def note_title(name: str) -> str:
    """What the panel of such a name is called."""
    return f"{name} (emitted, mean of each interval)"


def notes(axes: Axes, session: SessionSeries, name: str, styles: Mapping[str, style.PathStyle]) -> list[Label]:
    """What an algorithm emitted under a name, a line per path; returns labels for the lines' ends.

    A line is the mean of what was emitted in each interval of time. It goes on where in some nothing was emitted.
    """
    named = []
    for emitted in session.emitted:
        known = ~np.isnan(emitted.values)
        if emitted.name != name or not known.any():
            continue
        middles, line = session.middles_s[known], emitted.values[known]
        drawn = {"color": style.INK} if emitted.path is None else styles[emitted.path].line
        axes.plot(middles, line, **drawn, gid=f"note-{name}-{emitted.path or 'connection'}")
        if emitted.path is not None:
            named.append((_end_height(line) or 0.0, emitted.path, styles[emitted.path].colour))
    return named


def counts(axes: Axes, session: SessionSeries, per_second: Array, name: str) -> None:
    """Something countable, per second, as filled steps."""
    axes.fill_between(
        session.middles_s, 0.0, per_second, step="mid", color=style.COUNTS, alpha=0.6, linewidth=0, gid=name
    )
    axes.set_ylim(0.0, max(float(np.nanmax(per_second, initial=0.0)) * 1.08, 1.0))


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
