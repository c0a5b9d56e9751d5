"""`anabranch serve`: our endpoint at work, for real Multipath TCP clients."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer
from rich.live import Live
from rich.text import Text

from anabranch import InputError, _core
from anabranch.cli.console import Exit, err, fail
from anabranch.cli.listing import grouped, unknown

if TYPE_CHECKING:
    from anabranch._core import _Facts

EXAMPLES = (
    "Example: anabranch serve --root videos --listen srv1=10.99.0.1 --listen srv2=10.99.0.1\n\n"
    "docs/how-to/serve.md explains devices, addresses and routes. The first Ctrl-C lets running downloads finish, the "
    "second ends them."
)

# Elsewhere than on Linux the compiled part has no server; the help is shown there, too.
_ON_LINUX = hasattr(_core, "Serving")
_DEFAULTS = _core.serve_defaults() if _ON_LINUX else None

# How often Python looks whether there was a signal, and how often the line on a terminal changes.
_LOOK_EVERY_S = 0.1
_LINE_EVERY_S = 1.0
# Into a file or a journal goes a line this often, and only while there are clients.
_PLAIN_LINE_EVERY_S = 300.0
_MIB = 1 << 20

_LIMITS = "Limits"
_HOW = "How data is sent"


def serve(
    listen: Annotated[
        list[str],
        typer.Option(
            metavar="DEVICE=ADDRESS",
            help="A path: TUN device and the server's address on it. Once for each path.",
            show_default=False,
        ),
    ],
    root: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Serve the files of this directory over HTTP/1.1.")
    ] = None,
    origin: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help="Or pass everything to the server there, over TCP; TLS goes through unread."
        ),
    ] = None,
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port.")] = 80,
    mtu: Annotated[int, typer.Option(min=576, max=65535, help="The MTU of the devices, in bytes.")] = 1500,
    scheduler: Annotated[
        str, typer.Option(metavar="NAME", rich_help_panel=_HOW, help="`anabranch list schedulers` names them.")
    ] = _DEFAULTS["scheduler"] if _DEFAULTS else "",
    congestion_control: Annotated[
        str, typer.Option(metavar="NAME", rich_help_panel=_HOW, help="`anabranch list congestion-controls` names them.")
    ] = _DEFAULTS["congestion_control"] if _DEFAULTS else "",
    path_policy: Annotated[
        str, typer.Option(metavar="NAME", rich_help_panel=_HOW, help="`anabranch list path-policies` names them.")
    ] = _DEFAULTS["path_policy"] if _DEFAULTS else "",
    max_connections: Annotated[
        int, typer.Option(min=1, rich_help_panel=_LIMITS, help="Open connections; beyond, SYNs are not answered.")
    ] = _DEFAULTS["max_connections"] if _DEFAULTS else 0,
    max_half_open: Annotated[
        int, typer.Option(min=1, rich_help_panel=_LIMITS, help="Handshakes under way; beyond, the oldest gives way.")
    ] = _DEFAULTS["max_half_open"] if _DEFAULTS else 0,
    memory: Annotated[
        float,
        typer.Option(min=0.1, metavar="MIB", rich_help_panel=_LIMITS, help="What one connection may hold, both ways."),
    ] = _DEFAULTS["memory"] / _MIB if _DEFAULTS else 0,
    send_memory: Annotated[
        float,
        typer.Option(
            min=0, metavar="MIB", rich_help_panel=_LIMITS, help="What all connections together may hold unacknowledged."
        ),
    ] = _DEFAULTS["send_memory"] / _MIB if _DEFAULTS else 0,
    idle_time: Annotated[
        float,
        typer.Option(
            min=1, metavar="SECONDS", rich_help_panel=_LIMITS, help="A client that says nothing for so long is dropped."
        ),
    ] = _DEFAULTS["idle_seconds"] if _DEFAULTS else 0,
    send_timeout: Annotated[
        float,
        typer.Option(
            min=1,
            metavar="SECONDS",
            rich_help_panel=_LIMITS,
            help="A client that takes none of its data for so long is dropped.",
        ),
    ] = _DEFAULTS["send_timeout_seconds"] if _DEFAULTS else 0,
    grace: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="How long downloads may go on after the first Ctrl-C.")
    ] = _DEFAULTS["grace_seconds"] if _DEFAULTS else 0,
    metrics: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS:PORT", help="Show metrics to Prometheus there, at /metrics."),
    ] = None,
    pcap: Annotated[Path | None, typer.Option(metavar="FILE", help="Record all packets to a pcapng file.")] = None,
) -> None:
    """Serve files, or another server, to Multipath TCP clients with our own endpoint."""
    if not _ON_LINUX:
        fail("serving needs Linux: TUN devices carry the packets", Exit.RUN_FAILED)
    if (root is None) == (origin is None):
        raise InputError("one of --root DIR and --origin HOST:PORT is needed")
    for option, kind, name in (
        ("--scheduler", "schedulers", scheduler),
        ("--congestion-control", "congestion-controls", congestion_control),
        ("--path-policy", "path-policies", path_policy),
    ):
        _check_name(option, kind, name)
    serving = _core.Serving(
        listen=[_path(text) for text in listen],
        root=root,
        origin=origin,
        port=port,
        mtu=mtu,
        scheduler=scheduler,
        congestion_control=congestion_control,
        path_policy=path_policy,
        max_connections=max_connections,
        max_half_open=max_half_open,
        memory=int(memory * _MIB),
        send_memory=int(send_memory * _MIB),
        idle_seconds=idle_time,
        send_timeout_seconds=send_timeout,
        grace_seconds=grace,
        metrics=metrics,
        capture=pcap,
    )
    with _signals_to(serving.stop):
        where = " and ".join(text.replace("=", " at ") for text in listen)
        _say(f"serving {root or origin} on {where}, port {port}; Ctrl-C ends it")
        if (address := serving.metrics()) is not None:
            _say(f"metrics: http://{address}/metrics")
        _watch(serving, f"{scheduler}, {congestion_control}")
        _say(f"served {serving.finish()} connections")


def _say(line: str) -> None:
    err().print(Text(line), soft_wrap=True)


def _path(text: str) -> tuple[str, str]:
    device, separator, address = text.partition("=")
    if not separator or not device or not address:
        raise InputError(f"--listen {text}: expected DEVICE=ADDRESS, such as srv1=10.99.0.1")
    return device, address


def _check_name(option: str, kind: str, name: str) -> None:
    known = [entry["name"] for entry in grouped()[kind]]
    if name not in known:
        raise InputError(f"{option}: {unknown(name, known)}")


@contextmanager
def _signals_to(stop: Callable[[], None]) -> Iterator[None]:
    """Lets Ctrl-C and the end of a session call `stop`; puts everything back as it was afterwards."""

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        stop()

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _watch(serving: _core.Serving, how: str) -> None:
    """Says how the server is doing until it has ended."""
    console = err()
    if console.is_terminal:
        with Live(console=console, transient=True, auto_refresh=False) as live:
            for line in _lines(serving, how, _LINE_EVERY_S):
                live.update(Text(line, overflow="ellipsis", no_wrap=True), refresh=True)
        return
    for line in _lines(serving, how, _PLAIN_LINE_EVERY_S):
        if not line.startswith("0 clients"):
            _say(line)


def _lines(serving: _core.Serving, how: str, every_s: float) -> Iterator[str]:
    """A line whenever so much time has passed, until the server has ended."""
    before = serving.status()
    while not serving.wait(_LOOK_EVERY_S):
        now = serving.status()
        if now["uptime"] - before["uptime"] >= every_s:
            yield _line(before, now, how)
            before = now


def _line(before: _Facts, now: _Facts, how: str) -> str:
    seconds = now["uptime"] - before["uptime"]
    parts = [f"{now['open']} client{'' if now['open'] == 1 else 's'}"]
    for old, new in zip(before["paths"] or now["paths"], now["paths"], strict=True):
        rate = (new["sent_bytes"] - old["sent_bytes"]) * 8 / seconds / 1e6
        parts.append(f"{new['device']} {rate:.1f} Mb/s")
    parts.append(f"{now['send_queue'] / 1e6:.1f} MB in the send queue")
    return ", ".join(parts) + f" ({how})"
