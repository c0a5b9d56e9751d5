"""Makes the runs that are missing, on threads, and keeps each as soon as it is finished."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any

from anabranch import InputError, _core
from anabranch.experiments import processes
from anabranch.experiments.conditions import Run
from anabranch.experiments.store import Store

# Nobody presses a key faster, and what waits for a result wakes at once.
_POLL_S = 0.2


@dataclass(frozen=True)
class Finished:
    """A run that is over.

    Attributes:
        run: Which.
        error: Why it failed, or ``None``.
    """

    run: Run
    error: str | None


def simulate(run: Run, stop: _core.Stop) -> bytes:
    """What is kept of a run: its metrics and the numbers of reducers as JSON.

    A run with an algorithm in Python needs the interpreter for each decision, and goes to a process of its own.
    """
    scenario = run.scenario()
    if processes.needed(scenario):
        return processes.simulate(run, stop)
    kept = _core.measure(scenario, seed=run.seed, stop=stop, reducers=run.reducers, segments=run.segments)
    return kept.encode()


Work = Callable[[Run, _core.Stop], bytes]


_Result = tuple[Run, bytes, str | None]
# A thread that has nothing more to do sends none, and one that cannot go on the reason.
_Results = SimpleQueue[_Result | InputError | None]


def execute(
    runs: Iterable[Run],
    store: Store,
    *,
    jobs: int,
    finished: Callable[[Finished], object],
    work: Work = simulate,
    wanted: Callable[[], bool] = lambda: True,
) -> None:
    """Makes runs and keeps them. A run that fails is kept with its error.

    Args:
        runs: What to make.
        store: Where it is kept.
        jobs: The number of threads.
        finished: Called after each, on this thread.
        work: What makes a run.
        wanted: Whether to begin more runs; asked now and then.

    Raises:
        KeyboardInterrupt: The user interrupted. What was finished is kept.
        OSError: A result could not be kept.
        InputError: A file changed since the run's key was computed.
    """
    stop, results = _core.Stop(), _Results()
    source = _Source(runs)
    threads = [threading.Thread(target=_work, args=(source, work, stop, results), daemon=True) for _ in range(jobs)]
    working = 0
    interruption = _Interruption(source, stop)
    try:
        with interruption, processes.pool(jobs):
            for thread in threads:
                thread.start()
                working += 1
            while working:
                if not wanted():
                    source.close()
                try:
                    result = results.get(timeout=_POLL_S)
                except Empty:
                    continue
                if result is None:
                    working -= 1
                    continue
                if isinstance(result, InputError):
                    raise result
                run, content, error = result
                store.put(run.key, content)
                finished(Finished(run, error))
    finally:
        source.close()
        stop.set()
        for thread in threads:
            if thread.ident is not None:
                thread.join()
        _keep_rest(results, store)
    interruption.raise_if_any()


class _Interruption:
    """Ctrl-C while results are kept: it waits until what was finished is on disk. A second one does not."""

    def __init__(self, source: _Source, stop: _core.Stop) -> None:
        self._source = source
        self._stop = stop
        self._asked = False
        self._before: Any = None

    def __enter__(self) -> None:
        # Only the main thread may have handlers, and only it gets the signal.
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._handle)

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _handle(self, _number: int, _frame: object) -> None:
        self._asked = True
        self._source.close()
        self._stop.set()
        signal.signal(signal.SIGINT, self._before)

    def raise_if_any(self) -> None:
        """Raises what was put off."""
        if self._asked:
            raise KeyboardInterrupt


def _keep_rest(results: _Results, store: Store) -> None:
    """Keeps what was finished while an interruption was under way."""
    while not results.empty():
        if isinstance(result := results.get(), tuple):
            store.put(result[0].key, result[1])


class _Source:
    """Runs for several threads, until it is closed."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self._runs = iter(runs)
        self._lock = threading.Lock()
        self._closed = False

    def close(self) -> None:
        self._closed = True

    def __iter__(self) -> Iterator[Run]:
        while True:
            with self._lock:
                run = None if self._closed else next(self._runs, None)
            if run is None:
                return
            yield run


def _work(source: _Source, work: Work, stop: _core.Stop, results: _Results) -> None:
    try:
        for run in source:
            try:
                results.put((run, work(run, stop), None))
            except KeyboardInterrupt:
                return
            except InputError as error:
                # Not the run failed, but what it is made of is no longer there.
                results.put(error)
                return
            # Whatever it is, a panic of the compiled part included, it is this run's and no other's.
            except BaseException as error:
                text = f"{type(error).__name__}: {error}"
                results.put((run, json.dumps({"error": text}).encode(), text))
    finally:
        results.put(None)
