"""Makes runs of plans in real time: again if they were invalid, and after all simulations, which would delay them."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from anabranch import _core
from anabranch.experiments.conditions import Run
from anabranch.experiments.executor import Executor, Finished, Stop, Threads
from anabranch.experiments.store import Store
from anabranch.live import run as live
from anabranch.results.metrics import Lateness

TRIES = 3
"""How often a run is made at most, until one is valid."""

# A part of the testbed's note about a control that the kernel does not have.
_LACKS_CONTROL = "has no congestion control"
_REMEDY = (
    "attach a coupled one (anabranch kernel attach --port 1 --congestion-control NAME), or load the module of another "
    "(such as: modprobe tcp_bbr)"
)


@dataclass(frozen=True)
class ByEngine:
    """Makes simulations first, and then the runs in real time.

    Attributes:
        simulations: What makes simulations.
        at_once: How many runs in real time are made at a time.
    """

    simulations: Executor
    at_once: int = 1

    def __call__(
        self,
        runs: Iterable[Run],
        store: Store,
        *,
        finished: Callable[[Finished], object],
        wanted: Callable[[], bool],
    ) -> None:
        """Makes runs; errors as those of the executor of simulations."""
        runs = list(runs)
        simulated = [run for run in runs if not run.engine.is_live]
        if simulated:
            self.simulations(simulated, store, finished=finished, wanted=wanted)
        if measured := [run for run in runs if run.engine.is_live]:
            Threads(self.at_once, measure)(measured, store, finished=finished, wanted=wanted)


def missing() -> list[str]:
    """What this machine lacks, one sentence each with the remedy."""
    if not hasattr(_core, "live_missing"):
        return ["live runs need Linux: network namespaces, TUN devices and Multipath TCP in the kernel"]
    return _core.live_missing()


def measure(run: Run, stop: Stop, *, content: Path | None = None) -> bytes:
    """What is kept of a run in real time: its metrics, and how many tries it took; an error if none was valid.

    A run is invalid if its links were too late: it measured the machine. A program that plays gets the folder
    ``content``, or what the scenario's video is.

    Raises:
        LiveError: The kernel lacks a congestion control of the scenario, and another one served.
    """
    error = ""
    for number in range(1, TRIES + 1):
        found = _once(run, stop, content)
        measured = found.metrics["live"]
        assert measured is not None, "a run in real time says how late its links were"
        for note in measured["notes"]:
            if _LACKS_CONTROL in note:
                raise _core.LiveError(f"{note}; {_REMEDY}")
        if not measured["void"]:
            return json.dumps({"metrics": found.metrics, "tries": number}, separators=(",", ":")).encode()
        error = _invalid(measured["lateness_s"])
    return json.dumps({"error": error, "tries": TRIES}).encode()


def untried(run: Run, store: Store, step: int = 1) -> Run:
    """A run in real time, or the first one after it that did not fail; a simulation itself.

    Args:
        run: The run.
        store: Where runs are kept.
        step: How often the plan makes a run of each seed; further runs have the numbers after these.
    """
    while run.live_run is not None and run.key in store and "error" in json.loads(store.get(run.key)):
        run = replace(run, live_run=run.live_run + step)
    return run


def _invalid(lateness: Lateness) -> str:
    late = "" if lateness["p99"] is None else f", one packet of 100 later than {lateness['p99'] * 1e3:.1f} ms at last"
    return f"invalid: the links of the run were too late in each of {TRIES} tries{late}"


def _once(run: Run, stop: Stop, content: Path | None) -> live.LiveRun:
    def look(_fraction: float) -> None:
        if stop.is_set:
            raise KeyboardInterrupt

    assert run.engine.server is not None
    assert run.engine.client is not None
    with tempfile.TemporaryDirectory(prefix="anabranch-") as folder:
        return live.run_loaded(
            run.scenario(),
            folder=Path(folder),
            seed=run.seed,
            server=run.engine.server,
            client=run.engine.client,
            content=content,
            progress=look,
        )
