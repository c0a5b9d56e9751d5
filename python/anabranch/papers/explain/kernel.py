"""Makes a run in real time with a fault, the kernel on both ends, and explains its capture; `reproduce` starts it.

python kernel.py '{"kind": 0, "seed": 1}'

nginx serves and curl downloads over emulated links. The capture is made at the server, as `dumpcap` writes it. The
network and the fault are drawn from the seed. A fault counts where its run takes longer than one without it by
`LEAST_COST`. As root.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anabranch import _core
from anabranch.experiments import outside
from anabranch.live import servers
from anabranch.runs.captured import CaptureExplanation, explain_capture
from anabranch.system.programs import ToolError

PROGRAMS = ("curl", "dumpcap", "mptcpize", "nginx")
"""What the runs need besides the testbed."""

BEGIN_S = 2.5
"""When the download begins: nginx listens and the capture runs by then."""

LONGEST_S = 25.0
"""A run is ended after this."""

DOWNLOAD_S = 5.5
"""How long the links need for what is downloaded."""

CHUNK_BYTES = 500_000

LEAST_COST = 0.15
"""A fault has to be the reason for this part of the time of the download."""

MOST_DRAWS = 3
"""So often a fault is drawn again where it costs too little."""

_HEADERS_LEN = 200
_START_TIMEOUT_S = 10.0
_LOOK_EVERY_S = 0.02


Keys = Mapping[str, Any]


@dataclass(frozen=True)
class Network:
    """Links without a fault, drawn at random.

    Attributes:
        random: Where its numbers come from, and those of the faults.
        rates: Of both links, in Mb/s.
        rtts_ms: Of both, in ms.
    """

    random: random.Random
    rates: Mapping[str, float]
    rtts_ms: Mapping[str, float]

    @classmethod
    def drawn(cls, seed: int, kind: int) -> Network:
        """The network of a seed and a kind of fault."""
        numbers = random.Random(f"kernel faults {seed} {kind}")
        rates = {"wifi": numbers.uniform(6.0, 12.0), "lte": numbers.uniform(3.0, 5.0)}
        return cls(numbers, rates, {"wifi": numbers.uniform(20.0, 40.0), "lte": numbers.uniform(45.0, 80.0)})

    @property
    def file_bytes(self) -> int:
        """What is downloaded where it is a single file."""
        return round(sum(self.rates.values()) * 1e6 / 8 * DOWNLOAD_S)

    def scenario(self) -> dict[str, Any]:
        """The scenario without a fault."""
        longest = max(self.rtts_ms.values())
        return {
            "schema": 1,
            "duration": f"{BEGIN_S + LONGEST_S:g} s",
            "transport": {
                "kernel": "upstream",
                "congestion_control": "cubic",
                "receive_buffer": "4 MB",
                "send_buffer": "4 MB",
            },
            "link": {
                name: {
                    "rate": f"{rate:.2f} Mb/s",
                    "rtt": f"{self.rtts_ms[name]:.1f} ms",
                    # Twice what the longer round trip needs, so that a control keeps the link busy after a loss.
                    "queue": f"{max(60, 2 * rate * longest / 8):.0f} kB",
                }
                for name, rate in self.rates.items()
            },
            "path": {name: {"links": [name]} for name in self.rates},
            "session": [{"paths": list(self.rates), "video": {"kind": "bulk"}}],
        }


@dataclass(frozen=True)
class Kind:
    """A kind of fault of a link, an interface or a host.

    Attributes:
        name: What it is.
        causes: The causes that it may be named by.
        path: The client's address on the path that has it; absent where it concerns all.
        plant: Draws what plants it in a network.
        unharmed: The keys of the run without it, by those of the run with it.
        chunks: So many downloads, one every five seconds; a single one of a longer file where zero.
    """

    name: str
    causes: frozenset[str]
    path: str | None
    plant: Callable[[Network], Keys]
    unharmed: Callable[[Keys], Keys] = lambda _: {}
    chunks: int = 0


WIFI, LTE = "10.1.0.2", "10.2.0.2"
"""The client's addresses."""


def _percent(network: Network, least: float, most: float) -> str:
    return f"{network.random.uniform(least, most):.2f} %"


def _after(seconds: float, **what: Any) -> dict[str, Any]:
    return {"at": f"{BEGIN_S + seconds:.2f} s", **what}


def _queues(network: Network) -> Keys:
    return {f"link.{link}.queue": f"{network.random.randint(2, 4) * 1500} B" for link in network.rates}


def _cut(network: Network) -> Keys:
    begin, length = network.random.uniform(1.0, 2.0), network.random.uniform(4.0, 7.0)
    return {"event": [_after(begin, link="wifi", down=True), _after(begin + length, link="wifi", down=False)]}


def _slower(network: Network) -> Keys:
    rate = network.rates["wifi"] * network.random.uniform(0.08, 0.3)
    return {"event": [_after(network.random.uniform(1.0, 2.0), link="wifi", rate=f"{rate:.3f} Mb/s")]}


def _other_downloads(network: Network) -> Keys:
    start = BEGIN_S + network.random.uniform(0.5, 1.5)
    return {"traffic": [{"path": "wifi", "count": network.random.randint(2, 4), "start": f"{start:.2f} s"}]}


def _buffer(network: Network, which: str) -> Keys:
    return {f"transport.{which}_buffer": f"{network.random.randint(16, 30)} kB"}


def _late(network: Network) -> Keys:
    comes = _after(network.random.uniform(4.0, 8.0), path="lte", down=False)
    return {"event": [{"at": "0 s", "path": "lte", "down": True}, comes]}


def _jitter(network: Network) -> Keys:
    mean = f"{network.random.uniform(10.0, 25.0):.1f} ms"
    return {"link.wifi.down.jitter": {"kind": "gamma", "mean": mean, "shape": 1.0, "reorders": True}}


def _far(network: Network) -> Keys:
    rtt = network.random.uniform(300.0, 400.0)
    rtts = {f"link.{link}.rtt": f"{rtt:.0f} ms" for link in network.rates}
    return rtts | {f"link.{link}.queue": f"{2 * rate * rtt / 8:.0f} kB" for link, rate in network.rates.items()}


def _kind(name: str, causes: str, path: str | None, plant: Callable[[Network], Keys]) -> Kind:
    return Kind(name, frozenset(causes.split()), path, plant)


KINDS = (
    _kind("random loss", "loss-random", WIFI, lambda n: {"link.wifi.loss": _percent(n, 1.0, 4.0)}),
    _kind("random loss on the slower path", "loss-random", LTE, lambda n: {"link.lte.loss": _percent(n, 2.0, 5.0)}),
    _kind("short queues", "loss-queue", None, _queues),
    _kind("a cut link", "link-down loss-outage", WIFI, _cut),
    _kind("a link that becomes slow", "slower-or-shared", WIFI, _slower),
    _kind("downloads beside", "slower-or-shared", WIFI, _other_downloads),
    _kind("a small receive buffer", "receive-window", None, lambda n: _buffer(n, "receive")),
    _kind("a small send buffer", "send-buffer", None, lambda n: _buffer(n, "send")),
    _kind("a backup", "backup", LTE, lambda _: {"path.lte.backup": True}),
    _kind("an interface that comes late", "not-joined", LTE, _late),
    _kind("jitter that reorders", "reordering", WIFI, _jitter),
    Kind(
        name="a window that decays while idle",
        causes=frozenset(("idle-decay", "start-up")),
        path=None,
        plant=lambda n: {**_far(n), "transport.idle_restart": True},
        unharmed=lambda keys: {**keys, "transport.idle_restart": False},
        chunks=4,
    ),
)
"""The kinds of faults."""


def captured(network: Network, keys: Keys, chunks: int, folder: Path) -> Path:
    """Makes a run with a fault; the capture at its server."""
    folder.mkdir(parents=True)
    folder = folder.resolve()
    folder.chmod(0o755)
    root, file = folder / "www", folder / "server.pcapng"
    root.mkdir()
    with (root / "file").open("wb") as content:
        content.truncate(CHUNK_BYTES if chunks else network.file_bytes)
    overrides = [(key, _core.value_text(value, key)) for key, value in keys.items()]
    scenario = _core.load_dictionary(network.scenario(), name="kernel faults", overrides=overrides)
    seed = network.random.randrange(10**6)
    with ExitStack() as stack:
        testbed = stack.enter_context(
            _core.Testbed(scenario, seed=seed, server="kernel", client="program", record_events=False)
        )
        (place,), port = servers.namespaces("server"), servers.FIRST_PORT
        stack.enter_context(servers.nginx(place, root, folder, control="cubic", port=port, writes="pages"))
        stack.enter_context(_capture(place, file, port))
        time.sleep(max(0.0, BEGIN_S - testbed.elapsed))
        _download(testbed.namespace, f"http://{servers.ADDRESS}:{port}/file", chunks)
        # The last acknowledgments.
        time.sleep(0.2)
        measured = json.loads(testbed.finish("finished", viewed=None, notes=()).metrics_json)["live"]
    if measured["void"]:
        raise outside.LateError("the links were late")
    return file


def _download(namespace: str, url: str, chunks: int) -> None:
    options = ["--silent", "--output", "/dev/null", "--max-time", f"{LONGEST_S - 2.0:g}"]
    if chunks:
        options += ["--rate", "12/m"]
        url += f"?[1-{chunks}]"
    command = servers.inside(namespace, "mptcpize", "run", "curl", *options, url)
    subprocess.run(command, check=False, timeout=LONGEST_S)


@contextmanager
def _capture(namespace: str, file: Path, port: int) -> Iterator[None]:
    """Captures the packets of a port in a namespace."""
    options: Sequence[object] = ("-q", "-i", "any", "-s", _HEADERS_LEN, "-f", f"tcp port {port}", "-w", file)
    process = subprocess.Popen(servers.inside(namespace, "dumpcap", *options), stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + _START_TIMEOUT_S
        # It writes the file's header once it captures.
        while not file.exists() or not file.stat().st_size:
            if process.poll() is not None or time.monotonic() > until:
                raise ToolError("dumpcap does not capture")
            time.sleep(_LOOK_EVERY_S)
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()


def faulty(labels: Mapping[str, Any]) -> dict[str, Any]:
    """The run that these labels name: with the first drawn fault of a kind that costs enough."""
    kind, network = KINDS[labels["kind"]], Network.drawn(labels["seed"], labels["kind"])
    without: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        for attempt in range(MOST_DRAWS):
            keys = kind.plant(network)
            unharmed = kind.unharmed(keys)
            if str(unharmed) not in without:
                healthy = captured(network, unharmed, kind.chunks, Path(name) / f"{attempt}-without")
                without[str(unharmed)] = explain_capture(healthy).due_s
            found = explain_capture(captured(network, keys, kind.chunks, Path(name) / f"{attempt}"))
            if found.due_s - without[str(unharmed)] >= LEAST_COST * found.due_s:
                return row(kind, found)
    return {"name": kind.name, "planted": False}


def row(kind: Kind, found: CaptureExplanation) -> dict[str, Any]:
    """What was named, for the table. A path that waits for the one with the fault is not right."""
    return {
        "name": kind.name,
        "planted": True,
        "path": kind.path,
        "causes": [f"{cause} {100 * share:.1f} %" for cause, share in list(found.causes.items())[:3]],
        "capture": found.first_cause or "none",
        "capture_is_right": found.first_cause in kind.causes,
        "capture_path": found.first_path,
        "capture_path_is_right": kind.path in (None, found.first_path),
    }


if __name__ == "__main__":
    outside.answer(faulty)
