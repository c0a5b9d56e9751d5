"""What figures and pages show of a session over time: graphs with their names, units and values, as plain data.

A figure and a page differ in how they draw a graph, which follows from its kind and from the roles of its lines.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from anabranch.results.recording import Array
from anabranch.results.series import PathSeries, SessionSeries

Kind = Literal["bitrate", "buffer", "throughput", "window", "round-trip", "discards", "switches", "note"]
"""What a graph shows; graphs stand in this order."""

Role = Literal["capacity", "path", "total", "bitrate", "buffer", "discards", "switches", "note"]
"""What a line is: a capacity, a value of a path, a sum over paths, or a value of the session."""

_MBPS = 1e-6
_MS = 1e3
# Capacity is shown up to so many times what was carried, without the burst of the start.
_MOST_HEADROOM = 2.0
_WITHOUT_BURSTS = 0.98


@dataclass(frozen=True)
class Line:
    """A line of a graph.

    Attributes:
        role: What it is.
        name: What it is called.
        values: A value for each of `Graph.times_s`, in the graph's unit; no number where there is none.
        path: The path that it is about, which decides on its colour; absent if it is about none.
        extremes: The lowest and the highest sample around each value, where they are known.
    """

    role: Role
    name: str
    values: Array
    path: str | None = None
    extremes: tuple[Array, Array] | None = None


@dataclass(frozen=True)
class Graph:
    """Lines with one unit over the time of a session.

    Attributes:
        kind: What it shows.
        title: The same in words.
        unit: The unit of its values.
        times_s: The instants of its values. Of the bitrate, the beginning and the end of each span.
        lines: Its lines.
        detail: How its values were averaged, if that must be said.
        path: The path that all of it is about, if there is one.
        limit: The height above which it is cut off, if there is one: what a path carried is seen below its capacity.
        texts: Of the bitrate, the resolution of each span.
        underflows_s: Of the buffer, when it ran empty.
    """

    kind: Kind
    title: str
    unit: str
    times_s: Array
    lines: tuple[Line, ...]
    detail: str = ""
    path: str | None = None
    limit: float | None = None
    texts: tuple[str, ...] = ()
    underflows_s: Array = field(default_factory=lambda: np.empty(0))

    @property
    def is_shown(self) -> bool:
        """Whether it has a panel: not without lines, and that of discards not without a discard."""
        return any(line.role != "discards" or np.nansum(line.values) > 0 for line in self.lines)


def of_session(session: SessionSeries) -> list[Graph]:
    """The graphs of a session, those of paths in the order of its paths."""
    recording, middles = session.recording, session.middles_s
    found = [_bitrate(session)] if recording.shown else []
    if recording.plays:
        line = Line("buffer", "buffer", session.buffer_s)
        found.append(Graph("buffer", "Playout buffer", "s", middles, (line,), underflows_s=recording.underflows_s))
    found += [_throughput(session, path) for path in session.paths]
    found += [_window(session), _round_trip(session)]
    if session.has_discards:
        line = Line("discards", "discards", session.discards_per_s)
        found.append(Graph("discards", "Discarded pictures", "per s", middles, (line,)))
    if session.has_switches:
        line = Line("switches", "switches", session.switches_per_s)
        found.append(Graph("switches", "Path switches", "per s", middles, (line,)))
    return found + _notes(session)


def averaged(over_s: float) -> str:
    """How throughput was averaged."""
    return f"mean over {over_s:.3g} s"


def known(values: Array) -> bool:
    """Whether there is a number among the values."""
    return not bool(np.isnan(values).all())


def _bitrate(session: SessionSeries) -> Graph:
    shown = session.recording.shown
    edges = np.array([[one.begin_s, one.end_s] for one in shown]).ravel()
    line = Line("bitrate", "bitrate", np.repeat([one.bitrate_bps * _MBPS for one in shown], 2))
    texts = tuple(one.resolution for one in shown)
    return Graph("bitrate", "Bitrate on screen", "Mb/s", edges, (line,), texts=texts)


def _throughput(session: SessionSeries, path: PathSeries) -> Graph:
    carried, capacity = path.throughput_bps * _MBPS, path.capacity_bps * _MBPS
    lines = [Line("capacity", "capacity", capacity, path.name)] if known(capacity) else []
    lines.append(Line("path", "throughput", carried, path.name))
    return Graph(
        "throughput",
        f"Throughput of {path.name}",
        "Mb/s",
        session.middles_s,
        tuple(lines),
        detail=averaged(session.averaged_s),
        path=path.name,
        limit=_limit(carried),
    )


def _limit(carried: Array) -> float | None:
    """The height above which capacity is of no interest; none where nothing was carried."""
    numbers = carried[~np.isnan(carried)]
    if not numbers.any():
        return None
    return max(float(numbers.max()), float(np.quantile(numbers, _WITHOUT_BURSTS)) * _MOST_HEADROOM)


def _window(session: SessionSeries) -> Graph:
    lines = []
    for path in session.paths:
        mean, lowest, highest = path.window_packets
        if known(mean):
            lines.append(Line("path", path.name, mean, path.name, (lowest, highest)))
    if len(lines) > 1:
        lines.insert(0, Line("total", "total", session.total_window_packets))
    return Graph("window", "Congestion window", "packets", session.state_times_s, tuple(lines))


def _round_trip(session: SessionSeries) -> Graph:
    lines = tuple(Line("path", path.name, path.srtt_s * _MS, path.name) for path in session.paths if known(path.srtt_s))
    return Graph("round-trip", "Smoothed round trip", "ms", session.state_times_s, lines)


def _notes(session: SessionSeries) -> list[Graph]:
    """A graph for each name under which algorithms emitted finite numbers."""
    emitted: dict[str, list[Line]] = {}
    for one in session.emitted:
        if known(one.values):
            emitted.setdefault(one.name, []).append(Line("note", one.path or one.name, one.values, one.path))
    return [
        Graph("note", name, "emitted", session.middles_s, tuple(lines), detail="mean of each interval")
        for name, lines in sorted(emitted.items())
    ]
