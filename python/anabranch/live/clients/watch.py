"""Real players in a testbed: each plays what the server serves, and its events become the session's metrics."""

from __future__ import annotations

import json
import time
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from anabranch import _core, content
from anabranch.content.make import MANIFEST
from anabranch.errors import InputError
from anabranch.live.clients import curl, dashjs, vlc
from anabranch.results.recording import SessionRecording, Shown
from anabranch.system.programs import find

BYTES = "bytes"
"""The content of clients that want no file: so many bytes of whatever."""

# An endless download: what the simulator's players ask for in its place.
_ENDLESS_BYTES = 1 << 50

LOG = "player.json"
"""The log of the player, in the run folder."""

Event = tuple[float, str, list[float]]
Progress = Callable[[float], object]


@dataclass(frozen=True)
class Place:
    """Where a player plays.

    Attributes:
        scenario: The scenario.
        namespace: The network namespace of the client, as ``ip netns exec`` wants it.
        url: Where the server is, without a path.
        content: The folder that it serves.
        folder: The run folder, for what the player leaves.
        limit_s: The session is cut off after this time.
    """

    scenario: _core.Scenario
    namespace: str
    url: str
    content: Path
    folder: Path
    limit_s: float

    @property
    def before(self) -> list[str]:
        """The command that runs another one here, as a client of the scenario's protocol."""
        inside = ["ip", "netns", "exec", self.namespace]
        return [*inside, "mptcpize", "run"] if self.transport["protocol"] == "mptcp" else inside

    @property
    def transport(self) -> Mapping[str, Any]:
        """The transport of the scenario's first session."""
        whole = tomllib.loads(self.scenario.resolved)
        transport: dict[str, Any] = whole["transport"] | whole["session"][0].get("transport", {})
        return transport

    @property
    def player(self) -> Mapping[str, Any]:
        """The player of the scenario's first session."""
        session = tomllib.loads(self.scenario.resolved)["session"][0]
        chosen = session.get("player", {})
        return chosen if isinstance(chosen, dict) else {"kind": chosen}


@dataclass(frozen=True)
class Playback:
    """What a player saw.

    Attributes:
        viewed: What its viewer saw, as metrics; ``None`` if it does not report it.
        over: Whether the video was played to its end.
        began: When the session began, by ``time.monotonic``.
        events: What the player reported: seconds since the session began, kind, numbers.
        buffer: Seconds since the session began, and seconds that were buffered; empty where the player does not tell.
        shown: Which representations were on screen; times in seconds since the session began.
        notes: What should be known of the run.
    """

    viewed: _core.Viewed | None
    over: bool
    began: float
    events: tuple[Event, ...]
    buffer: tuple[tuple[float, float], ...] = ()
    shown: tuple[Shown, ...] = ()
    notes: tuple[str, ...] = ()

    def drawn(self, session: SessionRecording, run_began: float) -> SessionRecording:
        """The recording of the session with what the player saw, which the testbed could not observe.

        Args:
            session: The testbed's recording.
            run_began: When the run began, by ``time.monotonic``.
        """
        offset_s = self.began - run_began
        at = {kind: np.array([time_s for time_s, own, _ in self.events if own == kind]) + offset_s for kind in _DRAWN}
        ends = np.append(at["stall-ended"], session.times_s[-1:])[: len(at["stall-began"])]
        discards = np.diff(np.searchsorted(np.sort(at["discarded"]), session.times_s, side="right"), prepend=0)
        levels = np.full_like(session.times_s, np.nan)
        if self.buffer:
            times, values = np.array(self.buffer).T
            levels = np.interp(session.times_s, times + offset_s, values, left=0.0, right=0.0)
        return replace(
            session,
            buffer_s=levels,
            discards=discards.astype(np.float64),
            stalls_s=np.column_stack((at["stall-began"], ends)),
            underflows_s=at["underflow"],
            shown=tuple(replace(one, begin_s=one.begin_s + offset_s, end_s=one.end_s + offset_s) for one in self.shown),
        )


_DRAWN = ("stall-began", "stall-ended", "discarded", "underflow")


def content_for(scenario: _core.Scenario, given: Path | None, *, wanted: str, progress: Progress) -> Path:
    """The folder to be served: the given one, or what the scenario's video is, encoded the first time.

    Args:
        scenario: The scenario.
        given: A folder of ``anabranch content make``, if any.
        wanted: ``dash`` or ``progressive``.
        progress: Called with the fraction that is encoded.

    Raises:
        InputError: The folder, or the scenario, has no such video.
        ToolError: ffmpeg is missing or failed.
    """
    if given is None:
        plan = content.of_scenario(scenario, None)
        if isinstance(plan, content.Ladder) != (wanted == "dash"):
            other = "vlc" if isinstance(plan, content.Ladder) else "dash.js"
            found = "DASH" if isinstance(plan, content.Ladder) else "progressive"
            raise InputError(f"{scenario.name}: its video is {found}; expected a client that plays it, not {other}")
        return content.cached(plan, progress)
    if not (given / MANIFEST).is_file() if wanted == "dash" else not _films(given):
        what = MANIFEST if wanted == "dash" else "film.mp4 or film.ts"
        raise InputError(f"{given}: there is no {what}; expected a folder of `anabranch content make`")
    return given


def _watch_dashjs(place: Place, progress: Progress) -> Playback:
    """The real dash.js in Chromium; errors as those of `dashjs.play`."""
    configuration = dashjs.configuration(place.player)
    log = dashjs.play(
        f"{place.url}/{MANIFEST}",
        before=place.before,
        folder=place.folder,
        limit_s=place.limit_s,
        configuration=configuration,
        progress=progress,
    )
    _keep(place.folder, asdict(log))
    return Playback(
        dashjs.viewed(log, place.content / MANIFEST, place.scenario),
        log.over,
        log.began,
        tuple(log.events),
        buffer=tuple((sample[0], sample[2]) for sample in log.samples),
        shown=dashjs.on_screen(log, place.content / MANIFEST),
        notes=(f"dash.js {log.version} in Chromium", *log.errors),
    )


def _watch_vlc(place: Place, progress: Progress) -> Playback:
    """The real VLC; errors as those of `vlc.play`."""
    caching = place.player.get("caching")
    log = vlc.play(
        f"{place.url}/{_films(place.content)[0].name}",
        before=place.before,
        folder=place.folder,
        limit_s=place.limit_s,
        caching_s=None if caching is None else _core.time_s(caching),
        progress=progress,
    )
    _keep(place.folder, asdict(log))
    return Playback(vlc.viewed(log, place.scenario), log.over, log.began, tuple(log.events))


def _watch_curl(place: Place, progress: Progress) -> Playback:
    """The real curl; errors as those of `curl.fetch`."""
    video = place.scenario.videos()[0]
    if video["kind"] == "dash":
        raise InputError(f"{place.scenario.name}: its video is DASH; expected a client that plays it, not curl")
    size = video["bytes"] or _ENDLESS_BYTES
    began = time.monotonic()
    url = f"{place.url}/bytes/{size}"
    done = curl.fetch(url, before=place.before, limit_s=place.limit_s, progress=progress)
    _keep(place.folder, done.said)
    return Playback(None, done.over, began, ())


def _films(folder: Path) -> list[Path]:
    return sorted(folder.glob("film.*"))


def _keep(folder: Path, log: dict[str, Any]) -> None:
    (folder / LOG).write_text(json.dumps(log) + "\n", encoding="utf-8")


@dataclass(frozen=True)
class Client:
    """A player that can watch.

    Attributes:
        sentence: What it is.
        content: What it plays: ``dash``, ``progressive``, or `BYTES`.
        watch: Plays; raises what `dashjs.play`, `vlc.play` or `curl.fetch` raise.
        programs: The programs that it runs, with their packages on Debian and Ubuntu.
        fetch: Gets what is no program and needed before time runs; raises ToolError.
    """

    sentence: str
    content: str
    watch: Callable[[Place, Progress], Playback]
    programs: Mapping[str, str]
    fetch: Callable[[], object] | None = None

    def prepare(self) -> None:
        """Sees to it that there is what it needs.

        Raises:
            ToolError: A program is missing, or something cannot be fetched.
        """
        for program, package in self.programs.items():
            find(program, package)
        if self.fetch is not None:
            self.fetch()


_MPTCPIZE = {"mptcpize": "mptcpize"}

CLIENTS: Mapping[str, Client] = {
    "curl": Client("curl, which only downloads", BYTES, _watch_curl, {"curl": "curl", **_MPTCPIZE}),
    "dash.js": Client(
        f"dash.js {dashjs.VERSION} in Chromium",
        "dash",
        _watch_dashjs,
        {"chromium": "chromium", **_MPTCPIZE},
        dashjs.library,
    ),
    "vlc": Client(
        "VLC without a window",
        "progressive",
        _watch_vlc,
        {"cvlc": "vlc-bin vlc-plugin-base", "setpriv": "util-linux", **_MPTCPIZE},
    ),
}
"""The players, by what the command line calls them."""
