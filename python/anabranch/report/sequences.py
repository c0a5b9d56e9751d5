"""What a run's packets say of each subflow, as the page draws it: sequence numbers and round trips.

Numbers are whole ones, each as the difference to the one before, which compresses well: times are in ticks, places in
bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anabranch.results import sequence
from anabranch.results.capturefile import Integers
from anabranch.results.recording import Array
from anabranch.results.sequence import DataAcknowledgments, Sequences, Subflow

TICK_S = 1e-5
"""The unit of times in the page: a segment of 1500 bytes takes longer at 1 Gb/s."""

MOST_ROWS = 1_000_000
"""More segments, acknowledgments, SACK blocks and samples of a session than this would make a page too large."""


def of_session(sequences: Sequences, colours: Mapping[str, int]) -> dict[str, Any]:
    """The subflows of a session, from the beginning as far as a page has room for.

    Args:
        sequences: Those of the session.
        colours: The place in the palette of each path.

    Returns:
        For the page's program: ``tick_s``; ``until_s``, the time up to which there is something, ``None`` where nothing
        is left out; ``flows``; ``data``, the data acknowledgments; and ``data_title``.
    """
    until = _until_s(sequences)
    subflows = zip(sequences.subflows, sequence.names(sequences.subflows), strict=True)
    return {
        "tick_s": TICK_S,
        "until_s": None if until is None else round(until, 3),
        "flows": [_flow(each, name, colours[each.path], until) for each, name in subflows],
        "data": [_data(each, until) for each in sequences.data],
        "data_title": sequence.DATA_TITLE,
    }


def _until_s(sequences: Sequences) -> float | None:
    """The instant up to which a page has room; nothing where it has for all."""
    times = [
        each
        for subflow in sequences.subflows
        for each in (subflow.sent_s, subflow.acknowledged_s, subflow.sacked_s, subflow.rtts_s[:, 0])
    ]
    together = np.concatenate([*times, np.empty(0)])
    if len(together) <= MOST_ROWS:
        return None
    return float(np.partition(together, MOST_ROWS)[MOST_ROWS])


def _before(times: Array, until: float | None) -> NDArray[np.bool_]:
    return np.full(len(times), True) if until is None else np.asarray(times < until)


def _flow(subflow: Subflow, name: str, colour: int, until: float | None) -> dict[str, Any]:
    sent, sacked = _before(subflow.sent_s, until), _before(subflow.sacked_s, until)
    # What neither acknowledges more nor moves the window changes no line.
    moved = np.diff(subflow.acknowledged, prepend=-1) + np.abs(np.diff(subflow.window_ends, prepend=-1)) > 0
    acked = _before(subflow.acknowledged_s, until) & moved
    rtts = _before(subflow.rtts_s[:, 0], until)
    begins, ends, data = subflow.begins[sent], subflow.ends[sent], subflow.data_begins[sent]
    return {
        "name": name,
        "sequence_title": sequence.sequence_title(name),
        "round_trips_title": sequence.round_trips_title(name),
        "colour": colour,
        "sent": {
            "t": _ticks(subflow.sent_s[sent]),
            "begin": _steps(begins),
            "length": _steps(ends - begins),
            "kind": _steps(subflow.kinds[sent]),
            "data": _steps(data) if (data >= 0).all() and len(data) else None,
        },
        "acks": {
            "t": _ticks(subflow.acknowledged_s[acked]),
            "end": _steps(subflow.acknowledged[acked]),
            "window": _steps((subflow.window_ends - subflow.acknowledged)[acked]),
        },
        "sacks": {
            "t": _ticks(subflow.sacked_s[sacked]),
            "begin": _steps(subflow.sacked[sacked, 0]),
            "length": _steps(subflow.sacked[sacked, 1] - subflow.sacked[sacked, 0]),
        },
        "rtts": {"t": _ticks(subflow.rtts_s[rtts, 0]), "value": _ticks(subflow.rtts_s[rtts, 1])},
    }


def _data(data: DataAcknowledgments, until: float | None) -> dict[str, Any]:
    acked = _before(data.times_s, until)
    return {"t": _ticks(data.times_s[acked]), "end": _steps(data.acknowledged[acked])}


def _ticks(times: Array) -> list[int]:
    return _steps(np.round(times / TICK_S).astype(np.int64))


def _steps(numbers: Integers) -> list[int]:
    """Each number as the difference to the one before it."""
    steps: list[int] = np.diff(numbers, prepend=0).tolist()
    return steps
