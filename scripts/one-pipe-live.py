"""Measures chunk downloads over two paths to a kernel's client, for docs/validation/one-pipe.md.

    .venv/bin/python scripts/one-pipe-live.py --keep runs.json    makes the runs that it lacks (root, Linux)
    .venv/bin/python scripts/one-pipe-live.py --kept runs.json    prints the table of kept runs
    .venv/bin/python scripts/one-pipe-live.py --kept runs.json --write docs/validation/one-pipe.md

Every run is a process of its own, `anabranch run --live`, so several are made at once. Beside each row stands the same
scenario in simulation, with the same seeds; today's Linux is `transport.kernel = "upstream"` there.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from page_tables import quantiles, replaced
from wire_runs import UPSTREAM, chunk_times_ms, complete, in_simulation, load_kept, on_the_wire

RATES = ((667, 1333), (1333, 667), (333, 1667), (1667, 333))
CHUNKS_KB = (100, 250)
# A run ends this many seconds after the last request.
DRAIN_S = 5
# Beyond this at the 99th percentile a run measured the machine (docs/how-to/live.md).
MOST_LATENESS_S = 0.001


@dataclass(frozen=True)
class Sender:
    """A row of the table: a server, and what differs from the scenario."""

    name: str
    scenario: str
    server: str
    changes: Mapping[str, str]
    # What stands for the kernel in simulation.
    simulated: Mapping[str, str]


SENDERS = (
    Sender("one TCP of 2000 kb/s, bbr", "pipe", "anabranch", {}, {}),
    Sender("one TCP of 2000 kb/s, the kernel, CUBIC", "pipe", "kernel", {"transport.congestion_control": "cubic"}, {}),
    Sender("earliest, cbbr", "chunks", "anabranch", {}, {}),
    Sender("the kernel, CUBIC", "chunks", "kernel", {"transport.congestion_control": "cubic"}, UPSTREAM),
)


@dataclass(frozen=True)
class Job:
    """One run."""

    sender: int
    rates_kbps: tuple[int, int]
    chunk_kb: int
    seed: int
    seconds: int

    def overrides(self) -> dict[str, str]:
        """What differs from the shipped scenario."""
        sender = SENDERS[self.sender]
        paths = {"slow": self.rates_kbps[0], "fast": self.rates_kbps[1]}
        links = {f"link.{name}.rate": f"{rate} kb/s" for name, rate in paths.items() if sender.scenario == "chunks"}
        length = {"session.0.player.duration": f"{self.seconds} s", "duration": f"{self.seconds + DRAIN_S} s"}
        return {**links, **length, "session.0.video.size": f"{self.chunk_kb} kB", **sender.changes}


@dataclass(frozen=True)
class Kept:
    """What was measured in one run."""

    job: Job
    times_ms: tuple[float, ...]
    lateness_s: float

    @property
    def valid(self) -> bool:
        """Whether its links were on time, and something arrived."""
        return self.lateness_s <= MOST_LATENESS_S and bool(self.times_ms)


def live(job: Job) -> Kept:
    """Makes a run in real time."""
    sender = SENDERS[job.sender]
    metrics = on_the_wire(f"one-pipe/{sender.scenario}", job.overrides(), job.seed, server=sender.server)
    print(f"{sender.name}, {job.rates_kbps}, {job.chunk_kb} kB, seed {job.seed}: done", file=sys.stderr, flush=True)
    return Kept(job, tuple(chunk_times_ms(metrics["sessions"][0])), metrics["live"]["lateness_s"]["p99"])


def simulated(job: Job) -> list[float]:
    """The times of the same run in simulation."""
    sender = SENDERS[job.sender]
    metrics = in_simulation(f"one-pipe/{sender.scenario}", {**job.overrides(), **sender.simulated}, job.seed)
    return chunk_times_ms(metrics["sessions"][0])


def jobs(seeds: int, seconds: int) -> list[Job]:
    """All runs: the order of the table, seed by seed, so that a campaign that is cut off has every row."""
    found = []
    for seed in range(1, seeds + 1):
        for chunk_kb in CHUNKS_KB:
            for index, sender in enumerate(SENDERS):
                pairs = RATES if sender.scenario == "chunks" else RATES[:1]
                found += [Job(index, rates, chunk_kb, seed, seconds) for rates in pairs]
    return found


def table(kept: Sequence[Kept], kernel: str) -> str:
    """The runs beside simulation, without invalid ones."""
    valid = [run for run in kept if run.valid]
    seeds = len({run.job.seed for run in valid})
    seconds = max(run.job.seconds for run in valid)
    head = (f"rates, kb/s; {seeds} seeds of {seconds} s", "sender")
    columns = [f"{kb} kB, {where}: p50 / p90 / p99, ms" for kb in CHUNKS_KB for where in ("on the wire", "simulated")]
    lines = [[*head, *columns], ["---", "---", *["---:"] * len(columns)]]
    for rates in RATES:
        for index, sender in enumerate(SENDERS):
            texts = []
            for chunk_kb in CHUNKS_KB:
                same = [run for run in valid if (run.job.sender, run.job.chunk_kb) == (index, chunk_kb)]
                same = [run for run in same if run.job.rates_kbps == rates]
                wire = [time for run in same for time in run.times_ms]
                model = [time for run in same for time in simulated(run.job)]
                texts += [quantiles(wire), quantiles(model)] if same else ["", ""]
            if any(texts):
                name = f"{rates[0]} + {rates[1]}" if sender.scenario == "chunks" else "one path"
                lines.append([name, sender.name, *texts])
    worst = max(run.lateness_s for run in valid)
    note = (
        f"Linux {kernel}. {len(valid)} of {len(kept)} runs are valid; at the 99th percentile the emulator was at most "
        f"{1000 * worst:.2f} ms late in these."
    )
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + f"\n\n{note}"


def kept_run(run: Mapping[str, Any]) -> Kept:
    """A run as it stands in a file."""
    job = Job(**{**run["job"], "rates_kbps": tuple(run["job"]["rates_kbps"])})
    return Kept(job, tuple(run["times_ms"]), run["lateness_s"])


def main() -> None:
    """Measures or reads, and prints or writes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3, help="seeds of every row (3)")
    parser.add_argument("--seconds", type=int, default=60, help="for how long chunks are requested (60)")
    parser.add_argument("--at-once", type=int, default=4, help="runs at the same time (4)")
    parser.add_argument(
        "--keep", metavar="FILE", type=Path, help="make the runs that are missing or invalid in this file"
    )
    parser.add_argument("--kept", metavar="FILE", type=Path, help="make the table of this file, without runs")
    parser.add_argument("--write", metavar="PAGE", type=Path, help="replace the table in this page")
    arguments = parser.parse_args()
    kept = load_kept(arguments.kept or arguments.keep)
    if not arguments.kept:
        wanted = jobs(arguments.seeds, arguments.seconds)
        have = {run.job for run in map(kept_run, kept["runs"]) if run.valid}
        missing = [job for job in wanted if job not in have]
        places = {job: place for place, job in enumerate(wanted)}

        complete(
            kept,
            missing,
            lambda job: asdict(live(job)),
            at_once=arguments.at_once,
            order=lambda run: places.get(kept_run(run).job, len(places)),
            file=arguments.keep,
        )
    text = table([kept_run(run) for run in kept["runs"]], kept["kernel"])
    if arguments.write:
        page = arguments.write.read_text(encoding="utf-8")
        arguments.write.write_text(replaced(page, "live", text), encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
