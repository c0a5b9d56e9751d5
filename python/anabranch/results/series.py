"""A session over time as it is drawn: samples averaged over intervals, prepared once for figures and for pages."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anabranch.results.recording import Array, NoteSeries, PathRecording, SessionRecording

FIGURE_POINTS = 320
"""Points that a line of a figure about 1000 pixels wide can show; more would only be noise on noise."""

SHORTEST_S = 1.0
"""Throughput over less than this is a property of bursts, not of a path."""


@dataclass(frozen=True)
class PathSeries:
    """A session's use of one path. Each array has a value per interval, and no number where there is none.

    Attributes:
        name: The path's name.
        throughput_bps: Payload acknowledged, in bits per second.
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
        middles_s: The middle of each interval, in seconds since the run began.
        paths: What each path carried.
        total_window_packets: The sum of the windows of those paths that may carry new data.
        buffer_s: Playing time ahead of the viewer.
        discards_per_s: Discarded pictures per second.
        switches_per_s: Path switches per second.
        emitted: What algorithms emitted.
    """

    recording: SessionRecording
    width_s: float
    middles_s: Array
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
    recording: SessionRecording, *, points: int = FIGURE_POINTS, shortest_s: float = SHORTEST_S
) -> SessionSeries:
    """A session in intervals.

    Args:
        recording: The samples.
        points: About how many intervals there should be at most.
        shortest_s: The shortest interval.
    """
    width = _width_s(recording, points, shortest_s)
    middles, _ = _binned(recording, recording.times_s, width)
    per_second = 1.0 / (recording.interval_s or 1.0)

    def means(values: Array) -> Array:
        return _mean(_binned(recording, values, width)[1])

    return SessionSeries(
        recording=recording,
        width_s=width,
        middles_s=middles,
        paths=tuple(_path(recording, path, width) for path in recording.paths),
        total_window_packets=means(recording.total_window_packets),
        buffer_s=means(recording.buffer_s),
        discards_per_s=means(recording.discards) * per_second,
        switches_per_s=means(recording.path_switches) * per_second,
        emitted=tuple(
            Emitted(one.name, one.path, _mean_of_instants(recording, one, width, middles)) for one in recording.notes
        ),
    )


def _path(recording: SessionRecording, path: PathRecording, width: float) -> PathSeries:
    def rows(values: Array) -> Array:
        return _binned(recording, values, width)[1]

    windows = rows(path.cwnd_packets)
    mean = _mean(windows)
    seen, absent = ~np.isnan(mean), np.isnan(windows)
    return PathSeries(
        name=path.path,
        throughput_bps=_mean(rows(path.throughput_bps)),
        capacity_bps=_mean(rows(np.where(np.isfinite(path.capacity_bps), path.capacity_bps, np.nan))),
        window_packets=(
            mean,
            np.where(seen, np.where(absent, np.inf, windows).min(axis=1), np.nan),
            np.where(seen, np.where(absent, -np.inf, windows).max(axis=1), np.nan),
        ),
        srtt_s=_mean(rows(path.srtt_s)),
        disabled_s=path.disabled_s,
    )


def _width_s(recording: SessionRecording, points: int, shortest_s: float) -> float:
    """The length of an interval in seconds: a whole number of samples."""
    if recording.interval_s == 0.0:
        return shortest_s
    span = float(recording.times_s[-1] - recording.times_s[0])
    samples = max(round(max(span / points, shortest_s) / recording.interval_s), 1)
    return samples * recording.interval_s


def _binned(recording: SessionRecording, values: Array, width: float) -> tuple[Array, Array]:
    """The intervals' middles, and the values as one row per interval; the last one is filled up with not-a-numbers."""
    if recording.interval_s == 0.0:
        return recording.times_s, values[:, np.newaxis]
    per_bin = max(round(width / recording.interval_s), 1)
    bins = -(-len(values) // per_bin)
    padded = np.full(bins * per_bin, np.nan)
    padded[: len(values)] = values
    start = recording.times_s[0] - recording.interval_s
    middles = start + (np.arange(bins) + 0.5) * per_bin * recording.interval_s
    return middles, padded.reshape(bins, per_bin)


def _mean(rows: Array) -> Array:
    """The mean of each row's numbers; not a number where it has none."""
    present = ~np.isnan(rows)
    count = present.sum(axis=1)
    total = np.where(present, rows, 0.0).sum(axis=1)
    means: Array = np.divide(total, count, out=np.full(len(rows), np.nan), where=count > 0)
    return means


def _mean_of_instants(recording: SessionRecording, emitted: NoteSeries, width: float, middles: Array) -> Array:
    """The mean of the finite values of each interval; not a number where an interval has none."""
    if not len(middles) or recording.interval_s == 0.0:
        return np.full(len(middles), np.nan)
    bins = np.floor((emitted.times_s - (middles[0] - width / 2.0)) / width).astype(np.int64)
    # What is emitted after the last sample belongs to the last interval, what precedes the first one to the first.
    bins, finite = np.clip(bins, 0, len(middles) - 1), np.isfinite(emitted.values)
    count = np.bincount(bins[finite], minlength=len(middles))
    total = np.bincount(bins[finite], weights=emitted.values[finite], minlength=len(middles))
    means: Array = np.divide(total, count, out=np.full(len(middles), np.nan), where=count > 0)
    return means
