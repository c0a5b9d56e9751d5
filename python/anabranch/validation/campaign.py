"""Makes the runs of test cases through a store, as plans do: first those in real time, then the simulated ones.

A simulated run needs to know how late the links of the live runs were. What is in the store is not made again, so that
a comparison which was interrupted goes on. A live run that failed or was invalid is tried again by the next start.
"""

from __future__ import annotations

import json
import platform
import re
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from anabranch import _core
from anabranch.content.make import MANIFEST
from anabranch.experiments import engines, keys, realtime
from anabranch.experiments.conditions import Condition, Run
from anabranch.experiments.engines import SIMULATION, Engine
from anabranch.experiments.executor import Executor, Finished, Stop, Threads
from anabranch.experiments.store import Store
from anabranch.experiments.sweep import Progress, make_runs
from anabranch.runs import reading
from anabranch.validation.cases import TestCase
from anabranch.validation.judgement import Judgement
from anabranch.validation.measurement import WRITER, Lateness, Measurement, UnobservedError, emulated
from anabranch.validation.recorded import Recorded
from anabranch.validation.report import Found, Kernel, Report

# Browsers decode and draw: more of them would slow each other down on two processors.
_BROWSERS_AT_ONCE = 2
_BROWSER = "dash.js"
_FILES = "test-cases"


@dataclass(frozen=True)
class Campaign:
    """The test cases, and what their runs are made with.

    Attributes:
        cases: The test cases.
        store: Where runs are kept; the scenarios of the test cases are files in its folder.
        jobs: How many simulations run at a time.
        progress: Gets told how far it is.
        video: The folder with the video of test cases for a browser, which is ``None`` where there are none.
    """

    cases: Sequence[TestCase]
    store: Store
    jobs: int
    progress: Progress
    video: Path | None

    def compare(self, at_once: int) -> Report:
        """Runs everything that the store lacks, `at_once` live runs at a time, and compares.

        Raises:
            LiveError: The machine cannot do live runs, or its room for headers is unknown.
            OSError: A run could not be kept.
            KeyboardInterrupt: The user interrupted; what was finished is in the store.
        """
        kernel = Kernel(platform.release(), _core.header_room(), WRITER)
        runs = [self._live_runs(case) for case in self.cases]
        in_order = _in_order(self.cases, runs)
        if any(run.key not in self.store for run in in_order) and (missing := realtime.missing()):
            raise _core.LiveError("\n".join(missing))
        make_runs(in_order, self.store, execute=_InRealTime(at_once, self.video), progress=self.progress)
        recorded = [self._recorded(case, own) for case, own in zip(self.cases, runs, strict=True)]
        return self.conclude(kernel, recorded)

    def conclude(self, kernel: Kernel, recorded: Sequence[Recorded]) -> Report:
        """Simulates what the store lacks, and compares it with live runs.

        Raises:
            OSError: A run could not be kept.
            KeyboardInterrupt: The user interrupted; what was finished is in the store.
        """
        pairs = list(zip(self.cases, recorded, strict=True))
        runs = [self._simulated_runs(case, kernel, own) for case, own in pairs]
        every = [run for own in runs for run in own]
        make_runs(every, self.store, execute=Threads(self.jobs), progress=self.progress)
        found = [self._found(case, own, made) for (case, own), made in zip(pairs, runs, strict=True)]
        return Report(kernel, found)

    def _live_runs(self, case: TestCase) -> list[Run]:
        server = f"live/{case.server}"
        engine = engines.parse(f"{server}/{_BROWSER}" if case.in_browser else server)
        runs = self._runs(case, engine, (), range(1, case.live_runs + 1))
        # A run that failed at an earlier start is tried again.
        return [realtime.untried(replace(run, live_run=1), self.store) for run in runs]

    def _simulated_runs(self, case: TestCase, kernel: Kernel, recorded: Recorded) -> list[Run]:
        # Without a live run there is nothing to simulate for.
        if recorded.lateness is None:
            return []
        links = list(tomllib.loads(case.scenario)["link"])
        overrides = emulated(links, kernel.header_room, kernel.writer, recorded.lateness)
        seeds = [run.seed for run in recorded.live] if case.paired else range(1, case.simulated_runs + 1)
        return self._runs(case, SIMULATION, overrides, seeds)

    def _runs(
        self, case: TestCase, engine: Engine, overrides: tuple[tuple[str, str], ...], seeds: Iterable[int]
    ) -> list[Run]:
        file = str(self._file(case))
        digest = keys.of_scenario(reading.load(file, overrides))
        condition = Condition({"test_case": case.name}, file, overrides, digest, engine)
        return [Run(condition, seed, overrides, {}, digest, segments=False) for seed in seeds]

    def _file(self, case: TestCase) -> Path:
        """The scenario of a test case as a file, next to the video that it may name."""
        folder = self.store.folder / _FILES
        folder.mkdir(parents=True, exist_ok=True)
        manifest = folder / MANIFEST
        if case.in_browser and self.video is not None and not manifest.is_file():
            manifest.unlink(missing_ok=True)
            manifest.symlink_to(self.video / MANIFEST)
        name = re.sub(r"[^a-z0-9.]+", "-", f"{case.part.letter} {case.name}".lower())
        file = folder / f"{name}.toml"
        file.write_text(case.scenario, encoding="utf-8")
        return file

    def _recorded(self, case: TestCase, runs: Sequence[Run]) -> Recorded:
        """What the store has of the live runs of a test case."""
        invalid, errors, live, lateness = 0, list[str](), list[Measurement](), list[Lateness]()
        for run in runs:
            kept: dict[str, Any] = json.loads(self.store.get(run.key))
            # An invalid run has tried, and a failed one has not counted how often.
            if "error" in kept and "tries" not in kept:
                errors.append(kept["error"])
                continue
            invalid += kept["tries"] - (0 if "error" in kept else 1)
            if "error" not in kept:
                try:
                    measured = Measurement.of(case, run.seed, kept["metrics"]), Lateness.of(kept["metrics"])
                except UnobservedError as error:
                    errors.append(str(error))
                    continue
                live.append(measured[0])
                lateness.append(measured[1])
        return Recorded(invalid, tuple(errors), Lateness.typical(lateness), tuple(live))

    def _found(self, case: TestCase, recorded: Recorded, runs: Sequence[Run]) -> Found:
        errors = list(recorded.errors)
        try:
            simulated = [self._simulated(case, run) for run in runs]
        except UnobservedError as error:
            errors.append(f"simulated: {error}")
            simulated = []
        judgement = Judgement.of(case, simulated, recorded.live)
        return Found(case, judgement, recorded.lateness, recorded.invalid, errors, simulated, recorded.live)

    def _simulated(self, case: TestCase, run: Run) -> Measurement:
        kept: dict[str, Any] = json.loads(self.store.get(run.key))
        if "error" in kept:
            raise UnobservedError(kept["error"])
        return Measurement.of(case, run.seed, kept["metrics"])


def _in_order(cases: Sequence[TestCase], runs: Sequence[Sequence[Run]]) -> list[Run]:
    """The longest first, so that none is left alone at the end; the first runs of all before the second ones."""
    numbered = [
        (-case.seconds, number, run) for case, own in zip(cases, runs, strict=True) for number, run in enumerate(own)
    ]
    return [run for _, _, run in sorted(numbered, key=lambda each: each[:2])]


@dataclass(frozen=True)
class _InRealTime(Executor):
    """Makes live runs; those with a browser come last and few at a time."""

    at_once: int
    video: Path | None

    def __call__(
        self,
        runs: Iterable[Run],
        store: Store,
        *,
        finished: Callable[[Finished], object],
        wanted: Callable[[], bool],
    ) -> None:
        runs = list(runs)
        for in_browser, at_once in ((False, self.at_once), (True, min(self.at_once, _BROWSERS_AT_ONCE))):
            if own := [run for run in runs if (run.engine.client == _BROWSER) == in_browser]:
                Threads(at_once, self._measure)(own, store, finished=finished, wanted=wanted)

    def _measure(self, run: Run, stop: Stop) -> bytes:
        return realtime.measure(run, stop, content=self.video if run.engine.client == _BROWSER else None)
