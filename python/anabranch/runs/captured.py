"""Why a download was not faster, by a capture at its sender: any sender of TCP or Multipath TCP.

A capture does not tell what links could have carried. What a path carried at its best counts as its rate, so a path
that the sender never filled looks slower than it is. While a response is due, each moment of each path goes to new data
or, as far as packets tell, to one cause. Where they do not distinguish two causes, the cause names both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from anabranch import arguments
from anabranch.errors import InputError
from anabranch.results import connections, evidence, linktime
from anabranch.results.capturefile import Mask
from anabranch.results.connections import Session
from anabranch.results.evidence import DataEvidence, PathEvidence
from anabranch.results.recording import Array
from anabranch.runs.parts import Part, by_cause, with_outages

SLICE_S = 0.01
"""Time is divided into slices of this length; a longer capture has longer ones."""

_MOST_SLICES = 500_000

_SEGMENT_BYTES = 1500
"""A full segment, with its headers."""

_FULL = 0.97
"""A buffer is full from this part of its largest content on."""

_OFTEN = 0.2
"""What the sender keeps outstanding is limited by a buffer where it is as much as ever for this part of the time."""

_HELD = 0.64
"""Linux wakes an application that found its send buffer full once a third of it is free: so much is left then."""

_OUTAGE_S = 0.5
_OUTAGE_ROUND_TRIPS = 4.0
"""Nothing arrives although something is on its way, for so long: the path is down."""

_DEEP_S = 0.005
"""A round trip that is longer by less than this shows no queue that keeps a path busy."""

_IDLE_S = 0.2
"""Linux's shortest retransmission timeout: after this and a round trip without data, windows may have decayed."""

_GROWTH = 1.5
"""In slow start windows grow by half or more in a round trip: less than this over two of them is no slow start."""

_AGAIN = 0.9
"""A window is what it was from this part of it on."""


@dataclass(frozen=True, slots=True)
class CaptureExplanation:
    """Where the time of a captured session's paths went while a response was due.

    Attributes:
        file: The capture.
        session: The session's number, from 0.
        sessions: How many sessions the capture has.
        name: Its two ends, the sender's first.
        begin_s: When the first response was due, as the capture counts seconds.
        end_s: When the last one had arrived.
        due_s: How long a response was due.
        possible_bits: What the paths at their best would have carried meanwhile.
        useful_share: The share of it that was new payload.
        parts: All else, the largest part first. A path is named by the address of the end that receives, or by both
            addresses where that would be ambiguous; bits are of payload, at the path's best rate.
        lacks: What the capture lacks, in sentences.
    """

    file: str
    session: int
    sessions: int
    name: str
    begin_s: float
    end_s: float
    due_s: float
    possible_bits: float
    useful_share: float
    parts: tuple[Part, ...]
    lacks: tuple[str, ...]

    @property
    def causes(self) -> dict[str, float]:
        """The share of each cause, all paths together, the largest first."""
        return by_cause(self.parts)

    @property
    def first_cause(self) -> str | None:
        """The cause to look at first, if there is one: the largest. What an outage loses belongs to the outage."""
        shares = with_outages(self.causes)
        return max(shares, key=lambda cause: shares[cause], default=None)

    def as_dict(self) -> dict[str, Any]:
        """The same for JSON."""
        return {**asdict(self), "causes": self.causes, "first_cause": self.first_cause}


def explain_capture(file: str | Path, *, session: int | None = None) -> CaptureExplanation:
    """Says from a capture at the sender where the time of a session's paths went.

    Args:
        file: A pcap or pcapng with at least the headers of every packet, taken at the end that sends the data.
        session: Which session, in the order of their beginnings, from 0; the one with most data where absent. A session
            is a connection, or several of one client to one server that follow each other.

    Raises:
        InputError: It is no capture, has no such session, or was taken at the receiver.
    """
    place = Path(arguments.place("file", file, "the name of a file"))
    try:
        found = connections.read(place)
    except OSError as error:
        raise InputError(f"{place}: {error.strerror}") from error
    sizes = [each.sent_bytes for each in found.sessions]
    if session is None:
        session = int(np.argmax(sizes))
    if not 0 <= session < len(sizes):
        raise InputError(f"{place}: there is no session {session}; expected one of 0 to {len(sizes) - 1}")
    if not sizes[session]:
        raise InputError(f"{place}: session {session} carried no data; nothing to explain")
    chosen = found.sessions[session]
    packets = evidence.packets_of(found.packets, session)
    paths = evidence.of_paths(packets, chosen)
    if not any(np.isfinite(path.known_s).any() for path in paths):
        raise InputError(f"{place}: session {session} has no acknowledgment; the capture has one direction only")
    if all(path.is_at_receiver for path in paths):
        raise InputError(
            f"{place}: the capture seems to be the receiver's; expected one at the end that sends the data"
        )
    return _explained((str(place), session, len(sizes)), chosen, paths, evidence.of_data(packets, chosen))


# --- The account ----------------------------------------------------------------------------------------------------


def _explained(
    which: tuple[str, int, int], chosen: Session, paths: Sequence[PathEvidence], flow: DataEvidence
) -> CaptureExplanation:
    begin, end = float(flow.requests_s[0]), float(flow.done_s.max())
    length = max(SLICE_S, (end - begin) / _MOST_SLICES)
    edges: Array = begin + length * np.arange(int(np.ceil((end - begin) / length)) + 1, dtype=np.float64)
    bits: dict[tuple[str, str], float] = {}
    due = 0.0
    known = [path.rate for path in paths if path.rate]
    for path in paths:
        slices = _Slices(path, flow, edges)
        due = max(due, slices.due_s)
        for cause, seconds in slices.account().items():
            key = (path.name, cause)
            bits[key] = bits.get(key, 0.0) + seconds * 8 * (path.rate or sum(known) / len(known))
    possible = sum(bits.values())
    parts = [Part(*key, None, value, value / possible if possible else 0.0) for key, value in bits.items()]
    parts.sort(key=lambda part: -part.share)
    return CaptureExplanation(
        file=which[0],
        session=which[1],
        sessions=which[2],
        name=chosen.name,
        begin_s=begin,
        end_s=end,
        due_s=due,
        possible_bits=possible,
        useful_share=sum(part.share for part in parts if part.cause == linktime.USEFUL),
        parts=tuple(part for part in parts if part.cause != linktime.USEFUL and part.share > 0.0),
        lacks=tuple(_lacks(chosen)),
    )


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


class _Slices:
    """The time of a path in slices: a round trip before acknowledgments arrive, their packets used it."""

    def __init__(self, path: PathEvidence, flow: DataEvidence, edges: Array) -> None:
        self.path, self.flow, self.edges = path, flow, edges
        self.at = (edges[:-1] + edges[1:]) / 2
        self.length = float(edges[1] - edges[0])
        response = np.searchsorted(flow.requests_s, self.at, side="right") - 1
        # The last byte leaves the path a round trip before its acknowledgment arrives.
        self.is_due = self.at <= flow.done_s[response] - path.rtt_s
        self.unsent = self.at <= flow.last_sent_s[response]
        self.flight = path.in_flight(self.at)

    @property
    def due_s(self) -> float:
        """How long a response was due."""
        return float(self.is_due.sum()) * self.length

    def account(self) -> dict[str, float]:
        """Seconds by cause."""
        new, copied = self._busy()
        found = {linktime.USEFUL: float(new[self.is_due].sum()), "copies": float(copied[self.is_due].sum())}
        idle = np.maximum(self.length - new - copied, 0.0)
        left = self.is_due.copy()
        for cause, mask in self._causes():
            taken = left & mask
            found[cause] = found.get(cause, 0.0) + float(idle[taken].sum())
            left &= ~mask
        return found

    def _busy(self) -> tuple[Array, Array]:
        """How long the path carried new data in each slice, and how long copies, at its best rate."""
        times, sizes, copies = self.path.arrivals
        if not len(times) or not self.path.rate:
            return np.zeros(len(self.at)), np.zeros(len(self.at))
        service = sizes / self.path.rate
        before = np.concatenate([[0.0], np.cumsum(service)])
        # Each ends no later than it arrived, nor than the next one begins.
        latest = np.minimum.accumulate((times - self.path.rtt_s - before[1:])[::-1])[::-1]
        knots = np.stack([latest + before[:-1], latest + before[1:]], axis=1).reshape(-1)
        kept = np.concatenate([[0.0], np.cumsum(np.where(copies, 0.0, service))])
        done = np.stack([kept[:-1], kept[1:]], axis=1).reshape(-1)
        everything = np.stack([before[:-1], before[1:]], axis=1).reshape(-1)
        new, all_ = (np.diff(np.interp(self.edges, knots, values)) for values in (done, everything))
        return new, all_ - new

    def _causes(self) -> list[tuple[str, Mask]]:
        """What a moment goes to in which the path carried nothing: the first that holds."""
        unused = self._unused()
        repairs = ("loss-random", "loss-queue", "reordering")
        repairing = np.any([self._repairing(cause) for cause in repairs], axis=0)
        return [
            ("not-joined", self.at < self.path.opened_s),
            ("link-down", self._outages),
            ("slower-or-shared", self._is_queued()),
            ("loss-outage", self._repairing("loss-outage")),
            ("application", self._unwritten()),
            ("last-bytes", ~self.unsent & ~repairing),
            ("receive-window", self._window_full()),
            ("backup", unused & self._is_backup()),
            ("scheduler-or-policy", unused & ~self._buffer_full),
            *((cause, self._repairing(cause)) for cause in repairs),
            ("send-buffer", self._buffer_full),
            ("last-bytes", ~self.unsent),
            ("idle-decay", self._decayed()),
            ("start-up", self._starting()),
            ("scheduler-or-policy", self.flight < self._window() / 2),
            ("window", np.ones(len(self.at), np.bool_)),
        ]

    def _at(self, steps: Array, before: float) -> Array:
        """The last value of steps until each slice."""
        values = np.append(before, steps[:, 1])
        return values[np.searchsorted(steps[:, 0], self.at, side="right")]

    @cached_property
    def _outages(self) -> Mask:
        """Something was on its way, and nothing arrived for long."""
        times, _, _ = self.path.arrivals
        usual = self.path.usual_rtt_s
        least = max(_OUTAGE_S, _OUTAGE_ROUND_TRIPS * usual)
        found = np.zeros(len(self.at), np.bool_)
        ends = np.append(times, self.edges[-1] + least)
        # From when the first segment was sent that did not arrive.
        for begin, end in zip(np.append(self.edges[0], times).tolist(), ends.tolist(), strict=True):
            if end - begin < least:
                continue
            inside = (self.path.sent_s > begin - usual) & (self.path.sent_s < end) & (self.path.known_s >= end)
            if not inside.any():
                continue
            since = float(self.path.sent_s[inside][0])
            if end - since >= least:
                found |= (self.at >= since) & (self.at < end - self.path.rtt_s)
        return found

    def _is_queued(self) -> Mask:
        """The round trip shows a queue, so the path cannot be idle: it is slower than at its best, or carries others.

        A sender with a full buffer sends in bursts, which wait for each other: then what is on its way has to be more
        than the path holds without a queue.
        """
        longer: Mask = self.path.queued_s(self.at) > max(_DEEP_S, self.path.rtt_s / 4)
        most = self.path.flight + 2 * _SEGMENT_BYTES
        return longer & (self.flight > np.where(self._buffer_full, most, self.path.flight / 2))

    def _repairing(self, cause: str) -> Mask:
        """From a loss until the flight is what it was before it."""
        return self._repairs.get(cause, np.zeros(len(self.at), np.bool_))

    @cached_property
    def _repairs(self) -> dict[str, Mask]:
        """By what was repaired: from the round trip of a repair until the flight is what it was before the loss."""
        path = self.path
        found: dict[str, Mask] = {}
        enough = path.flight + _SEGMENT_BYTES
        outages, ended, target, last = self._outages, -np.inf, 0.0, 0
        repaired = np.flatnonzero(np.isfinite(path.repaired_s))
        for segment in repaired[np.argsort(path.repaired_s[repaired], kind="stable")].tolist():
            time = float(path.repaired_s[segment])
            place = int(np.searchsorted(self.at, time))
            if outages[max(place - 2, 0) : place + 2].any():
                cause = "loss-outage"
            elif path.needless[segment]:
                cause = "reordering"
            else:
                cause = "loss-queue" if path.ranks[segment] >= path.full_from else "loss-random"
            mask = found.setdefault(cause, np.zeros(len(self.at), np.bool_))
            if time < ended:
                continue
            # Of several repairs in a round trip the first one reduces the window.
            ended = time + path.rtt_s
            before = min(max(self._flight_at(time - path.rtt_s), 1.0), enough)
            # A loss while the window is still small from others has the same window to come back to.
            target = max(target, before) if place < last else before
            settled = int(np.searchsorted(self.at, ended))
            back = np.flatnonzero(self.flight[settled:] >= target - _SEGMENT_BYTES)
            last = settled + int(back[0]) if len(back) else len(self.at)
            mask[max(int(np.searchsorted(self.at, time - path.rtt_s)), 0) : last] = True
        return found

    def _flight_at(self, time_s: float) -> float:
        """What was on its way in the slice before an instant."""
        return float(self.flight[max(int(np.searchsorted(self.at, time_s)) - 1, 0)])

    def _unwritten(self) -> Mask:
        """All that was sent had arrived, and more of the response was to come: the application wrote nothing."""
        sent, acknowledged = self._at(self.flow.sent, 0.0), self._at(self.flow.acknowledged, 0.0)
        return self.unsent & (acknowledged >= sent)

    def _window_full(self) -> Mask:
        """The peer took no further segment."""
        if not len(self.flow.window_ends):
            return np.zeros(len(self.at), np.bool_)
        first = float(self.flow.window_ends[0, 1])
        return self._at(self.flow.window_ends, first) - self._at(self.flow.sent, 0.0) < _SEGMENT_BYTES

    @cached_property
    def _buffer_full(self) -> Mask:
        """About as much is outstanding as ever, and that is so for much of the time: a window would go on growing."""
        outstanding = self._at(self.flow.sent, 0.0) - self._at(self.flow.acknowledged, 0.0)
        counted = outstanding[self.unsent & self.is_due]
        if not len(counted):
            return np.zeros(len(self.at), np.bool_)
        most = float(counted.max())
        often = bool((counted >= _FULL * most).mean() >= _OFTEN)
        held: Mask = outstanding >= _HELD * most
        return held & often

    def _is_backup(self) -> Mask:
        wanted: Mask = self._at(self.path.backups, 0.0) > 0.0
        return wanted

    def _unused(self) -> Mask:
        """Everything that was sent on the path had arrived, and nothing more was sent for a round trip."""
        times, _, _ = self.path.arrivals
        sent, known = (np.searchsorted(each, self.at, side="right") for each in (self.path.sent_s, times))
        last = np.append(-np.inf, self.path.sent_s)[sent]
        unused: Mask = (sent <= known) & (self.at - last > self.path.rtt_s + self.length)
        return unused

    def _decayed(self) -> Mask:
        """From a pause on, until the flight is what it was before."""
        sent, found = self.path.sent_s, np.zeros(len(self.at), np.bool_)
        for pause in np.flatnonzero(np.diff(sent) > _IDLE_S + self.path.rtt_s).tolist():
            begin = float(sent[pause + 1])
            before = min(self._flight_at(float(sent[pause])), self.path.flight)
            place = int(np.searchsorted(self.at, begin))
            back = np.flatnonzero(self.flight[place:] >= _AGAIN * before)
            found[place : place + int(back[0]) if len(back) else len(self.at)] = True
        return found

    def _starting(self) -> Mask:
        """Until the flight first filled the path, a loss ended the first growth, or it grew no faster than linearly."""
        ends = [float(self.path.repaired_s.min(initial=np.inf))]
        filled = np.flatnonzero(self.flight >= _AGAIN * self.path.flight)
        ends += [float(self.at[filled[0]])] if len(filled) else []
        trips = max(round(2 * self.path.rtt_s / self.length), 1)
        begun = int(np.searchsorted(self.at, self.path.sent_s[0])) if len(self.path.sent_s) else len(self.at)
        most = np.maximum.accumulate(self.flight)[begun:]
        slow = np.flatnonzero((most[trips:] < _GROWTH * most[:-trips]) & self.unsent[begun + trips :])
        ends += [float(self.at[begun + trips + slow[0]])] if len(slow) else []
        return self.at < min(ends)

    def _window(self) -> Array:
        """What was on its way at most in the last second: about the window."""
        span = max(int(1.0 / self.length), 1)
        padded = np.concatenate([np.zeros(span - 1), self.flight])
        most: Array = np.lib.stride_tricks.sliding_window_view(padded, span).max(axis=1)
        return most
