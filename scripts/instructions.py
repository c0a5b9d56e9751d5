#!/usr/bin/env python3
"""How many instructions the simulator needs per delivered data packet, by valgrind's callgrind.

    make instructions                              # every case
    make instructions INSTRUCTIONS="sticky --functions 25"   # cases by name, with the functions that cost most

The figure is marginal: each case runs for two durations, and the difference of instructions is divided by that of
packets, so that start-up and output do not count. It depends on the compiler and the C library, but not on what else
the machine does, which a time does. An instruction is not a time either: `make bench` measures the speed.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ["cargo", "build", "--release", "--locked", "--quiet", "-p", "anabranch-sim", "--example", "run_scenario"]
PROGRAM = ROOT / "target" / "release" / "examples" / "run_scenario"


@dataclass(frozen=True)
class Case:
    """A scenario that runs for two durations, in simulated seconds."""

    name: str
    scenario: str
    durations_s: tuple[int, int]
    overrides: tuple[str, ...] = ()


# One path with a window of a hundred packets (12 ms at 100 Mb/s), as in benches/simulator.rs.
ONE_PATH = (
    "transport.congestion_control=newreno",
    "link.path1.rtt=12 ms",
    "link.path1.queue=100 packets",
    "transport.receive_buffer=64 MB",
    "transport.send_buffer=64 MB",
)

CASES = [
    Case("sticky/base", "sticky/base", (40, 80)),
    Case("bulk/three-paths", "bulk/three-paths", (2, 4)),
    Case("one path, window 100", "bulk/one-path", (2, 4), ONE_PATH),
    Case("dash/ratio-1-5", "dash/ratio-1-5", (100, 200)),
]


@dataclass(frozen=True)
class Cost:
    """Instructions and delivered data packets of a run."""

    instructions: int
    packets: int
    functions: Counter[str]


def main() -> int:
    """Measures the chosen cases; the exit code."""
    parser = argparse.ArgumentParser(description="Instructions per delivered data packet.")
    parser.add_argument("case", nargs="*", help="part of a case's name; all cases by default")
    parser.add_argument("--functions", type=int, default=0, metavar="N", help="list the N functions that cost most")
    parser.add_argument("--program", type=Path, help="a build of run_scenario to measure instead of this source's")
    arguments = parser.parse_args()
    if shutil.which("valgrind") is None:
        print("error: valgrind was not found. On Debian and Ubuntu: apt install valgrind", file=sys.stderr)
        return 2
    chosen = [case for case in CASES if not arguments.case or any(part in case.name for part in arguments.case)]
    if not chosen:
        print(f"error: no such case. There are: {', '.join(case.name for case in CASES)}", file=sys.stderr)
        return 2
    if arguments.program is None:
        subprocess.run(BUILD, cwd=ROOT, check=True)
    program = arguments.program or PROGRAM
    print(f"{'case':<24}{'instructions per packet':>24}{'packets':>10}")
    for case in chosen:
        report(case, program, arguments.functions)
    return 0


def report(case: Case, program: Path, functions: int) -> None:
    """Prints a case's figure, and this many functions that cost most."""
    short, long = (measure(case, duration, program, functions > 0) for duration in case.durations_s)
    packets = long.packets - short.packets
    print(f"{case.name:<24}{(long.instructions - short.instructions) / packets:>24.0f}{packets:>10}", flush=True)
    difference = Counter(long.functions)
    difference.subtract(short.functions)
    for function, instructions in difference.most_common(functions):
        print(f"{instructions / packets:>12.0f}  {function}")


def measure(case: Case, duration_s: int, program: Path, by_function: bool) -> Cost:
    """Runs a case under callgrind."""
    with tempfile.TemporaryDirectory() as folder:
        profile = Path(folder) / "profile"
        valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}"]
        command = [*valgrind, str(program), case.scenario, *case.overrides, f"duration={duration_s} s"]
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        collected = re.search(r"Collected : (\d+)", run.stderr)
        if run.returncode != 0 or collected is None:
            sys.exit(f"error: {case.name} failed:\n{run.stderr}")
        functions: Counter[str] = self_costs(profile) if by_function else Counter()
    return Cost(int(collected[1]), json.loads(run.stdout)["packets"], functions)


def self_costs(profile: Path) -> Counter[str]:
    """The instructions of each function itself, of what is inlined into it, and of no function that it calls."""
    annotate = ["callgrind_annotate", "--auto=no", "--threshold=100", str(profile)]
    text = subprocess.run(annotate, capture_output=True, text=True, check=True).stdout
    costs: Counter[str] = Counter()
    for line in text.splitlines():
        match = re.match(r"\s*([\d,]+) \([ \d.]+%\)\s+\S*?:(\S.*?)(?: \[[^]]*\])?$", line)
        if match:
            # Rust's symbols end in a hash.
            function = re.sub(r"::h[0-9a-f]{16}$", "", match[2])
            costs[function] += int(match[1].replace(",", ""))
    return costs


if __name__ == "__main__":
    sys.exit(main())
