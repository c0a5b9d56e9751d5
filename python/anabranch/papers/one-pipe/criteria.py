"""Are two unlike paths as good as one with the sum of their rates? Tables, and the networks of the grids."""

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anabranch.experiments import formats
from anabranch.experiments.claims import Filled, table
from anabranch.experiments.statistics import Array
from anabranch.experiments.statistics import mean as mean_of
from anabranch.experiments.study import Case, Row, Study
from anabranch.results.columns import DOWNLOADS, OF_LIVE

TOTAL_KBPS = 2000
LEAST_QUEUE_BYTES = 15_000
# A full packet on the link, what a subflow carries in it, and the rest: headers with timestamps and DSS.
PACKET_BYTES = 1500
PAYLOAD_BYTES = {"tcp": 1448, "mptcp": 1428}
HEADER_BYTES = PACKET_BYTES - PAYLOAD_BYTES["mptcp"]
SENDER = {"transport.scheduler": "earliest", "transport.congestion_control": "cbbr"}
TUNED_RTTS = ("60/60 ms", "20/60 ms", "60/20 ms")
UNSEEN_RTTS = ("30/120 ms", "120/30 ms")
TIMES = "p50 / p90 / p99, ms"

# --- Networks --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Network:
    """Two paths; the first one carries the initial subflow."""

    rates_kbps: tuple[float, float]
    rtts_ms: tuple[float, float]

    @staticmethod
    def of(labels: Mapping[str, Any]) -> "Network":
        """That of a condition of a plan."""
        if "ratio" in labels:
            first, second = map(int, labels["ratio"].split(":"))
            rates = [TOTAL_KBPS * part / (first + second) for part in (first, second)]
        else:
            rates = [float(rate) for rate in labels["rates"].split(" + ")]
        rtts = [float(rtt) for rtt in labels.get("rtts", "60/60 ms").removesuffix(" ms").split("/")]
        return Network((rates[0], rates[1]), (rtts[0], rtts[1]))

    @property
    def mean_rtt_ms(self) -> float:
        """The round trip of the reference: the mean, weighted by the rates."""
        return sum(rate * rtt for rate, rtt in zip(self.rates_kbps, self.rtts_ms, strict=True)) / sum(self.rates_kbps)

    def least_ms(self, chunk_bytes: int) -> float:
        """No sender can deliver a chunk over these paths in less time.

        The request takes half of the least round trip. From then on every path carries packets without a gap, which
        arrive half of its own round trip later, and all paths end together: a packet may have any size, but there are
        no more headers than those of full packets. Relaxed: headers of HTTP, losses, acknowledgments, congestion
        control, and that a request may have to use the slower path.
        """
        request = min(self.rtts_ms) / 2
        bits = 8 * (chunk_bytes + HEADER_BYTES * math.ceil(chunk_bytes / PAYLOAD_BYTES["mptcp"]))
        # Paths by when their first bit arrives; a path takes part if the others are not done before.
        paths = sorted((request + rtt / 2, rate) for rate, rtt in zip(self.rates_kbps, self.rtts_ms, strict=True))
        end, begun, rates = math.inf, 0.0, 0.0
        for start, rate in paths:
            if start >= end:
                break
            begun += rate * start
            rates += rate
            end = (bits + begun) / rates
        return end


def link(name: str, labels: Mapping[str, Any], rate_kbps: float, rtt_ms: float) -> dict[str, str]:
    """The overrides of a link of the grid."""
    bdp = f"{max(LEAST_QUEUE_BYTES, round(rate_kbps * rtt_ms / 8))} B"
    return {
        f"link.{name}.rate": f"{rate_kbps:.3f} kb/s",
        f"link.{name}.rtt": f"{rtt_ms:.3f} ms",
        f"link.{name}.queue": bdp if labels["queue"] == "1 BDP" else labels["queue"],
        f"link.{name}.down.loss.share": labels["loss"],
    }


def network(labels: Mapping[str, Any]) -> dict[str, str]:
    """Two paths, or the one that is their reference."""
    of = Network.of(labels)
    if labels["scenario"] == "one-pipe/pipe":
        return link("pipe", labels, sum(of.rates_kbps), of.mean_rtt_ms)
    slow, fast = zip(of.rates_kbps, of.rtts_ms, strict=True)
    return {**link("slow", labels, *slow), **link("fast", labels, *fast), **SENDER}


CUT_BPS = 4e6
# Two packets.
LEAST_CUT_QUEUE_BYTES = 3_000


def cut_network(labels: Mapping[str, Any]) -> dict[str, str]:
    """Round trips, and queues in bandwidth-delay products."""
    found: dict[str, str] = {}
    share = float(labels["queue"].removesuffix(" BDP"))
    round_trips = labels["round_trips"].removesuffix(" ms").split(" / ")
    for path, milliseconds in zip(("path1", "path2"), map(int, round_trips), strict=True):
        queue = max(share * CUT_BPS / 8 * milliseconds / 1000, LEAST_CUT_QUEUE_BYTES)
        found |= {f"link.{path}.rtt": f"{milliseconds} ms", f"link.{path}.queue": f"{queue:.0f} B"}
    return found


# --- What tables have in common --------------------------------------------------------------------------------------


def column(study: Study, plan: str, name: str, **labels: Any) -> list[float]:
    """A number of each session of a condition."""
    return [row[name] for row in study.rows(Case(f"{plan}: {labels}", plan, labels))]


def copied(rows: Sequence[Row]) -> float:
    """The part of the payload that was sent again on another path."""
    again, whole = sum(row["copied_bytes"] or 0 for row in rows), sum(row["bytes"] for row in rows)
    return float(again / max(whole, 1))


def bytes_of(chunk: str) -> int:
    """The size of a chunk."""
    return int(chunk.removesuffix(" kB")) * 1000


# --- Chunks ----------------------------------------------------------------------------------------------------------


def chunk_row(study: Study, plan: str, where: str, name: str, labels: Mapping[str, Any], of: Network) -> list[str]:
    """A sender: the times of both chunks."""
    line, parts = [where, name], []
    for chunk in ("100 kB", "250 kB"):
        case = Case(name, plan, {**labels, "chunk": chunk})
        times = study.downloads_ms(case)
        line += [formats.quantiles(times), f"{of.least_ms(bytes_of(chunk)) / formats.quantile(times, 0.5):.1%}"]
        parts.append(copied(study.rows(case)))
    return [*line, f"{max(parts):.2%}"]


def chunk_head(what: str, seeds: int) -> tuple[str, ...]:
    """The columns."""
    numbers = [text for chunk in ("100 kB", "250 kB") for text in (f"{chunk}: {TIMES}", "of the possible")]
    return "rates, kb/s", f"{what} ({seeds} seeds)", *numbers, "copies"


@table("senders", "Senders", texts=2, plans=("senders", "pipe"))
def senders(study: Study) -> Filled:
    """Senders compared on the headline's networks; the least time over one path is that of two."""
    both = Network((667.0, 1333.0), (60.0, 60.0))
    rows = [
        chunk_row(study, "pipe", "one path of 2000", sender, {"sender": sender}, both)
        for sender in study.axis("pipe", "sender")
    ]
    for rates in study.axis("senders", "rates"):
        for sender in study.axis("senders", "sender"):
            labels = {"rates": rates, "sender": sender}
            rows.append(chunk_row(study, "senders", rates, sender, labels, Network.of(labels)))
    return chunk_head("sender", study.seeds["senders"]), rows


@table("baselines", "Other schedulers", texts=2, plans=("schedulers",))
def baselines(study: Study) -> Filled:
    """Other schedulers with the same congestion control, the slow path first."""
    rows = []
    for rates in study.axis("schedulers", "rates"):
        for name in study.axis("schedulers", "transport.scheduler"):
            labels = {"rates": rates, "transport.scheduler": name}
            rows.append(chunk_row(study, "schedulers", rates, f"`{name}`", labels, Network.of(labels)))
    return chunk_head("scheduler with `cbbr`", study.seeds["schedulers"]), rows


# --- Grids -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Test:
    """Our sender and the reference in a test case: quantiles in ms."""

    labels: Mapping[str, Any]
    ours: Mapping[float, float]
    pipe: Mapping[float, float]
    copied: float

    def ratio(self, share: float) -> float:
        """Of a quantile."""
        return self.ours[share] / self.pipe[share]

    @property
    def possible(self) -> float:
        """The least possible time over the median."""
        return Network.of(self.labels).least_ms(bytes_of(self.labels["chunk"])) / self.ours[0.5]


AXES = ("session.0.player.interval", "ratio", "rtts", "loss", "queue", "chunk")


def tests(study: Study, rtts: Sequence[str], interval: str) -> list[Test]:
    """The test cases of a part of the grid."""
    found = {}
    for row in study.sessions(["grid"]):
        if row["rtts"] in rtts and row["session.0.player.interval"] == interval:
            found[tuple(row[name] for name in AXES)] = {name: row[name] for name in AXES}
    return [_test(study, labels) for labels in found.values()]


def _test(study: Study, labels: Mapping[str, Any]) -> Test:
    cases = [Case("grid", "grid", {**labels, "scenario": f"one-pipe/{name}"}) for name in ("chunks", "pipe")]
    ours, pipe = ({s: formats.quantile(t, s) for s in (0.5, 0.9, 0.99)} for t in map(study.downloads_ms, cases))
    return Test(labels, ours, pipe, copied(study.rows(cases[0])))


def within(found: Sequence[Test], share: float, bound: float) -> float:
    """Which share of test cases has at most this ratio."""
    return statistics.mean(test.ratio(share) <= bound for test in found)


def bars(study: Study, rtts: Sequence[str], interval: str) -> Filled:
    """A part of the grid with the bars."""
    found = tests(study, rtts, interval)
    medians = {share: statistics.median(test.ratio(share) for test in found) for share in (0.5, 0.9, 0.99)}
    copies, possible = [test.copied for test in found], statistics.median(test.possible for test in found)
    seeds = study.seeds["grid"]
    rows = [
        ("test cases with a median of at most 1.03 of the reference's", "90 %", f"{within(found, 0.5, 1.03):.1%}"),
        ("the same with at most 1.05", "98 %", f"{within(found, 0.5, 1.05):.1%}"),
        ("test cases with a 90th percentile of at most 1.05", "88 %", f"{within(found, 0.9, 1.05):.1%}"),
        ("ratio of 99th percentiles, median of the test cases", "1.000", f"{medians[0.99]:.3f}"),
        ("ratio of medians, median of the test cases", "", f"{medians[0.5]:.3f}"),
        ("ratio of 90th percentiles, median of the test cases", "", f"{medians[0.9]:.3f}"),
        ("copies, mean of the test cases", "2.5 %", f"{statistics.mean(copies):.2%}"),
        ("copies, largest of the test cases", "", f"{max(copies):.2%}"),
        ("the least possible time over the median, median of the test cases", "", f"{possible:.1%}"),
    ]
    return (f"{len(found)} test cases, {seeds} seed{'s' * (seeds > 1)} each", "bar", "measured"), rows


def parts(study: Study, rtts: Sequence[str], interval: str) -> Filled:
    """By each value of each axis, how many test cases are within the bars."""
    found = tests(study, rtts, interval)
    rows = []
    for name, values in _values(found).items():
        for value, label in values:
            part = [test for test in found if test.labels[name] == value]
            ratios = [statistics.median(test.ratio(share) for test in part) for share in (0.5, 0.9, 0.99)]
            shares = (within(part, 0.5, 1.03), within(part, 0.9, 1.05))
            copies = statistics.mean(test.copied for test in part)
            rows.append([label, *(f"{r:.3f}" for r in ratios), *(f"{s:.0%}" for s in shares), f"{copies:.2%}"])
    return ("part", "p50 ratio", "p90 ratio", "p99 ratio", "p50 <= 1.03", "p90 <= 1.05", "copies"), rows


def _values(found: Sequence[Test]) -> dict[str, list[tuple[str, str]]]:
    """The values of each axis, and what the table calls them: rates and round trips ascending."""

    def slower(ratio: str) -> tuple[float, bool]:
        rates = Network.of({"ratio": ratio}).rates_kbps
        return min(rates), rates[0] <= rates[1]

    def of(name: str) -> list[str]:
        return list(dict.fromkeys(test.labels[name] for test in found))

    ratios = sorted(of("ratio"), key=slower)
    names = {ratio: f"{slower(ratio)[0]:.0f} kb/s {'first' if slower(ratio)[1] else 'second'}" for ratio in ratios}
    return {
        "ratio": [(ratio, names[ratio]) for ratio in ratios],
        "rtts": [
            (rtts, rtts)
            for rtts in sorted(of("rtts"), key=lambda text: Network.of({"ratio": "1:1", "rtts": text}).rtts_ms)
        ],
        "loss": [(loss, f"loss {loss}") for loss in of("loss")],
        "queue": [(queue, f"queue {queue}") for queue in of("queue")],
        "chunk": [(chunk, chunk) for chunk in of("chunk")],
    }


def _grid(name: str, rtts: Sequence[str], interval: str) -> Iterator[Any]:
    yield table(name, "The grid", plans=("grid",), texts=1)(lambda study: bars(study, rtts, interval))
    yield table(f"{name}-parts", "The grid by parts", plans=("grid",), texts=1)(lambda s: parts(s, rtts, interval))


grid, grid_parts = _grid("grid", TUNED_RTTS, "1 s")
unseen, unseen_parts = _grid("unseen", UNSEEN_RTTS, "1 s")
grid_2, grid_2_parts = _grid("grid-without-pauses", TUNED_RTTS, "0 s")
unseen_2, unseen_2_parts = _grid("unseen-without-pauses", UNSEEN_RTTS, "0 s")

# --- A common bottleneck ---------------------------------------------------------------------------------------------


def on_the_wire(goodput_bps: float, protocol: str) -> float:
    """What a flow takes of a link: the same part of it is less goodput over Multipath TCP."""
    return goodput_bps * PACKET_BYTES / PAYLOAD_BYTES[protocol]


def share(row: Row, count: int, protocol: str) -> tuple[float, float]:
    """The sender's rate over the competitors' mean, and the least competitor's over a fair share."""
    ours = on_the_wire(row["goodput_bps"], protocol)
    theirs = [on_the_wire(row[f"traffic.{number}.goodput_bps"], "tcp") for number in range(count)]
    return ours / statistics.mean(theirs), min(theirs) * (count + 1) / (ours + sum(theirs))


def shares_of(study: Study, plan: str) -> Filled:
    """The shares of senders at a common bottleneck."""
    senders = study.axis(plan, "sender")
    rows = []
    for queue in study.axis(plan, "queue"):
        for beside in study.axis(plan, "beside"):
            line = [queue, beside]
            count = int(beside.split()[0])
            for sender in senders:
                # One flow is a plain TCP.
                protocol = "tcp" if sender.startswith("one ") else "mptcp"
                case = Case(sender, plan, {"queue": queue, "beside": beside, "sender": sender})
                ratios, least = zip(*(share(row, count, protocol) for row in study.rows(case)), strict=True)
                more = f" (least {statistics.mean(least):.2f})" if count > 1 else ""
                line.append(f"{formats.interval(ratios)}{more}")
            rows.append(line)
    return (f"queue ({study.seeds[plan]} seeds)", "competitors", *senders), rows


def _shares(plan: str) -> Any:
    return table(plan, "Shares", texts=2, plans=(plan,))(lambda study: shares_of(study, plan))


shares, shares_fast, bbr3, variants = map(_shares, ("shares", "shares-fast", "bbr3", "variants"))


@table("losses", "Random loss", texts=1, plans=("losses",))
def losses(study: Study) -> Filled:
    """Over separate links with random loss, relative to a TCP on each."""
    rows = []
    for loss in study.axis("losses", "loss"):

        def rates(sender: str, protocol: str, loss: str = loss) -> Array:
            found = column(study, "losses", "goodput_bps", loss=loss, sender=sender)
            return np.array([on_the_wire(goodput, protocol) for goodput in found])

        alone = [
            sum(rates(f"{control} over {path}", "tcp") for path in ("fast", "slow")) for control in ("bbr", "cubic")
        ]
        rows.append([loss, *(formats.interval(rates("`cbbr`", "mptcp") / each) for each in alone)])
    return (f"random loss ({study.seeds['losses']} seeds)", "over two `bbr`", "over two `cubic`"), rows


# --- Cuts and blocked links ------------------------------------------------------------------------------------------

GAP = "longest_delivery_gap_s"


@table("silence", "A silent cut", texts=1, plans=("silence",))
def silence(study: Study) -> Filled:
    """The longest gap after a silent cut."""
    rows = []
    for sender in study.axis("silence", "sender"):
        gaps = column(study, "silence", GAP, sender=sender)
        rows.append([sender, formats.interval(gaps), f"{max(gaps):.2f}"])
    return (f"sender ({study.seeds['silence']} seeds)", "longest gap, s", "largest"), rows


@table("cuts", "A silent cut over other networks", texts=1, plans=("cuts", "false-alarms"))
def cuts(study: Study) -> Filled:
    """The longest gap after a silent cut over other networks, and copies by false alarms where delays jitter."""
    queues, rows = study.axis("cuts", "queue"), []
    for round_trips in study.axis("cuts", "round_trips"):
        found = [column(study, "cuts", GAP, round_trips=round_trips, queue=queue) for queue in queues]
        alarms = study.rows(Case("false alarms", "false-alarms", {"round_trips": round_trips}))
        sent = sum(row[f"subflows.{path}.bytes"] for row in alarms for path in ("path1", "path2"))
        part = sum(row["copied_bytes"] for row in alarms) / sent
        rows.append([round_trips, *(f"{formats.interval(g)} ({max(g):.2f})" for g in found), f"{part:.2%}"])
    gaps = [f"queues of {queue}: longest gap, s (largest)" for queue in queues]
    return (f"round trips ({study.seeds['cuts']} seeds)", *gaps, "copies by false alarms, jitter of 10 ms"), rows


@table("blockage", "Blocked links", texts=1, plans=("blockage",))
def blockage(study: Study) -> Filled:
    """Senders over a link that is blocked every few seconds: the longest gap of a download, and segments' times."""
    rows = []
    for sender in study.axis("blockage", "sender"):
        gaps = column(study, "blockage", GAP, sender=sender, content="one download")
        case = Case(sender, "blockage", {"sender": sender, "content": "segments"})
        times = formats.quantiles(study.downloads_ms(case))
        rows.append([sender, formats.interval(gaps), f"{max(gaps):.2f}", times, f"{copied(study.rows(case)):.1%}"])
    first = (f"sender ({study.seeds['blockage']} seeds)", "one download: longest gap, s", "largest")
    return (*first, f"segments of 1 MB: {TIMES}", "copies"), rows


# --- Viewers ---------------------------------------------------------------------------------------------------------

QOE = "qoe_linear_per_segment"
# The bar of the lower end of the mean ratio's interval, which the players with a choice of their own have.
LEAST_RATIO = 0.97
WITH_BAR = ("dash.js 2.9, BOLA", "dash.js 5, fast_switch = false")


@table("dash", "DASH at 1:5", texts=2, plans=("dash", "dash-pipe"))
def dash(study: Study) -> Filled:
    """DASH over 333 + 1667 kb/s, and one TCP over 2000 kb/s."""
    rows = []
    for player in study.axis("dash", "player"):
        for length in study.axis("dash", "segments"):
            labels = {"player": player, "segments": length}
            ours, pipe = (np.array(column(study, plan, QOE, **labels)) for plan in ("dash", "dash-pipe"))
            frozen = [np.array(column(study, plan, "stall_s", **labels)) for plan in ("dash", "dash-pipe")]
            low = mean_of(ours / pipe).low
            verdict = ("yes" if low >= LEAST_RATIO else "**no**") if player in WITH_BAR else ""
            means = [f"{statistics.fmean(values):.0f}" for values in (ours, pipe)]
            stalls = [f"{statistics.fmean(values):.2f}" for values in frozen]
            numbers = [formats.interval(ours / pipe, 3), verdict, *stalls, formats.difference(frozen[0] - frozen[1])]
            rows.append([player, length, *means, *numbers])
    first = (f"player ({study.seeds['dash']} seeds)", "media segments", "QoE, two paths", "one TCP", "ratio")
    return (*first, f"lower end >= {LEAST_RATIO}", "frozen, s", "one TCP", "difference"), rows


# The metric in which the trouble of a paper shows, by its scenarios.
TROUBLES = {"sticky": ("stall_s", "frozen, s (less is better)", 2)}
OF_OTHERS = (QOE, "QoE (more is better)", 0)


def terms_of(study: Study, control: str) -> Filled:
    """What each term of `joined` is worth: the difference that it makes to leave it out."""
    scenarios = study.axis("terms", "scenario")
    troubles = {name: TROUBLES.get(name.partition("/")[0], OF_OTHERS) for name in scenarios}

    def values(scenario: str, scheduler: str) -> Array:
        labels = {"scenario": scenario, "scheduler": scheduler, "transport.congestion_control": control}
        return np.array(column(study, "terms", troubles[scenario][0], **labels))

    whole, *others = study.axis("terms", "scheduler")
    rows = [[whole, *(f"{statistics.fmean(values(name, whole)):.{troubles[name][2]}f}" for name in scenarios)]]
    for other in others:
        differences = ((values(name, other) - values(name, whole), troubles[name][2]) for name in scenarios)
        rows.append([other, *(formats.difference(each, digits) for each, digits in differences)])
    heads = [f"{name}: {troubles[name][1]}" for name in scenarios]
    return (f"with `{control}` ({study.seeds['terms']} seeds)", *heads), rows


@table("terms-lia", "Joined, with LIA", texts=1, plans=("terms",))
def terms_lia(study: Study) -> Filled:
    """With windows by loss."""
    return terms_of(study, "lia")


@table("terms-cbbr", "Joined, with cbbr", texts=1, plans=("terms",))
def terms_cbbr(study: Study) -> Filled:
    """With windows by rate."""
    return terms_of(study, "cbbr")


# --- On the wire -----------------------------------------------------------------------------------------------------

WIRE = ("wire-pipe-ours", "wire-pipe-kernel", "wire-ours", "wire-kernel")
LATE = "live.lateness_s.p99"
KERNEL = OF_LIVE[1]


def valid(rows: Sequence[Row]) -> list[Row]:
    """The rows that count: their links were punctual."""
    return [row for row in rows if row["error"] is None]


def wire(study: Study, *plans: str) -> list[Row]:
    """The runs in real time of some plans."""
    return [row for row in study.sessions(plans) if row["engine"] != "sim"]


@table("live", "On the wire", texts=2, plans=WIRE)
def live(study: Study) -> Filled:
    """Chunks to a kernel's client, and in simulation."""
    lines: dict[tuple[str, str], list[str]] = {}
    for plan in WIRE:
        own = valid(wire(study, plan))
        for rates in study.axis(plan, "rates"):
            (sender,) = study.axis(plan, "sender")
            line = lines.setdefault((rates, sender), [rates, sender])
            for chunk in ("100 kB", "250 kB"):
                same = [row for row in own if (row["rates"], row["chunk"]) == (rates, chunk)]
                labels = {"rates": rates, "chunk": chunk, "engine": "sim"}
                times = [1000 * time for row in same for time in row[DOWNLOADS]]
                line += [
                    formats.quantiles(sorted(times)),
                    formats.quantiles(study.downloads_ms(Case(sender, plan, labels))),
                ]
    order = ["one path", *study.axis(WIRE[2], "rates")]
    rows = sorted(lines.values(), key=lambda line: order.index(line[0]))
    every = wire(study, *WIRE)
    worst = max(row[LATE] for row in valid(every))
    note = (
        f"Linux {every[0][KERNEL]}. {len(valid(every))} of {len(every)} runs are valid; at the 99th percentile the "
        f"emulator was at most {1000 * worst:.2f} ms late in these."
    )
    seeds = len({row["seed"] for row in every})
    heads = [f"{chunk}, {where}: {TIMES}" for chunk in ("100 kB", "250 kB") for where in ("on the wire", "simulated")]
    return (f"rates, kb/s; {seeds} seeds of 60 s", "sender", *heads), rows, note


def with_simulation(study: Study, plans: Sequence[str], network: str, columns: Sequence[str], of: Any) -> Filled:
    """Kept runs and the simulations with the same seeds: what `of` makes of the rows of each."""
    rows = []
    conditions = dict.fromkeys((row["network"], row["sender"]) for row in valid(wire(study, *plans)))
    for name, sender in sorted(conditions, key=lambda each: each[0]):
        same = [row for row in study.sessions(plans) if (row["network"], row["sender"]) == (name, sender)]
        lived, simulated = (valid([row for row in same if (row["engine"] == "sim") is sim]) for sim in (False, True))
        rows.append([name, sender, str(len(lived)), *of(lived), *of(simulated)])
    every = wire(study, *plans)
    worst = max(row[LATE] for row in valid(every))
    late = f"their links were at most {1000 * worst:.2f} ms late (99th percentile)"
    heads = [f"{where}: {column}" for where in ("wire", "simulated") for column in columns]
    return (network, "sender", "runs", *heads), rows, f"{len(valid(every))} of {len(every)} runs are valid; {late}."


CUTS = ("wire-cuts-ours", "wire-cuts-kernel")


@table("wire-cuts", "A silent cut on the wire", texts=2, plans=CUTS)
def wire_cuts(study: Study) -> Filled:
    """One of two paths fails silently during a video or a download."""

    def gaps(rows: Sequence[Row]) -> list[str]:
        values = [row[GAP] for row in rows]
        return [formats.interval(values), f"{max(values):.2f}"]

    return with_simulation(study, CUTS, "one path fails during", ("longest gap, s", "largest"), gaps)


@table("wire-recorded", "Recorded paths", texts=2, plans=("wire-recorded",))
def wire_recorded(study: Study) -> Filled:
    """A chunk a second over recorded paths."""

    def times(rows: Sequence[Row]) -> list[str]:
        return [formats.quantiles(sorted(1000 * time for row in rows for time in row[DOWNLOADS]))]

    return with_simulation(study, ["wire-recorded"], "recorded pair", (TIMES,), times)


@table("wire-dash", "dash.js in Chromium", texts=2, plans=("wire-dash",))
def wire_dash(study: Study) -> Filled:
    """The real dash.js in Chromium over 333 + 1667 kb/s, and one TCP over 2000 kb/s."""

    def seen(rows: Sequence[Row]) -> list[str]:
        bitrate = formats.interval([row["mean_bitrate_bps"] / 1e6 for row in rows])
        stalls = formats.interval([row["stall_s"] for row in rows], 1)
        return [bitrate, stalls, formats.interval([row[QOE] for row in rows], 0)]

    return with_simulation(study, ["wire-dash"], "network", ("bitrate, Mb/s", "stalls, s", "QoE per segment"), seen)
