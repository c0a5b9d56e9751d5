"""From the axes of a plan to its runs: every condition with every seed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path

from anabranch import _core
from anabranch.errors import InputError
from anabranch.experiments import keys, variation
from anabranch.experiments.document import Way
from anabranch.experiments.engines import KERNEL, SIMULATION, Engine
from anabranch.experiments.plan import Plan
from anabranch.experiments.variation import Label, Point, with_seed
from anabranch.runs import reading
from anabranch.runs.reading import overrides_of

# A scenario with long recordings takes megabytes.
_LOADED = 64

Overrides = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Condition:
    """A point of every axis.

    Attributes:
        labels: What stands in the table, by column.
        scenario: The scenario.
        overrides: Its overrides; a text may contain ``{seed}``.
        digest: That of the scenario with its files, if it is the same for all seeds.
        engine: What makes its runs.
        modules: Where modules of own algorithms are looked for besides: the plan's folder.
    """

    labels: Mapping[str, Label]
    scenario: str
    overrides: Overrides
    digest: str | None
    engine: Engine = SIMULATION
    modules: Path | None = None


@dataclass(frozen=True)
class Run:
    """A condition with a seed.

    Attributes:
        condition: The condition.
        seed: The seed.
        overrides: The overrides, with the seed filled in, and what the seed draws.
        drawn: What the seed draws, by column; and the number of the run, in a plan with runs in real time.
        digest: That of the scenario with its files.
        reducers: What is computed of it in addition to the metrics.
        segments: Whether the lists of media segments are kept.
        live_run: Which of several runs of the seed in real time; ``None`` in simulation.
    """

    condition: Condition
    seed: int
    overrides: Overrides
    drawn: Mapping[str, float | None]
    digest: str
    reducers: tuple[str, ...] = ()
    segments: bool = True
    live_run: int | None = None

    @property
    def engine(self) -> Engine:
        """What makes it."""
        return self.condition.engine

    @cached_property
    def key(self) -> bytes:
        """The content address."""
        return keys.of_run(
            self.digest,
            self.seed,
            engine=self.engine.identity,
            live_run=self.live_run,
            reducers=self.reducers,
            segments=self.segments,
        )

    @property
    def labels(self) -> dict[str, Label | None]:
        """What distinguishes the run from the others of the plan."""
        return {**self.condition.labels, **self.drawn, "seed": self.seed}

    def scenario(self) -> _core.Scenario:
        """The checked scenario.

        Raises:
            InputError: A file of it changed since its key was computed.
        """
        scenario, digest = _load(self.condition.scenario, self.overrides, self.condition.modules)
        if digest != self.digest:
            raise InputError(f"{self.condition.scenario}: this or a file that it names changed meanwhile; start again")
        return scenario

    @property
    def command(self) -> list[str]:
        """The command that makes this run again, with its figure."""
        sets = itertools.chain.from_iterable(("--set", f"{key}={value}") for key, value in self.overrides)
        seed = ["--seed", str(self.seed)]
        return ["anabranch", "run", self.condition.scenario, *seed, *sets, *self.engine.options]


@lru_cache(maxsize=_LOADED)
def _load(scenario: str, overrides: Overrides, modules: Path | None) -> tuple[_core.Scenario, str]:
    """A scenario with its digest."""
    loaded = reading.load(scenario, overrides, modules)
    return loaded, keys.of_scenario(loaded)


def check(plan: Plan) -> None:
    """Refuses values that the scenario refuses, each at its place in the plan.

    The base comes first, then each point of each axis alone.

    Raises:
        InputError: The first mistake.
    """
    # What was read for another plan may have changed.
    _load.cache_clear()
    first = tuple(axis.points[0] for axis in plan.axes)
    scenario = next((point.scenario for point in first if point.scenario), plan.scenarios[0])
    _try(plan, ("scenario",), scenario, ())
    try:
        _try(plan, ("set",), scenario, plan.overrides)
    except InputError:
        # One of them may be wrong on its own, which gives the line.
        for way, key, value in variation.leaves(plan.document.data.get("set", {}), lambda _: False):
            _try(plan, ("set", *way), scenario, tuple(overrides_of({key: value})))
        raise
    _check_given(plan, scenario, first)
    for position, axis in enumerate(plan.axes):
        for point in axis.points:
            # A key may exist only in the scenario or the table that another axis names.
            points = (*first[:position], point, *first[position + 1 :])
            _try(plan, point.way, point.scenario or scenario, _overrides(plan, points), points)
    for draw in plan.draws:
        _try(plan, ("traces",), scenario, (*_overrides(plan, first), (draw.key, f"{draw.low:.12g}")))


def _check_given(plan: Plan, scenario: str, first: Sequence[Point]) -> None:
    """Refuses overrides that are in no file; their messages name the option."""
    if not plan.given:
        return
    # What the file says comes first, at its place.
    _try(plan, first[0].way if first else ("scenario",), scenario, _overrides(replace(plan, given=()), first), first)
    with suppress(InputError, OSError):
        # Values may need each other; where they do not go together, the first one that is wrong is named below.
        _load(scenario, with_seed(_overrides(plan, first), plan.seeds[0]), plan.folder)
        return
    for number in range(len(plan.given)):
        some = replace(plan, given=plan.given[: number + 1])
        try:
            _load(scenario, with_seed(_overrides(some, first), plan.seeds[0]), plan.folder)
        except OSError as error:
            key, value = plan.given[number]
            raise InputError(f"--set {key}={value}: {error}") from error


def _try(plan: Plan, way: Way, scenario: str, overrides: Overrides, points: Sequence[Point] = ()) -> None:
    """Reads the scenario with overrides; a mistake is in the one of these points that it names, or at the way."""
    try:
        _load(scenario, with_seed(overrides, plan.seeds[0]), plan.folder)
    except (InputError, OSError) as error:
        raise plan.document.mistake(_culprit(plan, points, str(error)) or way, str(error)) from error


def _culprit(plan: Plan, points: Sequence[Point], message: str) -> Way | None:
    """Where the value is written that a message of the reader of scenarios names, if it is one of these points."""
    for point in points:
        for key, _ in point.overrides:
            if message.startswith(f"--set {key}="):
                # The text has a dotted key or tables in tables; what is not there has the line of the table around it.
                ways = ((*point.way, key), (*point.way, *key.split(".")))
                return max(ways, key=lambda way: plan.document.line(way) or 0)
    return None


def _overrides(plan: Plan, points: Sequence[Point]) -> Overrides:
    return (*plan.overrides, *itertools.chain.from_iterable(point.overrides for point in points), *plan.given)


def of_plan(plan: Plan) -> Iterator[Condition]:
    """All conditions, the last axis fastest. The plan was checked.

    Raises:
        InputError: Two values do not go together; the message names them.
    """
    build = _build_of_kernel(plan)
    for points in itertools.product(*(axis.points for axis in plan.axes)):
        labels = {key: value for point in points for key, value in point.labels.items()}
        scenario = next((point.scenario for point in points if point.scenario), plan.scenarios[0])
        engine = next((point.engine for point in points if point.engine), plan.engines[0])
        # What the plan says comes later, and holds; what the command line says comes last.
        overrides = (*(() if engine.is_live else build), *_overrides(plan, points))
        digest = None
        if not plan.draws and not variation.follows_seed(overrides):
            digest = _digest(plan, labels, scenario, overrides)
        yield Condition(labels, scenario, overrides, digest, engine, plan.folder)


def _build_of_kernel(plan: Plan) -> Overrides:
    """What simulations take over from this machine's kernel, if the plan has runs that the kernel serves, too.

    How much memory a packet takes is a property of a kernel's build. Systems that cannot make such runs have no such
    kernel.

    Raises:
        InputError: The kernel's room for headers is unknown.
    """
    both = any(engine.server == KERNEL for engine in plan.engines) and SIMULATION in plan.engines
    if not both or not hasattr(_core, "header_room"):
        return ()
    try:
        return (("transport.header_room", str(_core.header_room())),)
    except _core.LiveError as error:
        raise InputError(f"{plan.document.path}: simulations for the kernel need its build: {error}") from error


def with_more(plan: Plan, condition: Condition, overrides: Overrides) -> Condition:
    """A condition with further overrides, which come last.

    Raises:
        InputError: The scenario refuses one.
    """
    whole = (*condition.overrides, *overrides)
    if condition.digest is None:
        # One seed tells whether they are accepted.
        _load(condition.scenario, with_seed(whole, plan.seeds[0]), condition.modules)
        return replace(condition, overrides=whole)
    return replace(condition, overrides=whole, digest=_load(condition.scenario, whole, condition.modules)[1])


def _digest(plan: Plan, labels: Mapping[str, Label], scenario: str, overrides: Overrides) -> str:
    try:
        return _load(scenario, overrides, plan.folder)[1]
    except (InputError, OSError) as error:
        where = ", ".join(f"{key}={value}" for key, value in labels.items())
        raise InputError(f"{plan.document.path}: {error} (with {where})") from error


def runs(plan: Plan, conditions: Sequence[Condition], seeds: Sequence[int]) -> Iterator[Run]:
    """The runs of some seeds, condition by condition."""
    for condition in conditions:
        for seed in seeds:
            drawn = {draw.key: draw.value(seed) for draw in plan.draws}
            overrides = condition.overrides
            digest = condition.digest
            if digest is None:
                more = tuple((key, f"{value!r}") for key, value in drawn.items())
                overrides = (*with_seed(overrides, seed), *more)
                digest = _digest(plan, {**condition.labels, "seed": seed}, condition.scenario, overrides)
            for live_run in _live_runs(plan, condition):
                columns = {**drawn, LIVE_RUN: live_run} if plan.is_live else drawn
                yield Run(condition, seed, overrides, columns, digest, plan.reducers, live_run=live_run)


LIVE_RUN = "live_run"
"""The column that counts runs of the same seed, in tables that have runs in real time."""


def _live_runs(plan: Plan, condition: Condition) -> Sequence[int | None]:
    """A simulation is repeated exactly, so once is enough."""
    return range(1, plan.live_runs + 1) if condition.engine.is_live else [None]


def folder(plan: Plan) -> Path:
    """Where the results of a plan are kept where nothing else is said."""
    return Path("runs") / plan.name
