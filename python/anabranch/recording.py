"""What happened during a run, sampled at a fixed interval: the numbers behind the pictures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import polars as pl

Array = NDArray[np.float64]
"""One value per sample, or one per instant."""


@dataclass(frozen=True, slots=True)
class SubflowRecording:
    """One subflow, sampled.

    Attributes:
        path: The name of the path that it uses.
        throughput_bps: Payload acknowledged since the previous sample, in bits per second.
        cwnd_packets: The congestion window in packets; not a number while the subflow does not exist.
        srtt_s: The smoothed round trip in seconds; not a number while the subflow does not exist.
    """

    path: str
    throughput_bps: Array
    cwnd_packets: Array
    srtt_s: Array


@dataclass(frozen=True, slots=True)
class SessionRecording:
    """One viewer's session, sampled.

    Attributes:
        session: The position of the session in the run, from zero.
        times_s: The instants of the samples, in seconds since the run began.
        subflows: The subflows, the initial one first.
        buffer_s: Playing time ahead of the viewer in seconds; ``None`` where nothing is played (a bulk download).
        discards: Pictures discarded since the previous sample.
        path_switches: Path switches since the previous sample.
        stalls_s: Beginning and end of each stall, shape (n, 2).
        underflows_s: The instants of the buffer underflows.
    """

    session: int
    times_s: Array
    subflows: tuple[SubflowRecording, ...]
    buffer_s: Array | None
    discards: Array
    path_switches: Array
    stalls_s: Array
    underflows_s: Array

    @property
    def interval_s(self) -> float:
        """Seconds between two samples; zero where there is only one."""
        return float(self.times_s[1] - self.times_s[0]) if len(self.times_s) > 1 else 0.0
