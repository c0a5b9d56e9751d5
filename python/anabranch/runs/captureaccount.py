"""What the time of a captured path went to, slice by slice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from anabranch.results import linktime
from anabranch.results.capturefile import Integers, Mask
from anabranch.results.evidence import SEGMENT_BYTES, DataEvidence, PathEvidence
from anabranch.results.recording import Array

SLICE_S = 0.01
"""Time is divided into slices of this length; a longer capture has longer ones."""

_MOST, _FULL = 0.98, 0.97
"""What a buffer holds at most: hardly ever more is outstanding. It is full from this part of it on."""

_STOPS, _ALIKE = 5, 0.2
"""The sender stopped often enough to compare what was outstanding then: half of it within this part of the median."""

_WAITING = 2.0
"""Of what fills a small buffer, at least half is on its way at times."""

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
"""By so much is Linux's retransmission timeout longer than a round trip: after a longer pause, windows decay."""

_GROWTH = 1.5
"""In slow start windows grow by half or more in a round trip: less than this over two of them is no slow start."""

_AGAIN = 0.9
"""A window is what it was from this part of it on."""


_BLOCKED = "blocked"
"""Not a cause, but to be resolved by what blocks."""

_BLOCKING = ("link-down", "loss-outage", "loss-random", "loss-queue", "reordering")
"""Causes for which another path waits that can send nothing more."""

_CAUSES = (
    *("not-joined", "link-down", "slower-or-shared", "loss-outage", "application", "last-bytes", "receive-window"),
    *("backup", "held-back", _BLOCKED, "scheduler-or-policy", "loss-random", "loss-queue", "reordering"),
    *("send-buffer", "idle-decay", "start-up", "window"),
)
"""All causes, as numbers."""

_BLOCKING_NUMBERS = [_CAUSES.index(cause) for cause in _BLOCKING]


@dataclass(frozen=True)
class Spent:
    """What some time of a path went to.

    Attributes:
        path: The path.
        cause: The key of the cause, or ``useful``.
        by: The path that is behind it, where that is another one.
        seconds: At the path's best rate.
    """

    path: PathEvidence
    cause: str
    by: str | None
    seconds: float


def account(
    paths: Sequence[PathEvidence], flow: DataEvidence, edges: Array, span: tuple[float, float]
) -> tuple[float, float, list[Spent]]:
    """How long a response was due, how long the receive window was full, and what each path's time went to meanwhile.

    Args:
        paths: The paths of a session.
        flow: Its data.
        edges: Of the slices of time, in seconds.
        span: The beginning and end of the time that is counted.
    """
    shortest = min((path.rtt_s for path in paths if path.rtt_s), default=0.0)
    longest = max(path.usual_rtt_s for path in paths)
    accounts = [PathAccount(path, flow, edges, shortest, longest) for path in paths]
    labels = [each.labels() for each in accounts]
    buffered = any(each.is_buffer_limited for each in accounts) or _stops_alike(accounts, flow, shortest)
    found = []
    for place, each in enumerate(accounts):
        causes, by = _unblocked(place, accounts, labels, buffered)
        found += each.spent(causes, by, [path.name for path in paths], span)
    due_s, full_s = (max(values) for values in zip(*(each.due_s(span) for each in accounts), strict=True))
    return due_s, full_s, found


def _stops_alike(accounts: Sequence[PathAccount], flow: DataEvidence, shortest_s: float) -> bool:
    """Whether the sender, each time that it sends nothing new for a round trip, has as much outstanding as ever.

    A buffer that is full always has the same content. What windows allow, or a scheduler holds back, varies. Where far
    more is outstanding than is ever on its way, most of it waits at the receiver, and no buffer is small.
    """
    times, ends = flow.sent.T
    last = flow.last_sent_s[np.maximum(np.searchsorted(flow.requests_s, times, side="right") - 1, 0)]
    acked = np.append(0.0, flow.acknowledged[:, 1])[np.searchsorted(flow.acknowledged[:, 0], times, side="right")]
    levels = ends - acked
    stops = np.flatnonzero((np.diff(times) > shortest_s + SLICE_S) & (times < last)[:-1])
    if len(stops) < _STOPS:
        return False
    low, usual, high = np.quantile(levels[stops], (0.25, 0.5, 0.75)).tolist()
    on_way = sum(float(np.quantile(each.flight, _MOST)) for each in accounts)
    alike = high - low <= _ALIKE * usual and usual >= _HELD * np.quantile(levels, _MOST)
    return bool(alike and usual <= _WAITING * on_way)


def _unblocked(
    place: int, accounts: Sequence[PathAccount], labels: Sequence[Integers], buffered: bool
) -> tuple[Integers, Integers]:
    """The causes of a path's slices, and the path behind each: blocked ones have the cause of what blocks them.

    The sender sends nothing new on any path before the first byte without an acknowledgment has arrived. If this byte
    was lost, or is held back, that is why; else the send buffer is full of what is on its way. A segment is held back
    until the application fills it, which it cannot do either while the send buffer is full. A path that has nothing
    more to send waits as well, for the last bytes on another one.
    """
    mine = accounts[place]
    causes, by = labels[place].copy(), np.full(len(mine.at), place)
    waits = "send-buffer" if buffered else "held-back"
    causes[causes == _CAUSES.index("held-back")] = _CAUSES.index(waits)
    blocked = causes == _CAUSES.index(_BLOCKED)
    causes[blocked] = _CAUSES.index("send-buffer" if buffered else "scheduler-or-policy")
    ended = (causes == _CAUSES.index("last-bytes")) & mine.is_empty
    for number, (each, theirs) in enumerate(zip(accounts, labels, strict=True)):
        of_it = blocked & (mine.first_path == number)
        held = of_it & each.held_back
        causes[held], by[held] = _CAUSES.index(waits), number
        lost = (of_it & ~held | ended & (mine.first_path == number)) & np.isin(theirs, _BLOCKING_NUMBERS)
        causes[lost], by[lost] = theirs[lost], number
        by[ended & (mine.first_path == number)] = number
    return causes, by


class PathAccount:
    """The time of a path in slices: a round trip before acknowledgments arrive, their packets used it."""

    def __init__(
        self, path: PathEvidence, flow: DataEvidence, edges: Array, shortest_s: float, longest_s: float
    ) -> None:
        self.path, self.flow, self.edges, self.shortest_s, self.longest_s = path, flow, edges, shortest_s, longest_s
        self.at = (edges[:-1] + edges[1:]) / 2
        self.length = float(edges[1] - edges[0])
        response = np.searchsorted(flow.requests_s, self.at, side="right") - 1
        # The last byte leaves the path a round trip before its acknowledgment arrives.
        self.is_due = self.at <= flow.read_s[response] - path.rtt_s
        self.is_unread = self.at > flow.done_s[response]
        self.unsent = self.at <= flow.last_sent_s[response]
        self.flight = path.in_flight(self.at)
        acked = np.searchsorted(flow.acknowledged[:, 0], self.at, side="right")
        self.first_path = np.append(-1, flow.first_path)[acked]

    def _counted(self, span: tuple[float, float]) -> Mask:
        """In which slices of a time a response was due."""
        counted: Mask = self.is_due & (self.at >= span[0]) & (self.at < span[1])
        return counted

    def due_s(self, span: tuple[float, float]) -> tuple[float, float]:
        """How long a response was due in a time, and how long of this the receive window was full."""
        counted = self._counted(span)
        return float(counted.sum()) * self.length, float((counted & self._window_full).sum()) * self.length

    def labels(self) -> Integers:
        """The cause of each slice, should the path be idle in it: its place in `_CAUSES`."""
        found = np.full(len(self.at), -1)
        for cause, mask in self._causes():
            found[(found < 0) & mask] = _CAUSES.index(cause)
        return found

    def spent(self, causes: Integers, by: Integers, names: Sequence[str], span: tuple[float, float]) -> list[Spent]:
        """Seconds by cause and path behind it.

        Args:
            causes: The cause of each slice.
            by: The place of the path behind it.
            names: The names of all paths.
            span: The beginning and end of the time that is counted.
        """
        new, copied = self._busy()
        counted = self._counted(span)
        idle = np.maximum(self.length - new - copied, 0.0)[counted]
        found: list[tuple[str, str | None, float]] = [(linktime.USEFUL, None, float(new[counted].sum()))]
        found.append(("copies", None, float(copied[counted].sum())))
        keys = causes[counted] * len(names) + by[counted]
        for key, seconds in enumerate(np.bincount(keys, idle).tolist()):
            if seconds:
                name = names[key % len(names)]
                found.append((_CAUSES[key // len(names)], None if name == self.path.name else name, seconds))
        return [Spent(self.path, *each) for each in found]

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
            ("receive-window", self._window_full | self.is_unread),
            ("application", self._unwritten()),
            ("last-bytes", ~self.unsent & ~repairing),
            ("backup", unused & self._is_backup()),
            ("held-back", self.held_back),
            (_BLOCKED, self._is_blocked()),
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
        """Something was on its way, and nothing arrived for long.

        On a path that loses segments at random, one of them and its repairs are no outage: that loses all that is on
        its way.
        """
        path, found = self.path, np.zeros(len(self.at), np.bool_)
        gaps = self._gaps_of_arrivals()
        at_random = path.lost & (path.ranks < path.full_from)
        for _, _, lost in gaps:
            at_random &= ~lost
        for since, end, lost in gaps:
            if path.sizes[lost].sum() >= path.flight or np.count_nonzero(lost) > np.count_nonzero(at_random):
                found |= (self.at >= since) & (self.at < end - path.rtt_s)
        return found

    def _gaps_of_arrivals(self) -> list[tuple[float, float, Mask]]:
        """Where nothing arrived for long: since when a segment was sent that did not, until when, and all such ones."""
        path, usual = self.path, self.path.usual_rtt_s
        least = max(_OUTAGE_S, _OUTAGE_ROUND_TRIPS * usual)
        times, _, _ = path.arrivals
        begins, ends = np.append(self.edges[0], times), np.append(times, self.edges[-1] + least)
        is_long = ends - begins >= least
        gaps = []
        for begin, end in zip(begins[is_long].tolist(), ends[is_long].tolist(), strict=True):
            lost = (path.sent_s > begin - usual) & (path.sent_s < end) & (path.known_s >= end)
            if not lost.any():
                continue
            since, until = float(path.sent_s[lost][0]), min(end, float(path.closed_s[lost].max()))
            if until - since >= least:
                gaps.append((since, until, lost))
        return gaps

    def _is_queued(self) -> Mask:
        """The round trip shows a queue: the path is not idle, but slower than at its best, or it carries others."""
        deep = max(_DEEP_S, self.path.rtt_s / 4, self.path.overtaken_s)
        longer: Mask = self.path.standing_s(self.at) > deep
        return longer & (self.flight > 0)

    def _repairing(self, cause: str) -> Mask:
        """From a loss until the flight fills the path."""
        repairing: Mask = self._repairs == _CAUSES.index(cause)
        return repairing

    @cached_property
    def _repairs(self) -> Integers:
        """What is repaired, in `_CAUSES` or -1: from the round trip of a repair until the flight fills the path.

        Without the loss, the window would have gone on growing. A pause between responses ends it, since a window
        decays then anyway. The last repair is why the window is small.
        """
        path = self.path
        found = np.full(len(self.at), -1)
        undue = np.concatenate([[0], np.cumsum(~self.is_due)])
        pauses = [each for each in self._pauses if np.ptp(undue[np.searchsorted(self.at, each)])]
        begins, ends = np.array([*pauses, (np.inf, np.inf)]).T
        full = np.flatnonzero(self.flight >= _AGAIN * path.flight)
        ended = -np.inf
        repaired = np.flatnonzero(np.isfinite(path.repaired_s))
        for segment in repaired[np.argsort(path.repaired_s[repaired], kind="stable")].tolist():
            time = float(path.repaired_s[segment])
            if time < ended:
                # Of several repairs in a round trip the first one reduces the window.
                continue
            ended = time + path.rtt_s
            back = int(np.searchsorted(full, np.searchsorted(self.at, ended)))
            pause = max(ended, float(begins[np.searchsorted(ends, ended)]))
            last = int(full[back]) if back < len(full) else len(self.at)
            last = min(last, int(np.searchsorted(self.at, pause)))
            found[int(np.searchsorted(self.at, time - path.rtt_s)) : last] = _CAUSES.index(self._why_repaired(segment))
        return found

    def _why_repaired(self, segment: int) -> str:
        """The cause of the repair of a segment."""
        path = self.path
        place = int(np.searchsorted(self.at, path.repaired_s[segment]))
        if self._outages[max(place - 2, 0) : place + 2].any():
            return "loss-outage"
        if path.needless[segment]:
            return "reordering"
        if path.ranks[segment] >= path.full_from:
            return "loss-queue"
        return "reordering" if path.reorders else "loss-random"

    def _unwritten(self) -> Mask:
        """All that was sent had arrived, and more of the response was to come: the application wrote nothing."""
        sent, acknowledged = self._at(self.flow.sent, 0.0), self._at(self.flow.acknowledged, 0.0)
        return self.unsent & (acknowledged >= sent)

    @cached_property
    def _window_full(self) -> Mask:
        """The peer took no further segment, and all that it took was sent: none was kept for a path that is busy."""
        if not len(self.flow.window_ends):
            return np.zeros(len(self.at), np.bool_)
        first, sent = float(self.flow.window_ends[0, 1]), self._at(self.flow.sent, 0.0)
        full: Mask = self._at(self.flow.window_ends, first) - sent < SEGMENT_BYTES
        return full & (self._at(self.flow.later, np.inf) >= sent)

    @cached_property
    def is_buffer_limited(self) -> bool:
        """Whether a buffer limits what is outstanding."""
        return bool(self._buffer_full.any())

    @cached_property
    def _buffer_full(self) -> Mask:
        """About as much is outstanding as ever, and that is so for much of the time: a window would go on growing."""
        outstanding = self._at(self.flow.sent, 0.0) - self._at(self.flow.acknowledged, 0.0)
        counted = np.sort(outstanding[self.unsent & self.is_due])
        if not len(counted):
            return np.zeros(len(self.at), np.bool_)
        # The level that is most common. In slow start, each lasts for a round trip.
        alike = np.arange(1, len(counted) + 1) - np.searchsorted(counted, _FULL * counted)
        level = float(counted[int(np.argmax(alike))])
        least = max(_OFTEN * len(counted), _STOPS * self.longest_s / self.length)
        often = alike.max() >= least and level >= _HELD * np.quantile(counted, _MOST)
        held: Mask = outstanding >= _HELD * level
        return held & often

    def _is_backup(self) -> Mask:
        wanted: Mask = self._at(self.path.backups, 0.0) > 0.0
        return wanted

    @cached_property
    def _gap(self) -> tuple[Array, Integers]:
        """How long the path sent no new segment around each slice, and the number of the one that it sent next."""
        sent = np.concatenate([[-np.inf], self.path.sent_s, [np.inf]])
        place = np.searchsorted(self.path.sent_s, self.at, side="right")
        return sent[place + 1] - sent[place], place

    @cached_property
    def is_empty(self) -> Mask:
        """Everything that was sent on the path had arrived."""
        empty: Mask = self._gap[1] <= np.searchsorted(np.sort(self.path.left_s), self.at, side="right")
        return empty

    @cached_property
    def _waits(self) -> Mask:
        """The next segment of the path has data below what was sent on others: it was given to the path already."""
        begins = np.append(self.path.data_begins, -1)[self._gap[1]]
        waits: Mask = (begins >= 0) & (begins < self._at(self.flow.sent, 0.0))
        return waits

    @cached_property
    def held_back(self) -> Mask:
        """A segment that is not full waits, although the path is empty: TCP_CORK or Nagle's algorithm holds it back."""
        sizes = np.append(self.path.sizes, np.inf)[self._gap[1]]
        held: Mask = self.is_empty & self._waits & (sizes < self.path.sizes.max(initial=0.0))
        return held

    def _is_blocked(self) -> Mask:
        """Nothing new was sent on any path for a round trip, nor on this one, although not all had arrived."""
        sent, acknowledged = self._at(self.flow.sent, 0.0), self._at(self.flow.acknowledged, 0.0)
        times = np.concatenate([[-np.inf], self.flow.sent[:, 0], [np.inf]])
        place = np.searchsorted(self.flow.sent[:, 0], self.at, side="right")
        none = (times[place + 1] - times[place] > self.shortest_s + self.length) & ~self._waits
        blocked: Mask = none & (self._gap[0] > self.path.rtt_s + self.length) & (acknowledged < sent)
        return blocked & (self.first_path >= 0)

    def _unused(self) -> Mask:
        """Everything that was sent on the path had arrived, and nothing more was sent for a round trip."""
        last = np.append(-np.inf, self.path.sent_s)[self._gap[1]]
        unused: Mask = self.is_empty & (self.at - last > self.path.rtt_s + self.length) & ~self._waits
        return unused

    @cached_property
    def _pauses(self) -> list[tuple[float, float]]:
        """Between which segments nothing was sent for longer than a timeout, and nothing was on its way in the end.

        Then windows decay (RFC 2861).
        """
        sent, left = self.path.sent_s, np.maximum.accumulate(self.path.left_s)
        pauses = np.flatnonzero((np.diff(sent) > _IDLE_S + self.path.usual_rtt_s) & (left[:-1] <= sent[1:]))
        return [(float(sent[at]), float(sent[at + 1])) for at in pauses.tolist()]

    def _decayed(self) -> Mask:
        """From a pause on, until the flight is what it was at most between it and the pause or repair before."""
        found = np.zeros(len(self.at), np.bool_)
        repairs = np.sort(self.path.repaired_s)
        since = -np.inf
        for ended, begin in self._pauses:
            last = np.append(-np.inf, repairs)[np.searchsorted(repairs, ended)]
            first, place = np.searchsorted(self.at, (max(since, last), ended)).tolist()
            before = min(float(self.flight[first : place + 1].max(initial=0.0)), self.path.flight)
            place, since = int(np.searchsorted(self.at, begin)), begin
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
