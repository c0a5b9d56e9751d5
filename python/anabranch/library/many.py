"""Many runs: the runs of a plan, and runs side by side."""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch import _core, arguments
from anabranch.errors import InputError
from anabranch.runs import display
from anabranch.system import provenance

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

    from anabranch.experiments.changes import Changes
    from anabranch.experiments.executor import Finished
    from anabranch.experiments.sweep import Result
    from anabranch.runs.runfolder import StoredRun
    from anabranch.runs.session import Run

# A figure of more columns would be illegible.
_MOST_RUNS = 6


@dataclass(frozen=True)
class Swept:
    """The result of a sweep.

    Attributes:
        question: The plan's question.
        store: The folder with its runs and tables; ``anabranch report`` makes a page of it.
        seeds: The seeds of every condition.
        made: Runs that were made now.
        kept: Runs that were there before.
        failed: Runs that failed, now or before; their rows have an ``error``.
        seconds: How long it took, in seconds.
    """

    question: str
    store: Path
    seeds: tuple[int, ...]
    made: int
    kept: int
    failed: int
    seconds: float
    _result: Result

    @property
    def sessions(self) -> pl.DataFrame:
        """A row per session, with the values of the axes and the metrics as columns."""
        return self._result.sessions

    @property
    def media_segments(self) -> pl.DataFrame:
        """A row per media segment of DASH sessions."""
        return self._result.segments

    @cached_property
    def comparisons(self) -> pl.DataFrame:
        """A row per compared value: means, paired differences with intervals, p-values, verdicts."""
        import polars as pl

        from anabranch.experiments import contrast

        found = [row for each in self._result.comparisons for row in contrast.rows(each)]
        return pl.DataFrame(found, infer_schema_length=None)

    @property
    def sentences(self) -> list[str]:
        """The comparisons in sentences, as ``anabranch sweep`` prints them."""
        from anabranch.experiments import summary

        return [sentence for each in self._result.comparisons for sentence in summary.sentences(each)]

    def __repr__(self) -> str:
        failed = f", {self.failed} failed" if self.failed else ""
        return f"<Swept: {self.made} runs made, {self.kept} kept{failed}, {len(self.seeds)} seeds, in {self.store}>"

    def _repr_html_(self) -> str:
        parts = [display.paragraph(self.question, bold=True), *map(display.paragraph, self.sentences)]
        about = f"{self.made} runs made, {self.kept} were there, {self.failed} failed; {len(self.seeds)} seeds"
        shown = self.comparisons if self._result.comparisons else self.sessions
        return "".join([*parts, display.paragraph(about), shown._repr_html_()])


def sweep(
    plan: str | Path | Mapping[str, Any],
    *,
    set: Mapping[str, Any] | None = None,  # noqa: A002
    seeds: int | str | Sequence[int] | None = None,
    engines: Sequence[str] = (),
    store: str | Path | None = None,
    jobs: int | None = None,
    at_once: int = 1,
    until: str | None = None,
    budget_s: float = 600.0,
) -> Swept:
    """Makes the runs of a plan that its store does not have, writes their tables, and compares them.

    Runs are threads of this process; runs with own algorithms are processes. The store keeps finished runs, so that a
    second call continues where the first was interrupted. Notebooks show a progress bar.

    Args:
        plan: A file, the name of a shipped plan (`anabranch.plans`), or a plan as a dictionary with the keys of
            the file.
        set: Keys to override, as `anabranch.run` takes them. The key of an axis chooses its values, one or a list.
        seeds: Seeds in the place of the plan's, written as there.
        engines: Engines in the place of the plan's.
        store: The folder for runs and tables; ``runs/PLAN`` where absent.
        jobs: The number of simulations at a time; one per core where absent.
        at_once: The number of runs in real time at a time.
        until: Add seeds until this holds of every paired difference, such as ``"interval < 5 %"``.
        budget_s: The longest time for which ``until`` adds seeds, in seconds.

    Raises:
        InputError: The plan, a key or a value is wrong; the message has the place. Or the plan has own algorithms, and
            the program that calls this has no ``if __name__ == "__main__":``.
        OSError: The store cannot be written.
        KeyboardInterrupt: The user interrupted the sweep; finished runs are kept.
    """
    from anabranch.experiments import conditions, processes
    from anabranch.experiments import plan as plans
    from anabranch.experiments import sweep as engine
    from anabranch.experiments.executor import Threads
    from anabranch.experiments.realtime import ByEngine
    from anabranch.experiments.stopping import Goal
    from anabranch.experiments.store import Store

    arguments.source("plan", plan, "plan")
    processes.leave_import()
    goal = None if until is None else Goal.of(arguments.text("until", until, 'a text such as "interval < 5 %"'))
    changes = _changes(set, seeds, engines)
    read = plans.of_document(_document(plan), changes) if isinstance(plan, Mapping) else plans.load(plan, changes)
    if goal is not None and not read.contrasts:
        raise InputError(f"{read.document.path}: `until` needs a comparison, and this plan has no [compare]")
    experiment = engine.Experiment.of(read)
    folder = conditions.folder(read) if store is None else Path(arguments.place("store", store, "the name of a folder"))
    threads = Threads(len(os.sched_getaffinity(0)) if jobs is None else _several("jobs", jobs))
    budget = arguments.number("budget_s", budget_s, "a number of seconds, such as budget_s=600")
    execute, limit = ByEngine(threads, _several("at_once", at_once)), budget if goal else math.inf
    with Store(folder, provenance.build()) as kept, _Bar() as bar:
        result = engine.sweep(experiment, kept, execute=execute, progress=bar, goal=goal, budget_s=limit)
    counts = (result.made, result.kept, result.failed, result.seconds)
    return Swept(read.question, folder, result.seeds, *counts, _result=result)


def _changes(
    overrides: Mapping[str, Any] | None, seeds: int | str | Sequence[int] | None, engines: Sequence[str]
) -> Changes:
    """What the arguments replace of a plan."""
    from anabranch.experiments.changes import Changes
    from anabranch.runs.reading import overrides_of

    named = arguments.listed("engines", engines, 'a list of engines, such as engines=["sim"]')
    kinds = [arguments.text(f"engines[{at}]", each, "the name of an engine") for at, each in enumerate(named)]
    return Changes(tuple(overrides_of(overrides)), _seeds(seeds), tuple(kinds))


def _seeds(seeds: int | str | Sequence[int] | None) -> int | str | tuple[int, ...] | None:
    """Seeds as a plan has them."""
    if seeds is None or isinstance(seeds, str):
        return seeds
    if hasattr(seeds, "__index__"):
        return arguments.whole("seeds", seeds, _SEEDS, least=1)
    named = arguments.listed("seeds", seeds, _SEEDS)
    return tuple(arguments.seed(f"seeds[{at}]", each) for at, each in enumerate(named))


_SEEDS = 'how many seeds, a range such as seeds="1..10", or a list of them'


def _several(name: str, value: object) -> int:
    """How many at a time."""
    return arguments.whole(name, value, f"a whole number of at least 1, such as {name}=2", least=1)


def _document(plan: Mapping[str, Any]) -> Any:
    """A plan that is a dictionary, as a text whose places are keys."""
    from anabranch.experiments.document import Document

    # A line for each key, whose number stands in messages; what is written in braces is a table of that key alone.
    lines = (_core.value_text({key: value}, "plan").strip()[1:-1].strip() for key, value in plan.items())
    return Document("".join(f"{line}\n" for line in lines), Path("plan"))


class _Bar:
    """The progress of a sweep: a line in notebooks, nothing elsewhere."""

    def __init__(self) -> None:
        self._show, self._close = display.bar("simulating")
        self._done = self._of = 0

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def begin(self, runs: int, *, kept: int) -> None:  # noqa: ARG002 (the protocol's)
        self._done, self._of = 0, runs

    def advance(self, finished: Finished) -> None:  # noqa: ARG002
        self._done += 1
        if self._show is not None:
            self._show(self._done / max(self._of, 1))


@dataclass(frozen=True)
class Compared:
    """Runs side by side."""

    _runs: tuple[StoredRun, ...]
    _session: int

    @property
    def names(self) -> list[str]:
        """A name for each run, with the keys in which it differs from the others."""
        from anabranch.runs import naming

        return naming.names(self._runs)

    @property
    def differences(self) -> dict[str, list[str]]:
        """Every key in which the runs differ, the seed first, with the value of each run."""
        from anabranch.runs import naming

        return naming.every_difference(self._runs)

    @cached_property
    def table(self) -> pl.DataFrame:
        """A row per metric: its ``path`` if it concerns one, its name with the unit, and a column of texts per run."""
        import polars as pl

        from anabranch.runs import comparison

        columns = [f"{number}: {name}" for number, name in enumerate(self.names)]
        found = [
            {"path": path or None, "metric": label, **dict(zip(columns, texts, strict=True))}
            for path, label, texts in comparison.rows(self._runs, self._session)
        ]
        return pl.DataFrame(found, schema={"path": pl.String, "metric": pl.String, **dict.fromkeys(columns, pl.String)})

    def plot(self) -> Figure:
        """The figure: a column per run, a row per path."""
        from anabranch.runs import comparison

        return comparison.figure(self._runs, self._session)

    def save(self, directory: str | Path) -> Path:
        """Writes the figure as ``comparison.png`` and ``comparison.svg``, and returns the former.

        Raises:
            OSError: They cannot be written.
        """
        from anabranch.runs import comparison

        folder = Path(arguments.place("directory", directory, "the name of a folder"))
        return comparison.save_figure(self._runs, folder, self._session)

    def __repr__(self) -> str:
        return f"<Compared: {'; '.join(self.names)}>"

    def _repr_html_(self) -> str:
        from anabranch.runs import comparison

        rows = [
            [f"{path} {label}".strip(), *texts] for path, label, texts in comparison.rows(self._runs, self._session)
        ]
        parts = [display.table(["", *self.names], rows)]
        parts += [display.paragraph(note.strip(), bold=True) for note in comparison.notes(self._runs, self._session)]
        return "".join([*parts, display.figure(self.plot())])


def compare(*runs: Run | str | Path, session: int = 0) -> Compared:
    """Puts one session of each of several runs side by side.

    Args:
        runs: Two to six runs, or run folders.
        session: Which session of each, counted from 0.

    Raises:
        InputError: There are too few or too many, one has no such session, or a folder has no finished run.
    """
    from anabranch.runs import runfolder
    from anabranch.runs.session import Run

    for number, run in enumerate(runs):
        if not isinstance(run, Run):
            arguments.place(
                f"run {number}: run", run, "a run or a run folder, each an argument: compare(first, second)"
            )
    if not 2 <= len(runs) <= _MOST_RUNS:
        raise InputError(f"{len(runs)} run(s) given; expected two to {_MOST_RUNS}")
    stored = [_stored(run, number) for number, run in enumerate(runs)]
    for each in stored:
        runfolder.check_session(session, each.directory, len(each.recording.sessions))
    return Compared(tuple(stored), session)


def _stored(run: Run | str | Path, number: int) -> StoredRun:
    """A run as its folder would have it."""
    from anabranch.runs import runfolder

    if isinstance(run, str | Path):
        return runfolder.read(Path(run))
    about = {"seed": run.seed, "set": list(run.overrides), "version": run.metrics["version"]}
    name = Path(f"run {number}: {run.name}")
    return runfolder.StoredRun(name, tomllib.loads(run.scenario), run.metrics, about, run.recording)
