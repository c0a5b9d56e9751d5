"""Test cases that were not chosen: drawn from a grid by a stated seed, before any of them was run."""

from __future__ import annotations

import random
from dataclasses import dataclass

SEED = 32
"""The seed that draws them; another one draws other test cases from the same grid."""

COUNT = 60
"""How many are drawn."""

SECONDS = 40
"""The duration of a run."""

# The grid. A value that stands more than once is drawn more often.
_PATHS = (1, 2, 2, 2, 3)
_FASTEST_MBPS = (4, 8, 16)
_RATIOS = (1, 2, 4, 8)
_RTTS_MS = (10, 20, 50, 100, 200)
_LOSSES_DOWN = (0.0, 0.0, 0.1, 0.5, 1.0, 2.0)
_LOSSES_UP = (0.0, 0.0, 1.0, 5.0, 10.0)
# The uplink's part of the downlink's rate, in per mille.
_UPLINKS = (1000, 1000, 100, 10, 1)
_QUEUES_BDP = (0.5, 1.0, 2.0)
_BUFFERS = ("", "", "", "50 kB", "100 kB", "200 kB")
_CHANGES = ("", "", "", "steps", "lte")
_BACKUPS = (False,) * 9 + (True,)
_SESSIONS = (1, 1, 1, 2)
# Bytes of a chunk; zero for one download without end.
_CHUNKS = (0, 0, 0, 0, 10_000, 100_000, 300_000, 1_000_000)
_CONTROLS = ("cubic", "newreno")
# Room for ten packets: a queue of less drops the initial window.
_LEAST_QUEUE = 15_000


@dataclass(frozen=True)
class Drawn:
    """A test case.

    Attributes:
        name: What was drawn, in words.
        scenario: The scenario as TOML.
        sessions: How many connections run at the same time.
        paths: How many paths they have.
        chunks: Whether the traffic comes in chunks.
        seeded: Whether the seed of a run draws a rate, which decides nearly everything.
    """

    name: str
    scenario: str
    sessions: int
    paths: int
    chunks: bool
    seeded: bool


def drawn() -> list[Drawn]:
    """All test cases, always the same."""
    chance = random.Random(SEED)
    return [_draw(chance, number) for number in range(1, COUNT + 1)]


def _draw(chance: random.Random, number: int) -> Drawn:
    paths, fastest = chance.choice(_PATHS), chance.choice(_FASTEST_MBPS)
    # The fastest path is the first one or the last one.
    ratios = [1, *(chance.choice(_RATIOS) for _ in range(paths - 1))]
    if chance.random() < 0.5:
        ratios.reverse()
    buffer, change, control = chance.choice(_BUFFERS), chance.choice(_CHANGES), chance.choice(_CONTROLS)
    sessions, chunk = chance.choice(_SESSIONS), chance.choice(_CHUNKS)
    backup = chance.choice(_BACKUPS) and paths > 1
    links = [_link(chance, f"path{at}", fastest / ratio) for at, ratio in enumerate(ratios, start=1)]
    transport = 'protocol = "tcp"\n' if paths == 1 else 'kernel = "upstream"\n'
    if buffer:
        transport += f'receive_buffer = "{buffer}"\n'
    video = 'video = { kind = "bulk" }\n'
    if chunk:
        video = f'video = {{ kind = "bulk", size = "{chunk} B" }}\nplayer = "on-off"\n'
    scenario = (
        f'schema = 1\nduration = "{SECONDS} s"\n[transport]\n{transport}congestion_control = "{control}"\n'
        f"{''.join(toml for toml, _ in links)}{_changes(change, fastest / ratios[0])}"
    )
    if backup:
        scenario += "".join(
            f'[path.path{at}]\nlinks = ["path{at}"]\nbackup = {str(at == paths).lower()}\n'
            for at in range(1, paths + 1)
        )
    scenario += f"[[session]]\ncount = {sessions}\n{video}"
    words = {
        " + ".join(words for _, words in links): True,
        f"window {buffer}": bool(buffer),
        change: bool(change),
        "backup": backup,
        "two connections": sessions > 1,
        f"chunks of {chunk // 1000} kB": chunk > 0,
        control: True,
    }
    name = f"drawn {number}: {', '.join(each for each, holds in words.items() if holds)}"
    return Drawn(name, scenario, sessions, paths, chunk > 0, change == "lte")


def _link(chance: random.Random, name: str, rate_mbps: float) -> tuple[str, str]:
    """A link as TOML and in words."""
    rtt, down, up = chance.choice(_RTTS_MS), chance.choice(_LOSSES_DOWN), chance.choice(_LOSSES_UP)
    uplink, bdp = chance.choice(_UPLINKS), chance.choice(_QUEUES_BDP)
    queue = max(_LEAST_QUEUE, int(rate_mbps * rtt * 125 * bdp))
    toml = (
        f'[link.{name}]\nrtt = "{rtt} ms"\nqueue = "{queue} B"\n'
        f'down = {{ rate = "{rate_mbps:g} Mb/s", loss = "{down:g} %" }}\n'
        f'up = {{ rate = "{rate_mbps * uplink:g} kb/s", loss = "{up:g} %" }}\n'
    )
    words = f"{rate_mbps:g} Mb/s, {rtt} ms, {down:g} % down, {up:g} % up, uplink {uplink / 10:g} %, {bdp:g} BDP"
    return toml, words


def _changes(change: str, rate_mbps: float) -> str:
    """Events that change the first path's rate."""
    if change == "steps":
        return "".join(
            f'[[event]]\nat = "{at} s"\nlink = "path1"\ndown = {{ rate = "{rate_mbps * factor:g} Mb/s" }}\n'
            for at, factor in ((10, 0.4), (20, 1.0), (30, 0.6))
        )
    if change == "lte":
        synthetic = f'{{ synthetic = "lte", mean = "{rate_mbps:g} Mb/s" }}'
        return f'[[event]]\nat = "0 s"\nlink = "path1"\ndown = {{ rate = {synthetic} }}\n'
    return ""
