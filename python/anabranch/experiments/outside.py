"""Runs that no plan describes: a paper's own program makes each of them in real time, and its table keeps them."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
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
    for row, failure in _made(kept, missing, at_once):
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
) -> Iterator[tuple[Mapping[str, Any] | None, str]]:
    with ThreadPoolExecutor(min(at_once, kept.at_once)) as pool:
        try:
            for done in as_completed([pool.submit(_one, kept, labels) for labels in missing]):
                yield done.result()
        finally:
            # After an error nobody wants the runs that have not begun.
            pool.shutdown(cancel_futures=True)


def _one(kept: Kept, labels: Mapping[str, Any]) -> tuple[Mapping[str, Any] | None, str]:
    """The row of a run, or why there is none."""
    command = [sys.executable, str(kept.program), json.dumps(labels)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        return None, f"{lines[-1] if lines else f'exit code {done.returncode}'} (with {dict(labels)})"
    try:
        row = json.loads(done.stdout)
        return {**labels, "error": None, kept_runs.KERNEL: platform.release(), **row}, ""
    except (ValueError, TypeError) as error:
        raise InputError(f"{kept.program}: it printed no JSON object ({error}); with {dict(labels)}") from error
