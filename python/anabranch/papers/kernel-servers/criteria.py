"""Are independent servers on the kernel's Multipath TCP as fast as the simulator says? The networks, and a table."""

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from anabranch.experiments import formats, plan
from anabranch.experiments.claims import Filled, table
from anabranch.experiments.study import Case, Row, Study
from anabranch.validation.measurement import WRITER, Lateness, emulated

# When clients begin, and how long a transfer lasts then, as transfer.toml has it.
BEGIN_S, SECONDS = 10.0, 40
CHUNKS = 30
SIMULATED, TESTBED = "simulated", "the testbed's"
NGINX, APACHE = "nginx", "Apache"
# The same without what makes each slower over Multipath TCP: a write for the header alone, and joins that end half a
# minute late.
NGINX_ALIKE, APACHE_ALIKE = "nginx, `sendfile off`", "Apache, `AcceptFilter none`"
SERVERS = (TESTBED, NGINX_ALIKE, APACHE_ALIKE, NGINX, APACHE)
SEEDS = 4
PLAN = plan.load(Path(__file__).with_name("simulated.toml"))
NETWORKS = {str(point.labels["network"]): point.overrides for axis in PLAN.axes for point in axis.points}
"""The overrides of each network."""
# Bytes of a chunk, with which the name of such a network begins; the others have one download without end.
CHUNK_BYTES = {name: int(name.split()[0]) * 1000 for name in NETWORKS if " kB a second" in name}
# Of the kernel of the kept runs, and how late the emulator's packets typically were: simulated packets are as late.
_HEADER_ROOM, _LATE = 256, Lateness(40e-6, 150e-6)


def emulation(_labels: Mapping[str, Any]) -> dict[str, str]:
    """What makes a simulated transfer one of the testbed."""
    return dict(emulated(("path1", "path2"), _HEADER_ROOM, WRITER, _LATE))


def runs() -> Iterator[Mapping[str, Any]]:
    """Each network with each server."""
    for network in NETWORKS:
        for server in SERVERS:
            yield from ({"network": network, "server": server, "seed": seed} for seed in range(1, SEEDS + 1))


def values(network: str, row: Row) -> list[float]:
    """The times of chunks in seconds, or the goodput in Mb/s, of a simulated run."""
    if network not in CHUNK_BYTES:
        return [row["bytes"] * 8e-6 / SECONDS]
    # The first one waits for the second subflow and for slow start.
    return list(row["download_s"][1:CHUNKS])


def quantities(network: str) -> Iterator[tuple[str, Callable[[Sequence[float]], float]]]:
    """What is compared of a run's values, with its name in the table."""
    if network not in CHUNK_BYTES:
        yield "goodput, Mb/s", statistics.fmean
        return
    yield "median, s", statistics.median
    yield "90th percentile, s", lambda times: formats.quantile(sorted(times), 0.9)


def rows_of(study: Study, network: str) -> list[list[str]]:
    """A row for each quantity of a network: its means over simulated runs and over the kept ones."""
    simulated = study.rows(Case(network, PLAN.name, {"network": network}))
    found = [[values(network, row) for row in simulated]]
    for server in SERVERS:
        kept = (row for row in study.sessions(["runs"]) if row["server"] == server)
        found.append([row["values"] for row in kept if row["network"] == network])
    rows = []
    for quantity, of in quantities(network):
        ours, *theirs = (statistics.fmean(map(of, runs)) for runs in found)
        rows.append(
            [network, quantity, f"{ours:.3f}", *(f"{mean:.3f} ({100 * (ours / mean - 1):+.1f} %)" for mean in theirs)]
        )
    return rows


@table("servers", "Servers and the simulator", texts=2)
def servers(study: Study) -> Filled:
    """Goodput, or times of chunks."""
    rows = [row for network in NETWORKS for row in rows_of(study, network)]
    return ("network", "quantity", SIMULATED, *SERVERS), rows
