"""What link time went to, by path and cause."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

_OUTAGE, _OF_OUTAGE = "link-down", "loss-outage"
SHARED = "shared"


@dataclass(frozen=True, slots=True)
class LinkTime:
    """What some link time of a path went to.

    Attributes:
        path: The path.
        cause: The key of the cause, such as ``loss-random``.
        by: Who is behind it, where that is another path or connection.
        bits: What the link could have carried in this time.
        share: The same as a share of what all links of the session could have carried.
    """

    path: str
    cause: str
    by: str | None
    bits: float
    share: float


def by_cause(parts: Iterable[LinkTime]) -> dict[str, float]:
    """The share of each cause, all paths together, the largest first."""
    shares: dict[str, float] = {}
    for part in parts:
        shares[part.cause] = shares.get(part.cause, 0.0) + part.share
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def of_outages(parts: Sequence[LinkTime]) -> list[LinkTime]:
    """The same, where what an outage lost belongs to the outage."""
    if all(part.cause != _OUTAGE for part in parts):
        return list(parts)
    return [replace(part, cause=_OUTAGE) if part.cause == _OF_OUTAGE else part for part in parts]


def path_of(parts: Sequence[LinkTime], cause: str | None) -> str | None:
    """The path to look at for a cause: the one that most of the cause's share is of; none if it has no part.

    What a path loses while it waits for another one counts for that one, which has the fault: the last bytes are on it,
    or a loss that is not repaired yet.
    """
    shares: dict[str, float] = {}
    for part in of_outages(parts):
        if part.cause == cause:
            # Packets that share a link are of a connection, and no path.
            path = part.path if part.by is None or cause == SHARED else part.by
            shares[path] = shares.get(path, 0.0) + part.share
    return max(shares, key=lambda path: shares[path], default=None)
