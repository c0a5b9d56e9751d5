"""The times of downloads: how long each chunk took from its request to its last byte."""

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


def quantile(ordered: Sequence[float] | NDArray[np.float64], share: float) -> float:
    """The quantile of nearest rank of ascending values: the least one that this share of them does not exceed."""
    return float(ordered[max(math.ceil(share * len(ordered)), 1) - 1])
