"""Makes one run of real players at `anabranch serve` or nginx, as root; `anabranch reproduce` starts it.

    python viewers.py '{"case": "four viewers", "server": "`serve`, LIA, `levels`", "seed": 1}'

The clients, the emulated links and the server's machine are namespaces of a testbed, whose own players never begin.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from criteria import FOUR, LEVELS, LEVELS_CMCD, NGINX, OFF, SEEN, WITH_CURL

from anabranch import _core, content
from anabranch.content.make import MANIFEST
from anabranch.experiments import outside
from anabranch.live import servers
from anabranch.live.clients import dashjs
from anabranch.system.programs import ToolError

# Of the ladder of the simulated viewers every third rate, so that a browser has seven encodings; small pictures, which
# it decodes in passing.
_RATES_BPS = (300_000, 600_000, 1_000_000, 1_500_000, 2_100_000, 3_000_000, 4_200_000)
_PICTURES = ((256, 144), (320, 180), (384, 216), (426, 240), (480, 270), (512, 288), (576, 324))
_SEGMENT_S, _DURATION_S = 2.0, 240.0
# Without start-up and end, from each viewer's own start.
_STATISTICS = {"from": "60 s", "to": "220 s"}
# A viewer who stalled for longer has not seen the video.
_LIMIT_S = _DURATION_S + 60.0
# People do not press play in the same instant.
_STAGGER_S = 7.0
# The testbed's own players would begin then.
_NEVER = {"start": "3000 s", "duration": "4000 s"}
# The response pacing of `serve`.
_PACINGS = {OFF: "off", LEVELS: "levels", LEVELS_CMCD: "levels"}
_SCENARIOS = {FOUR: ("viewers/four", 4), WITH_CURL: ("viewers/beside-tcp", 2)}

ADDRESS = "203.0.113.10"
"""The address of `anabranch serve`. The testbed's own server has another one."""
# curl's file outlasts every viewer.
_FILE, _FILE_BYTES = "file.bin", 1_000_000_000
_PORT = 80
_START_TIMEOUT_S = 30.0
_END_TIMEOUT_S = 30.0
_LOOK_EVERY_S = 0.1


def scenario_of(case: str) -> _core.Scenario:
    """The links of a shipped scenario, with a client for each program."""
    name, clients = _SCENARIOS[case]
    text = _core.shipped(name)
    assert text is not None, name
    table: dict[str, Any] = tomllib.loads(text)
    table.pop("traffic", None)
    (session,) = table["session"]
    table["duration"] = _NEVER["duration"]
    table["session"] = [{**session, "count": clients, "start": _NEVER["start"], "statistics": _STATISTICS}]
    return _core.load_dictionary(table, name=name, overrides=())


def _route(paths: int, clients: int) -> str:
    """The devices `srv1`, `srv2`, ... of the server, each behind the devices that end a path of a client."""
    script = ["sysctl -q -w net.ipv4.ip_forward=1"]
    for path in range(1, paths + 1):
        script += [
            f"ip tuntap add dev srv{path} mode tun",
            f"ip link set srv{path} up mtu 1500",
            f"sysctl -q -w net.ipv4.conf.srv{path}.rp_filter=0",
            f"ip route add {ADDRESS}/32 dev srv{path} table {200 + path}",
        ]
        for client in range(clients):
            script.append(f"ip rule add iif st{client * paths + path} to {ADDRESS} lookup {200 + path}")
    return "\n".join(script)


@contextmanager
def serving(namespace: str, root: Path, folder: Path, clients: int, pacing: str) -> Iterator[str]:
    """Runs `anabranch serve` in the server's namespace of a testbed, with two paths; its address.

    Raises:
        ToolError: It does not serve, or did not end in order.
    """
    servers.shell(namespace, _route(2, clients))
    options = ["--root", root, "--listen", f"srv1={ADDRESS}", "--listen", f"srv2={ADDRESS}", "--port", _PORT]
    # The emulator takes packets as they are on the network.
    options += ["--no-offload", "--follow-symlinks"]
    options += ["--scheduler", "min-rtt", "--congestion-control", "lia", "--response-pacing", pacing]
    log = folder / "serve.log"
    with log.open("wb") as output:
        command = servers.inside(namespace, sys.executable, "-m", "anabranch", "serve", *options)
        process = subprocess.Popen(command, stderr=output, stdout=output, start_new_session=True)
    try:
        until = time.monotonic() + _START_TIMEOUT_S
        while "serving " not in log.read_text("utf-8"):
            if time.monotonic() > until or process.poll() is not None:
                raise ToolError(f"anabranch serve does not serve: {log.read_text('utf-8')}")
            time.sleep(_LOOK_EVERY_S)
        yield ADDRESS
        process.send_signal(signal.SIGINT)
        if process.wait(_END_TIMEOUT_S):
            raise ToolError(f"anabranch serve failed: {log.read_text('utf-8')}")
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _watch(number: int, namespace: str, folder: Path, url: str, configuration: Mapping[str, Any]) -> dashjs.Log:
    time.sleep(number * _STAGGER_S)
    own = folder / str(number)
    own.mkdir()
    before = servers.inside(namespace, "mptcpize", "run")
    return dashjs.play(url, before=before, folder=own, limit_s=_LIMIT_S, configuration=configuration)


@contextmanager
def _nginx(namespace: str, root: Path, folder: Path) -> Iterator[str]:
    """Runs nginx on the kernel's Multipath TCP there; its address and port. A stock kernel has no coupled control."""
    with servers.nginx(namespace, root, folder, control="cubic", port=servers.FIRST_PORT, writes="pages"):
        yield f"{servers.ADDRESS}:{servers.FIRST_PORT}"


def _configuration(server: str) -> dict[str, Any]:
    return dashjs.configuration({"fast_switch": False, "cmcd": server == LEVELS_CMCD})


@contextmanager
def _download(namespace: str, address: str) -> Iterator[list[float]]:
    """A download over the first path, with plain TCP; its rate in Mb/s once it has ended."""
    rates: list[float] = []
    command = servers.inside(namespace, "curl", "--silent", "--output", "/dev/null", f"http://{address}/{_FILE}")
    command += ["--write-out", "%{speed_download}", "--max-time", str(int(_DURATION_S))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield rates
        finally:
            # Within its time; the player takes longer.
            assert process.stdout is not None
            rates.append(float(process.stdout.read() or 0.0) * 8e-6)


def attempt(labels: Mapping[str, Any]) -> dict[str, Any]:
    """The run that these labels name."""
    case, server = labels["case"], labels["server"]
    scenario = scenario_of(case)
    ladder = content.ladder(_RATES_BPS, segment_s=_SEGMENT_S, duration_s=_DURATION_S, resolutions=_PICTURES)
    video = content.cached(ladder, lambda _fraction: None)
    _, count = _SCENARIOS[case]
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        root = folder / "www"
        root.mkdir()
        (root / "video").symlink_to(video)
        with (root / _FILE).open("wb") as file:
            file.truncate(_FILE_BYTES)
        testbed = stack.enter_context(
            _core.Testbed(scenario, seed=labels["seed"], server="kernel", client="program", record_events=False)
        )
        (place,) = servers.namespaces("server")
        clients = _in_order(servers.namespaces("client"))
        if server == NGINX:
            address = stack.enter_context(_nginx(place, root, folder))
        else:
            address = stack.enter_context(serving(place, root, folder, count, _PACINGS[server]))
        viewers = clients[:-1] if case == WITH_CURL else clients
        if case == WITH_CURL:
            rates = stack.enter_context(_download(clients[-1], address))
        url = f"http://{address}/video/{MANIFEST}"
        with ThreadPoolExecutor(len(viewers)) as pool:
            playing = [
                pool.submit(_watch, number, client, folder, url, _configuration(server))
                for number, client in enumerate(viewers)
            ]
            logs = [each.result() for each in playing]
        metrics = json.loads(testbed.finish("finished", viewed=None, notes=()).metrics_json)
        found = _seen(logs, video / MANIFEST, scenario)
    if case == WITH_CURL:
        found["curl_mbps"] = rates[0]
    if metrics["live"]["void"]:
        raise outside.LateError("the links were late")
    return {**found, "late_p99_s": metrics["live"]["lateness_s"]["p99"]}


def _in_order(namespaces: Sequence[str]) -> list[str]:
    """Namespaces by the number of the first device in each: a testbed's clients have devices in their order."""

    def first(namespace: str) -> int:
        names = subprocess.run(
            servers.inside(namespace, "ls", "/proc/sys/net/ipv4/conf"), capture_output=True, text=True, check=True
        ).stdout.split()
        return min(int(device.removeprefix("ct")) for device in names if device.startswith("ct"))

    return sorted(namespaces, key=first)


def _seen(logs: Sequence[dashjs.Log], mpd: Path, scenario: _core.Scenario) -> dict[str, Any]:
    """What each viewer saw."""
    metrics = [json.loads(dashjs.viewed(log, mpd, scenario).metrics_json) for log in logs]
    if not all(log.over for log in logs):
        raise ToolError("a viewer did not see the end of the video")
    return {name: [float(each[name]) for each in metrics] for name in SEEN}


if __name__ == "__main__":
    outside.answer(attempt)
