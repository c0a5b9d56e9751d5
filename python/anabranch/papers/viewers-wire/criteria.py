"""Does a server that paces its responses make real players calm and equal? The runs, and two tables."""

import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from anabranch.experiments import formats
from anabranch.experiments.claims import Filled, table
from anabranch.experiments.statistics import jain
from anabranch.experiments.study import Row, Study

FOUR, WITH_CURL = "four viewers", "one viewer beside curl"
CASES = (FOUR, WITH_CURL)
NGINX = "nginx on the kernel, CUBIC"
OFF, LEVELS = "`serve`, LIA", "`serve`, LIA, `levels`"
LEVELS_CMCD = "the same, and players send CMCD"
SERVERS = (NGINX, OFF, LEVELS, LEVELS_CMCD)
SEEDS = 3
BITRATE, QOE = "mean_bitrate_bps", "qoe_linear_per_segment"
SEEN = ("switches", BITRATE, "stalls", "stall_s", "startup_s", QOE)
"""The metrics that a run keeps of each viewer."""
COLUMNS = ("switches", "Jain", "QoE, Mb/s", "bitrate, Mb/s", "stalls", "start-up, s")
"""What `_quality` gives."""


def runs() -> Iterator[Mapping[str, Any]]:
    """Each case with each server, seed by seed; a viewer who is alone is not paced, whatever the player reports."""
    for seed in range(1, SEEDS + 1):
        for case in CASES:
            for server in SERVERS if case == FOUR else SERVERS[:-1]:
                yield {"case": case, "server": server, "seed": seed}


def _quality(runs: Sequence[Mapping[str, Any]], *, compete: bool = True) -> list[str]:
    """What viewers saw. Each run has a list of every metric, and counts with the mean over its viewers.

    Args:
        runs: The runs.
        compete: Whether several viewers compete, whose bitrates may be unequal.
    """

    def mean(of: str, digits: int, unit: float = 1.0) -> str:
        return formats.interval([statistics.fmean(run[of]) / unit for run in runs], digits)

    return [
        mean("switches", 1),
        formats.interval([jain(run[BITRATE]) for run in runs], 3) if compete else "one viewer",
        # Linear QoE counts in kb/s.
        mean(QOE, 2, 1e3),
        mean(BITRATE, 2, 1e6),
        mean("stalls", 2),
        mean("startup_s", 2),
    ]


def _row(case: str, server: str, rows: list[Row]) -> list[str]:
    loads = sorted({row["load"] for row in rows})
    curl = [row["curl_mbps"] for row in rows] if case == WITH_CURL else []
    return [
        case,
        server,
        str(len(rows)),
        *_quality(rows, compete=case == FOUR),
        formats.interval(curl, 2) if curl else "",
        f"{loads[0]} to {loads[-1]}" if len(loads) > 1 else f"{loads[0]}",
    ]


@table("viewers", "Real players, without and with pacing", texts=2)
def viewers(study: Study) -> Filled:
    """Means over the runs."""
    found = study.sessions(["runs"])
    filled = []
    for case in CASES:
        for server in SERVERS:
            rows = [row for row in found if (row["case"], row["server"]) == (case, server)]
            if rows:
                filled.append(_row(case, server, rows))
    return ("case", "server", "runs", *COLUMNS, "curl, Mb/s", "load"), filled


@table("simulated", "The same four viewers in simulation", texts=1)
def simulated(study: Study) -> Filled:
    """Means over the seeds."""
    servers: dict[str, dict[int, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in study.sessions(["simulated"]):
        servers[row["server"]][row["seed"]].append(row)
    filled = []
    for server, seeds in servers.items():
        runs = [{name: [row[name] for row in rows] for name in SEEN} for rows in seeds.values()]
        filled.append([server, str(len(runs)), *_quality(runs)])
    return ("server", "runs", *COLUMNS), filled
