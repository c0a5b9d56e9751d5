"""Measures chunk downloads over two paths beside one TCP over the sum of the rates, for docs/validation/one-pipe.md.

    .venv/bin/python scripts/one-pipe.py                                      prints the tables
    .venv/bin/python scripts/one-pipe.py --write docs/validation/one-pipe.md  replaces them in the page
    .venv/bin/python scripts/one-pipe.py --only grid --seeds 5 --every 7      one table, of every seventh test case

The grid varies ratio, order, round trips, loss, queue and chunk. It is the part on which constants were chosen; the
table `unseen` has the pairs of round trips on which they were not. There is a chunk every second; in the tables
`without-pauses` each one is requested as soon as the one before is complete.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from page_tables import markdown, replaced

from anabranch import _core

SCENARIOS = Path(__file__).parent.parent / "scenarios"
TOTAL_KBPS = 2000
RATIOS = (1, 2, 5, 9)
TUNED_RTTS = ((60, 60), (20, 60), (60, 20))
UNSEEN_RTTS = ((30, 120), (120, 30))
LOSSES = ("0 %", "0.5 %", "2 %")
QUEUES = ("1 BDP", "64 kB", "250 kB")
CHUNKS_KB = (50, 100, 250, 1000)
LEAST_QUEUE_BYTES = 15_000
# A full packet on the link, what a subflow carries in it, and the rest: headers with timestamps and DSS.
PACKET_BYTES = 1500
PAYLOAD_BYTES = 1428
HEADER_BYTES = PACKET_BYTES - PAYLOAD_BYTES
OUR_SENDER = {"transport.scheduler": "earliest", "transport.congestion_control": "cbbr"}
PLAIN = {"transport.opportunistic_retransmission": "true", "transport.penalisation": "true"}
LINUX = {"transport.kernel": "upstream", "transport.congestion_control": "cubic"}
# Senders of the headline's table: name, and what differs from one-pipe/chunks.
SENDERS: dict[str, Mapping[str, str]] = {
    "today's Linux, CUBIC": {**LINUX, "transport.scheduler": "linux"},
    "today's Linux, CUBIC, earliest": {**LINUX, "transport.scheduler": "earliest"},
    "LIA, ECF": {**PLAIN, "transport.scheduler": "ecf", "transport.congestion_control": "lia"},
    "BBR on each path, ECF": {"transport.scheduler": "ecf", "transport.congestion_control": "bbr"},
    "cbbr, earliest": OUR_SENDER,
    "without waiting": {**OUR_SENDER, "transport.scheduler": '{ name = "earliest", waiting = false }'},
    "without copies": {**OUR_SENDER, "transport.scheduler": '{ name = "earliest", copies = false }'},
    "LIA, earliest": {**OUR_SENDER, "transport.congestion_control": "lia"},
}
# Schedulers of the literature beside ours.
BASELINES = (
    "min-rtt",
    "blest",
    "ecf",
    "sttf",
    "peekaboo",
    "redundant-idle",
    "reinject-deadline",
    "redundant",
    "earliest",
)


@dataclass(frozen=True)
class Case:
    """Two paths and a chunk; the first path carries the initial subflow."""

    rates_kbps: tuple[float, float]
    rtts_ms: tuple[int, int]
    loss: str
    queue: str
    chunk_kb: int
    # From one request to the next, which waits until the chunk before it is complete.
    interval: str = "1 s"

    @property
    def mean_rtt_ms(self) -> float:
        """The round trip of the reference: the mean, weighted by the rates."""
        pairs = zip(self.rates_kbps, self.rtts_ms, strict=True)
        return sum(rate * rtt for rate, rtt in pairs) / sum(self.rates_kbps)

    def queue_text(self, rate_kbps: float, rtt_ms: float) -> str:
        """The size of a link's queue."""
        if self.queue != "1 BDP":
            return self.queue
        return f"{max(LEAST_QUEUE_BYTES, round(rate_kbps * rtt_ms / 8))} B"

    def link(self, name: str, rate_kbps: float, rtt_ms: float) -> dict[str, str]:
        """The overrides of a link."""
        return {
            f"link.{name}.rate": f"{rate_kbps:.3f} kb/s",
            f"link.{name}.rtt": f"{rtt_ms:.3f} ms",
            f"link.{name}.queue": self.queue_text(rate_kbps, rtt_ms),
            f"link.{name}.down.loss.share": self.loss,
        }

    def two_paths(self) -> dict[str, str]:
        """The overrides of one-pipe/chunks."""
        slow, fast = zip(self.rates_kbps, self.rtts_ms, strict=True)
        return {**self.link("slow", *slow), **self.link("fast", *fast), **self.chunk()}

    def one_pipe(self) -> dict[str, str]:
        """The overrides of one-pipe/pipe."""
        return {**self.link("pipe", sum(self.rates_kbps), self.mean_rtt_ms), **self.chunk()}

    def chunk(self) -> dict[str, str]:
        """The overrides of the chunk's size and of the requests."""
        return {"session.0.video.size": f"{self.chunk_kb} kB", "session.0.player.interval": self.interval}


@dataclass(frozen=True)
class Sample:
    """The times of all chunks of some seeds, ascending, in ms; and what was copied of their bytes."""

    times_ms: tuple[float, ...]
    copied: float

    def quantile(self, share: float) -> float:
        """The nearest-rank quantile."""
        rank = math.ceil(share * len(self.times_ms))
        return self.times_ms[max(rank, 1) - 1]


def least_ms(case: Case) -> float:
    """No sender can deliver a chunk over these paths in less time.

    The request takes half of the least round trip. From then on every path carries packets without a gap, which arrive
    half of its own round trip later, and all paths end together: a packet may have any size, but there are no more
    headers than those of full packets. Relaxed: headers of HTTP, losses, acknowledgments, congestion control, and that
    a request may have to use the slower path.
    """
    request = min(case.rtts_ms) / 2
    payload = case.chunk_kb * 1000
    bits = 8 * (payload + HEADER_BYTES * math.ceil(payload / PAYLOAD_BYTES))
    # Paths by when their first bit arrives; a path takes part if the others are not done before.
    paths = sorted((request + rtt / 2, rate) for rate, rtt in zip(case.rates_kbps, case.rtts_ms, strict=True))
    end, begun, rates = math.inf, 0.0, 0.0
    for start, rate in paths:
        if start >= end:
            break
        begun += rate * start
        rates += rate
        end = (bits + begun) / rates
    return end


def measured(scenario: str, overrides: Mapping[str, str], seeds: int) -> Sample:
    """Runs a scenario of one-pipe/ with the seeds from 1."""
    text = (SCENARIOS / "one-pipe" / f"{scenario}.toml").read_text(encoding="utf-8")
    checked = _core.load(text, name=f"one-pipe/{scenario}", directory=None, overrides=tuple(overrides.items()))
    times: list[float] = []
    copied = total = 0
    for seed in range(1, seeds + 1):
        session = json.loads(_core.measure(checked, seed=seed, stop=_core.Stop()))["metrics"]["sessions"][0]
        finished = [chunk for chunk in session["downloads"] if chunk["finished_s"] is not None]
        times += [1000 * (chunk["finished_s"] - chunk["requested_s"]) for chunk in finished]
        copied += session["copied_bytes"] or 0
        total += session["bytes"]
    return Sample(tuple(sorted(times)), copied / max(total, 1))


def cases(rtts: Sequence[tuple[int, int]], interval: str) -> Iterator[Case]:
    """The grid over these pairs of round trips, with a chunk at every interval."""
    rates = []
    for ratio in RATIOS:
        slow = TOTAL_KBPS / (1 + ratio)
        rates += [(slow, TOTAL_KBPS - slow)] + ([(TOTAL_KBPS - slow, slow)] if ratio > 1 else [])
    for parts in itertools.product(rates, rtts, LOSSES, QUEUES, CHUNKS_KB):
        yield Case(*parts, interval)


@dataclass(frozen=True)
class Comparison:
    """Our sender beside the reference in one case."""

    case: Case
    ours: Sample
    pipe: Sample

    def ratio(self, share: float) -> float:
        """Of a quantile."""
        return self.ours.quantile(share) / self.pipe.quantile(share)


def compare(rtts: Sequence[tuple[int, int]], interval: str, seeds: int, every: int) -> list[Comparison]:
    """Measures every n-th test case over these pairs of round trips."""
    pipes: dict[tuple[tuple[str, str], ...], Sample] = {}
    found = []
    for case in itertools.islice(cases(rtts, interval), 0, None, every):
        reference = tuple(case.one_pipe().items())
        if reference not in pipes:
            pipes[reference] = measured("pipe", dict(reference), seeds)
        ours = measured("chunks", {**case.two_paths(), **OUR_SENDER}, seeds)
        found.append(Comparison(case, ours, pipes[reference]))
    return found


def share_of(found: Sequence[Comparison], quantile: float, bound: float) -> float:
    """Which share of cases has at most this ratio."""
    return statistics.mean(comparison.ratio(quantile) <= bound for comparison in found)


def grid_table(rtts: Sequence[tuple[int, int]], interval: str, seeds: int, every: int) -> str:
    """What the grid comes to beside the bars, and which values are hard."""
    found = compare(rtts, interval, seeds, every)
    medians = {quantile: statistics.median(c.ratio(quantile) for c in found) for quantile in (0.5, 0.9, 0.99)}
    copies = [c.ours.copied for c in found]
    possible = [least_ms(c.case) / c.ours.quantile(0.5) for c in found]
    rows = [
        ("test cases with a median of at most 1.03 of the reference's", "90 %", f"{share_of(found, 0.5, 1.03):.1%}"),
        ("the same with at most 1.05", "98 %", f"{share_of(found, 0.5, 1.05):.1%}"),
        ("test cases with a 90th percentile of at most 1.05", "88 %", f"{share_of(found, 0.9, 1.05):.1%}"),
        ("ratio of 99th percentiles, median of the test cases", "1.000", f"{medians[0.99]:.3f}"),
        ("ratio of medians, median of the test cases", "", f"{medians[0.5]:.3f}"),
        ("ratio of 90th percentiles, median of the test cases", "", f"{medians[0.9]:.3f}"),
        ("copies, mean of the test cases", "2.5 %", f"{statistics.mean(copies):.2%}"),
        ("copies, largest of the test cases", "", f"{max(copies):.2%}"),
        ("the least possible time over the median, median of the test cases", "", f"{statistics.median(possible):.1%}"),
    ]
    summary = markdown((f"{len(found)} test cases, {seeds} seed{'s' * (seeds > 1)} each", "bar", "measured"), rows)
    return f"{summary}\n\n{frontier(found)}"


def frontier(found: Sequence[Comparison]) -> str:
    """By each value of each axis, how many cases are within the bars."""
    slow = {(min(c.case.rates_kbps), c.case.rates_kbps[0] <= c.case.rates_kbps[1]) for c in found}
    axes: list[tuple[str, Any]] = [
        (f"{kbps:.0f} kb/s {'first' if first else 'second'}", ("rates", kbps, first)) for kbps, first in sorted(slow)
    ]
    axes += [(f"{a}/{b} ms", ("rtts_ms", (a, b))) for a, b in sorted({c.case.rtts_ms for c in found})]
    axes += [(f"loss {loss}", ("loss", loss)) for loss in LOSSES]
    axes += [(f"queue {queue}", ("queue", queue)) for queue in QUEUES]
    axes += [(f"{kb} kB", ("chunk_kb", kb)) for kb in CHUNKS_KB]

    def belongs(comparison: Comparison, what: tuple[Any, ...]) -> bool:
        rates = comparison.case.rates_kbps
        if what[0] == "rates":
            return (min(rates), rates[0] <= rates[1]) == what[1:]
        return bool(getattr(comparison.case, what[0]) == what[1])

    rows = []
    for name, what in axes:
        part = [comparison for comparison in found if belongs(comparison, what)]
        ratios = [statistics.median(c.ratio(quantile) for c in part) for quantile in (0.5, 0.9, 0.99)]
        copies = statistics.mean(c.ours.copied for c in part)
        within = (share_of(part, 0.5, 1.03), share_of(part, 0.9, 1.05))
        rows.append([name, *(f"{r:.3f}" for r in ratios), *(f"{w:.0%}" for w in within), f"{copies:.2%}"])
    head = ("part", "p50 ratio", "p90 ratio", "p99 ratio", "p50 <= 1.03", "p90 <= 1.05", "copies")
    return markdown(head, rows)


REFERENCE = "bbr of the reference"


def senders_table(seeds: int, _every: int) -> str:
    """Senders beside each other on the headline's networks."""
    rows: list[list[str]] = []
    for rates in ((667.0, 1333.0), (1333.0, 667.0), (333.0, 1667.0), (1667.0, 333.0)):
        chunks = [Case(rates, (60, 60), "0.5 %", "30 kB", kb) for kb in (100, 250)]
        for control in ("cubic", "bbr", None) if not rows else ():
            extra = {} if control is None else {"transport.congestion_control": control}
            samples = [measured("pipe", {**case.one_pipe(), **extra}, seeds) for case in chunks]
            rows.append(row("one path of 2000", f"TCP, {control or REFERENCE}", chunks, samples))
        for name, sender in SENDERS.items():
            samples = [measured("chunks", {**case.two_paths(), **sender}, seeds) for case in chunks]
            rows.append(row(f"{rates[0]:.0f} + {rates[1]:.0f}", name, chunks, samples))
    quantiles = "p50 / p90 / p99, ms"
    first = ("rates, kb/s", f"sender ({seeds} seeds)", f"100 kB: {quantiles}", "of the possible")
    head = (*first, f"250 kB: {quantiles}", "of the possible", "copies")
    return markdown(head, rows, texts=2)


def baselines_table(seeds: int, _every: int) -> str:
    """Other schedulers with the same congestion control, the slow path first."""
    rows = []
    for rates in ((667.0, 1333.0), (333.0, 1667.0)):
        chunks = [Case(rates, (60, 60), "0.5 %", "30 kB", kb) for kb in (100, 250)]
        for name in BASELINES:
            sender = {**OUR_SENDER, "transport.scheduler": name}
            samples = [measured("chunks", {**case.two_paths(), **sender}, seeds) for case in chunks]
            rows.append(row(f"{rates[0]:.0f} + {rates[1]:.0f}", f"`{name}`", chunks, samples))
    quantiles = "p50 / p90 / p99, ms"
    first = ("rates, kb/s", f"scheduler with `cbbr` ({seeds} seeds)", f"100 kB: {quantiles}", "of the possible")
    head = (*first, f"250 kB: {quantiles}", "of the possible", "copies")
    return markdown(head, rows, texts=2)


def row(rates: str, name: str, chunks: Sequence[Case], samples: Sequence[Sample]) -> list[str]:
    """A row of the senders' table."""
    line = [rates, name]
    for case, sample in zip(chunks, samples, strict=True):
        line.append(" / ".join(f"{sample.quantile(quantile):.0f}" for quantile in (0.5, 0.9, 0.99)))
        line.append(f"{least_ms(case) / sample.quantile(0.5):.1%}")
    return [*line, f"{max(sample.copied for sample in samples):.2%}"]


TABLES: dict[str, Callable[[int, int], str]] = {
    "senders": senders_table,
    "baselines": baselines_table,
    "grid": lambda seeds, every: grid_table(TUNED_RTTS, "1 s", seeds, every),
    "unseen": lambda seeds, every: grid_table(UNSEEN_RTTS, "1 s", seeds, every),
    "grid-without-pauses": lambda seeds, every: grid_table(TUNED_RTTS, "0 s", seeds, every),
    "unseen-without-pauses": lambda seeds, every: grid_table(UNSEEN_RTTS, "0 s", seeds, every),
}


def main() -> None:
    """Measures, and prints or writes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", metavar="PAGE", type=Path, help="replace the tables in this page")
    parser.add_argument("--only", choices=tuple(TABLES), action="append", help="these tables (all)")
    parser.add_argument("--seeds", type=int, default=20, help="seeds of every test case (20)")
    parser.add_argument("--every", type=int, default=1, help="only every n-th test case of a grid (1)")
    arguments = parser.parse_args()
    for name in arguments.only or TABLES:
        table = TABLES[name](arguments.seeds, arguments.every)
        if arguments.write is None:
            print(f"{name}\n\n{table}\n")
        else:
            page = arguments.write.read_text(encoding="utf-8")
            arguments.write.write_text(replaced(page, name, table), encoding="utf-8")


if __name__ == "__main__":
    main()
