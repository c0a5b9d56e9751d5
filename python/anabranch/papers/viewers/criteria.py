"""Is a server that paces its responses calmer, fairer and better? Means over the viewers of a run, and over runs."""

import math
import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from anabranch.experiments import formats
from anabranch.experiments.claims import Filled, table
from anabranch.experiments.statistics import Array, jain
from anabranch.experiments.study import Case, Metric, Row, Study

FOUR, EIGHT = "viewers/four", "viewers/eight"
LIA, CBBR = "LIA", "cbbr, earliest"
LEVELS, CBBR_LEVELS = "LIA, levels", "cbbr, earliest, levels"
LONG = "LIA, levels, 30 s"
OFF_AND_LEVELS = ("off", "levels")
JAIN, BITRATE, QOE = "fairness.jain_mean_bitrate", "mean_bitrate_bps", "qoe_linear_per_segment"
COLUMNS = ("switches", "Jain", "QoE, Mb/s", "bitrate, Mb/s", "stalls", "start-up, s")
"""What `quality` gives."""
# Linear QoE counts in kb/s.
SCALES = {QOE: 1e-3, BITRATE: 1e-6, "metered_bytes": 1e-6, "copied_bytes": 1e-6}

WIFI_ALONE = 1
"""The number of this viewer in `viewers/unlike`."""
ARRIVES = 12 * 1428 / 1514
"""Mb/s of payload that its links carry: in packets of 1500 bytes, with 14 bytes of the link in front."""
LOSS, EQUAL = 0.02, 0.98
"""The most that a viewer may lose, and the index of bitrates that count as equal."""

# --- The network of a crowd ------------------------------------------------------------------------------------------


def crowd(labels: Mapping[str, Any]) -> dict[str, Any]:
    """So many viewers with 3 Mb/s for each, as `viewers/four` has, and the queues in proportion."""
    viewers = int(labels["viewers"])
    return {
        "session.0.count": viewers,
        "session.0.stagger": f"{28_000 // viewers} ms",
        "link.wifi.rate": f"{2 * viewers} Mb/s",
        "link.wifi.queue": f"{25 * viewers} kB",
        "link.lte.rate": f"{viewers} Mb/s",
        "link.lte.queue": f"{25 * viewers} kB",
    }


# --- What tables have in common --------------------------------------------------------------------------------------


def case(plan: str, **labels: Any) -> Case:
    """A condition of a plan."""
    return Case(", ".join(map(str, labels.values())), plan, labels)


def paced(plan: str, pacing: str, **labels: Any) -> Case:
    """One of a plan that varies the pacing of responses."""
    return case(plan, **{"server.response_pacing": pacing, **labels})


def metric(column: str) -> Metric:
    """A column in the unit of the tables."""
    return Metric(column, column, scale=SCALES.get(column, 1.0))


def by_seed(study: Study, of: Case, column: str) -> Array:
    """A number of each run: the mean over its viewers; NaN where one of them has none, which no failure may hide."""
    runs: dict[int, list[float]] = defaultdict(list)
    for row in study.viewers(of):
        runs[row["seed"]].append(metric(column).value(row))
    return np.array([statistics.fmean(runs[seed]) for seed in sorted(runs)])


def mean(study: Study, of: Case, column: str, digits: int) -> str:
    """The mean over the runs of a condition, with its interval."""
    return formats.interval(by_seed(study, of, column), digits)


def quality(study: Study, of: Case) -> list[str]:
    """What viewers saw."""
    return [
        mean(study, of, "switches", 1),
        mean(study, of, JAIN, 3),
        mean(study, of, QOE, 3),
        mean(study, of, BITRATE, 2),
        mean(study, of, "stalls", 2),
        mean(study, of, "startup_s", 2),
    ]


def both(study: Study, cases: Sequence[Case], column: str, digits: int) -> str:
    """The means without and with pacing."""
    return ", ".join(f"{by_seed(study, of, column).mean():.{digits}f}" for of in cases)


def code(name: str) -> str:
    """A row's name, with algorithms as code."""
    return re.sub(r"\b(levels|sammy|cbbr|earliest|min-rtt|viewer-buffer)\b", r"`\1`", name)


def compete(rows: Iterable[Row]) -> bool:
    """Whether several viewers compete, whose bitrates may be unequal."""
    return any(row.get(JAIN) is not None for row in rows)


# --- Four and eight viewers ------------------------------------------------------------------------------------------


def variant(scenario: str, name: str) -> Case:
    """A row of the plan `viewers`."""
    return case("viewers", scenario=scenario, variant=name)


def best_limit(study: Study, scenario: str) -> str:
    """The limit of the bitrate with the highest QoE."""
    limits: list[str] = [name for name in study.axis("viewers", "variant") if name.startswith("limit")]
    return max(limits, key=lambda name: float(by_seed(study, variant(scenario, name), QOE).mean()))


def short_limit(study: Study, scenario: str) -> Case:
    """The best limit, with the buffer that viewers without a limit have."""
    return case("buffers", scenario=scenario, variant=f"{best_limit(study, scenario)}, 18 s")


def viewers(study: Study, scenario: str, name: str) -> Filled:
    """Each variant; the best limit again with the buffer of the others, and `levels` with that of the best limit."""
    best = best_limit(study, scenario)
    rows = []
    for each in study.axis("viewers", "variant"):
        label = f"{each}, the best one" if each == best else code(each)
        rows.append([label, *quality(study, variant(scenario, each))])
    rows.append([f"{best}, with a buffer of 18 s", *quality(study, short_limit(study, scenario))])
    long = case("buffers", scenario=scenario, variant=LONG)
    rows.append([code("LIA, levels, with a buffer of 30 s"), *quality(study, long)])
    return (name, *COLUMNS), rows


@table("four", "Four viewers", texts=1, plans=("viewers", "buffers"))
def four(study: Study) -> Filled:
    """12 Mb/s for four."""
    return viewers(study, FOUR, "four viewers")


@table("eight", "Eight viewers", texts=1, plans=("viewers", "buffers"))
def eight(study: Study) -> Filled:
    """12 Mb/s for eight."""
    return viewers(study, EIGHT, "eight viewers")


def compared(study: Study, scenario: str) -> dict[str, tuple[Case, Case]]:
    """What is compared with what, by the names of rows."""
    best, long = variant(scenario, best_limit(study, scenario)), case("buffers", scenario=scenario, variant=LONG)
    levels, cbbr_levels = variant(scenario, LEVELS), variant(scenario, CBBR_LEVELS)
    return {
        "levels with LIA, less LIA": (levels, variant(scenario, LIA)),
        "levels with cbbr and earliest, less these two": (cbbr_levels, variant(scenario, CBBR)),
        "levels with cbbr and earliest, less LIA": (cbbr_levels, variant(scenario, LIA)),
        "levels with LIA, less the best limit": (levels, best),
        "the same, both with 18 s of buffer": (levels, short_limit(study, scenario)),
        "the same, both with 30 s of buffer": (long, best),
    }


@table("gains", "Differences of QoE", texts=1, plans=("viewers", "buffers"))
def gains(study: Study) -> Filled:
    """Paired by seed."""
    four, eight = (compared(study, scenario) for scenario in (FOUR, EIGHT))
    rows = [[code(label), gain(study, *four[label]), gain(study, *eight[label])] for label in four]
    return ("QoE, Mb/s", "four viewers", "eight viewers"), rows


def gain(study: Study, first: Case, second: Case) -> str:
    """How much more QoE."""
    return formats.difference(by_seed(study, first, QOE) - by_seed(study, second, QOE), 3)


@table("reports", "With reports of the players", texts=2, plans=("cmcd",))
def reports(study: Study) -> Filled:
    """CMCD changes what the server knows of the buffer."""
    rows = [
        [
            f"`{scenario}`",
            code(name),
            *quality(study, case("cmcd", scenario=scenario, variant=name)),
        ]
        for scenario in study.axis("cmcd", "scenario")
        for name in study.axis("cmcd", "variant")
    ]
    return ("scenario", "LIA with", *COLUMNS), rows


@table("horizon", "The price of calm", texts=1, plans=("horizon",))
def horizon(study: Study) -> Filled:
    """A longer forecast."""
    columns = (("switches", 1), (QOE, 3), ("stalls", 2))
    rows = [
        [name, *(mean(study, case("horizon", horizon=name), column, digits) for column, digits in columns)]
        for name in study.axis("horizon", "horizon")
    ]
    return ("forecast", "switches", "QoE, Mb/s", "stalls"), rows


# --- Other networks, players and numbers of viewers ------------------------------------------------------------------

PAIR = ("switches", "Jain", "QoE, Mb/s", "stalls")


def pair(study: Study, cases: Sequence[Case]) -> list[str]:
    """What viewers saw without and with pacing."""
    fair = both(study, cases, JAIN, 3) if compete(study.viewers(cases[0])) else "one viewer"
    return [both(study, cases, "switches", 1), fair, both(study, cases, QOE, 2), both(study, cases, "stalls", 2)]


def pairs(study: Study, plan: str, column: str, label: str = "{}") -> Filled:
    """A row for each value of an axis."""
    rows = [
        [label.format(value), *pair(study, [paced(plan, pacing, **{column: value}) for pacing in OFF_AND_LEVELS])]
        for value in study.axis(plan, column)
    ]
    return (column, *PAIR), rows


@table("others", "Other networks", texts=1, plans=("others",))
def others(study: Study) -> Filled:
    """Without and with `levels`."""
    return pairs(study, "others", "scenario", "`{}`")


@table("each", "The bitrate of each viewer", texts=2, plans=("others",))
def each_viewer(study: Study) -> Filled:
    """In the order of the scenario."""
    rows = []
    for scenario in ("viewers/unlike", "viewers/apart"):
        for pacing in OFF_AND_LEVELS:
            found: dict[int, list[float]] = defaultdict(list)
            for row in study.viewers(paced("others", pacing, scenario=scenario)):
                found[row["session"]].append(metric(BITRATE).value(row))
            rows.append([f"`{scenario}`", f"`{pacing}`", *(formats.interval(found[at]) for at in sorted(found))])
    return ("scenario", "pacing", *(f"viewer {at}, Mb/s" for at in range(1, 5))), rows


@table("dilemma", "Equal quality, or no viewer loses", texts=1, plans=("others",))
def dilemma(study: Study) -> Filled:
    """What is left for the others, by arithmetic, if the viewer with WiFi alone loses nothing, or all are equal."""
    of = paced("others", "off", scenario="viewers/unlike")
    bitrates = [metric(BITRATE).value(row) for row in study.viewers(of) if row["session"] == WIFI_ALONE]
    alone = statistics.fmean(bitrates)
    # Its part of what arrives so that three others, equal among themselves, give Jain's index.
    discriminant = 4 * ARRIVES**2 - 16 * ARRIVES**2 * (1 - 0.75 / EQUAL)
    kept = {
        f"at most {100 * LOSS:.0f} % less for that viewer": (1 - LOSS) * alone,
        f"Jain's index of at least {EQUAL}": (2 * ARRIVES + math.sqrt(discriminant)) / 8,
    }
    rows = []
    for name, own in kept.items():
        other = (ARRIVES - own) / 3
        rows.append(
            [name, f"{own:.2f}", f"{100 * (1 - own / alone):.0f} %", f"{other:.2f}", f"{jain([own, *[other] * 3]):.3f}"]
        )
    head = ("demanded", "WiFi alone, Mb/s", "its loss", "each of the others, Mb/s", "Jain")
    return head, rows


@table("players", "Other players", texts=1, plans=("players",))
def players(study: Study) -> Filled:
    """Without and with `levels`."""
    return pairs(study, "players", "player")


@table("crowd", "Many viewers", texts=1, plans=("crowd",))
def many(study: Study) -> Filled:
    """Without and with `levels`."""
    return pairs(study, "crowd", "viewers")


# --- A metered path --------------------------------------------------------------------------------------------------


def metered_case(name: str) -> Case:
    """A row of the plan `metered`."""
    return case("metered", variant=name)


@table("metered", "A path that costs money", texts=1, plans=("metered",))
def metered(study: Study) -> Filled:
    """Each sender."""
    rows = []
    for name in study.axis("metered", "variant"):
        of = metered_case(name)
        sessions = study.viewers(of)
        share = sum(row["metered_bytes"] for row in sessions) / sum(row["bytes"] for row in sessions)
        rows.append(
            [
                code(name),
                mean(study, of, "metered_bytes", 1),
                f"{100 * share:.0f} %",
                mean(study, of, "copied_bytes", 2),
                mean(study, of, "stalls", 1),
                mean(study, of, "stall_s", 1),
                mean(study, of, BITRATE, 2),
                mean(study, of, QOE, 3),
            ]
        )
    head = ("sender", "over LTE, MB", "of all data", "copies, MB", "stalls", "stalled, s", "bitrate, Mb/s", "QoE, Mb/s")
    return head, rows


@table("saved", "What rests change", texts=1, plans=("metered",))
def saved(study: Study) -> Filled:
    """Paired by seed."""
    rows = []
    for first, second in (("viewer-buffer", "min-rtt"), ("viewer-buffer of earliest", "earliest")):
        line = [code(f"{first}, less {second}")]
        for column, digits in (("metered_bytes", 1), ("stall_s", 1), (BITRATE, 2), (QOE, 3)):
            found = by_seed(study, metered_case(first), column) - by_seed(study, metered_case(second), column)
            line.append(formats.difference(found, digits))
        rows.append(line)
    return ("difference", "over LTE, MB", "stalled, s", "bitrate, Mb/s", "QoE, Mb/s"), rows
