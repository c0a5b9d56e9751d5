"""`anabranch serve --response-pacing`: what the real dash.js is sent, and what another download is, in namespaces."""

import json
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from anabranch.live.clients import dashjs
from conftest import LADDER_BPS, LADDER_S, SERVER_PROGRAMS, dashjs_reporting, require_live
from test_serve_page import Namespace, blocks, network, serving

pytestmark = pytest.mark.live

SEGMENT_S = 2.0
SEGMENTS = round(LADDER_S / SEGMENT_S)
# Of the policy `sammy`: these multiples of the highest bitrate, once so many seconds are buffered.
FULL, EMPTY, START_S = 1.5, 3.0, 2.0
# The log's clock and the server's loop look at different moments.
CLOCKS_S = 0.25
LIMIT_S = 60.0
# The log's thread writes a line when the client has acknowledged the response.
LOGGED_WITHIN_S = 10.0
LOG = " --access-log-json --access-log "
METRICS = "curl --silent --fail http://127.0.0.1:9100/metrics\n"
MPD = 'curl --silent --show-error --fail --output /dev/null "http://$ADDRESS/ladder/manifest.mpd"\n'
FILM = 'curl --silent --show-error --output /dev/null --write-out "%{time_total}" "http://$ADDRESS/film.mp4"\n'


def media_of(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [line for line in lines if re.search(r"GET /ladder/\S+\.m4s", line["request"])]


def arrived(media: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the client has acknowledged in full. A player on a busy machine may give a request up, and repeat it."""
    return [line for line in media if line["acknowledged_s"] is not None]


def lines_of(log: Path) -> list[dict[str, Any]]:
    """The lines of the log, once all media segments and the film are in it."""
    until = time.monotonic() + LOGGED_WITHIN_S
    while True:
        lines = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
        media = arrived(media_of(lines))
        film = [line for line in lines if "/film.mp4" in line["request"] and line["complete"]]
        if len(media) >= SEGMENTS and film:
            return lines
        assert time.monotonic() < until, lines
        time.sleep(0.2)


def buffers(media: list[dict[str, Any]]) -> list[float]:
    """What the viewer had buffered at each request at least, in seconds: what had arrived, less the time since."""
    found, buffered, since = [], 0.0, 0.0
    for line in media:
        found.append(max(0.0, buffered - (line["time"] - since)))
        if line["acknowledged_s"] is not None:
            at = line["time"] + line["acknowledged_s"]
            buffered, since = max(0.0, buffered - (at - since)) + SEGMENT_S, at
    return found


def value(metrics: str, name: str) -> float:
    found = re.search(rf"^{name} (\S+)$", metrics, re.MULTILINE)
    assert found is not None, metrics
    return float(found[1])


def serve_and_play(videos: Path, ladder: Path, options: str, mode: str = "") -> tuple[list[dict[str, Any]], str]:
    """Plays the ladder, downloads the film, and returns the log and the metrics."""
    shutil.copytree(ladder, videos / "videos" / "ladder")
    log = videos / "access.log"
    page = blocks()
    script = page["Run the server"].rstrip().removesuffix("\\") + options + LOG + f"{log}\n"

    def play(client: Namespace) -> None:
        before = ("ip", "netns", "exec", client.name, "mptcpize", "run")
        url = "http://203.0.113.10/ladder/manifest.mpd"
        played = dashjs.play(url, before=before, folder=videos, limit_s=LIMIT_S, configuration=dashjs_reporting(mode))
        assert played.over, played.errors

    with network(True, videos) as (machine, client):
        machine.run(page["Devices and routes"], videos)
        with serving(machine, script, videos):
            if "sammy" in options:
                # What is media is known once the server has read the MPD, which takes time on a busy machine.
                client.run(page["Settings"] + MPD, videos)
                until = time.monotonic() + LOGGED_WITHIN_S
                while value(machine.run(METRICS, videos), "anabranch_pacing_presentations") < 1:
                    assert time.monotonic() < until, "the MPD was not read"
                    time.sleep(0.1)
            play(client)
            client.run(page["Settings"] + FILM, videos)
            return lines_of(log), machine.run(METRICS, videos)


@pytest.mark.parametrize("mode", ["", "query", "headers"])
def test_media_is_paced_and_nothing_else(videos: Path, ladder: Path, mode: str) -> None:
    require_live(*SERVER_PROGRAMS, "ffmpeg", "chromium", "npm")
    lines, metrics = serve_and_play(videos, ladder, " --response-pacing sammy", mode)
    media = media_of(lines)
    paced = [line for line in media if line["pace_bps"] is not None]
    # On a busy machine the player asks late, and has less than it takes to be paced.
    full = [line for line, buffer in zip(media, buffers(media), strict=True) if buffer >= START_S + CLOCKS_S]
    assert [line for line in full if line["pace_bps"] is None] == [], media
    assert arrived(paced), media
    top = max(LADDER_BPS)
    for line in paced:
        assert FULL * top <= line["pace_bps"] <= EMPTY * top, line
    for line in arrived(paced):
        # The endpoint makes up for a millisecond by which its host was late.
        assert line["acknowledged_s"] > 0.95 * 8 * line["sent_bytes"] / line["pace_bps"] - 0.01, line
    others = [line for line in lines if line not in media]
    assert [line for line in others if line["pace_bps"] is not None] == []
    if mode == "query":
        assert all("CMCD=" in line["request"] for line in media)
    assert value(metrics, "anabranch_pacing_media_responses_total") == len(media)
    assert value(metrics, "anabranch_pacing_paced_responses_total") >= len(paced)
    assert value(metrics, "anabranch_pacing_presentations") == 1
    assert value(metrics, "anabranch_pacing_connections") == 0, "nothing is under way"
    assert 'response_pacing="sammy"' in metrics


@pytest.mark.parametrize("options", ["", " --response-pacing off"])
def test_nothing_is_paced_by_default(videos: Path, ladder: Path, options: str) -> None:
    require_live(*SERVER_PROGRAMS, "ffmpeg", "chromium", "npm")
    lines, metrics = serve_and_play(videos, ladder, options)
    assert [line for line in lines if line["pace_bps"] is not None] == []
    # The links carry 80 Mb/s; the policy `sammy` would send no faster than this.
    rates = sorted(8 * line["sent_bytes"] / line["acknowledged_s"] for line in arrived(media_of(lines)))
    assert rates[len(rates) // 2] > EMPTY * max(LADDER_BPS), rates
    for name in ("media_responses_total", "paced_responses_total", "viewers", "connections", "presentations"):
        assert value(metrics, f"anabranch_pacing_{name}") == 0
    assert 'response_pacing="off"' in metrics
