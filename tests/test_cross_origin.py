"""A reference player on a page of another server plays from `anabranch serve`, with the headers of CMCD."""

import re
import shutil
import time
from pathlib import Path

import pytest

from anabranch.live.clients import dashjs
from conftest import LADDER_S, SERVER_PROGRAMS, dashjs_reporting, require_live
from test_serve_page import blocks, network, serving

pytestmark = pytest.mark.live

LIMIT_S = 60.0
# The log's thread writes a line when the client has acknowledged the response.
LOGGED_WITHIN_S = 10.0


def test_a_page_of_another_server_plays_with_cmcd_in_headers(videos: Path, ladder: Path) -> None:
    require_live(*SERVER_PROGRAMS, "ffmpeg", "chromium", "npm")
    page = blocks()
    shutil.copytree(ladder, videos / "videos" / "ladder")
    log = videos / "access.log"
    script = page["Run the server"].rstrip().removesuffix("\\") + f" --access-log {log}\n"
    with network(True, videos) as (machine, client):
        machine.run(page["Devices and routes"], videos)
        with serving(machine, script, videos):
            before = ("ip", "netns", "exec", client.name, "mptcpize", "run")
            url = "http://203.0.113.10/ladder/manifest.mpd"
            played = dashjs.play(
                url,
                before=before,
                folder=videos,
                limit_s=LIMIT_S,
                configuration=dashjs_reporting("headers"),
                page="http://page.test/player/",
            )
            assert played.over, played.errors
            until = time.monotonic() + LOGGED_WITHIN_S
            while len(re.findall(r'"GET /ladder/\S+ HTTP/1.1" 200', lines := log.read_text("utf-8"))) < LADDER_S / 2:
                assert time.monotonic() < until, lines
                time.sleep(0.2)
    # The browser asked first, once for each file at most.
    assert re.search(r'"OPTIONS /ladder/\S+ HTTP/1.1" 204', lines), lines
