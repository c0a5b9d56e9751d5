"""Live runs of nginx on the stock kernel's Multipath TCP, with and without coupled controls."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from anabranch import _core
from anabranch.live import counters
from anabranch.system.programs import ToolError

CONTROLS = ("lia", "olia", "balia", "mcc")
# `ip netns exec` and a pin below /sys do not go together: it mounts another /sys.
FILE_SYSTEM = Path("/run/anabranch-kernel-controls")
SERVER = "10.99.0.1"
# The testbed gives 8000 and the following ports to its own servers.
FIRST_PORT = 8100
TRIES = 3
START_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class Sender:
    """How nginx's kernel sends."""

    name: str
    control: str
    pud: bool = False

    @property
    def port(self) -> int:
        """Each control has its own, to which it is attached; what is not coupled has the first."""
        return FIRST_PORT + (1 + CONTROLS.index(self.control) if self.control in CONTROLS else 0)


SENDERS = (
    Sender("CUBIC, as it comes", "cubic"),
    Sender("BBR on each path", "bbr"),
    *(Sender(control.upper(), control) for control in CONTROLS),
    Sender("LIA and PUD", "lia", pud=True),
    Sender("MCC and PUD (MPTCP+)", "mcc", pud=True),
)

# The networks: shipped scenarios, one-pipe's headline, and recorded pairs.
NETWORKS = ("dash/ratio-1-5", "mptcp-plus/500-500", "mptcp-plus/ratio-0.49", "mptcp-plus/ratio-0.87")
# The headline of docs/validation/one-pipe.md.
PIPE = "667 + 1333 kb/s"
_PIPE_LINKS: dict[str, Any] = {
    name: {"rate": f"{kbps} kb/s", "rtt": "60 ms", "queue": "30 kB", "loss": "0.5 %"}
    for name, kbps in (("slow", 667), ("fast", 1333))
}
# Pairs of Aydin, Fund and Panwar (github.com/aydini/Multipath-Wireless-Link-Traces), and the factor of their rates. In
# the first the client leaves the WiFi's reach; scaled to what the ladder needs, it is 2.1 + 1.0 Mb/s in the mean. In
# the second both are poor, 1.5 + 2.2 Mb/s. Round trips and queues are assumptions: nothing was recorded about them.
RECORDED = {"recorded 13_1 x 0.1": ("13_1", 0.1), "recorded 21_1": ("21_1", 1.0)}
_RECORDED_RTTS = {"wifi": "30 ms", "cellular": "60 ms"}
_RECORDED_QUEUE = "64 kB"
# Two paths that meet at a bottleneck; its queue holds a bandwidth-delay product and a half.
SHARED = "one bottleneck"
_SHARED_LINK = {"rate": "4 Mb/s", "rtt": "60 ms", "queue": "45 kB"}


def links_of(network: str, recordings: Path | None) -> dict[str, Any]:
    """The table of links of a network."""
    if network == SHARED:
        return {"bottleneck": _SHARED_LINK, "a": {"rate": "unlimited"}, "b": {"rate": "unlimited"}}
    if network in RECORDED:
        assert recordings is not None
        pair, scale = RECORDED[network]
        return {
            kind: {
                "rate": {"trace": str(recordings / f"{pair}_{kind}.csv"), "unit": "B/s", "scale": scale},
                "rtt": rtt,
                "queue": _RECORDED_QUEUE,
            }
            for kind, rtt in _RECORDED_RTTS.items()
        }
    text = _core.shipped(network)
    links: dict[str, Any] = _PIPE_LINKS if text is None else tomllib.loads(text)["link"]
    return links


def inside(namespace: str, *words: object) -> list[str]:
    """A command in a namespace. `nsenter` leaves /sys as it is, where programs and cgroups are."""
    return ["nsenter", f"--net=/run/netns/{namespace}", *map(str, words)]


def shell(namespace: str, script: str) -> None:
    """Runs a script of the shell in a namespace."""
    subprocess.run(inside(namespace, "bash", "-euc", script), check=True, stdout=subprocess.DEVNULL)


# nginx takes over sockets that are open already (it replaces its own program so), and has no setting for their
# congestion control. For Multipath TCP Debian's `mptcpize enable nginx` does the same as the protocol here, 262.
_LAUNCH = """
import os, socket, sys
control, port, *command = sys.argv[1:]
server = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.setsockopt(socket.IPPROTO_TCP, 13, control.encode())
server.bind(("0.0.0.0", int(port)))
server.listen(4096)
os.set_inheritable(server.fileno(), True)
os.environ["NGINX"] = f"{server.fileno()};"
os.execvp(command[0], command)
"""


@contextmanager
def nginx(namespace: str, root: Path, sender: Sender, folder: Path, *, writes: str) -> Iterator[int]:
    """Runs nginx with Debian's settings on a Multipath TCP socket; the process id of its master.

    What is not coupled gets its control from the socket; a coupled one comes from `anabranch kernel attach`.
    """
    paths = "".join(
        f"{kind}_temp_path {folder}/{kind}; " for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off; worker_processes 1; user root; pid {folder}/pid; error_log {folder}/error.log;\n"
        "worker_rlimit_nofile 8192;\nevents { worker_connections 4096; }\n"
        f"http {{ {paths}access_log off; {writes}; tcp_nopush on; keepalive_requests 1000000;\n"
        "types { application/dash+xml mpd; video/mp4 mp4 m4s; }\n"
        f"server {{ listen {sender.port}; root {root}; }} }}\n",
        "utf-8",
    )
    control = "cubic" if sender.control in CONTROLS else sender.control
    launch = (sys.executable, "-c", _LAUNCH, control, sender.port)
    command = inside(namespace, *launch, "nginx", "-e", "stderr", "-c", folder / "nginx.conf")
    with (folder / "nginx.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        until = time.monotonic() + START_TIMEOUT_S
        # Its pid file is there once it has taken the socket over.
        while not (folder / "pid").exists():
            if time.monotonic() > until or process.poll() is not None:
                raise SystemExit(f"error: nginx does not listen: {(folder / 'nginx.log').read_text('utf-8')}")
            time.sleep(0.05)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


@contextmanager
def path_use(namespace: str) -> Iterator[None]:
    """PUD, as `anabranch kernel attach --path-policy pud` runs it, for the connections of a namespace."""
    shell(namespace, "sysctl -q net.mptcp.path_manager=userspace || sysctl -q net.mptcp.pm_type=1")
    script = (
        "import signal, sys; from anabranch import _core; signal.signal(signal.SIGTERM, signal.default_int_handler)\n"
        "try: _core.kernel_use_paths('pud', lambda *_: None, file_system=sys.argv[1])\n"
        "except KeyboardInterrupt: pass\n"
    )
    process = subprocess.Popen(inside(namespace, sys.executable, "-c", script, FILE_SYSTEM))
    time.sleep(1.0)
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def server_namespace() -> str:
    """That of the testbed of this process."""
    (name,) = [entry.name for entry in Path("/run/netns").glob(f"anabranch-{os.getpid()}-*server*")]
    return name


# How nginx gives a file to the kernel, by the size of each write: pages of 4 kB, its buffers, or all that a chunk has.
WRITES = {
    "pages": "sendfile on",
    "32 kB": "sendfile off",
    "whole chunks": "sendfile off; output_buffers 1 512k",
}


# The kernel TCP that shares the bottleneck has Linux's default, and begins with the connection.
_COMPETITOR = {"path": "a", "congestion_control": "cubic"}


@dataclass(frozen=True)
class Spec:
    """A live run: a network, a sender, and what the client does."""

    table: str
    network: str
    sender: Sender
    seed: int
    client: str
    size_kb: int = 0
    ladder: Path | None = None
    count: int = 0
    writes: str = "pages"
    recordings: Path | None = None

    def scenario(self) -> _core.Scenario:
        """The links of the network with a session for a program."""
        links = links_of(self.network, self.recordings)
        session: dict[str, Any] = {"video": {"kind": "bulk"}, "paths": list(links)}
        if self.ladder is not None:
            session["video"] = {"kind": "dash", "mpd": str(self.ladder / "manifest.mpd")}
            session["player"] = {"kind": "dash.js-5", "fast_switch": False}
        table: dict[str, Any] = {
            "schema": 1,
            "duration": "400 s",
            "transport": {"kernel": "upstream"},
            "link": links,
            "session": [session],
        }
        if self.network == SHARED:
            table["path"] = {name: {"links": [name, "bottleneck"]} for name in ("a", "b")}
            session["paths"] = ["a", "b"]
            table["traffic"] = [_COMPETITOR]
        return _core.load_dictionary(table, name=self.network, overrides=())

    def record(self) -> dict[str, Any]:
        """What names the run where it is kept."""
        names = {"table": self.table, "network": self.network, "sender": self.sender.name, "seed": self.seed}
        return {**names, "size_kb": self.size_kb, "writes": self.writes}


# Both subflows are established by then, unless a recorded link carries nothing so long.
LOOK_AFTER_S = 2.0


def controls_of(namespace: str, port: int) -> list[str]:
    """The kernel's names of the congestion controls of the connections on a server's port."""
    command = inside(namespace, "ss", "-Htni", "sport", "=", f":{port}")
    words = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return sorted({name for name in words if name in {"cubic", "bbr", "reno"} or name.startswith("anabranch_")})


# When clients begin, after the links' traces: nginx, PUD and the testbed are ready by then, so that every run meets the
# same part of a recording.
BEGIN_S = 10.0

# What is kept of a viewer's metrics.
_KEPT = ("mean_bitrate_bps", "switches", "stalls", "stall_s", "startup_s", "played_s", "qoe_linear_per_segment")


class LateError(Exception):
    """A client would have begun later than others."""


def attempt(spec: Spec) -> dict[str, Any] | None:
    """Runs a client once; None if the links were late."""
    scenario = spec.scenario()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        root = spec.ladder or _files(folder, spec.size_kb)
        testbed = stack.enter_context(
            _core.Testbed(scenario, seed=spec.seed, server="kernel", client="program", record_events=False)
        )
        server = server_namespace()
        if spec.sender.pud:
            stack.enter_context(path_use(server))
        stack.enter_context(nginx(server, root, spec.sender, folder, writes=WRITES[spec.writes]))
        if (early_s := BEGIN_S - testbed.elapsed) < 0:
            raise LateError(f"the client was ready {-early_s:.1f} s late")
        time.sleep(early_s)
        found, viewed = _CLIENTS[spec.client](spec, testbed, folder)
        found["received"] = counters.received_bytes(testbed.namespace)
        found["joins"] = counters.mptcp(testbed.namespace).get("MPJoinSynAckRx", 0)
        metrics = json.loads(testbed.finish("finished", viewed=viewed, notes=()).metrics_json)
    if viewed is not None:
        found["session"] = {key: metrics["sessions"][0][key] for key in _KEPT}
    found["late_p99_s"] = metrics["live"]["lateness_s"]["p99"]
    return None if metrics["live"]["void"] else found


def _files(folder: Path, size_kb: int) -> Path:
    root = folder / "www"
    root.mkdir()
    (root / "file").write_bytes(os.urandom(size_kb * 1000))
    return root


Seen = tuple[dict[str, Any], _core.Viewed | None]
"""What a client reports, and what its viewer saw."""


def _curl(spec: Spec, testbed: _core.Testbed, _folder: Path) -> Seen:
    """A download, or chunks: one a second on one connection, or as soon as the one before is complete."""
    url = f"http://{SERVER}:{spec.sender.port}/file"
    options = [
        "--silent",
        "--show-error",
        "--fail",
        "--output",
        "/dev/null",
        "--write-out",
        "%{time_total} %{num_connects}\\n",
    ]
    if spec.count:
        options += ["--rate", "60/m"]
        url += f"?[1-{spec.count}]"
    command = inside(testbed.namespace, "mptcpize", "run", "curl", *options, url)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        used: list[str] = []
        while not used and process.poll() is None:
            time.sleep(LOOK_AFTER_S)
            used = controls_of(server_namespace(), spec.sender.port)
        output, _ = process.communicate(timeout=390)
    assert process.returncode == 0, f"curl ended with {process.returncode}"
    rows = [line.split() for line in output.splitlines()]
    times = [float(row[0]) for row in rows]
    return {"times_s": times, "connections": sum(int(row[1]) for row in rows), "controls": used}, None


# Slow start and the second subflow are over by then.
SETTLED_S = 30.0
SHARED_S = 60.0


def _beside_tcp(spec: Spec, testbed: _core.Testbed, _folder: Path) -> Seen:
    """An endless download, whose bottleneck carries a TCP, too: the rates of both, on the wire."""
    (competitor,) = [
        entry.name
        for entry in Path("/run/netns").glob(f"anabranch-{os.getpid()}-*client*")
        if entry.name != testbed.namespace
    ]
    url = f"http://{SERVER}:{spec.sender.port}/file?[1-1000]"
    command = inside(testbed.namespace, "mptcpize", "run", "curl", "--silent", "--fail", "--output", "/dev/null", url)

    def received() -> tuple[float, int, int]:
        both = [sum(counters.received_bytes(name).values()) for name in (testbed.namespace, competitor)]
        return time.monotonic(), both[0], both[1]

    with subprocess.Popen(command) as process:
        time.sleep(SETTLED_S)
        used = controls_of(server_namespace(), spec.sender.port)
        before = received()
        time.sleep(SHARED_S)
        after = received()
        assert process.poll() is None, f"curl ended with {process.returncode}"
        process.terminate()
    span_s = after[0] - before[0]
    own_bps, tcp_bps = ((after[i] - before[i]) * 8 / span_s for i in (1, 2))
    return {"own_bps": own_bps, "tcp_bps": tcp_bps, "controls": used}, None


def _dashjs(spec: Spec, testbed: _core.Testbed, folder: Path) -> Seen:
    """The real dash.js plays the ladder."""
    # Every run is a process of its own, and others need nothing of this.
    from anabranch.live.clients.watch import CLIENTS, Place

    assert spec.ladder is not None
    url = f"http://{SERVER}:{spec.sender.port}"
    place = Place(spec.scenario(), testbed.namespace, url, spec.ladder, folder, limit_s=180.0)
    watched = CLIENTS["dash.js"].watch(place, lambda _fraction: None)
    return {"notes": watched.notes}, watched.viewed


_CLIENTS: Mapping[str, Callable[[Spec, _core.Testbed, Path], Seen]] = {
    "curl": _curl,
    "curl beside a TCP": _beside_tcp,
    "dash.js": _dashjs,
}


def counted(spec: Spec) -> dict[str, Any]:
    """A run whose links were punctual, what names it, and the machine's load; how many were not punctual, or failed."""
    reasons = []
    for invalid in range(TRIES):
        try:
            found = attempt(spec)
        except (LateError, ToolError, subprocess.TimeoutExpired) as error:
            reasons.append(str(error))
            continue
        if found is not None:
            return {**spec.record(), **found, "invalid": invalid, "load": round(os.getloadavg()[0], 1)}
        reasons.append("the links were late")
    return {**spec.record(), "invalid": TRIES, "reasons": reasons}


def together(specs: Sequence[Spec], at_once: int) -> Iterator[dict[str, Any]]:
    """Runs them, several at a time, each in a process of its own, which is what names its namespaces."""
    with ProcessPoolExecutor(at_once, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        try:
            for done in as_completed([pool.submit(counted, spec) for spec in specs]):
                yield done.result()
        finally:
            # After an error nobody wants the runs that have not begun.
            pool.shutdown(cancel_futures=True)


def expected(sender: Sender) -> str:
    """The kernel's name of its control."""
    return f"anabranch_{sender.control}" if sender.control in CONTROLS else sender.control
