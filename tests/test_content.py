"""`anabranch content make`: what it refuses, what it leaves, and that players and the simulator can use it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import anabranch
from anabranch import content
from anabranch.results.metrics import SessionMetrics
from conftest import Run, require

SCENARIO = """\
schema = 1
duration = "20 s"
[transport]
[link.wifi]
rtt = "30 ms"
rate = "3 Mb/s"
[[session]]
video = { kind = "dash", mpd = "ladder/manifest.mpd" }
player = "dash.js-5"
"""


@pytest.mark.parametrize(
    ("arguments", "culprit"),
    [
        ([], "nothing to make"),
        (["--rates", "2 Mb/s, 1 Mb/s"], "rising rates"),
        (["--rates", "fast"], "--rates: "),
        (["--rates", "1 Mb/s", "--segment", "0.01 s"], "whole number of pictures"),
        (["--rates", "1 Mb/s", "--resolutions", "641x360"], "641x360"),
        (["--rates", "1 Mb/s", "--resolutions", "640x360,1280x720"], "one for each"),
        (["--rates", "1 Mb/s", "--duration", "0 s"], "a video of 0 s"),
        (["--rates", "1 Mb/s", "--fps", "none"], "--fps none"),
        (["--rate", "1 Mb/s"], "--progressive"),
        (["--progressive", "mp4"], "--rate"),
        (["--scenario", "bulk/one-path"], "no session watches a video"),
        (["--scenario", "dash/ratio-1-9"], "did you mean"),
    ],
)
def test_what_cannot_be_made_is_refused(anabranch: Run, tmp_path: Path, arguments: list[str], culprit: str) -> None:
    done = anabranch("content", "make", "--out", "made", *arguments)
    assert done.returncode == 2
    assert culprit in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_missing_program_is_named_with_its_package(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "anabranch",
        "content",
        "make",
        "--rates",
        "1 Mb/s",
        "--out",
        str(tmp_path / "made"),
    ]
    environment = {**os.environ, "PATH": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)
    assert (done.returncode, done.stderr.strip()) == (
        1,
        "error: ffmpeg is missing; on Debian and Ubuntu: apt install ffmpeg",
    )
    assert not list(tmp_path.iterdir())


def test_a_ladder_has_its_rates_and_drives_a_simulated_session(anabranch: Run, tmp_path: Path) -> None:
    require("ffmpeg")
    rates = ["--rates", "200 kb/s, 800 kb/s", "--resolutions", "320x240, 640x360"]
    film = ["--progressive", "mp4", "--rate", "500 kb/s"]
    done = anabranch("content", "make", "--out", "ladder", "--duration", "4 s", "--segment", "1 s", *rates, *film)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "ladder"
    about = json.loads((folder / "content.json").read_text(encoding="utf-8"))
    off = {one["rate_bps"]: one["measured_bps"] / one["rate_bps"] for one in about["renditions"]}
    assert sorted(off) == [200_000, 500_000, 800_000]
    assert all(0.9 <= part <= 1.1 for part in off.values()) or "was not reached" in done.stderr, off
    sizes = [(folder / f"media-1-{number:05}.m4s").stat().st_size for number in range(1, 5)]
    assert not (folder / "media-1-00005.m4s").exists()
    assert not list(tmp_path.glob(".ladder*"))
    # An index in front lets a player begin at once.
    assert b"moov" in (folder / "film.mp4").read_bytes()[:100]
    (tmp_path / "from-mpd.toml").write_text(SCENARIO, encoding="utf-8")
    session = _simulate(tmp_path)
    assert session["media_segments"] is not None
    assert [one["index"] for one in session["media_segments"]] == [0, 1, 2, 3]
    assert session["stalls"] == 0
    fetched = [one["bytes"] for one in session["media_segments"] if one["representation"] == 1]
    assert fetched
    assert set(fetched) <= set(sizes), "the simulator reads the real sizes from the MPD"
    again = anabranch("content", "make", "--out", "ladder", "--rates", "1 Mb/s")
    assert again.returncode == 2
    assert "something already" in again.stderr


def _simulate(tmp_path: Path) -> SessionMetrics:
    return anabranch.run(tmp_path / "from-mpd.toml").metrics["sessions"][0]


def test_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    require("ffmpeg")
    command = [sys.executable, "-m", "anabranch", "content", "make", "--out", "made", "--duration", "1 h"]
    process = subprocess.Popen([*command, "--rates", "1 Mb/s"], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob(".made-*/encoded-0.mp4")):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, output = process.communicate(timeout=60)
    assert process.returncode == 130, output
    assert "interrupted" in output
    assert not list(tmp_path.iterdir())


def test_a_scenario_s_content_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require("ffmpeg")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    plan = content.film(200_000, duration_s=1.0, resolution=(320, 180))
    folder = content.cached(plan)
    assert folder.is_relative_to(tmp_path)
    made = (folder / "film.mp4").stat()
    assert content.cached(plan) == folder
    assert (folder / "film.mp4").stat() == made
    other = content.cached(content.film(200_000, duration_s=1.5, resolution=(320, 180)))
    assert other != folder
