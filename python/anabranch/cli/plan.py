"""`anabranch plan`: what a plan would run."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from anabranch import _core
from anabranch.cli import completion, overrides
from anabranch.cli.console import Exit, answer, echo_json, fail
from anabranch.cli.overrides import SetOption
from anabranch.experiments import conditions
from anabranch.experiments.changes import Changes, seeds_of
from anabranch.system import provenance
from anabranch.wording import numerals, quantities
from anabranch.wording.summary import plural

if TYPE_CHECKING:
    from anabranch.experiments.estimate import Estimate
    from anabranch.experiments.plan import Plan
    from anabranch.experiments.store import Store
    from anabranch.experiments.sweep import Experiment
    from anabranch.experiments.variation import Axis

EXAMPLES = "Example: anabranch plan show schedulers"

app = typer.Typer(
    help="What a plan would run.",
    epilog=EXAMPLES,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

PlanArgument = Annotated[
    str,
    typer.Argument(
        metavar="PLAN",
        help="A file, or the name of a shipped plan (`anabranch list plans`).",
        show_default=False,
        autocompletion=completion.plans,
    ),
]
StoreOption = Annotated[
    Path | None,
    typer.Option("--store", metavar="DIR", help="Where runs are kept; runs/PLAN where absent.", show_default=False),
]
JobsOption = Annotated[
    int | None, typer.Option("--jobs", min=1, metavar="N", help="Threads; one per core where absent.")
]
SeedsOption = Annotated[
    str | None,
    typer.Option(
        "--seeds",
        metavar="SEEDS",
        help="Seeds in the place of the plan's: how many, which (5..14), or a list with commas (1,4,9).",
        show_default=False,
    ),
]
EnginesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--engine",
        metavar="ENGINE",
        help="An engine in the place of the plan's, such as sim or live/kernel. Repeatable.",
        show_default=False,
    ),
]
AtOnceOption = Annotated[
    int,
    typer.Option(
        "--at-once", min=1, max=64, metavar="N", help="Live runs at a time. Runs whose links are too late are invalid."
    ),
]

# More conditions than this are read from the values of the axes.
_MOST_ROWS = 20
# Of more values the first and the last are shown.
_MOST_VALUES = 8

BUILD_DIGITS = 12
"""So many digits of the digest of the compiled part distinguish builds."""


def changes(given: Sequence[str] | None, seeds: str | None, engines: Sequence[str] | None) -> Changes:
    """What options replace of a plan.

    Raises:
        InputError: A ``--set`` has no key, or no sign of equality.
    """
    chosen = None if seeds is None else seeds_of(seeds.strip())
    return Changes(overrides.split(given), chosen, tuple(engines or ()))


def cores() -> int:
    """How many threads can work at the same time."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def duration_s(text: str) -> float:
    """A time in seconds; minutes and hours, too, which scenarios write in seconds.

    Raises:
        InputError: It is no time.
    """
    number, _, unit = text.strip().partition(" ")
    factor = {"min": 60, "h": 3600}.get(unit)
    if factor is None:
        return _core.time_s(text)
    try:
        return _core.time_s(f"{float(number) * factor:g} s")
    except ValueError:
        return _core.time_s(text)


@app.command("show", epilog=EXAMPLES)
def show(
    plan: PlanArgument,
    given: SetOption = None,
    seeds: SeedsOption = None,
    engines: EnginesOption = None,
    store: StoreOption = None,
    jobs: JobsOption = None,
    at_once: AtOnceOption = 1,
    everything: Annotated[bool, typer.Option("--all", help="List every run.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on standard output and nothing else.")
    ] = False,
) -> None:
    """List the runs of a plan, and estimate how long they take, before any is made."""
    from anabranch.experiments import estimate, sweep
    from anabranch.experiments import plan as plans
    from anabranch.experiments.store import Store

    read = plans.load(plan, changes(given, seeds, engines))
    experiment = sweep.Experiment.of(read)
    folder = store or conditions.folder(read)
    kept = Store(folder, provenance.build())
    runs = experiment.runs(read.seeds)
    missing = [run for run in runs if run.key not in kept]
    threads = jobs or cores()
    try:
        found = estimate.of_sweep(read, runs, missing, threads)
    except KeyboardInterrupt:
        fail("interrupted", Exit.INTERRUPTED)
    measured = estimate.seconds_in_real_time(list({run.key: run for run in missing}.values()), at_once)
    if as_json:
        about = {"estimated_seconds": found and found.seconds, "live_seconds": measured}
        echo_json({**_object(experiment, runs, kept), "missing": len(missing), **about})
        return
    _say(experiment, runs, kept, everything=everything)
    if found is not None:
        answer(_time(found, threads))
    if measured:
        answer(f"in real time: at most {_duration(measured)}, {at_once} at a time")


def _object(experiment: Experiment, runs: Sequence[conditions.Run], kept: Store) -> dict[str, Any]:
    plan = experiment.plan
    return {
        "schema": 1,
        "question": plan.question,
        "changes": plan.changes.options,
        "conditions": len(experiment.conditions),
        "seeds": list(plan.seeds),
        "runs": [{"labels": run.labels, "kept": run.key in kept, "command": run.command} for run in runs],
    }


def _say(experiment: Experiment, runs: Sequence[conditions.Run], kept: Store, *, everything: bool) -> None:
    plan = experiment.plan
    answer(Text(plan.question, style="bold"))
    if plan.changes:
        answer(Text(f"changed: {shlex.join(plan.changes.options)}", style="dim"))
    for axis in plan.axes:
        answer(Text(f"  {_axis(axis)}"))
    answer(_numbers(experiment, runs, kept))
    if everything:
        answer(_runs(runs, kept))
    elif (shown := _conditions(plan, runs, kept)) is not None:
        answer(shown)
    else:
        answer(Text("A condition is every combination of these values; --all lists the runs.", style="dim"))
    for contrast in plan.contrasts:
        between = ", ".join(contrast.between)
        answer(
            f"compared: {contrast.metric} ({'higher' if contrast.higher_is_better else 'lower'} is better) of {between}"
        )


def _axis(axis: Axis) -> str:
    """An axis with its values."""
    texts = [" + ".join(_text(point.labels[column]) for column in axis.columns) for point in axis.points]
    shown = texts if len(texts) <= _MOST_VALUES else [*texts[: _MOST_VALUES - 2], "...", texts[-1]]
    number = f"{plural(len(texts), 'network' if axis.drawn else 'value')}: " if len(texts) > len(shown) - 1 else ""
    return f"{', '.join(axis.columns)}: {number}{', '.join(shown)}"


def _numbers(experiment: Experiment, runs: Sequence[conditions.Run], kept: Store) -> str:
    """How many conditions, networks, seeds and runs there are."""
    plan = experiment.plan
    networks = math.prod(len(axis.points) for axis in plan.axes if axis.drawn)
    on = f" on {plural(networks, 'network')}" if networks > 1 else ""
    of = f"{plural(len(experiment.conditions) // networks, 'condition')}{on} with {plural(len(plan.seeds), 'seed')}"
    there = sum(run.key in kept for run in runs)
    return f"{of}: {plural(len(runs), 'run')}, {there} of them in {kept.folder}"


def _conditions(plan: Plan, runs: Sequence[conditions.Run], kept: Store) -> Table | None:
    """A row per condition with the numbers of its runs; ``None`` if there are many, or only one."""
    found: dict[tuple[str, ...], list[bool]] = {}
    for run in runs:
        found.setdefault(tuple(_text(run.labels[key]) for key in plan.policies), []).append(run.key in kept)
    if len(found) > _MOST_ROWS or not plan.policies:
        return None
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in quantities.endings(plan.policies).values():
        table.add_column(name, overflow="fold")
    for head in ("runs", "kept"):
        table.add_column(head, justify="right")
    for labels, there in found.items():
        table.add_row(*labels, str(len(there)), str(sum(there)))
    return table


def _time(found: Estimate, threads: int) -> str:
    """How long a sweep takes, and how that is known."""
    from anabranch.experiments.estimate import STOP_S

    with_threads = f"with {plural(threads, 'thread')}"
    if found.is_lower_bound:
        return f"time: more than {_duration(found.seconds)} {with_threads}: runs were not over after {STOP_S:g} s"
    timed = f"{plural(found.timed, 'run')} timed, {_duration(found.run_s)} each"
    rest = f"{_duration(found.rest_s)} for tables and comparisons"
    return (
        f"time: about {_duration(found.seconds)} {with_threads}: {_duration(found.runs_s)} for runs ({timed}), {rest}"
    )


def _text(label: object) -> str:
    return "" if label is None else f"{label:.4g}" if isinstance(label, float) else str(label)


def _runs(runs: Sequence[conditions.Run], kept: Store) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    columns = list(runs[0].labels)
    names = quantities.endings(columns)
    for column in columns:
        table.add_column(names[column], overflow="fold")
    table.add_column("")
    for run in runs:
        table.add_row(*map(_text, run.labels.values()), Text("kept", style="green") if run.key in kept else "")
    return table


def _duration(seconds: float) -> str:
    if seconds < 1:
        return f"{numerals.column([seconds * 1e3], most=0)[0]} ms"
    if seconds < 120:
        return f"{numerals.column([seconds], most=1)[0]} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
