"""`anabranch plan`: what a plan would run."""

from __future__ import annotations

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
from anabranch.cli.console import answer, echo_json
from anabranch.cli.overrides import SetOption
from anabranch.experiments import conditions
from anabranch.experiments.changes import Changes, seeds_of
from anabranch.system import provenance
from anabranch.wording import numerals, quantities
from anabranch.wording.summary import plural

if TYPE_CHECKING:
    from anabranch.experiments.store import Store
    from anabranch.experiments.sweep import Experiment

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

_MOST_ROWS = 20


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
    found = estimate.seconds_per_run(missing)
    threads = jobs or cores()
    simulated = {run.key for run in missing if not run.engine.is_live}
    seconds = None if found is None else found[0] * len(simulated) / threads
    measured = estimate.seconds_in_real_time(list({run.key: run for run in missing}.values()), at_once)
    if as_json:
        about = {"estimated_seconds": seconds, "live_seconds": measured}
        echo_json({**_object(experiment, runs, kept), "missing": len(missing), **about})
        return
    _say(experiment, runs, kept, everything=everything)
    if found is not None and seconds is not None:
        least = "more than " if found[1] else "about "
        answer(f"time: {least}{_duration(seconds)} with {plural(threads, 'thread')}, by {found[0] * 1e3:.0f} ms a run")
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
        answer(Text(f"  {', '.join(axis.columns)}: {plural(len(axis.points), 'value')}"))
    of = f"{plural(len(experiment.conditions), 'condition')} with {plural(len(plan.seeds), 'seed')}"
    there = sum(run.key in kept for run in runs)
    answer(f"{of}: {plural(len(runs), 'run')}, {there} of them in {kept.folder}")
    answer(_runs(runs if everything else runs[:_MOST_ROWS], kept))
    if not everything and len(runs) > _MOST_ROWS:
        answer(Text(f"and {len(runs) - _MOST_ROWS} more (--all)", style="dim"))
    for contrast in plan.contrasts:
        between = ", ".join(contrast.between)
        answer(
            f"compared: {contrast.metric} ({'higher' if contrast.higher_is_better else 'lower'} is better) of {between}"
        )


def _runs(runs: Sequence[conditions.Run], kept: Store) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    columns = list(runs[0].labels)
    names = quantities.endings(columns)
    for column in columns:
        table.add_column(names[column], overflow="fold")
    table.add_column("")
    for run in runs:
        texts = ["" if v is None else f"{v:.4g}" if isinstance(v, float) else str(v) for v in run.labels.values()]
        table.add_row(*texts, Text("kept", style="green") if run.key in kept else "")
    return table


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{numerals.column([seconds], most=1)[0]} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
