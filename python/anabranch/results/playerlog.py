"""The log of a player's events: when it asked for data, how much it had buffered, and when it stalled.

The events and their names are those of dash.js, each with the time at which it happened.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from anabranch.errors import InputError
from anabranch.results.recording import Array

_REQUEST, _WAITING, _PLAYING, _BUFFER = (
    "fragmentLoadingStarted",
    "playbackWaiting",
    "playbackPlaying",
    "bufferLevelUpdated",
)
_VIDEO = "video"

_SAME_S = 0.1
"""A request arrives at the server within this time of when it should, by the others: its way varies."""

_LEAST = 0.5
"""So much of the requests, of those that are fewer, has to fit for the log to be of the captured session."""

_FEWEST = 3
"""With fewer requests any log would fit."""


_LARGEST = 1e15
"""No time is larger, in milliseconds."""


@dataclass(frozen=True)
class PlayerLog:
    """What a player did, by its own clock.

    Attributes:
        file: Where it comes from.
        requests_s: When it asked for data, in seconds since some instant.
        stalls_s: The beginning and end of each stall, shape (n, 2); the last one may end with the log.
        buffers: When its buffer had so many seconds of video, shape (n, 2).
    """

    file: str
    requests_s: Array
    stalls_s: Array
    buffers: Array

    def ahead_s(self, arrived_s: Array) -> float | None:
        """How much later the clock is that saw the requests arrive; none if there are too few of them to tell.

        Args:
            arrived_s: When requests arrived, by the other clock.

        Raises:
            InputError: The requests are others.
        """
        if min(len(arrived_s), len(self.requests_s)) < _FEWEST:
            return None
        later = np.sort((arrived_s[:, None] - self.requests_s[None, :]).reshape(-1))
        fitting = np.searchsorted(later, later + _SAME_S, side="right") - np.arange(len(later))
        best = int(np.argmax(fitting))
        if fitting[best] < _LEAST * min(len(arrived_s), len(self.requests_s)):
            raise InputError(
                f"{self.file}: its requests are not those of the captured session; "
                "expected the log of the player that was captured, or another session"
            )
        return float(np.median(later[best : best + fitting[best]]))

    def before_s(self, stall: int) -> float:
        """From when the buffer was fullest after the stall before; without levels of the buffer, from its end.

        Args:
            stall: The number of the stall, counted from 1.
        """
        last = -np.inf if stall == 1 else float(self.stalls_s[stall - 2, 1])
        begin = float(self.stalls_s[stall - 1, 0])
        between = self.buffers[(self.buffers[:, 0] >= last) & (self.buffers[:, 0] <= begin)]
        if not len(between):
            return last
        # Of equal levels, the last one.
        return float(between[len(between) - 1 - int(np.argmax(between[::-1, 1])), 0])


def read(file: Path) -> PlayerLog:
    """Reads the log of a player: a JSON array of events.

    Each is an object with ``type`` and ``time`` (in milliseconds since any instant, such as that of `Date.now`). The
    types are those of dash.js: ``fragmentLoadingStarted``, ``playbackWaiting``, ``playbackPlaying``, and
    ``bufferLevelUpdated`` with ``bufferLevel`` (in seconds) and ``mediaType``, of which the level of video counts.
    Others are ignored.

    Raises:
        InputError: It is no such file.
    """
    try:
        events = json.loads(file.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file}: no JSON; expected an array of the events of a player ({error})") from error
    if not isinstance(events, list):
        raise InputError(f"{file}: expected an array of the events of a player")
    found = [_event(file, number, event) for number, event in enumerate(events)]
    found.sort(key=lambda each: each[0])
    return PlayerLog(
        file=str(file),
        requests_s=np.array([time for time, kind, _ in found if kind == _REQUEST], np.float64),
        stalls_s=_stalls(found),
        buffers=np.array(
            [(time, _number(file, event, "bufferLevel")) for time, kind, event in found if _is_level(kind, event)],
            np.float64,
        ).reshape(-1, 2),
    )


_Event = tuple[float, str, Mapping[str, Any]]


def _event(file: Path, number: int, event: Any) -> _Event:
    if not isinstance(event, dict) or not isinstance(event.get("type"), str):
        raise InputError(f"{file}: event {number}: expected an object with `type` and `time`")
    return _number(file, event, "time") / 1000.0, event["type"], event


def _number(file: Path, event: Mapping[str, Any], key: str) -> float:
    value = event.get(key)
    if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) <= _LARGEST:
        raise InputError(f"{file}: `{key}` of an event `{event['type']}`: {value!r}; expected a number")
    return float(value)


def _is_level(kind: str, event: Mapping[str, Any]) -> bool:
    # JavaScript writes null where it is not a number.
    return kind == _BUFFER and event.get("mediaType", _VIDEO) == _VIDEO and event.get("bufferLevel") is not None


def _stalls(events: list[_Event]) -> Array:
    """From each event that it waits, once it has played, to the next one that it plays."""
    stalls: list[tuple[float, float]] = []
    began: float | None = None
    has_played = False
    for time, kind, _ in events:
        if kind == _WAITING and has_played and began is None:
            began = time
        elif kind == _PLAYING:
            if began is not None:
                stalls.append((began, time))
            began, has_played = None, True
    if began is not None:
        stalls.append((began, events[-1][0]))
    return np.array(stalls, np.float64).reshape(-1, 2)
