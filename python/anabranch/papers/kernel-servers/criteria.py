"""Are independent servers on the kernel's Multipath TCP as fast as the simulator says? The networks, and a table."""

import json
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anabranch import _core
from anabranch.experiments import formats
from anabranch.experiments.claims import Filled, table
from anabranch.experiments.study import Study
from anabranch.validation.measurement import WRITER, Lateness, emulated

# When clients begin: the servers are ready by then.
BEGIN_S = 10.0
SECONDS = 40
CHUNKS = 30
SIMULATED, TESTBED = "simulated", "the testbed's"
NGINX, APACHE = "nginx", "Apache"
# The same without what makes each slower over Multipath TCP: a write for the header alone, and joins that end half a
# minute late.
NGINX_ALIKE, APACHE_ALIKE = "nginx, `sendfile off`", "Apache, `AcceptFilter none`"
SERVERS = (TESTBED, NGINX_ALIKE, APACHE_ALIKE, NGINX, APACHE)
SEEDS, SIMULATED_SEEDS = 4, 24
# Of the kernel of the kept runs, and how late the emulator's packets typically were: simulated packets are as late.
_HEADER_ROOM, _LATE = 256, Lateness(40e-6, 150e-6)


@dataclass(frozen=True)
class Network:
    """A network, and what comes over it.

    Attributes:
        links: Its links as TOML.
        chunk: Bytes of a chunk; zero for one download without end.
    """

    links: str
    chunk: int = 0

    @property
    def scenario(self) -> str:
        """As TOML; the session begins when the servers are ready."""
        video = '{ kind = "bulk" }'
        if self.chunk:
            video = f'{{ kind = "bulk", size = "{self.chunk} B" }}\nplayer = "on-off"'
        return (
            f'schema = 1\nduration = "{BEGIN_S + SECONDS:g} s"\n[transport]\nkernel = "upstream"\n'
            f'congestion_control = "newreno"\n{self.links}'
            f'[[session]]\nstart = "{BEGIN_S:g} s"\nvideo = {video}\n'
        )

    @property
    def quantities(self) -> dict[str, Callable[[Sequence[float]], float]]:
        """What is compared of a run's values, by its name in the table."""
        if self.chunk:
            return {
                "median, s": statistics.median,
                "90th percentile, s": lambda times: formats.quantile(sorted(times), 0.9),
            }
        return {"goodput, Mb/s": statistics.fmean}


def _link(name: str, rate: str, rtt: str, queue: str, loss: str = "0 %") -> str:
    return f'[link.{name}]\nrate = "{rate}"\nrtt = "{rtt}"\nqueue = "{queue}"\nloss = "{loss}"\n'


def _unlike(loss: str) -> str:
    return _link("path1", "10 Mb/s", "20 ms", "25 kB", loss) + _link("path2", "2 Mb/s", "100 ms", "25 kB", loss)


_ALIKE_RTTS = _link("path1", "10 Mb/s", "50 ms", "62500 B") + _link("path2", "4 Mb/s", "50 ms", "25 kB")
_STEPS = "".join(
    f'[[event]]\nat = "{BEGIN_S + at:g} s"\nlink = "path1"\nrate = "{rate} Mb/s"\n' for at, rate in ((10, 4), (20, 10))
)
_FOR_CHUNKS = _link("path1", "8 Mb/s", "20 ms", "40 kB") + _link("path2", "2 Mb/s", "100 ms", "50 kB")
_LOSSY_CHUNKS = _link("path1", "2 Mb/s", "50 ms", "25 kB", "0.5 %") + _link(
    "path2", "1 Mb/s", "100 ms", "25 kB", "0.5 %"
)

NETWORKS = {
    "10 Mb/s, 20 ms + 2 Mb/s, 100 ms": Network(_unlike("0 %")),
    "the same, 0.5 % loss": Network(_unlike("0.5 %")),
    "10 Mb/s + 4 Mb/s, 50 ms, the first 4 Mb/s from 10 to 20 s": Network(_ALIKE_RTTS + _STEPS),
    "300 kB a second, 8 Mb/s, 20 ms + 2 Mb/s, 100 ms": Network(_FOR_CHUNKS, 300_000),
    "100 kB a second, 2 Mb/s, 50 ms + 1 Mb/s, 100 ms, 0.5 % loss": Network(_LOSSY_CHUNKS, 100_000),
}


def runs() -> Iterator[Mapping[str, Any]]:
    """Each network with each server."""
    for network in NETWORKS:
        for server in SERVERS:
            yield from ({"network": network, "server": server, "seed": seed} for seed in range(1, SEEDS + 1))


def simulated(network: Network, seed: int) -> list[float]:
    """The times of chunks in seconds, or the goodput in Mb/s, of a simulated run."""
    overrides = emulated(("path1", "path2"), _HEADER_ROOM, WRITER, _LATE)
    scenario = _core.load(network.scenario, name="transfer", directory=None, overrides=overrides)
    (session,) = json.loads(_core.measure(scenario, seed=seed, stop=_core.Stop()))["metrics"]["sessions"]
    if not network.chunk:
        return [session["bytes"] * 8e-6 / SECONDS]
    found = [each for each in session["downloads"] if each["finished_s"] is not None]
    return [each["finished_s"] - each["requested_s"] for each in found[1:CHUNKS]]


def rows_of(study: Study, name: str) -> list[list[str]]:
    """A row for each quantity of a network: its means over simulated runs and over the kept ones."""
    network = NETWORKS[name]
    found = {SIMULATED: [simulated(network, seed) for seed in range(1, SIMULATED_SEEDS + 1)]}
    for server in SERVERS:
        kept = (row for row in study.sessions(["runs"]) if row["server"] == server)
        found[server] = [row["values"] for row in kept if row["network"] == name]
    rows = []
    for quantity, of in network.quantities.items():
        ours, *theirs = (statistics.fmean(map(of, runs)) for runs in found.values())
        rows.append(
            [name, quantity, f"{ours:.3f}", *(f"{mean:.3f} ({100 * (ours / mean - 1):+.1f} %)" for mean in theirs)]
        )
    return rows


@table("servers", "Servers and the simulator", texts=2)
def servers(study: Study) -> Filled:
    """Goodput, or times of chunks."""
    rows = [row for network in NETWORKS for row in rows_of(study, network)]
    return ("network", "quantity", SIMULATED, *SERVERS), rows
