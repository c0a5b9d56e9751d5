"""The headers of the packets of a capture as arrays, and what those of simulated runs (``--pcap``) are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from anabranch.results import capturefile
from anabranch.results.capturefile import Bytes, Integers, Mask
from anabranch.results.recording import Array

_IPV6_LEN, _TCP_LEN = 40, 20
_SYN, _ACK = 0x02, 0x10
# Kinds of TCP options, subtypes of that of Multipath TCP (RFC 8684), and flags of its data sequence signal.
_END, _NOTHING, _SCALE, _SACK, _MULTIPATH = 0, 1, 3, 5, 30
_CAPABLE, _JOIN, _SIGNAL, _PRIORITY = 0, 1, 2, 5
_BACKUP = 0x01
_THIRD_JOIN_LEN = 24
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
    is_sent: Mask
    client: Integers
    port: Integers
    sequence: Integers
    acknowledged: Integers
    has_ack: Mask
    is_syn: Mask
    begins_connection: Mask
    window: Integers
    scale: Integers
    payload: Integers
    sacked: Integers
    data_acknowledged: Integers
    data_sequence: Integers


def read(file: Path) -> Packets:
    """Reads a capture that a simulated run wrote: an interface is a path, and addresses tell the clients.

    Args:
        file: ``server.pcapng`` or ``client.pcapng``.

    Raises:
        InputError: It is no capture.
        OSError: It cannot be read.
    """
    frames = capturefile.read(file)
    headers = Headers(frames.content, frames.ip)
    is_sent = frames.outbound
    # The client's address is the source of what is received, and the destination of what is sent.
    address = headers.addresses + np.where(is_sent, headers.address_len, 0)
    return headers.packets(
        paths=frames.interfaces,
        time_s=frames.time_s,
        path=frames.interface,
        is_sent=is_sent,
        client=_clients(frames.content, address, headers.is_six),
        port=np.where(is_sent, headers.destination_port, headers.source_port),
    )


def _clients(content: Bytes, address: Integers, is_six: Mask) -> Integers:
    """The numbers of clients by their addresses: the host, and in IPv4 the second byte of further networks."""
    four = content[address + 1].astype(np.int64) * 254 + content[address + 3] - 1
    six = _big(content, np.where(is_six, address + 12, address), 4) - 1
    return np.where(is_six, six, four)


def _big(content: Bytes, at: Integers, size: int) -> Integers:
    """The numbers of two or four bytes."""
    return capturefile.numbers(content.data, ">", size)[at].astype(np.int64)


class Headers:
    """The headers of packets of TCP, whichever end sent them."""

    def __init__(self, content: Bytes, ip: Integers) -> None:
        """Reads them; `ip` is where each packet begins."""
        self.content = content
        self.is_six = content[ip] >> 4 == 6
        self.address_len = np.where(self.is_six, 16, 4)
        self.addresses = np.where(self.is_six, ip + 8, ip + 12)
        self.tcp = ip + np.where(self.is_six, _IPV6_LEN, (content[ip] & 15).astype(np.int64) * 4)
        self.header = (content[self.tcp + 12] >> 4).astype(np.int64) * 4
        control = content[self.tcp + 13]
        self.has_ack, self.is_syn = control & _ACK != 0, control & _SYN != 0
        self.source_port, self.destination_port = _big(content, self.tcp, 2), _big(content, self.tcp + 2, 2)
        length = np.where(self.is_six, _IPV6_LEN + _big(content, ip + 4, 2), _big(content, ip + 2, 2))
        self.payload = length - (self.tcp - ip) - self.header
        self.sequence = _big(content, self.tcp + 4, 4)
        self.options = _Options(content, self.tcp, self.header)

    def packets(self, **where: Any) -> Packets:
        """The packets, with what their headers do not say: see the first attributes of `Packets`."""
        return Packets(
            sequence=self.sequence,
            acknowledged=_big(self.content, self.tcp + 8, 4),
            has_ack=self.has_ack,
            is_syn=self.is_syn,
            begins_connection=self.options.begins_connection,
            window=_big(self.content, self.tcp + 14, 2),
            scale=self.options.scale,
            payload=self.payload,
            sacked=self.options.sacked,
            data_acknowledged=self.options.data_acknowledged,
            data_sequence=self.options.data_sequence,
            **where,
        )


class _Options:
    """The options of each packet that matter here."""

    def __init__(self, content: Bytes, tcp: Integers, header: Integers) -> None:
        self.content = content
        count = len(tcp)
        self.begins_connection = np.zeros(count, np.bool_)
        self.scale, self.data_acknowledged, self.data_sequence = (np.full(count, -1) for _ in range(3))
        # The byte of the subflow that the mapping begins with; -1 without a mapping.
        self.mapped_from = np.full(count, -1)
        # Where the option begins that carries keys or a token; -1 where the packet has none.
        self.capable, self.join = np.full(count, -1), np.full(count, -1)
        # Whether the packet makes its subflow a backup, or no longer one; -1 where it says nothing of that.
        self.backup = np.full(count, -1)
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
            # Whatever a length says, the next option is further on.
            at[packets] += np.where(kinds == _NOTHING, 1, np.maximum(content[at[packets] + 1], 2))

    def _read(self, packets: Integers, at: Integers) -> None:
        kinds, subtypes = self.content[at], self.content[at + 2] >> 4
        scales = kinds == _SCALE
        self.scale[packets[scales]] = self.content[at[scales] + 2]
        multipath = kinds == _MULTIPATH
        capable, join = multipath & (subtypes == _CAPABLE), multipath & (subtypes == _JOIN)
        self.begins_connection[packets[capable]] = True
        self.capable[packets[capable]], self.join[packets[join]] = at[capable], at[join]
        # The third packet of a handshake has no flags.
        flagged = multipath & (subtypes == _PRIORITY) | join & (self.content[at + 1] != _THIRD_JOIN_LEN)
        self.backup[packets[flagged]] = self.content[at[flagged] + 2] & _BACKUP
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
        self.mapped_from[packets[mapped]] = _big(self.content, (place + np.where(long, 8, 4))[mapped], 4)


def unwrapped(numbers: Integers, first: int) -> Integers:
    """Numbers of 32 bits as distances from a first one, beyond 4 GiB as well; neighbours differ by less than 2 GiB."""
    steps = np.diff(numbers, prepend=first)
    return np.cumsum((steps + _WRAP // 2) % _WRAP - _WRAP // 2)


def signed(difference: Integers) -> Integers:
    """A difference of two numbers of 32 bits, the nearer way around."""
    return (difference + _WRAP // 2) % _WRAP - _WRAP // 2
