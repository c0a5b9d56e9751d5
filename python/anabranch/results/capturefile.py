"""Capture files as others write them: pcap and pcapng, in either byte order, with the packets of any common link."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anabranch.errors import InputError

Integers = NDArray[np.int64]
Bytes = NDArray[np.uint8]
Mask = NDArray[np.bool_]

# Kinds of blocks of pcapng, and of options of an interface.
_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
_BYTE_ORDER = 0x1A2B3C4D
_NAME, _RESOLUTION, _END = 2, 9, 0
_INTERFACE_OPTIONS = 16
_PACKET_DATA = 28
# The option of a packet that says its direction.
_FLAGS, _OUTBOUND = 2, 2

# The first number of a pcap, with how many units of its times a second has.
_PCAP = {0xA1B2C3D4: 1e6, 0xA1B23C4D: 1e9}
_PCAP_HEADER, _PCAP_RECORD = 24, 16

_ETHERNET = 1
# How long the headers of a link are, by its type (https://www.tcpdump.org/linktypes.html). Raw IP has none.
_LINK_HEADERS = {0: 4, _ETHERNET: 14, 12: 0, 14: 0, 101: 0, 108: 4, 113: 16, 228: 0, 229: 0, 276: 20}
_VLAN, _VLAN_LEN = 0x8100, 4

_BEYOND = 256
"""Bytes behind the file's own, so that headers which are cut off or wrong can be read unchecked."""


@dataclass(frozen=True)
class Frames:
    """Where the packets of a capture are. An array has a value per packet, in the order of the file.

    Attributes:
        content: The file, and some zeros.
        interfaces: The names of its interfaces; of a pcap one without a name.
        time_s: Seconds, as the file counts them.
        interface: The number of the interface.
        ip: Where the header of IP begins.
        end: Behind its last captured byte.
        outbound: Whether the file says that the packet was sent.
    """

    content: Bytes
    interfaces: tuple[str, ...]
    time_s: NDArray[np.float64]
    interface: Integers
    ip: Integers
    end: Integers
    outbound: Mask


def read(file: Path) -> Frames:
    """Reads where the packets are.

    Raises:
        InputError: It is no capture, it ends within a packet, or its link is of a type that is not known.
        OSError: It cannot be read.
    """
    with file.open("rb") as opened:
        size = os.fstat(opened.fileno()).st_size
        whole = np.zeros(size + _BEYOND, np.uint8)
        content = whole.data[: opened.readinto(whole.data[:size])]
    if not content:
        raise InputError(f"{file}: an empty file; expected a capture (pcap or pcapng)")
    try:
        found = _packets(content)
    except (struct.error, IndexError, UnicodeDecodeError):
        raise InputError(f"{file}: the capture ends within a packet, or is damaged") from None
    if found is None:
        raise InputError(f"{file}: no capture; expected the formats pcap or pcapng")
    packets, interfaces = found
    interface, data, captured = packets.interface, packets.data, packets.captured
    links = np.array([each.link for each in interfaces], np.int64)
    if unknown := sorted(set(links[np.unique(interface)].tolist()) - set(_LINK_HEADERS)):
        raise InputError(f"{file}: its link has the type {unknown[0]}; expected Ethernet, raw IP, or Linux's `any`")
    ip = data + np.array([_LINK_HEADERS.get(link, 0) for link in links.tolist()], np.int64)[interface]
    framed = np.flatnonzero((links[interface] == _ETHERNET) & (captured >= _LINK_HEADERS[_ETHERNET] + _VLAN_LEN))
    kinds = (whole[data[framed] + 12].astype(np.int64) << 8) + whole[data[framed] + 13]
    ip[framed[kinds == _VLAN]] += _VLAN_LEN
    names = tuple(each.name for each in interfaces)
    return Frames(whole, names, packets.time_s, interface, ip, data + captured, packets.outbound)


def numbers(content: memoryview, order: str, size: int = 4) -> NDArray[np.unsignedinteger[Any]]:
    """The numbers of so many bytes that begin at each byte of a file."""
    return np.ndarray((max(len(content) - size + 1, 0),), f"{order}u{size}", content, strides=(1,))


@dataclass(frozen=True)
class _Interface:
    name: str
    link: int
    per_s: float


@dataclass(frozen=True)
class _Packets:
    """Of each packet: seconds, interface, where its data begins, how much of it was captured, whether it was sent."""

    time_s: NDArray[np.float64]
    interface: Integers
    data: Integers
    captured: Integers
    outbound: Mask


def _packets(content: memoryview) -> tuple[_Packets, list[_Interface]] | None:
    if len(content) < _PCAP_HEADER:
        return None
    for order in "<>":
        (magic,) = struct.unpack_from(f"{order}I", content)
        if magic in _PCAP:
            (link,) = struct.unpack_from(f"{order}I", content, 20)
            interface = _Interface("", link & 0xFFFF, _PCAP[magic])
            return _records(content, order, interface.per_s), [interface]
    return _sections(content) if struct.unpack_from("<I", content) == (_SECTION,) else None


def _records(content: memoryview, order: str, per_s: float) -> _Packets:
    begins, at, captured = [], _PCAP_HEADER, struct.Struct(f"{order}I")
    # The last record may be cut off: the program that wrote it was ended.
    while at + _PCAP_RECORD <= len(content):
        (size,) = captured.unpack_from(content, at + 8)
        if at + _PCAP_RECORD + size > len(content):
            break
        begins.append(at)
        at += _PCAP_RECORD + size
    records, words = np.array(begins, np.int64), numbers(content, order)
    none = np.zeros(len(records), np.int64)
    return _Packets(
        time_s=words[records] + words[records + 4] / per_s,
        interface=none,
        data=records + _PCAP_RECORD,
        captured=words[records + 8].astype(np.int64),
        outbound=none > 0,
    )


def _sections(content: memoryview) -> tuple[_Packets, list[_Interface]]:
    """The packets of a pcapng, section by section: each has its byte order, and counts its interfaces anew."""
    interfaces: list[_Interface] = []
    sections = []
    at: int | None = 0
    while at is not None:
        order = "<" if struct.unpack_from("<I", content, at + 8) == (_BYTE_ORDER,) else ">"
        first = len(interfaces)
        blocks, more, at = _section(content, at, order)
        interfaces += more
        sections.append(_of_blocks(content, order, blocks, first, np.array([each.per_s for each in interfaces])))
    columns = zip(
        *((each.time_s, each.interface, each.data, each.captured, each.outbound) for each in sections), strict=True
    )
    return _Packets(*(np.concatenate(column) for column in columns)), interfaces


def _section(content: memoryview, at: int, order: str) -> tuple[Integers, list[_Interface], int | None]:
    """Where the packets of a section are, its interfaces, and where the next section begins."""
    begins: list[int] = []
    interfaces: list[_Interface] = []
    header, end, section = struct.Struct(f"{order}II"), len(content), at
    while at + 12 <= end:
        kind, size = header.unpack_from(content, at)
        if kind == _SECTION and at > section:
            return np.array(begins, np.int64), interfaces, at
        if size < 12 or at + size > end:
            break
        if kind == _PACKET:
            begins.append(at)
        elif kind == _INTERFACE:
            interfaces.append(_interface(content, at, size, order))
        at += size
    return np.array(begins, np.int64), interfaces, None


def _of_blocks(content: memoryview, order: str, blocks: Integers, first: int, per_s: NDArray[np.float64]) -> _Packets:
    """The packets of a section.

    Args:
        content: The file.
        order: The byte order of the section.
        blocks: Where the blocks of its packets begin.
        first: The number of its first interface.
        per_s: How many units of their times a second has, of all interfaces.
    """
    words, halves = numbers(content, order), numbers(content, order, 2)
    size, number, high, low, captured = (words[blocks + place].astype(np.int64) for place in (4, 8, 12, 16, 20))
    interface = first + number
    options = blocks + _PACKET_DATA + -(-captured // 4) * 4
    there = options + 8 < blocks + size
    flags = np.zeros(len(blocks), np.int64)
    flagged = np.flatnonzero(there)[halves[options[there]] == _FLAGS]
    flags[flagged] = words[options[flagged] + 4]
    return _Packets(
        time_s=((high << 32) + low) / per_s[interface],
        interface=interface,
        data=blocks + _PACKET_DATA,
        captured=captured,
        outbound=flags & 3 == _OUTBOUND,
    )


def _interface(content: memoryview, at: int, size: int, order: str) -> _Interface:
    (link,) = struct.unpack_from(f"{order}H", content, at + 8)
    name, per_s, place = "", 1e6, at + _INTERFACE_OPTIONS
    while place + 4 <= at + size - 4:
        kind, length = struct.unpack_from(f"{order}HH", content, place)
        if kind == _END:
            break
        value = content[place + 4 : place + 4 + length]
        if kind == _NAME:
            name = bytes(value).decode()
        elif kind == _RESOLUTION:
            # The highest bit says whether it is a power of two.
            per_s = 2.0 ** (value[0] & 0x7F) if value[0] & 0x80 else 10.0 ** value[0]
        place += 4 + -(-length // 4) * 4
    return _Interface(name, link, per_s)
