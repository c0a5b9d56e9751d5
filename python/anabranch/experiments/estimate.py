"""How long a sweep takes: some of its runs are made as the sweep makes them, and the rest is expected to take as long.

What follows the runs is timed, too: tables of the runs that were made, and comparisons of random numbers, as many as
the sweep will compare.
"""

from __future__ import annotations

import itertools
import math
import tempfile
import threading
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from anabranch import _core
from anabranch.experiments import table
from anabranch.experiments.conditions import Run
from anabranch.experiments.contrast_spec import Contrast
from anabranch.experiments.executor import Finished, Stop, Threads, simulate
from anabranch.experiments.plan import Plan
from anabranch.experiments.store import Store
from anabranch.experiments.variation import Axis

# Runs are timed for so long if their times agree, and for longer if they do not.
_ENOUGH_S = 3.0
_MOST_S = 8.0
# Times agree if the standard error of their mean is no larger than this share of it.
_AGREEMENT = 0.1
STOP_S = 20.0
"""Runs that are not over after this time, in seconds, are stopped, and what is known is a lower bound."""

# More rows of random numbers are not compared: the time of more follows from these.
_MOST_ROWS = 20_000


@dataclass(frozen=True)
class Estimate:
    """How long a sweep takes that makes some runs.

    Attributes:
        runs_s: For the runs, in seconds.
        rest_s: For tables and comparisons, in seconds.
        run_s: How long a run takes on its thread, in seconds.
        timed: How many runs were made to know this.
        is_lower_bound: Whether it is only known that the runs take longer.
    """

    runs_s: float
    rest_s: float
    run_s: float
    timed: int
    is_lower_bound: bool

    @property
    def seconds(self) -> float:
        """For all, in seconds."""
        return self.runs_s + self.rest_s


def of_sweep(plan: Plan, runs: Sequence[Run], missing: Sequence[Run], threads: int) -> Estimate | None:
    """How long the simulations that are missing take, and what follows.

    Args:
        plan: The plan.
        runs: All runs, of which the tables are.
        missing: Those that are to be made.
        threads: How many are made at a time.

    Returns:
        The estimate; ``None`` where no simulation is missing.

    Raises:
        KeyboardInterrupt: The user interrupted.
    """
    wanted = list({run.key: run for run in missing if not run.engine.is_live}.values())
    if not wanted:
        return None
    with tempfile.TemporaryDirectory(prefix="anabranch-") as folder, Store(Path(folder), {}) as store:
        times = _Times(threads)
        spread = [wanted[position] for position in _spread(len(wanted))]
        with times.limited():
            Threads(threads, times.work)(spread, store, finished=times.finished, wanted=times.disagree)
        elapsed_s = time.monotonic() - times.began_s
        made = [run for run in spread if run.key in store]
        if not made:
            return Estimate(len(wanted) * STOP_S / threads, 0.0, STOP_S, 0, is_lower_bound=True)
        began = time.monotonic()
        table.tables(made, store)
        tables_s = (time.monotonic() - began) * len(runs) / len(made)
    runs_s = elapsed_s if len(made) == len(wanted) else times.expected_s(len(wanted))
    rest_s = tables_s + _comparing_s(plan)
    return Estimate(runs_s, rest_s, times.mean_s, len(made), is_lower_bound=times.stopped)


def _spread(number: int) -> Iterator[int]:
    """All positions of a list in an order whose first ones are spread evenly (van der Corput's sequence)."""
    bits = max(1, (number - 1).bit_length())
    for index in range(1 << bits):
        position = int(f"{index:0{bits}b}"[::-1], 2)
        if position < number:
            yield position


@dataclass
class _Times:
    """The times of runs that are made on several threads.

    Attributes:
        threads: How many.
        first: The times of the first run of each thread, which may start a process and fill caches.
        later: The times of the others.
        stopped: Whether one was stopped.
        began_s: When they began.
    """

    threads: int
    first: dict[int, float] = field(default_factory=dict)
    later: list[float] = field(default_factory=list)
    stopped: bool = False
    began_s: float = field(default_factory=time.monotonic)
    _stops: list[Stop] = field(default_factory=list)

    def work(self, run: Run, stop: Stop) -> bytes:
        """Makes a run, and notes how long that takes."""
        self._stops.append(stop)
        began = time.monotonic()
        content = simulate(run, stop)
        taken = time.monotonic() - began
        if self.first.setdefault(threading.get_ident(), taken) is not taken:
            self.later.append(taken)
        return content

    def finished(self, _: Finished) -> None:
        """A run is over; what it says does not matter."""

    def disagree(self) -> bool:
        """Whether more times are wanted."""
        elapsed = time.monotonic() - self.began_s
        return elapsed < (_ENOUGH_S if self._agree() else _MOST_S)

    def _agree(self) -> bool:
        number = len(self.later)
        if number < 2 * self.threads:
            return False
        mean = math.fsum(self.later) / number
        variance = math.fsum((each - mean) ** 2 for each in self.later) / (number - 1)
        return math.sqrt(variance / number) <= _AGREEMENT * mean

    def limited(self) -> _Timer:
        """Within it, runs are stopped that take too long."""
        return _Timer(STOP_S, self._stop)

    def _stop(self) -> None:
        self.stopped = True
        for stop in self._stops:
            stop.set()

    @property
    def mean_s(self) -> float:
        """The mean time of a run: of later ones, as far as each thread made several."""
        times = self.later if len(self.later) >= self.threads else [*self.first.values(), *self.later]
        return math.fsum(times) / len(times)

    def expected_s(self, runs: int) -> float:
        """How long so many runs take."""
        begun = math.fsum(self.first.values()) / len(self.first)
        return begun + self.mean_s * max(0, runs - self.threads) / self.threads


class _Timer(threading.Timer):
    """A timer that counts while a block of statements runs."""

    def __enter__(self) -> None:
        self.start()

    def __exit__(self, *_: object) -> None:
        self.cancel()


def _comparing_s(plan: Plan) -> float:
    """How long the comparisons of a plan take, in seconds."""
    total = 0.0
    for contrast in plan.contrasts:
        own = [axis for axis in plan.axes if set(axis.columns) & {*contrast.between, *contrast.units}]
        each = math.prod(len(axis.points) for axis in own)
        facets = math.prod(len(axis.points) for axis in plan.axes) // each
        seeds = max(1, min(len(plan.seeds), _MOST_ROWS // each))
        # The first one also imports what statistics need.
        first, again = (_compared_s(contrast, own, seeds) for _ in range(2))
        total += first + again * (facets * len(plan.seeds) / seeds - 1)
    return total


def _compared_s(contrast: Contrast, axes: Sequence[Axis], seeds: int) -> float:
    """How long a comparison takes whose values are random numbers."""
    import numpy as np
    import polars as pl

    from anabranch.experiments import contrast as contrasts
    from anabranch.results.frames import frame

    points = itertools.product(*(axis.points for axis in axes))
    labels = [{key: value for point in each for key, value in point.labels.items()} for each in points]
    rows = frame([{**each, "seed": seed, "error": None} for each in labels for seed in range(seeds)])
    values = np.random.default_rng(1).random(rows.height) + 1.0
    rows = rows.with_columns(pl.Series(contrast.metric, values))
    began = time.monotonic()
    for found in contrasts.compare(rows, contrast, [column for axis in axes for column in axis.columns]):
        for _ in contrasts.rows(found):
            pass
    return time.monotonic() - began


def seconds_in_real_time(runs: Sequence[Run], at_once: int) -> float:
    """How long the runs in real time of these take at most, in seconds, if every first one is valid."""
    durations: dict[str, float] = {}
    for run in runs:
        if run.engine.is_live and run.digest not in durations:
            durations[run.digest] = _core.time_s(tomllib.loads(run.scenario().resolved)["duration"])
    return sum(durations[run.digest] for run in runs if run.engine.is_live) / at_once
