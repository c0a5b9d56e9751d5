"""The numbers of a run, typed: ``metrics.json``, ``run --json`` and :attr:`anabranch.Run.metrics`.

The contract itself is in Rust: what reads a file here checks it there, so every key is declared once with its meaning.
These types say what the package itself reads. ``None`` means that nobody observed the number, or that there is nothing
to say. ``docs/reference/metrics.md`` explains every key.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NotRequired, TypedDict, cast

from anabranch import InputError, _core


class ReorderDelay(TypedDict):
    """How long bytes waited for earlier ones, in seconds; all ``None`` where the receiver is a kernel."""

    mean: float | None
    p95: float | None
    max: float | None


class Subflow(TypedDict):
    """One subflow. What is ``None`` is known only of a sender of ours, or was never sampled."""

    path: str
    metered: bool
    goodput_bps: float
    bytes: int
    segments_sent: int
    retransmissions: int
    reinjections: int | None
    rto_count: int
    loss_events: int | None
    mean_cwnd_packets: float | None
    mean_srtt_s: float | None
    times_disabled: int | None
    times_enabled: int | None
    disabled_s: float | None
    disabled_spans_s: list[list[float]] | None
    control_counts: dict[str, int] | None
    retransmissions_around_events: list[dict[str, Any]] | None


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
    media_segments: list[dict[str, Any]]


class Download(TypedDict):
    """A download of a player without a video; what is ``None`` had not come when the session ended."""

    requested_s: float
    first_byte_s: float | None
    finished_s: float | None
    bytes: int


class Session(TypedDict):
    """One viewer, or one download of the cross traffic.

    It has the keys of :class:`Viewer`, too, all ``None`` where nobody observed them: see :func:`viewer_of`. With a DASH
    video it has the keys of :class:`Quality`: see :func:`quality_of`.
    """

    name: str
    start_s: float
    finished_s: float | None
    ended: str
    cut_off: bool
    video_s: float | None
    bytes: int
    startup_s: float | None
    stalls: int | None
    stall_s: float | None
    longest_stall_s: float | None
    played_s: float | None
    picture_discards: int | None
    buffer_underflows: int | None
    pictures_flushed: int | None
    mean_bitrate_bps: NotRequired[float | None]
    media_segments: NotRequired[list[dict[str, Any]] | None]
    downloads: list[Download] | None
    longest_delivery_gap_s: float | None
    path_switches: int | None
    path_switches_new_data: int | None
    copied_bytes: int | None
    metered_bytes: int
    goodput_bps: float
    reorder_delay_s: ReorderDelay
    reorder_bytes_max: int | None
    receive_window_limited_s: float | None
    scheduler_wait_s: float | None
    total_window: dict[str, float] | None
    retransmissions_around_events: list[dict[str, Any]] | None
    subflows: list[Subflow]
    switch_forecasts: dict[str, int] | None


class Fairness(TypedDict):
    """Jain's indexes; ``None`` where a viewer was not observed or a share is negative."""

    viewers: int
    jain_mean_bitrate: float | None
    jain_qoe_linear: float | None
    jain_qoe_log: float | None
    jain_goodput: float | None


class Lateness(TypedDict):
    """How much later than due packets were delivered, in seconds; ``None`` without a packet."""

    p50: float | None
    p99: float | None
    p999: float | None
    max: float | None


class Live(TypedDict):
    """The testbed of a run in real time. A run that is ``void`` is invalid: it measured the machine."""

    server: str
    client: str
    kernel: str
    lateness_s: Lateness
    void: bool
    realtime: bool
    refused: int
    connections: int
    settings: dict[str, str]
    server_counters: list[dict[str, int]]
    notes: list[str]
    client_counters: NotRequired[dict[str, int]]
    client_received_bytes: NotRequired[dict[str, int]]


class Metrics(TypedDict):
    """The numbers of a run. ``live`` is there only if it was one in real time."""

    schema: int
    scenario: str
    seed: int
    seed_matters: bool
    version: str
    engine: str
    ended: str
    sim_seconds: float
    packets: int
    links: list[dict[str, Any]]
    sessions: list[Session]
    traffic: list[Session]
    fairness: Fairness | None
    live: NotRequired[Live]


def of_outcome(outcome: _core.Outcome) -> Metrics:
    """The metrics of a run that was just made."""
    return cast(Metrics, json.loads(outcome.metrics_json))


def read(file: Path) -> Metrics:
    """Reads ``metrics.json``.

    Raises:
        InputError: Something in it is missing, unknown, or no number; the message names the file and the key.
    """
    try:
        text = file.read_text(encoding="utf-8")
        _core.check_metrics(text)
    except (UnicodeDecodeError, InputError) as error:
        remedy = "what an earlier version wrote is to be made again: `anabranch run FOLDER/scenario.toml --seed N`"
        raise InputError(f"{file}: not the metrics of a run: {error}; {remedy}") from error
    return cast(Metrics, json.loads(text))


def viewer_of(session: Session) -> Viewer | None:
    """What the session's viewer saw; ``None`` where nobody observed it."""
    return None if session["stalls"] is None else cast(Viewer, session)


def quality_of(session: Session) -> Quality | None:
    """What the viewer of a DASH video saw; ``None`` of any other session, and where nobody observed it."""
    observed = "media_segments" in session and session["media_segments"] is not None
    return cast(Quality, session) if observed else None
