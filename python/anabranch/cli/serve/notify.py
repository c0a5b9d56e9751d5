"""Messages to a service manager such as systemd (sd_notify(3), sd_watchdog_enabled(3))."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import MutableMapping


class Notifier:
    """Tells the service manager that started this process how it is doing, if there is one.

    Attributes:
        watchdog_s: How often the manager wants a sign of life at least; `None` if it wants none.
    """

    def __init__(self, address: str | None, watchdog_s: float | None = None) -> None:
        self._address = address
        self.watchdog_s = watchdog_s

    @classmethod
    def of(cls, environment: MutableMapping[str, str]) -> Notifier:
        """The manager that the environment names. It is removed there, because it is not for child processes."""
        address = environment.pop("NOTIFY_SOCKET", None)
        interval = environment.pop("WATCHDOG_USEC", None)
        process = environment.pop("WATCHDOG_PID", None)
        for_us = process is None or process == str(os.getpid())
        watchdog_s = int(interval) / 1e6 if interval and interval.isdecimal() and for_us else None
        return cls(address, watchdog_s)

    def _send(self, *lines: str) -> None:
        if self._address is None:
            return
        # A name that begins with @ is in the abstract name space, where a zero byte stands for it.
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as manager:
            # A manager that does not listen must not keep clients from being served.
            manager.setblocking(False)
            try:
                manager.sendto("\n".join(lines).encode(), address)
            except OSError:
                return

    def ready(self, status: str) -> None:
        """Clients are served, for the first time or after `reloading`."""
        self._send("READY=1", f"STATUS={status}")

    def reloading(self) -> None:
        """The configuration is being read again."""
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> None:
        """The server ends."""
        self._send("STOPPING=1")

    def status(self, text: str) -> None:
        """A line for the operator."""
        self._send(f"STATUS={text}")

    def alive(self) -> None:
        """A sign of life for the watchdog."""
        if self.watchdog_s is not None:
            self._send("WATCHDOG=1")
