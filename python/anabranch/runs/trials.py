"""Runs that are repeated without a cause of lost link time, and what that returns to the viewer."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from anabranch import _core
from anabranch.errors import InputError
from anabranch.results import downloads

if TYPE_CHECKING:
    from anabranch.results.metrics import SessionMetrics
    from anabranch.runs.remedies import Remedy


@dataclass(frozen=True, slots=True)
class Measure:
    """What a remedy is measured by.

    Attributes:
        key: The metric, such as ``stall_s``; ``download_s`` is the mean time of the downloads, or of the one that is
            explained.
        lower_is_better: Whether less of it is better.
        segment: The media segment or download that is measured; the whole session where absent.
    """

    key: str
    lower_is_better: bool
    segment: int | None = None

    def of(self, session: SessionMetrics | Mapping[str, Any]) -> float | None:
        """The metric of a session, if it has it."""
        found: Mapping[str, Any] = session
        if self.segment is None:
            if self.key == "download_s":
                times = downloads.times_s(found["downloads"])
                return sum(times) / len(times) if times else None
            value = found.get(self.key)
            return None if value is None else float(value)
        if (last := downloads.last_of(found, self.segment)) is None:
            return None
        return float(last[self.key]) if self.key in last else float(last["finished_s"] - last["requested_s"])


@dataclass(frozen=True, slots=True)
class Trial:
    """A run with a remedy.

    Attributes:
        cause: The key of the cause that the remedy is against; ``useful`` where links had nothing to spare.
        what: The remedy in words.
        set: The keys that it overrides, as `anabranch.run` takes them.
        value: The measure of the run with it.
        gain: How much better that is than without; negative if it is worse.
        replaces: Whether the remedy takes another scheduler or congestion control, or shorter round trips, which help
            against other causes, too.
    """

    cause: str
    what: str
    set: Mapping[str, str]
    value: float
    gain: float
    replaces: bool


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What the run would have been without each cause.

    Attributes:
        measure: What is compared, such as ``stall_s``, ``qoe_linear_per_segment``, ``download_s`` or ``goodput_bps``.
        lower_is_better: Whether less of it is better.
        value: Its value in the run itself.
        trials: The remedies, the best first.
    """

    measure: str
    lower_is_better: bool
    value: float
    trials: tuple[Trial, ...]


def measure_of(session: SessionMetrics, *, stall: bool, segment: int | None) -> Measure:
    """What a remedy for a session is measured by: what the viewer or the user of a download minds most.

    Args:
        session: The metrics of the session.
        stall: Whether a stall is explained.
        segment: The media segment or download that is explained, if one is.
    """
    found: Mapping[str, Any] = session
    if segment is not None:
        # Another run may have another bitrate, so that times of a media segment cannot be compared.
        return Measure("throughput_bps", False, segment) if found.get("media_segments") else _download(segment)
    if stall:
        return Measure("stall_s", True)
    if found.get("qoe_linear_per_segment") is not None:
        return Measure("qoe_linear_per_segment", False)
    if found["downloads"] is None and found["startup_s"] is not None:
        return Measure("stall_s" if found["stalls"] else "startup_s", True)
    every = found["downloads"] or ()
    if every and all(each["finished_s"] is not None for each in every):
        return _download(None)
    return Measure("goodput_bps", False)


def _download(segment: int | None) -> Measure:
    return Measure("download_s", True, segment)


def try_all(
    remedies: Sequence[Remedy],
    *,
    load: Callable[[Sequence[tuple[str, str]]], _core.Scenario],
    seed: int,
    position: int,
    before: SessionMetrics,
    measure: Measure,
    progress: Callable[[float], object] | None = None,
) -> WhatIf:
    """Repeats a run with each remedy, on threads.

    Args:
        remedies: What to try.
        load: Reads the scenario with more keys overridden.
        seed: The seed of the run.
        position: The position of the session in it.
        before: The metrics of the session without a remedy.
        measure: What to compare.
        progress: Called with the fraction of the runs that are made.

    Raises:
        InputError: The session itself has not what is measured.
    """
    value = measure.of(before)
    if value is None:
        raise InputError(f"{before['name']}: it has no {measure.key}, by which remedies could be compared")
    scenarios = [(remedy, scenario) for remedy in remedies if (scenario := _loaded(load, remedy)) is not None]
    stop = _core.Stop()

    def made(scenario: _core.Scenario) -> float | None:
        kept = _core.measure(scenario, seed=seed, stop=stop, reducers=(), segments=measure.segment is not None)
        sessions = json.loads(kept)["metrics"]["sessions"]
        # Without the other sessions, the one that is left is the first.
        return measure.of(sessions[position if position < len(sessions) else 0])

    with ThreadPoolExecutor(os.cpu_count() or 1) as threads:
        runs = [threads.submit(made, scenario) for _, scenario in scenarios]
        try:
            for done, _ in enumerate(as_completed(runs), 1):
                if progress is not None:
                    progress(done / len(runs))
        except BaseException:
            stop.set()
            raise
    sign = -1.0 if measure.lower_is_better else 1.0
    trials = [
        Trial(remedy.cause, remedy.what, remedy.set, after, sign * (after - value), remedy.replaces)
        for (remedy, _), run in zip(scenarios, runs, strict=True)
        if (after := run.result()) is not None
    ]
    # Of two that return the same, the one for the larger cause comes first: they are in that order.
    trials.sort(key=lambda trial: -trial.gain)
    return WhatIf(measure.key, measure.lower_is_better, value, tuple(trials))


def _loaded(load: Callable[[Sequence[tuple[str, str]]], _core.Scenario], remedy: Remedy) -> _core.Scenario | None:
    """The scenario with a remedy; none if the two do not go together, such as a delay below the jitter."""
    try:
        return load(tuple(remedy.set.items()))
    except InputError:
        return None
