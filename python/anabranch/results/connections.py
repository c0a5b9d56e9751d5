"""The sessions of any capture of TCP or Multipath TCP (RFC 8684): which streams belong together."""

from __future__ import annotations

import hashlib
import ipaddress
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from anabranch.errors import InputError
from anabranch.results import capture, capturefile
from anabranch.results.capture import Headers, Packets
from anabranch.results.capturefile import Bytes, Frames, Integers, Mask
from anabranch.results.recording import Array

_TCP = 6
_SHORTEST = 40
"""Bytes of the shortest headers of IP and TCP."""

_SAME_CONNECTION = 1 << 26
"""Data acknowledgments of one connection at about the same time differ by less than this."""


@dataclass(frozen=True)
class Stream:
    """A connection of TCP, which may be a subflow.

    Attributes:
        path: The address of the end that receives, or both addresses where that would be ambiguous.
        opened_s: When its handshake ended; when its first packet was captured if the capture begins later.
        has_begun: Whether the capture has its handshake.
        backups: When it became a backup (1) or no longer one (0), shape (n, 2).
    """

    path: str
    opened_s: float
    has_begun: bool
    backups: Array


@dataclass(frozen=True)
class Session:
    """A connection, or several of one client to one server that follow each other.

    Attributes:
        name: The two ends of its first stream, the sender's first.
        connections: How many connections it has.
        streams: Its connections of TCP, or the subflows of those of Multipath TCP, in the order of their beginnings.
        is_multipath: Whether it has Multipath TCP.
        sent_bytes: The payload that the sender sent, retransmissions included.
        requests_s: When new payload of the other end arrived.
    """

    name: str
    connections: int
    streams: tuple[Stream, ...]
    is_multipath: bool
    sent_bytes: int
    requests_s: Array


@dataclass(frozen=True)
class Capture:
    """What a capture has.

    Attributes:
        packets: Those of TCP, oldest first. `Packets.client` is the number of the session, and each path is named as in
            `Stream.path`.
        sessions: In the order of their beginnings.
    """

    packets: Packets
    sessions: tuple[Session, ...]


def read(file: Path) -> Capture:
    """Reads a capture by any program.

    Of the two ends of a session, the one that sent more payload is the sender.

    Raises:
        InputError: It is no capture, or has no packets of TCP.
        OSError: It cannot be read.
    """
    frames = capturefile.read(file)
    kept = _tcp(frames)
    if not len(kept):
        raise InputError(f"{file}: no packet of TCP in it")
    kept = kept[np.argsort(frames.time_s[kept], kind="stable")]
    headers = Headers(frames.content, frames.ip[kept])
    cut = headers.tcp + headers.header > frames.end[kept]
    if cut.any():
        raise InputError(
            f"{file}: {int(cut.sum())} headers were not captured whole; expected at least 160 bytes of each packet"
        )
    return _Reader(frames, headers, frames.time_s[kept]).capture()


def _tcp(frames: Frames) -> Integers:
    """The packets of TCP, without those that are a later fragment or too short."""
    content, ip = frames.content, frames.ip
    there = np.flatnonzero(ip + _SHORTEST <= frames.end)
    at = ip[there]
    version = content[at] >> 4
    four = (version == 4) & (content[at + 9] == _TCP) & ((content[at + 6] & 0x1F) == 0) & (content[at + 7] == 0)
    six = (version == 6) & (content[at + 6] == _TCP) & (at + _SHORTEST + 20 <= frames.end[there])
    whole: Integers = there[four | six]
    return whole


class _Reader:
    """Finds streams, and joins them to connections."""

    def __init__(self, frames: Frames, headers: Headers, time_s: Array) -> None:
        self.content, self.headers, self.time_s = frames.content, headers, time_s
        ends = [
            _ends(frames.content, headers, headers.addresses, headers.source_port),
            _ends(frames.content, headers, headers.addresses + headers.address_len, headers.destination_port),
        ]
        self.names, both = _distinct(np.concatenate(ends))
        self.source, self.destination = both.reshape(2, -1)
        low, high = np.minimum(self.source, self.destination), np.maximum(self.source, self.destination)
        _, firsts, of = np.unique(low * len(self.names) + high, return_index=True, return_inverse=True)
        order = np.argsort(firsts)
        self.of = np.argsort(order)[of]
        by_stream = np.argsort(self.of, kind="stable")
        self.streams = np.split(by_stream, np.cumsum(np.bincount(self.of))[:-1])
        self.clients = np.array([self._client(stream) for stream in self.streams], np.int64)

    def _client(self, stream: Integers) -> int:
        """The end that opened the stream; without its handshake, the one that sent less."""
        for packet in stream[self.headers.is_syn[stream]].tolist():
            return int(self.destination[packet] if self.headers.has_ack[packet] else self.source[packet])
        ends = sorted({int(end) for end in (*self.source[stream[:1]], *self.destination[stream[:1]])})
        sent = [int(self.headers.payload[stream[self.source[stream] == end]].sum()) for end in ends]
        return ends[int(np.argmin(sent))]

    def capture(self) -> Capture:
        """All that was read."""
        connections = self._connections()
        session_of = self._sessions(connections)
        is_sent = np.zeros(len(self.of), np.bool_)
        members = _grouped(session_of)
        for streams in members:
            packets = np.concatenate([self.streams[at] for at in streams])
            of_client = self.source[packets] == self.clients[self.of[packets]]
            payload = self.headers.payload[packets]
            from_client = int(payload[of_client].sum()) > int(payload[~of_client].sum())
            is_sent[packets] = of_client == from_client
        found = self._packets(np.array(session_of)[self.of], is_sent)
        counts = [len({connections[at] for at in streams}) for streams in members]
        return Capture(found, tuple(self._session(*each, found) for each in zip(members, counts, strict=True)))

    def _sessions(self, connections: list[int]) -> list[int]:
        """The number of each stream's session."""
        last_s: list[float] = []
        by_ends: dict[tuple[bytes, int], list[int]] = {}
        session_of: list[int] = []
        for members in _grouped(connections):
            packets = np.sort(np.concatenate([self.streams[at] for at in members]))
            client = int(self.clients[members[0]])
            server = int(self.source[packets[0]] + self.destination[packets[0]]) - client
            own = by_ends.setdefault((self.names[client, :-2].tobytes(), server), [])
            follows = [each for each in own if last_s[each] <= self.time_s[packets[0]]]
            if not follows:
                own.append(len(last_s))
                last_s.append(0.0)
            session = follows[-1] if follows else own[-1]
            session_of.append(session)
            data = packets[self.headers.payload[packets] > 0]
            last_s[session] = float(self.time_s[data[-1] if len(data) else packets[-1]])
        return [session_of[number] for number in connections]

    def _connections(self) -> list[int]:
        """The number of each stream's connection."""
        tokens: dict[bytes, int] = {}
        number_of: list[int] = []
        for stream in self.streams:
            number = self._joined(stream, tokens)
            if number is None:
                number = self._alike(stream, number_of)
            if number is None:
                number = max(number_of, default=-1) + 1
            tokens |= dict.fromkeys(self._tokens(stream), number)
            number_of.append(number)
        return number_of

    def _tokens(self, stream: Integers) -> Iterator[bytes]:
        """The tokens of the keys in a handshake (RFC 8684, section 3.2; of version 0 by SHA-1)."""
        for packet in stream[self.headers.options.capable[stream] >= 0].tolist():
            at = int(self.headers.options.capable[packet])
            content, length = self.content, int(self.content[at + 1])
            for key in (content[at + place : at + place + 8].tobytes() for place in (4, 12) if length >= place + 8):
                yield (hashlib.sha256 if content[at + 2] & 15 else hashlib.sha1)(key).digest()[:4]

    def _joined(self, stream: Integers, tokens: dict[bytes, int]) -> int | None:
        """The connection that the first packet of a handshake names."""
        options = self.headers.options
        for packet in stream[(options.join[stream] >= 0) & self.headers.is_syn[stream]].tolist():
            at = int(options.join[packet])
            if (found := tokens.get(self.content[at + 4 : at + 8].tobytes())) is not None:
                return found
        return None

    def _alike(self, stream: Integers, number_of: list[int]) -> int | None:
        """The connection whose data acknowledgments a stream without a handshake continues."""
        options = self.headers.options
        acks = stream[options.data_acknowledged[stream] >= 0]
        if not len(acks) or (self.headers.is_syn[stream] & (options.capable[stream] >= 0)).any():
            return None
        mine = self._heard(acks)
        for number, members in enumerate(_grouped(number_of) if number_of else []):
            others = np.sort(np.concatenate([self.streams[at] for at in members]))
            theirs = self._heard(others[options.data_acknowledged[others] >= 0])
            if any(abs(int(capture.signed(a - b))) < _SAME_CONNECTION for a in mine for b in theirs):
                return number
        return None

    def _heard(self, acks: Integers) -> Integers:
        """The first and the last data acknowledgment of each direction."""
        values = self.headers.options.data_acknowledged
        found = []
        for end in np.unique(self.source[acks]).tolist():
            own = acks[self.source[acks] == end]
            found += [values[own[0]], values[own[-1]]]
        return np.array(found, np.int64)

    def _packets(self, client: Integers, is_sent: Mask) -> Packets:
        """The packets by connection, path, and the port of the end that does not send."""
        other = np.where(is_sent, self.destination, self.source)
        own = np.where(is_sent, self.source, self.destination)
        addresses, of_end = _distinct(self.names[:, :-2])
        pairs, path = np.unique(of_end[own] * len(addresses) + of_end[other], return_inverse=True)
        ends = [
            (_address(addresses[pair % len(addresses)]), _address(addresses[pair // len(addresses)])) for pair in pairs
        ]
        ports = self.names[:, -2].astype(np.int64) * 256 + self.names[:, -1]
        packets = self.headers.packets(
            paths=_paths(ends),
            time_s=self.time_s,
            path=path,
            is_sent=is_sent,
            client=client,
            port=ports[other],
        )
        # A mapping may cover several packets, and each of them has it: segmentation offload repeats it.
        for stream in self.streams:
            mapped = stream[is_sent[stream] & (packets.data_sequence[stream] >= 0)]
            if len(mapped):
                into = packets.sequence[mapped] - self.headers.options.mapped_from[mapped]
                into = capture.signed(into - into[0])
                packets.data_sequence[mapped] += into - into.min()
        return packets

    def _session(self, members: list[int], connections: int, packets: Packets) -> Session:
        own = np.sort(np.concatenate([self.streams[at] for at in members]))
        sent, received = own[packets.is_sent[own]], own[~packets.is_sent[own]]
        first = self.streams[members[0]]
        ends = [self.source[first[0]], self.destination[first[0]]]
        if not packets.is_sent[first[0]]:
            ends.reverse()
        return Session(
            name=" to ".join(_end(self.names[end]) for end in ends),
            connections=connections,
            streams=tuple(self._stream(self.streams[at], packets) for at in members),
            is_multipath=bool((packets.data_acknowledged[own] >= 0).any()),
            sent_bytes=int(packets.payload[sent].sum()),
            requests_s=self._requests(received[packets.payload[received] > 0], packets),
        )

    def _requests(self, received: Integers, packets: Packets) -> Array:
        """When payload arrived that was no copy and no retransmission."""
        new: list[float] = []
        known: set[tuple[int, int]] = set()
        for packet in received.tolist():
            data = int(packets.data_sequence[packet])
            key = (-1, data) if data >= 0 else (int(self.of[packet]), int(packets.sequence[packet]))
            if key not in known:
                known.add(key)
                new.append(float(self.time_s[packet]))
        return np.array(new, np.float64)

    def _stream(self, stream: Integers, packets: Packets) -> Stream:
        syns = packets.is_syn[stream]
        after = stream[~syns & packets.has_ack[stream]]
        flags = self.headers.options.backup[stream]
        # The end that receives says what it wants to be a backup.
        changes = stream[(flags >= 0) & ~packets.is_sent[stream]]
        return Stream(
            path=packets.paths[packets.path[stream[0]]],
            opened_s=float(self.time_s[after[0] if len(after) else stream[0]]),
            has_begun=bool(syns.any()),
            backups=np.stack([self.time_s[changes], self.headers.options.backup[changes].astype(np.float64)], axis=1),
        )


def _grouped(numbers: list[int]) -> list[list[int]]:
    """The places of each number, which count from 0."""
    places: list[list[int]] = [[] for _ in range(max(numbers) + 1)]
    for place, number in enumerate(numbers):
        places[number].append(place)
    return places


def _paths(pairs: list[tuple[str, str]]) -> tuple[str, ...]:
    """Paths by the address of the end that receives; by both addresses where it has several paths with this one."""
    several = Counter(receiver for receiver, _ in pairs)
    return tuple(f"{receiver} from {sender}" if several[receiver] > 1 else receiver for receiver, sender in pairs)


def _ends(content: Bytes, headers: Headers, address: Integers, port: Integers) -> Bytes:
    """An end of each packet: a byte for the version of IP, 16 of its address, two of its port."""
    found = np.zeros((len(address), 19), np.uint8)
    found[:, 0] = np.where(headers.is_six, 6, 4)
    for byte in range(16):
        there = byte < headers.address_len
        found[there, 1 + byte] = content[address[there] + byte]
    found[:, 17], found[:, 18] = port >> 8, port & 255
    return found


def _distinct(rows: Bytes) -> tuple[Bytes, Integers]:
    """The distinct rows, and which of them each row is. Eight bytes at a time, which is faster than whole rows."""
    padded = np.zeros((len(rows), -(-rows.shape[1] // 8) * 8), np.uint8)
    padded[:, : rows.shape[1]] = rows
    numbers = np.zeros(len(rows), np.int64)
    for column in padded.view(np.uint64).T:
        # Most bytes of an address of IPv4 are zero.
        if (column == column[0]).all():
            continue
        values, inverse = np.unique(column, return_inverse=True)
        numbers = np.unique(numbers * len(values) + inverse, return_inverse=True)[1] if numbers.any() else inverse
    firsts = np.empty(int(numbers.max()) + 1, np.int64)
    firsts[numbers[::-1]] = np.arange(len(rows))[::-1]
    return rows[firsts], numbers


def _address(value: Bytes) -> str:
    return str(ipaddress.ip_address(value[1 : 17 if value[0] == 6 else 5].tobytes()))


def _end(value: Bytes) -> str:
    address, port = _address(value[:17]), int(value[17]) * 256 + int(value[18])
    return f"[{address}]:{port}" if value[0] == 6 else f"{address}:{port}"
