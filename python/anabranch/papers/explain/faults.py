"""Makes a run with faults that are drawn from a seed, and explains it and its capture; `reproduce` starts it.

python faults.py '{"faults": "one", "kind": 0, "number": 0, "seed": 1}'

A fault is planted only where it costs: the same run without it has to be better by `LEAST_COST`. The first cause of an
explanation is compared with those that the kind of fault may be named by, and its path with the one that has the fault.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from anabranch import _core
from anabranch.experiments import outside
from anabranch.results import connections
from anabranch.runs import reading, trials
from anabranch.runs.captured import CaptureExplanation, explain_capture
from anabranch.runs.explanation import Explanation, explain
from anabranch.runs.session import simulate

LEAST_COST = 0.15
"""A fault has to worsen the measure of the run by this part of it."""

LEAST_STALL_S = 1.0
"""The same for a video that does not stall without the fault."""

MOST_DRAWS = 80
"""So often another network is drawn where a fault costs too little."""


@dataclass(frozen=True)
class Fault:
    """A fault in a run.

    Attributes:
        kind: What was planted.
        causes: The causes that it may be named by.
        base: The scenario without it.
        keys: What plants it, as the keys of `anabranch.run`.
        seed: The seed of the run.
        path: The path that it was planted on; none where it is on both, or on no path, as buffers and programs are.
        each: Of two faults, the causes that each may be named by; else empty.
    """

    kind: str
    causes: frozenset[str]
    base: Mapping[str, Any]
    keys: Mapping[str, Any]
    seed: int
    path: str | None = None
    each: tuple[frozenset[str], ...] = ()


@dataclass
class Draw:
    """A network, a sender and a player, drawn at random.

    Attributes:
        random: Where its numbers come from.
        player: What is downloaded: ``bulk``, ``chunks``, ``dash`` or ``vlc``.
    """

    random: random.Random
    player: str
    wifi: float = field(init=False)
    lte: float = field(init=False)
    rtts_ms: tuple[float, float] = field(init=False)
    transport: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        """Draws rates in Mb/s, round trips in ms, and what the sender is made of."""
        uniform, choice = self.random.uniform, self.random.choice
        self.wifi, self.lte = uniform(6.0, 16.0), uniform(3.0, 8.0)
        self.rtts_ms = uniform(15.0, 45.0), uniform(40.0, 80.0)
        stack = choice(("legacy", "upstream", "ours"))
        self.transport = {"receive_buffer": "4 MB", "send_buffer": "4 MB"}
        if stack == "legacy":
            self.transport |= {"scheduler": choice(("min-rtt", "blest", "ecf")), "congestion_control": choice(CONTROLS)}
        elif stack == "upstream":
            self.transport |= {"kernel": "upstream", "congestion_control": choice(("cubic", "newreno"))}
        else:
            self.transport |= {"scheduler": choice(("earliest", "joined")), "congestion_control": choice(CONTROLS)}

    @property
    def total(self) -> float:
        """Both rates, in Mb/s."""
        return self.wifi + self.lte

    def scenario(self) -> dict[str, Any]:
        """The scenario without a fault."""
        videos: dict[str, dict[str, Any]] = {
            "bulk": {"video": {"kind": "bulk", "size": f"{self.total * 2.2:.2f} MB"}},
            "chunks": {
                "video": {"kind": "bulk", "size": f"{self.total * 60:.0f} kB"},
                "player": {"kind": "on-off", "duration": "40 s", "interval": "1 s"},
            },
            "dash": {
                "video": {
                    "kind": "dash",
                    "rates": [f"{self.total * part:.2f} Mb/s" for part in (0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8)],
                    "segment_duration": "4 s",
                    "duration": "80 s",
                },
                "player": {"kind": self.random.choice(("dash.js-5", "bola", "bba-0", "rate"))},
            },
            "vlc": {
                "video": {
                    "kind": "progressive",
                    "size": f"{self.total * 0.75 * 40 / 8:.2f} MB",
                    "rate": f"{self.total * 0.75:.2f} Mb/s",
                },
                "player": {"kind": "vlc"},
            },
        }
        rates = {"wifi": (self.wifi, self.rtts_ms[0]), "lte": (self.lte, self.rtts_ms[1])}
        return {
            "schema": 1,
            "duration": "240 s",
            "transport": dict(self.transport),
            "link": {
                name: {
                    "rate": f"{rate:.2f} Mb/s",
                    "rtt": f"{rtt:.1f} ms",
                    # Twice what the longer round trip needs, so that a control keeps the link busy after a loss.
                    "queue": f"{max(60, 2 * rate * self.rtts_ms[1] / 8):.0f} kB",
                }
                for name, (rate, rtt) in rates.items()
            },
            "path": {name: {"links": [name]} for name in rates},
            "session": [{"paths": ["wifi", "lte"], **videos[self.player]}],
        }


CONTROLS = ("cubic", "newreno")
"""Controls that fill these links alone: others are faults of their own."""

Keys = dict[str, Any]
Plant = Callable[[Draw], Keys]


@dataclass(frozen=True)
class Kind:
    """A kind of fault.

    Attributes:
        causes: The causes that it may be named by.
        path: The path that it is planted on; none where it is on both, or on no path.
        players: What suffers from it.
        plant: How it is planted.
    """

    causes: frozenset[str]
    path: str | None
    players: tuple[str, ...]
    plant: Plant


def _percent(draw: Draw, least: float, most: float) -> str:
    return f"{draw.random.uniform(least, most):.2f} %"


def _cuts(draw: Draw, what: dict[str, str], number: int, length_s: tuple[float, float]) -> Keys:
    at, events = draw.random.uniform(1.0, 3.0), []
    for _ in range(number):
        length = draw.random.uniform(*length_s)
        events += [{"at": f"{at:.2f} s", **what, "down": True}, {"at": f"{at + length:.2f} s", **what, "down": False}]
        at += length + draw.random.uniform(2.0, 5.0)
    return {"event": events}


def _slower(draw: Draw, links: tuple[str, ...]) -> Keys:
    at, part = draw.random.uniform(1.5, 5.0), draw.random.uniform(0.08, 0.3)
    rates = {"wifi": draw.wifi, "lte": draw.lte}
    return {"event": [{"at": f"{at:.2f} s", "link": link, "rate": f"{rates[link] * part:.3f} Mb/s"} for link in links]}


def _pause(draw: Draw, what: str) -> Keys:
    at = draw.random.uniform(1.5, 5.0)
    until = at + draw.random.uniform(8.0, 15.0)
    times = ((at, False), (until, True))
    return {"event": [{"at": f"{time:.2f} s", "session": 0, what: on} for time, on in times]}


def _burst_loss(draw: Draw) -> Keys:
    loss = {"kind": "gilbert-elliott", "good_to_bad": _percent(draw, 0.4, 1.2), "bad_to_good": "25 %"}
    return {"link.wifi.loss": loss}


def _traffic(draw: Draw, path: str, least: int, most: int) -> Keys:
    return {"traffic": [{"path": path, "count": draw.random.randint(least, most)}]}


def _policy(draw: Draw) -> Keys:
    return {
        "transport.path_policy": {"name": "pud", "n": draw.random.randint(10, 30), "rho": 0.9, "readmit": "never"},
        "link.lte.rate": f"{draw.wifi * draw.random.uniform(0.4, 0.5):.2f} Mb/s",
    }


def _reordering(draw: Draw) -> Keys:
    by = f"{draw.random.uniform(25, 60):.0f} ms"
    return {"link.wifi.down.reordering": {"share": _percent(draw, 2, 6), "by": by}}


def _jitter(draw: Draw) -> Keys:
    jitter = {"kind": "gamma", "mean": f"{draw.random.uniform(8, 20):.1f} ms", "shape": 1.0, "reorders": True}
    return {"link.wifi.down.jitter": jitter}


def _queue(draw: Draw, links: tuple[str, ...]) -> Keys:
    return {f"link.{link}.queue": f"{draw.random.randint(2, 5) * 1500} B" for link in links}


def _managed(draw: Draw, kind: str) -> Keys:
    if kind == "codel":
        target = f"{draw.random.uniform(0.3, 1):.2f} ms"
        queue = {"kind": kind, "limit": "200 kB", "target": target, "interval": "10 ms"}
    else:
        red: Keys = {"kind": kind, "limit": "100 packets", "min": "2 packets", "max": "8 packets", "weight_exponent": 2}
        return {"link.wifi.queue": red, "link.lte.queue": red}
    return {"link.wifi.queue": queue, "link.lte.queue": queue}


def _synthetic(draw: Draw) -> Keys:
    rate = {"synthetic": "wifi-walk", "mean": f"{draw.wifi * 0.5:.2f} Mb/s", "outage": "0 s"}
    return {"link.wifi.rate": rate}


def _outages(draw: Draw) -> Keys:
    rate = {"synthetic": "wifi", "mean": f"{draw.wifi:.2f} Mb/s", "outage": "3 s", "between_outages": "6 s"}
    return {"link.wifi.rate": rate}


def _late_link(draw: Draw) -> Keys:
    until = f"{draw.random.uniform(6, 12):.1f} s"
    return {"event": [{"at": "0 s", "path": "lte", "down": True}, {"at": until, "path": "lte", "down": False}]}


def _far(draw: Draw) -> Keys:
    rtt = f"{draw.random.uniform(250, 500):.0f} ms"
    size = f"{draw.random.uniform(5, 12):.0f} kB"
    return {"link.wifi.rtt": rtt, "link.lte.rtt": rtt, "session.0.video.size": size}


def _coupled(draw: Draw) -> Keys:
    rtt = f"{draw.random.uniform(100, 180):.0f} ms"
    queues = {"link.wifi.queue": "600 kB", "link.lte.queue": "400 kB"}
    far = {"link.wifi.rtt": rtt, "link.lte.rtt": rtt, **queues}
    return {**far, "transport.congestion_control": draw.random.choice(("olia", "lia", "balia", "wvegas"))}


def _idle(draw: Draw) -> Keys:
    """Windows grow for several round trips after each pause, and chunks are so large that these matter."""
    rtt = f"{draw.random.uniform(100, 200):.0f} ms"
    # As deep as these round trips need.
    far = {"link.wifi.rtt": rtt, "link.lte.rtt": rtt, "link.wifi.queue": "600 kB", "link.lte.queue": "400 kB"}
    often = {"session.0.player.interval": f"{draw.random.uniform(4, 8):.1f} s", "session.0.player.duration": "80 s"}
    paths = draw.random.choice((["wifi"], ["wifi", "lte"]))
    return {**far, **often, "session.0.paths": paths, "transport.idle_restart": True}


def _stays(draw: Draw) -> Keys:
    """Linux gives data to subflows ahead of what they can send: a scheduler that stays on one leaves others idle."""
    name = draw.random.choice(("gr-sty", "tp-sty", "tr-sty"))
    return {"transport.kernel": "upstream", "transport.scheduler": name}


def _slow_path(draw: Draw) -> Keys:
    rate = f"{draw.random.uniform(0.2, 0.5):.2f} Mb/s"
    return {"link.lte.rate": rate, "link.lte.rtt": f"{draw.random.uniform(200, 400):.0f} ms", **_SCHEDULED}


_SCHEDULED = {"transport.scheduler": "min-rtt"}
_ALL = ("bulk", "chunks", "dash", "vlc")
_LONG = ("bulk", "dash", "vlc")


def _kind(causes: str, path: str | None, players: tuple[str, ...], plant: Plant) -> Kind:
    return Kind(frozenset(causes.split()), path, players, plant)


OUTAGE = "link-down loss-outage"

KINDS: dict[str, Kind] = {
    "random loss": _kind("loss-random", "wifi", _ALL, lambda d: {"link.wifi.loss": _percent(d, 1, 4)}),
    "random loss on the slower path": _kind(
        "loss-random", "lte", _LONG, lambda d: {"link.lte.loss": _percent(d, 2, 5)}
    ),
    "random loss on both paths": _kind(
        "loss-random", None, _ALL, lambda d: {"link.wifi.loss": _percent(d, 1, 3), "link.lte.loss": _percent(d, 1, 3)}
    ),
    "loss in bursts": _kind("loss-random", "wifi", _LONG, _burst_loss),
    "every n-th packet lost": _kind(
        "loss-random", "wifi", _ALL, lambda d: {"link.wifi.loss": {"kind": "every-nth", "n": d.random.randint(25, 70)}}
    ),
    "short queues": _kind("loss-queue", None, _LONG, lambda d: _queue(d, ("wifi", "lte"))),
    "a short queue on the faster path": _kind("loss-queue", "wifi", _LONG, lambda d: _queue(d, ("wifi",))),
    "CoDel with a target below a packet": _kind("loss-queue", None, _LONG, lambda d: _managed(d, "codel")),
    "RED that drops early": _kind("loss-queue", None, _LONG, lambda d: _managed(d, "red")),
    "a small receive buffer": _kind(
        "receive-window", None, _ALL, lambda d: {"transport.receive_buffer": f"{d.random.randint(16, 30)} kB"}
    ),
    "a small send buffer": _kind(
        "send-buffer", None, _ALL, lambda d: {"transport.send_buffer": f"{d.random.randint(16, 30)} kB"}
    ),
    "a cut link": _kind(OUTAGE, "wifi", _LONG, lambda d: _cuts(d, {"link": "wifi"}, 1, (10.0, 25.0))),
    "a link that is cut again and again": _kind(
        OUTAGE, "wifi", _LONG, lambda d: _cuts(d, {"link": "wifi"}, 5, (1.5, 4.0))
    ),
    "an interface that is down": _kind(OUTAGE, "wifi", _LONG, lambda d: _cuts(d, {"path": "wifi"}, 1, (10.0, 25.0))),
    "both links cut": _kind(OUTAGE, None, _LONG, lambda d: _both_cut(d)),
    "an interface that comes late": _kind(f"{OUTAGE} not-joined", "lte", ("bulk", "vlc"), _late_link),
    "outages of a radio": _kind(f"{OUTAGE} link-slow", "wifi", _LONG, _outages),
    "a link that becomes slow": _kind("link-slow", "wifi", _LONG, lambda d: _slower(d, ("wifi",))),
    "links that become slow": _kind("link-slow", None, _LONG, lambda d: _slower(d, ("wifi", "lte"))),
    "a rate that varies": _kind("link-slow", "wifi", _LONG, _synthetic),
    "one download beside": _kind("shared", "wifi", _LONG, lambda d: _traffic(d, "wifi", 1, 2)),
    "several downloads beside": _kind("shared", "wifi", _ALL, lambda d: _traffic(d, "wifi", 3, 5)),
    "downloads on the slower path": _kind("shared", "lte", _LONG, lambda d: _traffic(d, "lte", 3, 6)),
    "other viewers": _kind(
        "shared", None, ("bulk", "dash", "vlc"), lambda d: {"session.0.count": d.random.randint(2, 4)}
    ),
    "a backup": _kind("backup", "lte", _LONG, lambda _: {"path.lte.backup": True}),
    "the faster path a backup": _kind("backup", "wifi", _ALL, lambda _: {"path.wifi.backup": True}),
    "a policy that drops the slower path": _kind("policy", "lte", ("bulk", "dash"), _policy),
    "every byte twice": _kind("copies", None, _LONG, lambda _: {"transport.scheduler": "redundant"}),
    "a scheduler that stays": _kind("scheduler", None, _LONG, _stays),
    "reordered packets": _kind("reordering", "wifi", _LONG, _reordering),
    "jitter that reorders": _kind("reordering", "wifi", _LONG, _jitter),
    "a coupled control without a shared bottleneck": _kind("window", None, ("bulk",), _coupled),
    "a small initial window": _kind("start-up", None, ("bulk",), lambda d: _short(d)),
    "a window that decays while idle": _kind("idle-decay start-up", None, ("chunks",), _idle),
    "a client that stops reading": _kind("reader", None, _ALL, lambda d: _pause(d, "reads")),
    "a server that pauses": _kind("application", None, _ALL, lambda d: _pause(d, "writes")),
    "small files from afar": _kind("request last-bytes", None, ("chunks",), _far),
    "a slow path carries the last bytes": _kind("last-bytes", "lte", ("chunks",), _slow_path),
}
"""The kinds of faults."""


def _both_cut(draw: Draw) -> Keys:
    cuts = [_cuts(draw, {"link": link}, 1, (6.0, 12.0))["event"] for link in ("wifi", "lte")]
    return {"event": [event for events in cuts for event in events]}


def _short(draw: Draw) -> Keys:
    rtt = f"{draw.random.uniform(80, 120):.0f} ms"
    base = {"link.wifi.rtt": rtt, "link.lte.rtt": rtt, "session.0.video.size": f"{draw.random.randint(200, 400)} kB"}
    return {**base, "transport.initial_window": 1}


UNHARMED: dict[str, Callable[[Draw, Keys], Keys]] = {
    "a small initial window": lambda _, keys: {**keys, "transport.initial_window": 40},
    "a scheduler that stays": lambda _, keys: {**keys, "transport.scheduler": "linux"},
    "a window that decays while idle": lambda _, keys: {**keys, "transport.idle_restart": False},
    "small files from afar": lambda _, keys: {**keys, "link.wifi.rtt": "20 ms", "link.lte.rtt": "20 ms"},
    "a slow path carries the last bytes": lambda _, keys: {**keys, "session.0.paths": ["wifi"]},
    "a policy that drops the slower path": lambda _, keys: {**keys, "transport.path_policy": "full-mesh"},
    "a coupled control without a shared bottleneck": lambda _, keys: {**keys, "transport.congestion_control": "cubic"},
    "a rate that varies": lambda draw, _: {"link.wifi.rate": f"{draw.wifi * 0.5:.2f} Mb/s"},
}
"""What a run without the fault is, where that is not the scenario as it was drawn."""

TWO = (
    ("random loss", "downloads on the slower path"),
    ("random loss on the slower path", "one download beside"),
    ("a cut link", "random loss on the slower path"),
    ("a short queue on the faster path", "downloads on the slower path"),
    ("a link that becomes slow", "random loss on the slower path"),
    ("a link that becomes slow", "downloads on the slower path"),
    ("random loss", "a backup"),
    ("one download beside", "a backup"),
    ("a short queue on the faster path", "a backup"),
    ("a cut link", "downloads on the slower path"),
)
"""Faults that are planted together: on different paths."""


def plant(kind: str, number: int, seed: int) -> Fault | None:
    """The n-th fault of a kind: the first drawn one that costs enough; none if none does."""
    numbers = random.Random(f"{seed}/{kind}/{number}")
    what = KINDS[kind]
    for _ in range(MOST_DRAWS):
        draw = Draw(numbers, what.players[number % len(what.players)])
        base, run = draw.scenario(), numbers.randrange(10**6)
        keys = what.plant(draw)
        unharmed = UNHARMED[kind](draw, keys) if kind in UNHARMED else {}
        if _costs(base, keys, unharmed, run):
            return Fault(kind, what.causes, base, keys, run, what.path)
    return None


def plant_two(pair: tuple[str, str], number: int, seed: int) -> Fault | None:
    """The n-th run with two faults, each of which costs something with the other one; none if none does."""
    numbers = random.Random(f"{seed}/{pair}/{number}")
    players = [player for player in KINDS[pair[0]].players if player in KINDS[pair[1]].players]
    for _ in range(MOST_DRAWS):
        draw = Draw(numbers, players[number % len(players)])
        base, run = draw.scenario(), numbers.randrange(10**6)
        each = [KINDS[kind].plant(draw) for kind in pair]
        both = {**each[0], **each[1]}
        if all(_costs(base, both, other, run) for other in each):
            causes = tuple(KINDS[kind].causes for kind in pair)
            return Fault(" + ".join(pair), causes[0] | causes[1], base, both, run, each=causes)
    return None


def healthy(number: int, seed: int) -> tuple[Mapping[str, Any], int]:
    """The n-th run without a fault."""
    numbers = random.Random(f"{seed}/healthy/{number}")
    return Draw(numbers, _ALL[number % len(_ALL)]).scenario(), numbers.randrange(10**6)


def _costs(base: Mapping[str, Any], keys: Keys, unharmed: Keys, seed: int) -> bool:
    """Whether a run with a fault is worse than the one without it."""
    harmed, better = _session(base, keys, seed), _session(base, unharmed, seed)
    measure = trials.measure_of(harmed, stall=False, segment=None)
    now, then = measure.of(harmed), measure.of(better)
    if now is None or then is None:
        return False
    lost = now - then if measure.lower_is_better else then - now
    return lost >= LEAST_STALL_S if measure.key == "stall_s" else lost >= LEAST_COST * abs(now)


def _session(base: Mapping[str, Any], keys: Keys, seed: int) -> Any:
    loaded = reading.load(base, reading.overrides_of(keys))
    kept = _core.measure(loaded, seed=seed, stop=_core.Stop(), segments=False)
    return json.loads(kept)["metrics"]["sessions"][0]


@dataclass(frozen=True)
class Named:
    """What was named in a run with a fault."""

    fault: Fault
    explanation: Explanation

    @property
    def first(self) -> str:
        """The first cause of the account alone."""
        return replace(self.explanation, what_if=None).first_cause or "none"

    @property
    def tried(self) -> str:
        """The first cause with repeated runs."""
        return self.explanation.first_cause or "none"

    @property
    def first_is_right(self) -> bool:
        """Whether the account names the fault."""
        return self.first in self.fault.causes

    @property
    def tried_is_right(self) -> bool:
        """Whether repeated runs name it."""
        return self.tried in self.fault.causes

    @property
    def path_is_right(self) -> bool:
        """Whether the path to look at first is the one with the fault. A path that waits for it is not."""
        return self.fault.path in (None, self.explanation.first_path)

    @property
    def both(self) -> bool:
        """Of two faults, whether both are among the three largest causes."""
        three = set(list(self.explanation.causes)[:3])
        return all(causes & three for causes in self.fault.each)


def named(fault: Fault, *, what_if: bool) -> Named:
    """Explains a run with a fault."""
    return Named(fault, explain(fault.base, seed=fault.seed, set=fault.keys, what_if=what_if))


OF_CAPTURES = {
    "reader": "receive-window",
    "shared": "slower-or-shared",
    "link-slow": "slower-or-shared",
    "policy": "scheduler-or-policy",
    "scheduler": "scheduler-or-policy",
}
"""What packets do not tell from each other."""

UNSEEN = {"the faster path a backup": "scheduler-or-policy"}
"""What no packet says: the path policy of the server knows which path the initial subflow has."""


ADDRESSES = {"wifi": "10.0.1.1", "lte": "10.0.2.1"}
"""The client's addresses, by which captures name the paths."""


@dataclass(frozen=True)
class Captured:
    """What was named in the server's capture of a run with a fault."""

    fault: Fault
    found: CaptureExplanation

    @property
    def cause_is_right(self) -> bool:
        """Whether the first cause is one that the fault may be named by, as far as packets tell."""
        causes = {OF_CAPTURES.get(cause, cause) for cause in self.fault.causes} | {UNSEEN.get(self.fault.kind)}
        return self.found.first_cause is not None and self.found.first_cause in causes

    @property
    def path_is_right(self) -> bool:
        """Whether the path to look at first is the one with the fault. A path that waits for it is not."""
        return self.fault.path is None or self.found.first_path == ADDRESSES[self.fault.path]


def captured(fault: Fault) -> Captured:
    """Explains the server's capture of a run with a fault."""
    return Captured(fault, of_capture(fault.base, fault.seed, fault.keys))


def of_capture(base: Mapping[str, Any], seed: int, keys: Mapping[str, Any]) -> CaptureExplanation:
    """Explains the server's capture of a run."""
    with tempfile.TemporaryDirectory() as folder:
        simulate(base, seed=seed, set=keys, captures=folder)
        file = Path(folder) / "server.pcapng"
        # Cross traffic may have more data than the viewer.
        of_viewer = [f" to {ADDRESSES['wifi']}:" in each.name for each in connections.read(file).sessions]
        return explain_capture(file, session=of_viewer.index(True))


Row = dict[str, Any]


def with_one(number_of_kind: int, number: int, seed: int) -> Row:
    """What was named in a run with one fault, and in its capture."""
    kind = list(KINDS)[number_of_kind]
    fault = plant(kind, number, seed)
    if fault is None:
        return {"name": kind, "planted": False}
    run, packets = named(fault, what_if=True), captured(fault)
    return {
        "name": kind,
        "planted": True,
        "path": fault.path,
        "account": run.first,
        "account_is_right": run.first_is_right,
        "what_if": run.tried,
        "what_if_is_right": run.tried_is_right,
        "first_path": run.explanation.first_path,
        "path_is_right": run.path_is_right,
        "unexplained": run.explanation.causes.get("unexplained", 0.0),
        "capture": packets.found.first_cause or "none",
        "capture_is_right": packets.cause_is_right,
        "capture_path": packets.found.first_path,
        "capture_path_is_right": packets.path_is_right,
    }


def with_two(number_of_pair: int, number: int, seed: int) -> Row:
    """Whether both of two faults are named."""
    pair = TWO[number_of_pair]
    fault = plant_two(pair, number, seed)
    row = {"name": " + ".join(pair), "planted": fault is not None}
    return row if fault is None else {**row, "account_is_right": named(fault, what_if=False).both}


def with_none(_kind: int, number: int, seed: int) -> Row:
    """What was named in a run without a fault, and in its capture."""
    base, run = healthy(number, seed)
    account, packets = explain(base, seed=run), of_capture(base, run, {})
    return {
        "name": "none",
        "planted": False,
        "account": account.first_cause or "none",
        "capture": packets.first_cause or "none",
        "unexplained": account.causes.get("unexplained", 0.0),
    }


def explained(labels: Mapping[str, Any]) -> Row:
    """The run that these labels name."""
    of = {"one": with_one, "two": with_two, "none": with_none}[labels["faults"]]
    return of(labels["kind"], labels["number"], labels["seed"])


if __name__ == "__main__":
    outside.answer(explained)
