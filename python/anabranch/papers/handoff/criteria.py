"""H1 to H10: the handoff paper. DFT is its name for min-rtt."""

from collections.abc import Iterable, Iterator

from anabranch.experiments.claims import (
    Finding,
    Outcome,
    Quantity,
    Value,
    above_threshold,
    at_most,
    below_threshold,
    claim,
    digits,
    holds,
    is_higher,
    margin,
    table,
    tally,
)
from anabranch.experiments.statistics import Interval
from anabranch.experiments.study import Case, Metric, Row, Study, number

Found = Iterator[Finding | Quantity | Value]

CONTROLS = ("cubic", "compound", "lia", "olia")
DFT, GR = "min-rtt", "gr-sty"
SCHEDULERS = (DFT, GR)
LIMITED, LARGE, CELLULAR = "handoff/limited-handoff", "handoff/large-handoff", "handoff/cellular-handoff"

# A second of pictures, and one pause of a second or two.
FEW_DISCARDS = 24.0
FEW_UNDERFLOWS = 1.0
# A share of all segments that are retransmissions which the paper may have called significant, and very few.
SIGNIFICANT = 0.01
VERY_FEW = 0.001

UNDERFLOWS = Metric("underflows", "buffer_underflows")
DISCARDS = Metric("discards", "picture_discards")
RECOVERY = Metric("recovery", "recovery_s", "s")


def paths(row: Row) -> tuple[str, str]:
    """The paths of a session: the primary one, and the other."""
    return ("wifi", "lte") if "subflows.wifi.bytes" in row else ("wifi1", "wifi2")


def of_flow(flow: int, what: str, scale: float = 1.0) -> Metric:
    """A number of the first flow or the second one."""
    return Metric(what, lambda row: number(row, f"subflows.{paths(row)[flow]}.{what}", absent=0.0), scale=scale)


def throughput(flow: int) -> Metric:
    """In Mb/s."""
    return of_flow(flow, "goodput_bps", 1e-6)


def retransmitted(flow: int) -> Metric:
    """The share of a flow's segments that are retransmissions."""
    sent = of_flow(flow, "segments_sent")
    again = of_flow(flow, "retransmissions")
    return Metric("retransmitted", lambda row: again.value(row) / max(sent.value(row), 1.0))


def around_cut(when: str) -> Metric:
    """Retransmissions before or after the cut; none without one."""
    return Metric(when, lambda row: number(row, f"retransmissions_around_events.0.{when}", absent=0.0))


BEFORE, AFTER = around_cut("before"), around_cut("after")


def case(scenario: str, control: str, scheduler: str) -> Case:
    """A condition; sentences call it by its scenario and scheduler."""
    labels = {"scenario": scenario, "transport.congestion_control": control, "transport.scheduler": scheduler}
    return Case(f"{scenario} {control} {scheduler}", "sessions", labels)


def every(*scenarios: str) -> Iterator[tuple[str, str, str]]:
    """Every control and scheduler in some scenarios."""
    return ((scenario, control, s) for scenario in scenarios for control in CONTROLS for s in SCHEDULERS)


def quality(study: Study, of: tuple[str, str, str]) -> tuple[Interval, Interval, str]:
    """Underflows and discards of a condition, and both in words."""
    scenario, control, scheduler = of
    underflows, discards = (study.mean(case(*of), metric) for metric in (UNDERFLOWS, DISCARDS))
    text = (
        f"{control} {scenario.rpartition('/')[2]} {scheduler}: "
        f"{underflows.estimate:.1f} ± {underflows.half_width:.1f} underflows, "
        f"{discards.estimate:.0f} ± {discards.half_width:.0f} discards"
    )
    return underflows, discards, text


def undisturbed(study: Study, of: tuple[str, str, str]) -> Finding:
    """The upper end of the interval of the mean is at most one underflow and 24 discards per session."""
    underflows, discards, text = quality(study, of)
    return Finding(text, at_most(underflows, FEW_UNDERFLOWS) & at_most(discards, FEW_DISCARDS))


def disturbed(study: Study, of: tuple[str, str, str]) -> Finding:
    """The lower end of the interval exceeds those limits."""
    underflows, discards, text = quality(study, of)
    return Finding(text, above_threshold(underflows, FEW_UNDERFLOWS) & above_threshold(discards, FEW_DISCARDS))


@claim(
    "H1",
    "WiFi-WiFi without handoff, DFT: (nearly) no underflow and no discard, also in limited",
    criterion="undisturbed under DFT for every control",
    why={
        "partly": "undisturbed in {hold} of {findings} conditions; the others have videos whose scenes need more "
        "than the windows carry that slow start left, and a video below the paths' rate does not enlarge these",
        "reproduced": "both paths together carry more than the video needs",
    },
)
def h1(study: Study) -> Found:
    """Every control under DFT."""
    for of in every("handoff/limited", "handoff/large"):
        if of[2] == DFT:
            yield undisturbed(study, of)


@claim(
    "H2",
    "WiFi-WiFi handoff: video undisturbed in both bandwidth scenarios",
    criterion="undisturbed for every control and both schedulers",
    why={
        "partly": "undisturbed in {large} of {of_large} conditions of large and in {limited} of {of_limited} of "
        "limited, where hardly more is left than the video needs on average, and scenes that need more cause "
        "underflows"
    },
)
def h2(study: Study) -> Found:
    """Every condition."""
    for name, scenario in (("limited", LIMITED), ("large", LARGE)):
        found = [undisturbed(study, of) for of in every(scenario)]
        yield from found
        yield from tally(name, f"of_{name}", found)


def differences(study: Study, of: Iterable[Case], more: Metric, less: Metric, text: str) -> Iterator[Finding]:
    """One quantity of a condition is higher than another of it, for certain."""
    for each in of:
        difference = study.interval(study.values(each, more) - study.values(each, less))
        yield Finding(
            text.format(name=each.name, d=difference.estimate, half=difference.half_width),
            is_higher(difference, margin(study, each, less)),
        )


@claim(
    "H3",
    "after the handoff flow 2 carries the traffic; its throughput is the larger",
    criterion="over the whole session flow 2's throughput is higher than flow 1's",
    why={"reproduced": "from the cut on flow 2 is alone, for most of the video"},
)
def h3(study: Study) -> Found:
    """Every condition."""
    text = "{name}: flow 2 − flow 1 {d:+.2f} ± {half:.2f} Mb/s"
    yield from differences(study, (case(*of) for of in every(LIMITED, LARGE)), throughput(1), throughput(0), text)


def retransmitted_share(study: Study, control: str, scheduler: str, flow: int) -> tuple[Interval, str]:
    """The share of a flow's segments that are retransmissions, in numbers and in words."""
    share = study.mean(case(LIMITED, control, scheduler), retransmitted(flow))
    percent = f"{share.estimate * 100:.2f} ± {share.half_width * 100:.2f} %"
    return share, f"{control} {scheduler}, flow {flow + 1}: {percent} retransmitted"


@claim(
    "H4",
    "limited, DFT: significant retransmissions on both flows for OLIA and Compound",
    criterion="with the handoff, more than 1 % of each flow's segments are retransmissions",
    why={
        "not reproduced": "retransmissions come from the overshoot of slow start and are {first:.1f} % of flow 1's "
        "segments; later the player limits the sender"
    },
)
def h4(study: Study) -> Found:
    """Both flows."""
    for control in ("olia", "compound"):
        for flow in (0, 1):
            share, text = retransmitted_share(study, control, DFT, flow)
            yield Finding(text, above_threshold(share, SIGNIFICANT))
    yield Value("first", retransmitted_share(study, "olia", DFT, 0)[0].estimate * 100)


@claim(
    "H5",
    "GR-STY: very few retransmissions for every control in the same experiment",
    criterion="less than 0.1 % of each flow's segments are retransmissions",
    why=dict.fromkeys(
        ("partly", "not reproduced"),
        "{hold} of {findings} flows stay below; with DFT as with GR-STY the most retransmissions are "
        "{dft:.2f} % and {gr:.2f} % of a flow's segments",
    ),
)
def h5(study: Study) -> Found:
    """Both flows."""
    for control in CONTROLS:
        for flow in (0, 1):
            share, text = retransmitted_share(study, control, GR, flow)
            yield Finding(text, below_threshold(share, VERY_FEW))
    for name, scheduler in (("dft", DFT), ("gr", GR)):
        shares = [retransmitted_share(study, control, scheduler, flow)[0] for control in CONTROLS for flow in (0, 1)]
        yield Value(name, max(share.estimate for share in shares) * 100)


@claim(
    "H6",
    "WiFi-LTE without handoff: perfect streaming under both schedulers",
    criterion="no underflow and no discard with any control, scheduler and seed",
    why={"reproduced": "the slower path alone is much faster than the video"},
)
def h6(study: Study) -> Found:
    """Every session."""
    for of in every("handoff/cellular"):
        none = all((study.values(case(*of), metric) == 0).all() for metric in (UNDERFLOWS, DISCARDS))
        yield Finding(undisturbed(study, of).text, holds(none))


@claim(
    "H7",
    "WiFi-LTE handoff: significant underflow and discards for OLIA with DFT and for LIA with GR-STY; none for Cubic "
    "and Compound",
    criterion="disturbed for certain in the first two cases, undisturbed in the others",
    why={
        "partly": "{hold} of {findings} findings hold: LTE carries much more than the video needs, and what the "
        "player has buffered lasts longer than the timeouts after the cut, so that OLIA and LIA are hardly disturbed "
        "either"
    },
)
def h7(study: Study) -> Found:
    """Two that are disturbed, four that are not."""
    yield disturbed(study, (CELLULAR, "olia", DFT))
    yield disturbed(study, (CELLULAR, "lia", GR))
    for of in every(CELLULAR):
        if of[1] in ("cubic", "compound"):
            yield undisturbed(study, of)


@claim(
    "H8",
    "WiFi-LTE handoff: most retransmissions are on the LTE path, for Compound and OLIA",
    criterion="more retransmissions on LTE than on WiFi",
    why={
        "not reproduced": "{lower} of {findings} differences have certainly more on WiFi, where retransmissions "
        "repair the overshoot of slow start at the beginning"
    },
)
def h8(study: Study) -> Found:
    """Both schedulers."""
    lte, wifi = of_flow(1, "retransmissions"), of_flow(0, "retransmissions")
    for control in ("compound", "olia"):
        for scheduler in SCHEDULERS:
            text = f"{control} {scheduler}: LTE − WiFi {{d:+.1f}} ± {{half:.1f}} retransmissions"
            yield from differences(study, [case(CELLULAR, control, scheduler)], lte, wifi, text)


@claim(
    "H9",
    "DFT: most retransmissions come before the handoff, while both flows are used",
    criterion="more retransmissions before the cut than after it, in every scenario and for every control",
    why={
        "partly": "it holds in {hold} of {findings} conditions, {cubic} of them with Cubic: slow start without HyStart "
        "overshoots before the cut, and Cubic's overshoots less, and loses most when flow 2 carries everything"
    },
)
def h9(study: Study) -> Found:
    """Every control under DFT."""
    cubic = 0
    for scenario in (LIMITED, LARGE, CELLULAR):
        for control in CONTROLS:
            text = f"{scenario} {control}: before − after {{d:+.1f}} ± {{half:.1f}} retransmissions"
            for found in differences(study, [case(scenario, control, DFT)], BEFORE, AFTER, text):
                cubic += control == "cubic" and found.outcome is Outcome.HOLDS
                yield found
    yield Value("cubic", cubic)


@claim(
    "H10",
    "cause: coupling (the window depends on all active paths) slows recovery after the handoff",
    criterion="until flow 2 carries the video's rate for a second, LIA and OLIA need longer than Cubic",
    why={
        "partly": "later in {higher} and earlier in {lower} of {findings} conditions: the cut subflow carries no "
        "data any more, and its window, a packet in time-out, weighs next to nothing in the sums, but OLIA may take "
        "the dead path for its best path and grow more slowly",
        "not reproduced": "later in {higher} and earlier in {lower} of {findings} conditions: the cut subflow "
        "carries no data any more and its window, a packet in time-out, weighs nothing in the sums",
    },
)
def h10(study: Study) -> Found:
    """Against Cubic."""
    for scenario in (LIMITED, LARGE, CELLULAR):
        for control in ("lia", "olia"):
            for scheduler in SCHEDULERS:
                cubic = case(scenario, "cubic", scheduler)
                d = study.difference(case(scenario, control, scheduler), cubic, RECOVERY)
                words = f"{control} − cubic {d.estimate:+.2f} ± {d.half_width:.2f} s"
                yield Finding(f"{scenario} {scheduler}: {words}", is_higher(d, margin(study, cubic, RECOVERY)))


def added(row: Row) -> float:
    """Retransmissions on all paths."""
    return sum(number(row, f"subflows.{path}.retransmissions", absent=0.0) or 0.0 for path in paths(row))


MEANS = {
    "underflows": UNDERFLOWS,
    "discards": DISCARDS,
    "stalls": Metric("stalls", "stalls"),
    "stalled s": Metric("stalled", "stall_s", "s"),
    "switches": Metric("switches", "path_switches"),
    "retransmissions": Metric("retransmissions", added),
    "Mb/s on 1": throughput(0),
    "on 2": throughput(1),
}
OF_A_CUT = {"before the cut": BEFORE, "after": AFTER, "recovery s": RECOVERY}


@table("means", "Means as shipped")
def means(study: Study) -> tuple[list[str], list[list[str]]]:
    """Every condition."""
    rows = []
    for of in every("handoff/limited", LIMITED, "handoff/large", LARGE, "handoff/cellular", CELLULAR):
        texts = [digits(study.mean(case(*of), metric)) for metric in MEANS.values()]
        cut = of[0].endswith("-handoff")
        texts += [digits(study.mean(case(*of), metric)) if cut else "" for metric in OF_A_CUT.values()]
        rows.append([*of, *texts])
    return ["scenario", "control", "scheduler", *MEANS, *OF_A_CUT], rows
