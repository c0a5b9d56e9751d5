"""Runs on their way to another process: everything that they need travels with them, so no file system is shared."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from anabranch import _core
from anabranch.algorithms import sources
from anabranch.experiments import keys
from anabranch.experiments.conditions import Run
from anabranch.experiments.executor import failure
from anabranch.system import provenance

# Runs of one condition follow each other, and a process has a few threads.
_LOADED = 16


@dataclass(frozen=True)
class Portable:
    """A scenario with the contents of its files.

    Attributes:
        name: What it is called in messages and metrics.
        digest: That of `anabranch.experiments.keys.of_scenario`.
        text: The resolved scenario, naming its files relative to itself.
        files: These files.
        modules: The modules of its own algorithms, and what these import from their folders.
    """

    name: str
    digest: str
    text: str
    files: tuple[tuple[str, bytes], ...]
    modules: tuple[tuple[str, bytes], ...] = ()

    def __hash__(self) -> int:
        return hash(self.digest)

    def load(self) -> _core.Scenario:
        """The checked scenario, as it was where it came from.

        Raises:
            RuntimeError: It is another one here.
        """
        with tempfile.TemporaryDirectory(prefix="anabranch-") as folder:
            for name, content in self.files:
                file = Path(folder) / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
            modules = sources.lay_out(self.modules) if self.modules else None
            scenario = _core.load(self.text, name=self.name, directory=folder, overrides=(), modules=modules)
        if (digest := keys.of_scenario(scenario)) != self.digest:
            raise RuntimeError(f"{self.name}: its digest is {digest} here, and {self.digest} where it came from")
        return scenario


@dataclass(frozen=True)
class Task:
    """A run of a scenario that travels with it.

    Attributes:
        scenario: Which of the parcel's scenarios.
        seed: The seed.
        reducers: What is computed in addition to the metrics.
        segments: Whether the lists of media segments are kept.
    """

    scenario: int
    seed: int
    reducers: tuple[str, ...]
    segments: bool


@dataclass(frozen=True)
class Parcel:
    """Some runs.

    Attributes:
        build: What has to make them.
        scenarios: Their scenarios, each once.
        tasks: The runs.
    """

    build: dict[str, str]
    scenarios: tuple[Portable, ...]
    tasks: tuple[Task, ...]

    @staticmethod
    def of(runs: Sequence[Run]) -> Parcel:
        """Packs runs.

        Raises:
            InputError: A file changed since a run's key was computed.
        """
        digests = list(dict.fromkeys(run.digest for run in runs))
        scenarios: dict[str, Portable] = {}
        for run in runs:
            if run.digest not in scenarios:
                scenario = run.scenario()
                text, files = scenario.portable()
                modules = tuple(sources.of_scenario(scenario))
                scenarios[run.digest] = Portable(run.condition.scenario, run.digest, text, tuple(files), modules)
        tasks = tuple(Task(digests.index(run.digest), run.seed, run.reducers, run.segments) for run in runs)
        return Parcel(provenance.build(), tuple(scenarios.values()), tasks)


Made = list[tuple[bytes, str | None]]
"""What is kept of each run, and its error if it failed."""


def make(parcel: Parcel) -> Made | dict[str, str]:
    """Makes the runs of a parcel, or gives this process's build if it is another one."""
    if (build := provenance.build()) != parcel.build:
        return build
    return list(_made(parcel))


def _made(parcel: Parcel) -> Iterator[tuple[bytes, str | None]]:
    stop = _core.Stop()
    for task in parcel.tasks:
        try:
            scenario = _loaded(parcel.scenarios[task.scenario])
            kept = _core.measure(
                scenario, seed=task.seed, stop=stop, reducers=task.reducers, segments=task.segments
            ).encode()
            yield kept, None
        # As on threads of one machine: a panic of the compiled part is this run's and no other's.
        except Exception as error:
            yield failure(error)


@lru_cache(maxsize=_LOADED)
def _loaded(portable: Portable) -> _core.Scenario:
    return portable.load()
