"""How long the runs of a plan take: a few are made, and the rest is expected to take as long."""

from __future__ import annotations

import threading
import time
import tomllib
from collections.abc import Sequence

from anabranch import _core
from anabranch.experiments.conditions import Run

# One from each end of the list and from the middle: the axes that vary slowest are likely to differ there.
_TRIED = 3
_MOST_S = 5.0


def seconds_per_run(runs: Sequence[Run]) -> tuple[float, bool] | None:
    """The processor time of a simulation of these, in seconds, and whether it is no more than a lower bound.

    ``None`` without one.
    """
    runs = [run for run in runs if not run.engine.is_live]
    if not runs:
        return None
    tried = {runs[position * (len(runs) - 1) // (_TRIED - 1)].key: position for position in range(_TRIED)}
    chosen = [run for run in runs if run.key in tried][:_TRIED]
    stop = _core.Stop()
    timer = threading.Timer(_MOST_S, stop.set)
    timer.start()
    taken = []
    try:
        for run in chosen:
            began = time.monotonic()
            _core.measure(run.scenario(), seed=run.seed, stop=stop, reducers=run.reducers)
            taken.append(time.monotonic() - began)
    except KeyboardInterrupt:
        # The time is up; or the user interrupts, and whatever follows ends at once.
        return (sum(taken) / len(taken), True) if taken else (_MOST_S, True)
    finally:
        timer.cancel()
    return sum(taken) / len(taken), False


def seconds_in_real_time(runs: Sequence[Run], at_once: int) -> float:
    """How long the runs in real time of these take at most, in seconds, if every first one is valid."""
    durations: dict[str, float] = {}
    for run in runs:
        if run.engine.is_live and run.digest not in durations:
            durations[run.digest] = _core.time_s(tomllib.loads(run.scenario().resolved)["duration"])
    return sum(durations[run.digest] for run in runs if run.engine.is_live) / at_once
