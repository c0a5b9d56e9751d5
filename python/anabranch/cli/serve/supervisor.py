"""The parent of a server's process: it holds the devices, and starts the server again if it ends unexpectedly.

The server runs in a child process. Parent and child talk through a pair of sockets: the parent orders, the child gives
signs of life. The TUN devices and the list of open subflows belong to both. When the child is killed, the next one
takes over the devices, which were never released, and resets the connections on the list. When the parent is killed,
the child sees the end of its socket, resets all connections and ends.

The child is forked, so it starts in milliseconds. Threads of numerical libraries that were imported stay with the
parent, and the child calls none of these.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from anabranch import _core
from anabranch.cli.console import Exit, say, say_error, say_warning
from anabranch.cli.serve.check import check_serving
from anabranch.cli.serve.notify import Notifier
from anabranch.errors import InputError

Options = Mapping[str, Any]
"""The arguments of `anabranch._core.Serving`."""

# A child without a sign of life for so long is killed; systemd may want a shorter time.
_HANG_S = 15.0
# A child that ends again so soon is started after a pause, which doubles each time, from the first to the longest.
_SOON_S = 5.0
_PAUSES_S = (0.1, 5.0)
# Orders and signs of life are short; the new options are the longest. The receiver takes as much at a time.
_MESSAGE_BYTES = 1 << 16
# What cannot change in a running child.
FIXED = ("listen", "port", "mtu", "metrics", "state", "capture")


class Channel:
    """One end of the sockets between parent and child."""

    def __init__(self, end: socket.socket) -> None:
        self.end = end

    def send(self, **message: Any) -> None:
        """Sends a message; the child may be gone, or it may hang.

        Raises:
            InputError: The message is too long.
        """
        packet = json.dumps(message, default=os.fspath).encode()
        if len(packet) > _MESSAGE_BYTES:
            raise InputError(f"the options take {len(packet)} bytes; expected at most {_MESSAGE_BYTES}")
        with contextlib.suppress(OSError):
            self.end.send(packet, socket.MSG_DONTWAIT)

    def receive(self) -> list[dict[str, Any]] | None:
        """The messages that have come; `None` once the other end is closed."""
        messages: list[dict[str, Any]] = []
        while True:
            try:
                packet = self.end.recv(_MESSAGE_BYTES, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return messages
            except OSError:
                return None
            if not packet:
                return None
            messages.append(json.loads(packet))


def channels() -> tuple[Channel, Channel]:
    """Both ends, which keep the bounds of messages."""
    parent, child = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    return Channel(parent), Channel(child)


@dataclass
class Child:
    """A running server.

    Attributes:
        pid: Its process.
        channel: The parent's end.
        options: What it serves by.
        began: When it was started.
        last_sign: When it last gave a sign of life.
        ready: Whether it has served.
    """

    pid: int
    channel: Channel
    options: Options
    began: float
    last_sign: float
    ready: bool = False


class Supervisor:
    """Runs a server until a signal ends it.

    SIGINT and SIGTERM end it: the first lets downloads finish, the second breaks them off. SIGHUP reads
    the options again.
    """

    def __init__(
        self,
        options: Options,
        reread: Callable[[], Options],
        work: Callable[[Options, _core.Devices, Channel], int],
        notifier: Notifier,
    ) -> None:
        """`work` is the child: it serves until it is ordered to end, and returns its exit code."""
        self._options, self._reread, self._work, self._notifier = options, reread, work, notifier
        self._devices: _core.Devices | None = _core.Devices(options["listen"])
        self._hang_s = min(_HANG_S, notifier.watchdog_s or _HANG_S)
        self._had_terminal = os.isatty(2)
        # What signals have ordered and is not done yet.
        self._stops = self._hangups = 0
        self._stopping = self._replacing = False
        # With what the child before was served that was replaced, until its successor serves.
        self._former: tuple[Options, _core.Devices] | None = None
        # Whether a child has ever served, and the pause before the next one.
        self._served = False
        self._pause_s = 0.0

    def run(self) -> int:
        """Returns the exit code of the command."""
        with _signals_to(self._on_signal) as waker:
            while True:
                child = self._start()
                code = self._supervise(child, waker)
                if (end := self._end_of(child, code)) is not None:
                    return end
                if not self._prepare(code, waker):
                    return int(Exit.RUN_FAILED)

    def _start(self) -> Child:
        ours, theirs = channels()
        now = time.monotonic()
        pid = os.fork()
        if pid == 0:
            ours.end.close()
            os._exit(_as_child(lambda: self._work(self._options, self._opened(), theirs)))
        theirs.end.close()
        return Child(pid, ours, self._options, now, now)

    def _opened(self) -> _core.Devices:
        if self._devices is None:
            self._devices = _core.Devices(self._options["listen"])
        return self._devices

    def _supervise(self, child: Child, waker: socket.socket) -> int:
        """Passes orders on until the child has ended; returns its exit code, which is negative after a signal."""
        while True:
            left_s = child.last_sign + self._hang_s - time.monotonic()
            _sleep(max(left_s, 0.0), waker, child.channel.end)
            if time.monotonic() - child.last_sign > self._hang_s:
                say_warning(f"the server gave no sign of life for {self._hang_s:g} s; it is killed")
                os.kill(child.pid, signal.SIGKILL)
                child.last_sign = time.monotonic()
            self._carry_out_orders(child)
            if not self._listen(child):
                child.channel.end.close()
                return os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1])

    def _on_signal(self, number: int) -> None:
        if number != signal.SIGHUP:
            self._stops += 1
        elif self._had_terminal and not os.isatty(2):
            # The terminal that it was started from is gone: as for other programs, that is the end.
            self._stops += 2
        else:
            self._hangups += 1

    def _carry_out_orders(self, child: Child) -> None:
        """Carries out what signals ordered."""
        while self._stops:
            self._stops -= 1
            self._stopping = True
            self._notifier.stopping()
            child.channel.send(order="stop")
        if self._hangups and not self._stopping:
            self._hangups = 0
            self._reload(child)

    def _reload(self, child: Child) -> None:
        """Reads the options again. Whatever fails in that changes nothing."""
        self._notifier.reloading()
        try:
            self._renew(child)
        except (InputError, OSError) as error:
            self._refuse(str(error))
        except BaseException as error:
            # An unexpected error, a fault of the compiled part included, must not end running downloads.
            self._refuse(f"{type(error).__name__}: {error}")

    def _refuse(self, why: str) -> None:
        say_error(f"{why}; the server goes on as before")
        self._notifier.ready("the new options were refused")

    def _renew(self, child: Child) -> None:
        """Goes on with the options as they are now."""
        options = self._reread()
        # The child gives signs of life meanwhile.
        check_serving(options, lambda: self._listen(child) and not self._stops)
        changed = [name for name in FIXED if options[name] != child.options[name]]
        former = self._opened()
        devices = former.changed(options["listen"])
        if changed:
            # Only another process can have these. New clients wait until running downloads are finished.
            say(f"{', '.join(changed)} changed: the server starts anew once downloads have finished")
            if not self._replacing:
                # A second order to stop would break downloads off.
                self._former = (child.options, former)
                self._replacing = True
                child.channel.send(order="stop")
        else:
            child.channel.send(order="reload", options=dict(options))
            child.options = options
        self._options, self._devices = options, devices

    def _listen(self, child: Child) -> bool:
        """Takes the child's reports; false once it has ended."""
        messages = child.channel.receive()
        for message in messages or ():
            child.last_sign = time.monotonic()
            self._notifier.alive()
            if "ready" in message:
                child.ready = self._served = True
                if not self._replacing:
                    self._former = None
                self._notifier.ready(message["ready"])
            if "status" in message:
                self._notifier.status(message["status"])
        return messages is not None

    def _end_of(self, child: Child, code: int) -> int | None:
        """The exit code, now that the child has ended; `None` to start another one."""
        if self._stopping or not self._served or (code == 0 and not self._replacing):
            # It was ordered to end, or never could begin and has said why.
            return code if code >= 0 else int(Exit.RUN_FAILED)
        if self._replacing and code == 0:
            self._replacing = False
            return None
        if self._former is not None and not self._replacing and not child.ready and code > 0:
            say_warning("the server cannot serve with the new options; the former options are used again")
            (self._options, self._devices), self._former = self._former, None
            return None
        self._replacing = False
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        say_warning(f"the server {how}; its clients are reset, and it is started again")
        first, longest = _PAUSES_S
        soon = not child.ready or time.monotonic() - child.began < _SOON_S
        self._pause_s = min(max(2 * self._pause_s, first), longest) if soon else 0.0
        return None

    def _prepare(self, code: int, waker: socket.socket) -> bool:
        """Waits for the time of the next start; false if a signal ordered the end meanwhile."""
        while True:
            _sleep(self._pause_s, waker)
            if self._stops:
                return False
            if code <= 0:
                return True
            # A device may be gone and have come back: the open one is of no use then. The list of subflows stays.
            try:
                self._devices = self._opened().changed(self._options["listen"])
            except OSError as error:
                say_error(str(error))
                self._pause_s = _PAUSES_S[1]
            else:
                return True


def _sleep(seconds: float, waker: socket.socket, *others: socket.socket) -> None:
    """Sleeps until a signal comes or one of the other sockets can be read."""
    select.select([waker, *others], [], [], seconds)
    with contextlib.suppress(BlockingIOError):
        waker.recv(4096)


def _as_child(work: Callable[[], int]) -> int:
    """Does the work of the forked process; whatever happens, its code does not return into the parent's."""
    # Orders come from the parent; a terminal's Ctrl-C comes to both.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.set_wakeup_fd(-1)
    try:
        return work()
    except InputError as error:
        say_error(str(error))
        return int(Exit.WRONG_INPUT)
    except OSError as error:
        say_error(str(error))
        return int(Exit.RUN_FAILED)
    except BaseException:
        traceback.print_exc()
        return int(Exit.RUN_FAILED)


@contextmanager
def _signals_to(take: Callable[[int], None]) -> Iterator[socket.socket]:
    """Lets signals call `take`; puts everything back as it was afterwards.

    Yields:
        A socket that can be read after each signal.
    """
    ours, waker = socket.socketpair()
    ours.setblocking(False)
    waker.setblocking(False)

    def on_signal(number: int, _frame: FrameType | None) -> None:
        take(number)

    wakeup = signal.set_wakeup_fd(ours.fileno(), warn_on_full_buffer=False)
    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield waker
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(wakeup)
        ours.close()
        waker.close()


@contextmanager
def pid_file(path: Path | None) -> Iterator[None]:
    """Keeps the number of this process in a file, for `--reload`."""
    if path is None:
        yield
        return
    path.write_text(f"{os.getpid()}\n", "ascii")
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def reload(path: Path) -> None:
    """Lets the server of that file read its options again.

    Raises:
        InputError: The file is of no running server.
    """
    try:
        pid = int(path.read_text("ascii"))
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (OSError, ValueError) as error:
        raise InputError(f"--pid-file {path}: no server has it: {error}") from error
    if b"anabranch" not in command:
        raise InputError(f"--pid-file {path}: process {pid} is another program")
    os.kill(pid, signal.SIGHUP)
