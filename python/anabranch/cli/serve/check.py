"""Checks in a process of its own: what a check imports does not stay here, and cannot break anything here."""

from __future__ import annotations

import json
import os
import select
import signal
from collections.abc import Callable, Mapping
from typing import Any

from anabranch import _core
from anabranch.errors import InputError

# A module that takes longer to import hangs.
_LONGEST_S = 30
_LOOK_EVERY_S = 0.1

OWN_KINDS = ("scheduler", "congestion_control", "path_policy")
"""The options of a server that may name an algorithm of the user's."""


def names_own(options: Mapping[str, Any]) -> bool:
    """Whether an option names an algorithm of the user's, as `module:Class`."""
    return any(":" in options[kind] for kind in OWN_KINDS)


def check_serving(options: Mapping[str, Any], goes_on: Callable[[], bool] = lambda: True) -> None:
    """Checks the options of a server, in a process of its own if they name own algorithms.

    Args:
        options: What `anabranch._core.Serving` takes.
        goes_on: Called several times a second while another process works; false breaks it off.

    Raises:
        InputError: An option is wrong, or an own algorithm cannot be imported or made.
        OSError: The directory cannot be read.
    """
    if names_own(options):
        run(lambda: _core.check_serving(**options), goes_on)
    else:
        _core.check_serving(**options)


def run(work: Callable[[], object], goes_on: Callable[[], bool] = lambda: True) -> None:
    """Does the work in a process of its own, and raises here what it raised there.

    Raises:
        InputError: The work raised it, took too long, was broken off, or ended its process.
        OSError: The work raised it.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        os._exit(_work(work, writer))
    os.close(writer)
    ended = False
    try:
        answer, ended = _read(reader, goes_on)
    finally:
        os.close(reader)
        if not ended:
            os.kill(pid, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if not ended:
        raise InputError("the check of the options was broken off")
    if code == -signal.SIGALRM:
        raise InputError(f"the modules of own algorithms were not imported within {_LONGEST_S} s")
    if not answer:
        raise InputError(f"importing own algorithms ended the process that checks them, with code {code}")
    kind, message = json.loads(answer)
    if kind != "done":
        raise (InputError if kind == "input" else OSError)(message)


def _read(reader: int, goes_on: Callable[[], bool]) -> tuple[bytes, bool]:
    """What the other process said, and whether it finished."""
    answer = b""
    while goes_on():
        if select.select([reader], [], [], _LOOK_EVERY_S)[0]:
            part = os.read(reader, 1 << 16)
            if not part:
                return answer, True
            answer += part
    return answer, False


def _work(work: Callable[[], object], writer: int) -> int:
    """The other process. It ends by itself even if no process is left to end it: it has copies of all that is open."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    signal.alarm(_LONGEST_S)
    try:
        work()
        said = ("done", "")
    except InputError as error:
        said = ("input", str(error))
    except OSError as error:
        said = ("os", str(error))
    except BaseException as error:
        said = ("input", f"{type(error).__name__}: {error}")
    os.write(writer, json.dumps(said).encode())
    return 0
