"""Runs in real time of the kernel's Multipath TCP on both ends, over emulated links with known faults.

    python tests/kernel_faults.py --keep captures

nginx serves and curl downloads. Each run has a capture at the server, as `dumpcap` writes it, and `anabranch explain
--pcap` explains it. The table of what was named is printed. As root, about two minutes.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anabranch import _core
from anabranch.live import servers
from anabranch.runs.captured import CaptureExplanation, explain_capture

PROGRAMS = ("curl", "dumpcap", "mptcpize", "nginx")
"""What the runs need beside the testbed."""

BEGIN_S = 2.5
"""When the download begins: nginx listens and the capture runs by then."""

LONGEST_S = 25.0
"""A run is ended after this."""

FILE_BYTES = 8_000_000
"""What is downloaded: about six seconds without a fault."""

CHUNK_BYTES = 700_000

_HEADERS_LEN = 200
_START_TIMEOUT_S = 10.0
_LOOK_EVERY_S = 0.02


@dataclass(frozen=True)
class KernelFault:
    """A fault of a link, an interface or a host.

    Attributes:
        kind: What it is.
        causes: The causes that it may be named by.
        keys: What plants it in `NETWORK`.
        chunks: So many downloads, one every five seconds; a single one of a longer file where zero.
    """

    kind: str
    causes: frozenset[str]
    keys: Mapping[str, Any]
    chunks: int = 0


NETWORK: Mapping[str, Any] = {
    "schema": 1,
    "duration": f"{BEGIN_S + LONGEST_S:g} s",
    "transport": {
        "kernel": "upstream",
        "congestion_control": "cubic",
        "receive_buffer": "4 MB",
        "send_buffer": "4 MB",
    },
    "link": {
        "wifi": {"rate": "8 Mb/s", "rtt": "30 ms", "queue": "80 kB"},
        "lte": {"rate": "4 Mb/s", "rtt": "60 ms", "queue": "80 kB"},
    },
    "path": {"wifi": {"links": ["wifi"]}, "lte": {"links": ["lte"]}},
    "session": [{"paths": ["wifi", "lte"], "video": {"kind": "bulk"}}],
}
"""The links without a fault."""


def _fault(kind: str, causes: str, keys: Mapping[str, Any], chunks: int = 0) -> KernelFault:
    return KernelFault(kind, frozenset(causes.split()), keys, chunks)


def _at(seconds: float, **what: Any) -> dict[str, Any]:
    return {"at": f"{BEGIN_S + seconds:g} s", **what}


_CUT = [_at(1.5, link="wifi", down=True), _at(6.5, link="wifi", down=False)]
_LATE = [{"at": "0 s", "path": "lte", "down": True}, _at(5.0, path="lte", down=False)]
_JITTER = {"kind": "gamma", "mean": "12 ms", "shape": 1.0, "reorders": True}
_FAR = {"link.wifi.rtt": "150 ms", "link.lte.rtt": "150 ms", "link.wifi.queue": "300 kB", "link.lte.queue": "150 kB"}

FAULTS = (
    _fault("random loss", "loss-random", {"link.wifi.loss": "2 %"}),
    _fault("random loss on the slower path", "loss-random", {"link.lte.loss": "3 %"}),
    _fault("short queues", "loss-queue", {"link.wifi.queue": "4500 B", "link.lte.queue": "4500 B"}),
    _fault("a cut link", "link-down", {"event": _CUT}),
    _fault("a link that becomes slow", "slower-or-shared", {"event": [_at(1.5, link="wifi", rate="1.2 Mb/s")]}),
    _fault("downloads beside", "slower-or-shared", {"traffic": [{"path": "wifi", "count": 3, "start": "4 s"}]}),
    _fault("a small receive buffer", "receive-window", {"transport.receive_buffer": "24 kB"}),
    _fault("a small send buffer", "send-buffer", {"transport.send_buffer": "24 kB"}),
    _fault("a backup", "backup", {"path.lte.backup": True}),
    _fault("an interface that comes late", "not-joined", {"event": _LATE}),
    _fault("jitter that reorders", "reordering", {"link.wifi.down.jitter": _JITTER}),
    _fault("a window that decays while idle", "idle-decay start-up", {**_FAR, "transport.idle_restart": True}, 3),
)
"""The faults."""


def captured(fault: KernelFault, folder: Path, *, seed: int = 1) -> Path:
    """Makes a run with a fault; the capture at its server."""
    folder = folder.resolve()
    folder.chmod(0o755)
    root, file = folder / "www", folder / "server.pcapng"
    root.mkdir()
    with (root / "file").open("wb") as content:
        content.truncate(CHUNK_BYTES if fault.chunks else FILE_BYTES)
    overrides = [(key, _core.value_text(value, key)) for key, value in fault.keys.items()]
    scenario = _core.load_dictionary(NETWORK, name=fault.kind, overrides=overrides)
    with ExitStack() as stack:
        testbed = stack.enter_context(
            _core.Testbed(scenario, seed=seed, server="kernel", client="program", record_events=False)
        )
        (place,), port = servers.namespaces("server"), servers.FIRST_PORT
        stack.enter_context(servers.nginx(place, root, folder, control="cubic", port=port, writes="pages"))
        stack.enter_context(_capture(place, file, port))
        time.sleep(max(0.0, BEGIN_S - testbed.elapsed))
        _download(testbed.namespace, f"http://{servers.ADDRESS}:{port}/file", fault.chunks)
        # The last acknowledgments.
        time.sleep(0.2)
        testbed.finish("finished", viewed=None, notes=())
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
                raise AssertionError("dumpcap does not capture")
            time.sleep(_LOOK_EVERY_S)
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()


def campaign(folder: Path) -> Iterator[tuple[KernelFault, CaptureExplanation]]:
    """Every fault, and the explanation of the capture of a run with it."""
    for number, fault in enumerate(FAULTS):
        own = folder / f"{number}"
        own.mkdir(parents=True)
        yield fault, explain_capture(captured(fault, own))


def main() -> None:
    """Prints what was named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="Where captures are kept.")
    given = parser.parse_args()
    right = 0
    with tempfile.TemporaryDirectory() as name:
        for fault, found in campaign(given.keep or Path(name)):
            right += found.first_cause in fault.causes
            causes = ", ".join(f"{cause} {100 * share:.1f} %" for cause, share in list(found.causes.items())[:3])
            print(f"{fault.kind:36} {found.first_cause in fault.causes!s:6} {causes}", flush=True)
    print(f"of {len(FAULTS)}: {right}")


if __name__ == "__main__":
    main()
