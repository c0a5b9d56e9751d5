"""Running a scenario from Python."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch import _core
from anabranch.recording import SessionRecording, from_columns

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Run:
    """What a run found.

    Attributes:
        scenario: The resolved scenario as TOML: every key, with its default where the author left it out.
        seed: The seed that all randomness of the run came from.
        metrics: What the viewers saw and what the network carried, as ``metrics.json`` holds it. The same scenario, seed and
            version always give the same metrics.
        cpu_seconds: Processor time that the run took, in seconds.
        wall_seconds: Time that the run took, in seconds.
    """

    scenario: str
    seed: int
    metrics: dict[str, Any]
    cpu_seconds: float
    wall_seconds: float
    _outcome: _core.Outcome = field(repr=False)

    @cached_property
    def recording(self) -> tuple[SessionRecording, ...]:
        """The sampled course of each session: what the pictures show."""
        return from_columns(self._outcome)

    @cached_property
    def events(self) -> pl.DataFrame:
        """Everything that endpoints, links and players said, in order, one row per event.

        Raises:
            ValueError: The run was made without ``events=True``.
        """
        import polars as pl

        columns = self._outcome.events()
        if columns is None:
            raise ValueError("this run recorded no events; ask for them with run(..., events=True)")
        return pl.DataFrame(columns)


def run(
    scenario: str | Path | Mapping[str, Any],
    *,
    seed: int = 1,
    set: Mapping[str, Any] | None = None,  # noqa: A002 (the command line's word)
    events: bool = False,
    progress: Callable[[float], None] | None = None,
) -> Run:
    """Simulates a scenario.

    Other Python threads go on while the simulation runs.

    Args:
        scenario: A file, the name of a shipped scenario (see ``anabranch list scenarios``), or a scenario as a dictionary with
            the keys of the file.
        seed: Where all randomness of the run comes from; at least 0, below 2**64.
        set: Keys to override, dotted, such as ``{"transport.scheduler": "gr-sty", "link.wifi.loss": "2 %"}``.
        events: Whether to record every event, for :attr:`Run.events`. Costs memory: some 100 bytes per packet.
        progress: Called now and then with the fraction of the scenario's time that has passed, between 0 and 1.

    Returns:
        What the run found.

    Raises:
        InputError: The scenario, a key or a value is wrong. The message names the place, what was expected and, where there is one,
            the nearest valid name.
        OSError: A file that the scenario names cannot be read.
    """
    overrides = [(key, _as_text(value)) for key, value in (set or {}).items()]
    loaded = load(scenario, overrides)
    wall, cpu = time.perf_counter(), time.process_time()
    outcome = _core.run(loaded, seed=seed, record_events=events, progress=progress)
    return Run(
        scenario=loaded.resolved,
        seed=seed,
        metrics=json.loads(outcome.metrics_json),
        cpu_seconds=time.process_time() - cpu,
        wall_seconds=time.perf_counter() - wall,
        _outcome=outcome,
    )
