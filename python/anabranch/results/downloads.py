"""The downloads of a session, and their times: how long each chunk took from its request to its last byte."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def times_s(downloads: Iterable[Mapping[str, Any]] | None) -> list[float]:
    """The times in seconds of the downloads that came, ascending; none where a player has no downloads."""
    return sorted(
        each["finished_s"] - each["requested_s"] for each in downloads or () if each["finished_s"] is not None
    )


def last_of(session: Mapping[str, Any], number: int) -> Mapping[str, Any] | None:
    """The last download of a media segment, or of a file where the player has no media segments, if it came.

    Args:
        session: The metrics of the session; only DASH players have media segments.
        number: That of the media segment or file, counted from 0.
    """
    listed = requested(session)
    chosen = [each for place, each in enumerate(listed) if each.get("index", place) == number]
    return chosen[-1] if chosen and chosen[-1]["finished_s"] is not None else None


def requested(session: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The media segments of a session, or its downloads where the player has none, in the order of their requests."""
    return session.get("media_segments") or session["downloads"] or ()


def quantile(ordered: Sequence[float] | NDArray[np.float64], share: float) -> float:
    """The quantile of nearest rank of ascending values: the least one that this share of them does not exceed."""
    return float(ordered[max(math.ceil(share * len(ordered)), 1) - 1])
