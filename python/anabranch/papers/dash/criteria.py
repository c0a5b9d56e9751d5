"""D1 to D9: "Performance of DASH over Multipath TCP"."""

from collections.abc import Iterator

from anabranch.experiments import statistics
from anabranch.experiments.claims import (
    Finding,
    Outcome,
    Quantity,
    Value,
    above,
    above_threshold,
    claim,
    digits,
    higher,
    holds,
    lower,
    near,
    quantity,
)
from anabranch.experiments.study import Case, Metric, Study

Found = Iterator[Finding | Quantity | Value]

LADDERS = {"1 s": "bbb-1s", "6 s": "bbb-6s", "10 s": "bbb-10s"}
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
        "partly": "BOLA of dash.js 2.9 hardly ever falls below 808 kb/s, except with 1 s segments over unequal paths, "
        "while the paper's player often did; the rules of dash.js 2.2 with Cubic on each path come near for 10 s, so "
        "the paper's player may have been older, and its windows uncoupled"
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
        "partly": "with 1 s and 6 s segments it falls; with 10 s segments BOLA never goes below 720 lines at any "
        "ratio, so that nothing can fall"
    },
)
def d2(study: Study) -> Found:
    """Along both axes of the figure."""
    for length in LADDERS:
        yield lower(study, case(length, "1:5"), case(length, "1:1"), HIGH_QUALITY)
    for ratio in RATIOS:
        yield higher(study, case("10 s", ratio), case("1 s", ratio), HIGH_QUALITY)


@claim(
    "D3",
    "impactful switches at 1:1: 33.5 (1 s), 9.9 (6 s), 5 (10 s); 10 s at 1:5: 20.8",
    criterion="each of the four means is within half of the paper's value; with 10 s there are more at 1:5 than at 1:1",
    why={
        "not reproduced": "BOLA hardly ever changes the resolution here; the rules of dash.js 2.2 with Cubic do with "
        "10 s at 1:5, because they abandon requests (AbandonRequestsRule looks at the buffer from 2.6 on)"
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


@claim(
    "D4",
    "switches: 1 s segments have far more than 6 and 10 s; they tend to rise with the ratio (1 s: not monotonic)",
    criterion="at each ratio 1 s has more than 6 s and 10 s; with 6 s and 10 s there are more at 1:5 than at 1:1",
    why={
        "partly": "1 s segments have five to ten times the switches; the rise with the ratio is certain with 6 s and "
        "not with 10 s",
        "reproduced": "1 s segments have five to ten times the switches, because their sizes and speeds are averaged "
        "over less; the slow path adds some to the others",
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


@claim(
    "D5",
    "mean bitrate falls as the ratio grows",
    criterion="for each length it is lower at 1:5 than at 1:1",
    why={
        "partly": "certain with 1 s, and just with 6 s; with 10 s segments the start decides whether BOLA settles at "
        "771 or 1400 kb/s, more than the ratio does"
    },
)
def d5(study: Study) -> Found:
    """At both ends of the ratios."""
    for length in LADDERS:
        yield lower(study, case(length, "1:5"), case(length, "1:1"), BITRATE)
        for ratio in ("1:1", "1:5"):
            yield quantity(study, case(length, ratio), BITRATE)


@claim(
    "D6",
    "start-up latency at 1:1: 0.8 ± 0.42 s (1 s), 3.7 ± 1.16 s (6 s), 6.6 ± 1.17 s (10 s)",
    criterion="each mean is within the error that the paper gives",
    why={
        "reproduced": "the first segment, of 1 Mb/s, takes its size divided by 2 Mb/s and the round trips of slow start"
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
    better = [above_threshold(difference, 0.0) for _, difference in found]
    if any(difference.high < 0 for _, difference in found):
        outcome = Outcome.FAILS
    else:
        outcome = next((each for each in (Outcome.HOLDS, Outcome.UNDECIDED) if each in better), Outcome.FAILS)
    return Finding(f"{winner.name} − {loser.name}: {text}", outcome)


@claim(
    "D7",
    "one TCP of 2000 kb/s beats MPTCP at every ratio; one TCP of 1667 kb/s beats MPTCP at 1:5",
    criterion="for each length it is higher in mean bitrate or time on high quality, and lower in neither",
    why={
        "partly": "2000 kb/s of TCP are better at every ratio with 1 s and 6 s, and from 1:3 on with 10 s; 1667 kb/s "
        "are better with 1 s, and with 6 s in time on high quality only; with 10 s the pair's larger sum outweighs the "
        "wait for the slow path"
    },
)
def d7(study: Study) -> Found:
    """Both references."""
    for length in LADDERS:
        for ratio in RATIOS:
            yield beats(study, case(length, "TCP 2000"), case(length, ratio))
        yield beats(study, case(length, "TCP 1667"), case(length, "1:5"))
        for network in ("TCP 2000", "TCP 1667"):
            yield quantity(study, case(length, network), BITRATE)


@claim(
    "D8",
    "shorter segments keep the buffer level steadier",
    criterion="at 1:1 the standard deviation of the buffer level is lower with 1 s than with 6 s and 10 s, and "
    "with 6 s than with 10 s",
    why={
        "partly": "the level is steadiest with 1 s, but steadier with 10 s than with 6 s: with 6 s BOLA reaches the "
        "highest representation, and dash.js then fills 30 s instead of 12 s"
    },
)
def d8(study: Study) -> Found:
    """Every pair of lengths."""
    for shorter, longer in (("1 s", "6 s"), ("6 s", "10 s"), ("1 s", "10 s")):
        yield lower(study, case(shorter, "1:1"), case(longer, "1:1"), BUFFER_DEVIATION)
    for length in LADDERS:
        yield quantity(study, case(length, "1:1"), BUFFER_DEVIATION)


@claim(
    "D9",
    "the cause is out-of-order arrival over unequal paths",
    criterion="for each length: bytes wait longer for earlier ones at 1:5 than at 1:1; at 1:5 the wait for the other "
    "path is more than 10 % of a media segment's delay; over the five ratios the bitrate falls with the wait "
    "(correlation below -0.8)",
    why={
        "partly": "bytes wait {least:.0f} to {most:.0f} times as long at 1:5 as at 1:1, and the bitrate falls with "
        "the wait, most clearly with 1 s; the wait for the other path is {short:.0f} % of a segment's delay with 1 s, "
        "but {long:.0f} to {middle:.0f} % with 6 and 10 s, too little to be the main cause"
    },
)
def d9(study: Study) -> Found:
    """Whether it is there, whether it is large enough, and whether the bitrate follows it."""
    for length in LADDERS:
        yield higher(study, case(length, "1:5"), case(length, "1:1"), REORDER)
        yield above(study, case(length, "1:5"), ACROSS, MATTERS)
        yield falls_with_the_wait(study, length)
        for ratio in ("1:1", "1:5"):
            yield quantity(study, case(length, ratio), REORDER)
            yield quantity(study, case(length, ratio), ACROSS)
    waits = [[study.mean(case(length, ratio), REORDER).estimate for ratio in ("1:5", "1:1")] for length in LADDERS]
    times = [unequal / equal for unequal, equal in waits]
    yield Value("least", min(times))
    yield Value("most", max(times))
    for name, length in (("short", "1 s"), ("middle", "6 s"), ("long", "10 s")):
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
