"""`anabranch serve`: our endpoint at work, for real Multipath TCP clients."""

from __future__ import annotations

import signal
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import typer
from rich.live import Live
from rich.text import Text

from anabranch import InputError, _core
from anabranch.cli.console import Exit, err, fail
from anabranch.cli.listing import grouped, unknown
from anabranch.cli.wire import chosen, wire
from anabranch.cli.wiring import paths_of

if TYPE_CHECKING:
    from anabranch._core import _Facts

EXAMPLES = (
    "Example: anabranch serve --root videos --listen srv1=10.99.0.1 --listen srv2=10.99.0.1\n\n"
    "docs/how-to/serve.md explains devices, addresses and routes. The first Ctrl-C lets running downloads finish, the "
    "second ends them."
)

# Elsewhere than on Linux the compiled part has no server; the help is shown there, too.
_ON_LINUX = hasattr(_core, "Serving")
_DEFAULTS: Mapping[str, Any] = {**_core.serve_defaults()} if _ON_LINUX else defaultdict(int)

# How often Python looks whether there was a signal, and how often the line on a terminal changes.
_LOOK_EVERY_S = 0.1
_LINE_EVERY_S = 1.0
# Into a file or a journal goes a line this often, and only while there are clients.
_PLAIN_LINE_EVERY_S = 300.0
_MIB = 1 << 20

_LIMITS = "Limits"
_HOW = "How data is sent"


def _names(kind: str) -> Any:
    return typer.Option(metavar="NAME", rich_help_panel=_HOW, help=f"`anabranch list {kind}` names them.")


def _limit(text: str, *, least: float = 1, unit: str | None = None) -> Any:
    return typer.Option(min=least, metavar=unit, rich_help_panel=_LIMITS, help=text)


_Listen = Annotated[
    list[str],
    typer.Option(
        metavar="DEVICE=ADDRESS",
        help="A path: TUN device and the server's address on it. Once for each path.",
        show_default=False,
    ),
]
_Root = Annotated[Path | None, typer.Option(metavar="DIR", help="Serve the files of this directory over HTTP/1.1.")]
_Origin = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT", help="Or pass everything to the server there, over TCP; TLS goes through unread."
    ),
]
_FollowSymlinks = Annotated[
    bool, typer.Option("--follow-symlinks", help="Also serve what symbolic links of --root outside of it lead to.")
]
_Hidden = Annotated[bool, typer.Option("--hidden", help="Also serve names of --root that begin with a dot.")]
_ProxyProtocol = Annotated[
    bool,
    typer.Option("--proxy-protocol", help="Send --origin each client's address first (PROXY protocol, version 2)."),
]
_Port = Annotated[int, typer.Option(min=1, max=65535, help="The port.")]
_Mtu = Annotated[int, typer.Option(min=576, max=65535, help="The MTU of the devices, in bytes.")]
_Scheduler = Annotated[str, _names("schedulers")]
_CongestionControl = Annotated[str, _names("congestion-controls")]
_PathPolicy = Annotated[str, _names("path-policies")]
_MaxConnections = Annotated[int, _limit("Open connections; beyond, SYNs are not answered.")]
_MaxPerAddress = Annotated[int, _limit("Open connections of one IPv4 address, or one IPv6 network of 64 bits.")]
_MaxHalfOpen = Annotated[int, _limit("Handshakes under way; beyond, the oldest gives way.")]
_Memory = Annotated[float, _limit("What one connection may hold, both ways.", least=0.1, unit="MIB")]
_SendMemory = Annotated[float, _limit("What all connections together may hold unacknowledged.", least=0, unit="MIB")]
_IdleTime = Annotated[float, _limit("A client that sends nothing for so long is dropped.", unit="SECONDS")]
_SendTimeout = Annotated[float, _limit("A client that takes none of its data for so long is dropped.", unit="SECONDS")]
_Grace = Annotated[
    float, typer.Option(min=0, metavar="SECONDS", help="How long downloads may go on after the first Ctrl-C.")
]
_Metrics = Annotated[
    str | None, typer.Option(metavar="ADDRESS:PORT", help="Show metrics to Prometheus there, at /metrics.")
]
_State = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Keep the open subflows there, and reset those that a server that was killed left there."
    ),
]
_AccessLog = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Append a line for each response; `-` is the standard output.")
]
_AccessLogJson = Annotated[
    bool, typer.Option("--access-log-json", help="Objects of JSON in the access log, with times and paths.")
]
_Pcap = Annotated[Path | None, typer.Option(metavar="FILE", help="Record all packets to a pcapng file.")]

_WIRING = "Wiring"


def _wiring(name: str, text: str) -> Any:
    return typer.Option(name, rich_help_panel=_WIRING, help=text)


_Setup = Annotated[bool, _wiring("--setup", "Make the devices, routes and settings that are missing, and end.")]
_Check = Annotated[bool, _wiring("--check", "Say which of them are missing and what keeps clients out, and end.")]
_Teardown = Annotated[bool, _wiring("--teardown", "Remove the devices and routes, and end.")]
_DryRun = Annotated[bool, _wiring("--dry-run", "With --setup or --teardown: print the commands, and run none.")]
_Uplink = Annotated[
    list[str] | None,
    typer.Option(
        metavar="DEVICE=INTERFACE[,GATEWAY]",
        rich_help_panel=_WIRING,
        help="The interface and next hop of a path's packets. Once for each path, if there are several.",
        show_default=False,
    ),
]
_User = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", rich_help_panel=_WIRING, help="Who runs the server and owns the devices; you by default."
    ),
]


def serve(
    listen: _Listen,
    root: _Root = None,
    origin: _Origin = None,
    follow_symlinks: _FollowSymlinks = False,
    hidden: _Hidden = False,
    proxy_protocol: _ProxyProtocol = False,
    port: _Port = 80,
    mtu: _Mtu = 1500,
    scheduler: _Scheduler = _DEFAULTS["scheduler"],
    congestion_control: _CongestionControl = _DEFAULTS["congestion_control"],
    path_policy: _PathPolicy = _DEFAULTS["path_policy"],
    max_connections: _MaxConnections = _DEFAULTS["max_connections"],
    max_per_address: _MaxPerAddress = _DEFAULTS["max_per_address"],
    max_half_open: _MaxHalfOpen = _DEFAULTS["max_half_open"],
    memory: _Memory = _DEFAULTS["memory"] / _MIB,
    send_memory: _SendMemory = _DEFAULTS["send_memory"] / _MIB,
    idle_time: _IdleTime = _DEFAULTS["idle_seconds"],
    send_timeout: _SendTimeout = _DEFAULTS["send_timeout_seconds"],
    grace: _Grace = _DEFAULTS["grace_seconds"],
    metrics: _Metrics = None,
    state: _State = None,
    access_log: _AccessLog = None,
    access_log_json: _AccessLogJson = False,
    pcap: _Pcap = None,
    setup: _Setup = False,
    check: _Check = False,
    teardown: _Teardown = False,
    dry_run: _DryRun = False,
    uplink: _Uplink = None,
    user: _User = None,
) -> None:
    """Serve files, or another server, to Multipath TCP clients with our own endpoint."""
    paths = [_path(text) for text in listen]
    if (work := chosen(setup=setup, check=check, teardown=teardown, dry_run=dry_run)) is not None:
        wire(work, paths_of(paths, uplink or []), user=user, port=port, mtu=mtu, dry_run=dry_run)
        return
    _check(root, origin, proxy_protocol, (scheduler, congestion_control, path_policy))
    limits = _limits(max_connections, max_per_address, max_half_open, memory, send_memory, idle_time, send_timeout)
    serving = _core.Serving(
        listen=paths,
        root=root,
        origin=origin,
        follow_symlinks=follow_symlinks,
        hidden=hidden,
        proxy_protocol=proxy_protocol,
        port=port,
        mtu=mtu,
        scheduler=scheduler,
        congestion_control=congestion_control,
        path_policy=path_policy,
        **limits,
        grace_seconds=grace,
        metrics=metrics,
        state=state,
        access_log=access_log,
        access_log_json=access_log_json,
        capture=pcap,
    )
    _run(serving, f"{root or origin} on {_where(listen)}, port {port}", f"{scheduler}, {congestion_control}")


def _check(root: Path | None, origin: str | None, proxy_protocol: bool, names: tuple[str, str, str]) -> None:
    """Refuses what can be refused without the compiled part, which knows less about the command line."""
    if not _ON_LINUX:
        fail("serving needs Linux: TUN devices carry the packets", Exit.RUN_FAILED)
    if (root is None) == (origin is None):
        raise InputError("one of --root DIR and --origin HOST:PORT is needed")
    if proxy_protocol and origin is None:
        raise InputError("--proxy-protocol belongs to --origin: files are served without another server")
    options = ("--scheduler", "--congestion-control", "--path-policy")
    for option, kind, name in zip(options, ("schedulers", "congestion-controls", "path-policies"), names, strict=True):
        _check_name(option, kind, name)


class _Limits(TypedDict):
    """Limits as the compiled part takes them."""

    max_connections: int
    max_per_address: int
    max_half_open: int
    memory: int
    send_memory: int
    idle_seconds: float
    send_timeout_seconds: float


def _limits(
    max_connections: int,
    max_per_address: int,
    max_half_open: int,
    memory_mib: float,
    send_memory_mib: float,
    idle_s: float,
    send_timeout_s: float,
) -> _Limits:
    return {
        "max_connections": max_connections,
        "max_per_address": max_per_address,
        "max_half_open": max_half_open,
        "memory": int(memory_mib * _MIB),
        "send_memory": int(send_memory_mib * _MIB),
        "idle_seconds": idle_s,
        "send_timeout_seconds": send_timeout_s,
    }


def _where(listen: list[str]) -> str:
    return " and ".join(text.replace("=", " at ") for text in listen)


def _run(serving: _core.Serving, what: str, how: str) -> None:
    """Serves until a signal ends it."""
    with _signals_to(serving.stop):
        _say(f"serving {what}; Ctrl-C ends it")
        if (address := serving.metrics()) is not None:
            _say(f"metrics: http://{address}/metrics")
        _watch(serving, how)
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
    """Prints how the server is doing until it has ended."""
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
