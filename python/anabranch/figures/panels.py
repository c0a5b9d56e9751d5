"""The panels that figures are made of: each draws one kind of series of one session into given axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.transforms import blended_transform_factory

from anabranch.figures import style
from anabranch.recording import Array, Mark, SessionRecording

# Points that a line of a figure about 1000 pixels wide can show; more would only be noise on noise.
_POINTS = 320
# Throughput over less than this is a property of bursts, not of a path.
_SHORTEST_BIN_S = 1.0
# How many bins make the end of a line: about a twentieth of the figure.
_END_BINS = 15

Label = tuple[float, str, str]
"""What stands beside the end of a line: its height in data units, the text, the colour."""


def bin_width_s(recording: SessionRecording) -> float:
    """The interval over which lines are averaged, in seconds: a whole number of samples."""
    if recording.interval_s == 0.0:
        return _SHORTEST_BIN_S
    span = float(recording.times_s[-1] - recording.times_s[0])
    samples = max(round(max(span / _POINTS, _SHORTEST_BIN_S) / recording.interval_s), 1)
    return samples * recording.interval_s


def _binned(recording: SessionRecording, values: Array) -> tuple[Array, Array]:
    """The bins' middles, and the values as one row per bin; the last bin is filled up with not-a-numbers."""
    if recording.interval_s == 0.0:
        return recording.times_s, values[:, np.newaxis]
    per_bin = max(round(bin_width_s(recording) / recording.interval_s), 1)
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


def _per_second(recording: SessionRecording, counts: Array) -> tuple[Array, Array]:
    middles, rows = _binned(recording, counts)
    return middles, _mean(rows) / (recording.interval_s or 1.0)


def _end_height(line: Array, end: int) -> float | None:
    """Where the eye sees a line end: the mean of its last bins before `end`, since a single one scatters."""
    tail = line[max(end - _END_BINS, 0) : end]
    tail = tail[~np.isnan(tail)]
    return float(tail.mean()) if len(tail) else None


def throughput(axes: Axes, recording: SessionRecording, colours: Mapping[str, str]) -> list[Label]:
    """Throughput per path in Mb/s; returns what the lines' ends are to be labelled with."""
    lines = {}
    for path in recording.paths:
        middles, rows = _binned(recording, path.throughput_bps / 1e6)
        lines[path.path] = _mean(rows)
        axes.plot(middles, lines[path.path], color=colours[path.path], gid=f"throughput-{path.path}")
    axes.set_ylim(bottom=0.0)
    # After the last byte all lines are at zero, where no label would tell them apart.
    active = [np.flatnonzero(np.nan_to_num(line)) for line in lines.values()]
    end = 1 + max((int(bins[-1]) for bins in active if len(bins)), default=0)
    return [(_end_height(line, end) or 0.0, name, colours[name]) for name, line in lines.items()]


def bitrate(axes: Axes, recording: SessionRecording) -> list[Label]:
    """The bitrate on screen in Mb/s as steps, shaded by resolution; returns labels that name the resolutions."""
    edges: list[float] = []
    heights: list[float] = []
    by_resolution: dict[str, list[float]] = {}
    for shown in recording.shown:
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


def paths_in_use(axes: Axes, recording: SessionRecording, colours: Mapping[str, str]) -> list[Label]:
    """A bar per path, with gaps where the path policy forbids new data on it; returns labels that name the paths."""
    labels = []
    for row, path in enumerate(reversed(recording.paths)):
        known = np.flatnonzero(~np.isnan(path.cwnd_packets))
        if not len(known):
            continue
        begin, end = float(recording.times_s[known[0]]), float(recording.times_s[known[-1]])
        edges = [begin, *np.clip(path.disabled_s, begin, end).ravel().tolist(), end]
        # The last sample may lie after the session's end, where the last span ends.
        bars = [(a, b - a) for a, b in zip(edges[::2], edges[1::2], strict=True) if b - a > recording.interval_s]
        axes.broken_barh(bars, (row + 0.2, 0.6), facecolor=colours[path.path], gid=f"in-use-{path.path}")
        labels.append((row + 0.5, path.path, colours[path.path]))
    axes.set_ylim(0.0, len(recording.paths))
    axes.yaxis.set_visible(False)
    return labels


def window(axes: Axes, recording: SessionRecording, colours: Mapping[str, str]) -> list[Label]:
    """Congestion window per path in packets, with its range within each bin; returns labels for the lines' ends."""
    labels = []
    for path in recording.paths:
        middles, rows = _binned(recording, path.cwnd_packets)
        line = _mean(rows)
        seen = ~np.isnan(line)
        if not seen.any():
            continue
        axes.fill_between(
            middles[seen],
            np.nanmin(rows[seen], axis=1),
            np.nanmax(rows[seen], axis=1),
            color=colours[path.path],
            alpha=0.18,
            linewidth=0,
        )
        axes.plot(middles, line, color=colours[path.path], gid=f"window-{path.path}")
        height = _end_height(line, len(line))
        labels.append((height or 0.0, path.path, colours[path.path]))
    if len(labels) > 1:
        middles, rows = _binned(recording, recording.total_window_packets)
        line = _mean(rows)
        # Below the paths' lines: where one path carries all, its own line must be seen.
        axes.plot(middles, line, color=style.INK, linewidth=1.0, zorder=1.9, gid="window-total")
        labels.append((_end_height(line, len(line)) or 0.0, "total", style.INK))
    axes.set_ylim(bottom=0.0)
    return labels


def playout_buffer(axes: Axes, recording: SessionRecording) -> None:
    """Playing time ahead of the viewer, in seconds, with the buffer underflows as ticks above it."""
    middles, rows = _binned(recording, recording.buffer_s)
    level = _mean(rows)
    axes.fill_between(middles, 0.0, level, color=style.BUFFER, alpha=0.16, linewidth=0)
    axes.plot(middles, level, color=style.BUFFER, gid="buffer")
    axes.set_ylim(bottom=0.0)
    if len(recording.underflows_s):
        axes.plot(
            recording.underflows_s,
            np.full(len(recording.underflows_s), 0.98),
            linestyle="none",
            marker="v",
            markersize=4.5,
            color=style.INK,
            clip_on=False,
            transform=blended_transform_factory(axes.transData, axes.transAxes),
            gid="underflows",
        )


def counts(axes: Axes, recording: SessionRecording, values: Array, name: str) -> None:
    """Something countable, per second, as filled steps."""
    middles, rate = _per_second(recording, values)
    axes.fill_between(middles, 0.0, rate, step="mid", color=style.COUNTS, alpha=0.6, linewidth=0, gid=name)
    axes.set_ylim(0.0, max(float(np.nanmax(rate, initial=0.0)) * 1.08, 1.0))


def stalls(axes: Axes, recording: SessionRecording) -> None:
    """The stalls as shaded spans behind everything else."""
    if not len(recording.stalls_s):
        return
    corners = [[(a, 0.0), (a, 1.0), (b, 1.0), (b, 0.0)] for a, b in recording.stalls_s.tolist()]
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


def scenario_marks(axes: Axes, marks: Sequence[Mark], labelled: bool) -> None:
    """Scheduled changes of the network as vertical lines, named above the axes where that is asked for."""
    if not marks:
        return
    transform = blended_transform_factory(axes.transData, axes.transAxes)
    lines = [[(at, 0.0), (at, 1.0)] for at in (m.at_s for m in marks)]
    axes.add_collection(
        LineCollection(lines, colors=style.INK, linewidths=0.9, linestyles=(0, (4, 2)), transform=transform),
        autolim=False,
    )
    if labelled:
        for mark in marks:
            axes.annotate(
                mark.text,
                (mark.at_s, 1.0),
                xycoords=transform,
                xytext=(4, -2),
                textcoords="offset points",
                fontsize=8,
                va="top",
                bbox={"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 1.0},
            )
