"""Makes one transfer from a server on the kernel's Multipath TCP, as root; `reproduce` starts it.

python transfers.py '{"network": "the same, 0.5 % loss", "server": "nginx", "seed": 1}'
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from criteria import (
    APACHE,
    APACHE_ALIKE,
    BEGIN_S,
    CHUNK_BYTES,
    CHUNKS,
    NETWORKS,
    NGINX,
    NGINX_ALIKE,
    PLAN,
    SECONDS,
    TESTBED,
)

from anabranch import _core
from anabranch.experiments import outside
from anabranch.live import servers
from anabranch.runs import reading

# The kernel's name of NewReno: a namespace may choose no other, and Apache takes the namespace's.
_CONTROL = "reno"
# Larger than what the fastest of the networks carries meanwhile.
_FILE_BYTES = 200_000_000


def live(network: str, server: str, seed: int) -> dict[str, Any]:
    """A transfer to curl."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        folder.chmod(0o755)
        root = folder / "www"
        root.mkdir()
        size = CHUNK_BYTES.get(network, _FILE_BYTES)
        with (root / "file").open("wb") as file:
            file.truncate(size)
        scenario = reading.load(PLAN.scenarios[0], NETWORKS[network])
        testbed = stack.enter_context(
            _core.Testbed(scenario, seed=seed, server="kernel", client="program", record_events=False)
        )
        url = f"{testbed.url}/bytes/{size}"
        (place,), port = servers.namespaces("server"), servers.FIRST_PORT
        if server != TESTBED:
            url = f"http://{servers.ADDRESS}:{port}/file"
        if server in {NGINX, NGINX_ALIKE}:
            writes = "pages" if server == NGINX else "whole chunks"
            own = servers.nginx(place, root, folder, control=_CONTROL, port=port, writes=writes)
            stack.enter_context(own)
        elif server in {APACHE, APACHE_ALIKE}:
            stack.enter_context(servers.apache(place, root, folder, port=port, defers=server == APACHE))
        time.sleep(max(0.0, BEGIN_S - testbed.elapsed))
        values = _fetch(testbed, url, chunks=network in CHUNK_BYTES)
        measured = json.loads(testbed.finish("finished", viewed=None, notes=()).metrics_json)["live"]
    if measured["void"] or not values:
        raise outside.LateError("the links were late" if values else "nothing arrived")
    return {"values": values, "late_p99_s": measured["lateness_s"]["p99"]}


def _fetch(testbed: _core.Testbed, url: str, *, chunks: bool) -> list[float]:
    """The times of chunks in seconds, or the goodput in Mb/s."""
    options = ["--silent", "--output", "/dev/null", "--write-out", "%{size_download} %{time_total}\\n"]
    if chunks:
        options += ["--rate", "60/m"]
        url += f"?[1-{CHUNKS}]"
    else:
        options += ["--max-time", str(SECONDS)]
    command = servers.inside(testbed.namespace, "mptcpize", "run", "curl", *options, url)
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=SECONDS + 60, check=False).stdout
    rows = [tuple(map(float, line.split())) for line in output.splitlines()]
    if chunks:
        # The first one waits for the second subflow and for slow start.
        return [seconds for _, seconds in rows[1:]]
    return [size * 8e-6 / SECONDS for size, _ in rows]


def transfer(labels: Mapping[str, Any]) -> dict[str, Any]:
    """The run that these labels name."""
    return live(labels["network"], labels["server"], labels["seed"])


if __name__ == "__main__":
    outside.answer(transfer)
