"""What is compared of a run, read from its metrics by the same code for simulated and live runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from anabranch.results.downloads import quantile, times_s
from anabranch.validation.cases import FIRST_PATH, TestCase
from anabranch.validation.criteria import ComparedQuantity


class UnobservedError(Exception):
    """A run lacks what its test case compares; the message has the key."""


@dataclass(frozen=True)
class Drops:
    """Packets that a link dropped on the way down.

    Attributes:
        queue: For want of room.
        random: At random.
    """

    queue: int
    random: int


@dataclass(frozen=True)
class Measurement:
    """What a run of a test case gave; ``None`` is what does not exist in such runs, or was not observed.

    Attributes:
        seed: The seed of its links.
        goodput_bps: Bytes that the client's applications read, as bits per second of the whole run.
        retransmissions: Segments that the server sent again, in all sessions.
        chunk_s: The median time from a request to the last byte of its response, where the traffic comes in chunks.
        chunk_p90_s: The 90th percentile of these times.
        first_share: The share of the first path in the payload that the server sent, retransmissions included.
        smallest_share: The share of the session that received least in the bytes of all, where there are several.
        mean_bitrate_bps: The mean bitrate on screen, of a DASH video.
        switches: Changes of the representation, of a DASH video.
        stalls: Intervals with a frozen picture, as the client's player reports them.
        drops: What the links dropped on the way down, link by link.
    """

    seed: int
    goodput_bps: float
    retransmissions: float
    chunk_s: float | None
    chunk_p90_s: float | None
    first_share: float | None
    smallest_share: float | None
    mean_bitrate_bps: float | None
    switches: float | None
    stalls: float | None
    drops: tuple[Drops, ...]

    @staticmethod
    def of(case: TestCase, seed: int, metrics: Mapping[str, Any]) -> Measurement:
        """Reads the metrics of a run.

        Raises:
            UnobservedError: They lack what the test case compares.
        """
        sessions: Sequence[Mapping[str, Any]] = metrics["sessions"]
        if not sessions:
            raise UnobservedError("`sessions` is empty")
        for position, session in enumerate(sessions):
            if not session["subflows"]:
                raise UnobservedError(f"`sessions[{position}].subflows` is empty: nothing was transferred")
        subflows = [subflow for session in sessions for subflow in session["subflows"]]
        received = [session["bytes"] for session in sessions]
        first = sessions[0]
        chunks = times_s(each for session in sessions for each in session.get("downloads") or ())
        found = Measurement(
            seed=seed,
            goodput_bps=float(sum(received)) * 8.0 / float(case.seconds),
            retransmissions=float(sum(subflow["retransmissions"] for subflow in subflows)),
            chunk_s=median(chunks) if chunks else None,
            chunk_p90_s=quantile(chunks, 0.9) if chunks else None,
            first_share=_share(
                [s["bytes"] for s in subflows if s["path"] == FIRST_PATH], [s["bytes"] for s in subflows]
            ),
            smallest_share=_share([min(received)], received) if len(received) > 1 else None,
            mean_bitrate_bps=first.get("mean_bitrate_bps"),
            switches=_number(first.get("switches")),
            stalls=_number(first.get("stalls")),
            drops=tuple(
                Drops(link["drops_queue"], link["drops_random"])
                for link in metrics["links"]
                if link["direction"] == "down"
            ),
        )
        found.check(case)
        return found

    def get(self, quantity: ComparedQuantity) -> float | None:
        """One of the quantities; ``None`` if it was not observed."""
        value: float | None = getattr(self, quantity.field)
        return value

    def check(self, case: TestCase) -> None:
        """Refuses a run that lacks what the test case compares.

        Raises:
            UnobservedError: The message has the key.
        """
        for criterion in case.criteria:
            if self.get(criterion.quantity) is None:
                raise UnobservedError(f"`{criterion.quantity.field}` was not observed")


@dataclass(frozen=True)
class Lateness:
    """How much later than due the packets of a live run were delivered, in seconds.

    Attributes:
        median_s: In the middle.
        p99_s: At the 99th percentile.
    """

    median_s: float
    p99_s: float

    @staticmethod
    def of(metrics: Mapping[str, Any]) -> Lateness:
        """That of a live run.

        Raises:
            UnobservedError: No packet was delivered.
        """
        found = metrics["live"]["lateness_s"]
        for name in ("p50", "p99"):
            if found[name] is None:
                raise UnobservedError(f"`live.lateness_s.{name}` was not observed: no packet was delivered")
        return Lateness(found["p50"], found["p99"])

    @staticmethod
    def typical(runs: Sequence[Lateness]) -> Lateness | None:
        """The means over several runs; ``None`` without any."""
        if not runs:
            return None
        return Lateness(sum(run.median_s for run in runs) / len(runs), sum(run.p99_s for run in runs) / len(runs))


WRITER = "when-writable"
"""How the testbed's server writes: ``transport.writer`` of simulated runs."""


def emulated(links: Sequence[str], header_room: int, writer: str, lateness: Lateness) -> tuple[tuple[str, str], ...]:
    """Overrides that make a test case's scenario what a pair of hosts on the testbed would see.

    The links are those of the emulator, where packets are late by as much as was measured. Without it a drop-tail
    queue drops the same packets of the same cycle for ever (traffic phase effects, Floyd and Jacobson 1992). Beyond
    the 99th percentile the distribution goes on as before it: longer delays come in clumps, when the machine stands
    still for some milliseconds, and are no property of single packets. And the session begins at another fraction of
    a millisecond with every seed, because timestamps tick in milliseconds: whether a receiver sees a round trip of
    101 or 102 of them can decide over a whole slow start. Packets take as much memory as in the kernel under test, and
    the server writes as that of the live runs did.
    """
    low, high = lateness.median_s, lateness.p99_s
    # An exponential distribution is linear in the logarithm of what remains.
    slope = (high - low) / math.log(50.0)
    percentiles = {"p50": low, "p99": high, "p999": high + slope * math.log(10.0)}
    late = ", ".join(f'{name} = "{seconds * 1e6:.3f} us"' for name, seconds in percentiles.items())
    jitter = f'{{ kind = "percentiles", {late} }}'
    return (
        *((f"link.{link}.jitter", jitter) for link in links),
        ("session.0.start_spread", "1 ms"),
        ("transport.header_room", str(header_room)),
        ("transport.writer", f'"{writer}"'),
    )


def _share(some: Sequence[int], every: Sequence[int]) -> float | None:
    """The share of some in all; ``None`` where there is nothing to share."""
    return float(sum(some)) / float(sum(every)) if sum(every) else None


def _number(value: float | None) -> float | None:
    return None if value is None else float(value)
