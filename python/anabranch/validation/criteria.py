"""What has to agree between simulation and kernel, and how well: every tolerance is here."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Part(Enum):
    """A part of the comparison: its name in reports, its letter on the command line, and its title."""

    ONE_PATH = ("OnePath", "a", "bulk over one path, kernel TCP to kernel TCP")
    SEVERAL_PATHS = ("SeveralPaths", "b", "bulk over several paths, kernel MPTCP to kernel MPTCP")
    OUR_SERVER = ("OurServer", "c", "bulk, our server to the kernel's MPTCP")
    DASH = ("Dash", "d", "DASH, our player on a kernel's socket and the real dash.js")
    HANDOFF = ("Handoff", "e", "a path cut and restored, kernel MPTCP to kernel MPTCP")
    ON_OFF = ("OnOff", "f", "a chunk a second, kernel to kernel")
    DRAWN = ("Drawn", "h", "test cases drawn by a seed, kernel to kernel")
    COUPLED = ("Coupled", "g", "bulk with coupled controls by BPF, kernel MPTCP to kernel MPTCP")

    def __init__(self, key: str, letter: str, title: str) -> None:
        self.key = key
        self.letter = letter
        self.title = title


USUAL_PARTS = tuple(part for part in Part if part not in (Part.COUPLED, Part.DRAWN))
"""The parts that a kernel can be compared in as it is, and that have tables: all but that of controls that have to be
attached first, and that of drawn test cases."""


class ComparedQuantity(Enum):
    """A quantity that is compared: its name in reports, its field of a measurement, and how tables show it."""

    GOODPUT = ("goodput", "goodput_bps", "goodput, Mb/s", 1e-6, 3)
    RETRANSMISSIONS = ("retransmissions", "retransmissions", "retransmissions", 1.0, 1)
    CHUNK_TIME = ("chunk-time", "chunk_s", "median chunk, s", 1.0, 4)
    CHUNK_TIME_P90 = ("chunk-time-p90", "chunk_p90_s", "90th percentile of chunks, s", 1.0, 4)
    FIRST_SHARE = ("first-share", "first_share", "share of path 1, %", 100.0, 1)
    SMALLEST_SHARE = ("smallest-share", "smallest_share", "share of the slower session, %", 100.0, 1)
    MEAN_BITRATE = ("mean-bitrate", "mean_bitrate_bps", "mean bitrate, Mb/s", 1e-6, 3)
    SWITCHES = ("switches", "switches", "switches", 1.0, 1)
    STALLS = ("stalls", "stalls", "stalls", 1.0, 1)

    def __init__(self, key: str, field: str, title: str, scale: float, digits: int) -> None:
        self.key = key
        self.field = field
        self.title = title
        self.scale = scale
        self.digits = digits


@dataclass(frozen=True)
class Criterion:
    """What has to agree, and how well: within a share, or within a number; within either of them if both are given.

    Attributes:
        quantity: The quantity.
        share: The tolerance as a share of the kernel's value, up or down.
        number: The tolerance as a number, up or down.
    """

    quantity: ComparedQuantity
    share: float | None = None
    number: float | None = None


Criteria = tuple[Criterion, ...]

USUAL_GOODPUT = 0.05
"""The tolerance of the goodput of (a) in most test cases."""

USUAL_SHARE = 0.9
"""The share of the test cases of (a) that have to meet it."""

_RETRANSMISSIONS = Criterion(ComparedQuantity.RETRANSMISSIONS, share=0.25, number=20.0)
_STRICT_GOODPUT = Criterion(ComparedQuantity.GOODPUT, share=0.05)
_FIRST_SHARE = Criterion(ComparedQuantity.FIRST_SHARE, number=0.05)
_GOODPUT = (Criterion(ComparedQuantity.GOODPUT, share=0.10),)

OF_PART: dict[Part, Criteria] = {
    Part.ONE_PATH: (Criterion(ComparedQuantity.GOODPUT, share=0.15), _RETRANSMISSIONS),
    Part.SEVERAL_PATHS: _GOODPUT,
    Part.OUR_SERVER: _GOODPUT,
    Part.DASH: (
        Criterion(ComparedQuantity.MEAN_BITRATE, share=0.10),
        Criterion(ComparedQuantity.SWITCHES, share=0.25, number=5.0),
        Criterion(ComparedQuantity.STALLS, number=1.0),
    ),
    Part.HANDOFF: _GOODPUT,
    Part.ON_OFF: (Criterion(ComparedQuantity.CHUNK_TIME, share=0.10),),
    Part.DRAWN: (_STRICT_GOODPUT, _RETRANSMISSIONS),
    Part.COUPLED: (*_GOODPUT, _FIRST_SHARE),
}
"""The criteria of every test case that has none of its own."""

SHARED_LINK: Criteria = (_STRICT_GOODPUT, _RETRANSMISSIONS, Criterion(ComparedQuantity.SMALLEST_SHARE, number=0.05))
"""Of two sessions on the same links."""

RATE_BASED: Criteria = (_STRICT_GOODPUT, _RETRANSMISSIONS)
"""Of a control by rate over one path."""

UNLIKE_PATHS: Criteria = (_STRICT_GOODPUT, _RETRANSMISSIONS, _FIRST_SHARE)
"""Of unlike paths, or a control by rate, in (b)."""

CHUNKS_OVER_UNLIKE_PATHS: Criteria = (
    Criterion(ComparedQuantity.CHUNK_TIME, share=0.10),
    Criterion(ComparedQuantity.CHUNK_TIME_P90, share=0.10),
)
"""Of unlike paths, or a control by rate, in (f)."""
