"""The small simulated runs behind the figures of the guide; `guide-figures.py` draws them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

import anabranch

SEED = 1

# Two paths whose rates and round trips differ by a factor of four, so that a scheduler has something to decide.
FAST, SLOW = "wifi", "lte"
UNLIKE = {
    FAST: {"rtt": "30 ms", "rate": "8 Mb/s", "queue": "60 kB"},
    SLOW: {"rtt": "120 ms", "rate": "2 Mb/s", "queue": "60 kB"},
}
CHUNK_BYTES = 400_000
# Windows have left slow start by this request.
CHUNK = 6

# Two paths of the same rate, one with twice the round trip and a random loss; queues of one bandwidth-delay product.
ALIKE = {
    FAST: {"rtt": "40 ms", "rate": "8 Mb/s", "queue": "40 kB"},
    SLOW: {"rtt": "80 ms", "rate": "8 Mb/s", "queue": "80 kB", "loss": "0.1 %"},
}


def scenario(**keys: Any) -> anabranch.Scenario:
    """A scenario with what all of these runs have in common."""
    return anabranch.Scenario(question="What does the guide show?", **keys)


def chunks(transport: dict[str, Any], links: dict[str, Any] | None = None) -> anabranch.Run:
    """A chunk of 400 kB every second over the two unlike paths."""
    wanted = scenario(
        duration="12 s",
        transport={"congestion_control": "cubic", **transport},
        link=links or UNLIKE,
        session=[
            {
                "paths": list(links or UNLIKE),
                "video": {"kind": "bulk", "size": f"{CHUNK_BYTES} B"},
                "player": {"kind": "on-off", "duration": "10 s"},
            }
        ],
    )
    return anabranch.run(wanted, seed=SEED, events=True)


def download(transport: dict[str, Any], links: dict[str, Any], duration: str, **keys: Any) -> anabranch.Run:
    """An endless download over all links."""
    session = {"paths": list(links), "video": {"kind": "bulk"}}
    wanted = scenario(duration=duration, transport=transport, link=links, session=[session], **keys)
    return anabranch.run(wanted, seed=SEED, events=True)


def viewer(player: dict[str, Any] | str) -> anabranch.Run:
    """Two minutes of DASH over one path whose rate falls to a fifth for forty seconds."""
    low, high = {"rate": "1 Mb/s"}, {"rate": "5 Mb/s"}
    wanted = scenario(
        duration="180 s",
        link={FAST: {"rtt": "40 ms", "rate": "5 Mb/s", "queue": "64 kB"}},
        session=[{"video": {"kind": "dash", "ladder": "bbb-2s", "duration": "120 s"}, "player": player}],
        event=[{"at": "40 s", "link": FAST, "down": low}, {"at": "80 s", "link": FAST, "down": high}],
    )
    return anabranch.run(wanted, seed=SEED, events=True)


@dataclass(frozen=True)
class Delivery:
    """How one chunk travelled. Times are in milliseconds since its request, places in kB of its response.

    Attributes:
        sent: A row per segment with payload: `ms`, `kB`, `path`, and whether it is `again` a copy or a retransmission.
        readable: When the first so many bytes were readable: `ms` and `kB`.
        complete_ms: When the last byte was there.
    """

    sent: pl.DataFrame
    readable: pl.DataFrame
    complete_ms: float


def delivery(run: anabranch.Run, chunk: int = CHUNK) -> Delivery:
    """One chunk of a run of :func:`chunks`, counted from zero."""
    events = run.events
    downloads = run.metrics["sessions"][0]["downloads"]
    assert downloads is not None, "the session fetches chunks"
    begin, end = downloads[chunk]["requested_s"], downloads[chunk]["finished_s"]
    assert end is not None, "the chunk arrived"
    ends = events.filter(event="response-complete").sort("time_s")["end_offset"]
    first = int(ends[chunk - 1]) if chunk else 0
    since = (pl.col("time_s") - begin) * 1e3
    sent = (
        events.filter(
            pl.col("event") == "segment-sent", pl.col("time_s").is_between(begin, end), pl.col("offset") >= first
        )
        .filter(pl.col("offset") < int(ends[chunk]))
        .select(
            ms=since,
            kB=(pl.col("offset") - first) / 1e3,
            path="path",
            again=pl.col("detail") != "new",
        )
    )
    delivered = events.filter(event="delivered").sort("time_s")
    readable = (
        delivered.with_columns(all=pl.col("bytes").cum_sum())
        .filter(pl.col("time_s").is_between(begin, end), pl.col("all") > first)
        .select(ms=since, kB=(pl.col("all") - first) / 1e3)
    )
    return Delivery(sent, readable, (end - begin) * 1e3)
