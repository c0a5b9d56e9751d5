"""Runs in real time: the command line from end to end. Skipped where the machine cannot run them."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import Run, require_live

pytestmark = pytest.mark.live

SCENARIO = """\
schema = 1
duration = "20 s"

[transport]
scheduler = "min-rtt"
congestion_control = "cubic"

[link.wifi]
rtt = "20 ms"
rate = "8 Mb/s"
queue = "40 kB"

[link.lte]
rtt = "50 ms"
rate = "4 Mb/s"
queue = "40 kB"

[[session]]
video = { kind = "bulk", size = "2 MB" }
"""


@pytest.fixture
def bulk(tmp_path: Path) -> Path:
    path = tmp_path / "bulk.toml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


def namespaces_of(pid: int) -> list[str]:
    folder = Path("/run/netns")
    return [p.name for p in folder.iterdir() if p.name.startswith(f"anabranch-{pid}-")] if folder.is_dir() else []


@pytest.mark.parametrize("server", ["anabranch", "kernel"])
def test_a_run_in_real_time_leaves_a_run_folder_like_a_simulation(
    launch: Run, anabranch: Run, answer: Callable[..., Any], bulk: Path, tmp_path: Path, server: str
) -> None:
    require_live("ip")
    done = launch("run", bulk, "--live", "--server", server, "--out", tmp_path / "live", "--pcap")
    assert done.returncode == 0, done.stderr
    assert "goodput" in done.stdout
    assert "in real time" in done.stdout
    metrics = json.loads((tmp_path / "live" / "metrics.json").read_text(encoding="utf-8"))
    assert (metrics["engine"], metrics["ended"]) == ("live", "finished")
    assert metrics["live"]["server"] == server
    simulated = answer("run", bulk)
    (real,), (model,) = metrics["sessions"], simulated["sessions"]
    # The same words, and the same bytes at the application.
    assert set(real) == set(model)
    assert set(real["subflows"][0]) == set(model["subflows"][0])
    assert real["bytes"] == model["bytes"]
    assert {f["path"] for f in real["subflows"]} == {"wifi", "lte"}
    assert all(f["bytes"] > 100_000 for f in real["subflows"])
    # What was not observed is null.
    assert real["reorder_delay_s"]["mean"] is None
    assert (real["path_switches"] is None) == (server == "kernel")
    for name in ("run.json", "session.png", "samples.parquet", "wifi.pcapng", "lte.pcapng"):
        assert (tmp_path / "live" / name).stat().st_size > 100
    compared = anabranch("compare", tmp_path / "live", tmp_path / "live")
    assert compared.returncode == 0, compared.stderr


def test_curl_downloads_what_the_scenario_says(launch: Run, bulk: Path) -> None:
    require_live("ip", "curl", "mptcpize")
    done = launch("run", bulk, "--live", "--client", "curl", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found["live"]["client"] == "curl"
    (session,) = found["sessions"]
    assert session["bytes"] > 2e6
    assert session["stalls"] is None
    assert len(session["subflows"]) == 2


def test_ctrl_c_takes_everything_down(bulk: Path, tmp_path: Path) -> None:
    require_live("ip")
    endless = bulk.read_text(encoding="utf-8").replace(', size = "2 MB"', "")
    bulk.write_text(endless, encoding="utf-8")
    command = [sys.executable, "-m", "anabranch", "run", str(bulk), "--live"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not namespaces_of(process.pid) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert namespaces_of(process.pid)
    time.sleep(0.5)
    os.kill(process.pid, signal.SIGINT)
    _, output = process.communicate(timeout=60)
    assert (process.returncode, "interrupted" in output, "Traceback" in output) == (130, True, False)
    assert namespaces_of(process.pid) == []
    assert list(tmp_path.iterdir()) == [bulk]


def test_wrong_words_are_refused_with_the_right_ones(anabranch: Run, bulk: Path) -> None:
    for options, expected in (
        (("--server", "kernel"), "--live"),
        (("--live", "--server", "apache"), "anabranch or kernel"),
        (("--live", "--client", "crul"), "did you mean `curl`?"),
        (("--live", "--content", "x"), "--content x"),
    ):
        done = anabranch("run", bulk, *options)
        assert (done.returncode, expected in done.stderr) == (2, True), done.stderr


def test_a_scenario_that_cannot_be_built_says_why(anabranch: Run, bulk: Path) -> None:
    require_live("ip")
    text = bulk.read_text(encoding="utf-8")
    bulk.write_text(
        text.replace("[[session]]", '[path.a]\nlinks = ["wifi"]\n[path.b]\nlinks = ["lte"]\nip = 6\n[[session]]')
    )
    done = anabranch("run", bulk, "--live")
    assert (done.returncode, "IPv4 and IPv6" in done.stderr) == (1, True), done.stderr


def test_without_root_the_remedy_is_named(bulk: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become nobody")
    # The user nobody may be unable to read the interpreter's own files, so everything is imported before.
    code = (
        "import os, sys\n"
        "from anabranch import _core\n"
        "from anabranch.runs import reading\n"
        "scenario = reading.load(sys.argv[1])\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "try:\n"
        "    _core.Testbed(scenario, seed=1, server='anabranch', client='model', record_events=False)\n"
        "except _core.LiveError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, bulk], cwd="/", capture_output=True, text=True, check=False)
    assert "run as root" in done.stdout, done.stderr


OWN = """\
import anabranch


class Own(anabranch.Scheduler):
    def decide(self, view, trigger):
        if self.ctx.now > {until}:
            raise ValueError("out of ideas")
        best = min(view.candidates, key=lambda subflow: subflow.srtt)
        self.ctx.emit("rtt", best.srtt, subflow=best.id)
        return best
"""


def test_a_scheduler_in_python_runs_in_real_time_and_tells_how_long_it_decides(
    launch: Run, bulk: Path, tmp_path: Path
) -> None:
    require_live("ip")
    (tmp_path / "mine.py").write_text(OWN.format(until=60), encoding="utf-8")
    own = ("run", bulk, "--live", "--set", "transport.scheduler=mine:Own")
    done = launch(*own, "--out", tmp_path / "live")
    assert done.returncode == 0, done.stderr
    assert "decisions in Python took" in done.stdout
    metrics = json.loads((tmp_path / "live" / "metrics.json").read_text(encoding="utf-8"))
    assert metrics["ended"] == "finished"
    assert metrics["sessions"][0]["bytes"] >= 2_000_000
    latency = metrics["live"]["decision_latency_us"]
    # A decision for each segment of 2 MB, of which the first 1400 bytes or so.
    assert latency["decisions"] > 1000
    assert 0 < latency["p50"] <= latency["p99"] <= latency["max"]
    assert (tmp_path / "live" / "notes.parquet").is_file()
    # An exception ends the run with the author's traceback, and leaves nothing behind.
    (tmp_path / "mine.py").write_text(OWN.format(until=0.5), encoding="utf-8")
    failed = launch(*own, "--out", tmp_path / "failed")
    assert failed.returncode == 1
    assert 'raise ValueError("out of ideas")' in failed.stderr
    assert re.search(r"`mine:Own` raised ValueError at 0\.[5-9]\d* s of the live run: out of ideas", failed.stderr)
    assert not (tmp_path / "failed").exists()
