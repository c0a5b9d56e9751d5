"""Running a scenario in real time on this machine."""

from __future__ import annotations

import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch import _core
from anabranch.errors import InputError, alternatives
from anabranch.live import counters
from anabranch.results import metrics
from anabranch.runs import reading, session, warning

if TYPE_CHECKING:
    from anabranch.live.clients.watch import Client, Playback
    from anabranch.results.recording import Recording

SERVERS = ("anabranch", "kernel")
"""Who can serve."""

MODEL = "model"
"""The client that is the scenario's own player, on a kernel's socket."""

# How long the interpreter's lock is kept from a decision that waits for it. The default of 5 ms is five times the
# lateness that makes a run invalid.
_SWITCH_INTERVAL_S = 0.0002

# How often a run is looked at: people notice more than a tenth of a second.
_LOOK_EVERY_S = 0.05

Progress = Callable[[float], object]


def _ignore(_fraction: float) -> None:
    """Shows no progress."""


@dataclass(frozen=True, repr=False)
class LiveRun(session.Run):
    """What a run in real time found.

    Attributes:
        folder: Where captures and what a real player left are; they belong into the run folder.
    """

    folder: Path = field(kw_only=True)
    _playback: Playback | None = field(kw_only=True)
    _began: float = field(kw_only=True)

    def __getstate__(self) -> dict[str, Any]:
        # What the player saw is drawn into the recording, which is kept.
        return {**super().__getstate__(), "_playback": None}

    @cached_property
    def recording(self) -> Recording:
        """The run over time, sampled; what a real player saw is drawn in."""
        recording = super().recording
        if self._playback is None or not recording.sessions:
            return recording
        first = self._playback.drawn(recording.sessions[0], self._began)
        return replace(recording, sessions=(first, *recording.sessions[1:]))


def clients() -> Mapping[str, Client]:
    """The programs that can be clients, by what the command line calls them."""
    from anabranch.live.clients.watch import CLIENTS

    return CLIENTS


def run(
    scenario: str | Path | Mapping[str, Any],
    *,
    folder: Path,
    seed: int = 1,
    set: Mapping[str, Any] | None = None,  # noqa: A002 (the command line's word)
    events: bool = False,
    server: str = SERVERS[0],
    client: str = MODEL,
    pcap: bool = False,
    content: Path | None = None,
    progress: Progress = _ignore,
) -> LiveRun:
    """Runs a scenario in network namespaces of this machine, as long as it says; what cannot be observed is ``None``.

    Args:
        scenario: As for `anabranch.run`.
        folder: An existing folder for captures and for what a real player leaves.
        seed: Where the links' randomness comes from. Kernels and programs have their own, so no two runs are alike.
        set: Keys to override.
        events: Whether to record every event that an endpoint, a link or a player emits.
        server: ``anabranch`` (our endpoint) or ``kernel`` (Linux's).
        client: ``model`` (the scenario's player on a kernel's socket) or a program: see `clients`.
        pcap: Whether to capture the packets of each path.
        content: A folder of ``anabranch content make`` for a program that plays; encoded if need be where absent.
        progress: Called now and then with the fraction of the scenario's time that has passed.

    Raises:
        InputError: The scenario, a name or the content is wrong.
        AlgorithmError: An algorithm in Python raised an exception, or decided what none may.
        LiveError: This machine cannot do it, or something failed; the message says what is missing.
        ToolError: A program is missing or failed.
    """
    overrides = reading.overrides_of(set)
    loaded = reading.load(scenario, overrides)
    return run_loaded(
        loaded,
        folder=folder,
        seed=seed,
        overrides=overrides,
        events=events,
        server=server,
        client=client,
        pcap=pcap,
        content=content,
        progress=progress,
    )


def run_loaded(
    loaded: _core.Scenario,
    *,
    folder: Path,
    seed: int,
    overrides: Sequence[tuple[str, str]] = (),
    events: bool = False,
    server: str = SERVERS[0],
    client: str = MODEL,
    pcap: bool = False,
    content: Path | None = None,
    progress: Progress = _ignore,
) -> LiveRun:
    """The same for a checked scenario; the overrides that it was made with are for the run's record."""
    _prepare(server, client)
    own = loaded.own_algorithms
    if server != SERVERS[0]:
        _refuse_own(own, server)
    served = _content(loaded, clients().get(client), content, progress)
    kind, capture = MODEL if client == MODEL else "program", folder if pcap else None
    cpu, wall = time.process_time(), time.perf_counter()
    with (
        _decides_quickly(bool(own)),
        _core.Testbed(
            loaded,
            seed=seed,
            server=server,
            client=kind,
            record_events=events,
            capture_dir=capture,
            content_root=served,
        ) as testbed,
    ):
        began = time.monotonic() - testbed.elapsed
        playback, ended = _play(testbed, loaded, client, served, folder, progress)
        outcome = _finish(testbed, ended, client, playback)
    found = metrics.of_outcome(outcome)
    return LiveRun(
        scenario=loaded.resolved,
        seed=seed,
        metrics=found,
        cpu_seconds=time.process_time() - cpu,
        wall_seconds=time.perf_counter() - wall,
        _outcome=outcome,
        overrides=reading.as_given(overrides),
        warnings=warning.of_run(loaded, found),
        _portable=loaded.portable(),
        folder=folder,
        _playback=playback,
        _began=began,
    )


def _refuse_own(own: Sequence[tuple[str, str]], server: str) -> None:
    """Refuses algorithms that our endpoint would use and another server does not. A bitrate rule is the player's."""
    for kind, name in own:
        if kind != "abr_rule":
            raise InputError(
                f"{kind} = {name}: the kernel serves with algorithms of its own; expected a built-in one, or --server "
                f"{SERVERS[0]} (got {server})"
            )


@contextmanager
def _decides_quickly(wanted: bool) -> Iterator[None]:
    """Lets the testbed's threads have the interpreter soon when they ask this thread for it."""
    before = sys.getswitchinterval()
    if wanted:
        sys.setswitchinterval(_SWITCH_INTERVAL_S)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def _prepare(server: str, client: str) -> None:
    """Refuses unknown names, and a machine without Linux or the client's program; fetches what the program needs."""
    if server not in SERVERS:
        raise InputError(f"--server {server}: expected {' or '.join(SERVERS)}")
    if client != MODEL and client not in clients():
        raise InputError(f"--client {client}: there is no such client{alternatives(client, [MODEL, *clients()])}")
    if not hasattr(_core, "Testbed"):
        raise _core.LiveError("live runs need Linux: network namespaces, TUN devices and Multipath TCP in the kernel")
    if client != MODEL:
        clients()[client].prepare()


def _play(
    testbed: _core.Testbed,
    scenario: _core.Scenario,
    client: str,
    served: Path | None,
    folder: Path,
    progress: Progress,
) -> tuple[Playback | None, str]:
    """Waits for the first session's client; what a real player saw, and why the run ended."""
    if client == MODEL:
        return None, _wait(testbed, _duration(scenario), progress)
    playback = _watch(testbed, scenario, clients()[client], served, folder, progress)
    return playback, "finished" if playback.over else "duration"


def _finish(testbed: _core.Testbed, ended: str, client: str, playback: Playback | None) -> _core.Outcome:
    """Takes the testbed down and gives what was observed, with what only the client's program and kernel know."""
    return testbed.finish(
        ended,
        client=client,
        viewed=None if playback is None else playback.viewed,
        counters=counters.mptcp(testbed.namespace),
        received_bytes=counters.received_bytes(testbed.namespace),
        notes=() if playback is None else playback.notes,
    )


def _duration(scenario: _core.Scenario) -> float:
    return _core.time_s(tomllib.loads(scenario.resolved)["duration"])


def _wait(testbed: _core.Testbed, duration_s: float, progress: Progress) -> str:
    """Waits for the scenario's players and says why the run is over."""
    while (ended := testbed.poll()) is None:
        progress(min(testbed.elapsed / duration_s, 1.0))
        time.sleep(_LOOK_EVERY_S)
    return ended


def _content(scenario: _core.Scenario, client: Client | None, given: Path | None, progress: Progress) -> Path | None:
    """The folder that the server serves to a program that plays."""
    from anabranch.live.clients.watch import BYTES, content_for

    if client is None or client.content == BYTES:
        if given is not None:
            raise InputError(f"--content {given}: only players that are programs want files; expected one of them")
        return None
    return content_for(scenario, given, wanted=client.content, progress=progress)


def _watch(
    testbed: _core.Testbed,
    scenario: _core.Scenario,
    client: Client,
    served: Path | None,
    folder: Path,
    progress: Progress,
) -> Playback:
    from anabranch.live.clients.watch import Place

    place = Place(
        scenario=scenario,
        namespace=testbed.namespace,
        url=testbed.url,
        content=served or folder,
        folder=folder,
        limit_s=_duration(scenario) - testbed.elapsed,
    )
    return client.watch(place, progress)
