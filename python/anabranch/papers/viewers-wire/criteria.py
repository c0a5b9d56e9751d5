"""Does a server that paces its responses make real players calm and equal? The runs, and a table."""

import statistics
from collections.abc import Iterator, Mapping
from typing import Any

from anabranch.experiments import formats
from anabranch.experiments.claims import Filled, table
from anabranch.experiments.study import Row, Study

FOUR, BESIDE_CURL = "four viewers", "one viewer beside curl"
CASES = (FOUR, BESIDE_CURL)
NGINX = "nginx on the kernel, CUBIC"
OFF, LEVELS = "`serve`, LIA", "`serve`, LIA, `levels`"
LEVELS_CMCD = "the same, and players send CMCD"
SERVERS = (NGINX, OFF, LEVELS, LEVELS_CMCD)
SEEDS = 3
BITRATE, QOE = "mean_bitrate_bps", "qoe_linear_per_segment"
SEEN = ("switches", BITRATE, "stalls", "stall_s", "startup_s", QOE)
"""The metrics that a run keeps of each viewer."""


def runs() -> Iterator[Mapping[str, Any]]:
    """Each case with each server, seed by seed; a viewer who is alone is not paced, whatever the player reports."""
    for seed in range(1, SEEDS + 1):
        for case in CASES:
            for server in SERVERS if case == FOUR else SERVERS[:-1]:
                yield {"case": case, "server": server, "seed": seed}


def jain(values: list[float]) -> float:
    """Jain's index of fairness: one if all are equal."""
    return sum(values) ** 2 / (len(values) * sum(value * value for value in values))


def _mean(rows: list[Row], of: str, digits: int) -> str:
    """The mean over the runs with its interval, of what each viewer saw."""
    return formats.interval([statistics.fmean(row[of]) for row in rows], digits)


def _row(case: str, server: str, rows: list[Row]) -> list[str]:
    fair = [jain(row[BITRATE]) for row in rows]
    # Linear QoE counts in kb/s.
    qoe, bitrates = ([statistics.fmean(row[of]) / unit for row in rows] for of, unit in ((QOE, 1e3), (BITRATE, 1e6)))
    loads = sorted({row["load"] for row in rows})
    curl = [row["curl_mbps"] for row in rows] if case == BESIDE_CURL else []
    return [
        case,
        server,
        str(len(rows)),
        _mean(rows, "switches", 1),
        formats.interval(fair, 3) if case == FOUR else "one viewer",
        formats.interval(qoe, 2),
        formats.interval(bitrates, 2),
        _mean(rows, "stalls", 2),
        _mean(rows, "startup_s", 2),
        formats.interval(curl, 2) if curl else "",
        f"{loads[0]} to {loads[-1]}" if len(loads) > 1 else f"{loads[0]}",
    ]


@table("viewers", "Real players, without and with pacing", texts=2)
def viewers(study: Study) -> Filled:
    """Means over the runs; each run counts with the mean over its viewers."""
    found = study.sessions(["runs"])
    filled = []
    for case in CASES:
        for server in SERVERS:
            rows = [row for row in found if (row["case"], row["server"]) == (case, server)]
            if rows:
                filled.append(_row(case, server, rows))
    about = ("case", "server", "runs", "switches", "Jain", "QoE, Mb/s", "bitrate, Mb/s", "stalls", "start-up, s")
    return (*about, "curl, Mb/s", "load"), filled
