"""Capture files as others write them: pcap and pcapng, in either byte order, with the packets of any common link."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path

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
        rows, interfaces = _rows(content)
    except (struct.error, IndexError, UnicodeDecodeError):
        raise InputError(f"{file}: the capture ends within a packet, or is damaged") from None
    if rows is None:
        raise InputError(f"{file}: no capture; expected the formats pcap or pcapng")
    table = np.array(rows, np.float64).reshape(-1, 5)
    interface, data, captured, outbound = table[:, 1:].astype(np.int64).T
    links = np.array([each.link for each in interfaces], np.int64)
    if unknown := sorted(set(links[np.unique(interface)].tolist()) - set(_LINK_HEADERS)):
        raise InputError(f"{file}: its link has the type {unknown[0]}; expected Ethernet, raw IP, or Linux's `any`")
    ip = data + np.array([_LINK_HEADERS.get(link, 0) for link in links.tolist()], np.int64)[interface]
    framed = np.flatnonzero((links[interface] == _ETHERNET) & (captured >= _LINK_HEADERS[_ETHERNET] + _VLAN_LEN))
    kinds = (whole[data[framed] + 12].astype(np.int64) << 8) + whole[data[framed] + 13]
    ip[framed[kinds == _VLAN]] += _VLAN_LEN
    names = tuple(each.name for each in interfaces)
    return Frames(whole, names, table[:, 0], interface, ip, data + captured, outbound == 1)


@dataclass(frozen=True)
class _Interface:
    name: str
    link: int
    per_s: float


_Row = tuple[float, int, int, int, int]
"""Of a packet: seconds, interface, where its data begins, how much of it was captured, whether it was sent."""


def _rows(content: memoryview) -> tuple[list[_Row] | None, list[_Interface]]:
    if len(content) < _PCAP_HEADER:
        return None, []
    for order in "<>":
        (magic,) = struct.unpack_from(f"{order}I", content)
        if magic in _PCAP:
            (link,) = struct.unpack_from(f"{order}I", content, 20)
            interface = _Interface("", link & 0xFFFF, _PCAP[magic])
            return _records(content, order, interface.per_s), [interface]
    return _blocks(content) if struct.unpack_from("<I", content) == (_SECTION,) else (None, [])


def _records(content: memoryview, order: str, per_s: float) -> list[_Row]:
    rows, at, record = [], _PCAP_HEADER, struct.Struct(f"{order}IIII")
    # The last record may be cut off: the program that wrote it was ended.
    while at + _PCAP_RECORD <= len(content):
        seconds, part, captured, _ = record.unpack_from(content, at)
        if at + _PCAP_RECORD + captured > len(content):
            break
        rows.append((seconds + part / per_s, 0, at + _PCAP_RECORD, captured, 0))
        at += _PCAP_RECORD + captured
    return rows


def _blocks(content: memoryview) -> tuple[list[_Row], list[_Interface]]:
    rows: list[_Row] = []
    interfaces: list[_Interface] = []
    first, at, order = 0, 0, "<"
    while at + 12 <= len(content):
        kind, size = struct.unpack_from(f"{order}II", content, at)
        if kind == _SECTION:
            order = "<" if struct.unpack_from("<I", content, at + 8) == (_BYTE_ORDER,) else ">"
            (size,) = struct.unpack_from(f"{order}I", content, at + 4)
            # The interfaces of a section are counted anew.
            first = len(interfaces)
        if size < 12 or at + size > len(content):
            break
        if kind == _INTERFACE:
            interfaces.append(_interface(content, at, size, order))
        elif kind == _PACKET:
            number, high, low, captured = struct.unpack_from(f"{order}IIII", content, at + 8)
            options = at + _PACKET_DATA + -(-captured // 4) * 4
            sent = options + 8 < at + size and struct.unpack_from(f"{order}HHI", content, options)
            flags = sent[2] & 3 if sent and sent[0] == 2 else 0
            time_s = ((high << 32) + low) / interfaces[first + number].per_s
            rows.append((time_s, first + number, at + _PACKET_DATA, captured, int(flags == 2)))
        at += size
    return rows, interfaces


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
