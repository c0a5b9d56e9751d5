"""A session over time as it is drawn: samples averaged over intervals, prepared once for figures and for pages."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anabranch.results.recording import Array, NoteSeries, PathRecording, SessionRecording

MOST_INTERVALS = 400
"""As many as a line about 1000 pixels wide can show, in a figure as on a page; more would only be noise on noise."""

NARROW_INTERVALS = 250
"""As many as the narrow columns of a comparison can show."""

# Throughput over less than this is a property of bursts: after a repaired loss an acknowledgment covers half a second
# at once. A short run would have no shape left, so there it is this part of the run.
_THROUGHPUT_S = 1.0
_THROUGHPUT_PART = 0.05
_ROUNDING = 1e-9
_STEPS = (1, 2, 5)
_NEVER: Array = np.empty((0, 2))


@dataclass(frozen=True)
class PathSeries:
    """A session's use of one path. Each array has a value per interval, and no number where there is none.

    The window and the round trip have a value for each of `SessionSeries.state_times_s` instead.

    Attributes:
        name: The path's name.
        throughput_bps: Payload acknowledged, in bits per second: the mean over `SessionSeries.averaged_s`.
        capacity_bps: The rate of the slowest downlink; no number where it is not limited.
        window_packets: The congestion window: its mean, its lowest and its highest sample.
        srtt_s: The smoothed round trip.
        disabled_s: Beginning and end of each span in which the path policy forbade new data, shape (n, 2).
    """

    name: str
    throughput_bps: Array
    capacity_bps: Array
    window_packets: tuple[Array, Array, Array]
    srtt_s: Array
    disabled_s: Array


@dataclass(frozen=True)
class Emitted:
    """The means of the numbers that an algorithm emitted under a name about one path, or about none."""

    name: str
    path: str | None
    values: Array


@dataclass(frozen=True)
class SessionSeries:
    """A session in intervals. Each array has a value per interval, and no number where there is none.

    Attributes:
        recording: The samples, with what has an instant of its own: stalls, underflows, and what was on screen.
        width_s: The length of an interval.
        averaged_s: Over how long throughput is averaged: some intervals around each, in a run of less than 200 s.
        middles_s: The middle of each interval, in seconds since the run began.
        state_times_s: The instants of windows and round trips: the mean of those of each interval's samples, the first
            sample of each subflow, and before it the opening of the subflow, so that lines begin where it does and not
            half an interval later.
        paths: What each path carried.
        total_window_packets: The sum of the windows of those paths that may carry new data, at `state_times_s`.
        buffer_s: Playing time ahead of the viewer.
        discards_per_s: Discarded pictures per second.
        switches_per_s: Path switches per second.
        emitted: What algorithms emitted.
    """

    recording: SessionRecording
    width_s: float
    averaged_s: float
    middles_s: Array
    state_times_s: Array
    paths: tuple[PathSeries, ...]
    total_window_packets: Array
    buffer_s: Array
    discards_per_s: Array
    switches_per_s: Array
    emitted: tuple[Emitted, ...]

    @property
    def has_discards(self) -> bool:
        """Whether pictures can be discarded: a DASH player decodes nothing here, and a download plays nothing."""
        return self.recording.plays and not self.recording.shown

    @property
    def has_switches(self) -> bool:
        """Whether there is a path to switch to."""
        return len(self.paths) > 1


def of_session(
    recording: SessionRecording, *, most: int = MOST_INTERVALS, span_s: float | None = None
) -> SessionSeries:
    """A session in intervals.

    An interval is 1, 2, 5, 10, 20, 50 ... samples long: the shortest of these with which there are at most so many
    intervals. With a sample every 0.1 s and up to 400 intervals, a run of up to 40 s is drawn sample by sample, and one
    of ten minutes in intervals of 2 s. Throughput is the mean over 1 s around each, or over a twentieth of the run if
    that is shorter.

    Args:
        recording: The samples.
        most: How many intervals there should be at most.
        span_s: In which time, for several sessions with the same intervals; that of this session where absent.
    """
    samples = round(span_s / recording.interval_s) if span_s and recording.interval_s else 0
    grid = _Grid.of(recording, _samples_per_interval(max(samples, len(recording.times_s)), most))
    per_second = 1.0 / (recording.interval_s or 1.0)
    paths = tuple(_path(grid, path, opened) for path, opened in zip(recording.paths, grid.openings, strict=True))
    return SessionSeries(
        recording=recording,
        width_s=grid.width_s,
        averaged_s=grid.width_s * grid.averaged,
        middles_s=grid.middles_s,
        state_times_s=grid.state_times_s,
        paths=paths,
        total_window_packets=grid.state(
            recording.total_window_packets, _mean, _total_at_openings(grid, recording, paths)
        ),
        buffer_s=grid.means(recording.buffer_s),
        discards_per_s=grid.means(recording.discards) * per_second,
        switches_per_s=grid.means(recording.path_switches) * per_second,
        emitted=tuple(Emitted(one.name, one.path, _mean_of_instants(grid, one)) for one in recording.notes),
    )


def _path(grid: _Grid, path: PathRecording, opened: Array) -> PathSeries:
    return PathSeries(
        name=path.path,
        throughput_bps=grid.throughput(path.throughput_bps),
        capacity_bps=grid.means(np.where(np.isfinite(path.capacity_bps), path.capacity_bps, np.nan)),
        window_packets=(
            grid.state(path.cwnd_packets, _mean, opened),
            grid.state(path.cwnd_packets, _lowest, opened),
            grid.state(path.cwnd_packets, _highest, opened),
        ),
        srtt_s=grid.state(path.srtt_s, _mean),
        disabled_s=path.disabled_s,
    )


@dataclass(frozen=True)
class _Grid:
    """The intervals of a session, and the samples with which lines of a state begin before the middle of one.

    Attributes:
        times_s: The instants of the samples.
        per_interval: How many samples an interval has.
        middles_s: The middle of each interval.
        begins: The numbers of the samples with which a subflow begins.
        states: The places of the intervals in `state_times_s`.
        state_times_s: The instants for which a state has a value, in order.
        openings: Of each path, when subflows were opened before a first sample, and with which window, shape (n, 2).
    """

    times_s: Array
    per_interval: int
    middles_s: Array
    begins: NDArray[np.int64]
    states: NDArray[np.int64]
    state_times_s: Array
    openings: tuple[Array, ...]

    @classmethod
    def of(cls, recording: SessionRecording, per_interval: int) -> _Grid:
        """The grid of a session with so many samples in an interval."""
        times, sample = recording.times_s, recording.interval_s
        # A lone sample is an interval by itself, whose length is not known.
        start = times[0] - sample if sample else 0.0
        numbers = np.arange(-(-len(times) // per_interval))
        middles: Array = np.asarray(start + (numbers + 0.5) * per_interval * sample if sample else times)
        # A rate is that of the time before its sample, a state that of the instant.
        instants = np.minimum(middles + sample / 2.0, times[-1:])
        begins = np.unique(np.concatenate([np.empty(0, np.int64), *(_begins(p.cwnd_packets) for p in recording.paths)]))
        # Rounding must not make two instants of one.
        begins = begins[times[begins] < instants[begins // per_interval] - sample / 4.0]
        openings = tuple(_openings(times, path) for path in recording.paths)
        state_times = np.union1d(instants, np.concatenate([times[begins], *(opened[:, 0] for opened in openings)]))
        return cls(times, per_interval, middles, begins, np.searchsorted(state_times, instants), state_times, openings)

    @property
    def width_s(self) -> float:
        """The length of an interval; that of a lone sample counts as a second."""
        return self.per_interval * float(self.times_s[1] - self.times_s[0]) if len(self.times_s) > 1 else 1.0

    @property
    def averaged(self) -> int:
        """Over how many intervals throughput is averaged: an odd number, the same on both sides of each."""
        wanted = min(_THROUGHPUT_S, _THROUGHPUT_PART * self.width_s * len(self.middles_s))
        return 2 * math.ceil((wanted / self.width_s - 1.0) / 2.0 - _ROUNDING) + 1 if wanted > self.width_s else 1

    def throughput(self, values: Array) -> Array:
        """The mean of the numbers in and around each interval; not a number where that one has none."""
        means, margin = self.means(values), self.averaged // 2
        if not margin:
            return means
        around = np.lib.stride_tricks.sliding_window_view(np.pad(means, margin, constant_values=np.nan), self.averaged)
        return np.where(np.isnan(means), np.nan, _mean(around))

    def rows(self, values: Array) -> Array:
        """The values as one row per interval; the last one is filled up with not-a-numbers."""
        padded = np.full(len(self.middles_s) * self.per_interval, np.nan)
        padded[: len(values)] = values
        return padded.reshape(len(self.middles_s), self.per_interval)

    def means(self, values: Array) -> Array:
        """The mean of each interval's numbers; not a number where it has none."""
        return _mean(self.rows(values))

    def state(self, values: Array, of_rows: Callable[[Array], Array], opened: Array = _NEVER) -> Array:
        """A state at `state_times_s`: of each interval what a function makes of it, and before that its first sample.

        Where another subflow begins, the line goes straight on.

        Args:
            values: The samples.
            of_rows: The function, of one row per interval.
            opened: Instants before the first sample at which the state is known, and what it was, shape (n, 2).
        """
        line = np.full(len(self.state_times_s), np.nan)
        line[self.states] = of_rows(self.rows(values))
        own = np.intersect1d(self.begins, _begins(values))
        line[np.searchsorted(self.state_times_s, self.times_s[own])] = values[own]
        line[np.searchsorted(self.state_times_s, opened[:, 0])] = opened[:, 1]
        known = ~np.isnan(line)
        between = self._others(values, opened[:, 0])
        if len(between) and known.any():
            line[between] = np.interp(self.state_times_s[between], self.state_times_s[known], line[known])
        return line

    def _others(self, values: Array, opened_s: Array) -> NDArray[np.int64]:
        """The places at which only other subflows begin while this state lasts."""
        places = np.setdiff1d(np.arange(len(self.state_times_s)), self.states)
        places = places[~np.isin(self.state_times_s[places], opened_s)]
        at = self.state_times_s[places]
        after, known = np.searchsorted(self.times_s, at), ~np.isnan(values)
        lasts = np.concatenate([[False], known])[after]
        for opened in opened_s.tolist():
            lasts |= (at > opened) & (after == np.searchsorted(self.times_s, opened))
        between: NDArray[np.int64] = places[known[after] & lasts]
        return between


def _openings(times_s: Array, path: PathRecording) -> Array:
    """When subflows were opened before the first sample of the path's window, and with which, shape (n, 2)."""
    rows = []
    for begin in _begins(path.cwnd_packets).tolist():
        last = times_s[begin - 1] if begin else -np.inf
        before = path.opened[(path.opened[:, 0] > last) & (path.opened[:, 0] < times_s[begin])]
        # Of several subflows, the window is that of the one that was there first.
        rows += before[:1].tolist()
    return np.array(rows).reshape(-1, 2)


def _total_at_openings(grid: _Grid, recording: SessionRecording, paths: tuple[PathSeries, ...]) -> Array:
    """The sum of the windows of those paths that may carry new data, when subflows were opened, shape (n, 2)."""
    instants = np.unique(np.concatenate([_NEVER, *grid.openings])[:, 0])
    places = np.searchsorted(grid.state_times_s, instants)
    total = np.zeros(len(instants))
    for recorded, path in zip(recording.paths, paths, strict=True):
        mean, _, _ = path.window_packets
        total += np.nan_to_num(recorded.usable(instants, mean[places]))
    return np.stack([instants, total], axis=1)


def _samples_per_interval(samples: int, most: int) -> int:
    """The first of 1, 2, 5, 10, 20, 50 ... with which there are at most so many intervals."""
    decade = 1
    while True:
        for step in _STEPS:
            if samples <= most * step * decade:
                return step * decade
        decade *= 10


def _begins(values: Array) -> NDArray[np.int64]:
    """The numbers of the samples that follow on none."""
    known = ~np.isnan(values)
    return np.flatnonzero(known & ~np.concatenate([[False], known[:-1]]))


def _mean(rows: Array) -> Array:
    """The mean of each row's numbers; not a number where it has none."""
    present = ~np.isnan(rows)
    count = present.sum(axis=1)
    total = np.where(present, rows, 0.0).sum(axis=1)
    means: Array = np.divide(total, count, out=np.full(len(rows), np.nan), where=count > 0)
    return means


def _lowest(rows: Array) -> Array:
    """The lowest of each row's numbers; not a number where it has none."""
    return np.where(np.isnan(rows).all(axis=1), np.nan, np.where(np.isnan(rows), np.inf, rows).min(axis=1))


def _highest(rows: Array) -> Array:
    """The highest of each row's numbers; not a number where it has none."""
    return -_lowest(-rows)


def _mean_of_instants(grid: _Grid, emitted: NoteSeries) -> Array:
    """The mean of the finite values of each interval; not a number where an interval has none."""
    middles, width = grid.middles_s, grid.width_s
    if len(grid.times_s) < 2:
        return np.full(len(middles), np.nan)
    bins = np.floor((emitted.times_s - (middles[0] - width / 2.0)) / width).astype(np.int64)
    # What is emitted after the last sample belongs to the last interval, what precedes the first one to the first.
    bins, finite = np.clip(bins, 0, len(middles) - 1), np.isfinite(emitted.values)
    count = np.bincount(bins[finite], minlength=len(middles))
    total = np.bincount(bins[finite], weights=emitted.values[finite], minlength=len(middles))
    means: Array = np.divide(total, count, out=np.full(len(middles), np.nan), where=count > 0)
    return means
