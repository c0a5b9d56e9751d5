"""What link time went to, by path and cause."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
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


def by_cause(parts: Iterable[Part]) -> dict[str, float]:
    """The share of each cause, all paths together, the largest first."""
    shares: dict[str, float] = {}
    for part in parts:
        shares[part.cause] = shares.get(part.cause, 0.0) + part.share
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def with_outages(shares: dict[str, float]) -> dict[str, float]:
    """The same, where what an outage lost belongs to the outage."""
    whole = dict(shares)
    if "link-down" in whole:
        whole["link-down"] += whole.pop("loss-outage", 0.0)
    return whole
