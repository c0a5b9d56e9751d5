"""Samples averaged over intervals, because a figure shows fewer points than a run has samples."""

from __future__ import annotations

import numpy as np

from anabranch.recording import Array, SessionRecording

FIGURE_POINTS = 320
"""Points that a line of a figure about 1000 pixels wide can show; more would only be noise on noise."""

SHORTEST_S = 1.0
"""Throughput over less than this is a property of bursts, not of a path."""


def width_s(recording: SessionRecording, points: int = FIGURE_POINTS, shortest_s: float = SHORTEST_S) -> float:
    """The interval over which samples are averaged, in seconds: a whole number of samples.

    Args:
        recording: The samples.
        points: About how many intervals there should be at most.
        shortest_s: The shortest interval.
    """
    if recording.interval_s == 0.0:
        return shortest_s
    span = float(recording.times_s[-1] - recording.times_s[0])
    samples = max(round(max(span / points, shortest_s) / recording.interval_s), 1)
    return samples * recording.interval_s


def binned(recording: SessionRecording, values: Array, width: float | None = None) -> tuple[Array, Array]:
    """The intervals' middles, and the values as one row per interval; the last one is filled up with not-a-numbers.

    Args:
        recording: The samples.
        values: One value per sample.
        width: The length of an interval in seconds; that of figures where absent.
    """
    if recording.interval_s == 0.0:
        return recording.times_s, values[:, np.newaxis]
    width = width_s(recording) if width is None else width
    per_bin = max(round(width / recording.interval_s), 1)
    bins = -(-len(values) // per_bin)
    padded = np.full(bins * per_bin, np.nan)
    padded[: len(values)] = values
    start = recording.times_s[0] - recording.interval_s
    middles = start + (np.arange(bins) + 0.5) * per_bin * recording.interval_s
    return middles, padded.reshape(bins, per_bin)


def mean(rows: Array) -> Array:
    """The mean of each row's numbers; not a number where it has none."""
    present = ~np.isnan(rows)
    count = present.sum(axis=1)
    total = np.where(present, rows, 0.0).sum(axis=1)
    means: Array = np.divide(total, count, out=np.full(len(rows), np.nan), where=count > 0)
    return means


def mean_over_time(
    recording: SessionRecording, times_s: Array, values: Array, width: float | None = None
) -> tuple[Array, Array]:
    """The intervals' middles, and the mean of the finite values of each; not a number where an interval has none.

    Args:
        recording: The samples, whose intervals are used.
        times_s: When each value holds, in seconds since the run began.
        values: The values, at any instants.
        width: As for `binned`.
    """
    middles, rows = binned(recording, np.zeros(len(recording.times_s)), width)
    if not len(middles) or recording.interval_s == 0.0:
        return middles, np.full(len(middles), np.nan)
    length = rows.shape[1] * recording.interval_s
    bins = np.floor((times_s - (middles[0] - length / 2.0)) / length).astype(np.int64)
    # What is emitted after the last sample belongs to the last interval, what precedes the first one to the first.
    bins, finite = np.clip(bins, 0, len(middles) - 1), np.isfinite(values)
    count = np.bincount(bins[finite], minlength=len(middles))
    total = np.bincount(bins[finite], weights=values[finite], minlength=len(middles))
    means: Array = np.divide(total, count, out=np.full(len(middles), np.nan), where=count > 0)
    return middles, means
