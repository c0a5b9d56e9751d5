"""The process of a server: what it prints, and the orders of its parent that it follows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.live import Live
from rich.text import Text

from anabranch import _core
from anabranch.cli.console import err, say, say_error, say_warning
from anabranch.errors import InputError

if TYPE_CHECKING:
    from anabranch._core import _Facts, _PathFacts
    from anabranch.cli.serve.supervisor import Channel, Options

# How often it looks for orders, and how often the line on a terminal changes.
_LOOK_EVERY_S = 0.1
_LINE_EVERY_S = 1.0
# Into a file or a journal goes a line this often, and only while there are clients.
_PLAIN_LINE_EVERY_S = 300.0
# The scheduler that lets metered paths rest, by the viewers' buffers.
RESTING = "viewer-buffer"


def run_server(options: Options, devices: _core.Devices, channel: Channel) -> int:
    """Serves until the parent orders the end, or has ended itself. The exit code is zero.

    Raises:
        InputError: An option is wrong.
        OSError: The machine does not allow it, or a device is gone.
    """
    serving = _core.Serving(devices, **options)
    server = _Server(serving, options, channel)
    say(f"serving {server.what}; Ctrl-C ends it")
    if (address := serving.metrics()) is not None:
        say(f"metrics: http://{address}/metrics")
    server.warn_of_idle_options()
    channel.send(ready=f"serving {server.what}")
    _watch(serving, server)
    server.tell_failures()
    say(f"served {serving.finish()} connections")
    return 0


class _Server:
    """A running server and its orders."""

    def __init__(self, serving: _core.Serving, options: Options, channel: Channel) -> None:
        self._serving, self._channel = serving, channel
        self._options = options
        self._orphaned = False
        self._gone: set[str] = set()
        self._before = serving.status()
        self._mtus_told: set[tuple[str, str]] = set()
        self._reported: set[str] = set()

    @property
    def what(self) -> str:
        """What it serves and where."""
        paths = self._options["listen"]
        where = " and ".join(
            f"{device} at {address}{' (metered)' if metered else ''}" for device, address, metered in paths
        )
        return f"{self._options['root'] or self._options['origin']} on {where}, port {self._options['port']}"

    @property
    def how(self) -> str:
        """How data is sent."""
        how = f"{self._options['scheduler']}, {self._options['congestion_control']}"
        pacing = self._options["response_pacing"]
        return how if pacing == _core.serve_defaults()["response_pacing"] else f"{how}, responses paced by {pacing}"

    def warn_of_idle_options(self) -> None:
        """Prints which options change nothing, because of another one."""
        for warning in idle_options(self._options):
            say_warning(warning)

    def tell_failures(self) -> None:
        """Prints what own algorithms did wrong, the first failure of each place."""
        for traceback, message in self._serving.take_failures():
            if traceback is not None:
                err().print(Text(traceback.rstrip()), soft_wrap=True)
            say_error(message)

    def tell_devices(self, now: _Facts) -> None:
        """Prints which devices are gone or back."""
        gone = {path["device"] for path in now["paths"] if path["gone"]}
        for device in sorted(gone - self._gone):
            say_warning(f"the device {device} is gone; its path is out of service until it is there again (--setup)")
        for device in sorted(self._gone - gone):
            say(f"the device {device} is back")
        self._gone = gone

    def follow_orders(self) -> None:
        """Does what the parent has ordered, and gives a sign of life if the server's loop gave one."""
        messages = self._channel.receive()
        if messages is None and not self._orphaned:
            # No process holds the devices any more. Clients are reset, so that they need not wait.
            self._orphaned = True
            self._serving.stop()
            self._serving.stop()
        for message in messages or ():
            if message["order"] == "stop":
                self._serving.stop()
            else:
                self._reload(message["options"])
        # The loop publishes its status once a second; a loop that hangs does not.
        if (now := self._serving.status())["uptime"] > self._before["uptime"]:
            self._channel.send(status=line(self._before, now, self.how))
            self._before = now
            self._tell_mtus(now)
            self._report_false_acknowledgments(now)

    def _tell_mtus(self, now: _Facts) -> None:
        """Says once per path and kind that a link behind it takes smaller packets than its device."""
        for path in now["paths"]:
            found = {"reported": path["mtu_reported"], "silent": path["mtu_black_holes"]}
            for kind in [kind for kind, count in found.items() if count]:
                if (path["device"], kind) not in self._mtus_told:
                    self._mtus_told.add((path["device"], kind))
                    say(mtu_line(path, reported=kind == "reported"))

    def _report_false_acknowledgments(self, now: _Facts) -> None:
        """Says once per path that a client acknowledged what it had not received."""
        for path in now["paths"]:
            if path["false_acknowledgments"] and path["device"] not in self._reported:
                self._reported.add(path["device"])
                say(false_acknowledgments_line(path))

    def _reload(self, options: dict[str, object]) -> None:
        listen = options.pop("listen")
        assert isinstance(listen, list)
        # JSON has no tuples.
        new: Options = {**options, "listen": [tuple(path) for path in listen]}
        try:
            self._serving.reload(**new)
        except (InputError, OSError) as error:
            self._refuse(str(error))
            return
        except BaseException as error:
            # An unexpected error, a fault of the compiled part included, must not end running downloads.
            self._refuse(f"{type(error).__name__}: {error}")
            return
        self._options = new
        say(f"options read again: serving {self.what}")
        self.warn_of_idle_options()
        self._channel.send(ready=f"serving {self.what}")

    def _refuse(self, why: str) -> None:
        say_error(f"{why}; the server goes on as before")
        self._channel.send(ready="the new options were refused")


def _watch(serving: _core.Serving, server: _Server) -> None:
    """Follows orders, and prints how the server is doing, until it has ended."""
    console = err()
    if console.is_terminal:
        with Live(console=console, transient=True, auto_refresh=False) as live:
            for text in _lines(serving, server, _LINE_EVERY_S):
                live.update(Text(text, overflow="ellipsis", no_wrap=True), refresh=True)
        return
    for text in _lines(serving, server, _PLAIN_LINE_EVERY_S):
        if not text.startswith("0 clients"):
            say(text)


def _lines(serving: _core.Serving, server: _Server, every_s: float) -> Iterator[str]:
    """A line whenever so much time has passed, until the server has ended."""
    before = serving.status()
    while not serving.wait(_LOOK_EVERY_S):
        server.follow_orders()
        server.tell_failures()
        now = serving.status()
        server.tell_devices(now)
        if now["uptime"] - before["uptime"] >= every_s:
            yield line(before, now, server.how)
            before = now


def idle_options(options: Options) -> Iterator[str]:
    """What an option would need to change anything, and what helps."""
    scheduler = options["scheduler"]
    metered = [device for device, _, metered in options["listen"] if metered]
    if scheduler == RESTING:
        if options["root"] is None:
            yield f"{RESTING} knows no viewer's buffer, because what --origin sends is passed on unread"
        elif options["response_pacing"] == _core.serve_defaults()["response_pacing"]:
            yield f"{RESTING} knows no viewer's buffer; --response-pacing levels, or another one, estimates them"
    elif metered and ":" not in scheduler:
        yield (
            f"{scheduler} takes no notice that {' and '.join(metered)} costs money; {RESTING} would send nothing there "
            "while viewers have enough in their buffers"
        )


def mtu_line(path: _PathFacts, *, reported: bool) -> str:
    """That packets of the device's size do not reach every client."""
    how = "a router reported it" if reported else "no router reported it"
    return (
        f"{path['device']}: some link to a client takes smaller packets than the device ({how}); "
        f"segments for this client are now made for {path['mtu']} bytes"
    )


def false_acknowledgments_line(path: _PathFacts) -> str:
    """The message about clients that acknowledged what they had not received."""
    return (
        f"{path['device']}: a client acknowledged data that had not been sent to it, and its connection on this path "
        "was reset; anabranch_path_false_acknowledgments_total counts them"
    )


def line(before: _Facts, now: _Facts, how: str) -> str:
    """How it did between two reports."""
    seconds = now["uptime"] - before["uptime"]
    parts = [f"{now['open']} client{'' if now['open'] == 1 else 's'}"]
    for old, new in zip(before["paths"] or now["paths"], now["paths"], strict=True):
        rate = (new["sent_bytes"] - old["sent_bytes"]) * 8 / seconds / 1e6
        parts.append(f"{new['device']} gone" if new["gone"] else f"{new['device']} {rate:.1f} Mb/s")
    parts.append(f"{now['send_queue'] / 1e6:.1f} MB in the send queue")
    if failed := now["unmade"] + now["failed"]:
        parts.append(f"{failed} reset because of an own algorithm")
    return ", ".join(parts) + f" ({how})"
