"""dash.js 5 with and without fast switch, and the domains of BOLA and RobustMPC: means over the viewers of all runs."""

import statistics
from collections.abc import Iterator, Sequence

from anabranch.experiments.claims import Filled, table
from anabranch.experiments.study import Case, Row, Study

HEAD = ("scenario", "player", "mean bitrate, Mb/s", "switches", "stalls", "stalled, s", "wasted bytes")
# A player that never stalls has no time of stalls.
MEANS = (("mean_bitrate_bps", 1e6, 2), ("switches", 1.0, 1), ("stalls", 1.0, 1), ("stall_s", 1.0, 1))


def means(sessions: Sequence[Row]) -> Iterator[str]:
    """The numbers of a row."""
    for column, unit, digits in MEANS:
        yield f"{statistics.mean((session[column] or 0.0) / unit for session in sessions):.{digits}f}"
    wasted = statistics.mean(session["wasted_bytes"] / session["bytes"] for session in sessions)
    yield f"{100 * wasted:.0f} %"


def rows(study: Study, plan: str, scenario: str = "") -> Filled:
    """A row per condition; the scenario is a column of the plan unless it is named."""
    labels = dict.fromkeys((scenario or row["scenario"], row["player"]) for row in study.sessions([plan]))
    lines = []
    for name, player in labels:
        case = Case(player, plan, {"player": player} | ({} if scenario else {"scenario": name}))
        lines.append([f"`{name}`", player, *means(study.viewers(case))])
    return HEAD, lines


@table("bola", "BOLA: three media segments in the buffer", texts=2, plans=("bola",))
def bola(study: Study) -> Filled:
    """The buffer, and the length of media segments."""
    return rows(study, "bola", "dash/tcp-2000")


@table("robust-mpc", "RobustMPC: no value beyond the horizon", texts=2, plans=("robust-mpc",))
def robust_mpc(study: Study) -> Filled:
    """The horizon, and the price of stalls."""
    return rows(study, "robust-mpc", "dash/four-viewers")


@table("fast-switch", "dash.js 5: fast switch", texts=2, plans=("fast-switch",))
def fast_switch(study: Study) -> Filled:
    """On and off."""
    return rows(study, "fast-switch")
