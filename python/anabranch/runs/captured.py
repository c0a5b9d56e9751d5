"""Why a download was not faster, by a capture at its sender: any sender of TCP or Multipath TCP.

A capture does not tell what links could have carried. What a path carried at its best counts as its rate, so a path
that the sender never filled looks slower than it is. While a response is due, each moment of each path goes to new data
or, as far as packets tell, to one cause. Where they do not distinguish two causes, the cause names both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from anabranch import arguments
from anabranch.errors import InputError
from anabranch.results import connections, evidence, linktime, playerlog
from anabranch.results.connections import Session
from anabranch.results.evidence import DataEvidence, PathEvidence
from anabranch.results.playerlog import PlayerLog
from anabranch.results.recording import Array
from anabranch.runs import verdict
from anabranch.runs.captureaccount import SLICE_S, Spent, account
from anabranch.runs.parts import LinkTime, by_cause, path_of

_MOST_SLICES = 500_000


@dataclass(frozen=True, slots=True)
class CaptureExplanation:
    """Where the time of a captured session's paths went while a response was due.

    Attributes:
        file: The capture.
        session: The session's number, from 0.
        sessions: How many sessions the capture has.
        name: Its two ends, the sender's first.
        question: What is explained: ``the whole session``, or such as ``stall 2``.
        begin_s: When the first response was due, as the capture counts seconds; where a stall is explained, from when
            the buffer was fullest after the stall before.
        end_s: When the last one had arrived, or the stall ended.
        due_s: How long a response was due in it.
        request_s: What requests took in addition, at least: each a round trip of the fastest path.
        window_full_s: How long of `due_s` the receive window was full.
        possible_bits: What the paths at their best would have carried meanwhile.
        useful_share: The share of it that was new payload.
        parts: All else, the largest part first. A path is named by the address of the end that receives, or by both
            addresses where that would be ambiguous; bits are of payload, at the path's best rate.
        lacks: What the capture, or the log of the player, lacks, in sentences.
        stalls_s: When the player stalled, and when it played again, as the capture counts seconds.
    """

    file: str
    session: int
    sessions: int
    name: str
    question: str
    begin_s: float
    end_s: float
    due_s: float
    request_s: float
    window_full_s: float
    possible_bits: float
    useful_share: float
    parts: tuple[LinkTime, ...]
    lacks: tuple[str, ...]
    stalls_s: tuple[tuple[float, float], ...] = ()

    @property
    def causes(self) -> dict[str, float]:
        """The share of each cause, all paths together, the largest first."""
        return by_cause(self.parts)

    @property
    def first_cause(self) -> str | None:
        """The cause to look at first, if one has more than in runs without a fault: the largest of these.

        It is ``request``, which has no part, where requests take long. What an outage loses belongs to the outage.
        """
        requests = self.request_s / (self.request_s + self.due_s) if self.request_s else 0.0
        window_full = self.window_full_s / self.due_s if self.due_s else 0.0
        return verdict.first_of_capture(self.parts, requests, window_full)

    @property
    def first_path(self) -> str | None:
        """The path to look at first: the one that most of the first cause is of, or waits for; none for requests."""
        return path_of(self.parts, self.first_cause)

    def as_dict(self) -> dict[str, Any]:
        """The same for JSON."""
        return {**asdict(self), "causes": self.causes, "first_cause": self.first_cause, "first_path": self.first_path}


def explain_capture(
    file: str | Path, *, session: int | None = None, player: str | Path | None = None, stall: int | None = None
) -> CaptureExplanation:
    """Says from a capture at the sender where the time of a session's paths went.

    Args:
        file: A pcap or pcapng with at least the headers of every packet, taken at the end that sends the data.
        session: Which session, in the order of their beginnings, from 0; the one with most data where absent. A session
            is a connection, or several of one client to one server that follow each other.
        player: The log of the player's events, a JSON array: dash.js's, or any with the same names. Its clock may be
            another one, as the requests in it are those of the capture.
        stall: Explain this stall of the player, counted from 1: the time from when its buffer was fullest after the
            stall before to the end of the stall.

    Raises:
        InputError: It is no capture, has no such session, or was taken at the receiver; or the log of the player is
            none, is of another session, or has no such stall.
    """
    place = Path(arguments.place("file", file, "the name of a file"))
    if stall is not None and player is None:
        raise InputError("a stall is explained from the log of the player; expected one")
    log = None if player is None else playerlog.read(Path(arguments.place("player", player, "the name of a file")))
    read = _read(place, session)
    chosen, paths, flow = read.session, read.paths, read.flow
    lacks = _lacks(chosen)
    question, span = "the whole session", (float(flow.requests_s[0]), float(flow.read_s.max()))
    stalls: Array = np.empty((0, 2))
    if log is not None:
        ahead_s = log.ahead_s(chosen.requests_s)
        if ahead_s is None:
            lacks.append("The log of the player has too few requests: its clock is taken for that of the capture.")
        stalls = log.stalls_s + (ahead_s or 0.0)
        if stall is not None:
            question, span = f"stall {stall}", _within(log, stall, ahead_s or 0.0, span)
    due, full, spent = account(paths, flow, _edges(flow), span)
    bits = _bits(paths, spent)
    possible = sum(bits.values())
    parts = [LinkTime(*key, value, value / possible if possible else 0.0) for key, value in bits.items()]
    parts.sort(key=lambda part: -part.share)
    return CaptureExplanation(
        file=str(place),
        session=read.number,
        sessions=read.sessions,
        name=chosen.name,
        question=question,
        begin_s=span[0],
        end_s=span[1],
        due_s=due,
        request_s=_requests_s(flow, paths, span),
        window_full_s=full,
        possible_bits=possible,
        useful_share=sum(part.share for part in parts if part.cause == linktime.USEFUL),
        parts=tuple(part for part in parts if part.cause != linktime.USEFUL and part.share > 0.0),
        lacks=tuple(lacks),
        stalls_s=tuple((begin, end) for begin, end in stalls.tolist()),
    )


@dataclass(frozen=True)
class _Read:
    """What a capture says of a session.

    Attributes:
        number: Of the session, from 0.
        sessions: How many the capture has.
        session: The session.
        paths: Its paths.
        flow: Its data.
    """

    number: int
    sessions: int
    session: Session
    paths: Sequence[PathEvidence]
    flow: DataEvidence


def _read(place: Path, number: int | None) -> _Read:
    """Reads a session of a capture, as `explain_capture` does."""
    try:
        found = connections.read(place)
    except OSError as error:
        raise InputError(f"{place}: {error.strerror}") from error
    sizes = [each.sent_bytes for each in found.sessions]
    if number is None:
        number = int(np.argmax(sizes))
    if not 0 <= number < len(sizes):
        raise InputError(f"{place}: there is no session {number}; expected one of 0 to {len(sizes) - 1}")
    if not sizes[number]:
        raise InputError(f"{place}: session {number} carried no data; nothing to explain")
    chosen = found.sessions[number]
    packets = evidence.packets_of(found.packets, number)
    paths = evidence.of_paths(packets, chosen)
    if not any(np.isfinite(path.known_s).any() for path in paths):
        raise InputError(f"{place}: session {number} has no acknowledgment; the capture has one direction only")
    if all(path.is_at_receiver for path in paths):
        raise InputError(
            f"{place}: the capture seems to be the receiver's; expected one at the end that sends the data"
        )
    return _Read(number, len(sizes), chosen, paths, evidence.of_data(packets, chosen, paths))


# --- The account ----------------------------------------------------------------------------------------------------


def _edges(flow: DataEvidence) -> Array:
    """The edges of slices from the first response to the end of the last one."""
    begin, end = float(flow.requests_s[0]), float(flow.read_s.max())
    length = max(SLICE_S, (end - begin) / _MOST_SLICES)
    edges: Array = begin + length * np.arange(int(np.ceil((end - begin) / length)) + 1, dtype=np.float64)
    return edges


def _requests_s(flow: DataEvidence, paths: Sequence[PathEvidence], span: tuple[float, float]) -> float:
    """A round trip of the fastest path for each request in a time."""
    requests = np.count_nonzero((flow.requests_s >= span[0]) & (flow.requests_s < span[1]))
    return int(requests) * min((path.rtt_s for path in paths if path.rtt_s), default=0.0)


def _within(log: PlayerLog, stall: int, ahead_s: float, whole: tuple[float, float]) -> tuple[float, float]:
    """The part of the capture that led to a stall, and the stall."""
    if not 1 <= stall <= len(log.stalls_s):
        has = f"the player had {len(log.stalls_s)}" if len(log.stalls_s) else "the player had none"
        raise InputError(f"{log.file}: there is no stall {stall}; {has}")
    begin, end = log.before_s(stall) + ahead_s, float(log.stalls_s[stall - 1, 1]) + ahead_s
    if end <= whole[0] or begin >= whole[1]:
        raise InputError(f"{log.file}: nothing was captured at the time of stall {stall}")
    return max(begin, whole[0]), min(end, whole[1])


def _bits(paths: Sequence[PathEvidence], spent: Sequence[Spent]) -> dict[tuple[str, str, str | None], float]:
    """What was spent by path, cause and path behind it, in bits at the path's best rate."""
    known = [path.rate for path in paths if path.rate]
    bits: dict[tuple[str, str, str | None], float] = {}
    for each in spent:
        key = (each.path.name, each.cause, each.by)
        bits[key] = bits.get(key, 0.0) + each.seconds * 8 * (each.path.rate or sum(known) / len(known))
    return bits


def _lacks(chosen: Session) -> list[str]:
    late = sum(not stream.has_begun for stream in chosen.streams)
    lacks = []
    if late:
        of = f"{late} of {len(chosen.streams)} subflows" if len(chosen.streams) > 1 else "the connection"
        lacks.append(
            f"The capture begins after the handshake of {of}: the scale of windows is unknown, so a receive "
            "window that was full is not seen, nor is a backup."
        )
    if not len(chosen.requests_s):
        lacks.append("No request was captured: all the time from the first byte to the last counts as one response.")
    return lacks
