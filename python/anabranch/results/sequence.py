"""What a sender's packets say of each subflow, as tcptrace shows it: segments, acknowledgments, and round trips."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from anabranch.results import capture
from anabranch.results.capture import Packets
from anabranch.results.capturefile import Integers, Mask
from anabranch.results.recording import Array

if TYPE_CHECKING:
    import polars as pl

SEGMENT, RETRANSMISSION, COPY = KINDS = ("segment", "retransmission", "copy")
"""What a segment with payload is."""

# The other rows of the table.
ACKNOWLEDGMENT, SACK, ROUND_TRIP, DATA_ACKNOWLEDGMENT = "acknowledgment", "sack", "round-trip", "data-acknowledgment"


@dataclass(frozen=True)
class Subflow:
    """A subflow as its sender sees it. Bytes count from the first byte of payload.

    Attributes:
        session: The number of its session.
        number: Its number within the session, in the order in which they were opened.
        path: Its path.
        sent_s: When each segment with payload was sent.
        begins: The first byte of each, in the subflow.
        ends: The byte behind each.
        kinds: What each is: the place of ``segment``, ``retransmission`` or ``copy`` in `KINDS`. A copy is new to this
            subflow, and another one has sent its first byte before.
        data_begins: The first byte of each, in the data of the connection; -1 where it has no mapping.
        acknowledged_s: When each acknowledgment arrived.
        acknowledged: Up to which byte it acknowledges.
        window_ends: Up to which byte the window that it advertises reaches. Of Multipath TCP that is about the data of
            the whole connection; here it begins at the acknowledgment, as tcptrace draws it.
        sacked_s: When SACK blocks arrived that said something new.
        sacked: The first byte of what was new in each, and the byte behind it, shape (n, 2).
        rtts_s: The instants of samples of the round trip, and the samples, shape (n, 2).
    """

    session: int
    number: int
    path: str
    sent_s: Array
    begins: Integers
    ends: Integers
    kinds: Integers
    data_begins: Integers
    acknowledged_s: Array
    acknowledged: Integers
    window_ends: Integers
    sacked_s: Array
    sacked: Integers
    rtts_s: Array


@dataclass(frozen=True)
class DataAcknowledgments:
    """How far the data of a session's connections was acknowledged.

    Attributes:
        session: The number of the session.
        times_s: When each arrived.
        acknowledged: Up to which byte.
    """

    session: int
    times_s: Array
    acknowledged: Integers


@dataclass(frozen=True)
class Sequences:
    """What the packets of a run say.

    Attributes:
        subflows: By session and number.
        data: By session; none of plain TCP.
    """

    subflows: tuple[Subflow, ...]
    data: tuple[DataAcknowledgments, ...]

    def of(self, session: int) -> Sequences:
        """Those of one session."""
        return Sequences(
            tuple(each for each in self.subflows if each.session == session),
            tuple(each for each in self.data if each.session == session),
        )


def names(subflows: Sequence[Subflow]) -> list[str]:
    """What subflows are called: by their path, and by their number where a path has several."""
    on = [each.path for each in subflows]
    return [each.path if on.count(each.path) == 1 else f"{each.path}, subflow {each.number}" for each in subflows]


DATA_TITLE = "Sequence numbers of the data"
"""What the graph of the whole connection is called, in figures and on pages."""


def sequence_title(name: str) -> str:
    """What the graph of a subflow's segments is called."""
    return f"Sequence numbers of {name}"


def round_trips_title(name: str) -> str:
    """What the graph of a subflow's round trips is called."""
    return f"Round trips of {name}"


def of_packets(packets: Packets, sessions: int) -> Sequences:
    """The subflows of the first sessions.

    Args:
        packets: Those of the server's end, which sends.
        sessions: Of how many sessions.
    """
    subflows: list[Subflow] = []
    data: list[DataAcknowledgments] = []
    for session in range(sessions):
        own = np.flatnonzero(packets.client == session)
        streams = streams_of(packets, own)
        counted = data_of(packets, streams)
        subflows += _subflows(packets, session, streams, counted)
        known = own[counted[own, 1] >= 0]
        if len(known):
            # Most acknowledgments of a subflow repeat that of the data.
            known = known[np.diff(np.maximum.accumulate(counted[known, 1]), prepend=-1) > 0]
            data.append(DataAcknowledgments(session, packets.time_s[known], counted[known, 1]))
    return Sequences(tuple(subflows), tuple(data))


def streams_of(packets: Packets, own: Integers) -> list[Integers]:
    """The packets of each TCP connection of a client, the connections in the order of their beginnings."""
    keys = packets.path[own] << 16 | packets.port[own]
    _, firsts, of = np.unique(keys, return_index=True, return_inverse=True)
    return [own[of == number] for number in np.argsort(firsts)]


def data_of(packets: Packets, streams: list[Integers]) -> Integers:
    """The first byte of each packet in the data, and the byte up to which it acknowledges the peer's; -1 without.

    A connection whose predecessor was given up begins where that one's data ended.
    """
    counted = np.full((len(packets.time_s), 2), -1)
    begins = [bool(packets.begins_connection[stream].any()) for stream in streams]
    of_connection = np.maximum(np.cumsum(begins), 1).tolist()
    offset = 0
    for connection in sorted(set(of_connection)):
        members = [s for s, number in zip(streams, of_connection, strict=True) if number == connection]
        joined = np.sort(np.concatenate(members))
        mapped = joined[packets.is_sent[joined] & (packets.data_sequence[joined] >= 0) & (packets.payload[joined] > 0)]
        if not len(mapped):
            continue
        first = int(packets.data_sequence[mapped[0]])
        counted[mapped, 0] = offset + capture.unwrapped(packets.data_sequence[mapped], first)
        acks = joined[~packets.is_sent[joined] & (packets.data_acknowledged[joined] >= 0)]
        acks = acks[acks > mapped[0]]
        counted[acks, 1] = offset + capture.unwrapped(packets.data_acknowledged[acks], first)
        offset = int((counted[mapped, 0] + packets.payload[mapped]).max())
    return counted


def bytes_of(packets: Packets, streams: list[Integers]) -> Integers:
    """The same as `data_of` of connections of TCP that follow each other: the bytes of their streams."""
    counted = np.full((len(packets.time_s), 2), -1)
    offset = 0
    for stream in streams:
        segments, acks, reached = _reached(packets, stream)
        if not len(segments):
            continue
        counted[segments, 0] = offset + capture.unwrapped(
            packets.sequence[segments], int(packets.sequence[segments[0]])
        )
        counted[acks, 1] = offset + reached
        offset = int((counted[segments, 0] + packets.payload[segments]).max())
    return counted


def _subflows(packets: Packets, session: int, streams: list[Integers], counted: Integers) -> Iterator[Subflow]:
    sent = [stream[packets.is_sent[stream] & (packets.payload[stream] > 0)] for stream in streams]
    copies = _copies(np.sort(np.concatenate(sent)) if sent else np.empty(0, np.int64), counted[:, 0])
    for number, (stream, segments) in enumerate(zip(streams, sent, strict=True)):
        first = packets.sequence[segments[0]] if len(segments) else 0
        begins = capture.unwrapped(packets.sequence[segments], int(first))
        ends = begins + packets.payload[segments]
        again = begins < np.concatenate([[0], np.maximum.accumulate(ends)[:-1]])[: len(ends)]
        kinds = np.where(again, KINDS.index(RETRANSMISSION), KINDS.index(SEGMENT))
        kinds[~again & np.isin(segments, copies)] = KINDS.index(COPY)
        _, acks, reached = _reached(packets, stream)
        # An acknowledgment may be overtaken.
        acknowledged = np.maximum.accumulate(reached) if len(reached) else reached
        sacked_s, sacked = _sacked(packets, acks, reached)
        times, arrived = packets.time_s[segments], packets.time_s[acks]
        yield Subflow(
            session=session,
            number=number,
            path=packets.paths[packets.path[stream[0]]],
            sent_s=times,
            begins=begins,
            ends=ends,
            kinds=kinds,
            data_begins=counted[segments, 0],
            acknowledged_s=arrived,
            acknowledged=acknowledged,
            window_ends=reached + (packets.window[acks] << scale_of(packets, stream)),
            sacked_s=sacked_s,
            sacked=sacked,
            rtts_s=_rtts((times, begins, ends), (arrived, acknowledged), (sacked_s, sacked)),
        )


def _reached(packets: Packets, stream: Integers) -> tuple[Integers, Integers, Integers]:
    """A stream's segments with payload, the acknowledgments after the first of them, and what each acknowledges."""
    segments = stream[packets.is_sent[stream] & (packets.payload[stream] > 0)]
    acks = stream[~packets.is_sent[stream] & packets.has_ack[stream] & ~packets.is_syn[stream]]
    acks = acks[acks > segments[0]] if len(segments) else acks[:0]
    first = int(packets.sequence[segments[0]]) if len(segments) else 0
    return segments, acks, capture.unwrapped(packets.acknowledged[acks], first)


def scale_of(packets: Packets, stream: Integers) -> int:
    """The shift of the windows that the other end of a stream advertises; 0 where its SYN was not captured."""
    scales = packets.scale[stream[~packets.is_sent[stream] & packets.is_syn[stream]]]
    return max(int(scales.max(initial=0)), 0)


def _copies(sent: Integers, data_begins: Integers) -> Integers:
    """The packets whose first byte of data an earlier one of the session had, too."""
    mapped = sent[data_begins[sent] >= 0]
    _, firsts = np.unique(data_begins[mapped], return_index=True)
    return np.delete(mapped, firsts)


def _sacked(packets: Packets, acks: Integers, reached: Integers) -> tuple[Array, Integers]:
    """When SACK blocks arrived, and what was new in each: a block says the same again until it grows."""
    edges, there, twice = _blocks(packets, acks, reached)
    there &= ~twice
    at, number = np.nonzero(there)
    times: list[float] = []
    new: list[tuple[int, int]] = []
    known: dict[int, int] = {}
    for time, (begin, end) in zip(packets.time_s[acks[at]].tolist(), edges[at, number].tolist(), strict=True):
        # A block mostly grows at its end.
        low = known.get(begin, begin)
        if end > low:
            known[begin] = end
            times.append(time)
            new.append((low, end))
    return np.array(times, np.float64), np.array(new, np.int64).reshape(-1, 2)


def _blocks(packets: Packets, acks: Integers, reached: Integers) -> tuple[Integers, Mask, Mask]:
    """The edges of SACK blocks, which of them are there, and which of these are of bytes that arrived twice."""
    blocks = packets.sacked[acks]
    edges = reached[:, np.newaxis, np.newaxis] + capture.signed(
        blocks - packets.acknowledged[acks][:, np.newaxis, np.newaxis]
    )
    there = blocks[:, :, 0] >= 0
    # A block below the acknowledgment, or a first one within the second, is of a duplicate (RFC 2883).
    twice = there & (edges[:, :, 1] <= reached[:, np.newaxis])
    first, second = edges[:, 0], edges[:, 1]
    twice[:, 0] |= there[:, 1] & (second[:, 0] <= first[:, 0]) & (first[:, 1] <= second[:, 1])
    return edges, there, twice


def duplicates_of(packets: Packets, stream: Integers) -> Integers:
    """The bytes of a stream that arrived twice, as the receiver says, shape (n, 2). They count as in `Subflow`."""
    sent, acks, reached = _reached(packets, stream)
    if not len(sent):
        return np.empty((0, 2), np.int64)
    edges, there, twice = _blocks(packets, acks, reached)
    # With the options of Multipath TCP there is often room for one block only.
    twice[:, 0] |= there[:, 0] & _are_parts(edges[:, 0], there[:, 0] & ~twice[:, 0], reached)
    found: Integers = edges[twice].reshape(-1, 2)
    return found


def _are_parts(firsts: Integers, there: Mask, reached: Integers) -> Mask:
    """Which first blocks are only a part of what is known to have arrived without a gap: of a duplicate (RFC 2883).

    The first block is of the segment that just arrived, with all that is next to it.

    Args:
        firsts: The first block of each acknowledgment, in their order, shape (n, 2).
        there: Which of them are to be looked at.
        reached: Up to where all had arrived then.
    """
    found = np.zeros(len(firsts), np.bool_)
    # What arrived beyond the acknowledgment: beginnings and ends of disjoint ranges, in order.
    begins: list[int] = []
    ends: list[int] = []
    for at in np.flatnonzero(there).tolist():
        begin, end = firsts[at].tolist()
        below = bisect.bisect_right(ends, int(reached[at]))
        del begins[:below], ends[:below]
        low, high = bisect.bisect_left(ends, begin), bisect.bisect_right(begins, end)
        if low < high:
            first, last = begins[low], ends[high - 1]
            found[at] = first <= begin and end <= last and high == low + 1 and (first, last) != (begin, end)
            begin, end = min(first, begin), max(last, end)
        begins[low:high], ends[low:high] = [begin], [end]
    return found


def _rtts(sent: tuple[Array, Integers, Integers], acks: tuple[Array, Integers], sacks: tuple[Array, Integers]) -> Array:
    """Samples of the round trip: from the sending of a segment to the first acknowledgment or SACK block of its end.

    As in Karn's rule, a segment that was sent twice gives none. Of those that one packet acknowledges, the last one
    that was sent gives the sample.
    """
    times, begins, ends = sent
    _, places, count = np.unique(begins, return_index=True, return_counts=True)
    once = places[count == 1]
    order = np.argsort(ends[once], kind="stable")
    once = once[order]
    first_s = known_from(ends[once], acks, sacks)
    known = np.isfinite(first_s)
    samples = np.stack([first_s[known], first_s[known] - times[once[known]]], axis=1)
    # Of several with one instant the shortest, which was sent last.
    samples = samples[np.lexsort((samples[:, 1], samples[:, 0]))]
    _, firsts = np.unique(samples[:, 0], return_index=True)
    return np.asarray(samples[firsts], dtype=np.float64)


def known_from(ends: Integers, acks: tuple[Array, Integers], sacks: tuple[Array, Integers]) -> Array:
    """When the sender first knew that bytes had arrived: by an acknowledgment, or by a SACK block; infinite if never.

    Args:
        ends: The bytes behind segments, in their order.
        acks: When acknowledgments arrived, and up to which byte.
        sacks: When SACK blocks arrived, and their bytes, shape (n, 2).
    """
    (arrived, acknowledged), (sacked_s, sacked) = acks, sacks
    place = np.searchsorted(acknowledged, ends)
    first_s = np.where(place < len(arrived), np.append(arrived, np.inf)[place], np.inf)
    lows, highs = np.searchsorted(ends, sacked.T, side="right")
    for at, low, high in zip(sacked_s.tolist(), lows.tolist(), highs.tolist(), strict=True):
        first_s[low:high] = np.minimum(first_s[low:high], at)
    return first_s


# --- The table ------------------------------------------------------------------------------------------------------


def frame(sequences: Sequences) -> pl.DataFrame:
    """The table of a run folder: a row per segment, acknowledgment, SACK block and sample of a round trip."""
    import polars as pl

    parts = [pl.DataFrame(schema=_schema())]
    for one in sequences.subflows:
        own = {"session": one.session, "subflow": one.number, "path": one.path}
        sent = {"begin_bytes": one.begins, "end_bytes": one.ends, "data_begin_bytes": one.data_begins}
        acks = {"end_bytes": one.acknowledged, "window_end_bytes": one.window_ends}
        sacks = {"begin_bytes": one.sacked[:, 0], "end_bytes": one.sacked[:, 1]}
        parts += [
            _rows(own, time_s=one.sent_s, kind=np.array(KINDS)[one.kinds], **sent),
            _rows(own, time_s=one.acknowledged_s, kind=ACKNOWLEDGMENT, **acks),
            _rows(own, time_s=one.sacked_s, kind=SACK, **sacks),
            _rows(own, time_s=one.rtts_s[:, 0], kind=ROUND_TRIP, rtt_s=one.rtts_s[:, 1]),
        ]
    for each in sequences.data:
        parts.append(
            _rows({"session": each.session}, time_s=each.times_s, kind=DATA_ACKNOWLEDGMENT, end_bytes=each.acknowledged)
        )
    return pl.concat(parts, how="diagonal")


def _schema() -> dict[str, Any]:
    import polars as pl

    numbers = dict.fromkeys(("begin_bytes", "end_bytes", "window_end_bytes", "data_begin_bytes"), pl.Int64)
    return {
        "session": pl.Int64,
        "subflow": pl.Int64,
        "path": pl.String,
        "time_s": pl.Float64,
        "kind": pl.String,
        **numbers,
        "rtt_s": pl.Float64,
    }


def _rows(own: Mapping[str, Any], **columns: Any) -> pl.DataFrame:
    import polars as pl

    schema = _schema()
    same = {name: value for name, value in {**own, **columns}.items() if isinstance(value, str | int)}
    rows = pl.DataFrame({name: values for name, values in columns.items() if name not in same})
    return rows.with_columns(pl.lit(value, schema[name]).alias(name) for name, value in same.items()).with_columns(
        pl.col("^data_begin_bytes$").replace(-1, None)
    )


def of_frame(table: pl.DataFrame) -> Sequences:
    """What the table was made of."""
    import polars as pl

    subflows, data = [], []
    for (session, number), rows in table.sort("session", "subflow", maintain_order=True).group_by(
        "session", "subflow", maintain_order=True
    ):
        kinds = {str(kind): own for (kind,), own in rows.group_by("kind", maintain_order=True)}
        none = rows.clear()
        if number is None:
            own = kinds.get(DATA_ACKNOWLEDGMENT, none)
            data.append(DataAcknowledgments(int(str(session)), own["time_s"].to_numpy(), own["end_bytes"].to_numpy()))
            continue
        sent = rows.filter(pl.col("kind").is_in([SEGMENT, RETRANSMISSION, COPY]))
        acks, sacks, rtts = (kinds.get(kind, none) for kind in (ACKNOWLEDGMENT, SACK, ROUND_TRIP))
        subflows.append(
            Subflow(
                session=int(str(session)),
                number=int(str(number)),
                path=str(rows["path"][0]),
                sent_s=sent["time_s"].to_numpy(),
                begins=sent["begin_bytes"].to_numpy(),
                ends=sent["end_bytes"].to_numpy(),
                kinds=np.array([KINDS.index(kind) for kind in sent["kind"]], np.int64),
                data_begins=sent["data_begin_bytes"].fill_null(-1).to_numpy(),
                acknowledged_s=acks["time_s"].to_numpy(),
                acknowledged=acks["end_bytes"].to_numpy(),
                window_ends=acks["window_end_bytes"].to_numpy(),
                sacked_s=sacks["time_s"].to_numpy(),
                sacked=sacks.select("begin_bytes", "end_bytes").to_numpy().reshape(-1, 2),
                rtts_s=rtts.select("time_s", "rtt_s").to_numpy().reshape(-1, 2),
            )
        )
    return Sequences(tuple(subflows), tuple(data))
