"""Running a scenario from Python."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch import _core, metrics
from anabranch.metrics import Metrics

if TYPE_CHECKING:
    import polars as pl

    from anabranch.recording import Recording

# What a scenario given as a dictionary is called in messages and metrics.
_DICTIONARY_NAME = "scenario"


@dataclass(frozen=True)
class Run:
    """What a run found.

    Attributes:
        scenario: The resolved scenario as TOML: every key, with its default where the author left it out.
        seed: The seed that all randomness of the run came from.
        metrics: What the viewers saw and what the network carried, as ``metrics.json`` holds it. The same scenario,
            seed and version always give the same metrics.
        cpu_seconds: Processor time that the run took, in seconds.
        wall_seconds: Time that the run took, in seconds.
    """

    scenario: str
    seed: int
    metrics: Metrics
    cpu_seconds: float
    wall_seconds: float
    _outcome: _core.Outcome = field(repr=False)

    @property
    def outcome(self) -> _core.Outcome:
        """The same as the compiled part of Anabranch has it."""
        return self._outcome

    @property
    def has_events(self) -> bool:
        """Whether :attr:`events` were recorded."""
        return self._outcome.has_events

    @cached_property
    def recording(self) -> Recording:
        """The run over time, sampled: what the pictures show."""
        from anabranch import recording

        return recording.of_outcome(self._outcome)

    @cached_property
    def events(self) -> pl.DataFrame:
        """Everything that endpoints, links and players said, oldest first, one row per event.

        Raises:
            ValueError: The run was made without ``events=True``.
        """
        from anabranch import events

        frame = events.frame(self._outcome)
        if frame is None:
            raise ValueError("this run recorded no events; ask for them with run(..., events=True)")
        return frame

    def save(self, directory: str | Path | None = None, *, session: int | None = None) -> Path:
        """Writes a run folder, pictures included, and returns it.

        Args:
            directory: The folder; the files of an earlier run in it are replaced. The next free
                ``runs/<scenario>-<seed>-<n>`` below the current directory where absent.
            session: Which session to draw in detail, counted from 0. Where absent, the only one, or several side by
                side.

        Raises:
            InputError: There is no such session.
            OSError: The folder cannot be written.
        """
        from anabranch import runfolder

        return runfolder.write(self, None if directory is None else Path(directory), session=session)


def run(
    scenario: str | Path | Mapping[str, Any],
    *,
    seed: int = 1,
    set: Mapping[str, Any] | None = None,  # noqa: A002 (the command line's word)
    events: bool = False,
    progress: Callable[[float], object] | None = None,
) -> Run:
    """Simulates a scenario.

    Other Python threads go on while the simulation runs.

    Args:
        scenario: A file, the name of a shipped scenario (see ``anabranch list scenarios``), or a scenario as a
            dictionary with the keys of the file.
        seed: Where all randomness of the run comes from; at least 0, below 2**64.
        set: Keys to override, dotted, such as ``{"transport.scheduler": "gr-sty", "link.wifi.loss": "2 %"}``.
        events: Whether to record every event, for :attr:`Run.events`. Costs some hundred bytes of memory per packet.
        progress: Called now and then with the fraction of the scenario's time that has passed, between 0 and 1.

    Returns:
        What the run found.

    Raises:
        InputError: The scenario, a key or a value is wrong. The message names the place, what was expected and, where
            there is one, the nearest valid name.
        OSError: The scenario's file cannot be read.
    """
    if not 0 <= seed < 2**64:
        raise _core.InputError(f"seed {seed}: expected a whole number from 0 to 2**64 - 1")
    overrides = [(key, _core.value_text(value, key)) for key, value in (set or {}).items()]
    loaded = load(scenario, overrides)
    wall, cpu = time.perf_counter(), time.process_time()
    outcome = _core.run(loaded, seed=seed, record_events=events, progress=progress)
    return Run(
        scenario=loaded.resolved,
        seed=seed,
        metrics=metrics.of_outcome(outcome),
        cpu_seconds=time.process_time() - cpu,
        wall_seconds=time.perf_counter() - wall,
        _outcome=outcome,
    )


def load(scenario: str | Path | Mapping[str, Any], overrides: Sequence[tuple[str, str]] = ()) -> _core.Scenario:
    """Reads and checks a scenario; arguments and errors as those of :func:`run`, overrides as text."""
    if isinstance(scenario, Mapping):
        text = _core.document_text(scenario)
        return _core.load(text, name=_DICTIONARY_NAME, directory=None, overrides=overrides)
    path = Path(scenario)
    if path.is_file():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise _core.InputError(f"{path}: this is no text in UTF-8; expected a scenario in TOML") from error
        return _core.load(text, name=str(path), directory=path.parent, overrides=overrides)
    name = str(scenario)
    shipped = _core.shipped(name)
    if shipped is None:
        raise _core.InputError(_unknown(name))
    return _core.load(shipped, name=name, directory=None, overrides=overrides)


def _unknown(name: str) -> str:
    names = [entry[1] for entry in _core.registry() if entry[0] == "scenarios"]
    nearest = _core.nearest(name, names)
    hint = f"; did you mean `{nearest}`?" if nearest else "; `anabranch list scenarios` names them"
    return f"{name}: there is no such file and no shipped scenario of that name{hint}"
