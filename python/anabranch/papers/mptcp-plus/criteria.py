"""P1 to P11: "MPTCP+: Enhancing Adaptive HTTP Video Streaming over Multipath"."""

from collections.abc import Iterator

import numpy as np

from anabranch.experiments.claims import (
    Finding,
    Outcome,
    Quantity,
    Value,
    above,
    above_threshold,
    at_least,
    at_most,
    below,
    claim,
    digits,
    higher,
    holds,
    is_higher,
    is_lower,
    lower,
    margin_of,
    quantity,
    tally,
)
from anabranch.experiments.statistics import Array, Interval
from anabranch.experiments.study import Case, Metric, Row, Study, number

Found = Iterator[Finding | Quantity | Value]
Point = tuple[int, float]
"""C2 in kb/s, and C1/C2."""

PATHS = ("path1", "path2")

# P4's grid.
QUALITY_RATES = (500, 1000)
QUALITY_POINTS = tuple((c2, ratio) for c2 in QUALITY_RATES for ratio in (0.5, 0.6, 0.7, 0.8))
# The ratios up to which, by the paper, the slow path reduces quality.
HURTING = 0.6
# That of P5 to P7. The paper names 1500 ("average bandwidth": its limit); its figure 6 has the others. A large gap
# of rates, one that PUD still refuses, and a small one.
GAIN_POINTS = tuple((c2, ratio) for c2 in (500, 1000, 1500) for ratio in (0.3, 0.5, 0.8))
HALVED = 0.5
# The smallest gain that passes for "up to 50 %".
UP_TO_HALF = 40.0
# A switch in every tenth of the 596 media segments, or more, is called frequent.
FREQUENT = 59.6
# Less than half of what the pair carries, 1490 kb/s, is called far below it.
FAR_BELOW_KBPS = 745.0
# The coefficient of variation of one NewReno's sawtooth, which goes evenly from w/2 to w: (1/2)/√12 over 3/4.
SAWTOOTH = 0.192
# A deviation that comes this near its final value has settled, as a part of it.
SETTLED = 0.2
# Bytes of an Ethernet's full packet, and the payload of a full segment of TCP, and of MPTCP.
PACKET, TCP_PAYLOAD, MPTCP_PAYLOAD = 1500.0, 1448.0, 1428.0

BITRATE = Metric("bitrate", "mean_bitrate_bps", "kb/s", 1e-3)
USED_BITRATE = Metric("mean of used bitrates", "mean_used_bitrate_bps", "kb/s", 1e-3)
SWITCHES = Metric("switches", "switches")
STALLS = Metric("stalls", "stalls")
DELAY = Metric("segment delay", "segment_delivery.delay_mean_s", "s")
DELAY_P90 = Metric("90th percentile of the segment delay", "segment_delivery.delay_p90_s", "s")
SPEED = Metric("segment speed", "segment_delivery.speed_mean_bps", "kb/s", 1e-3)
SECOND_CHOICE = Metric("next choice", "segment_delivery.second_bitrate_bps", "kb/s", 1e-3)
REORDER = Metric("wait for earlier bytes", "reorder_delay_s.mean", "ms", 1e3)
VARIATION = Metric("variation of the total window", "total_window.variation")
QOE_LINEAR = Metric("linear QoE", "qoe_linear")
QOE_LOG = Metric("log QoE", "qoe_log")


def triggers(row: Row) -> float:
    """Of both subflows; what never happened has no column."""
    counts = (number(row, f"subflows.{path}.control_counts.theta_triggers", absent=0.0) for path in PATHS)
    return sum(count or 0.0 for count in counts)


def disabled(row: Row) -> float:
    """The part of the playing time in which the path policy forbade the path that it forbade longest."""
    longest = max(number(row, f"subflows.{path}.disabled_s", absent=0.0) or 0.0 for path in PATHS)
    return longest / row["played_s"] if row["played_s"] else 0.0


TRIGGERS = Metric("triggers of MCC's θ", triggers)
DISABLED = Metric("time with one path forbidden by PUD", disabled, "%", 100.0)

FAR = Case("0.49 MPTCP", "video", {"scenario": "mptcp-plus/ratio-0.49"})
NEAR = Case("0.87 MPTCP", "video", {"scenario": "mptcp-plus/ratio-0.87"})
FAST_ALONE = Case("the fast path alone", "fast-path")


def on_grid(point: Point, transport: str, plan: str, **labels: str) -> Case:
    """A point of the grids."""
    name = f"C2 {point[0]}, C1/C2 {point[1]}"
    return Case(f"{name} {transport}", plan, {"point": name, **labels})


def before(point: Point) -> Case:
    """A point with MPTCP."""
    return on_grid(point, "MPTCP", "grid")


def after(point: Point) -> Case:
    """A point with MPTCP+."""
    return on_grid(point, "MPTCP+", "grid-plus")


def half(point: Point, part: str) -> Case:
    """A point with one of the two parts of MPTCP+."""
    return on_grid(point, part, "grid-halves", part=part)


def alone(c2: int) -> Case:
    """The path of C2 alone."""
    return Case(f"C2 {c2} alone", "grid-alone", {"link.path2.rate": f"{c2} kb/s"})


@claim(
    "P1",
    "a throughput ratio of 0.49 holds the bitrate at a low level, far below what the pair could carry; at 0.87 the "
    "slow path no longer limits it, though switches stay frequent",
    criterion="at 0.49 the mean bitrate is below half of the pair's rate, and lower than over the fast path alone; "
    "at 0.87 it is higher than over the fast path alone, with more than one switch in ten media segments",
    why={
        "partly": "the bitrate is {far:.0f} kb/s at 0.49, {alone:.0f} over the fast path alone and {near:.0f} at "
        "0.87: with a deep queue a window outgrows a media segment, so min-RTT puts whole segments on a single path, "
        "and on the slow path whenever the smoothed round trip of the fast path, measured while its queue was full, "
        "is longer"
    },
)
def p1(study: Study) -> Found:
    """Both ratios."""
    yield below(study, FAR, BITRATE, FAR_BELOW_KBPS)
    yield lower(study, FAR, FAST_ALONE, BITRATE)
    yield higher(study, NEAR, FAST_ALONE, BITRATE)
    yield above(study, NEAR, SWITCHES, FREQUENT)
    for name, case in (("far", FAR), ("alone", FAST_ALONE), ("near", NEAR)):
        yield quantity(study, case, BITRATE)
        yield quantity(study, case, SWITCHES)
        yield Value(name, study.mean(case, BITRATE).estimate)


# P8's networks: the plan, the scenario, and their name.
NETWORKS = {
    "500 + 500": ("windows", {"scenario": "mptcp-plus/500-500"}),
    "1000 + 870": ("windows", {"scenario": "mptcp-plus/ratio-0.87"}),
    "500 + 500, download": ("download", {}),
}
CONTROLS = ("lia", "olia", "balia", "mcc")


def network(name: str, control: str) -> Case:
    """One of P8's networks with a control."""
    plan, labels = NETWORKS[name]
    return Case(f"{name} {control}", plan, {**labels, "transport.congestion_control": control})


EQUAL = network("500 + 500", "lia")


@claim(
    "P2",
    "500 kb/s per path, coupled control: the total window fluctuates strongly and the bitrate oscillates",
    criterion="the coefficient of variation of the total window is above 0.192, that of one NewReno's sawtooth; "
    "there is more than one switch in ten media segments",
    why={
        "partly": "the total window varies more than a sawtooth, because windows decay while the player pauses and "
        "grow again; the bitrate does not follow, because at these rates the pauses limit it, not the windows"
    },
)
def p2(study: Study) -> Found:
    """Windows and bitrate."""
    yield above(study, EQUAL, VARIATION, SAWTOOTH)
    yield above(study, EQUAL, SWITCHES, FREQUENT)
    yield quantity(study, EQUAL, SWITCHES)


# P3's patterns, with what the paper measured on their paths.
PATTERNS = {"900 + 480": ("867.5", "461.5"), "3250 + 670": ("3141.7", "647.4")}


def pattern(name: str) -> Case:
    """One of P3's pairs of limits."""
    fast, slow = name.split(" + ")
    return Case(name, "patterns", {"link.path1.rate": f"{fast} kb/s", "link.path2.rate": f"{slow} kb/s"})


def sampled(path: int, what: str, name: str) -> Metric:
    """A number of the sampled throughput of a path, in kb/s."""
    return Metric(f"{name}, path {path + 1}", f"sampled_throughput.{PATHS[path]}.{what}_bps", "kb/s", 1e-3)


def deviation(path: int, first: int | None = None) -> Metric:
    """The standard deviation over the first so many samples, or all."""
    return sampled(path, "deviation" if first is None else f"deviation_{first}", "deviation")


def settles(study: Study, name: str, path: int) -> Finding:
    """The deviation over 150 samples is near that over all."""
    means = [study.mean(pattern(name), deviation(path, first)) for first in (50, 150, 300, None)]
    words = ", ".join(map(digits, means))
    text = f"{name}, path {path + 1}: deviation over 50, 150, 300, all samples {words} kb/s"
    return Finding(text, holds(abs(means[1].estimate / means[3].estimate - 1) <= SETTLED))


@claim(
    "P3",
    "the standard deviation of sampled throughput settles by n = 150 samples; the faster path's is larger",
    criterion="for each path of both patterns the mean deviation of the first 150 samples is within 20 % of that of "
    "all; the faster path's is higher",
    why={
        "partly": "it settles on {settled} of {paths} paths, and goes on changing elsewhere as the player moves "
        "between representations; the faster path's is certainly the larger in {larger} of {patterns} patterns"
    },
)
def p3(study: Study) -> Found:
    """Both paths of both patterns."""
    settled, larger = list[Finding](), list[Finding]()
    for name, papers in PATTERNS.items():
        for path in (0, 1):
            settled.append(settles(study, name, path))
            yield settled[-1]
        fast, slow = (study.values(pattern(name), deviation(path)) for path in (0, 1))
        d = study.interval(fast - slow)
        larger.append(Finding(f"{name}: deviation, fast − slow {digits(d)} kb/s", is_higher(d, margin_of(slow))))
        yield larger[-1]
        for path, paper in enumerate(papers):
            yield quantity(study, pattern(name), sampled(path, "mean", "mean of sampled throughput"), paper)
        for path in (0, 1):
            yield quantity(study, pattern(name), sampled(path, "window_over_rtt", "window over round trip"))
    yield from tally("settled", "paths", settled)
    yield from tally("larger", "patterns", larger)


def hurts_most(study: Study, metric: Metric) -> Finding:
    """The loss relative to C2's path is higher with 500 than with 1000 kb/s."""

    def loss(c2: int) -> Array:
        return 100 - study.values(before((c2, 0.5)), metric) / study.values(alone(c2), metric) * 100

    d = study.interval(loss(500) - loss(1000))
    text = f"{metric.name}, loss at 0.5, 500 − 1000: {digits(d)} points"
    return Finding(text, is_higher(d, margin_of(loss(1000))))


@claim(
    "P4",
    "quality against C1/C2 from 0.5 to 0.8 with C2 = 500 and 1000 kb/s: the slow path hurts at 0.5 and 0.6, worst at "
    "500, and not above",
    criterion='in both readings of the "average of ever used bitrates" (over time, over distinct bitrates) the pair is '
    "lower than C2's path alone at 0.5 and 0.6, and not at 0.7 and 0.8; at 0.5 the loss relative to that path is "
    "higher with C2 = 500 than with 1000",
    why={
        "partly": "as the paper says at {distinct} of {points} points in a mean over distinct bitrates, and at "
        "{timed} in a mean over time, where the pair carries {least:.0f} to {most:.0f} % less than the path alone "
        "at 0.7 and 0.8"
    },
)
def p4(study: Study) -> Found:
    """Both readings."""
    for name, metric in (("timed", BITRATE), ("distinct", USED_BITRATE)):
        agreeing = 0
        for point in QUALITY_POINTS:
            found = lower(study, before(point), alone(point[0]), metric)
            if point[1] > HURTING:
                found = Finding(found.text, ~found.decision)
            agreeing += found.outcome is Outcome.HOLDS
            yield found
        yield hurts_most(study, metric)
        yield Value(name, agreeing)
    yield Value("points", len(QUALITY_POINTS))
    for c2 in QUALITY_RATES:
        yield quantity(study, alone(c2), BITRATE)
    for point in QUALITY_POINTS:
        yield quantity(study, before(point), BITRATE)
        yield quantity(study, before(point), USED_BITRATE)
    losses = [
        100 - study.mean(before(point), BITRATE).estimate / study.mean(alone(point[0]), BITRATE).estimate * 100
        for point in QUALITY_POINTS
        if point[1] > HURTING
    ]
    yield Value("least", min(losses))
    yield Value("most", max(losses))


def both_at_each_point(study: Study, metric: Metric) -> Found:
    """The quantities of MPTCP and MPTCP+."""
    for point in GAIN_POINTS:
        yield quantity(study, before(point), metric)
        yield quantity(study, after(point), metric)


@claim(
    "P5",
    "MPTCP+ lowers media-segment download delay against MPTCP",
    criterion="for C2 = 500, 1000, 1500 kb/s and C1/C2 = 0.3, 0.5, 0.8 the mean and the 90th percentile are lower",
    why={
        "not reproduced": "{lower} of {findings} delays are certainly lower, {higher} certainly higher, and {same} "
        "do not differ by what matters: the player turns what MPTCP+ gains into bitrate and chooses larger segments",
        "partly": "{lower} of {findings} delays are certainly lower, {higher} certainly higher, and {same} do not "
        "differ by what matters: the player turns what MPTCP+ gains into bitrate and chooses larger segments, and "
        "where PUD does not act there is nothing to gain",
    },
)
def p5(study: Study) -> Found:
    """Nine points, two statistics."""
    for metric in (DELAY, DELAY_P90):
        for point in GAIN_POINTS:
            yield lower(study, after(point), before(point), metric)
    yield from both_at_each_point(study, DELAY)


def gain(study: Study, point: Point, metric: Metric, *, less_is_better: bool = False) -> Interval:
    """The relative gain, per cent, seed by seed."""
    new, old = (study.values(case(point), metric) for case in (after, before))
    return study.interval((old / new - 1 if less_is_better else (new - old) / np.abs(old)) * 100)


@claim(
    "P6",
    "MPTCP+ raises media-segment download speed against MPTCP, most at 1500 kb/s and a large inter-path difference",
    criterion="at the same nine points the mean is higher, and the relative gain is largest at 1500 kb/s and 0.3",
    why={
        "partly": "speed rises by up to {most:.0f} % where PUD acts, and by {here:.0f} % at 1500 kb/s and 0.3, where "
        "it hardly acts if traffic stays on the slow path: the fast path has nothing in flight then, and a path "
        "without samples cannot be compared"
    },
)
def p6(study: Study) -> Found:
    """Nine points, and where the gain is largest."""
    for point in GAIN_POINTS:
        yield higher(study, after(point), before(point), SPEED)
    gains = {point: gain(study, point, SPEED) for point in GAIN_POINTS}
    here = gains[1500, 0.3]
    most = max(each.estimate for each in gains.values())
    largest = all(each.estimate <= here.estimate for each in gains.values())
    yield Finding(f"gain of speed at {after((1500, 0.3)).name}: {digits(here)} %", holds(largest))
    yield Value("most", most)
    yield Value("here", here.estimate)
    yield from both_at_each_point(study, SPEED)


@claim(
    "P7",
    "QoE up to 50 % higher (the figures show media-segment delay and speed)",
    criterion="at the best of the nine points delay, speed, bitrate, linear and log QoE each gain 40 % or more, for "
    "certain more than nothing",
    why={
        "partly": "speed, bitrate and linear QoE gain {least:.0f} to {most:.0f} % at the best point, log QoE "
        "{log:.0f} % and delay {delay:.0f} %"
    },
)
def p7(study: Study) -> Found:
    """The best point of each measure."""
    best: dict[Metric, float] = {}
    for metric in (DELAY, SPEED, BITRATE, QOE_LINEAR, QOE_LOG):
        gains = {point: gain(study, point, metric, less_is_better=metric is DELAY) for point in GAIN_POINTS}
        (c2, ratio), most = max(gains.items(), key=lambda item: item[1].low)
        best[metric] = most.estimate
        text = f"{metric.name}: largest gain {digits(most)} %, at C2 {c2}, C1/C2 {ratio}"
        yield Finding(text, above_threshold(most, 0.0) & holds(most.estimate >= UP_TO_HALF))
    for point in GAIN_POINTS:
        for case in (before(point), after(point)):
            yield quantity(study, case, BITRATE)
        for metric in (DISABLED, TRIGGERS):
            yield quantity(study, after(point), metric)
    for point in GAIN_POINTS:
        if point[1] == HALVED:
            for part in ("MPTCP with PUD", "MPTCP with MCC"):
                yield quantity(study, half(point, part), BITRATE)
    gained = [best[metric] for metric in (SPEED, BITRATE, QOE_LINEAR)]
    yield Value("least", min(gained))
    yield Value("most", max(gained))
    yield Value("log", best[QOE_LOG])
    yield Value("delay", best[DELAY])


@claim(
    "P8",
    "MCC's total window fluctuates less than LIA's, OLIA's and Balia's",
    criterion="its coefficient of variation is lower than each of theirs, for the video over 500 + 500 and 1000 + "
    "870 kb/s and for an endless download over 500 + 500 kb/s",
    why={
        "not reproduced": "{lower} of {findings} variations are certainly lower than another control's, {higher} "
        "certainly higher, and {same} do not differ by what matters: with the video windows hardly leave slow start, "
        "and in a download MCC parks on a path after the other (it is OLIA without its rebalancing)",
        "partly": "{lower} of {findings} variations are certainly lower than another control's, {higher} certainly "
        "higher, and {same} do not differ by what matters",
    },
)
def p8(study: Study) -> Found:
    """Three networks."""
    for name in NETWORKS:
        for other in CONTROLS[:3]:
            yield lower(study, network(name, "mcc"), network(name, other), VARIATION)
        for control in CONTROLS:
            yield quantity(study, network(name, control), VARIATION)


def on_the_wire(column: str, payload: float) -> Metric:
    """A goodput as a rate on the wire if every packet is full, kb/s."""
    return Metric("rate", column, "kb/s", PACKET / payload / 1e3)


@claim(
    "P9",
    "MPTCP+ is TCP-friendly (RFC 6356 goals 1-3)",
    criterion="goals 1 and 2 as in the laws' row 13: at least 0.9 of the best path's TCP, at most 1.15 of a TCP on a "
    "shared bottleneck; goal 3: with PUD, on the path with four competitors it takes less than each of them, for "
    "certain",
    why={
        "reproduced": "MCC is fully coupled, so it stays within RFC 6356's bounds; PUD hardly uses the path with the "
        "competitors, on which it takes {own:.0f} kb/s"
    },
)
def p9(study: Study) -> Found:
    """The three goals."""
    multipath, single = on_the_wire("goodput_bps", MPTCP_PAYLOAD), on_the_wire("goodput_bps", TCP_PAYLOAD)

    def over_links(of: str) -> Case:
        return Case(of, "friendly-two-links", {"connection": of})

    best = np.maximum(*(study.values(over_links(f"TCP on the {link} link"), single) for link in ("fast", "slow")))
    total = study.interval(study.values(over_links("mcc"), multipath) / best)
    text = f"total over the best path's TCP {digits(total)}, at least 0.9"
    yield Finding(f"mcc over 20 Mb/s and 10 Mb/s, one NewReno on each (RED): {text}", at_least(total, 0.9))
    for queue in ("RED", "drop-tail"):
        case = Case(queue, "friendly-bottleneck", {"queue": queue})
        tcp = study.values(case, on_the_wire("traffic.0.goodput_bps", TCP_PAYLOAD))
        share = study.interval(study.values(case, multipath) / tcp)
        where = f"mcc with both paths through one bottleneck ({queue}), and one NewReno"
        yield Finding(f"{where}: share over the TCP's {digits(share)}, at most 1.15", at_most(share, 1.15))
    yield from balances_congestion(study)


def balances_congestion(study: Study) -> Found:
    """On the path with four competitors it takes less than each of them."""
    case = Case("both links", "friendly-balance")
    own = study.values(case, on_the_wire("subflows.busy.goodput_bps", MPTCP_PAYLOAD))
    others = [on_the_wire(f"traffic.{number}.goodput_bps", TCP_PAYLOAD) for number in (1, 2, 3, 4)]
    each = np.mean([study.values(case, other) for other in others], axis=0)
    text = f"{digits(study.interval(own))} kb/s, each competitor {digits(study.interval(each))} kb/s"
    less = is_lower(study.interval(own - each), margin_of(each))
    yield Finding(f"goal 3, on the congested path: {text}", less)
    yield Value("own", float(np.mean(own)))


@claim(
    "P10",
    "it needs the server only: unmodified MPTCP clients work",
    criterion="a kernel's client and dash.js in a browser play over our server with PUD and MCC, on and off",
    why={
        "not testable": "a simulation has no unmodified client; with real clients it holds: see docs/validation/live.md"
    },
)
def p10(_: Study) -> Found:
    """Nothing that a simulation could find."""
    yield from ()


def one_segment(player: str, paths: str) -> Case:
    """A segment of 4 Mb/s over both paths or the fast one."""
    return Case(f"{player} over {paths}", "one-segment", {"player": player, "paths": paths})


@claim(
    "P11",
    "a 4 Mb/s segment over 5 + 1 Mb/s: the part on the slow path delays the segment, may cause a rebuffering, and "
    "lowers the next choice",
    criterion="with every segment at 4 Mb/s the mean delay is higher over both paths than over the fast one, bytes "
    "wait for earlier ones, and there are more stalls; after a first segment at 4 Mb/s dash.js's next choice is "
    "lower",
    why={
        "reproduced": "min-RTT sends part of each segment over the slow path as soon as the fast path's round trip "
        "has grown past the other's, and the segment waits for that part for {wait:.1f} s",
        "partly": "the segment waits for the part on the slow path, and stalls follow, as claimed; the next choice "
        "is lower only in some of the videos",
    },
)
def p11(study: Study) -> Found:
    """With every segment at 4 Mb/s, and with the first."""
    fixed, fixed_alone = (one_segment("4 Mb/s", paths) for paths in ("5 + 1", "5"))
    choosing, choosing_alone = (one_segment("dash.js", paths) for paths in ("5 + 1", "5"))
    yield higher(study, fixed, fixed_alone, DELAY)
    yield above(study, fixed, REORDER, 0.0)
    yield higher(study, fixed, fixed_alone, STALLS)
    yield lower(study, choosing, choosing_alone, SECOND_CHOICE)
    for case in (fixed, fixed_alone):
        yield quantity(study, case, DELAY)
        yield quantity(study, case, STALLS)
    for case in (choosing, choosing_alone):
        yield quantity(study, case, SECOND_CHOICE)
    yield Value("wait", study.difference(fixed, fixed_alone, DELAY).estimate)
