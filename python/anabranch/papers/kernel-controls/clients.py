"""Makes one run of a client of nginx on the stock kernel's Multipath TCP, as root; `anabranch reproduce` starts it.

    python clients.py '{"network": "dash/ratio-1-5", "sender": "LIA", "size_kb": 6000, "seed": 1}'

The links are those of the shipped scenarios, and recorded pairs in the folder `recordings` where the command runs.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from criteria import CHUNKS, PIPE, SHARED
from senders import FILE_SYSTEM, SENDERS, Sender

from anabranch import _core
from anabranch.experiments import outside
from anabranch.live import browsing, counters, servers
from anabranch.live.clients.watch import CLIENTS, Place

_PIPE_LINKS: dict[str, Any] = {
    name: {"rate": f"{kbps} kb/s", "rtt": "60 ms", "queue": "30 kB", "loss": "0.5 %"}
    for name, kbps in (("slow", 667), ("fast", 1333))
}
# Pairs of Aydin, Fund and Panwar (github.com/aydini/Multipath-Wireless-Link-Traces), and the factor of their rates. In
# the first the client leaves the WiFi's reach; scaled to what the ladder needs, it is 2.1 + 1.0 Mb/s in the mean. In
# the second both are poor, 1.5 + 2.2 Mb/s. Round trips and queues are assumptions: nothing was recorded about them.
_RECORDED = {"recorded 13_1 x 0.1": ("13_1", 0.1), "recorded 21_1": ("21_1", 1.0)}
_RECORDINGS = Path("recordings")
_RECORDED_RTTS = {"wifi": "30 ms", "cellular": "60 ms"}
_RECORDED_QUEUE = "64 kB"
# Two paths meet at the bottleneck; its queue holds a bandwidth-delay product and a half.
_SHARED_LINK = {"rate": "4 Mb/s", "rtt": "60 ms", "queue": "45 kB"}
# The kernel TCP that shares the bottleneck has Linux's default, and begins with the connection.
_COMPETITOR = {"path": "a", "congestion_control": "cubic"}


def links_of(network: str) -> dict[str, Any]:
    """The table of links of a network."""
    if network == SHARED:
        return {"bottleneck": _SHARED_LINK, "a": {"rate": "unlimited"}, "b": {"rate": "unlimited"}}
    if network in _RECORDED:
        pair, scale = _RECORDED[network]
        return {
            kind: {
                "rate": {"trace": str(_RECORDINGS.resolve() / f"{pair}_{kind}.csv"), "unit": "B/s", "scale": scale},
                "rtt": rtt,
                "queue": _RECORDED_QUEUE,
            }
            for kind, rtt in _RECORDED_RTTS.items()
        }
    if network == PIPE:
        return _PIPE_LINKS
    text = _core.shipped(network)
    assert text is not None, network
    links: dict[str, Any] = tomllib.loads(text)["link"]
    return links


@contextmanager
def path_use(namespace: str) -> Iterator[None]:
    """PUD, as `anabranch kernel attach --path-policy pud` runs it, for the connections of a namespace."""
    servers.shell(namespace, "sysctl -q net.mptcp.path_manager=userspace || sysctl -q net.mptcp.pm_type=1")
    script = (
        "import signal, sys; from anabranch import _core; signal.signal(signal.SIGTERM, signal.default_int_handler)\n"
        "try: _core.kernel_use_paths('pud', lambda *_: None, file_system=sys.argv[1])\n"
        "except KeyboardInterrupt: pass\n"
    )
    process = subprocess.Popen(servers.inside(namespace, sys.executable, "-c", script, FILE_SYSTEM))
    time.sleep(1.0)
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


@dataclass(frozen=True)
class Spec:
    """A run: a network, a sender, and what the client does.

    Attributes:
        network: Of `criteria.NETWORKS` and others there.
        sender: How nginx's kernel sends.
        seed: That of the links.
        size_kb: The size of a file; zero for a video.
        writes: How nginx gives files to the kernel.
        count: How many chunks there are; zero for a download.
    """

    network: str
    sender: Sender
    seed: int
    size_kb: int
    writes: str
    count: int

    @staticmethod
    def of(labels: Mapping[str, Any]) -> Spec:
        """What the labels of a run in the paper's tables say; those of chunks say how nginx writes."""
        return Spec(
            labels["network"],
            SENDERS[labels["sender"]],
            labels["seed"],
            labels.get("size_kb", 0),
            labels.get("writes", "pages"),
            CHUNKS if "writes" in labels else 0,
        )

    def scenario(self, ladder: Path | None) -> _core.Scenario:
        """The links of the network with a session for a program."""
        links = links_of(self.network)
        session: dict[str, Any] = {"video": {"kind": "bulk"}, "paths": list(links)}
        if ladder is not None:
            session["video"] = {"kind": "dash", "mpd": str(ladder / "manifest.mpd")}
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


# Both subflows are established by then, unless a recorded link carries nothing so long.
LOOK_AFTER_S = 2.0
# When clients begin, after the links' traces: nginx, PUD and the testbed are ready by then, so that every run meets the
# same part of a recording.
BEGIN_S = 10.0
# What is kept of a viewer's metrics.
_KEPT = ("mean_bitrate_bps", "switches", "stalls", "stall_s", "startup_s", "played_s", "qoe_linear_per_segment")


Row = dict[str, Any]


def attempt(spec: Spec, ladder: Path | None) -> Row:
    """Runs a client once."""
    scenario = spec.scenario(ladder)
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        root = ladder or _files(folder, spec.size_kb)
        testbed = stack.enter_context(
            _core.Testbed(scenario, seed=spec.seed, server="kernel", client="program", record_events=False)
        )
        (server,) = servers.namespaces("server")
        if spec.sender.pud:
            stack.enter_context(path_use(server))
        control, port = spec.sender.of_socket, spec.sender.port
        stack.enter_context(servers.nginx(server, root, folder, control=control, port=port, writes=spec.writes))
        if (early_s := BEGIN_S - testbed.elapsed) < 0:
            raise outside.LateError(f"the client was ready {-early_s:.1f} s late")
        time.sleep(early_s)
        found, viewed = _client(spec)(spec, testbed, folder, ladder)
        found |= {f"received.{link}": count for link, count in counters.received_bytes(testbed.namespace).items()}
        found["joins"] = counters.mptcp(testbed.namespace).get("MPJoinSynAckRx", 0)
        metrics = json.loads(testbed.finish("finished", viewed=viewed, notes=()).metrics_json)
    if viewed is not None:
        found |= {key: metrics["sessions"][0][key] for key in _KEPT}
    found["late_p99_s"] = metrics["live"]["lateness_s"]["p99"]
    if metrics["live"]["void"]:
        raise outside.LateError("the links were late")
    return found


def check(spec: Spec, row: Mapping[str, Any]) -> None:
    """The connection had the control that its row names, and both subflows."""
    assert row.get("controls", [spec.sender.expected]) == [spec.sender.expected], row
    assert row["joins"] >= 1, row


def _files(folder: Path, size_kb: int) -> Path:
    root = folder / "www"
    root.mkdir()
    (root / "file").write_bytes(os.urandom(size_kb * 1000))
    return root


Seen = tuple[Row, _core.Viewed | None]
"""What a client reports, and what its viewer saw."""
Client = Callable[[Spec, _core.Testbed, Path, Path | None], Seen]


def _client(spec: Spec) -> Client:
    if spec.network == SHARED:
        return _with_tcp
    return _curl if spec.size_kb else _dashjs


def _curl(spec: Spec, testbed: _core.Testbed, _folder: Path, _ladder: Path | None) -> Seen:
    """A download, or chunks: one a second on one connection, or as soon as the one before is complete."""
    url = f"http://{servers.ADDRESS}:{spec.sender.port}/file"
    options = ["--silent", "--show-error", "--fail", "--output", "/dev/null"]
    options += ["--write-out", "%{time_total} %{num_connects}\\n"]
    if spec.count:
        options += ["--rate", "60/m"]
        url += f"?[1-{spec.count}]"
    command = servers.inside(testbed.namespace, "mptcpize", "run", "curl", *options, url)
    (server,) = servers.namespaces("server")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        used: list[str] = []
        while not used and process.poll() is None:
            time.sleep(LOOK_AFTER_S)
            used = servers.controls_of(server, spec.sender.port)
        output, _ = process.communicate(timeout=390)
    assert process.returncode == 0, f"curl ended with {process.returncode}"
    rows = [line.split() for line in output.splitlines()]
    times = [float(row[0]) for row in rows]
    return {"times_s": times, "connections": sum(int(row[1]) for row in rows), "controls": used}, None


# Slow start and the second subflow are over by then.
SETTLED_S = 30.0
SHARED_S = 60.0


def _with_tcp(spec: Spec, testbed: _core.Testbed, _folder: Path, _ladder: Path | None) -> Seen:
    """An endless download, whose bottleneck carries a TCP, too: the rates of both, on the wire."""
    (competitor,) = [name for name in servers.namespaces("client") if name != testbed.namespace]
    (server,) = servers.namespaces("server")
    url = f"http://{servers.ADDRESS}:{spec.sender.port}/file?[1-1000]"
    fetch = ("mptcpize", "run", "curl", "--silent", "--fail", "--output", "/dev/null", url)

    def received() -> tuple[float, int, int]:
        both = [sum(counters.received_bytes(name).values()) for name in (testbed.namespace, competitor)]
        return time.monotonic(), both[0], both[1]

    with subprocess.Popen(servers.inside(testbed.namespace, *fetch)) as process:
        time.sleep(SETTLED_S)
        used = servers.controls_of(server, spec.sender.port)
        before = received()
        time.sleep(SHARED_S)
        after = received()
        assert process.poll() is None, f"curl ended with {process.returncode}"
        process.terminate()
    span_s = after[0] - before[0]
    own_bps, tcp_bps = ((after[i] - before[i]) * 8 / span_s for i in (1, 2))
    return {"own_bps": own_bps, "tcp_bps": tcp_bps, "controls": used}, None


def _dashjs(spec: Spec, testbed: _core.Testbed, folder: Path, ladder: Path | None) -> Seen:
    """The real dash.js plays the ladder."""
    assert ladder is not None
    url = f"http://{servers.ADDRESS}:{spec.sender.port}"
    place = Place(spec.scenario(ladder), testbed.namespace, url, ladder, folder, limit_s=180.0)
    playback = CLIENTS["dash.js"].watch(place, lambda _fraction: None)
    return {"notes": playback.notes}, playback.viewed


def run(labels: Mapping[str, Any]) -> Row:
    """Makes the run that these labels name."""
    spec = Spec.of(labels)
    ladder = None
    if not spec.size_kb:
        ladder = browsing.video(lambda _fraction: None)
        browsing.prepare()
    row = attempt(spec, ladder)
    check(spec, row)
    return row


if __name__ == "__main__":
    outside.answer(run)
