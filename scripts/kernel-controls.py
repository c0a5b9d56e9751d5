"""Measures coupled controls in the kernel with nginx, curl and Chromium, for docs/validation/kernel-controls.md.

    .venv/bin/python scripts/kernel-controls.py                                              prints the tables
    .venv/bin/python scripts/kernel-controls.py --write docs/validation/kernel-controls.md   replaces them in the page
    .venv/bin/python scripts/kernel-controls.py --only chunks --runs 2                       one of them

nginx serves on the kernel's Multipath TCP, without and with the controls of `anabranch kernel attach`, and with PUD.
The links are those of the shipped scenarios. It needs root and what `scripts/setup-live.sh` installs. The command
attaches the controls to ports of its own and detaches them at the end.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from page_tables import markdown, replaced
from scipy import stats

from anabranch import _core
from anabranch.live import browsing, counters
from anabranch.live.clients.watch import CLIENTS, Place

CONTROLS = ("lia", "olia", "balia", "mcc")
# `ip netns exec` and a pin below /sys do not go together: it mounts another /sys.
FILE_SYSTEM = Path("/run/anabranch-kernel-controls")
SERVER = "10.99.0.1"
FIRST_PORT = 8000
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

# The networks: shipped scenarios, and one-pipe's headline.
NETWORKS = ("dash/ratio-1-5", "mptcp-plus/500-500", "mptcp-plus/ratio-0.49", "mptcp-plus/ratio-0.87")
WATCHED_NETWORKS = ("dash/ratio-1-5", "mptcp-plus/ratio-0.49")
# The headline of docs/validation/one-pipe.md.
PIPE = "667 + 1333 kb/s"
_PIPE_LINKS = {
    name: {"rate": f"{kbps} kb/s", "rtt": "60 ms", "queue": "30 kB", "loss": "0.5 %"}
    for name, kbps in (("slow", 667), ("fast", 1333))
}


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


def _server_namespace() -> str:
    """That of the testbed of this process."""
    (name,) = [entry.name for entry in Path("/run/netns").glob(f"anabranch-{os.getpid()}-*server*")]
    return name


# How nginx gives a file to the kernel, by the size of each write: pages of 4 kB, its buffers, or all that a chunk has.
WRITES = {
    "pages": "sendfile on",
    "32 kB": "sendfile off",
    "whole chunks": "sendfile off; output_buffers 1 512k",
}


@dataclass(frozen=True)
class Spec:
    """A live run: a network, a sender, and what the client does."""

    network: str
    sender: Sender
    seed: int
    client: str
    size_kb: int = 0
    ladder: Path | None = None
    count: int = 0
    writes: str = WRITES["pages"]

    def scenario(self) -> _core.Scenario:
        """The links of the shipped scenario with a session for a program."""
        text = _core.shipped(self.network)
        links = _PIPE_LINKS if text is None else tomllib.loads(text)["link"]
        session: dict[str, Any] = {"video": {"kind": "bulk"}, "paths": list(links)}
        if self.ladder is not None:
            session["video"] = {"kind": "dash", "mpd": str(self.ladder / "manifest.mpd")}
            session["player"] = {"kind": "dash.js-5", "fast_switch": False}
        table = {
            "schema": 1,
            "duration": "400 s",
            "transport": {"kernel": "upstream"},
            "link": links,
            "session": [session],
        }
        return _core.load_dictionary(table, name=self.network, overrides=())


# Both subflows are established by then.
LOOK_AFTER_S = 2.0


def controls_of(namespace: str, port: int) -> list[str]:
    """The kernel's names of the congestion controls of the connections on a server's port."""
    command = inside(namespace, "ss", "-Htni", "sport", "=", f":{port}")
    words = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return sorted({name for name in words if name in {"cubic", "bbr", "reno"} or name.startswith("anabranch_")})


# A download takes about half a minute over 2 Mb/s.
FILE_KB = 6000
CHUNKS_KB = (100, 250)
CHUNKS = 60


def attempt(spec: Spec) -> dict[str, Any] | None:
    """Runs a client once; None if the links were late."""
    scenario = spec.scenario()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        root = spec.ladder or _files(folder, spec.size_kb)
        testbed = stack.enter_context(
            _core.Testbed(scenario, seed=spec.seed, server="kernel", client="program", record_events=False)
        )
        server = _server_namespace()
        if spec.sender.pud:
            stack.enter_context(path_use(server))
        stack.enter_context(nginx(server, root, spec.sender, folder, writes=spec.writes))
        found, viewed = _CLIENTS[spec.client](spec, testbed, folder)
        found["received"] = counters.received_bytes(testbed.namespace)
        found["counters"] = counters.mptcp(testbed.namespace)
        metrics = json.loads(testbed.finish("finished", viewed=viewed, notes=()).metrics_json)
    found["session"] = metrics["sessions"][0]
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
        time.sleep(LOOK_AFTER_S)
        used = controls_of(_server_namespace(), spec.sender.port)
        output, _ = process.communicate(timeout=390)
    assert process.returncode == 0, f"curl ended with {process.returncode}"
    rows = [line.split() for line in output.splitlines()]
    times = [float(row[0]) for row in rows]
    return {"times_s": times, "connections": sum(int(row[1]) for row in rows), "controls": used}, None


def _dashjs(spec: Spec, testbed: _core.Testbed, folder: Path) -> Seen:
    """The real dash.js plays the ladder."""
    assert spec.ladder is not None
    url = f"http://{SERVER}:{spec.sender.port}"
    place = Place(spec.scenario(), testbed.namespace, url, spec.ladder, folder, limit_s=180.0)
    watched = CLIENTS["dash.js"].watch(place, lambda _fraction: None)
    return {"notes": watched.notes}, watched.viewed


_CLIENTS: Mapping[str, Callable[[Spec, _core.Testbed, Path], Seen]] = {"curl": _curl, "dash.js": _dashjs}


def counted(spec: Spec) -> dict[str, Any]:
    """A run whose links were punctual, and how many were not."""
    for invalid in range(TRIES):
        if (found := attempt(spec)) is not None:
            return {**found, "invalid": invalid}
    raise SystemExit(f"error: {spec.network}: the links were late {TRIES} times; this machine is too busy")


def together(specs: Sequence[Spec], at_once: int) -> list[dict[str, Any]]:
    """Runs them, several at a time, each in a process of its own, which is what names its namespaces."""
    with ProcessPoolExecutor(at_once, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        return list(pool.map(counted, specs))


def interval(values: Sequence[float], digits: int = 2) -> str:
    """The mean with its 95 % interval (Student's t)."""
    count, mean = len(values), statistics.fmean(values)
    if count < 2:
        return f"{mean:.{digits}f}"
    half = float(stats.t.ppf(0.975, count - 1)) * statistics.stdev(values) / count**0.5
    return f"{mean:.{digits}f} ± {half:.{digits}f}"


def quantiles(values: Sequence[float]) -> str:
    """The nearest ranks at 50, 90 and 99 %, in ms."""
    ordered = sorted(values)
    ranks = (max(math.ceil(share * len(ordered)), 1) - 1 for share in (0.5, 0.9, 0.99))
    return " / ".join(f"{1000 * ordered[rank]:.0f}" for rank in ranks)


def _expected(sender: Sender) -> str:
    return f"anabranch_{sender.control}" if sender.control in CONTROLS else sender.control


def _check(specs: Sequence[Spec], found: Sequence[dict[str, Any]]) -> None:
    """Every connection had the control that its row names, and both subflows."""
    for spec, one in zip(specs, found, strict=True):
        assert one.get("controls", [_expected(spec.sender)]) == [_expected(spec.sender)], (spec, one["controls"])
        assert one["counters"].get("MPJoinSynAckRx", 0) >= 1, (spec, one["counters"])


def first_share(one: Mapping[str, Any]) -> float:
    """The part of the bytes that came on the first path."""
    received = one["received"]
    return float(received["ct1"] / sum(received.values()))


def downloads_table(runs: int, at_once: int) -> str:
    """The time of a file."""
    specs = [
        Spec(network, sender, seed, "curl", size_kb=FILE_KB)
        for seed in range(1, runs + 1)
        for network in NETWORKS
        for sender in SENDERS
    ]
    found = together(specs, at_once)
    _check(specs, found)
    rows = []
    for network in NETWORKS:
        for sender in SENDERS:
            own = [
                one for spec, one in zip(specs, found, strict=True) if (spec.network, spec.sender) == (network, sender)
            ]
            times, shares = [one["times_s"][0] for one in own], [100 * first_share(one) for one in own]
            rows.append([network, sender.name, interval(times), interval(shares, 0)])
    return markdown(("network", f"sender ({runs} runs)", f"{FILE_KB / 1000:g} MB, s", "on path 1, %"), rows, texts=2)


# Which senders get each size of writes.
_WRITTEN_BY = {"pages": SENDERS, "32 kB": SENDERS[:3], "whole chunks": SENDERS[:3]}


def chunks_table(runs: int, at_once: int) -> str:
    """The times of chunks."""
    keys = [(writes, sender) for writes, senders in _WRITTEN_BY.items() for sender in senders]
    specs = [
        Spec(PIPE, sender, seed, "curl", size_kb=size, count=CHUNKS, writes=WRITES[writes])
        for seed in range(1, runs + 1)
        for writes, sender in keys
        for size in CHUNKS_KB
    ]
    found = together(specs, at_once)
    _check(specs, found)
    rows = []
    for writes, sender in keys:
        row = [writes, sender.name]
        for size in CHUNKS_KB:
            own = [
                one
                for spec, one in zip(specs, found, strict=True)
                if (spec.writes, spec.sender, spec.size_kb) == (WRITES[writes], sender, size)
            ]
            # The first chunk waits for the second subflow and for slow start: a viewer's manifest.
            row.append(quantiles([time_s for one in own for time_s in one["times_s"][1:]]))
        rows.append(row)
    sizes = [f"{size} kB: p50 / p90 / p99, ms" for size in CHUNKS_KB]
    return markdown(("nginx writes", f"sender ({runs} runs of {CHUNKS} chunks)", *sizes), rows, texts=2)


# Browsers decode and draw: more of them would slow each other down on two processors.
BROWSERS_AT_ONCE = 3


def players_table(runs: int, at_once: int) -> str:
    """What a viewer of the real dash.js sees."""
    ladder = browsing.video(lambda _fraction: None)
    CLIENTS["dash.js"].prepare()
    specs = [
        Spec(network, sender, seed, "dash.js", ladder=ladder)
        for seed in range(1, runs + 1)
        for network in WATCHED_NETWORKS
        for sender in SENDERS
    ]
    found = together(specs, min(at_once, BROWSERS_AT_ONCE))
    _check(specs, found)
    rows = []
    for network in WATCHED_NETWORKS:
        for sender in SENDERS:
            own = [
                one for spec, one in zip(specs, found, strict=True) if (spec.network, spec.sender) == (network, sender)
            ]
            seen = [one["session"] for one in own]
            rows.append(
                [
                    network,
                    sender.name,
                    interval([one["mean_bitrate_bps"] / 1e6 for one in seen]),
                    interval([one["switches"] for one in seen], 1),
                    interval([one["stalls"] for one in seen], 1),
                    interval([100 * first_share(one) for one in own], 0),
                ]
            )
    head = ("network", f"sender ({runs} runs)", "bitrate, Mb/s", "switches", "stalls", "on path 1, %")
    return markdown(head, rows, texts=2)


class Pair:
    """A client and a server in namespaces of their own, and two links between them, which the kernel shapes."""

    def __init__(self, rate: str, queue: str) -> None:
        prefix = f"anabranch-{os.getpid()}-cost"
        self.client, self.server = f"{prefix}-client", f"{prefix}-server"
        for name in (self.client, self.server):
            subprocess.run(["ip", "netns", "add", name], check=True)
        for n in (1, 2):
            far = ["peer", "name", f"ct{n}", "netns", self.client]
            subprocess.run(["ip", "link", "add", f"st{n}", "netns", self.server, "type", "veth", *far], check=True)
        common = "sysctl -q net.ipv4.conf.all.rp_filter=0 net.ipv4.tcp_no_metrics_save=1; ip link set lo up\n"
        client, server = [common, "ip mptcp limits set subflows 2"], [common, f"ip addr add {SERVER}/32 dev lo"]
        for n in (1, 2):
            client.append(
                f"ip addr add 10.{n}.0.2/32 dev ct{n}; ip link set ct{n} up\n"
                f"ip rule add from 10.{n}.0.2 lookup 10{n}\n"
                f"ip route add {SERVER} dev ct{n} src 10.{n}.0.2 table 10{n}\n"
                f"ip mptcp endpoint add 10.{n}.0.2 dev ct{n} subflow"
            )
            server.append(
                f"ip link set st{n} up; ip route add 10.{n}.0.2 dev st{n} src {SERVER} congctl cubic\n"
                f"tc qdisc add dev st{n} root tbf rate {rate} burst 128k limit {queue}"
            )
        client.append(f"ip route add {SERVER} dev ct1 src 10.1.0.2")
        shell(self.server, "\n".join(server))
        shell(self.client, "\n".join(client))

    def remove(self) -> None:
        """Removes both."""
        for name in (self.client, self.server):
            subprocess.run(["ip", "netns", "delete", name], check=True)


# Reads from many connections until the time is over; prints the bytes.
_READERS = """
import resource, selectors, socket, sys, time
address, port, count, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
resource.setrlimit(resource.RLIMIT_NOFILE, (8192, 8192))
chosen = selectors.DefaultSelector()
for _ in range(count):
    one = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
    one.connect((address, port))
    one.sendall(b"GET /file HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n")
    one.setblocking(False)
    chosen.register(one, selectors.EVENT_READ)
buffer, total, until = bytearray(1 << 18), 0, time.monotonic() + seconds
while (left := until - time.monotonic()) > 0:
    for key, _ in chosen.select(left):
        total += key.fileobj.recv_into(buffer)
print(total)
"""

# The links together have two thirds of what one core of the kernel serves. Their queues hold some 40 ms.
COST_RATE, COST_QUEUE = "400mbit", "2mb"
COST_S = 10.0
CONNECTIONS = (1, 1000)
COST_SENDERS = (SENDERS[0], *SENDERS[2:6])


def _cpu_s(pids: Sequence[int]) -> float:
    """User and system time of processes and of threads of the kernel."""
    ticks = os.sysconf("SC_CLK_TCK")
    total = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / ticks


def _ksoftirqd() -> list[int]:
    """The threads in which the kernel handles packets that it could not handle at once."""
    found = subprocess.run(["pgrep", "-x", "ksoftirqd/[0-9]+"], capture_output=True, text=True, check=True)
    return [int(pid) for pid in found.stdout.split()]


def cost(sender: Sender, connections: int) -> tuple[float, float]:
    """CPU seconds per Gbit of nginx, its kernel and its client together; and goodput in Mb/s."""
    pair = Pair(COST_RATE, COST_QUEUE)
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "www").mkdir()
            with (folder / "www" / "file").open("wb") as file:
                file.truncate(1 << 33)
            with nginx(pair.server, folder / "www", sender, folder, writes=WRITES["pages"]) as master:
                children = Path(f"/proc/{master}/task/{master}/children").read_text("ascii").split()
                pids = [*map(int, children), *_ksoftirqd()]
                before, mine = _cpu_s(pids), resource.getrusage(resource.RUSAGE_CHILDREN)
                words = (sys.executable, "-c", _READERS, SERVER, sender.port, connections, COST_S)
                with subprocess.Popen(inside(pair.client, *words), stdout=subprocess.PIPE, text=True) as client:
                    time.sleep(COST_S / 2)
                    names = controls_of(pair.server, sender.port)
                    output, _ = client.communicate()
                after, used = _cpu_s(pids), resource.getrusage(resource.RUSAGE_CHILDREN)
    finally:
        pair.remove()
    assert names == [_expected(sender)], names
    gbit = int(output) * 8 / 1e9
    cpu_s = after - before + used.ru_utime + used.ru_stime - mine.ru_utime - mine.ru_stime
    return cpu_s / gbit, 1000 * gbit / COST_S


def cost_table(runs: int, _at_once: int) -> str:
    """What the programs cost beside the built-in CUBIC; one run at a time, in turn."""
    found: dict[tuple[int, Sender], list[tuple[float, float]]] = {}
    for _ in range(runs):
        for connections in CONNECTIONS:
            for sender in COST_SENDERS:
                found.setdefault((connections, sender), []).append(cost(sender, connections))
    rows = []
    for connections in CONNECTIONS:
        base = [cpu for cpu, _ in found[connections, COST_SENDERS[0]]]
        for sender in COST_SENDERS:
            own = found[connections, sender]
            ratios = [cpu / other for (cpu, _), other in zip(own, base, strict=True)]
            numbers = (interval([cpu for cpu, _ in own]), interval(ratios), interval([rate for _, rate in own], 0))
            rows.append([str(connections), sender.name, *numbers])
    head = ("connections", f"sender ({runs} runs)", "CPU s per Gbit", "over CUBIC's", "goodput, Mb/s")
    return markdown(head, rows, texts=2)


TABLES: Mapping[str, Callable[[int, int], str]] = {
    "downloads": downloads_table,
    "chunks": chunks_table,
    "players": players_table,
    "cost": cost_table,
}


@contextmanager
def attached() -> Iterator[None]:
    """All controls, each on its port, while it lasts."""
    FILE_SYSTEM.mkdir(exist_ok=True)
    try:
        for sender in SENDERS[2:6]:
            _core.kernel_attach(sender.control, port=sender.port, file_system=FILE_SYSTEM)
        yield
    finally:
        _core.kernel_detach(file_system=FILE_SYSTEM)
        subprocess.run(["umount", FILE_SYSTEM], check=True)
        FILE_SYSTEM.rmdir()


def main() -> None:
    """Measures, and prints or writes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", metavar="PAGE", type=Path, help="replace the tables in this page")
    parser.add_argument("--only", choices=tuple(TABLES), action="append", help="these tables (all)")
    parser.add_argument("--runs", type=int, default=3, help="of each row (3)")
    parser.add_argument("--at-once", type=int, default=6, help="live runs at a time (6)")
    parser.add_argument("--attached", action="store_true", help="the controls are attached to these ports already")
    options = parser.parse_args()
    with ExitStack() as stack:
        if not options.attached:
            stack.enter_context(attached())
        for name in options.only or TABLES:
            table = TABLES[name](options.runs, options.at_once)
            print(f"{name}\n\n{table}\n", flush=True)
            if options.write is not None:
                page = options.write.read_text(encoding="utf-8")
                options.write.write_text(replaced(page, name, table), encoding="utf-8")


if __name__ == "__main__":
    main()
