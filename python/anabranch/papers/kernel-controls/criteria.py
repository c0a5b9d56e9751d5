"""What nginx on the kernel's Multipath TCP gains and loses by coupled controls: tables of runs in real time."""

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anabranch.experiments import formats
from anabranch.experiments import statistics as intervals
from anabranch.experiments.claims import Filled, table
from anabranch.experiments.statistics import Interval
from anabranch.experiments.study import Row, Study

CUBIC = "CUBIC, as it comes"
COUPLED = ("LIA", "OLIA", "BALIA", "MCC")
SENDERS = (CUBIC, "BBR on each path", *COUPLED, "LIA and PUD", "MCC and PUD (MPTCP+)")
# Shipped scenarios, the headline of one-pipe, recorded pairs, and two paths that meet at a bottleneck.
NETWORKS = ("dash/ratio-1-5", "mptcp-plus/500-500", "mptcp-plus/ratio-0.49", "mptcp-plus/ratio-0.87")
PIPE = "667 + 1333 kb/s"
RECORDED = ("recorded 13_1 x 0.1", "recorded 21_1")
SHARED = "one bottleneck"

# A download takes about half a minute over 2 Mb/s.
FILE_KB = 6000
CHUNKS_KB = (100, 250)
CHUNKS = 60
# Which senders get each size of nginx's writes.
WRITTEN_BY = {"pages": SENDERS, "32 kB": SENDERS[:3], "whole chunks": SENDERS[:3]}
# Lasts for minutes over the whole bottleneck.
SHARED_FILE_KB = 100_000
CONNECTIONS = (1, 1000)
COST_SENDERS = (CUBIC, *COUPLED)

Labels = Mapping[str, Any]

# --- The goals of RFC 6356 -------------------------------------------------------------------------------------------

UNCOUPLED = "newreno"
# A packet has 1500 bytes on the wire. Of these TCP carries 1448 and Multipath TCP 1428, so the same part of a link is
# less goodput for the latter.
_WIRE = {"tcp": 1500 / 1448, "mptcp": 1500 / 1428}


def _of_connection(row: Row) -> float:
    return float(row["goodput_bps"]) * _WIRE["mptcp"]


def _of_tcp(row: Row) -> float:
    return float(row["goodput_bps"]) * _WIRE["tcp"]


def _with_tcp(row: Row) -> float:
    return _of_connection(row) / (float(row["traffic.0.goodput_bps"]) * _WIRE["tcp"])


def _share_of_busy(row: Row) -> float:
    busy, quiet = (float(row[f"subflows.{path}.goodput_bps"] or 0) for path in ("busy", "quiet"))
    return busy / (busy + quiet)


@dataclass(frozen=True)
class Goal:
    """One of the goals, with its bar; the page has the reason of the bar.

    Attributes:
        name: That of the plans.
        what: What is measured.
        measure: Of a run.
        bound: The bar of the measure, over that of the reference where there is one.
        at_least: Whether the bar is a lower one.
        references: The measure is divided by the mean of the best of these; it is a ratio already where there are none.
        of_reference: The measure of these.
        controls: What the table has a row of.
    """

    name: str
    what: str
    measure: Callable[[Row], float]
    bound: float
    at_least: bool = False
    references: tuple[str, ...] = ()
    of_reference: Callable[[Row], float] = _of_tcp
    controls: tuple[str, ...] = (*map(str.lower, COUPLED), UNCOUPLED)

    def holds(self, value: float) -> bool:
        """Whether a value meets the bar."""
        return value >= self.bound if self.at_least else value <= self.bound

    def values(self, study: Study, control: str) -> list[float]:
        """Those of the kept runs, one for each seed; none without runs of the reference."""
        references = [of(study, "goals", goal=self.name, control=each) for each in self.references]
        if not all(references):
            return []
        by = max((statistics.fmean(map(self.of_reference, rows)) for rows in references), default=1.0)
        return [self.measure(row) / by for row in of(study, "goals", goal=self.name, control=control)]

    def measured(self, study: Study, control: str) -> Interval:
        """The mean of the kept runs, or what was recorded before runs were kept, of more runs than these."""
        values = self.values(study, control)
        (recorded,) = of(study, "goals-recorded", goal=self.name, control=control)
        if len(values) >= recorded["runs"]:
            return intervals.mean(np.array(values))
        return Interval.around(recorded["mean"], recorded["half_width"], recorded["runs"])

    def verdict(self, control: str, found: Interval) -> str:
        """By the mean, as in laws.md; unless the interval reaches over the bar."""
        if control == UNCOUPLED:
            return "without coupling"
        ends = [self.holds(end) for end in (found.low, found.high)]
        if all(ends):
            return "holds"
        return "fails" if not any(ends) else "holds in the mean" if self.holds(found.estimate) else "fails in the mean"


GOALS = (
    Goal(
        "improve throughput",
        "the rate over two links, over that of a TCP on the better one",
        _of_connection,
        # Windows that are coupled are smaller than that of one TCP on each path, and each has its own round trips of
        # repair, for which a tenth is allowed.
        0.9,
        at_least=True,
        references=("TCP on fast", "TCP on slow"),
    ),
    # Without coupling it is about 2.
    Goal("do no harm", "the rate through one link, over that of the TCP there", _with_tcp, 1.15),
    Goal(
        "shift",
        "the share of the link with four TCPs, over that without coupling",
        _share_of_busy,
        # Without coupling a window goes with 1/sqrt(p), with LIA's law with 1/p. Each of five flows has 2/5 of what
        # each of two has, so the windows' ratio falls from 2/5 to 4/25, and the share from 0.29 to 0.14: by half.
        0.75,
        references=(UNCOUPLED,),
        of_reference=_share_of_busy,
        controls=tuple(map(str.lower, COUPLED)),
    ),
)


@table("goals", "The goals of RFC 6356", texts=3, plans=("goals", "goals-recorded"))
def goals(study: Study) -> Filled:
    """Goals and controls."""
    rows = []
    for goal in GOALS:
        bar = f"{'≥' if goal.at_least else '≤'} {goal.bound:g}"
        for control in goal.controls:
            found = goal.measured(study, control)
            measured = f"{found.estimate:.3f} ± {found.half_width:.3f}"
            what = f"{goal.name}: {goal.what}: {bar}"
            rows.append([what, control, goal.verdict(control, found), measured, str(found.count)])
    return ("goal of RFC 6356, bar", "control", "verdict", "measured, 95 % interval", "runs"), rows


# --- nginx -----------------------------------------------------------------------------------------------------------


def runs_of_chunks() -> Iterator[Labels]:
    """A chunk a second on one connection."""
    for seed in range(1, 7):
        for writes, senders in WRITTEN_BY.items():
            for sender in senders:
                for size in CHUNKS_KB:
                    yield {"network": PIPE, "sender": sender, "size_kb": size, "writes": writes, "seed": seed}


def runs_of_downloads() -> Iterator[Labels]:
    """A file over each network."""
    for network in (*NETWORKS, *RECORDED):
        for sender in SENDERS:
            for seed in range(1, 6 if network in RECORDED else 5):
                yield {"network": network, "sender": sender, "size_kb": FILE_KB, "seed": seed}


def runs_of_sharing() -> Iterator[Labels]:
    """A download without end together with a kernel TCP."""
    for seed in range(1, 7):
        for sender in SENDERS:
            yield {"network": SHARED, "sender": sender, "size_kb": SHARED_FILE_KB, "seed": seed}


def runs_of_players() -> Iterator[Labels]:
    """A minute of video in the real dash.js."""
    for seed in range(1, 7):
        for network in (*NETWORKS, RECORDED[0]):
            for sender in SENDERS:
                yield {"network": network, "sender": sender, "seed": seed}


def runs_of_cost() -> Iterator[Labels]:
    """One run at a time, in turn."""
    for seed in range(1, 5):
        for connections in CONNECTIONS:
            for sender in COST_SENDERS:
                yield {"sender": sender, "connections": connections, "seed": seed}


def of(study: Study, name: str, **labels: Any) -> list[Row]:
    """The kept rows with these labels, by seed."""
    own = [row for row in study.sessions([name]) if all(row[key] == value for key, value in labels.items())]
    return sorted(own, key=lambda row: row.get("seed", 0))


def by_network(study: Study, name: str, networks: Sequence[str]) -> Iterator[tuple[str, str, list[Row]]]:
    """The runs of each network and sender."""
    for network in networks:
        for sender in SENDERS:
            yield network, sender, of(study, name, network=network, sender=sender)


def first_share(row: Row) -> float:
    """The part of the bytes that came on the first path, in per cent."""
    first, second = (row[f"received.ct{path}"] for path in (1, 2))
    return float(100 * first / (first + second))


@table("chunks", "Chunks over two paths", texts=2)
def chunks(study: Study) -> Filled:
    """The times of chunks."""
    rows = []
    for writes, senders in WRITTEN_BY.items():
        for sender in senders:
            row = [writes, sender]
            for size in CHUNKS_KB:
                own = of(study, "chunks", writes=writes, sender=sender, size_kb=size)
                # The first chunk waits for the second subflow and for slow start: a viewer's manifest.
                times_ms = [[1000 * time_s for time_s in each["times_s"][1:]] for each in own]
                row.append(formats.quantiles(sorted(time_ms for run in times_ms for time_ms in run)))
                row.append(formats.interval([statistics.median(run) for run in times_ms], 0))
            rows.append(row)
    sizes = [f"{size} kB: {number}" for size in CHUNKS_KB for number in ("p50 / p90 / p99, ms", "p50 of a run, ms")]
    return ("nginx writes", f"sender ({study.seeds['chunks']} runs of {CHUNKS} chunks)", *sizes), rows


@table("downloads", "Downloads", texts=2)
def downloads(study: Study) -> Filled:
    """The time of a file."""
    rows = []
    for network, sender, own in by_network(study, "downloads", (*NETWORKS, *RECORDED)):
        times = formats.interval([row["times_s"][0] for row in own])
        rows.append([network, sender, str(len(own)), times, formats.interval([first_share(row) for row in own], 0)])
    return ("network", "sender", "runs", f"{FILE_KB / 1000:g} MB, s", "on path 1, %"), rows


@table("sharing", "A TCP that shares a link", texts=1)
def sharing(study: Study) -> Filled:
    """What is left for a TCP."""
    rows = []
    for _, sender, own in by_network(study, "sharing", (SHARED,)):
        connection, tcp = (formats.interval([row[rate] / 1e6 for row in own]) for rate in ("own_bps", "tcp_bps"))
        ratio = formats.interval([row["own_bps"] / row["tcp_bps"] for row in own])
        rows.append([sender, str(len(own)), connection, tcp, ratio])
    return ("sender", "runs", "connection, Mb/s", "the TCP, Mb/s", "ratio"), rows


# Columns of the table with their units and decimals.
SEEN = (
    ("mean_bitrate_bps", 1e6, 2),
    ("switches", 1.0, 1),
    ("stalls", 1.0, 1),
    ("stall_s", 1.0, 1),
    ("qoe_linear_per_segment", 1.0, 0),
)


@table("players", "dash.js in Chromium", texts=2)
def players(study: Study) -> Filled:
    """What a viewer of the real dash.js sees."""
    rows = []
    for network, sender, own in by_network(study, "players", (*NETWORKS, RECORDED[0])):
        seen = [formats.interval([row[name] / unit for row in own], digits) for name, unit, digits in SEEN]
        share = formats.interval([first_share(row) for row in own], 0)
        rows.append([network, sender, str(len(own)), *seen, share])
    numbers = ("bitrate, Mb/s", "switches", "stalls", "stalls, s", "QoE per segment", "on path 1, %")
    return ("network", "sender", "runs", *numbers), rows


@table("cost", "Cost", texts=2)
def cost(study: Study) -> Filled:
    """CPU time compared with CUBIC's; the ratios are of neighbours."""
    rows = []
    for connections in CONNECTIONS:
        base = [row["cpu_s_per_gbit"] for row in of(study, "cost", connections=connections, sender=CUBIC)]
        for sender in COST_SENDERS:
            own = of(study, "cost", connections=connections, sender=sender)
            used = [row["cpu_s_per_gbit"] for row in own]
            ratios = [cpu / other for cpu, other in zip(used, base, strict=True)]
            rates = formats.interval([row["goodput_mbps"] for row in own], 0)
            rows.append([str(connections), sender, formats.interval(used), formats.interval(ratios), rates])
    counted = f"{study.seeds['cost']} runs"
    return ("connections", f"sender ({counted})", "CPU s per Gbit", "over CUBIC's", "goodput, Mb/s"), rows
