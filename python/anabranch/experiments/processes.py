"""Runs with algorithms in Python, in worker processes: threads would wait for each other's interpreter."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Future, ProcessPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from contextlib import contextmanager
from threading import Lock
from typing import Any, Protocol

from anabranch import _core
from anabranch.errors import InputError
from anabranch.experiments.conditions import Run

# The exit code of a worker that found itself sweeping while it imported the program that started it.
_UNGUARDED = 87
_UNGUARDED_MESSAGE = (
    "own algorithms run in worker processes, which import this program first: put what it does below "
    '`if __name__ == "__main__":`'
)
# How soon a thread sees that its run is not wanted any more.
_POLL_S = 0.2
# How long a worker that closed its files may take until the system has its exit code.
_EXIT_S = 30.0


class Wanted(Protocol):
    """Whether runs are still wanted: `is_set` if not."""

    is_set: bool


class RunFailedError(Exception):
    """A run in another process failed; the message is that process's."""


class _Context(multiprocessing.context.SpawnContext):
    """Starts processes, and keeps them.

    The executor forgets its processes as soon as one of them ends, and how it ended is what a user has to know.
    """

    def __init__(self) -> None:
        super().__init__()
        self.processes: list[multiprocessing.process.BaseProcess] = []

    def Process(self, *args: Any, **kwargs: Any) -> multiprocessing.process.BaseProcess:  # type: ignore[override]  # noqa: N802
        process = multiprocessing.context.SpawnProcess(*args, **kwargs)
        self.processes.append(process)
        return process


class _Pool:
    """Processes that begin when the first run needs one."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._lock = Lock()
        self._executor: ProcessPoolExecutor | None = None
        # A copy of this process would have its threads' locks, without the threads that release them.
        self._context = _Context()
        self.closed = False

    def submit(self, run: Run) -> Future[tuple[bytes, str | None]]:
        with self._lock:
            if self._executor is None:
                self._executor = ProcessPoolExecutor(self._jobs, mp_context=self._context, initializer=_begin)
            return self._executor.submit(_make, run)

    def unguarded(self) -> bool:
        """Whether a process ended because the program that it imported sweeps without a guard.

        The executor ends all processes when one of them ended. It sees the end before there is an exit code, and asks
        for that code itself, so that this thread may have to wait for it.
        """
        until = time.monotonic() + _EXIT_S
        while any(process.exitcode is None for process in self._context.processes) and time.monotonic() < until:
            time.sleep(_POLL_S / 10)
        return any(process.exitcode == _UNGUARDED for process in self._context.processes)

    def end(self) -> str:
        """How processes ended by themselves: the executor ends the others with SIGTERM."""
        codes = [process.exitcode for process in self._context.processes]
        own = sorted({code for code in codes if code is not None and code != -signal.SIGTERM})
        said = (f"by signal {-code}" if code < 0 else f"with exit code {code}" for code in own)
        return f" ({', '.join(said)})" if own else ""

    def close(self) -> None:
        self.closed = True
        if self._executor is None:
            return
        self._executor.shutdown(wait=False, cancel_futures=True)
        # What still runs is not waited for: all results that are wanted are there.
        with self._lock:
            processes = list(self._context.processes)
        for process in processes:
            process.terminate()
        for process in processes:
            process.join()


_pools: list[_Pool] = []


@contextmanager
def pool(jobs: int) -> Iterator[None]:
    """Processes for the runs that begin within."""
    _pools.append(_Pool(jobs))
    try:
        yield
    finally:
        _pools.pop().close()


def leave_import() -> None:
    """Ends this process if it is a worker that is about to sweep while it imports the program that started it.

    Without this it would start workers of its own, which Python refuses with a traceback per worker.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        # Not sys.exit: to finalise an interpreter in the middle of an import, while compiled modules have threads, can
        # end in a signal, and what was printed until here would be printed once more.
        os._exit(_UNGUARDED)


def needed(scenario: _core.Scenario) -> bool:
    """Whether a run of this scenario is better made in a process of its own.

    What a decorator registered is known to this process alone.
    """
    own = scenario.own_algorithms
    return bool(_pools) and bool(own) and all(":" in name for _, name in own)


def simulate(run: Run, stop: Wanted) -> bytes:
    """What is kept of a run, made by another process.

    Raises:
        KeyboardInterrupt: It was stopped.
        RunFailedError: It failed.
        InputError: What it is made of is no longer there, or the user's program cannot be imported by the process.
    """
    pool = _pools[-1]
    try:
        content, error = _wait(pool.submit(run), stop)
    # When a process ended, the executor refuses the next run as it ends those that it has.
    except (BrokenExecutor, CancelledError):
        if pool.closed:
            raise KeyboardInterrupt from None
        if pool.unguarded():
            raise InputError(_UNGUARDED_MESSAGE) from None
        raise RunFailedError(f"the process that made this run ended{pool.end()}") from None
    if error is not None:
        raise RunFailedError(error)
    return content


def _wait(future: Future[tuple[bytes, str | None]], stop: Wanted) -> tuple[bytes, str | None]:
    while True:
        try:
            return future.result(timeout=_POLL_S)
        except NotYet:
            if stop.is_set:
                raise KeyboardInterrupt from None


def _begin() -> None:
    """An interruption by the user is for the first process, which ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _make(run: Run) -> tuple[bytes, str | None]:
    """The content of a run, or why it failed."""
    try:
        kept = _core.measure(
            run.scenario(), seed=run.seed, stop=_core.Stop(), reducers=run.reducers, segments=run.segments
        )
    except Exception as error:
        return b"", str(error) if isinstance(error, _core.AlgorithmError) else f"{type(error).__name__}: {error}"
    return kept.encode(), None
