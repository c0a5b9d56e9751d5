"""The real dash.js in Chromium."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import tarfile
import tempfile
import time
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from anabranch import _core
from anabranch.errors import InputError
from anabranch.live.clients.browser import Browser, BrowserError
from anabranch.results.recording import Shown
from anabranch.system import places
from anabranch.system.programs import ToolError, find

VERSION = "5.2.1"
"""The release of dash.js that plays."""

# The digest of that release's archive in npm's registry, as the lock file of the tests of our rules has it.
_INTEGRITY = "sha512-axcJmLeJCTJMLUfQRErUJB1KOiU5iHF+DMLBc3FKeox1HPYtGUQlC6Xm5Mm6vhBUR3CHHLIPOqw0JDIqMtP+Dw=="
_MEMBER = "package/dist/modern/umd/dash.all.min.js"
_ASK_EVERY_S = 0.5

_RULES = (("throughputRule", "throughput"), ("bolaRule", "bola"))
_REPRESENTATIONS = ".//{*}Representation"
# Where an event's numbers have a bandwidth.
_BANDWIDTH_AT = {"requested": 2, "abandoned": 3, "appended": 1, "shown": 1}


@dataclass(frozen=True)
class Log:
    """What the page wrote down; times in seconds since the session began.

    Attributes:
        events: Time, kind and numbers, in the order of time, as ``_core.viewer_report`` takes them, but with the
            bandwidth (bit/s) of each representation.
        samples: Time, playing time, seconds buffered, bandwidth on screen, pictures shown, pictures dropped.
        errors: What went wrong.
        over: Whether the video was played to its end.
        version: The release of dash.js.
        end_s: When the log was read.
        began: When the session began, by ``time.monotonic``.
    """

    events: list[tuple[float, str, list[float]]]
    samples: list[list[float]]
    errors: list[str]
    over: bool
    version: str
    end_s: float
    began: float = 0.0


def library() -> Path:
    """dash.js as one file, fetched by npm the first time.

    Raises:
        ToolError: npm is missing or failed, or it is not the file that it should be.
    """
    cache = places.cache()
    file = cache / f"dashjs-{VERSION}.min.js"
    if file.is_file():
        return file
    npm = find("npm", "npm")
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        command = [npm, "pack", f"dashjs@{VERSION}", "--silent"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        archive = Path(folder) / f"dashjs-{VERSION}.tgz"
        if done.returncode != 0 or not archive.is_file():
            raise ToolError(f"npm could not fetch dash.js {VERSION}: {done.stderr.strip()}")
        digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
        if f"sha512-{digest}" != _INTEGRITY:
            raise ToolError(f"npm fetched something else than dash.js {VERSION}: its SHA-512 is {digest}")
        with tarfile.open(archive) as package:
            member = package.extractfile(_MEMBER)
            assert member is not None
            # A reader of the file must not find half of it while it is being written.
            partial = Path(folder) / file.name
            partial.write_bytes(member.read())
        partial.replace(file)
    return file


def configuration(player: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration of the page, from the player of a scenario.

    Args:
        player: The scenario's ``player`` table, times and rates with their units. What dash.js has no setting for (the
            rules of other players, thresholds of its own) is left out.

    Returns:
        ``settings``: those of dash.js; ``largest``: width and height of the largest pictures, or nothing.
    """
    buffer: dict[str, Any] = {}
    abr: dict[str, Any] = {}
    if "buffer" in player:
        buffer["bufferTimeDefault"] = _core.time_s(player["buffer"])
    if "buffer_at_top" in player:
        top_s = _core.time_s(player["buffer_at_top"])
        buffer |= {"bufferTimeAtTopQuality": top_s, "bufferTimeAtTopQualityLongForm": top_s}
    if "fast_switch" in player:
        buffer["fastSwitchEnabled"] = player["fast_switch"]
    for key, setting in (("initial_bitrate", "initialBitrate"), ("max_bitrate", "maxBitrate")):
        if key in player:
            abr[setting] = {"video": _core.rate_bps(player[key]) / 1000}
    rules = {rule: {"active": player["strategy"] in (name, "dynamic")} for rule, name in _RULES if "strategy" in player}
    if rules:
        abr["rules"] = rules
    largest = str(player["max_resolution"]).split("x") if "max_resolution" in player else []
    streaming: dict[str, Any] = {"buffer": buffer, "abr": abr}
    if "cmcd" in player:
        streaming["cmcd"] = {"enabled": player["cmcd"]}
    return {"settings": {"streaming": streaming}, "largest": [int(side) for side in largest]}


def viewed(log: Log, mpd: Path, scenario: _core.Scenario | None = None) -> _core.Viewed:
    """What the viewer saw, as metrics of a session.

    Args:
        log: What the page wrote down.
        mpd: The MPD that was played.
        scenario: Where the statistics' window and weights come from; all of the time and the usual ones where absent.

    Raises:
        InputError: The log does not belong to the MPD.
    """
    content = mpd.read_bytes()
    rates = {int(element.get("bandwidth", 0)) for element in ElementTree.fromstring(content).findall(_REPRESENTATIONS)}
    ranks = {float(rate): float(rank) for rank, rate in enumerate(sorted(rates))}
    events = []
    for time_s, kind, numbers in log.events:
        position = _BANDWIDTH_AT.get(kind)
        if position is not None and numbers[position] not in ranks:
            raise InputError(f"{mpd}: it has no representation of {numbers[position]} b/s, which was played")
        ranked = [ranks[number] if at == position else number for at, number in enumerate(numbers)]
        events.append((time_s, kind, ranked))
    return _core.viewer_report(events, end_s=log.end_s, mpd=(str(mpd), content), scenario=scenario)


def on_screen(log: Log, mpd: Path) -> tuple[Shown, ...]:
    """Which representations were on screen, one after the other; times in seconds since the session began."""
    elements = ElementTree.parse(mpd).getroot().findall(_REPRESENTATIONS)
    sizes = {float(one.get("bandwidth", 0)): f"{one.get('width')}x{one.get('height')}" for one in elements}
    changes = [(time_s, numbers[1]) for time_s, kind, numbers in log.events if kind == "shown"]
    changes = [change for at, change in enumerate(changes) if at == 0 or changes[at - 1][1] != change[1]]
    over = next((time_s for time_s, kind, _ in log.events if kind == "ended"), log.end_s)
    ends = [time_s for time_s, _ in changes[1:]] + [over]
    return tuple(Shown(at, end, rate, sizes[rate]) for (at, rate), end in zip(changes, ends, strict=False))


def play(
    url: str,
    *,
    before: Sequence[str],
    folder: Path,
    limit_s: float,
    configuration: Mapping[str, Any] | None = None,
    page: str | None = None,
    progress: Callable[[float], object] = lambda _fraction: None,
) -> Log:
    """Plays an MPD, and takes a screenshot of the page (``player.png``) at the end.

    Args:
        url: The MPD's address.
        before: The command that runs Chromium where it should run, such as ``ip netns exec NAME mptcpize run``.
        folder: Where the screenshot and Chromium's own log go.
        limit_s: The session is cut off after this time.
        configuration: From `configuration`; dash.js's own defaults where absent.
        page: The address of the page, such as ``http://page.test/player/``; one on the MPD's own server where absent.
        progress: Called now and then with the fraction of ``limit_s`` that has passed.

    Raises:
        ToolError: A program is missing.
        BrowserError: Chromium failed, or dash.js could not play.
    """
    chromium = find("chromium", "chromium")
    served = _page(library())
    chosen = {"settings": {}, "largest": []} if configuration is None else configuration
    base = urllib.parse.urljoin(url, "/anabranch-player/") if page is None else page
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as private,
        Browser(before, chromium, Path(private)) as browser,
    ):
        browser.serve(base, served)
        browser.open(base + "index.html")
        began = time.monotonic()
        browser.evaluate(f"anabranch.begin({json.dumps(url)}, {json.dumps(chosen)})")
        while (passed := time.monotonic() - began) < limit_s:
            progress(passed / limit_s)
            if browser.evaluate("anabranch.over || anabranch.errors.length > 0"):
                break
            time.sleep(_ASK_EVERY_S)
        log = _read(browser.evaluate("anabranch.log()"), began)
        browser.screenshot(folder / "player.png")
    if not log.events:
        reason = "; ".join(log.errors) or f"it asked for nothing within {log.end_s:.0f} s"
        raise BrowserError(f"dash.js did not play {url}: {reason}")
    return log


def _page(library: Path) -> dict[str, tuple[str, bytes]]:
    files = resources.files("anabranch.live.clients") / "page"
    return {
        "index.html": ("text/html", (files / "index.html").read_bytes()),
        "player.js": ("text/javascript", (files / "player.js").read_bytes()),
        "dash.js": ("text/javascript", library.read_bytes()),
    }


def _read(text: str, began: float) -> Log:
    found = json.loads(text)
    # Some things were noted when they were over, with the time at which they happened.
    events = sorted(((time, kind, numbers) for time, kind, numbers in found["events"]), key=lambda event: event[0])
    end_s = time.monotonic() - began
    return Log(events, found["samples"], found["errors"], found["over"], found["version"], end_s, began)
