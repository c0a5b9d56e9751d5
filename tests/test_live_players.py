"""Real players over real links and the kernel's Multipath TCP; skipped where the machine cannot run them."""

import contextlib
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from conftest import LADDER_BPS, LADDER_S, Run, require_live

pytestmark = pytest.mark.live

SCENARIO = """\
schema = 1
duration = "{limit} s"
[transport]
scheduler = "min-rtt"
congestion_control = "lia"
[link.wifi]
rtt = "30 ms"
rate = "3 Mb/s"
[link.lte]
rtt = "60 ms"
rate = "1500 kb/s"
[[session]]
paths = ["wifi", "lte"]
video = {video}
player = "{player}"
"""

# Both paths carry a good part of what the smallest of the videos below has.
_LEAST_BYTES = 100_000
# The kernel's counters of events that end Multipath TCP or contradict it.
_BROKEN = (
    "Fallback",
    "DSSNotMatching",
    "DSSCorruption",
    "DSSNoMatch",
    "InfiniteMap",
    "DataCsumErr",
    "MPFail",
    "HMacFailure",
    "NoTokenFound",
    "MPJoinRejected",
)


def _play(launch: Run, tmp_path: Path, client: str, content: Path) -> tuple[dict[str, Any], Path]:
    folder = tmp_path / "run"
    options = ["--live", "--client", client, "--content", content, "--out", folder, "--json"]
    done = launch("run", "scenario.toml", *options)
    assert done.returncode == 0, done.stderr
    metrics = json.loads(done.stdout)
    assert json.loads((folder / "player.json").read_text(encoding="utf-8"))["events"]
    _assert_multipath(metrics["live"])
    return metrics["sessions"][0], folder


def _assert_multipath(live: dict[str, Any]) -> None:
    counted = live["client_counters"]
    assert counted["MPCapableSYNACKRX"] >= 1, counted
    assert counted["MPJoinSynAckRx"] >= 1, counted
    assert not [name for name in counted if any(word in name for word in _BROKEN)], counted
    received = live["client_received_bytes"]
    assert len(received) == 2, received
    assert all(number > _LEAST_BYTES for number in received.values()), received


def test_dash_js_plays_a_ladder_over_two_paths(launch: Run, tmp_path: Path, ladder: Path) -> None:
    require_live("ffmpeg", "chromium", "npm", "mptcpize")
    video = f'{{ kind = "dash", mpd = "{ladder}/manifest.mpd" }}'
    text = SCENARIO.format(limit=90, video=video, player="dash.js-5")
    (tmp_path / "scenario.toml").write_text(text, encoding="utf-8")
    session, folder = _play(launch, tmp_path, "dash.js", ladder)
    assert {one["index"] for one in session["media_segments"]} == set(range(4)), "all of it was fetched"
    # Real time on a busy machine: stalls and dropped pictures may happen; that the video was played may not fail to.
    assert session["played_s"] == pytest.approx(LADDER_S, abs=2.5)
    low, high = LADDER_BPS
    # The mean is a quotient of floats.
    assert low - 1 <= session["mean_bitrate_bps"] <= high + 1
    assert session["bytes"] > LADDER_S * low / 8
    assert (folder / "player.png").read_bytes().startswith(b"\x89PNG")


def test_vlc_plays_a_progressive_video_over_two_paths(launch: Run, tmp_path: Path) -> None:
    require_live("ffmpeg", "cvlc", "mptcpize")
    film = ["--progressive", "mp4", "--rate", "1500 kb/s", "--resolutions", "320x180"]
    made = launch("content", "make", "--out", "film", "--duration", "6 s", *film)
    assert made.returncode == 0, made.stderr
    video = '{ kind = "progressive", size = "1500 kB", rate = "1500 kb/s" }'
    text = SCENARIO.format(limit=60, video=video, player="vlc")
    (tmp_path / "scenario.toml").write_text(text, encoding="utf-8")
    session, folder = _play(launch, tmp_path, "vlc", tmp_path / "film")
    assert session["startup_s"] is not None
    assert session["played_s"] == pytest.approx(6.0, abs=2.5)
    output = json.loads((folder / "player.json").read_text(encoding="utf-8"))
    assert output["over"]
    assert output["statistics"]["frames displayed"] > 100
    assert (folder / "vlc.log").stat().st_size > 0


def test_ctrl_c_takes_browser_and_testbed_down(tmp_path: Path, ladder: Path) -> None:
    require_live("ffmpeg", "chromium", "npm", "mptcpize")
    video = f'{{ kind = "dash", mpd = "{ladder}/manifest.mpd" }}'
    text = SCENARIO.format(limit=90, video=video, player="dash.js-5")
    (tmp_path / "scenario.toml").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "anabranch", "run", "scenario.toml", "--live", "--client", "dash.js"]
    process = subprocess.Popen(
        [*command, "--content", str(ladder)], cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    deadline = time.monotonic() + 60
    while not any("chromium" in name for name in _session(process.pid)):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, output = process.communicate(timeout=60)
    assert process.returncode == 130, output
    assert "interrupted" in output
    namespaces = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    assert f"anabranch-{process.pid}-" not in namespaces
    deadline = time.monotonic() + 20
    while left := _session(process.pid):
        assert time.monotonic() < deadline, left
        time.sleep(0.1)
    assert not (tmp_path / "runs").exists()


def _session(leader: int) -> list[str]:
    """The programs that run in a session of processes."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # Behind the name, which may contain anything: state, parent, group, session.
            name, _, rest = stat.read_text().partition("(")[2].rpartition(")")
            state, session = rest.split()[0], int(rest.split()[3])
            if session == leader and state != "Z":
                found.append(name)
    return found
