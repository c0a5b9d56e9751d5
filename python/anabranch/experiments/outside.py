"""Runs that no plan describes: a paper's own program makes each of them in real time, and its table keeps them."""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing, suppress
from typing import Any

from anabranch.errors import InputError
from anabranch.experiments import kept_runs
from anabranch.experiments.paper import Kept
from anabranch.system.programs import ToolError

TRIES = 3
"""How often a program makes a run at most, until one is valid."""


class LateError(Exception):
    """The links were late, or the client was: the run measured the machine."""


def answer(attempt: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
    """What such a program does: makes the run that its argument names, again where it was invalid, and prints its row.

    Args:
        attempt: Makes the run, or raises `LateError`, `ToolError` or `TimeoutExpired` where it does not count.
    """
    labels, reasons = json.loads(sys.argv[1]), list[str]()
    while len(reasons) < TRIES:
        try:
            row = attempt(labels)
        except (LateError, ToolError, subprocess.TimeoutExpired) as error:
            reasons.append(str(error))
            continue
        print(json.dumps({**row, "invalid": len(reasons), "load": round(os.getloadavg()[0], 1)}))
        return
    sys.exit(f"error: no try of {TRIES} counts: {'; '.join(reasons)}")


def make(kept: Kept, at_once: int) -> int:
    """Makes the runs that a table lacks, each in a process of its own, and keeps them as they end.

    Args:
        kept: The table, with its program.
        at_once: How many runs are made at a time; no more than the table allows.

    Returns:
        How many were made.

    Raises:
        InputError: The machine is not the one of the runs that are there, or the program prints something else.
        ToolError: Some runs failed; the others are kept.
        OSError: The table could not be written.
        KeyboardInterrupt: The user interrupted. What was finished is kept.
    """
    if kept.runs is None:
        return 0
    wanted = [dict(labels) for labels in kept.runs()]
    names = list(dict.fromkeys(name for labels in wanted for name in labels))
    have = kept_runs.identities(kept.file, names)
    missing = [labels for labels in wanted if kept_runs.identity(labels) not in have]
    if missing:
        kept_runs.check_kernel(kept.file)
    failures, made = list[str](), 0
    with closing(_made(kept, missing, at_once)) as rows:
        for row, failure in rows:
            if row is None:
                failures.append(failure)
                continue
            kept_runs.add(kept.file, [row], names)
            made += 1
    if failures:
        raise ToolError(f"{kept.program}: {len(failures)} of {len(missing)} runs failed, the last with: {failures[-1]}")
    return made


def _made(
    kept: Kept, missing: Sequence[Mapping[str, Any]], at_once: int
) -> Generator[tuple[Mapping[str, Any] | None, str]]:
    programs = _Programs(kept)
    with ThreadPoolExecutor(min(at_once, kept.at_once)) as pool:
        try:
            for done in as_completed([pool.submit(programs.run, labels) for labels in missing]):
                yield done.result()
        finally:
            # After an error or an interrupt the others are not wanted.
            programs.stop()
            pool.shutdown(cancel_futures=True)


class _Programs:
    """The processes of a program, each of which makes a run.

    The signal of Ctrl-C does not reach them by itself: a process that it ends would make room for the next one
    before this process knows that there is to be none.
    """

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        self._lock = threading.Lock()
        self._running = set[subprocess.Popen[str]]()
        self._stopped = False

    def run(self, labels: Mapping[str, Any]) -> tuple[Mapping[str, Any] | None, str]:
        """The row of a run, or why there is none."""
        command = [sys.executable, str(self._kept.program), json.dumps(labels)]
        with self._lock:
            if self._stopped:
                return None, "stopped"
            # Its own process group, so that what it started gets the signal, too.
            program = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
            )
            self._running.add(program)
        output, errors = program.communicate()
        with self._lock:
            self._running.remove(program)
        if program.returncode:
            lines = errors.strip().splitlines()
            return None, f"{lines[-1] if lines else f'exit code {program.returncode}'} (with {dict(labels)})"
        try:
            row = json.loads(output)
            return {**labels, "error": None, kept_runs.KERNEL: platform.release(), **row}, ""
        except (ValueError, TypeError) as error:
            raise InputError(
                f"{self._kept.program}: it printed no JSON object ({error}); with {dict(labels)}"
            ) from error

    def stop(self) -> None:
        """Interrupts those that run, which then remove what they made; no other begins."""
        with self._lock:
            self._stopped = True
            for program in self._running:
                with suppress(ProcessLookupError):
                    os.killpg(program.pid, signal.SIGINT)
