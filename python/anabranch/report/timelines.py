"""Timelines: what a session's paths carried and what its viewer saw, as the page draws it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anabranch import binning, summary
from anabranch.metrics import Metrics
from anabranch.recording import Array, NoteSeries, PathRecording, Recording, SessionRecording

# A page shows more than a figure in print, because it zooms; and sixty timelines of this size stay below a megabyte.
_POINTS = 480
_SHORTEST_S = 0.5
_SIGNIFICANT = 4
_MBPS = 1e-6
_MS = 1e3

Numbers = list[float | None]


@dataclass(frozen=True)
class Timeline:
    """A session over time.

    Attributes:
        title: Which session it is.
        outcome: What its viewer saw, in a line.
        data: The series, as the page's program reads them.
    """

    title: str
    outcome: str
    data: Mapping[str, Any]


def of_session(
    recording: Recording, metrics: Metrics, number: int, *, title: str, paths: Sequence[str] = ()
) -> Timeline:
    """The timeline of a session.

    Args:
        recording: The run over time.
        metrics: What it found.
        number: Which session, from 0.
        title: What the page calls it.
        paths: The paths of the scenario, which decide on colours; those of the session where absent.
    """
    from anabranch.figures import ending, style

    session = recording.sessions[number]
    width = binning.width_s(session, _POINTS, _SHORTEST_S)
    styles = style.path_styles(list(paths) or [path.path for path in session.paths])
    end = ending.of_session(metrics, number)
    middles, _ = binning.binned(session, session.buffer_s, width)
    per_second = 1.0 / (session.interval_s or 1.0)
    data = {
        "first_s": _time(float(middles[0])) if len(middles) else 0.0,
        "width_s": _time(width),
        "points": len(middles),
        "paths": [_path(session, p, width, style.PATHS.index(styles[p.path])) for p in session.paths],
        "total": _series(session, session.total_window_packets, width) if len(session.paths) > 1 else None,
        "buffer": _series(session, session.buffer_s, width) if session.plays else None,
        "switches": _series(session, session.path_switches, width, per_second) if len(session.paths) > 1 else None,
        # A DASH player decodes nothing here, so it has no pictures to discard.
        "discards": _series(session, session.discards, width, per_second)
        if session.plays and not session.shown
        else None,
        "shown": [
            [_time(s.begin_s), _time(s.end_s), _rounded(s.bitrate_bps * _MBPS), s.resolution] for s in session.shown
        ],
        "notes": [
            {"name": series.name, "path": series.path, "values": _notes(session, series, width)}
            for series in session.notes
        ],
        "stalls": _spans(session.stalls_s),
        "underflows": [_time(at) for at in session.underflows_s.tolist()],
        "marks": [[_time(mark.at_s), mark.text] for mark in recording.marks],
        "ending": None if end is None else [_time(end.at_s), end.text],
    }
    return Timeline(title, summary.in_short(metrics["sessions"][number]), data)


def _path(session: SessionRecording, path: PathRecording, width: float, colour: int) -> dict[str, Any]:
    capacity = np.where(np.isfinite(path.capacity_bps), path.capacity_bps, np.nan)
    return {
        "name": path.path,
        "colour": colour,
        "throughput": _series(session, path.throughput_bps, width, _MBPS),
        "capacity": _series(session, capacity, width, _MBPS),
        "window": _series(session, path.cwnd_packets, width),
        "srtt": _series(session, path.srtt_s, width, _MS),
        "disabled": _spans(path.disabled_s),
    }


def _series(session: SessionRecording, values: Array, width: float, scale: float = 1.0) -> Numbers:
    _, rows = binning.binned(session, values, width)
    return _numbers(binning.mean(rows) * scale)


def _notes(session: SessionRecording, series: NoteSeries, width: float) -> Numbers:
    return _numbers(binning.mean_over_time(session, series.times_s, series.values, width)[1])


def _numbers(values: Array) -> Numbers:
    return [_rounded(value) for value in values.tolist()]


def _spans(spans: Array) -> list[list[float]]:
    return [[_time(begin), _time(end)] for begin, end in spans.tolist()]


def _time(value: float) -> float:
    """An instant or a length in seconds, to the millisecond: significant digits would blur the end of a long run."""
    return round(value, 3)


def _rounded(value: float) -> float | None:
    """The number with the digits that a screen shows; JSON has no others than finite ones."""
    if not math.isfinite(value):
        return None
    short = float(f"{value:.{_SIGNIFICANT}g}")
    # `3.0` takes more room than `3`.
    return int(short) if short.is_integer() else short
