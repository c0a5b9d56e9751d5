"""A sweep: the runs of a plan that are missing, the tables of all, and what comparisons say."""

from __future__ import annotations

import json
import math
import time
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import polars as pl

from anabranch import _core
from anabranch.errors import InputError, alternatives
from anabranch.experiments import conditions, contrast, origin, table
from anabranch.experiments.changes import Changes
from anabranch.experiments.conditions import Condition, Run
from anabranch.experiments.contrast import Comparison
from anabranch.experiments.contrast_spec import Contrast
from anabranch.experiments.document import Way
from anabranch.experiments.executor import Executor, Finished
from anabranch.experiments.plan import Plan
from anabranch.experiments.stopping import Goal, more_seeds
from anabranch.experiments.store import Store
from anabranch.results import columns


class Progress(Protocol):
    """What wants to know how far a sweep is."""

    def begin(self, runs: int, *, kept: int) -> None:
        """So many runs are to be made, and so many are there."""

    def advance(self, finished: Finished) -> None:
        """A run is over."""


@dataclass(frozen=True)
class Shard:
    """A part of the runs, for one of several processes.

    Attributes:
        number: Which, from 1.
        of: How many there are.
    """

    number: int
    of: int

    @staticmethod
    def parse(text: str) -> Shard:
        """Reads what ``--shard`` takes.

        Raises:
            InputError: It is something else.
        """
        number, slash, of = text.partition("/")
        if slash and number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of):
            return Shard(int(number), int(of))
        raise InputError(f"--shard {text}: expected the number of a shard and how many there are, such as 3/16")

    def holds(self, key: bytes) -> bool:
        """Whether a run is in it: the keys spread the runs, whatever a run costs."""
        return int.from_bytes(key[:8]) % self.of == self.number - 1


@dataclass(frozen=True)
class Experiment:
    """A plan with its conditions, all checked.

    Attributes:
        plan: The plan.
        conditions: Every condition of it.
    """

    plan: Plan
    conditions: tuple[Condition, ...]

    @staticmethod
    def of(plan: Plan) -> Experiment:
        """Checks every value of a plan, and every name.

        Raises:
            InputError: One is wrong; nothing was written.
        """
        conditions.check(plan)
        experiment = Experiment(plan, tuple(conditions.of_plan(plan)))
        _check_columns(experiment)
        return experiment

    def runs(self, seeds: Sequence[int]) -> list[Run]:
        """The runs of some seeds."""
        return list(conditions.runs(self.plan, self.conditions, seeds))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that its axes and draws fill."""
        return (*self.plan.columns, *(draw.key for draw in self.plan.draws))


def _check_columns(experiment: Experiment) -> None:
    """Refuses names of columns that no run of the plan would have."""
    plan = experiment.plan
    wanted: dict[str, Way] = {metric: ("metrics", str(position)) for position, metric in enumerate(plan.metrics)}
    wanted |= {each.metric: (*each.way, "metric") for each in plan.contrasts}
    wanted |= {each.y: (*each.way, "y") for each in plan.figures}
    missing, known = dict(wanted), list[str]()
    for run in conditions.runs(plan, experiment.conditions, plan.seeds[:1]):
        if not missing:
            return
        scenario = run.scenario()
        outline = json.loads(_core.metrics_outline(scenario, reducers=plan.reducers))
        names = columns.known(outline, list(tomllib.loads(scenario.resolved).get("path", {})))
        known = known or list(names.names)
        there = columns.OF_LIVE if plan.is_live else ()
        missing = {name: way for name, way in missing.items() if name not in names and name not in there}
    for name, way in missing.items():
        raise plan.document.mistake(way, f"no run of this plan has a metric `{name}`{alternatives(name, known)}")


@dataclass
class Result:
    """What a sweep found.

    Attributes:
        sessions: A row per session.
        segments: A row per media segment.
        comparisons: What comparisons say, contrast by contrast.
        seeds: The seeds of every condition.
        made: Runs that were made now.
        kept: Runs that were there before.
        failed: Runs that failed, now or before.
        seconds: How long it took.
        files: What was written.
        goal_reached: Whether the goal was reached, if there was one.
        needs_networks: Whether it was given up, because no number of seeds on these networks reaches it.
        replaced: With which other changes of the plan the tables were that the folder had; ``None`` without such.
    """

    sessions: pl.DataFrame
    segments: pl.DataFrame
    comparisons: list[Comparison]
    seeds: tuple[int, ...]
    made: int = 0
    kept: int = 0
    failed: int = 0
    seconds: float = 0.0
    files: list[Path] = field(default_factory=list)
    goal_reached: bool | None = None
    needs_networks: bool = False
    replaced: Changes | None = None


def sweep(
    experiment: Experiment,
    store: Store,
    *,
    execute: Executor,
    progress: Progress,
    goal: Goal | None = None,
    budget_s: float = math.inf,
) -> Result:
    """Makes what is missing, adds seeds until a goal is reached, and writes the tables into the store's folder.

    Raises:
        OSError: Something could not be written.
        KeyboardInterrupt: The user interrupted; what was finished is in the store.
    """
    began, seeds = time.monotonic(), experiment.plan.seeds
    in_time: Callable[[], bool] = lambda: goal is None or time.monotonic() - began < budget_s  # noqa: E731
    result = _round(experiment, store, seeds, execute=execute, progress=progress, in_time=lambda: True)
    while goal is not None and not goal.reached(result.comparisons) and in_time():
        if goal.needs_networks(result.comparisons):
            result.needs_networks = True
            break
        seeds = more_seeds(seeds, goal.seeds(result.comparisons, len(seeds)))
        latest = _round(experiment, store, seeds, execute=execute, progress=progress, in_time=in_time)
        latest.made, latest.kept = latest.made + result.made, result.kept
        result = latest
    result.goal_reached = None if goal is None else goal.reached(result.comparisons)
    result.seconds = time.monotonic() - began
    return _write(experiment, store, result)


def make(
    experiment: Experiment, store: Store, shard: Shard, *, execute: Executor, progress: Progress
) -> tuple[int, int]:
    """Makes what is missing of a shard; returns the numbers of runs that were made, and that were there."""
    runs = [run for run in experiment.runs(experiment.plan.seeds) if shard.holds(run.key)]
    return make_runs(runs, store, execute=execute, progress=progress)


def _round(
    experiment: Experiment,
    store: Store,
    seeds: tuple[int, ...],
    *,
    execute: Executor,
    progress: Progress,
    in_time: Callable[[], bool],
) -> Result:
    """The runs of some seeds, and what they say."""
    runs = experiment.runs(seeds)
    made, kept = make_runs(runs, store, execute=execute, progress=progress, in_time=in_time)
    # A seed for which time was up before all conditions had it is left out, so that every table is complete.
    absent = {run.seed for run in runs if run.key not in store}
    seeds = tuple(seed for seed in seeds if seed not in absent)
    runs = [run for run in runs if run.seed not in absent]
    sessions, segments = table.tables(runs, store)
    axes = experiment.plan.columns
    comparisons = compare(sessions, experiment.plan.contrasts, axes)
    failed = sessions.filter(pl.col("error").is_not_null()).height if sessions.height else 0
    return Result(sessions, segments, comparisons, seeds, made=made, kept=kept, failed=failed)


def compare(sessions: pl.DataFrame, contrasts: Sequence[Contrast], axes: Sequence[str]) -> list[Comparison]:
    """What the contrasts of a plan say; nothing of a metric that no run has, because all failed."""
    return contrast.compare_all(sessions, [each for each in contrasts if each.metric in sessions.columns], axes)


def make_runs(
    runs: Sequence[Run],
    store: Store,
    *,
    execute: Executor,
    progress: Progress,
    in_time: Callable[[], bool] = lambda: True,
) -> tuple[int, int]:
    """Makes what is missing; returns how many runs were made, and how many were there or are others, too."""
    # Two conditions may be the same run: an option that changes nothing.
    missing = list({run.key: run for run in runs if run.key not in store}.values())
    kept = len(runs) - len(missing)
    progress.begin(len(missing), kept=kept)
    before = len(store)
    execute(missing, store, finished=progress.advance, wanted=in_time)
    return len(store) - before, kept


def _write(experiment: Experiment, store: Store, result: Result) -> Result:
    plan = experiment.plan
    result.replaced = _other_changes(store.folder, plan)
    about = table.About.now(plan.question, experiment.columns, plan.changes.options)
    tables = {"": result.sessions, "-segments": result.segments}
    if result.comparisons:
        found = [row for comparison in result.comparisons for row in contrast.rows(comparison)]
        tables["-comparisons"] = pl.DataFrame(found, infer_schema_length=None)
    if effects := [row for comparison in result.comparisons for row in contrast.effect_rows(comparison)]:
        levels = [{**row, "level": None if row["level"] is None else str(row["level"])} for row in effects]
        tables["-effects"] = pl.DataFrame(levels, infer_schema_length=None)
    for ending, content in tables.items():
        if content.width:
            file = store.folder / f"{plan.name}{ending}.parquet"
            table.write(content, file, about)
            result.files.append(file)
    origin.write(store.folder, plan, result.seeds)
    return result


def _other_changes(folder: Path, plan: Plan) -> Changes | None:
    """The changes of the plan with which the folder's tables were made, if they are others."""
    try:
        before = origin.read(folder, plan.name).changes
    except InputError:
        # There is none yet, or it is none of ours and is written anew.
        return None
    return None if before == plan.changes else before
