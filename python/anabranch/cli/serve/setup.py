"""What `anabranch serve --setup`, `--check` and `--teardown` print and do.

`anabranch.cli.serve.wiring` knows what is wanted.
"""

from __future__ import annotations

import getpass
import os
import pwd
import subprocess
import time
from collections.abc import Sequence
from enum import StrEnum

from anabranch.cli.console import Exit, echo, fail
from anabranch.cli.serve.wiring import Item, Obstacle, WiredPath, client_commands, mtu_notes, obstacles, text_of, wanted
from anabranch.errors import InputError

# A server that was just ended closes its devices a moment after its process is gone; until then they are busy.
_BUSY = "Device or resource busy"
_LONGEST_BUSY_S = 2.0
_LOOK_EVERY_S = 0.05


class Work(StrEnum):
    """What to do with the wiring."""

    SETUP = "setup"
    CHECK = "check"
    TEARDOWN = "teardown"


def chosen(*, setup: bool, check: bool, teardown: bool, dry_run: bool) -> Work | None:
    """The work that the options name; `None` to serve.

    Raises:
        InputError: Several were named, or a dry run of none.
    """
    named = [work for work, on in zip(Work, (setup, check, teardown), strict=True) if on]
    if len(named) > 1:
        raise InputError(f"--{named[0]} and --{named[1]} exclude each other")
    if dry_run and not {Work.SETUP, Work.TEARDOWN} & set(named):
        raise InputError("--dry-run belongs to --setup or --teardown")
    return named[0] if named else None


def wire(work: Work, paths: Sequence[WiredPath], *, user: str | None, port: int, mtu: int, dry_run: bool) -> None:
    """Does the work; ends the program with an error if it cannot be done, or if something is missing."""
    owner = user or os.environ.get("SUDO_USER") or getpass.getuser()
    _check_user(owner)
    if work is not Work.CHECK and not dry_run and os.geteuid() != 0:
        fail(f"--{work} needs root; --dry-run shows the commands", Exit.RUN_FAILED)
    items = wanted(paths, owner, mtu)
    match work:
        case Work.SETUP:
            _set_up(items, list(obstacles(paths, owner)), dry_run=dry_run)
            _note_mtus(paths, mtu)
        case Work.CHECK:
            # Before the verdict, which may end the program.
            _note_mtus(paths, mtu)
            _check(items, list(obstacles(paths, owner)))
        case Work.TEARDOWN:
            _tear_down(items, dry_run=dry_run)
            return
    echo("A client can try:")
    for command in client_commands(paths, port):
        echo(f"  {command}")


def _check_user(owner: str) -> None:
    try:
        pwd.getpwnam(owner)
    except KeyError:
        raise InputError(f"--user: there is no user {owner}; make one with `useradd --system {owner}`") from None


def _set_up(items: Sequence[Item], found: Sequence[Obstacle], *, dry_run: bool) -> None:
    if found:
        for finding in found:
            echo(_line(finding), error=True)
        if not dry_run:
            fail("nothing was changed", Exit.RUN_FAILED)
    missing = [item for item in items if not item.is_there()]
    for item in missing:
        # A setting may be made by an earlier command: a new device has the machine's defaults.
        if dry_run or not item.is_there():
            _run(item.make, dry_run=dry_run)
    if not missing:
        echo("Everything is there.")


def _check(items: Sequence[Item], found: Sequence[Obstacle]) -> None:
    missing = 0
    for item in items:
        if item.is_there():
            echo(f"ok       {item.name}")
        else:
            missing += 1
            echo(f"missing  {item.name}: {text_of(item.make)}")
    for finding in found:
        echo(_line(finding))
    if missing or found:
        fail(f"{missing + len(found)} of these keep clients out; --setup makes what is missing", Exit.RUN_FAILED)


def _note_mtus(paths: Sequence[WiredPath], mtu: int) -> None:
    for finding in mtu_notes(paths, mtu):
        echo(f"note     {finding.problem}: {finding.remedy}")


def _line(finding: Obstacle) -> str:
    return f"problem  {finding.problem}: {finding.remedy}"


def _tear_down(items: Sequence[Item], *, dry_run: bool) -> None:
    present = [item for item in reversed(items) if item.remove and item.is_there()]
    for item in present:
        # The routes of a device went with it, or go with it.
        if item.remove and (dry_run or item.is_there()):
            _run(item.remove, dry_run=dry_run)
    if not present:
        echo("Nothing is there.")


def _run(command: Sequence[str], *, dry_run: bool) -> None:
    """Prints a command and runs it."""
    echo(text_of(command))
    if dry_run:
        return
    until = time.monotonic() + _LONGEST_BUSY_S
    while (done := subprocess.run(command, capture_output=True, text=True, check=False)).returncode != 0:
        if _BUSY not in done.stderr or time.monotonic() > until:
            break
        time.sleep(_LOOK_EVERY_S)
    if done.returncode != 0:
        fail(f"`{text_of(command)}`: {done.stderr.strip()}", Exit.RUN_FAILED)
