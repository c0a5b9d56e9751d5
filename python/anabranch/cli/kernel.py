"""`anabranch kernel`: coupled congestion control for servers that run on the kernel's own Multipath TCP."""

from __future__ import annotations

import signal
import sys
import time
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from anabranch import _core
from anabranch.cli.console import Exit, answer, echo, echo_json, fail
from anabranch.errors import InputError

if TYPE_CHECKING:
    from anabranch._core import _KernelAttachment, _KernelStatus

app = typer.Typer(
    help="Coupled congestion control in the stock kernel, by BPF, for servers that run on its Multipath TCP.",
    epilog="Example: anabranch kernel attach --congestion-control lia --port 443",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_FileSystem = Annotated[
    Path | None,
    typer.Option("--bpf-file-system", metavar="PATH", help="Where programs are kept; /sys/fs/bpf where absent."),
]
_Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]
_LEFT_OUT = (
    "this build of anabranch has no programs for the kernel, because clang or the headers of libelf were missing; "
    "apt-get install clang libelf-dev zlib1g-dev, and make build"
)


@app.callback()
def _requirements() -> None:
    if sys.platform != "linux":
        fail("the programs are for Linux", Exit.RUN_FAILED)


@app.command("check", epilog="Example: anabranch kernel check")
def check() -> None:
    """Print what the kernel must provide, what is missing and what helps. The exit code is 1 if something is."""
    checks = _core.kernel_checks()
    table = Table(box=None, show_header=False)
    for entry in checks:
        remedy = entry["remedy"]
        table.add_row("missing" if remedy else "ok", entry["name"], entry["found"], remedy or "")
    supported = _core.kernel_supported()
    table.add_row("ok" if supported else "missing", "programs", "in this build" if supported else _LEFT_OUT, "")
    answer(table)
    if not supported or any(entry["remedy"] for entry in checks):
        raise typer.Exit(Exit.RUN_FAILED)


@app.command("attach", epilog="Example: anabranch kernel attach --congestion-control olia --port 443")
def attach(
    control: Annotated[
        str, typer.Option("--congestion-control", metavar="NAME", help="lia, olia, balia or mcc.", show_default=False)
    ],
    cgroup: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="The cgroup (version 2) whose processes' connections are meant."),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=65535, help="Only connections that a server accepts on this port."),
    ] = None,
    max_subflows: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=2**24,
            help="Open subflows that can have it, 65536 where absent; further ones behave as NewReno.",
        ),
    ] = None,
    path_policy: Annotated[
        str | None,
        typer.Option(
            "--path-policy",
            metavar="NAME",
            help="Also stop using paths that this policy (pud) forbids, until Ctrl-C, which detaches.",
        ),
    ] = None,
    file_system: _FileSystem = None,
) -> None:
    """Give a coupled congestion control to the subflows of a cgroup or of a port, from now on.

    No process stays behind: the programs stay attached until `anabranch kernel detach`, or the next boot. Connections
    that are open already, plain TCP, and all other connections keep what they have.
    """
    if cgroup is None and port is None:
        raise InputError(
            "neither --cgroup nor --port: a control is never attached to all connections of a machine; "
            "--port 443 means what servers accept there"
        )
    _core.kernel_attach(control, cgroup=cgroup, port=port, max_subflows=max_subflows, file_system=file_system)
    answer(f"{control} is attached to new Multipath TCP connections {_of(cgroup, port)}.")
    if path_policy is None:
        answer("Watch them: anabranch kernel status. Undo it: anabranch kernel detach.")
        return
    try:
        _use_paths(path_policy, file_system)
    finally:
        _core.kernel_detach(control, file_system=file_system)


def _use_paths(policy: str, file_system: Path | None) -> None:
    """Runs a path policy until Ctrl-C or SIGTERM."""

    def ready() -> None:
        echo(f"{policy} decides on path use, until Ctrl-C.")

    def say(connection: int, local: str, remote: str, used: bool) -> None:
        echo(f"{connection:08x} {local} -> {remote}: {'used' if used else 'not used'}")

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with suppress(KeyboardInterrupt):
        _core.kernel_use_paths(policy, ready, say, file_system=file_system)


@app.command("detach", epilog="Example: anabranch kernel detach")
def detach(
    control: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The control; all where absent.", show_default=False)
    ] = None,
    file_system: _FileSystem = None,
) -> None:
    """Detach a control, or all, and what interrupted commands left behind.

    New connections get the kernel's default. Running ones keep the control until they close, which frees it.
    """
    detached = _core.kernel_detach(control, file_system=file_system)
    answer(f"Detached {', '.join(detached)}." if detached else "Nothing was attached.")
    draining = sum(_core.kernel_status(file_system=file_system)["draining_subflows"])
    if draining:
        answer(f"{draining} open subflows keep a detached control until they close.")


@app.command("status", epilog="Example: anabranch kernel status --watch 1")
def status(
    as_json: _Json = False,
    metrics: Annotated[
        bool, typer.Option("--metrics", help="Print metrics for Prometheus (its node exporter reads a text file).")
    ] = False,
    watch: Annotated[
        float | None, typer.Option("--watch", metavar="SECONDS", min=0.1, help="Print it again and again.")
    ] = None,
    file_system: _FileSystem = None,
) -> None:
    """Print what is attached, and the windows, round trips and losses of each connection's subflows."""
    if as_json and metrics:
        raise InputError("--json and --metrics: choose one")
    while True:
        found = _core.kernel_status(file_system=file_system)
        if as_json:
            echo_json(found, indent=None)
        elif metrics:
            echo("\n".join(metric_lines(found)))
        else:
            _print(found)
        if watch is None:
            return
        sys.stdout.flush()
        time.sleep(watch)


def _of(cgroup: Path | None, port: int | None) -> str:
    return " ".join(text for text in (f"on port {port}" if port else "", f"of {cgroup}" if cgroup else "") if text)


def _print(found: _KernelStatus) -> None:
    if not found["attachments"]:
        answer("Nothing is attached.")
    for attachment in found["attachments"]:
        where = _of(attachment["cgroup"], attachment["port"]) or "of a cgroup that was removed"
        open_subflows = len(attachment["subflows"])
        answer(f"{attachment['control']} {where}: {open_subflows} open subflows, {attachment['claimed']} in all")
        if attachment["degraded"]:
            answer(f"{attachment['degraded']} subflows found no free slot and behave as NewReno")
        if attachment["subflows"]:
            answer(_table(attachment), records=True)
    draining = sum(found["draining_subflows"])
    if draining:
        answer(f"{draining} open subflows keep a detached control until they close.")


def _table(attachment: _KernelAttachment) -> Table:
    table = Table(box=None)
    for heading in ("connection", "subflow", "local", "remote"):
        table.add_column(heading)
    for heading in ("window (packets)", "RTT (ms)", "in flight", "losses", "timeouts"):
        table.add_column(heading, justify="right")
    for token, subflows in groupby(attachment["subflows"], key=lambda subflow: subflow["connection"]):
        for position, subflow in enumerate(subflows):
            table.add_row(
                f"{token:08x}" if position == 0 else "",
                str(subflow["number"]),
                subflow["local"],
                subflow["remote"],
                f"{subflow['window_packets']:.1f}",
                f"{1e3 * subflow['rtt_s']:.1f}",
                str(subflow["in_flight"]),
                str(subflow["losses"]),
                str(subflow["timeouts"]),
            )
    return table


# Name, type, and help of each metric of an attachment.
_METRICS = (
    ("anabranch_kernel_subflows_open", "gauge", "Open subflows under the control."),
    ("anabranch_kernel_connections_open", "gauge", "Open connections under the control."),
    ("anabranch_kernel_subflows_total", "counter", "Subflows that got the control."),
    ("anabranch_kernel_subflows_degraded_total", "counter", "Subflows that found no slot and behave as NewReno."),
    ("anabranch_kernel_window_packets", "gauge", "Sum of the congestion windows of open subflows."),
)


def metric_lines(found: _KernelStatus) -> list[str]:
    """The status in the text format of Prometheus."""
    lines = []
    for name, kind, meaning in _METRICS:
        lines += [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]
        lines += [
            f'{name}{{congestion_control="{attachment["control"]}"}} {_value(name, attachment):g}'
            for attachment in found["attachments"]
        ]
    return lines


def _value(name: str, attachment: _KernelAttachment) -> float:
    subflows = attachment["subflows"]
    match name.removeprefix("anabranch_kernel_"):
        case "subflows_open":
            return len(subflows)
        case "connections_open":
            return len({subflow["connection"] for subflow in subflows})
        case "subflows_total":
            return attachment["claimed"]
        case "subflows_degraded_total":
            return attachment["degraded"]
        case _:
            return sum(subflow["window_packets"] for subflow in subflows)
