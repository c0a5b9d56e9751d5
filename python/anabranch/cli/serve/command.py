"""`anabranch serve`: our endpoint at work, for real Multipath TCP clients."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import typer

from anabranch import _core
from anabranch.algorithms.serving import import_anew
from anabranch.cli import completion
from anabranch.cli.console import Exit, fail
from anabranch.cli.list import entries, unknown
from anabranch.cli.serve import check, configuration, unit
from anabranch.cli.serve.notify import Notifier
from anabranch.cli.serve.process import run_server
from anabranch.cli.serve.setup import chosen, wire
from anabranch.cli.serve.supervisor import Options, Supervisor
from anabranch.cli.serve.supervisor import pid_file as _pid_file
from anabranch.cli.serve.supervisor import reload as _order_reload
from anabranch.cli.serve.wiring import METERED, ListenPath, paths_of
from anabranch.errors import InputError

EXAMPLES = (
    "Example: anabranch serve --root videos --listen srv1=10.99.0.1 --listen srv2=10.99.0.1\n\n"
    "docs/how-to/serve.md explains devices, addresses and routes. The first Ctrl-C lets running downloads finish, the "
    "second ends them."
)

# Elsewhere than on Linux the compiled part has no server; the help is shown there, too.
_ON_LINUX = hasattr(_core, "Serving")
_DEFAULTS: Mapping[str, Any] = {**_core.serve_defaults()} if _ON_LINUX else defaultdict(int)

_MIB = 1 << 20

_LIMITS = "Limits"
_HOW = "How data is sent"


def _names(kind: str) -> Any:
    text = f"`anabranch list {kind}` names them; MODULE:CLASS is your own in Python."
    return typer.Option(metavar="NAME", rich_help_panel=_HOW, help=text)


# Bounds that no sensible server reaches, so that more is a mistake: a million connections, a tebibyte, a year.
_MOST_CONNECTIONS = 1 << 20
_MOST_MIB = 1 << 20
_MOST_S = 366 * 86_400


def _count(text: str) -> Any:
    return typer.Option(min=1, max=_MOST_CONNECTIONS, rich_help_panel=_LIMITS, help=text)


def _memory(text: str, *, least: float = 0) -> Any:
    return typer.Option(min=least, max=_MOST_MIB, metavar="MIB", rich_help_panel=_LIMITS, help=text)


def _time(text: str) -> Any:
    return typer.Option(min=1, max=_MOST_S, metavar="SECONDS", rich_help_panel=_LIMITS, help=text)


_SERVICE = "Service"
# What a configuration file does not have: it is of one call, or would be of another one.
_OF_CALLS = ("config", "reload", "install-unit", "setup", "check", "teardown", "dry-run")


def _configure(context: typer.Context, path: Path | None) -> Path | None:
    """Lets the options that are not typed be those of a file."""
    if path is not None:
        context.default_map = {**_in_file(path)}
    return path


_Config = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        rich_help_panel=_SERVICE,
        is_eager=True,
        callback=_configure,
        exists=True,
        dir_okay=False,
        help="Options by the same names, in TOML. Those that are typed come first.",
    ),
]
_PidFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", rich_help_panel=_SERVICE, help="Keep the number of the server's process there."),
]
_Reload = Annotated[
    bool,
    typer.Option(
        "--reload", rich_help_panel=_SERVICE, help="Let the server of --pid-file read --config again, and end."
    ),
]
_InstallUnit = Annotated[
    bool,
    typer.Option(
        "--install-unit",
        rich_help_panel=_SERVICE,
        help="Install a systemd unit that starts a server with --config, and end; --dry-run prints it.",
    ),
]
_Listen = Annotated[
    list[str] | None,
    typer.Option(
        metavar="DEVICE=ADDRESS[,metered]",
        help="A path: TUN device, the server's address on it, and whether its bytes cost money, such as "
        "srv2=10.99.0.1,metered. Once for each path.",
        show_default=False,
        autocompletion=completion.listen_paths,
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
_ResponsePacing = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        rich_help_panel=_HOW,
        help="How fast files of --root are sent to viewers of DASH; `anabranch list response-pacings` names the ways.",
    ),
]
_MaxConnections = Annotated[int, _count("Open connections; beyond, SYNs are not answered.")]
_MaxPerAddress = Annotated[int, _count("Open connections of one IPv4 address, or one IPv6 network of 64 bits.")]
_MaxHalfOpen = Annotated[int, _count("Handshakes under way; beyond, the oldest gives way.")]
_Memory = Annotated[float, _memory("What one connection may hold, both ways.", least=0.1)]
_SendMemory = Annotated[float, _memory("What all connections together may hold unacknowledged.")]
_ReceiveMemory = Annotated[float, _memory("Room that all receive buffers together may have.")]
_IdleTime = Annotated[float, _time("A client that sends nothing for so long is dropped.")]
_SendTimeout = Annotated[float, _time("A client that takes none of its data for so long is dropped.")]
_Grace = Annotated[
    float,
    typer.Option(min=0, max=_MOST_S, metavar="SECONDS", help="How long downloads may go on after the first Ctrl-C."),
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
_Offload = Annotated[
    bool,
    typer.Option("--offload/--no-offload", help="Give the kernel several segments as one packet, which it cuts up."),
]
_TestAcknowledgments = Annotated[
    bool,
    typer.Option(
        "--test-acknowledgments/--no-test-acknowledgments",
        help="Withhold one in 1000 segments for a round trip, and reset clients that acknowledge it before.",
    ),
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
    context: typer.Context,
    listen: _Listen = None,
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
    response_pacing: _ResponsePacing = _DEFAULTS["response_pacing"],
    max_connections: _MaxConnections = _DEFAULTS["max_connections"],
    max_per_address: _MaxPerAddress = _DEFAULTS["max_per_address"],
    max_half_open: _MaxHalfOpen = _DEFAULTS["max_half_open"],
    memory: _Memory = _DEFAULTS["memory"] / _MIB,
    send_memory: _SendMemory = _DEFAULTS["send_memory"] / _MIB,
    receive_memory: _ReceiveMemory = _DEFAULTS["receive_memory"] / _MIB,
    idle_time: _IdleTime = _DEFAULTS["idle_seconds"],
    send_timeout: _SendTimeout = _DEFAULTS["send_timeout_seconds"],
    grace: _Grace = _DEFAULTS["grace_seconds"],
    metrics: _Metrics = None,
    state: _State = None,
    access_log: _AccessLog = None,
    access_log_json: _AccessLogJson = False,
    offload: _Offload = True,
    test_acknowledgments: _TestAcknowledgments = True,
    pcap: _Pcap = None,
    config: _Config = None,
    pid_file: _PidFile = None,
    reload: _Reload = False,
    install_unit: _InstallUnit = False,
    setup: _Setup = False,
    check: _Check = False,
    teardown: _Teardown = False,
    dry_run: _DryRun = False,
    uplink: _Uplink = None,
    user: _User = None,
) -> None:
    """Serve files, or another server, to Multipath TCP clients with our own endpoint."""
    values = {name: value for name, value in locals().items() if name != "context"}
    if install_unit:
        unit.install(config, user, grace, dry_run=dry_run)
        return
    if (work := chosen(setup=setup, check=check, teardown=teardown, dry_run=dry_run)) is not None:
        if check:
            _check_names(values)
        paths = paths_of(_paths(listen), uplink or [])
        wire(work, paths, user=user, port=port, mtu=mtu, dry_run=dry_run)
        return
    if reload:
        _reload(values)
        return
    _serve(context, values)


def _in_file(path: Path) -> dict[str, Any]:
    return configuration.read(path, configuration.options_of(serve, excluded=_OF_CALLS))


def _serve(context: typer.Context, values: Mapping[str, Any]) -> None:
    """Serves until a signal ends it."""
    if not _ON_LINUX:
        fail("serving needs Linux: TUN devices carry the packets", Exit.RUN_FAILED)
    options = _options(values)
    check.check_serving(options)
    with _pid_file(values["pid_file"]):
        supervisor = Supervisor(options, lambda: _reread(context, values), run_server, Notifier.of(os.environ))
        if (code := supervisor.run()) != 0:
            raise typer.Exit(code)


def _reload(values: Mapping[str, Any]) -> None:
    """Checks the options, so that mistakes are shown here, and lets the running server read them."""
    if values["pid_file"] is None:
        raise InputError("--reload needs the --pid-file of a running server; under systemd: systemctl reload anabranch")
    if values["config"] is not None:
        check.check_serving(_options(values))
    _order_reload(values["pid_file"])


def _reread(context: typer.Context, values: Mapping[str, Any]) -> Options:
    """The options, with the configuration file as it is now. What was typed stays."""
    config: Path | None = values["config"]
    if config is None:
        return _options(values)
    parameters = signature(serve).parameters
    typed = {
        name: value
        for name, value in values.items()
        if (source := context.get_parameter_source(name)) is not None and source.name not in ("DEFAULT", "DEFAULT_MAP")
    }
    defaults = {name: parameters[name].default for name in values}
    return _options({**defaults, **_in_file(config), **typed})


def _options(values: Mapping[str, Any]) -> Options:
    """The arguments of the compiled part.

    Raises:
        InputError: An option is missing or wrong.
    """
    configuration.check_numbers(values, configuration.options_of(serve, excluded=_OF_CALLS))
    root, origin = values["root"], values["origin"]
    if (root is None) == (origin is None):
        raise InputError("one of --root DIR and --origin HOST:PORT is needed")
    if values["proxy_protocol"] and origin is None:
        raise InputError("--proxy-protocol belongs to --origin: files are served without another server")
    if values["response_pacing"] != _DEFAULTS["response_pacing"] and origin is not None:
        raise InputError("--response-pacing belongs to --root: what --origin sends is passed on unread")
    for name, kind in _KINDS.items():
        _check_name(f"--{name.replace('_', '-')}", kind, values[name])
    same = {name: values[name] for name in _AS_TYPED}
    sizes = {name: int(values[name] * _MIB) for name in ("memory", "send_memory", "receive_memory")}
    paths = {name: None if values[name] is None else str(values[name]) for name in ("root", "state", "access_log")}
    return {
        **same,
        **sizes,
        **paths,
        "modules": _modules(values),
        "listen": _paths(values["listen"]),
        "idle_seconds": values["idle_time"],
        "send_timeout_seconds": values["send_timeout"],
        "grace_seconds": values["grace"],
        "capture": None if values["pcap"] is None else str(values["pcap"]),
    }


# These are built in.
_PACINGS = "response-pacings"
_KINDS = {
    "scheduler": "schedulers",
    "congestion_control": "congestion-controls",
    "path_policy": "path-policies",
    "response_pacing": _PACINGS,
}
# What the compiled part takes as it is.
_AS_TYPED = (
    *("origin", "follow_symlinks", "hidden", "proxy_protocol", "port", "mtu"),
    *("scheduler", "congestion_control", "path_policy", "response_pacing"),
    *("max_connections", "max_per_address", "max_half_open", "metrics", "access_log_json", "offload"),
    "test_acknowledgments",
)


def _paths(listen: list[str] | None) -> list[ListenPath]:
    if not listen:
        raise InputError("--listen DEVICE=ADDRESS is needed, such as --listen srv1=10.99.0.1; once for each path")
    return [_path(text) for text in listen]


def _path(text: str) -> ListenPath:
    device, separator, rest = text.partition("=")
    address, comma, word = rest.partition(",")
    if not separator or not device or not address:
        raise InputError(f"--listen {text}: expected DEVICE=ADDRESS, such as srv1=10.99.0.1")
    if comma and word != METERED:
        raise InputError(f"--listen {text}: {unknown(word, [METERED])}")
    return device, address, bool(comma)


def _modules(values: Mapping[str, Any]) -> str | None:
    """Where modules of own algorithms are looked for first: next to the configuration file."""
    config: Path | None = values["config"]
    return None if config is None else str(config.absolute().parent)


def _check_names(values: Mapping[str, Any]) -> None:
    """Checks the names of algorithms; own ones are imported in a process of its own."""
    for name, kind in _KINDS.items():
        _check_name(f"--{name.replace('_', '-')}", kind, values[name])
    if check.names_own(values):
        own = [(kind, values[kind]) for kind in check.OWN_KINDS if ":" in values[kind]]
        modules = _modules(values)
        check.run(lambda: import_anew(own, None if modules is None else Path(modules)))


def _check_name(option: str, kind: str, name: str) -> None:
    if ":" in name and kind != _PACINGS:
        return  # It is imported later.
    known = [entry["name"] for entry in entries(kind)]
    if name not in known:
        raise InputError(f"{option}: {unknown(name, known)}")
