"""Running a scenario from Python."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch import _core, arguments
from anabranch.errors import InputError
from anabranch.results import metrics
from anabranch.results.metrics import Metrics
from anabranch.runs import display, reading, warning
from anabranch.runs.warning import RunWarning

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

    from anabranch.results.recording import Recording
    from anabranch.runs.explanation import Explanation

# Sessions that a notebook shows in full, and the heads of their tables.
_MOST_SHOWN = 4
_PATH_COLUMNS = (
    *("path", "goodput, Mb/s", "segments", "retransmitted", "reinjected", "timeouts", "mean window, packets"),
    "mean RTT, ms",
)


@dataclass(frozen=True, repr=False)
class Run:
    """The result of a run.

    It can be copied, pickled and sent to another process, with everything but `outcome`.

    Attributes:
        scenario: The resolved scenario as TOML: every key, with its default where the author left it out.
        seed: The seed that all randomness of the run came from.
        metrics: The metrics of sessions, paths and links, as in ``metrics.json``. The same scenario, seed and version
            always give the same metrics.
        cpu_seconds: Processor time that the run took, in seconds.
        wall_seconds: Time that the run took, in seconds.
        warnings: What in the scenario is legal but probably not meant, and what makes the metrics doubtful.
        overrides: The keys that were overridden, each as ``KEY=VALUE``.
    """

    scenario: str
    seed: int
    metrics: Metrics
    cpu_seconds: float
    wall_seconds: float
    _outcome: _core.Outcome | None = field(compare=False)
    _portable: tuple[str, list[tuple[str, bytes]]] = field(kw_only=True)
    overrides: tuple[str, ...] = field(default=(), kw_only=True)
    warnings: tuple[RunWarning, ...] = field(default=(), kw_only=True)

    def __repr__(self) -> str:
        """One line: which run it is, and what its first viewer saw. The rest is in `metrics`."""
        from anabranch.wording import summary

        sessions = self.metrics["sessions"]
        found = f": {summary.in_short(sessions[0])}" if sessions else ""
        of = f" (the first of {len(sessions)} sessions)" if len(sessions) > 1 else ""
        return f"<Run of {self.metrics['scenario']}, seed {self.seed}, ended {self.metrics['ended']}{found}{of}>"

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: Python objects alone, so what is read from the compiled part on demand is read now."""
        kept = {"recording": self.recording, **({"events": self.events} if self.has_events else {})}
        return {**self.__dict__, **kept, "_outcome": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    @property
    def outcome(self) -> _core.Outcome:
        """The same as the compiled part of Anabranch has it.

        Raises:
            ValueError: This is a copy of a run, and only the original has it.
        """
        if self._outcome is None:
            raise ValueError("a run that was copied or pickled has no `outcome`; its metrics and recording are there")
        return self._outcome

    @property
    def portable(self) -> tuple[str, list[tuple[str, bytes]]]:
        """The resolved scenario, naming its files relative to itself, and these files: what a rerun needs."""
        return self._portable

    @property
    def has_events(self) -> bool:
        """Whether `events` were recorded."""
        return "events" in self.__dict__ if self._outcome is None else self._outcome.has_events

    @property
    def name(self) -> str:
        """The name of its scenario."""
        return self.metrics["scenario"]

    @cached_property
    def sessions(self) -> pl.DataFrame:
        """A row per session: its metrics as columns, as the tables of a sweep have them.

        The subflows of a path are one: ``subflows.wifi.goodput_bps`` is the sum of theirs. Units are those of the
        names: ``_s`` seconds, ``_bps`` bit/s; ``docs/reference/metrics.md`` explains every one.
        """
        from anabranch.results import columns
        from anabranch.results.frames import frame

        return frame(list(columns.sessions(self.metrics)))

    @cached_property
    def media_segments(self) -> pl.DataFrame:
        """A row per media segment of DASH sessions, with the number of its ``session``; without rows where none is."""
        from anabranch.results import columns
        from anabranch.results.frames import frame

        return frame(list(columns.segments(self.metrics)))

    def plot(self, *, session: int | None = None) -> Figure:
        """The figure of the run, as notebooks show it: playback and every path over time.

        Args:
            session: The session to draw in detail, counted from 0. Where absent, the only one, or the first six side
                by side.

        Raises:
            InputError: There is no such session.
        """
        from anabranch.figures import draw_run
        from anabranch.runs import runfolder

        runfolder.check_session(0 if session is None else session, self.name, len(self.recording.sessions))
        return draw_run(self.recording, self.metrics, tomllib.loads(self.scenario), self.seed, session)

    def explain(
        self,
        *,
        session: int = 0,
        stall: int | None = None,
        segment: int | None = None,
        at: float | None = None,
        what_if: bool = False,
    ) -> Explanation:
        """Says where the link time of a session went: to new data, or to which causes. The run is simulated again.

        Args:
            session: As those of `anabranch.explain`.
            stall: Explain this stall, counted from 1.
            segment: Explain the download of this media segment, or this download, counted from 0.
            at: Explain the response that was due at this time, in seconds since the run began.
            what_if: Whether to repeat the run without each of the largest causes, and to say what that returns.

        Raises:
            InputError: There is no such session, stall or segment, nothing was due at that time, or the run was not
                simulated.
        """
        from anabranch.runs import explanation

        return explanation.of_run(self, session=session, stall=stall, segment=segment, at=at, what_if=what_if)

    def _repr_html_(self) -> str:
        """The summary, the paths and the figure, for notebooks."""
        from anabranch.runs import display
        from anabranch.wording import summary

        parts = [display.paragraph(f"{self.name}, seed {self.seed}", bold=True)]
        for session in self.metrics["sessions"][:_MOST_SHOWN]:
            parts.append(display.paragraph(f"{session['name']}: {summary.in_short(session)}"))
            parts.append(display.table(_PATH_COLUMNS, summary.path_rows(session["subflows"])))
        if (more := len(self.metrics["sessions"]) - _MOST_SHOWN) > 0:
            parts.append(display.paragraph(f"and {summary.plural(more, 'session')} more, in `sessions`"))
        if self.recording.sessions:
            parts.append(display.figure(self.plot()))
        return "".join(parts)

    @cached_property
    def recording(self) -> Recording:
        """The samples over time that the figures show."""
        from anabranch.results import recording

        return recording.of_outcome(self.outcome)

    @cached_property
    def events(self) -> pl.DataFrame:
        """Every event of endpoints, links and players, oldest first, a row per event.

        Raises:
            ValueError: The run was made without ``events=True``.
        """
        from anabranch.results import events

        frame = events.frame(self.outcome) if self.has_events else None
        if frame is None:
            raise ValueError("this run recorded no events; ask for them with run(..., events=True)")
        return frame

    def noted(self, name: str | None = None) -> pl.DataFrame:
        """What own algorithms emitted under a name: a row per number, sorted by session, path and time.

        The columns are ``session``, ``name``, ``path`` (null if the number is about no path), ``time_s`` (seconds since
        the run began) and ``value``, in the unit of the algorithm's author. The numbers are those of the player and of
        the endpoint that sends the content; the table of events also has those of the other endpoint, which sends
        requests. Only the first 16 sessions are kept.

        Args:
            name: The name that was given to `Context.emit`, such as ``"cost"``; ``"name.keyword"`` for values
                by keyword. Where absent, everything that was emitted.

        Raises:
            InputError: Nothing was emitted under that name. The message says what was.
        """
        import polars as pl

        from anabranch.results import recording

        frame = recording.notes_frame(self.recording)
        if name is None:
            return frame
        arguments.text("name", name, "the name that was given to `Context.emit`")
        found = frame.filter(pl.col("name") == name)
        if found.is_empty():
            emitted = ", ".join(f"`{other}`" for other in frame["name"].unique(maintain_order=True))
            raise InputError(f"nothing was emitted under `{name}`; there is {emitted or 'nothing in this run'}")
        return found

    def save(self, directory: str | Path | None = None, *, session: int | None = None) -> Path:
        """Writes a run folder with its figures, and returns its path.

        Args:
            directory: The folder; the files of an earlier run in it are replaced. Where absent, the next free
                ``runs/<scenario>-<seed>-<n>`` below the current directory.
            session: The session to draw in detail, counted from 0. Where absent, the only one, or the first six side
                by side.

        Raises:
            InputError: There is no such session.
            OSError: The folder cannot be written.
        """
        from anabranch.runs import runfolder

        if directory is not None:
            arguments.place("directory", directory, "the name of a folder")
        return runfolder.write(self, None if directory is None else Path(directory), session=session)


def run(
    scenario: str | Path | Mapping[str, Any],
    *,
    seed: int = 1,
    set: Mapping[str, Any] | None = None,  # noqa: A002 (the command line's word)
    events: bool = False,
    progress: Callable[[float], object] | None = None,
    captures: str | Path | None = None,
) -> Run:
    """Simulates a scenario.

    Other Python threads continue while the simulation runs.

    Args:
        scenario: A file, the name of a shipped scenario (see ``anabranch list scenarios``), ``"-"`` for standard
            input, or a scenario as a dictionary with the keys of the file, such as a `anabranch.Scenario`.
        seed: The seed of all randomness in the run; at least 0, below 2**64.
        set: Keys to override, dotted, such as ``{"transport.scheduler": "gr-sty", "link.wifi.loss": "2 %"}``, or
            nested, such as ``{"transport": {"scheduler": "gr-sty"}}``. A dictionary is merged into the present table,
            and replaces a table of another kind (``{"session.0.video": {"kind": "bulk"}}``). A list replaces a list.
        events: Whether to record every event, for `Run.events`. Costs some hundred bytes of memory per packet.
        progress: Called from time to time with the fraction of the scenario's duration that has passed, between 0
            and 1. Where absent, a notebook shows a progress bar for a run that takes longer than a moment.
        captures: A directory for packet captures of both ends, ``client.pcapng`` and ``server.pcapng``: headers only,
            an interface per path. It is created if it does not exist.

    Returns:
        The result of the run.

    Raises:
        InputError: The scenario, a key or a value is wrong. The message names the place, what was expected and, where
            there is one, the nearest valid name.
        OSError: The scenario's file cannot be read, or a capture cannot be written.

    Warns:
        RunWarning: Something in the run is legal but probably not meant.
    """
    shown, end = (progress, lambda: None) if progress is not None else display.bar("simulating")
    try:
        done = simulate(scenario, seed=seed, set=set, events=events, progress=shown, captures=captures)
    finally:
        end()
    warning.give(done.warnings, stacklevel=2)
    return done


def simulate(
    scenario: str | Path | Mapping[str, Any],
    *,
    seed: int = 1,
    set: Mapping[str, Any] | None = None,  # noqa: A002 (the command line's word)
    events: bool = False,
    progress: Callable[[float], object] | None = None,
    captures: str | Path | None = None,
) -> Run:
    """As `run`, but gives its warnings only with the run."""
    seed, events = arguments.seed("seed", seed), arguments.flag("events", events)
    if progress is not None:
        arguments.function("progress", progress, "a function that takes the fraction that has passed")
    if captures is not None:
        arguments.place("captures", captures, "the name of a directory")
    overrides = reading.overrides_of(set)
    loaded = reading.load(scenario, overrides)
    if captures is not None:
        Path(captures).mkdir(parents=True, exist_ok=True)
    wall, cpu = time.perf_counter(), time.process_time()
    outcome = _core.run(loaded, seed=seed, record_events=events, progress=progress, capture_dir=captures)
    found = metrics.of_outcome(outcome)
    return Run(
        scenario=loaded.resolved,
        seed=seed,
        metrics=found,
        cpu_seconds=time.process_time() - cpu,
        wall_seconds=time.perf_counter() - wall,
        _outcome=outcome,
        overrides=reading.as_given(overrides),
        warnings=warning.of_run(loaded, found),
        _portable=loaded.portable(),
    )
