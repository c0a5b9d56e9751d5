"""What a capture at the sender says of each path, and of the data of a session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from anabranch.results import sequence
from anabranch.results.capture import Packets
from anabranch.results.capturefile import Integers, Mask
from anabranch.results.connections import Session
from anabranch.results.recording import Array

_RATE_WINDOWS_S = (0.05, 0.2)
"""A path's rate is measured over one round trip, but over no shorter and no longer time than this."""

_BEST = 0.9
"""What a path carried at its best: this part of its bytes was delivered at no higher rate."""

_SUSTAINED_S = 0.5
"""A rate that a path had for so long counts, even if it was slower at most times."""

_TRAINS = (10, 4, 2, 1)
"""So many segments follow the first of a train. Short trains are of use where windows are too small for longer ones."""

_ACKNOWLEDGED = 2
"""A receiver acknowledges at once when so many full segments have arrived (RFC 5681, section 4.2)."""

_MOST = 0.98
"""Hardly any value is larger than this part of all."""

_LATE = 0.2
"""Where packets keep their order, less than this part of the repairs is needless."""

_LEAST_TRAINS = 10
"""So many trains give a rate."""

_TRAIN_SENT = 0.1
"""A train was sent at once if it took less than this part of the time in which it arrived: the path spaced it."""

_AT_FULL = 0.8
"""Losses of a full queue met a longer one than this part of all segments."""

_FEW_RANDOM, _MOST_RANDOM = 0.1, 0.25
"""So much of the losses met less than the median queue: hardly any of them is random, or at least half of them are.

Half of those at random do, and none of a full queue. Between the two, each loss is judged by itself.
"""

_SAME_S = 1e-9
"""Times that differ by less are the same: they are computed."""

_AT_RECEIVER_S = 0.0005
"""Acknowledgments follow data sooner than this at the receiver, and over hardly any network at the sender."""

SEGMENT_BYTES = 1500
"""A full segment, with its headers."""

_READS_S = 0.2
"""A program that reads leaves nothing unread for so long."""

_VARIES = 1 / 16
"""The window of a program that reads is smaller than its largest by less than this part: buffers have overheads."""

_TOO_EARLY = 0.9
"""An acknowledgment within this part of a round trip after a repair is that of the first transmission."""


@dataclass(frozen=True)
class PathEvidence:
    """New segments of a path's subflows in the order in which they were sent, and what else its packets say.

    Attributes:
        name: The path.
        opened_s: When its first subflow was established.
        backups: When it became a backup (1) or no longer one (0), shape (n, 2).
        sent_s: When each segment was sent for the first time.
        sizes: Its bytes.
        data_begins: The first byte of each in the session's data; -1 where it has none.
        copies: Whether another path had sent its first byte before.
        known_s: When the sender knew that it had arrived; infinite if never.
        repaired_s: When it was sent again; infinite if never.
        doubled: Whether the receiver said that it arrived twice.
        closed_s: When its connection ended, if another one followed on the path; else infinite.
        rtts_s: The instants of samples of the round trip, and the samples, shape (n, 2).
    """

    name: str
    opened_s: float
    backups: Array
    sent_s: Array
    sizes: Array
    data_begins: Integers
    copies: Mask
    known_s: Array
    repaired_s: Array
    doubled: Mask
    closed_s: Array
    rtts_s: Array

    @cached_property
    def rtt_s(self) -> float:
        """The shortest round trip."""
        return float(self.rtts_s[:, 1].min()) if len(self.rtts_s) else 0.0

    @cached_property
    def _in_order_s(self) -> tuple[Array, Array]:
        """When segments with a sample of the round trip were sent, and the samples, as if none overtook another.

        A queue delays a segment and all behind it. What delays a segment that others overtake is no queue.
        """
        if not len(self.rtts_s):
            return np.empty(0), np.empty(0)
        known, rtts = self.rtts_s.T
        order = np.argsort(known - rtts, kind="stable")
        sent = (known - rtts)[order]
        return sent, np.minimum.accumulate(known[order][::-1])[::-1] - sent

    @cached_property
    def overtaken_s(self) -> float:
        """By how much segments are later, at most but for a few, than some that were sent after them.

        They were not lost: what delays them is jitter, and no queue. Zero where segments keep their order.
        """
        kept = np.isfinite(self.known_s) & ~self.lost
        if not kept.any():
            return 0.0
        known = self.known_s[kept]
        return float(np.quantile(known - np.minimum.accumulate(known[::-1])[::-1], _MOST))

    @cached_property
    def usual_rtt_s(self) -> float:
        """The median round trip."""
        return float(np.median(self.rtts_s[:, 1])) if len(self.rtts_s) else 0.0

    @cached_property
    def needless(self) -> Mask:
        """Which segments were sent again although they arrived: twice, or before the repair could be acknowledged."""
        early = self.known_s < self.repaired_s + _TOO_EARLY * self.rtt_s
        return np.isfinite(self.repaired_s) & (early | self.doubled)

    @cached_property
    def lost(self) -> Mask:
        """Which segments were lost."""
        return np.isfinite(self.repaired_s) & ~self.needless

    @cached_property
    def is_first(self) -> Mask:
        """Which segments have data that was not sent before."""
        return (self.data_begins >= 0) & ~self.copies

    @cached_property
    def reorders(self) -> bool:
        """Whether segments overtake each other, and much of what was sent again was late, and not lost.

        Then the rest may be, too: a receiver discards what is older than the timestamp of a repair (RFC 7323, PAWS).
        """
        repairs = np.count_nonzero(np.isfinite(self.repaired_s))
        return self.overtaken_s > 0.0 and bool(np.count_nonzero(self.needless) >= _LATE * repairs)

    @cached_property
    def ranks(self) -> Array:
        """Of each segment, the part of all segments that met no longer queue. Its neighbours tell what it met."""
        queued = self.queued_s(self.sent_s)
        # Equal delays count half.
        ordered = np.sort(queued)
        return (np.searchsorted(ordered, queued) + np.searchsorted(ordered, queued, side="right")) / 2 / len(queued)

    @cached_property
    def full_from(self) -> float:
        """From which rank on a loss is that of a full queue: all are where hardly any met a short one."""
        short = float(np.mean(self.ranks[self.lost] < 0.5)) if self.lost.any() else 1.0
        return 0.0 if short < _FEW_RANDOM else np.inf if short >= _MOST_RANDOM else _AT_FULL

    @property
    def is_at_receiver(self) -> bool:
        """At the receiver, acknowledgments follow data at once."""
        return len(self.rtts_s) > 0 and self.usual_rtt_s < _AT_RECEIVER_S

    @cached_property
    def arrivals(self) -> tuple[Array, Array, Mask]:
        """When the sender knew of each segment that it had arrived, the segment's bytes, and whether it is a copy."""
        order = np.argsort(self.known_s, kind="stable")
        order = order[np.isfinite(self.known_s[order])]
        return self.known_s[order], self.sizes[order], self.copies[order]

    @cached_property
    def rate(self) -> float:
        """What it carried at its best, in bytes a second: mostly, for a while, or within trains of segments."""
        window = min(max(self.rtt_s, _RATE_WINDOWS_S[0]), _RATE_WINDOWS_S[1])
        rates, weights = self._rates(window)
        if not len(rates):
            return float(self.arrivals[1].sum()) / window
        order = np.argsort(rates)
        total = np.cumsum(weights[order])
        mostly = float(rates[order][np.searchsorted(total, _BEST * total[-1])])
        return max(mostly, float(self._rates(_SUSTAINED_S)[0].max(initial=0.0)), self._train_rate())

    def _rates(self, window: float) -> tuple[Array, Array]:
        """Bytes a second over times of this length and more that end with an arrival, and the bytes of this one."""
        times, sizes, _ = self.arrivals
        total = np.cumsum(sizes)
        # From the last arrival before the window: so many bytes took this time, whatever a window begins within.
        since = np.searchsorted(times, times - window, side="right") - 1
        whole = since >= 0
        return (total[whole] - total[since[whole]]) / (times[whole] - times[since[whole]]), sizes[whole]

    def _train_rate(self) -> float:
        """The median rate at which segments arrived that had been sent at once: the path spaced them.

        A path that the sender never fills for a whole round trip has its full rate within a train.
        """
        arrived, sent, segments, total = self._prompt_arrivals()
        for train in _TRAINS:
            # From the last arrival that is so many segments before.
            since = np.searchsorted(segments, segments - train, side="right") - 1
            ends = np.flatnonzero(since >= 0)
            since = since[ends]
            took, apart = arrived[ends] - arrived[since], sent[ends] - sent[since]
            spaced = (apart >= 0) & (apart < took * _TRAIN_SENT)
            if np.count_nonzero(spaced) >= _LEAST_TRAINS:
                return float(np.median((total[ends] - total[since])[spaced] / took[spaced]))
        return 0.0

    def _prompt_arrivals(self) -> tuple[Array, Array, Integers, Array]:
        """Acknowledgments that followed an arrival at once: their instants, and when this segment was sent.

        The receiver waits for a second segment before it acknowledges, or until a timer ends. So the instant of an
        acknowledgment tells of the last segment alone that it covers, and of none if it covers a single one, unless the
        receiver waits for no second one: most of its acknowledgments cover one, or segments before are missing.

        The last two values are how many segments had arrived by then, and how many bytes.
        """
        order = np.argsort(self.known_s, kind="stable")
        order = order[np.isfinite(self.known_s[order]) & np.isinf(self.repaired_s[order])]
        arrived, total = self.known_s[order], np.cumsum(self.sizes[order])
        lasts = np.flatnonzero(np.diff(arrived, append=np.inf) > 0)
        covered = np.diff(lasts, prepend=-1)
        # Whether a segment that was sent before arrived later.
        missing = np.maximum.accumulate(self.left_s)[order] > arrived
        prompt = (covered >= min(_ACKNOWLEDGED, np.median(covered) if len(covered) else 0)) | missing[lasts]
        lasts = lasts[prompt]
        return arrived[lasts], self.sent_s[order][lasts], lasts + 1, total[lasts]

    @property
    def flight(self) -> float:
        """What fills the path without a queue, in bytes."""
        return self.rate * self.rtt_s

    @property
    def left_s(self) -> Array:
        """When each segment had arrived, or its connection was given up."""
        return np.minimum(self.known_s, self.closed_s)

    def in_flight(self, at: Array) -> Array:
        """Bytes on their way at instants. What is lost leaves after a round trip."""
        left = np.where(self.lost, np.minimum(self.left_s, self.sent_s + self.usual_rtt_s), self.left_s)
        order = np.argsort(left)
        sent = np.concatenate([[0.0], np.cumsum(self.sizes)])[np.searchsorted(self.sent_s, at, side="right")]
        gone = np.concatenate([[0.0], np.cumsum(self.sizes[order])])
        on_way: Array = sent - gone[np.searchsorted(left[order], at, side="right")]
        return on_way

    def queued_s(self, at: Array) -> Array:
        """By how much the round trip of what was sent last was longer than the shortest, at instants."""
        sent, rtts = self._in_order_s
        if not len(sent):
            return np.zeros(len(at))
        longer: Array = np.interp(at, sent, rtts) - self.rtt_s
        return longer

    def standing_s(self, at: Array) -> Array:
        """The queue that is still there at instants: what the last segment met, less the time in which it drained.

        It did not drain if the next segment meets a queue as well: others filled it meanwhile.
        """
        times, met = self._queues
        place = np.searchsorted(times, at, side="right")
        last, then = np.append(-np.inf, times)[place], np.append(0.0, met)[place]
        standing: Array = np.maximum(then - (at - last), np.minimum(then, np.append(met, 0.0)[place]))
        return standing

    @cached_property
    def _queues(self) -> tuple[Array, Array]:
        """When segments were sent, and the queue that they met; none of lone ones, whose acknowledgment is delayed."""
        times, rtts = self._in_order_s
        following = np.append(self.sent_s, np.inf)[np.searchsorted(self.sent_s, times + _SAME_S, side="right")]
        prompt = (following < times + rtts - self.rtt_s) | (rtts <= self.rtt_s)
        return times[prompt], rtts[prompt] - self.rtt_s


def of_paths(captured: Packets, chosen: Session) -> list[PathEvidence]:
    """The paths of a session, each with all its subflows, by its packets."""
    own = sequence.of_packets(captured, 1).subflows
    duplicates = [sequence.duplicates_of(captured, stream) for stream in _streams(captured)]
    paths = []
    for name in dict.fromkeys(each.path for each in own):
        subflows = [each for each in own if each.path == name]
        streams = [each for each in chosen.streams if each.path == name]
        parts = [(*_segments(each, duplicates[each.number]), _closed(each, subflows)) for each in subflows]
        sent, sizes, data, copies, known, repaired, doubled, closed = (
            np.concatenate(column) for column in zip(*parts, strict=True)
        )
        order = np.argsort(sent, kind="stable")
        rtts = np.concatenate([each.rtts_s for each in subflows])
        backups = np.concatenate([each.backups for each in streams])
        paths.append(
            PathEvidence(
                name=name,
                opened_s=min(each.opened_s for each in streams),
                backups=backups[np.argsort(backups[:, 0], kind="stable")],
                sent_s=sent[order],
                sizes=sizes[order],
                data_begins=data[order],
                copies=copies[order],
                known_s=known[order],
                repaired_s=repaired[order],
                doubled=doubled[order],
                closed_s=closed[order],
                rtts_s=rtts[np.argsort(rtts[:, 0], kind="stable")],
            )
        )
    return paths


def packets_of(packets: Packets, number: int) -> Packets:
    """The packets of one session, as those of client 0."""
    own = packets.client == number
    arrays = {name: getattr(packets, name)[own] for name in packets.__dataclass_fields__ if name != "paths"}
    return Packets(**{**arrays, "paths": packets.paths, "client": np.zeros(int(own.sum()), np.int64)})


def _streams(captured: Packets) -> list[Integers]:
    return sequence.streams_of(captured, np.arange(len(captured.time_s)))


def _segments(
    subflow: sequence.Subflow, duplicates: Integers
) -> tuple[Array, Array, Integers, Mask, Array, Array, Mask]:
    """Of new segments, the attributes of `PathEvidence` from `sent_s` to `doubled`."""
    is_again = subflow.kinds == sequence.KINDS.index(sequence.RETRANSMISSION)
    new, again = np.flatnonzero(~is_again), np.flatnonzero(is_again)
    begins, ends = subflow.begins[new], subflow.ends[new]
    acks, sacks = (subflow.acknowledged_s, subflow.acknowledged), (subflow.sacked_s, subflow.sacked)
    repaired, doubled = np.full(len(new), np.inf), np.zeros(len(new), np.bool_)
    for time, (first, last) in zip(subflow.sent_s[again].tolist(), _within(begins, ends, subflow, again), strict=True):
        repaired[first:last] = np.minimum(repaired[first:last], time)
    for begin, end in duplicates.tolist():
        doubled[np.searchsorted(ends, begin, side="right") : np.searchsorted(begins, end)] = True
    copies = subflow.kinds[new] == sequence.KINDS.index(sequence.COPY)
    known = sequence.known_from(ends, acks, sacks)
    sizes = (ends - begins).astype(float)
    return subflow.sent_s[new], sizes, subflow.data_begins[new], copies, known, repaired, doubled


def _closed(subflow: sequence.Subflow, others: Sequence[sequence.Subflow]) -> Array:
    """When a subflow ended, for each new segment; infinite unless another one of the path begins later."""
    last = max(float(subflow.sent_s.max(initial=-np.inf)), float(subflow.acknowledged_s.max(initial=-np.inf)))
    is_followed = any(last < each.sent_s.min(initial=np.inf) < np.inf for each in others)
    new = subflow.kinds != sequence.KINDS.index(sequence.RETRANSMISSION)
    return np.full(np.count_nonzero(new), last if is_followed else np.inf)


def _within(begins: Integers, ends: Integers, subflow: sequence.Subflow, again: Integers) -> list[list[int]]:
    """The segments that each retransmission has bytes of: the first one, and the one behind the last."""
    firsts = np.searchsorted(ends, subflow.begins[again], side="right")
    places: list[list[int]] = np.stack([firsts, np.searchsorted(begins, subflow.ends[again])], axis=1).tolist()
    return places


@dataclass(frozen=True)
class DataEvidence:
    """The session's data.

    Attributes:
        requests_s: When each response was due.
        last_sent_s: When all of it was sent, but for less than a full segment: Nagle's algorithm holds that back.
        done_s: When all of it had arrived.
        read_s: When the client's program had read it, where windows tell that this took longer; else the same.
        sent: When data was sent that was new, and up to which byte it then had been, shape (n, 2).
        later: When data was sent for the first time, and the first byte of what was sent later still, shape (n, 2).
        acknowledged: When data was acknowledged, and up to which byte, shape (n, 2).
        window_ends: The same with the end of the advertised window.
        first_s: For each row of `acknowledged`, when the first byte without an acknowledgment was sent for the first
            time; infinite if never.
        first_path: The place of the path that it was sent on, or is to be sent on; -1 if it never is.
    """

    requests_s: Array
    last_sent_s: Array
    done_s: Array
    read_s: Array
    sent: Array
    later: Array
    acknowledged: Array
    window_ends: Array
    first_s: Array
    first_path: Integers


def of_data(own: Packets, chosen: Session, paths: Sequence[PathEvidence]) -> DataEvidence:
    """What the packets of a session say of its data."""
    streams = _streams(own)
    counted = sequence.data_of(own, streams) if chosen.is_multipath else sequence.bytes_of(own, streams)
    begins, acks = counted[:, 0], counted[:, 1]
    sending = np.flatnonzero(own.is_sent & (own.payload > 0) & (begins >= 0))
    heard = np.flatnonzero(~own.is_sent & (acks >= 0))
    scales, of = np.zeros((2, len(own.time_s)), np.int64)
    for number, stream in enumerate(streams):
        scales[stream], of[stream] = sequence.scale_of(own, stream), number
    ends = np.maximum.accumulate(begins[sending] + own.payload[sending])
    new = np.diff(ends, prepend=-1) > 0
    sent = np.stack([own.time_s[sending[new]], ends[new].astype(np.float64)], axis=1)
    reached = np.maximum.accumulate(acks[heard])
    window_ends = np.maximum.accumulate(acks[heard] + (own.window[heard] << scales[heard]))
    times = own.time_s[heard]
    first_s, first_path = _first_sent(paths, reached)
    # Without a handshake the scale of the windows is unknown, and their ends are.
    scaled = slice(None) if all(each.has_begun for each in chosen.streams) else slice(0)
    requests_s, lasts, done_s = _responses(chosen.requests_s, sent, times, reached)
    last_sent_s = _last_sent(sent, lasts, paths, int(own.payload[sending].max(initial=1)))
    return DataEvidence(
        requests_s=requests_s,
        last_sent_s=last_sent_s,
        done_s=done_s,
        read_s=_read(requests_s, done_s, of[heard][scaled], times[scaled], reached[scaled], window_ends[scaled]),
        sent=sent,
        later=_later(paths),
        acknowledged=np.stack([times, reached], axis=1),
        window_ends=np.stack([times, window_ends], axis=1)[scaled],
        first_s=first_s,
        first_path=first_path,
    )


def _first_sent(paths: Sequence[PathEvidence], levels: Integers) -> tuple[Array, Integers]:
    """When the byte behind each level of the data was sent for the first time, and on which path."""
    begins, ends, sent = (
        np.concatenate(column)
        for column in zip(
            *((path.data_begins, path.data_begins + path.sizes, path.sent_s) for path in paths), strict=True
        )
    )
    of = np.repeat(np.arange(len(paths)), [len(path.sent_s) for path in paths])
    order = np.lexsort((sent, begins))
    known, firsts = np.unique(begins[order], return_index=True)
    place = np.searchsorted(known, levels, side="right") - 1
    chosen = order[firsts[np.maximum(place, 0)]]
    covered = (place >= 0) & (begins[chosen] >= 0) & (ends[chosen] > levels)
    return np.where(covered, sent[chosen], np.inf), np.where(covered, of[chosen], -1)


def _responses(requests: Array, sent: Array, times: Array, reached: Integers) -> tuple[Array, Integers, Array]:
    """When responses were due, the rows of `sent` that end them, and when the last byte had arrived."""
    # A request that arrives while nothing was sent since the one before is a part of it, or sent again.
    number = np.searchsorted(sent[:, 0], requests)
    number = number[number < len(sent)]
    firsts, places = np.unique(number, return_index=True)
    begins = requests[: len(number)][places]
    if not len(firsts) or firsts[0] > 0:
        # The capture begins behind the first request.
        firsts, begins = np.append(0, firsts), np.append(sent[0, 0], begins)
    lasts = np.append(firsts[1:], len(sent)) - 1
    place = np.searchsorted(reached, sent[lasts, 1])
    done = np.append(times, times[-1] if len(times) else sent[-1, 0])[np.minimum(place, len(times))]
    return begins, lasts, np.maximum(done, sent[lasts, 0])


def _last_sent(sent: Array, lasts: Integers, paths: Sequence[PathEvidence], segment: int) -> Array:
    """When all but less than a full segment of each response was sent.

    Linux gives data to subflows ahead of what they can send, so that a path may send the end of a response while
    another one has yet to send what is before it.

    Args:
        sent: As in `DataEvidence`.
        lasts: The rows of it that end responses.
        paths: The paths.
        segment: The bytes of a full segment.
    """
    almost = np.searchsorted(sent[:, 1], sent[lasts, 1] - segment, side="right")
    last_s: Array = sent[np.maximum(almost, np.append(0, lasts[:-1] + 1)), 0]
    for path in paths:
        begins = path.data_begins[path.is_first]
        response = np.searchsorted(sent[lasts, 1], begins, side="right")
        counted = (response < len(lasts)) & (begins <= np.append(sent[lasts, 1], 0)[response] - segment)
        np.maximum.at(last_s, response[counted], path.sent_s[path.is_first][counted])
    return last_s


def _later(paths: Sequence[PathEvidence]) -> Array:
    """When data was sent for the first time, and the first byte of what was sent later still; infinite if none was."""
    times = np.concatenate([path.sent_s[path.is_first] for path in paths])
    begins = np.concatenate([path.data_begins[path.is_first] for path in paths])
    order = np.argsort(times, kind="stable")
    smallest = np.minimum.accumulate(begins[order][::-1])[::-1].astype(np.float64)
    return np.stack([times[order], np.append(smallest, np.inf)[1:]], axis=1)


def _read(requests: Array, done: Array, of: Integers, times: Array, reached: Integers, window_ends: Integers) -> Array:
    """When the client's program had read responses that had arrived: when the window opened again, where that tells.

    A window that has become smaller by more than what had just arrived, and opens again although nothing arrives, tells
    of a program that read nothing. So does one that is closed; such a program may give up the connection, and makes its
    next request over another one. Windows that do not open as far as before were larger for other reasons: receivers
    adjust them, each subflow its own, and one with a smaller window repeats the end that another one has advertised.
    After the last response, no request waits for a program that reads no more.

    Args:
        requests: When each response was due.
        done: When all of each had arrived.
        of: The subflows of acknowledgments.
        times: When acknowledgments arrived.
        reached: Up to which byte all had arrived then.
        window_ends: Up to which byte the window then reached.
    """
    read = done.copy()
    if not len(times):
        return read
    windows = window_ends - reached
    largest = _largest_before(of, np.where(np.diff(window_ends, prepend=-1) > 0, windows, 0).clip(0)).tolist()
    lasts = np.searchsorted(times, done[:-1], side="right") - 1
    just = np.append(0, reached)[np.searchsorted(times, times[lasts] - _READS_S)]
    opens = np.searchsorted(window_ends, window_ends[lasts], side="right")
    for response, (last, before, at) in enumerate(zip(lasts.tolist(), just.tolist(), opens.tolist(), strict=True)):
        closed, tells = windows[last] < SEGMENT_BYTES, False
        if at < len(times) and reached[at] == reached[last]:
            unread = largest[last] - windows[last]
            tells = windows[at] >= largest[last] and unread > max(reached[last] - before, _VARIES * largest[last])
        if closed or tells:
            opened_s = times[at] if at < len(times) else np.inf
            read[response] = max(done[response], min(opened_s, requests[response + 1]))
    return read


def _largest_before(of: Integers, windows: Integers) -> Integers:
    """For each acknowledgment, the largest window of those before it of the same subflow; zero for the first one."""
    largest = np.zeros(len(windows), np.int64)
    for subflow in np.unique(of):
        own = np.flatnonzero(of == subflow)
        largest[own[1:]] = np.maximum.accumulate(windows[own])[:-1]
    return largest
