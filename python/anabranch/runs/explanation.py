"""Why a session was not faster: an account of what the links of its paths carried, and of what kept them from more.

While a response is due, each moment of the slowest downlink of each path goes to new data of the session or to exactly
one cause. A moment counts as the bits that the link's rate allows in it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch import _core, arguments
from anabranch.errors import InputError
from anabranch.results import downloads, events, linktime, metrics, recording
from anabranch.results.linktime import SLICE_S
from anabranch.runs import reading, remedies, runfolder, trials, verdict
from anabranch.runs.parts import LinkTime, by_cause, path_of
from anabranch.runs.trials import WhatIf
from anabranch.system import regular

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

    from anabranch.results.metrics import Metrics, SessionMetrics
    from anabranch.results.recording import Mark, Recording, SessionRecording
    from anabranch.runs.finished import FinishedRun

_FIRST_RUN = 0.2
"""The part of the progress that the run itself is, where it is repeated without its causes."""

_FORMATS = (".png", ".svg", ".pdf")
_AROUND = 0.2
"""So much of the explained time is drawn before and after it."""


@dataclass(frozen=True)
class _OverTime:
    """What an explanation is drawn from: the account of the session, and the session itself."""

    table: pl.DataFrame
    recording: SessionRecording | None
    marks: Sequence[Mark]
    paths: Sequence[str]

    def around(self, begin: float, end: float) -> tuple[float, float]:
        """The time to draw, within that of the account."""
        more = _AROUND * (end - begin)
        first, last = float(self.table["time_s"][0]), float(self.table["time_s"][-1]) + SLICE_S
        return max(begin - more, min(first, begin)), min(end + more, max(last, end))


@dataclass(frozen=True, slots=True)
class Explanation:
    """Where the link time of a session, or of a part of it, went.

    Attributes:
        scenario: The name of the scenario.
        seed: The seed of the run.
        session: The session's name.
        question: What is explained, such as ``stall 2``.
        begin_s: Where the explained time begins, in seconds since the run began.
        end_s: Where it ends.
        due_s: How long a response was due in it.
        possible_bits: What the links could have carried meanwhile. Time in which the player itself read no more is left
            out.
        useful_share: The share of it that was new data of the session, headers included.
        parts: All else, the largest part first.
        buffer_s: The buffered playing time at the beginning, of a stall.
        what_if: What the run would have been without each cause, if that was asked for.
    """

    scenario: str
    seed: int
    session: str
    question: str
    begin_s: float
    end_s: float
    due_s: float
    possible_bits: float
    useful_share: float
    parts: tuple[LinkTime, ...]
    buffer_s: float | None = None
    what_if: WhatIf | None = None
    _over_time: _OverTime | None = field(default=None, compare=False, repr=False)

    @property
    def causes(self) -> dict[str, float]:
        """The share of each cause, all paths together, the largest first."""
        return by_cause(self.parts)

    @property
    def first_cause(self) -> str | None:
        """The key of the cause to look at first; none if no cause matters.

        A cause matters if it has more of what was possible than runs without a fault have, or if its removal returns
        something to the viewer. With `what_if`, the first cause is the one of which the share of what was lost and the
        part of what can be returned are largest together.
        """
        return verdict.first_cause(self.parts, self.what_if)

    @property
    def first_path(self) -> str | None:
        """The path to look at first: the one that most of the first cause is of, or waits for."""
        return path_of(self.parts, self.first_cause)

    def as_dict(self) -> dict[str, Any]:
        """The same for JSON."""
        found = asdict(replace(self, _over_time=None))
        del found["_over_time"]
        return {**found, "causes": self.causes, "first_cause": self.first_cause, "first_path": self.first_path}

    def figure(self) -> Figure:
        """What each path's link went to over time, by cause, with the player's buffer and its stalls.

        It shows the explained time, and a fifth of it before and after.
        """
        from anabranch.figures import causes as figures

        shown = self._over_time
        assert shown is not None, "only `explain` makes one"
        begin, end = shown.around(self.begin_s, self.end_s)
        return figures.draw_causes(
            figures.Shown(linktime.of_table(shown.table, begin, end), shown.recording, shown.marks, shown.paths),
            title=f"{self.scenario}, seed {self.seed}, {self.session}: {self.question}",
            subtitle=f"{100 * self.useful_share:.1f} % of what the links could have carried was new data",
            shares=self.causes,
        )

    def save_figure(self, path: str | Path) -> Path:
        """Writes the figure, in the format of the file's suffix: ``.png``, ``.svg`` or ``.pdf``.

        Raises:
            InputError: There is no such format.
            OSError: The file cannot be written.
        """
        from anabranch.figures import style

        place = Path(arguments.place("path", path, "the name of a file"))
        if place.suffix not in _FORMATS:
            raise InputError(f"{place}: there is no such format of figures; expected {', '.join(_FORMATS)}")
        style.save(self.figure(), place)
        return place


def explain(
    scenario: str | Path | Mapping[str, Any],
    *,
    seed: int = 1,
    set: Mapping[str, Any] | None = None,  # noqa: A002 (the command line's word)
    session: int = 0,
    stall: int | None = None,
    segment: int | None = None,
    at: float | None = None,
    what_if: bool = False,
    progress: Callable[[float], object] | None = None,
) -> Explanation:
    """Simulates a scenario, or the run of a folder again, and says where the link time of a session went.

    The metrics of the run are the same as without the account.

    Args:
        scenario: A scenario as `anabranch.run` takes it, or a run folder.
        seed: The seed of the run; a run folder has its own.
        set: Keys to override.
        session: The session, counted from 0.
        stall: Explain this stall, counted from 1: the time from when the buffer was fullest after the stall before to
            the end of the stall.
        segment: Explain the download of this media segment, counted from 0; of a player that downloads files, of this
            download.
        at: Explain the response that was due at this time, in seconds since the run began.
        what_if: Whether to repeat the run without each of the largest causes, and to say what that returns. A cause
            that is taken away may make room for another one, so returns need not add up.
        progress: As in `anabranch.run`.

    Raises:
        InputError: The scenario is wrong, it has no such session, stall or segment, or nothing was due at that time.
    """
    question = _Question(session, stall, segment, at)
    return _explain(_source(scenario, seed, reading.overrides_of(set), what_if), question, what_if, progress)


def of_run(
    run: FinishedRun, *, session: int, stall: int | None, segment: int | None, at: float | None, what_if: bool
) -> Explanation:
    """As `anabranch.Run.explain`."""
    name = run.metrics["scenario"]
    _require_simulated(run.metrics["engine"], name)

    def load(more: Sequence[tuple[str, str]]) -> _core.Scenario:
        return _core.load(run.scenario, name=name, directory=None, overrides=more)

    source = _Source(name, load, run.seed, run.metrics)
    return _explain(source, _Question(session, stall, segment, at), what_if, None)


def of_folder(stored: runfolder.StoredRun) -> Made:
    """Simulates the run of a folder again, with an account.

    Raises:
        InputError: It was made in real time, or it cannot be made again as it was.
    """
    source = _source_of(stored, ())
    return _make(source, source.load(()), None)


def _require_simulated(engine: str, name: str | Path) -> None:
    if engine != "sim":
        raise InputError(f"{name}: a run in real time; expected a simulated one, which can be repeated")


@dataclass(frozen=True, slots=True)
class _Question:
    """What is to be explained; as the arguments of `explain`."""

    session: int
    stall: int | None
    segment: int | None
    at: float | None

    def __post_init__(self) -> None:
        if sum(choice is not None for choice in (self.stall, self.segment, self.at)) > 1:
            raise InputError("several of stall, segment and at are given; expected one at the most")


@dataclass(frozen=True, slots=True)
class _Source:
    """A run that can be repeated.

    Attributes:
        name: Where it comes from, for messages.
        load: Reads its scenario, with more keys overridden.
        seed: Its seed.
        metrics: What it found, if it was made before.
    """

    name: str
    load: Callable[[Sequence[tuple[str, str]]], _core.Scenario]
    seed: int
    metrics: Metrics | None


def _source(
    scenario: str | Path | Mapping[str, Any], seed: int, overrides: Sequence[tuple[str, str]], several: bool
) -> _Source:
    """A scenario, or the run of a folder."""
    arguments.source("scenario", scenario, "scenario")
    if isinstance(scenario, Mapping) or not (Path(scenario) / "run.json").exists():
        if several and scenario == reading.STANDARD_INPUT:
            raise InputError("standard input can be read only once; expected a file, to repeat its run")
        loaded = partial(_loaded, scenario, overrides)
        return _Source(str(scenario), loaded, arguments.seed("seed", seed), None)
    return _source_of(runfolder.read(Path(scenario)), overrides)


def _source_of(stored: runfolder.StoredRun, overrides: Sequence[tuple[str, str]]) -> _Source:
    """The run of a folder."""
    _require_simulated(stored.about["engine"], stored.directory)
    return _Source(
        str(stored.directory),
        partial(_again, stored, overrides),
        int(stored.about["seed"]),
        None if overrides else stored.metrics,
    )


def _loaded(
    scenario: str | Path | Mapping[str, Any], overrides: Sequence[tuple[str, str]], more: Sequence[tuple[str, str]]
) -> _core.Scenario:
    return reading.load(scenario, [*overrides, *more])


def _again(
    stored: runfolder.StoredRun, overrides: Sequence[tuple[str, str]], more: Sequence[tuple[str, str]]
) -> _core.Scenario:
    """The scenario of a run folder, under the name that it had."""
    text = regular.read_text(stored.directory / "scenario.toml")
    name = stored.metrics["scenario"]
    return _core.load(text, name=name, directory=stored.directory, overrides=[*overrides, *more])


@dataclass(frozen=True, slots=True)
class Made:
    """A run that was made with an account: any number of questions are answered from it.

    Attributes:
        metrics: What it found.
        recording: The run over time.
        account: The link time of all sessions; none without sessions.
    """

    metrics: Metrics
    recording: Recording
    account: pl.DataFrame | None

    @classmethod
    def of(cls, outcome: _core.Outcome) -> Made:
        """Of a run that has just ended."""
        columns = outcome.account()
        account = None if columns is None else events.of_columns(columns)
        return cls(metrics.of_outcome(outcome), recording.of_outcome(outcome), account)

    def whole_and_stalls(self, session: int, most: int) -> list[Explanation]:
        """The explanation of a whole session, and those of its stalls.

        Args:
            session: The session, counted from 0.
            most: How many stalls at most, the first ones.

        Raises:
            InputError: Nothing was requested in it.
        """
        recorded = self.recorded(session)
        stalls = range(1, 1 + min(most, 0 if recorded is None else len(recorded.stalls_s)))
        questions = [_Question(session, stall, None, None) for stall in (None, *stalls)]
        return list(_answers(self, session, questions))

    def recorded(self, session: int) -> SessionRecording | None:
        """A session over time; none where it was not recorded."""
        sessions = self.recording.sessions
        return sessions[session] if session < len(sessions) else None


def _explain(
    source: _Source, question: _Question, what_if: bool, progress: Callable[[float], object] | None
) -> Explanation:
    loaded = source.load(())
    # What comes after the run itself takes several times as long.
    first = _FIRST_RUN if what_if else 1.0
    shown = None if progress is None else (lambda done: progress(done * first))
    made = _make(source, loaded, shown)
    found = _answer(made, question)
    if not what_if:
        return found
    before = made.metrics["sessions"][question.session]
    tried = trials.try_all(
        _remedies(tomllib.loads(loaded.resolved), made.recorded(question.session), question.session, found),
        load=source.load,
        seed=source.seed,
        position=question.session,
        before=before,
        measure=trials.measure_of(before, stall=question.stall is not None, segment=question.segment),
        progress=None if progress is None else (lambda done: progress(first + done * (1.0 - first))),
    )
    return replace(found, what_if=tried)


def _make(source: _Source, loaded: _core.Scenario, progress: Callable[[float], object] | None) -> Made:
    """Simulates a run with an account.

    Raises:
        InputError: It was made before, and gives other metrics now.
    """
    made = Made.of(_core.run(loaded, seed=source.seed, record_events=False, progress=progress, account=True))
    if source.metrics is not None and made.metrics != source.metrics:
        raise InputError(
            f"{source.name}: this version of the program gives other metrics; make the run again to explain it"
        )
    return made


def _remedies(
    scenario: Mapping[str, Any], recorded: SessionRecording | None, position: int, found: Explanation
) -> list[remedies.Remedy]:
    import numpy as np

    paths = () if recorded is None else recorded.paths
    capacity = {path.path: float(np.nanmean(path.capacity_bps)) for path in paths if len(path.capacity_bps)}
    entry = remedies.entry_of(scenario, position)
    return remedies.of_parts(scenario, entry, capacity, found.useful_share, found.parts)


def _answer(made: Made, asked: _Question) -> Explanation:
    return next(_answers(made, asked.session, [asked]))


def _answers(made: Made, position: int, asked: Iterable[_Question]) -> Iterator[Explanation]:
    """The answers to some questions about a session."""
    found = made.metrics
    if position >= len(found["sessions"]):
        raise InputError(f"there is no session {position}; expected one of 0 to {len(found['sessions']) - 1}")
    session = found["sessions"][position]
    if made.account is None:
        raise InputError(f"{found['scenario']}: it has no session, whose link time could be explained")
    table = _of_session(made.account, session["name"])
    if table.is_empty():
        raise InputError(
            f"{session['name']}: nothing was requested, or its links have no limit of their rate; nothing to explain"
        )
    recorded = made.recorded(position)
    paths = list(dict.fromkeys(subflow["path"] for subflow in session["subflows"]))
    over_time = _OverTime(table, recorded, made.recording.marks, paths)
    for question in asked:
        yield replace(_of_part(found, session, table, recorded, question), _over_time=over_time)


def _of_part(
    found: Metrics, session: SessionMetrics, table: pl.DataFrame, recorded: SessionRecording | None, asked: _Question
) -> Explanation:
    if asked.stall is not None:
        return _of_stall(found, session, table, recorded, asked.stall)
    if asked.segment is not None:
        begin, end = _times_of(session, asked.segment)
        return _of_request(found, session, table, _due_at(table, begin), f"segment {asked.segment}", (begin, end))
    if asked.at is not None:
        what = f"the response that was due at {asked.at:g} s"
        return _of_request(found, session, table, _due_at(table, asked.at), what, None)
    ends = float(table["time_s"][-1])
    return _account(found, session, table, "the whole session", session["start_s"], ends)


def _of_session(table: pl.DataFrame, name: str) -> pl.DataFrame:
    import polars as pl

    words = pl.col("session", "path", "cause", "by").cast(pl.String)
    return table.with_columns(words).filter(pl.col("session") == name)


def _times_of(session: SessionMetrics, number: int) -> tuple[float, float]:
    """When a segment or download was requested and complete, since the run began."""
    if (last := downloads.last_of(session, number)) is None:
        there = len(downloads.requested(session))
        raise InputError(f"{session['name']}: segment {number} was not downloaded; there are {there}, from 0 on")
    return session["start_s"] + last["requested_s"], session["start_s"] + last["finished_s"]


def _due_at(table: pl.DataFrame, at: float) -> int:
    """The request whose response was due at a time."""
    import polars as pl

    near = table.filter((pl.col("time_s") <= at + SLICE_S) & (pl.col("time_s") > at - SLICE_S))
    if near.is_empty():
        raise InputError(f"no response was due at {at:g} s")
    return int(near["request"][-1])


def _of_request(
    found: Metrics,
    session: SessionMetrics,
    table: pl.DataFrame,
    request: int,
    what: str,
    times: tuple[float, float] | None,
) -> Explanation:
    import polars as pl

    chosen = table.filter(pl.col("request") == request)
    first, last = float(chosen["time_s"][0]), float(chosen["time_s"][-1]) + SLICE_S
    begin, end = times or (first, last)
    return _account(found, session, chosen, what, begin, end)


def _of_stall(
    found: Metrics, session: SessionMetrics, table: pl.DataFrame, recorded: SessionRecording | None, number: int
) -> Explanation:
    import numpy as np
    import polars as pl

    stalls = [] if recorded is None else recorded.stalls_s.tolist()
    if recorded is None or not 1 <= number <= len(stalls):
        there = "it has none" if not stalls else f"it has {len(stalls)}, counted from 1"
        raise InputError(f"{session['name']}: there is no stall {number}; {there}")
    begin, end = stalls[number - 1]
    before = stalls[number - 2][1] if number > 1 else session["start_s"]
    between = (recorded.times_s >= before) & (recorded.times_s <= begin) & ~np.isnan(recorded.buffer_s)
    fullest, level = before, None
    if between.any():
        levels = np.where(between, recorded.buffer_s, -1.0)
        # The last one of several: what came before was no loss.
        place = int(len(levels) - 1 - np.argmax(levels[::-1]))
        fullest, level = float(recorded.times_s[place]), float(levels[place])
    chosen = table.filter((pl.col("time_s") >= fullest) & (pl.col("time_s") < end))
    what = f"stall {number}, {end - begin:.2f} s long at {begin:.1f} s"
    return _account(found, session, chosen, what, fullest, end, level)


def _account(
    found: Metrics,
    session: SessionMetrics,
    rows: pl.DataFrame,
    question: str,
    begin: float,
    end: float,
    buffer: float | None = None,
) -> Explanation:
    import polars as pl

    paths = max(rows["path"].n_unique(), 1)
    rows = rows.filter(pl.col("cause") != linktime.PLAYER)
    due = float(rows["link_s"].sum()) / paths
    possible = float(rows["bits"].sum())
    sums = rows.group_by("path", "cause", "by").agg(pl.col("bits").sum()).sort("bits", "path", "cause", descending=True)
    parts = [
        LinkTime(row["path"], row["cause"], row["by"], row["bits"], row["bits"] / possible if possible else 0.0)
        for row in sums.iter_rows(named=True)
    ]
    return Explanation(
        scenario=found["scenario"],
        seed=found["seed"],
        session=session["name"],
        question=question,
        begin_s=begin,
        end_s=end,
        due_s=due,
        possible_bits=possible,
        useful_share=sum(part.share for part in parts if part.cause == linktime.USEFUL),
        parts=tuple(part for part in parts if part.cause != linktime.USEFUL),
        buffer_s=buffer,
    )
