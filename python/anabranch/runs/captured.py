"""Why a download was not faster, by a capture at its sender: any sender of TCP or Multipath TCP.

A capture does not tell what links could have carried. What a path carried at its best counts as its rate, so a path
that the sender never filled looks slower than it is. While a response is due, each moment of each path goes to new data
or, as far as packets tell, to one cause. Where they do not distinguish two causes, the cause names both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from anabranch import arguments
from anabranch.errors import InputError
from anabranch.results import connections, evidence, linktime
from anabranch.results.connections import Session
from anabranch.results.evidence import DataEvidence, PathEvidence
from anabranch.results.recording import Array
from anabranch.runs.captureaccount import SLICE_S, account
from anabranch.runs.parts import Part, by_cause, of_outages

_MOST_SLICES = 500_000


@dataclass(frozen=True, slots=True)
class CaptureExplanation:
    """Where the time of a captured session's paths went while a response was due.

    Attributes:
        file: The capture.
        session: The session's number, from 0.
        sessions: How many sessions the capture has.
        name: Its two ends, the sender's first.
        begin_s: When the first response was due, as the capture counts seconds.
        end_s: When the last one had arrived.
        due_s: How long a response was due.
        possible_bits: What the paths at their best would have carried meanwhile.
        useful_share: The share of it that was new payload.
        parts: All else, the largest part first. A path is named by the address of the end that receives, or by both
            addresses where that would be ambiguous; bits are of payload, at the path's best rate.
        lacks: What the capture lacks, in sentences.
    """

    file: str
    session: int
    sessions: int
    name: str
    begin_s: float
    end_s: float
    due_s: float
    possible_bits: float
    useful_share: float
    parts: tuple[Part, ...]
    lacks: tuple[str, ...]

    @property
    def causes(self) -> dict[str, float]:
        """The share of each cause, all paths together, the largest first."""
        return by_cause(self.parts)

    @property
    def first_cause(self) -> str | None:
        """The cause to look at first, if there is one: the largest. What an outage loses belongs to the outage."""
        shares = by_cause(of_outages(self.parts))
        return max(shares, key=lambda cause: shares[cause], default=None)

    def as_dict(self) -> dict[str, Any]:
        """The same for JSON."""
        return {**asdict(self), "causes": self.causes, "first_cause": self.first_cause}


def explain_capture(file: str | Path, *, session: int | None = None) -> CaptureExplanation:
    """Says from a capture at the sender where the time of a session's paths went.

    Args:
        file: A pcap or pcapng with at least the headers of every packet, taken at the end that sends the data.
        session: Which session, in the order of their beginnings, from 0; the one with most data where absent. A session
            is a connection, or several of one client to one server that follow each other.

    Raises:
        InputError: It is no capture, has no such session, or was taken at the receiver.
    """
    place = Path(arguments.place("file", file, "the name of a file"))
    try:
        found = connections.read(place)
    except OSError as error:
        raise InputError(f"{place}: {error.strerror}") from error
    sizes = [each.sent_bytes for each in found.sessions]
    if session is None:
        session = int(np.argmax(sizes))
    if not 0 <= session < len(sizes):
        raise InputError(f"{place}: there is no session {session}; expected one of 0 to {len(sizes) - 1}")
    if not sizes[session]:
        raise InputError(f"{place}: session {session} carried no data; nothing to explain")
    chosen = found.sessions[session]
    packets = evidence.packets_of(found.packets, session)
    paths = evidence.of_paths(packets, chosen)
    if not any(np.isfinite(path.known_s).any() for path in paths):
        raise InputError(f"{place}: session {session} has no acknowledgment; the capture has one direction only")
    if all(path.is_at_receiver for path in paths):
        raise InputError(
            f"{place}: the capture seems to be the receiver's; expected one at the end that sends the data"
        )
    return _explained((str(place), session, len(sizes)), chosen, paths, evidence.of_data(packets, chosen, paths))


# --- The account ----------------------------------------------------------------------------------------------------


def _explained(
    which: tuple[str, int, int], chosen: Session, paths: Sequence[PathEvidence], flow: DataEvidence
) -> CaptureExplanation:
    begin, end = float(flow.requests_s[0]), float(flow.done_s.max())
    length = max(SLICE_S, (end - begin) / _MOST_SLICES)
    edges: Array = begin + length * np.arange(int(np.ceil((end - begin) / length)) + 1, dtype=np.float64)
    due, spent = account(paths, flow, edges)
    known = [path.rate for path in paths if path.rate]
    bits: dict[tuple[str, str, str | None], float] = {}
    for each in spent:
        key = (each.path.name, each.cause, each.by)
        bits[key] = bits.get(key, 0.0) + each.seconds * 8 * (each.path.rate or sum(known) / len(known))
    possible = sum(bits.values())
    parts = [Part(*key, value, value / possible if possible else 0.0) for key, value in bits.items()]
    parts.sort(key=lambda part: -part.share)
    return CaptureExplanation(
        file=which[0],
        session=which[1],
        sessions=which[2],
        name=chosen.name,
        begin_s=begin,
        end_s=end,
        due_s=due,
        possible_bits=possible,
        useful_share=sum(part.share for part in parts if part.cause == linktime.USEFUL),
        parts=tuple(part for part in parts if part.cause != linktime.USEFUL and part.share > 0.0),
        lacks=tuple(_lacks(chosen)),
    )


def _lacks(chosen: Session) -> list[str]:
    late = sum(not stream.has_begun for stream in chosen.streams)
    lacks = []
    if late:
        of = f"{late} of {len(chosen.streams)} subflows" if len(chosen.streams) > 1 else "the connection"
        lacks.append(
            f"The capture begins after the handshake of {of}: the scale of windows is unknown, so a receive "
            "window that was full is not seen, nor is a backup."
        )
    if not len(chosen.requests_s):
        lacks.append("No request was captured: all the time from the first byte to the last counts as one response.")
    return lacks
