"""D1 to D9: "Performance of DASH over Multipath TCP"."""

from collections.abc import Iterator

from anabranch.experiments import statistics
from anabranch.experiments.claims import (
    Decision,
    Finding,
    Outcome,
    Quantity,
    Relation,
    Value,
    above,
    claim,
    digits,
    higher,
    holds,
    is_higher,
    lower,
    margin,
    near,
    quantity,
    tally,
)
from anabranch.experiments.study import Case, Metric, Study

Found = Iterator[Finding | Quantity | Value]

LADDERS = {"1 s": "bbb-1s", "6 s": "bbb-6s", "10 s": "bbb-10s"}
NAMES = {"short": "1 s", "middle": "6 s", "long": "10 s"}
SCENARIOS = {
    "1:1": "dash/ratio-1-1",
    "1:2": "dash/ratio-1-2",
    "1:3": "dash/ratio-1-3",
    "1:4": "dash/ratio-1-4",
    "1:5": "dash/ratio-1-5",
    "TCP 2000": "dash/tcp-2000",
    "TCP 1667": "dash/tcp-1667",
}
RATIOS = tuple(SCENARIOS)[:5]

HIGH_QUALITY = Metric("high quality", "time_on_high_quality", "%", 100.0)
BITRATE = Metric("bitrate", "mean_bitrate_bps", "kb/s", 1e-3)
SWITCHES = Metric("switches", "switches")
IMPACTFUL = Metric("impactful switches", "impactful_switches")
STARTUP = Metric("start-up", "startup_s", "s")
BUFFER_DEVIATION = Metric("deviation of the buffer", "buffer_deviation_s", "s")
REORDER = Metric("wait for earlier bytes", "reorder_delay_s.mean", "ms", 1e3)
# The wait per byte for what another path carried, as a part of a media segment's mean delay.
ACROSS = Metric("wait for the other path over delay", "segment_delivery.wait_across_share", "%", 100.0)

# How near a share of time has to come, in points.
NEAR_POINTS = 10.0
# How near a number of switches has to come, as a part of the paper's.
NEAR_PART = 0.5
# A part of the delay that matters, per cent.
MATTERS = 10.0
# A correlation that is called strong.
STRONG = -0.8


def case(length: str, network: str) -> Case:
    """Media segments of a length over a network."""
    labels = {"scenario": SCENARIOS[network], "session.0.video.ladder": LADDERS[length]}
    return Case(f"{length} {network}", "sessions", labels)


@claim(
    "D1",
    "time on high quality: 1 s segments 64.9 % at 1:1 falling to 22.0 % at 1:5; 10 s segments 90.7 % falling to 59.2 %",
    criterion="each of the four means is within 10 points of the paper's",
    why={
        "partly": "{hold} of {findings} means are near the paper's; BOLA falls to low bitrates less often than the "
        "paper's player did, which may have been older, and its windows uncoupled",
        "not reproduced": "{hold} of {findings} means are near the paper's; BOLA falls to low bitrates less often "
        "than the paper's player did, which may have been older, and its windows uncoupled",
    },
)
def d1(study: Study) -> Found:
    """Numbers of the text."""
    for length, ratio, paper in (
        ("1 s", "1:1", 64.9),
        ("1 s", "1:5", 22.0),
        ("10 s", "1:1", 90.7),
        ("10 s", "1:5", 59.2),
    ):
        yield near(study, case(length, ratio), HIGH_QUALITY, paper, NEAR_POINTS)
        yield quantity(study, case(length, ratio), HIGH_QUALITY, f"{paper:.1f}")


@claim(
    "D2",
    "time on high quality falls as the ratio grows, and longer segments do better",
    criterion="for each length it is lower at 1:5 than at 1:1; at each ratio it is higher with 10 s than with 1 s",
    why={
        "partly": "from 1:1 to 1:5 it changes by {short:+.1f} points with 1 s segments, {middle:+.1f} with 6 s and "
        "{long:+.1f} with 10 s; longer segments are certainly better at {better} of {ratios} ratios"
    },
)
def d2(study: Study) -> Found:
    """Along both axes of the figure."""
    for length in LADDERS:
        yield lower(study, case(length, "1:5"), case(length, "1:1"), HIGH_QUALITY)
    better = [higher(study, case("10 s", ratio), case("1 s", ratio), HIGH_QUALITY) for ratio in RATIOS]
    yield from better
    yield from tally("better", "ratios", better)
    yield from changes(study, HIGH_QUALITY)


def changes(study: Study, metric: Metric) -> Iterator[Value]:
    """From 1:1 to 1:5, with each length."""
    for name, length in NAMES.items():
        yield Value(name, study.difference(case(length, "1:5"), case(length, "1:1"), metric).estimate)


@claim(
    "D3",
    "impactful switches at 1:1: 33.5 (1 s), 9.9 (6 s), 5 (10 s); 10 s at 1:5: 20.8",
    criterion="each of the four means is within half of the paper's value; with 10 s there are more at 1:5 than at 1:1",
    why={
        "not reproduced": "BOLA changes the resolution {least:.1f} to {most:.1f} times, and the paper's player did "
        "more often",
        "partly": "{hold} of {findings} findings hold: BOLA changes the resolution {least:.1f} to {most:.1f} times",
    },
)
def d3(study: Study) -> Found:
    """Numbers of the text."""
    for length, ratio, paper in (
        ("1 s", "1:1", 33.5),
        ("6 s", "1:1", 9.9),
        ("10 s", "1:1", 5.0),
        ("10 s", "1:5", 20.8),
    ):
        yield near(study, case(length, ratio), IMPACTFUL, paper, paper * NEAR_PART)
        yield quantity(study, case(length, ratio), IMPACTFUL, f"{paper:g}")
    yield higher(study, case("10 s", "1:5"), case("10 s", "1:1"), IMPACTFUL)
    places = (("1 s", "1:1"), ("6 s", "1:1"), ("10 s", "1:1"), ("10 s", "1:5"))
    means = [study.mean(case(*place), IMPACTFUL).estimate for place in places]
    yield Value("least", min(means))
    yield Value("most", max(means))


@claim(
    "D4",
    "switches: 1 s segments have far more than 6 and 10 s; they tend to rise with the ratio (1 s: not monotonic)",
    criterion="at each ratio 1 s has more than 6 s and 10 s; with 6 s and 10 s there are more at 1:5 than at 1:1",
    why={
        "partly": "1 s segments have {least:.1f} to {most:.1f} times the switches of the others; from 1:1 to 1:5 the "
        "change is {middle:+.1f} with 6 s and {long:+.1f} with 10 s",
        "reproduced": "1 s segments have {least:.1f} to {most:.1f} times the switches of the others, because their "
        "sizes and speeds are averaged over less; the slow path adds some to the others",
    },
)
def d4(study: Study) -> Found:
    """Between lengths, and between ratios."""
    for ratio in RATIOS:
        for longer in ("6 s", "10 s"):
            yield higher(study, case("1 s", ratio), case(longer, ratio), SWITCHES)
    for length in ("6 s", "10 s"):
        yield higher(study, case(length, "1:5"), case(length, "1:1"), SWITCHES)
    for length in LADDERS:
        for ratio in ("1:1", "1:5"):
            yield quantity(study, case(length, ratio), SWITCHES)
    short = {ratio: study.mean(case("1 s", ratio), SWITCHES).estimate for ratio in RATIOS}
    times = [
        short[ratio] / max(study.mean(case(longer, ratio), SWITCHES).estimate, 1.0)
        for ratio in RATIOS
        for longer in ("6 s", "10 s")
    ]
    yield Value("least", min(times))
    yield Value("most", max(times))
    yield from changes(study, SWITCHES)


@claim(
    "D5",
    "mean bitrate falls as the ratio grows",
    criterion="for each length it is lower at 1:5 than at 1:1",
    why={
        "partly": "the change is {short:+.0f} kb/s with 1 s, {middle:+.0f} with 6 s and {long:+.0f} with 10 s, where "
        "the start decides where BOLA settles, more than the ratio does",
        "reproduced": "the change is {short:+.0f} kb/s with 1 s, {middle:+.0f} with 6 s and {long:+.0f} with 10 s: "
        "bytes wait for the slow path, and the player measures less",
    },
)
def d5(study: Study) -> Found:
    """At both ends of the ratios."""
    for length in LADDERS:
        yield lower(study, case(length, "1:5"), case(length, "1:1"), BITRATE)
        for ratio in ("1:1", "1:5"):
            yield quantity(study, case(length, ratio), BITRATE)
    yield from changes(study, BITRATE)


@claim(
    "D6",
    "start-up latency at 1:1: 0.8 ± 0.42 s (1 s), 3.7 ± 1.16 s (6 s), 6.6 ± 1.17 s (10 s)",
    criterion="each mean is within the error that the paper gives",
    why={
        "reproduced": "the first segment takes its size divided by the sum of the rates, and the round trips of slow "
        "start"
    },
)
def d6(study: Study) -> Found:
    """With the paper's "mean-square errors"."""
    for length, paper, error in (("1 s", 0.8, 0.42), ("6 s", 3.7, 1.16), ("10 s", 6.6, 1.17)):
        yield near(study, case(length, "1:1"), STARTUP, paper, error)
        yield quantity(study, case(length, "1:1"), STARTUP, f"{paper} ± {error}")


def beats(study: Study, winner: Case, loser: Case) -> Finding:
    """Better in bitrate or time on high quality, and for certain worse in neither."""
    found = [(metric, study.difference(winner, loser, metric)) for metric in (BITRATE, HIGH_QUALITY)]
    text = ", ".join(f"{metric.name} {digits(difference)} {metric.unit}" for metric, difference in found)
    better = [is_higher(difference, margin(study, loser, metric)) for metric, difference in found]
    decision = better[0] | better[1]
    if any(each.relation is Relation.LOWER for each in better):
        decision = Decision(Outcome.FAILS)
    return Finding(f"{winner.name} − {loser.name}: {text}", decision)


@claim(
    "D7",
    "one TCP of 2000 kb/s beats MPTCP at every ratio; one TCP of 1667 kb/s beats MPTCP at 1:5",
    criterion="for each length it is higher in mean bitrate or time on high quality, and lower in neither",
    why={
        "partly": "TCP over 2000 kb/s is better in {large} of {of_large} comparisons and over 1667 kb/s in {small} of "
        "{of_small}; where it is not, the pair's larger sum outweighs the wait for the slow path"
    },
)
def d7(study: Study) -> Found:
    """Both references."""
    found = {
        "large": [
            beats(study, case(length, "TCP 2000"), case(length, ratio)) for length in LADDERS for ratio in RATIOS
        ],
        "small": [beats(study, case(length, "TCP 1667"), case(length, "1:5")) for length in LADDERS],
    }
    for name, each in found.items():
        yield from each
        yield from tally(name, f"of_{name}", each)
    for length in LADDERS:
        for network in ("TCP 2000", "TCP 1667"):
            yield quantity(study, case(length, network), BITRATE)


@claim(
    "D8",
    "shorter segments keep the buffer level steadier",
    criterion="at 1:1 the standard deviation of the buffer level is lower with 1 s than with 6 s and 10 s, and "
    "with 6 s than with 10 s",
    why={
        "partly": "the level deviates by {short:.1f} s with 1 s, {middle:.1f} with 6 s and {long:.1f} with 10 s: "
        "dash.js fills a longer buffer once BOLA has reached the highest representation"
    },
)
def d8(study: Study) -> Found:
    """Every pair of lengths."""
    for shorter, longer in (("1 s", "6 s"), ("6 s", "10 s"), ("1 s", "10 s")):
        yield lower(study, case(shorter, "1:1"), case(longer, "1:1"), BUFFER_DEVIATION)
    for length in LADDERS:
        yield quantity(study, case(length, "1:1"), BUFFER_DEVIATION)
    for name, length in NAMES.items():
        yield Value(name, study.mean(case(length, "1:1"), BUFFER_DEVIATION).estimate)


@claim(
    "D9",
    "the cause is out-of-order arrival over unequal paths",
    criterion="for each length: bytes wait longer for earlier ones at 1:5 than at 1:1; at 1:5 the wait for the other "
    "path is more than 10 % of a media segment's delay; over the five ratios the bitrate falls with the wait "
    "(correlation below -0.8)",
    why={
        "partly": "bytes wait {least:.0f} to {most:.0f} times as long at 1:5 as at 1:1, and the bitrate falls with "
        "the wait with {falling} of {lengths} lengths; the wait for the other path is {short:.0f} % of a segment's "
        "delay with 1 s, {middle:.0f} % with 6 s and {long:.0f} % with 10 s"
    },
)
def d9(study: Study) -> Found:
    """Whether it is there, whether it is large enough, and whether the bitrate follows it."""
    falling = list[Finding]()
    for length in LADDERS:
        yield higher(study, case(length, "1:5"), case(length, "1:1"), REORDER)
        yield above(study, case(length, "1:5"), ACROSS, MATTERS)
        falling.append(falls_with_the_wait(study, length))
        yield falling[-1]
        for ratio in ("1:1", "1:5"):
            yield quantity(study, case(length, ratio), REORDER)
            yield quantity(study, case(length, ratio), ACROSS)
    waits = [[study.mean(case(length, ratio), REORDER).estimate for ratio in ("1:5", "1:1")] for length in LADDERS]
    times = [unequal / equal for unequal, equal in waits]
    yield Value("least", min(times))
    yield Value("most", max(times))
    yield from tally("falling", "lengths", falling)
    for name, length in NAMES.items():
        yield Value(name, study.mean(case(length, "1:5"), ACROSS).estimate)


def falls_with_the_wait(study: Study, length: str) -> Finding:
    """Over the ratios, the bitrate is the lower the longer bytes wait."""
    waits, rates, shares = (
        [study.mean(case(length, ratio), metric) for ratio in RATIOS] for metric in (REORDER, BITRATE, HIGH_QUALITY)
    )
    r = statistics.correlation([wait.estimate for wait in waits], [rate.estimate for rate in rates])
    text = (
        f"{length}: correlation of bitrate and wait {r:.2f} (waits {digits(waits[0])} to {digits(waits[4])} ms, "
        f"high quality {digits(shares[0])} to {digits(shares[4])} %)"
    )
    return Finding(text, holds(r < STRONG))
