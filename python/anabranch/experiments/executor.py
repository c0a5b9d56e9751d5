"""Makes the runs that are missing, on threads, and keeps each as soon as it is finished."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, Protocol, Self

from anabranch import _core
from anabranch.errors import InputError
from anabranch.experiments import processes
from anabranch.experiments.conditions import Run
from anabranch.experiments.store import Store

# Short for a person who presses a key, and what waits for a result wakes at once.
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


class Stop:
    """Ends runs on other threads early.

    Attributes:
        is_set: Whether they are to end.
        compiled: The same for the compiled part.
    """

    def __init__(self) -> None:
        self.is_set = False
        self.compiled = _core.Stop()

    def set(self) -> None:
        """From now on every run that knows of this ends as soon as it can."""
        self.is_set = True
        self.compiled.set()


def simulate(run: Run, stop: Stop) -> bytes:
    """What is kept of a run: its metrics and the numbers of reducers as JSON.

    A run with an algorithm in Python needs the interpreter for each decision, and goes to a process of its own.
    """
    assert not run.engine.is_live
    scenario = run.scenario()
    if processes.needed(scenario):
        return processes.simulate(run, stop)
    kept = _core.measure(scenario, seed=run.seed, stop=stop.compiled, reducers=run.reducers, segments=run.segments)
    return kept.encode()


Work = Callable[[Run, Stop], bytes]


def failure(error: BaseException) -> tuple[bytes, str]:
    """What is kept of a run that failed, and its error."""
    text = f"{type(error).__name__}: {error}"
    return json.dumps({"error": text}).encode(), text


class Executor(Protocol):
    """What makes runs and keeps each of them once it is finished, on this machine or elsewhere."""

    def __call__(
        self,
        runs: Iterable[Run],
        store: Store,
        *,
        finished: Callable[[Finished], object],
        wanted: Callable[[], bool],
    ) -> None:
        """Makes runs; arguments and errors as those of `execute`."""


@dataclass(frozen=True)
class Threads:
    """Makes runs on threads of this process.

    Attributes:
        jobs: The number of threads.
        work: What makes a run.
    """

    jobs: int
    work: Work = simulate

    def __call__(
        self,
        runs: Iterable[Run],
        store: Store,
        *,
        finished: Callable[[Finished], object],
        wanted: Callable[[], bool],
    ) -> None:
        """As `execute`."""
        execute(runs, store, jobs=self.jobs, finished=finished, work=self.work, wanted=wanted)


_Result = tuple[Run, bytes, str | None]
# A thread that has nothing more to do sends none, and one that cannot go on the reason.
_Results = SimpleQueue[_Result | InputError | None]


def _keep_next(results: _Results, store: Store, finished: Callable[[Finished], object]) -> int:
    """Keeps the next result, if one comes soon; how many threads have ended: one or none."""
    try:
        result = results.get(timeout=_POLL_S)
    except Empty:
        return 0
    if result is None:
        return 1
    if isinstance(result, InputError):
        raise result
    run, content, error = result
    store.put(run.key, content)
    finished(Finished(run, error))
    return 0


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
    stop, results = Stop(), _Results()
    source = _Source(runs)
    threads = [threading.Thread(target=_work, args=(source, work, stop, results), daemon=True) for _ in range(jobs)]
    working = 0

    def begin_no_more() -> None:
        source.close()
        stop.set()

    interruption = Interruption(begin_no_more)
    try:
        with interruption, processes.pool(jobs):
            for thread in threads:
                thread.start()
                working += 1
            while working:
                if not wanted():
                    source.close()
                working -= _keep_next(results, store, finished)
    finally:
        begin_no_more()
        for thread in threads:
            if thread.ident is not None:
                thread.join()
        _keep_rest(results, store)
    interruption.raise_if_any()


class Interruption:
    """Ctrl-C while results are kept: it waits until what was finished is on disk. A second one does not."""

    def __init__(self, begin_no_more: Callable[[], object]) -> None:
        self._begin_no_more = begin_no_more
        self._before: Any = None
        self.asked = False

    def __enter__(self) -> Self:
        # Only the main thread may have handlers, and only it gets the signal.
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _handle(self, _number: int, _frame: object) -> None:
        self.asked = True
        self._begin_no_more()
        signal.signal(signal.SIGINT, self._before)

    def raise_if_any(self) -> None:
        """Raises what was put off."""
        if self.asked:
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


def _work(source: _Source, work: Work, stop: Stop, results: _Results) -> None:
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
                results.put((run, *failure(error)))
    finally:
        results.put(None)
