"""Commands and files of the how-to pages that need real time or a network, as the pages have them."""

import json
import re
import shlex
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from conftest import Run, require_live
from test_guide import typed
from test_serve_page import Namespace, blocks, counters, network, serving

pytestmark = pytest.mark.live

HOW_TO = Path(__file__).parents[1] / "docs" / "how-to"
OWN_ALGORITHM = HOW_TO / "own-algorithm.md"
# Of 60 s each, but for the time that programs take to start and to be drawn.
RUN_TIMEOUT_S = 180
# The shortest of their videos has more.
_LEAST_BYTES = 100_000


def weighted() -> str:
    """The scheduler of the guide to own algorithms."""
    found = re.search(r"`weighted.py`:\n\n```python\n(.*?)^```$", OWN_ALGORITHM.read_text("utf-8"), re.M | re.S)
    assert found is not None
    return found[1]


@pytest.mark.slow
def test_every_live_run_of_the_pages_works(launch: Run, tmp_path: Path, ladder: Path) -> None:
    require_live("vlc", "chromium", "npm", "mptcpize", "ffmpeg")
    (tmp_path / "weighted.py").write_text(weighted(), "utf-8")
    (tmp_path / "ladder").symlink_to(ladder)
    commands = [command for page in sorted(HOW_TO.glob("*.md")) for command in typed(page) if "--live" in command]
    assert len(commands) == 6

    def ran(number: int) -> str:
        _, *arguments = shlex.split(commands[number])
        done = launch(*arguments, "--out", tmp_path / str(number), timeout=RUN_TIMEOUT_S)
        return f"{commands[number]}: {done.stderr}" if done.returncode else ""

    # Two at a time, because they wait for real time, mostly. Whether their links were late is no matter here.
    with ThreadPoolExecutor(2) as pool:
        assert [failed for failed in pool.map(ran, range(len(commands))) if failed] == []
    for number, command in enumerate(commands):
        folder = tmp_path / str(number)
        assert (folder / "session.png").stat().st_size > 10_000, command
        metrics = json.loads((folder / "metrics.json").read_text("utf-8"))
        assert metrics["sessions"][0]["bytes"] > _LEAST_BYTES, command
        assert len(list(folder.glob("*.pcapng"))) == (3 if "--pcap" in command else 0), command


def fetch(client: Namespace, site: Path) -> dict[str, int]:
    """Downloads the film as the page on serving does; the kernel's counters after it."""
    return counters(client.run(blocks()["client"], site))


def test_the_page_serves_its_own_scheduler(videos: Path) -> None:
    (videos / "weighted.py").write_text(weighted(), "utf-8")
    (command,) = (command for command in typed(OWN_ALGORITHM) if command.startswith("anabranch serve"))
    with network(False, videos) as (machine, client):
        machine.run(blocks()["one-uplink"] + "ip route replace 198.51.100.1/32 via 192.0.2.1 dev up1", videos)
        with serving(machine, f"exec {command}", videos):
            assert fetch(client, videos)["MPTcpExtMPJoinSynAckRx"] == 1


# What an installed machine has: the user, and the directories of the videos and of the log.
_INSTALLED = """
mkdir --parents log/anabranch
mount --bind . /srv
mount --bind log /var/log
cat /etc/passwd > passwd
echo anabranch:x:{user}:{user}::/:/bin/false >> passwd
mount --bind passwd /etc/passwd
"""
_USER = 64_999


def test_the_configuration_file_of_the_page(videos: Path) -> None:
    block = re.search(r"^```toml\n(.*?)^```$", (HOW_TO / "serve.md").read_text("utf-8"), re.M | re.S)
    assert block is not None
    (videos / "serve.toml").write_text(block[1], "utf-8")
    script = (
        _INSTALLED.format(user=_USER)
        + "anabranch serve --config serve.toml --setup > /dev/null\n"
        + "cat /sys/class/net/srv2/owner > owner\n"
        + "exec anabranch serve --config serve.toml"
    )
    (videos / "as-installed.sh").write_text(script, "utf-8")
    with network(True, videos) as (machine, client):
        with serving(machine, "exec unshare --mount bash -eu as-installed.sh", videos):
            assert fetch(client, videos)["MPTcpExtMPJoinSynAckRx"] == 1
            time.sleep(1.5)  # Metrics are at most a second old.
            assert "anabranch_connections_accepted_total 1\n" in machine.run(blocks()["Monitor"], videos)
        assert (videos / "owner").read_text("ascii").strip() == str(_USER)
    assert "GET /film.mp4" in (videos / "log" / "anabranch" / "access.log").read_text("utf-8")
