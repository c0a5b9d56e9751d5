"""`anabranch serve --listen ...,metered`: what a player with two paths is sent on each, in namespaces."""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from conftest import require_live
from test_serve_page import Namespace, blocks, network, serving

pytestmark = pytest.mark.live

PROGRAMS = ("tc", "setpriv", "mptcpize", "sysctl")
SEGMENT_S, SEGMENT_BYTES, SEGMENTS = 2.0, 2_000_000, 14
# The mark of `viewer-buffer` above which metered paths rest, and what the player keeps.
HIGH_S, FULL_S = 9.6, 12.0
# The player's clock and the server's estimate look at different moments.
CLOCKS_S = 1.0
LOGGED_WITHIN_S = 10.0
MPD = f"""\
<?xml version="1.0"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT{SEGMENTS * SEGMENT_S:g}S"
 minBufferTime="PT2S" profiles="urn:mpeg:dash:profile:isoff-live:2011"><Period><AdaptationSet mimeType="video/mp4">
<SegmentTemplate media="$Number$.m4s" duration="{SEGMENT_S:g}" timescale="1" startNumber="0"/>
<Representation id="v" bandwidth="8000000" width="1280" height="720" codecs="avc1.64001f"/>
</AdaptationSet></Period></MPD>
"""
# A player: it asks whenever less than a full buffer is left, plays from the first media segment on, and prints the
# buffer at each request.
PLAYER = """
import http.client, sys, time
reports, segments, segment_s, full_s = sys.argv[1] == "cmcd", int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
server = http.client.HTTPConnection("203.0.113.10", timeout=20)
def get(path, headers={}):
    server.request("GET", path, headers=headers)
    answer = server.getresponse()
    answer.read()
    assert answer.status == 200, answer.status
if not reports:
    get("/film/manifest.mpd")
    # The server reads it while it answers.
    time.sleep(1)
buffered, since = 0.0, time.monotonic()
def left():
    return max(0.0, buffered - (time.monotonic() - since))
for index in range(segments):
    time.sleep(max(0.0, left() - full_s))
    at_request = left()
    cmcd = {"CMCD-Object": f"d={1000 * segment_s:.0f},ot=v", "CMCD-Request": f"bl={100 * round(10 * at_request)}"}
    get(f"/film/{index}.m4s", cmcd if reports else {})
    buffered, since = left() + segment_s, time.monotonic()
    print(at_request, flush=True)
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A directory with a film of media segments of equal sizes."""
    require_live(*PROGRAMS)
    film = tmp_path / "videos" / "film"
    film.mkdir(parents=True)
    (film / "manifest.mpd").write_text(MPD, "utf-8")
    (film / "0.m4s").write_bytes(os.urandom(SEGMENT_BYTES))
    for index in range(1, SEGMENTS):
        os.link(film / "0.m4s", film / f"{index}.m4s")
    (tmp_path / "player.py").write_text(PLAYER, "utf-8")
    return tmp_path


def media_of(log: Path) -> list[dict[str, Any]]:
    """The lines of the log on media, once there are all."""
    until = time.monotonic() + LOGGED_WITHIN_S
    while True:
        lines = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
        media = [line for line in lines if ".m4s" in line["request"]]
        if len(media) == SEGMENTS:
            return media
        assert time.monotonic() < until, lines
        time.sleep(0.1)


def shares(site: Path, machine: Namespace, client: Namespace, *, metered: bool, mode: str) -> tuple[float, float]:
    """The second path's share of what a player is sent: while its buffer is short, and while it is long."""
    log = site / "access.log"
    script = blocks()["metered"].rstrip() + f" --access-log-json --access-log {log}\n"
    with serving(machine, script if metered else script.replace(",metered", ""), site):
        play = f"exec mptcpize run {sys.executable} player.py {mode} {SEGMENTS} {SEGMENT_S} {FULL_S}"
        buffers = [float(text) for text in client.run(play, site).split()]
        media = media_of(log)
    bytes_of = [[path["bytes"] for path in line["paths"]] for line in media]

    def share(sent: list[list[int]]) -> float:
        assert len(sent) >= 2, buffers
        return sum(second for _, second in sent) / sum(map(sum, sent))

    short = [sent for sent, buffer in zip(bytes_of, buffers, strict=True) if buffer < HIGH_S - CLOCKS_S - SEGMENT_S]
    long = [sent for sent, buffer in zip(bytes_of, buffers, strict=True) if buffer > HIGH_S + CLOCKS_S]
    return share(short), share(long)


@pytest.mark.parametrize(("metered", "mode"), [(True, "cmcd"), (True, "mpd"), (False, "cmcd")])
def test_a_metered_path_rests_while_the_buffer_is_long(site: Path, metered: bool, mode: str) -> None:
    with network(True, site) as (machine, client):
        machine.run(blocks()["Devices and routes"], site)
        short, long = shares(site, machine, client, metered=metered, mode=mode)
    assert short > 0.1, (short, long)
    assert long < 0.01 if metered else long > 0.1, (short, long)


def test_the_kernel_tells_clients_of_a_mobile_network_by_their_addresses(site: Path) -> None:
    page = blocks()
    with network(False, site) as (machine, client):
        back = "ip route replace 198.51.100.1/32 via 192.0.2.1 dev up1"
        machine.run(page["one-uplink"] + page["mobile-clients"] + back, site)
        short, long = shares(site, machine, client, metered=True, mode="cmcd")
    assert short > 0.1, (short, long)
    assert long < 0.01, (short, long)
