"""The numbers of a run, typed: ``metrics.json``, ``run --json`` and `anabranch.Run.metrics`.

The contract itself is in Rust: what reads a file here checks it there, so every key is declared once with its meaning,
and the classes of `anabranch.results.contract` are generated from it. ``None`` means that the number was not observed,
or that there is nothing to say. ``docs/reference/metrics.md`` explains every key.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict, cast

from anabranch import _core
from anabranch.errors import InputError
from anabranch.results.contract import (
    NESTED,
    DecisionLatency,
    DownloadReport,
    Fairness,
    Lateness,
    LinkMetrics,
    LiveFacts,
    MediaSegmentReport,
    Metrics,
    ReorderDelay,
    SessionMetrics,
    SubflowReport,
)
from anabranch.results.record import Record
from anabranch.system import regular

__all__ = [
    "DecisionLatency",
    "DownloadReport",
    "Fairness",
    "Lateness",
    "LinkMetrics",
    "LiveFacts",
    "MediaSegmentReport",
    "Metrics",
    "Quality",
    "ReorderDelay",
    "SessionMetrics",
    "SubflowReport",
    "Viewer",
    "of_outcome",
    "quality_of",
    "read",
    "viewer_of",
]


class Viewer(TypedDict):
    """What a viewer saw. ``startup_s`` is ``None`` where no picture was shown."""

    startup_s: float | None
    stalls: int
    stall_s: float
    longest_stall_s: float
    played_s: float
    picture_discards: int
    buffer_underflows: int
    pictures_flushed: int


class Quality(TypedDict):
    """What a viewer of a DASH video saw. What is ``None`` has no value, such as a mean of nothing."""

    statistics_window_s: list[float] | None
    mean_bitrate_bps: float | None
    mean_used_bitrate_bps: float | None
    switches: int
    impactful_switches: int | None
    switch_amplitude_bps: float | None
    time_on_high_quality: float | None
    mean_buffer_s: float
    stall_ratio: float
    qoe_linear: float
    qoe_linear_per_segment: float | None
    qoe_log: float
    wasted_bytes: int
    abandoned_requests: int
    media_segments: list[MediaSegmentReport]


def _records(kind: type[Record], table: Mapping[str, Any]) -> Record:
    """A table of JSON and those in it as records."""
    record = kind(table)
    for key, inner in NESTED.get(kind, {}).items():
        value = record.get(key)
        if isinstance(value, dict):
            dict.__setitem__(record, key, _records(inner, value))
        elif value is not None:
            dict.__setitem__(record, key, [_records(inner, each) for each in value])
    return record


def _of_json(text: str) -> Metrics:
    return cast(Metrics, _records(Metrics, json.loads(text)))


def of_outcome(outcome: _core.Outcome) -> Metrics:
    """The metrics of a run that was just made."""
    return _of_json(outcome.metrics_json)


def read(file: Path) -> Metrics:
    """Reads ``metrics.json``.

    Raises:
        InputError: Something in it is missing, unknown, or no number; the message names the file and the key.
    """
    try:
        text = regular.read_text(file, regular.MOST_BYTES)
        _core.check_metrics(text)
    except (UnicodeDecodeError, InputError) as error:
        remedy = "what an earlier version wrote is to be made again: `anabranch run FOLDER/scenario.toml --seed N`"
        raise InputError(f"{file}: not the metrics of a run: {error}; {remedy}") from error
    return _of_json(text)


def viewer_of(session: SessionMetrics) -> Viewer | None:
    """What the session's viewer saw; ``None`` where it was not observed."""
    return None if session["stalls"] is None else cast(Viewer, session)


def quality_of(session: SessionMetrics) -> Quality | None:
    """What the viewer of a DASH video saw; ``None`` of any other session, and where it was not observed."""
    observed = "media_segments" in session and session["media_segments"] is not None
    return cast(Quality, session) if observed else None
