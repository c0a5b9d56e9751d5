"""A browser on a leash: the Chrome DevTools protocol over a pipe, which needs no network and so no common namespace."""

from __future__ import annotations

import base64
import json
import select
import socket
import subprocess
import time
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from anabranch.system.programs import ToolError

# Chromium starts within seconds on an idle machine, and much later on a busy one.
_TIMEOUT_S = 120.0
_END_TIMEOUT_S = 20.0
# The protocol's pipes are the descriptors 3 and 4; a socket, given as standard input, serves as both.
_ATTACH = 'exec "$@" 3<&0 4>&0 </dev/null'

_FLAGS = (
    "--headless",
    # Its sandbox refuses to run as root, which namespaces need.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # A page that no network delivered would need a permission for requests to private addresses.
    "--disable-features=LocalNetworkAccessChecks",
    "--disable-extensions",
    # The window is not visible; timers shall run all the same.
    "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding",
    "--autoplay-policy=no-user-gesture-required",
    "--remote-debugging-pipe",
)


class BrowserError(ToolError):
    """The browser did not start, ended, or refused something."""


class Browser:
    """Chromium with one page.

    Args:
        before: The command that runs it where it should run, such as ``ip netns exec NAME``.
        program: Chromium.
        folder: A new folder, which gets its profile and its output.
        size: Width and height of its window.
    """

    def __init__(
        self, before: Sequence[str], program: str, folder: Path, *, size: tuple[int, int] = (680, 680)
    ) -> None:
        ours, theirs = socket.socketpair()
        self._socket = ours
        self._output = folder / "chromium.log"
        flags = [*_FLAGS, f"--user-data-dir={folder / 'profile'}", f"--window-size={size[0]},{size[1]}"]
        command = [*before, "sh", "-c", _ATTACH, "sh", program, *flags]
        with theirs, self._output.open("wb") as output:
            self._process = subprocess.Popen(command, stdin=theirs.fileno(), stdout=output, stderr=output)
        self._received = b""
        self._calls = 0
        self._served: dict[str, tuple[str, bytes]] = {}
        self._session: str | None = None

    def __enter__(self) -> Self:
        try:
            target = self.call("Target.createTarget", url="about:blank")["targetId"]
            self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            self.call("Page.enable")
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        if kind is None and self._process.poll() is None:
            self._session = None
            self._send("Browser.close", {})
        self._end()

    def _end(self) -> None:
        # Chromium ends when the other end of its pipe is closed.
        self._socket.close()
        try:
            self._process.wait(_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def serve(self, base: str, files: Mapping[str, tuple[str, bytes]]) -> None:
        """Answers requests for addresses below ``base`` from here, without the network.

        Args:
            base: Where they begin, with a slash at the end.
            files: For each name, its type and its content.
        """
        # Chromium writes addresses in its own way, such as without the usual port.
        path = urllib.parse.urlsplit(base).path
        self._served = {path + name: file for name, file in files.items()}
        self.call("Fetch.enable", patterns=[{"urlPattern": f"*{path}*"}])

    def open(self, url: str) -> None:
        """Opens an address and waits until the page is complete."""
        answer = self.call("Page.navigate", url=url)
        if "errorText" in answer:
            raise BrowserError(f"{url}: {answer['errorText']}")
        self.wait_until(lambda: self.evaluate("document.readyState") == "complete", f"{url} did not become complete")

    def wait_until(self, true: Callable[[], bool], otherwise: str, timeout_s: float = _TIMEOUT_S) -> None:
        """Asks again and again.

        Raises:
            BrowserError: It did not become true; ``otherwise`` is the message.
        """
        until = time.monotonic() + timeout_s
        while not true():
            if time.monotonic() > until:
                raise BrowserError(otherwise)
            time.sleep(0.1)

    def evaluate(self, expression: str) -> Any:
        """The value of an expression of JavaScript."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise BrowserError(details.get("exception", {}).get("description", details["text"]))
        return answer["result"].get("value")

    def screenshot(self, file: Path) -> None:
        """Writes what the page looks like, as PNG."""
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Calls a method of the protocol and waits for its answer.

        Raises:
            BrowserError: The browser is gone, refused, or did not answer in time.
        """
        number = self._send(method, parameters)
        while True:
            message = self._receive(method)
            if message.get("id") == number:
                if "error" in message:
                    raise BrowserError(f"{method}: {message['error'].get('message')}")
                result: dict[str, Any] = message["result"]
                return result
            if message.get("method") == "Fetch.requestPaused":
                self._fulfil(message["params"])

    def _fulfil(self, paused: dict[str, Any]) -> None:
        path = urllib.parse.urlsplit(paused["request"]["url"]).path
        kind, content = self._served.get(path, ("text/plain", b""))
        answer = {
            "requestId": paused["requestId"],
            "responseCode": 200 if path in self._served else 404,
            "responseHeaders": [{"name": "Content-Type", "value": kind}],
            "body": base64.b64encode(content).decode(),
        }
        self._send("Fetch.fulfillRequest", answer)

    def _send(self, method: str, parameters: dict[str, Any]) -> int:
        self._calls += 1
        message: dict[str, Any] = {"id": self._calls, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        try:
            self._socket.sendall(json.dumps(message).encode() + b"\0")
        except OSError as error:
            raise self._gone() from error
        return self._calls

    def _receive(self, method: str) -> dict[str, Any]:
        """The next message of the browser."""
        while b"\0" not in self._received:
            if not select.select([self._socket], [], [], _TIMEOUT_S)[0]:
                raise BrowserError(f"Chromium did not answer {method} within {_TIMEOUT_S:.0f} s; see {self._output}")
            got = self._socket.recv(1 << 16)
            if not got:
                raise self._gone()
            self._received += got
        first, _, self._received = self._received.partition(b"\0")
        message: dict[str, Any] = json.loads(first)
        return message

    def _gone(self) -> BrowserError:
        output = self._output.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return BrowserError(f"Chromium ended: {output[-1] if output else 'without a message'}")
