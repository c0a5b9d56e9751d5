"""Compares independent servers on the kernel's Multipath TCP with the simulator, for docs/validation/kernel.md.

    .venv/bin/python scripts/kernel-servers.py                                     measures, prints the table
    .venv/bin/python scripts/kernel-servers.py --write docs/validation/kernel.md   replaces it in the page

nginx and Apache with Debian's programs, and the testbed's own server, send to curl over unlike paths: one download
without end, and a chunk a second on one connection. It needs root and what `scripts/setup-live.sh` installs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from anabranch import _core
from anabranch.errors import InputError
from anabranch.live import servers
from anabranch.validation.measurement import WRITER, Lateness, emulated
from anabranch.wording import markdown

# When clients begin: the servers are ready by then.
BEGIN_S = 10.0
# The kernel's name of NewReno: a namespace may choose no other, and Apache takes the namespace's.
_CONTROL = "reno"
SECONDS = 40
CHUNKS = 30
# Larger than what the fastest of the networks carries meanwhile.
_FILE_BYTES = 200_000_000
_TESTBED, _NGINX, _APACHE = "the testbed's", "nginx", "Apache"
SERVERS = (_TESTBED, _NGINX, _APACHE)
SEEDS, SIMULATED_SEEDS = 4, 24


@dataclass(frozen=True)
class Case:
    """A network, and what comes over it.

    Attributes:
        name: In the table.
        links: Its links as TOML.
        chunk: Bytes of a chunk; zero for one download without end.
    """

    name: str
    links: str
    chunk: int = 0

    @property
    def scenario(self) -> str:
        """As TOML; the session begins when the servers are ready, after the links' traces."""
        video = '{ kind = "bulk" }'
        if self.chunk:
            video = f'{{ kind = "bulk", size = "{self.chunk} B" }}\nplayer = "on-off"'
        return (
            f'schema = 1\nduration = "{BEGIN_S + SECONDS:g} s"\n[transport]\nkernel = "upstream"\n'
            f'congestion_control = "newreno"\n{self.links}'
            f'[[session]]\nstart = "{BEGIN_S:g} s"\nvideo = {video}\n'
        )


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

CASES = (
    Case("10 Mb/s, 20 ms + 2 Mb/s, 100 ms", _unlike("0 %")),
    Case("the same, 0.5 % loss", _unlike("0.5 %")),
    Case("10 Mb/s + 4 Mb/s, 50 ms, the first 4 Mb/s from 10 to 20 s", _ALIKE_RTTS + _STEPS),
    Case("300 kB a second, 8 Mb/s, 20 ms + 2 Mb/s, 100 ms", _FOR_CHUNKS, 300_000),
    Case("100 kB a second, 2 Mb/s, 50 ms + 1 Mb/s, 100 ms, 0.5 % loss", _LOSSY_CHUNKS, 100_000),
)


@dataclass(frozen=True)
class Result:
    """What a run gave: the goodput in Mb/s, or the times of chunks in seconds."""

    values: tuple[float, ...]
    late_p50_s: float
    late_p99_s: float
    invalid: bool


def attempt(case: Case, server: str, seed: int) -> Result:
    """A live run."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        folder.chmod(0o755)
        root = folder / "www"
        root.mkdir()
        size = case.chunk or _FILE_BYTES
        with (root / "file").open("wb") as file:
            file.truncate(size)
        scenario = _core.load(case.scenario, name=case.name, directory=None, overrides=())
        testbed = stack.enter_context(
            _core.Testbed(scenario, seed=seed, server="kernel", client="program", record_events=False)
        )
        url = f"{testbed.url}/bytes/{size}"
        (place,), port = servers.namespaces("server"), servers.FIRST_PORT
        if server != _TESTBED:
            url = f"http://{servers.ADDRESS}:{port}/file"
        if server == _NGINX:
            own = servers.nginx(place, root, folder, control=_CONTROL, port=port, writes="pages")
            stack.enter_context(own)
        elif server == _APACHE:
            stack.enter_context(servers.apache(place, root, folder, port=port))
        time.sleep(max(0.0, BEGIN_S - testbed.elapsed))
        values = _fetch(testbed, url, case)
        metrics = json.loads(testbed.finish("finished", viewed=None, notes=()).metrics_json)
    lateness = metrics["live"]["lateness_s"]
    return Result(values, lateness["p50"], lateness["p99"], bool(metrics["live"]["void"]))


def _fetch(testbed: _core.Testbed, url: str, case: Case) -> tuple[float, ...]:
    options = ["--silent", "--output", "/dev/null", "--write-out", "%{size_download} %{time_total}\\n"]
    if case.chunk:
        options += ["--rate", "60/m"]
        url += f"?[1-{CHUNKS}]"
    else:
        options += ["--max-time", str(SECONDS)]
    command = servers.inside(testbed.namespace, "mptcpize", "run", "curl", *options, url)
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=SECONDS + 60, check=False).stdout
    rows = [tuple(map(float, line.split())) for line in output.splitlines()]
    if case.chunk:
        # The first one waits for the second subflow and for slow start.
        return tuple(seconds for _, seconds in rows[1:])
    return tuple(size * 8e-6 / SECONDS for size, _ in rows)


def simulate(case: Case, lateness: Lateness, seed: int) -> tuple[float, ...]:
    """The same of a simulated run."""
    overrides = emulated(("path1", "path2"), _core.header_room(), WRITER, lateness)
    scenario = _core.load(case.scenario, name=case.name, directory=None, overrides=overrides)
    kept = json.loads(_core.measure(scenario, seed=seed, stop=_core.Stop()))
    (session,) = kept.get("metrics", kept)["sessions"]
    if not case.chunk:
        return (session["bytes"] * 8e-6 / SECONDS,)
    found = [each for each in session["downloads"] if each["finished_s"] is not None]
    return tuple(each["finished_s"] - each["requested_s"] for each in found[1:CHUNKS])


def row_of(case: Case, live: dict[str, list[Result]], jobs: int) -> list[list[str]]:
    """Rows of the table."""
    valid = {server: [one for one in found if not one.invalid and one.values] for server, found in live.items()}
    every = [one for found in valid.values() for one in found]
    typical = Lateness.typical([Lateness(one.late_p50_s, one.late_p99_s) for one in every])
    if typical is None:
        return [[case.name, "no run counts", *[""] * (1 + len(SERVERS))]]
    with ThreadPoolExecutor(jobs) as pool:
        simulated = list(pool.map(lambda seed: simulate(case, typical, seed), range(1, SIMULATED_SEEDS + 1)))
    quantities: list[tuple[str, Callable[[Sequence[float]], float]]] = [("goodput, Mb/s", statistics.fmean)]
    if case.chunk:
        quantities = [("median, s", statistics.median), ("90th percentile, s", _p90)]
    rows = []
    for name, of in quantities:
        model = statistics.fmean(of(values) for values in simulated)
        texts = []
        for server in SERVERS:
            values = [of(one.values) for one in valid[server]]
            mean = statistics.fmean(values) if values else float("nan")
            texts.append(f"{mean:.3f} ({100 * (model / mean - 1):+.1f} %)")
        rows.append([case.name, name, f"{model:.3f}", *texts])
    return rows


def _p90(values: Sequence[float]) -> float:
    return sorted(values)[max(0, -(-len(values) * 9 // 10) - 1)]


def main() -> None:
    """Measures, and writes the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--at-once", type=int, default=6, help="live runs at a time (6)")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"live runs of each row and server ({SEEDS})")
    parser.add_argument("--write", type=Path, help="the page")
    options = parser.parse_args()
    if options.write is not None:
        # A page without markers is refused before anything is measured.
        markdown.replaced(options.write.read_text("utf-8"), "servers", "")
    work = [(case, server, seed) for seed in range(1, options.seeds + 1) for case in CASES for server in SERVERS]
    with ProcessPoolExecutor(options.at_once, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        results = list(pool.map(attempt, *zip(*work, strict=True)))
    rows = []
    for case in CASES:
        live = {
            server: [one for job, one in zip(work, results, strict=True) if job[:2] == (case, server)]
            for server in SERVERS
        }
        rows += row_of(case, live, jobs=2)
    table = markdown.table(("network", "quantity", "simulated", *SERVERS), rows, 2)
    print(table)
    if options.write is not None:
        options.write.write_text(markdown.replaced(options.write.read_text("utf-8"), "servers", table), "utf-8")


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        sys.exit(f"error: {error}")
