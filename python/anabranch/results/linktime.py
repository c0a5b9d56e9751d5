"""Link time over time: what the links of a session could have carried, by cause, in intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from anabranch.results.recording import Array

if TYPE_CHECKING:
    import polars as pl

SLICE_S = 0.01
"""The account has a row for so much time (``SLICE`` in its Rust module)."""

USEFUL = "useful"
"""What an account calls the new data of the session, which is no cause."""

PLAYER = "player"
"""The cause of time in which the player itself read no more, which no link could have used."""

_MOST_INTERVALS = 240
"""About as many intervals as a figure's width can tell apart."""


@dataclass(frozen=True)
class LinkTime:
    """What each path's link could have carried while a response was due, by cause.

    Attributes:
        edges_s: The beginnings of the intervals, and the end of the last one, in seconds since the run began.
        rates_bps: For each path and cause, the mean of each interval in bit/s; ``useful`` is new data.
    """

    edges_s: Array
    rates_bps: Mapping[str, Mapping[str, Array]]


def of_table(table: pl.DataFrame, begin_s: float, end_s: float) -> LinkTime:
    """The link time of a session's account between two instants.

    Args:
        table: The rows of the session.
        begin_s: Where it begins, in seconds since the run began.
        end_s: Where it ends.
    """
    import polars as pl

    # Whole slices, so that none is divided between two intervals.
    width = SLICE_S * max(1, round((end_s - begin_s) / SLICE_S / _MOST_INTERVALS))
    first = np.floor(begin_s / SLICE_S) * SLICE_S
    number = max(int(np.ceil((end_s - first) / width)), 1)
    edges = first + width * np.arange(number + 1)
    rows = table.filter((pl.col("time_s") >= first - SLICE_S / 2) & (pl.col("time_s") < edges[-1] - SLICE_S / 2))
    rates: dict[str, dict[str, Array]] = {}
    for (path, cause), own in sorted(rows.group_by("path", "cause"), key=lambda group: group[0]):
        # The middle of a slice: its beginning may be rounded to the interval before.
        places = ((own["time_s"].to_numpy() + SLICE_S / 2 - first) / width).astype(int)
        bits = np.bincount(places, weights=own["bits"].to_numpy(), minlength=number)[:number]
        rates.setdefault(str(path), {})[str(cause)] = bits / width
    return LinkTime(edges, rates)
