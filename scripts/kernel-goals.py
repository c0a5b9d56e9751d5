"""Measures the three goals of RFC 6356 with the coupled controls in the kernel.

    .venv/bin/python scripts/kernel-goals.py                                              prints the table
    .venv/bin/python scripts/kernel-goals.py --write papers/kernel-controls/text.md   replaces it in the page's text
    .venv/bin/python scripts/kernel-goals.py --only "shift" --control olia --seeds 2      a part of it

Clients and servers are this machine's kernel, in namespaces, over emulated links (`anabranch run --live --server
kernel`). It needs root. The command attaches the controls and detaches them at the end.
"""

from __future__ import annotations

import argparse
import functools
import math
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from anabranch import _core
from anabranch.errors import InputError
from anabranch.experiments import statistics as intervals
from anabranch.live.run import run
from anabranch.wording import markdown

CONTROLS = ("lia", "olia", "balia", "mcc")
UNCOUPLED = "newreno"
"""Each subflow on its own: what the machine does without a coupled control."""

# A coupled window grows by less than a packet per round trip. After the losses of its slow start it takes this long
# until it has its share.
WARM_UP_S = 60
# Then follow two minutes, which are a thousand round trips.
DURATION_S = 180
# The controls are attached to a port that nothing uses: the testbed chooses the control of each socket itself.
UNUSED_PORT = 1
# A packet has 1500 bytes on the wire. Of these TCP carries 1448 and Multipath TCP 1428, so the same part of a link is
# less goodput for the latter.
PAYLOADS = {"tcp": 1448, "mptcp": 1428}

# Random early drops: the loss curve is smooth, as the equations behind RFC 6356 assume. The thresholds for
#  10 Mb/s are those of the CoNEXT'12 scenarios; those of 20 Mb/s are twice as large.
_RED = (
    'queue = {{ kind = "red", limit = "{0} packets", min = "{1} packets", max = "{2} packets", '
    'max_probability = "10 %" }}'
)
_RED_10, _RED_20 = _RED.format(100, 25, 50), _RED.format(200, 50, 100)


def _scenario(*parts: str) -> str:
    buffers = '[transport]\nkernel = "upstream"\nreceive_buffer = "8 MB"\nsend_buffer = "8 MB"\n'
    return f'schema = 1\nduration = "{DURATION_S} s"\nwarm_up = "{WARM_UP_S} s"\n{buffers}' + "".join(parts)


def _link(name: str, rate: str, rtt_ms: int, queue: str) -> str:
    return f'[link.{name}]\nrate = "{rate}"\nrtt = "{rtt_ms} ms"\n{queue}\n'


def _tcp(path: str, start_s: float, count: int = 1) -> str:
    # Several begin a little after each other, or their slow starts would end in the same instant.
    return (
        f'[[traffic]]\npath = "{path}"\ncongestion_control = "newreno"\nstart = "{start_s} s"\n'
        f'count = {count}\nstagger = "300 ms"\n'
    )


# Two links with a TCP of its own on each, as in row 13 of docs/validation/laws.md.
TWO_LINKS = _scenario(
    _link("fast", "20 Mb/s", 40, _RED_20),
    _link("slow", "10 Mb/s", 80, _RED_10),
    "[[session]]\n",
    _tcp("fast", 1),
    _tcp("slow", 2),
)
# Two paths that meet at one link with a TCP on it, likewise.
ONE_LINK = _scenario(
    _link("bottleneck", "10 Mb/s", 80, _RED_10),
    '[link.a]\nrate = "unlimited"\n[link.b]\nrate = "unlimited"\n',
    '[path.a]\nlinks = ["a", "bottleneck"]\n[path.b]\nlinks = ["b", "bottleneck"]\n',
    '[[session]]\npaths = ["a", "b"]\n',
    _tcp("a", 1),
)
# Two equal links, of which one has four competitors and the other has one.
BUSY_LINK = _scenario(
    _link("quiet", "10 Mb/s", 80, _RED_10),
    _link("busy", "10 Mb/s", 80, _RED_10),
    "[[session]]\n",
    _tcp("quiet", 1),
    _tcp("busy", 2, count=4),
)

Metrics = Mapping[str, Any]


def _rate(flows: Sequence[Metrics], protocol: str) -> float:
    """What flows put on the wire."""
    return sum(float(flow["goodput_bps"]) for flow in flows) * 1500 / PAYLOADS[protocol]


def _of_session(metrics: Metrics) -> float:
    return _rate(metrics["sessions"], "mptcp")


def _share_beside_tcp(metrics: Metrics) -> float:
    return _of_session(metrics) / _rate(metrics["traffic"], "tcp")


def _share_of_busy(metrics: Metrics) -> float:
    by_path = {subflow["path"]: float(subflow["goodput_bps"]) for subflow in metrics["sessions"][0]["subflows"]}
    return by_path.get("busy", 0.0) / sum(by_path.values())


def _alone(metrics: Metrics) -> float:
    return _rate(metrics["sessions"], "tcp")


Set = Mapping[str, Any]


@dataclass(frozen=True)
class Reference:
    """What the coupled connection's measure is divided by: the mean of the best of these variants."""

    variants: tuple[Set, ...]
    measure: Callable[[Metrics], float]


@dataclass(frozen=True)
class Goal:
    """One of the goals, with its bar.

    Attributes:
        name: What is measured.
        scenario: The network.
        measure: Of a run's metrics.
        bound: The bar of the measure, over that of the reference where there is one.
        at_least: Whether the bar is a lower one.
        reason: Why the bar is where it is.
        reference: None if the measure is a ratio already.
        baseline: Whether the table has a row without coupling, for comparison.
    """

    name: str
    scenario: str
    measure: Callable[[Metrics], float]
    bound: float
    at_least: bool
    reason: str
    reference: Reference | None = None
    baseline: bool = True

    def holds(self, value: float) -> bool:
        """Whether a value meets the bar."""
        return value >= self.bound if self.at_least else value <= self.bound


def _tcp_on(path: str) -> Set:
    return {"transport.protocol": "tcp", "transport.congestion_control": UNCOUPLED, "session.0.paths": [path]}


GOALS = (
    Goal(
        "improve throughput: the rate over two links, over that of a TCP on the better one",
        TWO_LINKS,
        _of_session,
        0.9,
        True,
        # Row 13 of laws.md has the same bar: windows that are coupled are smaller than that of one TCP on each path,
        # and each has its own round trips of repair, for which a tenth is allowed.
        "RFC 6356 wants at least 1; a tenth is allowed for the repair of losses of two windows instead of one",
        Reference((_tcp_on("fast"), _tcp_on("slow")), _alone),
    ),
    Goal(
        "do no harm: the rate through one link, over that of the TCP beside it",
        ONE_LINK,
        _share_beside_tcp,
        1.15,
        False,
        # Row 13 again. Without coupling it is about 2.
        "RFC 6356 wants at most 1; 0.15 is allowed for two smallest windows and two slow starts",
    ),
    Goal(
        "shift: the share of the link with four TCPs, over that without coupling",
        BUSY_LINK,
        _share_of_busy,
        0.75,
        False,
        # Without coupling a window goes with 1/sqrt(p), with LIA's law with 1/p. Each of five flows has 2/5 of what
        # each of two has, so the windows' ratio falls from 2/5 to 4/25, and the share from 0.29 to 0.14: by half.
        "LIA's law predicts 0.5 (windows go with 1/p instead of 1/sqrt(p)); the bar is in the middle",
        Reference(({"transport.congestion_control": UNCOUPLED},), _share_of_busy),
        baseline=False,
    ),
)


@dataclass(frozen=True)
class Row:
    """A control's values at a goal, one for each seed."""

    goal: Goal
    control: str
    values: tuple[float, ...]
    invalid: int

    @property
    def mean(self) -> float:
        """Of the values."""
        return statistics.fmean(self.values)

    @property
    def half(self) -> float:
        """Half the width of the 95 % interval (Student's t); infinite for one value."""
        half = intervals.mean(np.array(self.values)).half_width
        return math.inf if math.isnan(half) else half

    @property
    def verdict(self) -> str:
        """By the mean, as in laws.md; unless the interval reaches over the bar."""
        if self.control == UNCOUPLED:
            return "without coupling"
        ends = [self.goal.holds(self.mean + sign * self.half) for sign in (-1, 1)]
        if all(ends):
            return "holds"
        return "fails" if not any(ends) else "holds in the mean" if self.goal.holds(self.mean) else "fails in the mean"


# How often a run is tried until its links were punctual, and how many are then tried beside each other.
_TRIES = 3
_FEW = 2


def live(scenario: str, overrides: Set, seed: int, duration_s: int) -> tuple[Metrics | None, int]:
    """Runs a scenario with the kernel's server; its metrics, if the machine was punctual, and how often it was not."""
    for attempt in range(_TRIES):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "goal.toml"
            file.write_text(scenario, encoding="utf-8")
            changes = {**overrides, "duration": f"{duration_s} s"}
            done = run(file, folder=Path(folder), seed=seed, set=changes, server="kernel")
            metrics = done.metrics
        measured = metrics["live"]
        assert measured is not None, "a run in real time says how late its links were"
        notes = measured["notes"]
        if any("has no congestion control" in note for note in notes):
            raise SystemExit(f"error: {notes}")
        if not measured["void"]:
            return metrics, attempt
    return None, _TRIES


@dataclass(frozen=True)
class Job:
    """Runs that one value needs."""

    goal: Goal
    overrides: Set
    measure: Callable[[Metrics], float]
    seed: int

    def value(self, duration_s: int) -> tuple[float | None, int]:
        """The measure, if a run counts, and the number of runs that do not."""
        metrics, invalid = live(self.goal.scenario, self.overrides, self.seed, duration_s)
        return None if metrics is None else self.measure(metrics), invalid


def _jobs(goal: Goal, controls: Sequence[str], seeds: int) -> dict[str, list[Job]]:
    """The runs of a goal, by control, and those of its reference by the number of its variant."""
    every = range(1, seeds + 1)
    tried = [*controls, UNCOUPLED] if goal.baseline else controls
    jobs = {
        control: [Job(goal, {"transport.congestion_control": control}, goal.measure, seed) for seed in every]
        for control in tried
    }
    if goal.reference is not None:
        for number, variant in enumerate(goal.reference.variants):
            jobs[f"reference {number}"] = [Job(goal, variant, goal.reference.measure, seed) for seed in every]
    return jobs


def _values(work: Sequence[Job], duration_s: int, at_once: int) -> dict[int, tuple[float | None, int]]:
    """What each job gives, by its identity, in the order of the jobs."""
    with ThreadPoolExecutor(at_once) as pool:
        found = pool.map(functools.partial(Job.value, duration_s=duration_s), work)
        return dict(zip(map(id, work), found, strict=True))


def measure(goals: Sequence[Goal], controls: Sequence[str], *, seeds: int, duration_s: int, at_once: int) -> list[Row]:
    """Runs everything, several runs at a time; the controls are attached already."""
    planned = {(goal.name, name): jobs for goal in goals for name, jobs in _jobs(goal, controls, seeds).items()}
    work = [job for jobs in planned.values() for job in jobs]
    values = _values(work, duration_s, at_once)
    # Runs beside each other disturb each other. What was never punctual is tried again with less beside it.
    late = [job for job in work if values[id(job)][0] is None]
    for job, (value, invalid) in zip(late, _values(late, duration_s, _FEW).values(), strict=True):
        values[id(job)] = value, invalid + values[id(job)][1]
    rows = []
    for goal in goals:
        found = {
            name: (
                [value for job in jobs if (value := values[id(job)][0]) is not None],
                sum(values[id(job)][1] for job in jobs),
            )
            for (own, name), jobs in planned.items()
            if own == goal.name
        }
        if unknown := [name for name, (own_values, _) in found.items() if not own_values]:
            raise SystemExit(
                f"error: {goal.name}: no run of {', '.join(unknown)} was punctual; stop other programs and try again"
            )
        references = [statistics.fmean(found[name][0]) for name in found if name.startswith("reference")]
        by = max(references, default=1.0)
        for name, (own_values, invalid) in found.items():
            if not name.startswith("reference"):
                rows.append(Row(goal, name, tuple(value / by for value in own_values), invalid))
    return rows


def table_of(rows: Sequence[Row]) -> str:
    """The table of the page."""
    lines = []
    for row in rows:
        bar = f"{'≥' if row.goal.at_least else '≤'} {row.goal.bound:g}"
        measured = f"{row.mean:.3f} ± {row.half:.3f}"
        lines.append([f"{row.goal.name}: {bar}", row.control, row.verdict, measured, str(len(row.values))])
    return markdown.table(
        ("goal of RFC 6356, bar", "control", "verdict", "measured, 95 % interval", "runs"), lines, texts=3
    )


def main() -> None:
    """Measures, and prints or writes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", metavar="PAGE", type=Path, help="replace the table in this page")
    parser.add_argument("--only", metavar="TEXT", action="append", help="goals with this in their names (all)")
    parser.add_argument("--control", choices=CONTROLS, action="append", help="these controls (all)")
    parser.add_argument("--seeds", type=int, default=6, help="runs of each (6)")
    parser.add_argument(
        "--duration",
        type=int,
        default=DURATION_S,
        metavar="S",
        help=f"of a run, with {WARM_UP_S} s of warm-up ({DURATION_S})",
    )
    parser.add_argument("--at-once", type=int, default=6, help="runs at a time (6)")
    parser.add_argument("--attached", action="store_true", help="the controls are attached already, and stay so")
    options = parser.parse_args()
    if options.write is not None:
        # A page without markers is refused before anything is measured.
        markdown.replaced(options.write.read_text("utf-8"), "goals", "")
    goals = [goal for goal in GOALS if not options.only or any(text in goal.name for text in options.only)]
    controls = options.control or CONTROLS
    if not options.attached:
        for control in controls:
            _core.kernel_attach(control, port=UNUSED_PORT)
    try:
        rows = measure(goals, controls, seeds=options.seeds, duration_s=options.duration, at_once=options.at_once)
    finally:
        if not options.attached:
            for control in controls:
                _core.kernel_detach(control)
    table = table_of(rows)
    print(table)
    print(f"invalid runs: {sum(row.invalid for row in rows)}", file=sys.stderr)
    if options.write is not None:
        page = options.write.read_text(encoding="utf-8")
        options.write.write_text(markdown.replaced(page, "goals", table), encoding="utf-8")


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        sys.exit(f"error: {error}")
