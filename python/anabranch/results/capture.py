"""Captures of simulated runs (``--pcap``), read back: the headers of every packet as arrays.

Only what the simulator writes is read: little-endian pcapng of raw IP packets with times in nanoseconds, an interface
per path, and the direction of each packet as an option.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from anabranch.results.recording import Array

Integers = NDArray[np.int64]
Bytes = NDArray[np.uint8]

_INTERFACE, _PACKET = 1, 6
# Where the parts of a packet's block begin, and of an interface's.
_INTERFACE_ID, _TIME_HIGH, _TIME_LOW, _CAPTURED, _LENGTH, _DATA = 8, 12, 16, 20, 24, 28
_INTERFACE_OPTIONS = 16
_NAME = 2
_OUTBOUND = 2
_IPV4_LEN, _IPV6_LEN, _TCP_LEN = 20, 40, 20
_SYN, _ACK = 0x02, 0x10
# Kinds of TCP options, subtypes of that of Multipath TCP (RFC 8684), and flags of its data sequence signal.
_END, _NOTHING, _SCALE, _SACK, _MULTIPATH = 0, 1, 3, 5, 30
_CAPABLE, _SIGNAL = 0, 2
_HAS_ACK, _LONG_ACK, _HAS_MAPPING, _LONG_SEQUENCE = 0x01, 0x02, 0x04, 0x08
MOST_BLOCKS = 4
"""More SACK blocks than this have no room in the options of a segment."""

_WRAP = 1 << 32


@dataclass(frozen=True)
class Packets:
    """The packets of a capture, oldest first; an array has a value per packet. Numbers on the wire have 32 bits.

    Attributes:
        paths: The names of the interfaces.
        time_s: Seconds since the run began.
        path: The number of the interface.
        is_sent: Whether this end sent the packet, rather than received it.
        client: The number of the client, from 0: sessions come first, in their order.
        port: The client's port.
        sequence: Its sequence number.
        acknowledged: Its acknowledgment number.
        has_ack: Whether that counts.
        is_syn: Whether it is a SYN.
        begins_connection: Whether it has the option `MP_CAPABLE`.
        window: The advertised window as on the wire, not scaled.
        scale: The shift of later windows, where the packet says so; else -1.
        payload: Its bytes of payload.
        sacked: Left and right edges of SACK blocks, shape (n, 4, 2); -1 where there is none.
        data_acknowledged: The data acknowledgment; -1 where there is none.
        data_sequence: The data sequence number of its first byte; -1 where it has no mapping.
    """

    paths: tuple[str, ...]
    time_s: Array
    path: Integers
    is_sent: NDArray[np.bool_]
    client: Integers
    port: Integers
    sequence: Integers
    acknowledged: Integers
    has_ack: NDArray[np.bool_]
    is_syn: NDArray[np.bool_]
    begins_connection: NDArray[np.bool_]
    window: Integers
    scale: Integers
    payload: Integers
    sacked: Integers
    data_acknowledged: Integers
    data_sequence: Integers


def read(file: Path) -> Packets:
    """Reads a capture that a simulated run wrote.

    Args:
        file: ``server.pcapng`` or ``client.pcapng``.

    Raises:
        OSError: It cannot be read.
    """
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
        paths, places = _blocks(content)
        return _packets(np.frombuffer(bytes(content), np.uint8), paths, places)


def _blocks(content: mmap.mmap) -> tuple[tuple[str, ...], Integers]:
    """The names of the interfaces, and where the blocks of packets begin."""
    paths, places, at = [], [], 0
    head, length = struct.Struct("<II"), len(content)
    while at < length:
        kind, size = head.unpack_from(content, at)
        if kind == _PACKET:
            places.append(at)
        elif kind == _INTERFACE:
            paths.append(_name(content, at + _INTERFACE_OPTIONS))
        at += size
    return tuple(paths), np.array(places, np.int64)


def _name(content: mmap.mmap, at: int) -> str:
    """The name among the options of an interface."""
    while True:
        kind, size = struct.unpack_from("<HH", content, at)
        if kind == _NAME:
            return content[at + 4 : at + 4 + size].decode()
        at += 4 + _padded(size)


def _padded(size: int) -> int:
    return -(-size // 4) * 4


def _little(content: Bytes, at: Integers) -> Integers:
    return sum((content[at + i].astype(np.int64) << 8 * i for i in range(4)), np.zeros(len(at), np.int64))


def _big(content: Bytes, at: Integers, size: int) -> Integers:
    """The numbers of `size` bytes; of longer ones than 32 bits, these."""
    return sum(
        (content[at + i].astype(np.int64) << 8 * (size - 1 - i) for i in range(max(size - 4, 0), size)),
        np.zeros(len(at), np.int64),
    )


def _packets(content: Bytes, paths: tuple[str, ...], places: Integers) -> Packets:
    captured, length = _little(content, places + _CAPTURED), _little(content, places + _LENGTH)
    flags = _little(content, places + _DATA + -(-captured // 4) * 4 + 4)
    is_sent = flags & 3 == _OUTBOUND
    ip = places + _DATA
    is_six = content[ip] >> 4 == 6
    tcp = ip + np.where(is_six, _IPV6_LEN, _IPV4_LEN)
    header = (content[tcp + 12] >> 4).astype(np.int64) * 4
    control = content[tcp + 13]
    nanoseconds = (_little(content, places + _TIME_HIGH) << 32) + _little(content, places + _TIME_LOW)
    # The client's address is the source of what is received, and the destination of what is sent.
    source = np.where(is_six, ip + 8, ip + 12)
    address = source + np.where(is_sent, np.where(is_six, 16, 4), 0)
    sequence, scaled = _big(content, tcp + 4, 4), _Options(content, tcp, header)
    return Packets(
        paths=paths,
        time_s=nanoseconds / 1e9,
        path=_little(content, places + _INTERFACE_ID),
        is_sent=is_sent,
        client=_clients(content, address, is_six),
        port=_big(content, tcp + np.where(is_sent, 2, 0), 2),
        sequence=sequence,
        acknowledged=_big(content, tcp + 8, 4),
        has_ack=control & _ACK != 0,
        is_syn=control & _SYN != 0,
        begins_connection=scaled.begins_connection,
        window=_big(content, tcp + 14, 2),
        scale=scaled.scale,
        payload=length - (tcp - ip) - header,
        sacked=scaled.sacked,
        data_acknowledged=scaled.data_acknowledged,
        data_sequence=scaled.data_sequence,
    )


def _clients(content: Bytes, address: Integers, is_six: NDArray[np.bool_]) -> Integers:
    """The numbers of clients by their addresses: the host, and in IPv4 the second byte of further networks."""
    four = content[address + 1].astype(np.int64) * 254 + content[address + 3] - 1
    six = _big(content, np.where(is_six, address + 12, address), 4) - 1
    return np.where(is_six, six, four)


class _Options:
    """The options of each packet that matter here."""

    def __init__(self, content: Bytes, tcp: Integers, header: Integers) -> None:
        self.content = content
        count = len(tcp)
        self.begins_connection = np.zeros(count, np.bool_)
        self.scale, self.data_acknowledged, self.data_sequence = (np.full(count, -1) for _ in range(3))
        self.sacked = np.full((count, MOST_BLOCKS, 2), -1)
        at, end = tcp + _TCP_LEN, tcp + header
        packets = np.arange(count)
        # Step by step, an option of each packet at a time.
        while True:
            inside = at[packets] < end[packets]
            packets = packets[inside]
            packets = packets[content[at[packets]] != _END]
            if not len(packets):
                return
            kinds = content[at[packets]]
            long = packets[kinds != _NOTHING]
            self._read(long, at[long])
            at[packets] += np.where(kinds == _NOTHING, 1, content[np.minimum(at[packets] + 1, len(content) - 1)])

    def _read(self, packets: Integers, at: Integers) -> None:
        kinds, subtypes = self.content[at], self.content[at + 2] >> 4
        scales = kinds == _SCALE
        self.scale[packets[scales]] = self.content[at[scales] + 2]
        multipath = kinds == _MULTIPATH
        self.begins_connection[packets[multipath & (subtypes == _CAPABLE)]] = True
        signals = multipath & (subtypes == _SIGNAL)
        self._signals(packets[signals], at[signals])
        sacks = kinds == _SACK
        self._blocks(packets[sacks], at[sacks])

    def _blocks(self, packets: Integers, at: Integers) -> None:
        blocks = (self.content[at + 1].astype(np.int64) - 2) // 8
        for number in range(MOST_BLOCKS):
            there = blocks > number
            for edge in range(2):
                place = at[there] + 2 + 8 * number + 4 * edge
                self.sacked[packets[there], number, edge] = _big(self.content, place, 4)

    def _signals(self, packets: Integers, at: Integers) -> None:
        flags, place = self.content[at + 3], at + 4
        has_ack, long = flags & _HAS_ACK != 0, flags & _LONG_ACK != 0
        # Of a long number the lower half comes last.
        self.data_acknowledged[packets[has_ack]] = _big(self.content, (place + np.where(long, 4, 0))[has_ack], 4)
        place = place + np.where(has_ack, np.where(long, 8, 4), 0)
        mapped, long = flags & _HAS_MAPPING != 0, flags & _LONG_SEQUENCE != 0
        self.data_sequence[packets[mapped]] = _big(self.content, (place + np.where(long, 4, 0))[mapped], 4)


def unwrapped(numbers: Integers, first: int) -> Integers:
    """Numbers of 32 bits as distances from a first one, beyond 4 GiB as well; neighbours differ by less than 2 GiB."""
    steps = np.diff(numbers, prepend=first)
    return np.cumsum((steps + _WRAP // 2) % _WRAP - _WRAP // 2)


def signed(difference: Integers) -> Integers:
    """A difference of two numbers of 32 bits, the nearer way around."""
    return (difference + _WRAP // 2) % _WRAP - _WRAP // 2
