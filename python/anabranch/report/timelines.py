"""Timelines: what a session's paths carried and what its viewer saw, as the page draws it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anabranch.report import sequences
from anabranch.results import series
from anabranch.results.metrics import Metrics
from anabranch.results.recording import Array, Recording
from anabranch.results.sequence import Sequences
from anabranch.results.series import PathSeries
from anabranch.wording import summary

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
    recording: Recording,
    metrics: Metrics,
    number: int,
    *,
    title: str,
    paths: Sequence[str] = (),
    packets: Sequences | None = None,
    why: Mapping[str, Any] | None = None,
) -> Timeline:
    """The timeline of a session.

    Args:
        recording: The run over time.
        metrics: What it found.
        number: Which session, from 0.
        title: What the page calls it.
        paths: The paths of the scenario, which decide on colours; those of the session where absent.
        packets: What the packets of the run say of each subflow, if it is known.
        why: Where its link time went, as `anabranch.report.why` has it; ``None`` without a panel of it.
    """
    from anabranch.figures import ending, style

    recorded = recording.sessions[number]
    session = series.of_session(recorded)
    styles = style.path_styles(list(paths) or [path.name for path in session.paths])
    end = ending.of_session(metrics, number)
    colours = {name: style.PATHS.index(each) for name, each in styles.items()}
    own = None if packets is None else packets.of(number)
    data = {
        "first_s": _time(float(session.middles_s[0])) if len(session.middles_s) else 0.0,
        "width_s": _time(session.width_s),
        "averaged_s": _time(session.averaged_s),
        "points": len(session.middles_s),
        "state_times": [_time(at) for at in session.state_times_s.tolist()],
        "paths": [_path(path, colours[path.name]) for path in session.paths],
        "total": _numbers(session.total_window_packets) if len(session.paths) > 1 else None,
        "buffer": _numbers(session.buffer_s) if recorded.plays else None,
        "switches": _numbers(session.switches_per_s) if session.has_switches else None,
        "discards": _numbers(session.discards_per_s) if session.has_discards else None,
        "shown": [
            [_time(s.begin_s), _time(s.end_s), _rounded(s.bitrate_bps * _MBPS), s.resolution] for s in recorded.shown
        ],
        "notes": [{"name": each.name, "path": each.path, "values": _numbers(each.values)} for each in session.emitted],
        "stalls": _spans(recorded.stalls_s),
        "underflows": [_time(at) for at in recorded.underflows_s.tolist()],
        "marks": [[_time(mark.at_s), mark.text] for mark in recording.marks],
        "packets": sequences.of_session(own, colours) if own is not None and own.subflows else None,
        "why": why,
        "ending": None if end is None else [_time(end.at_s), end.text],
    }
    return Timeline(title, summary.in_short(metrics["sessions"][number]), data)


def _path(path: PathSeries, colour: int) -> dict[str, Any]:
    return {
        "name": path.name,
        "colour": colour,
        "throughput": _numbers(path.throughput_bps * _MBPS),
        "capacity": _numbers(path.capacity_bps * _MBPS),
        "window": _numbers(path.window_packets[0]),
        "srtt": _numbers(path.srtt_s * _MS),
        "disabled": _spans(path.disabled_s),
    }


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
