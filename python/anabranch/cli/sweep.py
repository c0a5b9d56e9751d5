"""`anabranch sweep`: the runs of a plan, their tables, and what comparisons say."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from anabranch.cli.console import Exit, answer, echo_json, err, fail, say_note
from anabranch.cli.overrides import SetOption
from anabranch.cli.plan import (
    AtOnceOption,
    EnginesOption,
    JobsOption,
    PlanArgument,
    SeedsOption,
    StoreOption,
    changes,
    cores,
    duration_s,
)
from anabranch.errors import InputError, alternatives
from anabranch.system import outputs, provenance
from anabranch.wording.summary import plural

if TYPE_CHECKING:
    from anabranch.experiments.executor import Executor
    from anabranch.experiments.plan import Plan
    from anabranch.experiments.store import Store
    from anabranch.experiments.sweep import Experiment, Result

EXAMPLES = (
    "Example: anabranch sweep schedulers\n\n"
    "A second start continues where the first was interrupted. With more seeds until intervals are narrow: "
    'anabranch sweep schedulers --until "interval < 5 %" --budget "10 min"\n\n'
    "On a cluster, in each of 16 jobs: anabranch sweep PLAN --store DIR --shard 3/16; then once without --shard"
)

_BUDGET = "10 min"
_MOST_TABLES = 12


_Shard = Annotated[
    str | None,
    typer.Option(metavar="K/N", help="Make the K-th of N parts of the runs, and no tables.", show_default=False),
]
_Until = Annotated[
    str | None,
    typer.Option(
        metavar="GOAL",
        help='Add seeds until this holds of every paired difference, relative to the reference: "interval < 5 %".',
        show_default=False,
    ),
]
_Budget = Annotated[str, typer.Option(metavar="TIME", help="With --until, for how long to add seeds.")]
_Merge = Annotated[
    list[Path] | None,
    typer.Option(metavar="DIR", help="Take the runs of another store first. Repeatable.", show_default=False),
]
_Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Make the runs on the workers of a Dask cluster: the scheduler's address, or its --scheduler-file.",
        show_default=False,
    ),
]
_By = Annotated[
    list[str] | None,
    typer.Option(
        "--by",
        metavar="AXIS",
        help="In the table of means, a row for each value of this axis, such as trace, over which it is pooled "
        "otherwise. Repeatable.",
        show_default=False,
    ),
]
_Strict = Annotated[bool, typer.Option("--strict", help="Exit with code 1 if a run failed or a session was cut off.")]
_AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output and nothing else.")]


def sweep(
    plan: PlanArgument,
    given: SetOption = None,
    seeds: SeedsOption = None,
    engines: EnginesOption = None,
    store: StoreOption = None,
    jobs: JobsOption = None,
    at_once: AtOnceOption = 1,
    cluster: _Cluster = None,
    shard: _Shard = None,
    until: _Until = None,
    budget: _Budget = _BUDGET,
    merge: _Merge = None,
    by: _By = None,
    strict: _Strict = False,
    as_json: _AsJson = False,
) -> None:
    """Make the runs of a plan that are not there yet, write their tables, and say what comparisons show."""
    from anabranch.experiments import conditions
    from anabranch.experiments import plan as plans
    from anabranch.experiments import sweep as engine
    from anabranch.experiments.progress import Bar
    from anabranch.experiments.stopping import Goal
    from anabranch.experiments.store import Store

    goal = None if until is None else Goal.of(until)
    part = None if shard is None else engine.Shard.parse(shard)
    seconds = duration_s(budget)
    if goal is not None and part is not None:
        raise InputError("--until decides by all runs, and --shard has a part of them: expected one of the two")
    if cluster is not None and jobs is not None:
        raise InputError("--jobs is the number of threads of this machine; with --cluster its workers make the runs")
    read = plans.load(plan, changes(given, seeds, engines))
    if goal is not None and not read.contrasts:
        raise InputError(f"{read.document.path}: --until needs a comparison, and this plan has no [compare]")
    if read.is_live:
        _check_live(part)
    _check_by(read, by or [])
    experiment = engine.Experiment.of(read)
    folder = store or conditions.folder(read)
    outputs.check_folder(folder)
    with (
        _continuable(folder),
        _executor(cluster, jobs, at_once) as execute,
        Store(folder, provenance.build()) as kept,
        Bar(err()) as bar,
    ):
        _take(kept, merge or [])
        if part is not None:
            made, there = engine.make(experiment, kept, part, execute=execute, progress=bar)
            answer(f"shard {shard}: {plural(made, 'run')} made, {there} were there, in {folder}")
            return
        limit = seconds if goal else math.inf
        result = engine.sweep(experiment, kept, execute=execute, progress=bar, goal=goal, budget_s=limit)
    if as_json:
        echo_json(_object(read, result))
    else:
        _say(experiment, result, until, by or [])
    _say_replaced(plan, folder, result)
    _check(result, strict)


def _check_by(plan: Plan, by: Sequence[str]) -> None:
    """Refuses what is no axis of the plan."""
    for name in by:
        if name not in plan.columns:
            what = alternatives(name, plan.columns) if plan.columns else "; the plan varies nothing"
            raise InputError(f"--by {name}: nothing varies `{name}`{what}")


def _check_live(part: object) -> None:
    """Refuses what runs in real time cannot be made with."""
    from anabranch.experiments.realtime import missing

    if part is not None:
        raise InputError(
            "--shard: machines cannot share a plan with runs in real time, which are those of a machine and its kernel"
        )
    if lacking := missing():
        fail(f"the plan has runs in real time, and this machine lacks something: {'; '.join(lacking)}", Exit.RUN_FAILED)


@contextmanager
def _continuable(folder: Path) -> Iterator[None]:
    """Ends the command, if the sweep cannot go on, with a message that says where the finished runs are."""
    from anabranch.experiments.cluster import ClusterError

    said = f"finished runs are kept in {folder}, and the same command continues"
    try:
        yield
    except KeyboardInterrupt:
        fail(f"interrupted; {said}", Exit.INTERRUPTED)
    except ClusterError as error:
        fail(f"{error}; {said}", Exit.RUN_FAILED)
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}; {said}", Exit.RUN_FAILED)


@contextmanager
def _executor(cluster: str | None, jobs: int | None, at_once: int) -> Iterator[Executor]:
    """What makes the runs: the workers of a cluster, or threads of this process, which also make those in real time."""
    from anabranch.experiments.cluster import connect
    from anabranch.experiments.executor import Threads
    from anabranch.experiments.realtime import ByEngine

    if cluster is None:
        yield ByEngine(Threads(jobs or cores()), at_once)
        return
    with connect(cluster) as found:
        yield ByEngine(found, at_once)


def _take(store: Store, others: Sequence[Path]) -> None:
    """Takes the runs of other stores."""
    for other in others:
        err().print(f"{plural(store.merge(other), 'run')} taken from {other}", soft_wrap=True)


def _say(experiment: Experiment, result: Result, until: str | None, by: Sequence[str]) -> None:
    from anabranch.experiments import summary

    answer(Text(experiment.plan.question, style="bold"))
    if experiment.plan.changes:
        answer(Text(f"changed: {shlex.join(experiment.plan.changes.options)}", style="dim"))
    for comparison in result.comparisons[:_MOST_TABLES]:
        answer("")
        for sentence in summary.sentences(comparison):
            answer(sentence)
        answer("")
        answer(summary.comparison_table(comparison))
        if comparison.effects:
            answer("")
            answer(summary.effects_table(comparison))
    if (more := len(result.comparisons) - _MOST_TABLES) > 0:
        answer(Text(f"\nand {plural(more, 'comparison')} more, in the file", style="dim"))
    if result.comparisons:
        answer("")
        answer(Text(summary.method(result.comparisons), style="dim"))
    _say_means(experiment.plan, result, by)
    if until is not None:
        limit = "without more networks, however many seeds" if result.needs_networks else "within the budget"
        what = "reached" if result.goal_reached else f"not reached {limit}"
        answer(f"\n{until}: {what}, with {plural(len(result.seeds), 'seed')}")
    rate = f", {result.made / result.seconds:.1f} runs/s" if result.made and result.seconds else ""
    answer(f"\n{plural(result.made, 'run')} made, {result.kept} were there; {result.seconds:.1f} s{rate}")
    err().print("\n".join(["tables:", *(f"  {file}" for file in result.files)]), soft_wrap=True)


def _say_replaced(plan: str, folder: Path, result: Result) -> None:
    """Says with which command the tables were made that this sweep replaced, if that was another one."""
    if result.replaced is not None:
        command = shlex.join(["anabranch", "sweep", plan, *result.replaced.options, "--store", str(folder)])
        say_note(f"the tables in {folder} were those of `{command}`; its runs are kept, and it writes them again")


def _say_means(plan: Plan, result: Result, by: Sequence[str]) -> None:
    """The table of means: of the plan's metrics, or else of what the comparisons do not show."""
    from anabranch.experiments import summary

    metrics = plan.metrics
    if not metrics and (by or not result.comparisons):
        metrics = tuple(dict.fromkeys(each.metric for each in plan.contrasts)) or _DEFAULT_METRICS
    axes = [column for column in plan.columns if column in (*plan.policies, *by)]
    drawn = [axis.columns[0] for axis in plan.axes if axis.drawn and not set(axis.columns) & set(by)]
    means = summary.means_table(result.sessions, axes, metrics, whole=bool(by))
    if means is None:
        return
    answer("")
    answer(means)
    if pooled := summary.pooled(result.sessions, drawn):
        answer(Text(pooled, style="dim"))


_DEFAULT_METRICS = ("startup_s", "stall_s", "mean_bitrate_bps", "goodput_bps")


def _object(plan: Plan, result: Result) -> dict[str, Any]:
    from anabranch.experiments import contrast

    return {
        "schema": 1,
        "question": plan.question,
        "changes": plan.changes.options,
        "seeds": list(result.seeds),
        "runs_made": result.made,
        "runs_kept": result.kept,
        "runs_failed": result.failed,
        "seconds": result.seconds,
        "goal_reached": result.goal_reached,
        "comparisons": [
            {
                "tests": each.tests,
                "counted": each.family.counted,
                "notes": list(each.notes),
                "entries": list(contrast.rows(each)),
                "effects": list(contrast.effect_rows(each)),
            }
            for each in result.comparisons
        ],
        "files": [str(file) for file in result.files],
    }


def _check(result: Result, strict: bool) -> None:
    import polars as pl

    if result.failed:
        errors = result.sessions.filter(pl.col("error").is_not_null())["error"]
        message = f"{plural(result.failed, 'run')} failed, the last with: {errors[-1]}"
        if strict:
            fail(message, Exit.RUN_FAILED)
        err().print(Text.assemble(("warning: ", "bold yellow"), message), soft_wrap=True)
    if strict and "cut_off" in result.sessions.columns and (cut := int(result.sessions["cut_off"].sum())):
        fail(f"{plural(cut, 'session')} came not to an end, which --strict demands", Exit.RUN_FAILED)
