"""S1 to S11: the sticky schedulers' paper. DFT is its name for min-rtt."""

import math
from collections.abc import Callable, Iterator

import numpy as np

from anabranch.experiments.claims import (
    Decision,
    Finding,
    Outcome,
    Quantity,
    Relation,
    Value,
    above_threshold,
    claim,
    digits,
    is_higher,
    is_like,
    is_lower,
    margin,
    more_than,
    significant,
    table,
    tally,
)
from anabranch.experiments.statistics import Array, Interval, mean
from anabranch.experiments.study import Case, Metric, Row, Study, number

Found = Iterator[Finding | Quantity | Value]

BASE, LOSSY, LONG = "sticky/base", "sticky/3p-50", "sticky/3p-150"
SCENARIOS = (BASE, LOSSY, LONG)
CONTROLS = ("cubic", "compound", "lia", "olia")
DFT, GR, TP, TR = "min-rtt", "gr-sty", "tp-sty", "tr-sty"
STICKY = (GR, TP, TR)
SCHEDULERS = (DFT, *STICKY)
PATHS = ("path1", "path2", "path3")

# The share of comparisons that may differ by chance: an interval has a fortieth of its probability on either side.
BY_CHANCE = 0.05
# Above this area a condition predicts (Hosmer and Lemeshow call it acceptable discrimination).
USEFUL = 0.7
# How soon after a switch the reducer `switch_areas` looks for an underflow.
HORIZON_S = 2


def added(row: Row) -> float:
    """Retransmissions on all paths."""
    return sum(number(row, f"subflows.{path}.retransmissions", absent=0.0) or 0.0 for path in PATHS)


def throughput(path: int) -> Metric:
    """In Mb/s."""
    return Metric("throughput", lambda row: number(row, f"subflows.{PATHS[path]}.goodput_bps", absent=0.0), scale=1e-6)


# One pause of a second or two, and a second of pictures: a difference this small is none.
UNDERFLOWS = Metric("underflows", "buffer_underflows", negligible=1.0)
DISCARDS = Metric("discards", "picture_discards", negligible=24.0)
QUALITY = (UNDERFLOWS, DISCARDS)
SWITCHES = Metric("switches", "path_switches")
RETRANSMISSIONS = Metric("retransmissions", added)


def share(path: int) -> Metric:
    """The share of a path in the throughput."""
    rates = [throughput(each) for each in range(len(PATHS))]
    return Metric("share", lambda row: rates[path].value(row) / sum(rate.value(row) for rate in rates))


def case(scenario: str, control: str, scheduler: str, plan: str = "sessions") -> Case:
    """A condition; sentences call it by its scenario and scheduler."""
    labels = {"scenario": scenario, "transport.congestion_control": control, "transport.scheduler": scheduler}
    return Case(f"{scenario.rpartition('/')[2]} {scheduler}", plan, labels)


def compared(study: Study, control: str, first: Case, second: Case, metric: Metric) -> tuple[Interval, str]:
    """The mean of the paired differences, and the comparison in words."""
    d = study.difference(first, second, metric)
    words = f"{d.estimate:.1f} ± {d.half_width:.1f}"
    return d, f"{control} {metric.name}, {first.name} − {second.name}: {words}"


Compare = Callable[[Study, str, Case, Case, Metric], Finding]


def lower(study: Study, control: str, first: Case, second: Case, metric: Metric) -> Finding:
    """The interval of the differences lies below zero, and it matters."""
    difference, text = compared(study, control, first, second, metric)
    return Finding(text, is_lower(difference, margin(study, second, metric)))


def alike(study: Study, control: str, first: Case, second: Case, metric: Metric) -> Finding:
    """That interval lies within 10 % of the second's mean around zero, or within what is negligible if that is more."""
    difference, text = compared(study, control, first, second, metric)
    return Finding(text, is_like(difference, margin(study, second, metric)))


def both(compare: Compare, study: Study, control: str, first: Case, second: Case) -> Iterator[Finding]:
    """A comparison for both measures of quality."""
    return (compare(study, control, first, second, metric) for metric in QUALITY)


@claim(
    "S1",
    "base, Cubic: GR-STY and TP-STY lower both underflows and discards against DFT",
    criterion="each of the two is lower than DFT in both",
    why={
        "not reproduced": "{lower} of {findings} differences are certainly lower, {higher} certainly higher, and "
        "{same} do not matter: the file is fetched at nearly the capacity, so mostly a single path has room, and a "
        "scheduler with a single path to choose from has no choice",
        "partly": "{lower} of {findings} differences are certainly lower and {higher} certainly higher, and {same} "
        "do not matter: mostly a single path has room, which leaves a scheduler no choice",
    },
)
def s1(study: Study) -> Found:
    """Two schedulers."""
    for scheduler in (GR, TP):
        yield from both(lower, study, "cubic", case(BASE, "cubic", scheduler), case(BASE, "cubic", DFT))


@claim(
    "S2",
    "base, Cubic: TR-STY performs like DFT",
    criterion="TR-STY is like DFT in underflows and in discards",
    why={"reproduced": "mostly a single path has room, so TR-STY can only choose what DFT chooses"},
)
def s2(study: Study) -> Found:
    """One scheduler."""
    yield from both(alike, study, "cubic", case(BASE, "cubic", TR), case(BASE, "cubic", DFT))


@claim(
    "S3",
    'base, LIA, OLIA, Compound: best video under DFT and TR-STY (the conclusion is weaker: "not impacted")',
    criterion="for each control DFT and TR-STY are lower than GR-STY and TP-STY in both",
    why={
        "not reproduced": "of {findings} differences {lower} are certainly lower, {higher} certainly higher, and "
        "{same} do not matter, as the weaker sentence of the conclusion says: these controls are not impacted",
        "partly": "of {findings} differences {lower} are certainly lower, {higher} certainly higher, and {same} do not "
        "matter",
    },
)
def s3(study: Study) -> Found:
    """Two better ones against two worse ones."""
    for control in ("lia", "olia", "compound"):
        for better in (DFT, TR):
            for worse in (GR, TP):
                yield from both(lower, study, control, case(BASE, control, better), case(BASE, control, worse))


@claim(
    "S4",
    "path switches: GR-STY fewest, TR-STY the most of the sticky ones and close to DFT",
    criterion="in every scenario and for every control GR-STY is lower than TP-STY, TP-STY lower than TR-STY, TR-STY "
    "like DFT",
    why={
        "partly": "TR-STY is like DFT in {alike} of {conditions} conditions, and GR-STY has certainly fewer switches "
        "than TP-STY in {fewer}: with every window full, data goes where the last acknowledgment made room, whatever "
        "the scheduler"
    },
)
def s4(study: Study) -> Found:
    """In the order of the claim."""
    fewest, close = list[Finding](), list[Finding]()
    for scenario in SCENARIOS:
        for control in CONTROLS:
            gr, tp, tr, dft = (case(scenario, control, scheduler) for scheduler in (GR, TP, TR, DFT))
            fewest.append(lower(study, control, gr, tp, SWITCHES))
            close.append(alike(study, control, tr, dft, SWITCHES))
            yield from (fewest[-1], lower(study, control, tp, tr, SWITCHES), close[-1])
    yield from tally("alike", "conditions", close)
    yield from tally("fewer", "conditions", fewest)


@claim(
    "S5",
    "the scheduler with fewest switches is not necessarily the one with the best video",
    criterion="in more than 5 % of the comparisons another scheduler is lower than it in underflows or discards, "
    "twice what chance gives",
    why={
        "reproduced": "{better} of {comparisons} comparisons, more than {chance:.1f}, which is twice what chance gives",
        "not reproduced": "{better} of {comparisons} comparisons, no more than {chance:.1f}, which is twice what "
        "chance gives",
    },
)
def s5(study: Study) -> Found:
    """Every other scheduler against the one with fewest switches."""
    comparisons: list[Finding] = []
    for scenario in SCENARIOS:
        for control in CONTROLS:
            cases = {scheduler: case(scenario, control, scheduler) for scheduler in SCHEDULERS}
            means = {scheduler: study.mean(each, SWITCHES).estimate for scheduler, each in cases.items()}
            fewest = min(SCHEDULERS, key=means.__getitem__)
            for other in SCHEDULERS:
                if other != fewest:
                    comparisons += both(lower, study, control, cases[other], cases[fewest])
    better = [each for each in comparisons if each.outcome == Outcome.HOLDS]
    example = f", such as {better[0].text}" if better else ""
    text = f"{len(better)} of {len(comparisons)} comparisons{example}"
    chance = BY_CHANCE * len(comparisons)
    yield Finding(text, more_than([each.decision for each in comparisons], chance))
    yield Value("better", len(better))
    yield Value("comparisons", len(comparisons))
    yield Value("chance", chance)


def points(difference: Interval) -> str:
    """A difference of shares in words."""
    return f"{difference.estimate * 100:+.1f} ± {difference.half_width * 100:.1f} points"


def moved(study: Study, control: str, scheduler: str, path: int) -> Array:
    """How much more of the traffic a path has than under DFT, by seed."""
    values = (study.values(case(BASE, control, each), share(path)) for each in (scheduler, DFT))
    return np.subtract(*values)


@claim(
    "S6",
    "base: DFT favours flow 1; sticky schedulers move traffic from flow 1 to flow 3, most for LIA and OLIA, with fewer "
    "retransmissions overall",
    criterion="flow 1's share is the largest under DFT; under each sticky scheduler it is lower and flow 3's higher, "
    "more so for LIA and OLIA than for Cubic and Compound; retransmissions are lower than under DFT",
    why={
        "partly": "under DFT flow 1 has {least:.0f} to {most:.0f} points more than the others; sticky schedulers move "
        "traffic from flow 1 to flow 3 in {moved} of {places} conditions, for the reason given for S4"
    },
)
def s6(study: Study) -> Found:
    """The shares under DFT, what moves, and where it moves more."""
    favour, shifts = list[float](), list[Decision]()
    for control in CONTROLS:
        dft = case(BASE, control, DFT)
        for other in (1, 2):
            difference = study.interval(study.values(dft, share(0)) - study.values(dft, share(other)))
            favour.append(difference.estimate * 100)
            text = f"{control} under DFT, share of flow 1 − flow {other + 1}: {points(difference)}"
            yield Finding(text, is_higher(difference, margin(study, dft, share(other))))
        for scheduler in STICKY:
            first, third = (study.interval(moved(study, control, scheduler, path)) for path in (0, 2))
            text = f"{control} {scheduler}: flow 1 {points(first)}, flow 3 {points(third)}"
            away = is_lower(first, margin(study, dft, share(0)))
            shifts.append(away & is_higher(third, margin(study, dft, share(2))))
            yield Finding(text, shifts[-1])
            yield lower(study, control, case(BASE, control, scheduler), dft, RETRANSMISSIONS)
    for coupled in ("lia", "olia"):
        for plain in ("cubic", "compound"):
            for scheduler in STICKY:
                gain = study.interval(moved(study, coupled, scheduler, 2) - moved(study, plain, scheduler, 2))
                text = f"{scheduler}, gain of flow 3, {coupled} − {plain}: {points(gain)}"
                # A gain may be nothing; what it is a part of is the flow's share.
                yield Finding(text, is_higher(gain, margin(study, case(BASE, plain, DFT), share(2))))
    yield Value("moved", sum(each.outcome is Outcome.HOLDS for each in shifts))
    yield Value("places", len(shifts))
    yield Value("least", min(favour))
    yield Value("most", max(favour))


@claim(
    "S7",
    "3p-50: 2 % loss on path 1 degrades underflows and discards clearly against base",
    criterion="for every control and scheduler base is lower than 3p-50 in both",
    why={
        "reproduced": "path 1 falls from {before:.2f} to {uncoupled:.1f} Mb/s with Cubic and Compound and to "
        "{coupled:.2f} Mb/s with LIA and OLIA, which leaves less than the video needs"
    },
)
def s7(study: Study) -> Found:
    """Every condition."""
    for control in CONTROLS:
        for scheduler in SCHEDULERS:
            yield from both(lower, study, control, case(BASE, control, scheduler), case(LOSSY, control, scheduler))

    def first_path(scenario: str, *controls: str) -> float:
        means = [study.mean(case(scenario, control, DFT), throughput(0)).estimate for control in controls]
        return sum(means) / len(means)

    yield Value("before", first_path(BASE, *CONTROLS))
    yield Value("uncoupled", first_path(LOSSY, "cubic", "compound"))
    yield Value("coupled", first_path(LOSSY, "lia", "olia"))


def coupled_alike(study: Study, scenario: str) -> Iterator[Finding]:
    """LIA and OLIA are alike under all schedulers."""
    for control in ("lia", "olia"):
        for scheduler in STICKY:
            yield from both(alike, study, control, case(scenario, control, scheduler), case(scenario, control, DFT))


@claim(
    "S8",
    "3p-50: Cubic and Compound improve under TR-STY; LIA and OLIA are alike under all schedulers",
    criterion="TR-STY is lower than DFT in both for the first two; each sticky scheduler is like DFT in both for the "
    "others",
    why={
        "partly": "LIA and OLIA are alike under all schedulers in {alike} of {coupled} comparisons; Cubic and "
        "Compound improve under TR-STY in {better} of {uncoupled}"
    },
)
def s8(study: Study) -> Found:
    """Two that improve, two that do not change."""
    controls = ("cubic", "compound")
    gains = [f for c in controls for f in both(lower, study, c, case(LOSSY, c, TR), case(LOSSY, c, DFT))]
    coupled = list(coupled_alike(study, LOSSY))
    yield from (*gains, *coupled)
    yield from tally("alike", "coupled", coupled)
    yield from tally("better", "uncoupled", gains)


@claim(
    "S9",
    "3p-150: the improvement is smaller than in 3p-50; LIA and OLIA alike under all schedulers",
    criterion="DFT − TR-STY of Cubic and Compound is lower than in 3p-50 in both; LIA and OLIA as in S8",
    why={
        "partly": "LIA and OLIA are alike under all schedulers in {alike} of {coupled} comparisons; the improvement "
        "of Cubic and Compound is certainly smaller in {better} of {uncoupled}"
    },
)
def s9(study: Study) -> Found:
    """The gains of two networks."""
    gains = list[Finding]()
    for control in ("cubic", "compound"):
        for metric in QUALITY:
            of_long, of_lossy = (
                study.values(case(scenario, control, DFT), metric) - study.values(case(scenario, control, TR), metric)
                for scenario in (LONG, LOSSY)
            )
            d = study.interval(of_long - of_lossy)
            text = f"{control} {metric.name}, gain in 3p-150 − in 3p-50: {d.estimate:.1f} ± {d.half_width:.1f}"
            gains.append(Finding(text, is_lower(d, margin(study, case(LOSSY, control, DFT), metric))))
    coupled = list(coupled_alike(study, LONG))
    yield from (*gains, *coupled)
    yield from tally("alike", "coupled", coupled)
    yield from tally("better", "uncoupled", gains)


UNDERFLOW_AREA = Metric("underflow", "switch_areas.underflow")
DISCARD_AREA = Metric("discard", "switch_areas.discard")


def areas(study: Study, metric: Metric, scenario: str, control: str) -> Array:
    """Those of all schedulers and seeds, as far as there were cases."""
    found = [study.values(case(scenario, control, s, "switches"), metric) for s in SCHEDULERS]
    values = np.concatenate(found)
    return values[~np.isnan(values)]


@claim(
    "S10",
    "switch i→j: underflow is likelier when rtt_i λ_i < rtt_j λ_r; discard when F_i < (F − F_i) λ_i/λ_j + rtt_j λ_i",
    criterion="the mean area under the ROC curve of each condition is above 0.7 for certain",
    why={
        "not reproduced": "the areas are {underflow:.2f} and {discard:.2f}: an underflow is caused by seconds in "
        "which the video needs more than all paths carry, and each such second has many switches; the condition for "
        "discards counts the bytes that are left of the picture"
    },
    plan="switches",
)
def s10(study: Study) -> Found:
    """Both conditions, over all sessions."""
    for metric in (UNDERFLOW_AREA, DISCARD_AREA):
        values = np.concatenate([areas(study, metric, scenario, c) for scenario in SCENARIOS for c in CONTROLS])
        if not len(values):
            yield Finding(f"{metric.name}: no case", Decision(Outcome.UNDECIDED, math.inf))
            yield Value(metric.name, math.nan)
            continue
        area = study.interval(values)
        yield Value(metric.name, area.estimate)
        text = f"{metric.name}: area {area.estimate:.3f} ± {area.half_width:.3f} over {len(values)} sessions"
        yield Finding(text, above_threshold(area, USEFUL))


@claim(
    "S11",
    "most TCP variants deliver better video with sticky scheduling",
    criterion="in every scenario, for more than half of the controls, some sticky scheduler is lower than DFT in "
    "underflows or discards and not higher in the other",
    why=dict.fromkeys(
        ("partly", "not reproduced"),
        "in {improving} of {conditions} conditions some sticky scheduler improves for certain, in the mean by "
        "{gain:.1f} underflows a session at most: the paths are the bottleneck, and then a scheduler decides little",
    ),
)
def s11(study: Study) -> Found:
    """Every scenario."""
    improving, gain = 0, 0.0
    for scenario in SCENARIOS:
        found = {control: improves(study, scenario, control) for control in CONTROLS}
        improved = [control for control, each in found.items() if each.outcome is Outcome.HOLDS]
        improving += len(improved)
        gain = max([gain, *(fewer_underflows(study, scenario, control) for control in improved)])
        which = f" ({', '.join(improved)})" if improved else ""
        text = f"{scenario}: {len(improved)} of {len(CONTROLS)} controls improve{which}"
        yield Finding(text, more_than(list(found.values()), len(CONTROLS) / 2))
    yield Value("improving", improving)
    yield Value("gain", gain)
    yield Value("conditions", len(SCENARIOS) * len(CONTROLS))


def fewer_underflows(study: Study, scenario: str, control: str) -> float:
    """How many underflows a session the best sticky scheduler has less than DFT, in the mean."""
    dft = case(scenario, control, DFT)
    return max(-study.difference(case(scenario, control, each), dft, UNDERFLOWS).estimate for each in STICKY)


def improves(study: Study, scenario: str, control: str) -> Decision:
    """Some sticky scheduler is lower than DFT in one measure, and not certainly higher in the other."""
    dft = case(scenario, control, DFT)
    some = Decision(Outcome.FAILS)
    for scheduler in STICKY:
        found = []
        for metric in QUALITY:
            difference = study.difference(case(scenario, control, scheduler), dft, metric)
            found.append(is_lower(difference, margin(study, dft, metric)))
        for less, other in (found, found[::-1]):
            if other.relation is not Relation.HIGHER:
                some |= less
    return some


@table("switches", "The conditions of S10 as predictors")
def switches(study: Study) -> tuple[list[str], list[list[str]]]:
    """By scenario and control, means over schedulers and seeds."""

    def text_of(metric: Metric, scenario: str, control: str) -> str:
        values = areas(study, metric, scenario, control)
        of = len(SCHEDULERS) * study.seeds["switches"]
        return f"{significant(mean(values).estimate)} ({len(values)} of {of} sessions)" if len(values) else "no case"

    head = [
        "scenario",
        "control",
        f"underflow within {HORIZON_S} s, area under the ROC curve",
        "the picture is discarded, area under the ROC curve",
    ]
    rows = [
        [scenario, control, *(text_of(metric, scenario, control) for metric in (UNDERFLOW_AREA, DISCARD_AREA))]
        for scenario in SCENARIOS
        for control in CONTROLS
    ]
    return head, rows


MEANS = {
    "underflows": UNDERFLOWS,
    "discards": DISCARDS,
    "stalls": Metric("stalls", "stalls"),
    "stalled s": Metric("stalled", "stall_s", "s"),
    "switches": SWITCHES,
    "retransmissions": RETRANSMISSIONS,
    "Mb/s on 1": throughput(0),
    "on 2": throughput(1),
    "on 3": throughput(2),
}


@table("means", "Means as shipped")
def means(study: Study) -> tuple[list[str], list[list[str]]]:
    """Every condition."""
    rows = [
        [scenario, control, s, *(digits(study.mean(case(scenario, control, s), metric)) for metric in MEANS.values())]
        for scenario in SCENARIOS
        for control in CONTROLS
        for s in SCHEDULERS
    ]
    return ["scenario", "control", "scheduler", *MEANS], rows
