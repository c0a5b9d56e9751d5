"""`anabranch plan`: what a plan would run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from anabranch import _core
from anabranch.cli import completion
from anabranch.cli.console import answer, echo_json
from anabranch.experiments import conditions
from anabranch.system import provenance
from anabranch.wording import numerals
from anabranch.wording.summary import plural

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

AtOnceOption = Annotated[
    int,
    typer.Option(
        "--at-once", min=1, max=64, metavar="N", help="Live runs at a time. Runs whose links are too late are invalid."
    ),
]

_MOST_ROWS = 20


BUILD_DIGITS = 12
"""So many digits of the digest of the compiled part distinguish builds."""


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

    read = plans.load(plan)
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
        said = {
            "schema": 1,
            "question": read.question,
            "conditions": len(experiment.conditions),
            "seeds": list(read.seeds),
            "runs": [{"labels": run.labels, "kept": run.key in kept, "command": run.command} for run in runs],
            "missing": len(missing),
            "estimated_seconds": seconds,
            "live_seconds": measured,
        }
        echo_json(said)
        return
    answer(Text(read.question, style="bold"))
    for axis in read.axes:
        answer(Text(f"  {', '.join(axis.columns)}: {plural(len(axis.points), 'value')}"))
    of = f"{plural(len(experiment.conditions), 'condition')} with {plural(len(read.seeds), 'seed')}"
    answer(f"{of}: {plural(len(runs), 'run')}, {len(runs) - len(missing)} of them in {folder}")
    answer(_runs(runs if everything else runs[:_MOST_ROWS], kept))
    if not everything and len(runs) > _MOST_ROWS:
        answer(Text(f"and {len(runs) - _MOST_ROWS} more (--all)", style="dim"))
    for contrast in read.contrasts:
        between = ", ".join(contrast.between)
        answer(
            f"compared: {contrast.metric} ({'higher' if contrast.higher_is_better else 'lower'} is better) of {between}"
        )
    if found is not None and seconds is not None:
        least = "more than " if found[1] else "about "
        answer(f"time: {least}{_duration(seconds)} with {plural(threads, 'thread')}, by {found[0] * 1e3:.0f} ms a run")
    if measured:
        answer(f"in real time: at most {_duration(measured)}, {at_once} at a time")


def _runs(runs: Sequence[conditions.Run], kept: object) -> Table:
    from anabranch.experiments import summary

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    columns = list(runs[0].labels)
    names = summary.short(columns)
    for column in columns:
        table.add_column(names[column], overflow="fold")
    table.add_column("")
    for run in runs:
        there = run.key in kept  # type: ignore[operator]
        texts = ["" if v is None else f"{v:.4g}" if isinstance(v, float) else str(v) for v in run.labels.values()]
        table.add_row(*texts, Text("kept", style="green") if there else "")
    return table


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{numerals.column([seconds], most=1)[0]} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
