"""Makes the runs that are missing, on threads, and keeps each as soon as it is finished."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from queue import SimpleQueue

from anabranch import _core
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
    """What is kept of a run: its metrics as JSON."""
    return b'{"metrics":' + _core.measure(run.scenario(), seed=run.seed, stop=stop).encode() + b"}"


Work = Callable[[Run, _core.Stop], bytes]


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
    """
    stop, results = _core.Stop(), SimpleQueue[tuple[Run, bytes, str | None] | None]()
    source = _Source(runs)
    threads = [threading.Thread(target=_work, args=(source, work, stop, results), daemon=True) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    working = jobs
    try:
        while working:
            if not wanted():
                source.close()
            if (result := _next(results)) is _NOTHING:
                continue
            if result is None:
                working -= 1
                continue
            assert isinstance(result, tuple)
            run, content, error = result
            store.put(run.key, content)
            finished(Finished(run, error))
    finally:
        source.close()
        stop.set()
        for thread in threads:
            thread.join()
        _keep_rest(results, store)


class _Nothing:
    pass


_NOTHING = _Nothing()


def _next(
    results: SimpleQueue[tuple[Run, bytes, str | None] | None],
) -> tuple[Run, bytes, str | None] | _Nothing | None:
    from queue import Empty

    try:
        return results.get(timeout=_POLL_S)
    except Empty:
        return _NOTHING


def _keep_rest(results: SimpleQueue[tuple[Run, bytes, str | None] | None], store: Store) -> None:
    """Keeps what was finished while an interruption was under way."""
    while not results.empty():
        if (result := results.get()) is not None:
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


def _work(
    source: _Source,
    work: Work,
    stop: _core.Stop,
    results: SimpleQueue[tuple[Run, bytes, str | None] | None],
) -> None:
    try:
        for run in source:
            try:
                results.put((run, work(run, stop), None))
            except KeyboardInterrupt:
                return
            # Whatever it is, a panic of the compiled part included, it is this run's and no other's.
            except BaseException as error:
                text = f"{type(error).__name__}: {error}"
                results.put((run, json.dumps({"error": text}).encode(), text))
    finally:
        results.put(None)
