"""What is worth trying against each cause of an account of link time: changes of a scenario that take it away."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from anabranch import _core
from anabranch.results import linktime
from anabranch.runs.parts import by_cause, of_outages

if TYPE_CHECKING:
    from anabranch.runs.parts import LinkTime

LEAST_SHARE = 0.01
"""A cause with less than this share of what was possible is not worth a run: without it, less than a percent is won."""

MOST_REMEDIES = 8
"""So many remedies are tried at the most, those of the largest causes: each takes a run."""

_LEAST_OF_CAUSE = 0.1
"""A path counts for a cause if it has at least this part of the cause's share, or `LEAST_SHARE` itself."""

_FULL_LINKS = 0.9
"""Links that carried new data for this part of the time have nothing to spare."""

_MORE_CAPACITY = 1.5
"""How much faster links are then tried: by one or two steps of a usual ladder of bitrates."""

_LONGER = 2
_LARGER = 4
"""How much longer queues and larger buffers are tried, at least."""

_LEAST_BUFFER = 4_000_000
"""No smaller buffer is tried: it holds 160 ms at 200 Mb/s."""

_INITIAL_WINDOW = 40
"""Packets: four times the usual ones, about what large servers use."""

_PACKET = 1500
_COUPLED = ("lia", "olia", "balia", "wvegas", "mcc")
_LONGER_SEGMENTS = {"bbb-1s": "bbb-2s", "bbb-2s": "bbb-6s", "bbb-6s": "bbb-10s"}
_SIZES = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change of a scenario that takes a cause away.

    Attributes:
        cause: The key of the cause; ``useful`` where links had nothing to spare.
        what: The change in words, such as ``no random loss on wifi``.
        set: The keys to override, as `anabranch.run` takes them, each with its value as text.
    """

    cause: str
    what: str
    set: Mapping[str, str]

    @property
    def replaces(self) -> bool:
        """Whether it helps against other causes, too: another scheduler or congestion control, or shorter round trips.

        Requests, windows that grow, repairs and last bytes all take round trips.
        """
        return any(key.endswith((".scheduler", ".congestion_control", ".delay")) for key in self.set)


@dataclass(frozen=True)
class _Case:
    """A cause in a run.

    Attributes:
        scenario: The resolved scenario.
        entry: The position of the session's entry in it.
        capacity: The mean rate of each path, in bit/s.
        paths: The paths on which it has a share.
        by: Who is behind it.
    """

    scenario: Mapping[str, Any]
    entry: int
    capacity: Mapping[str, float]
    paths: tuple[str, ...]
    by: tuple[str, ...]

    @property
    def session(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.scenario["session"][self.entry]
        return found

    @property
    def links(self) -> list[str]:
        """The links of its paths."""
        return list(dict.fromkeys(link for path in self.paths for link in self.scenario["path"][path]["links"]))

    @property
    def named(self) -> str:
        """Its paths in a sentence."""
        return " and ".join(self.paths)

    def down(self, link: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.scenario["link"][link]["down"]
        return found

    def varies(self, link: str, way: str) -> bool:
        """Whether the rate of a direction changes over time by itself."""
        rate = self.scenario["link"][link][way].get("rate", {})
        return "synthetic" in rate or "trace" in rate

    def transport(self, key: str) -> tuple[str, Any]:
        """A key of the transport where the session has it, and its value."""
        own = self.session.get("transport", {})
        place = f"session.{self.entry}.transport" if key in own else "transport"
        return f"{place}.{key}", own.get(key, self.scenario["transport"].get(key))

    def chosen(self, key: str) -> str:
        """The name of a replaceable part of the transport."""
        value = self.transport(key)[1]
        return str(value["name"] if isinstance(value, Mapping) else value)


_Found = list[tuple[str, dict[str, Any]]]
"""Changes in words, and the keys to override."""


def _loss(case: _Case) -> _Found:
    lossy = [link for link in case.links if case.down(link)["loss"] != _NO_LOSS]
    keys = {f"link.{link}.down.loss": "0 %" for link in lossy} | _events(case, "loss")
    return [(f"no random loss on {case.named}", keys)]


_NO_LOSS = {"kind": "bernoulli", "share": "0 %", "at": "exit"}


def _queue(case: _Case) -> _Found:
    keys = {}
    for path in case.paths:
        links = case.scenario["path"][path]["links"]
        ways = [case.scenario["link"][link][way] for link in links for way in ("up", "down")]
        round_trip = sum(_seconds(way["delay"]) for way in ways)
        product = case.capacity.get(path, 0.0) * round_trip / 8.0
        for link in links:
            wanted = max(product, _LONGER * _size(case.down(link)["queue"]["limit"]))
            keys[f"link.{link}.down.queue"] = _kilobytes(wanted)
    return [(f"a queue of a bandwidth-delay product, and twice as long as now, on {case.named}", keys)]


def _receive_buffer(case: _Case) -> _Found:
    return [("a larger receive buffer", _buffer(case, "receive_buffer"))]


def _send_buffer(case: _Case) -> _Found:
    return [("a larger send buffer", _buffer(case, "send_buffer"))]


def _buffer(case: _Case, key: str) -> dict[str, Any]:
    place, value = case.transport(key)
    size = _size(value["max"] if isinstance(value, Mapping) else value)
    return {place: _kilobytes(max(_LARGER * size, _LEAST_BUFFER))}


def _outages(case: _Case) -> _Found:
    keys = _events(case, "cut")
    for link in case.links:
        for way in ("down", "up"):
            rate = case.scenario["link"][link][way].get("rate", {})
            if "outage" in rate:
                keys[f"link.{link}.{way}.rate"] = {**rate, "outage": "0 s"}
        if "trace" in case.down(link)["rate"]:
            keys |= _constant(case, link)
    return [(f"no outage of {case.named}", keys)]


def _slower(case: _Case) -> _Found:
    changes = _events(case, "rate")
    found: _Found = [(f"{case.named} as fast as at the beginning", changes)] if changes else []
    varying = [link for link in case.links if case.varies(link, "down")]
    if varying:
        keys = dict(changes)
        for link in varying:
            keys |= _constant(case, link)
        found.append((f"the mean rate of {case.named} all the time", keys))
    return found


def _constant(case: _Case, link: str) -> dict[str, Any]:
    """The mean rate of a link, as far as its paths tell it; of both directions, which often vary together."""
    rates = [case.capacity[path] for path in case.paths if link in case.scenario["path"][path]["links"]]
    if not rates or not math.isfinite(rates[0]):
        return {}
    ways = [way for way in ("down", "up") if case.varies(link, way)]
    return {f"link.{link}.{way}.rate": f"{rates[0] / 1e6:.3f} Mb/s" for way in ways}


def _events(case: _Case, key: str) -> dict[str, Any]:
    """The events without those changes of the session's links, interfaces or programs."""
    events = case.scenario.get("event", [])
    kept = [left for event in events if (left := _without(case, event, key)) is not None]
    return {} if kept == events else {"event": kept}


def _without(case: _Case, event: Mapping[str, Any], key: str) -> dict[str, Any] | None:
    """An event without a change; none if nothing is left of it."""
    is_own = event.get("link") in case.links or event.get("path") in case.paths or event.get("session") == case.entry
    if not is_own:
        return dict(event)
    left: dict[str, Any] = {}
    for name, value in event.items():
        if name == key:
            continue
        inner = {k: v for k, v in value.items() if k != key} if isinstance(value, Mapping) else value
        if inner != {}:
            left[name] = inner
    return None if set(left) <= {"at", "link", "path", "session"} else left


def _reader(case: _Case) -> _Found:
    return [("a client that goes on reading", _events(case, "reads"))]


def _application(case: _Case) -> _Found:
    return [("a server that goes on writing", _events(case, "writes"))]


def _alone(case: _Case) -> _Found:
    found: _Found = []
    traffic = case.scenario.get("traffic", [])
    if any(name.startswith("traffic") for name in case.by):
        kept = [each for each in traffic if each["path"] not in case.paths]
        found.append((f"no cross traffic on {case.named}", {"traffic": kept}))
    if any(name.startswith("session") for name in case.by):
        alone = {**case.session, "count": 1}
        entries = case.scenario["session"]
        keys = {f"session.{case.entry}.count": 1} if len(entries) == 1 else {"session": [alone]}
        found.append(("no other session", keys))
    return found


def _backup(case: _Case) -> _Found:
    return [(f"{case.named} not a backup", {f"path.{path}.backup": False for path in case.paths})]


def _policy(case: _Case) -> _Found:
    return _other(case, "path_policy", "full-mesh")


def _scheduler(case: _Case) -> _Found:
    """The scheduler that goes with how the sender gives data to subflows, and ours."""
    usual = "linux" if case.transport("commit")[1] == "into-buffer" else "min-rtt"
    return _other(case, "scheduler", usual) + _other(case, "scheduler", "earliest")


def _copies(case: _Case) -> _Found:
    return _other(case, "scheduler", "min-rtt") or [
        ("no opportunistic retransmission", {case.transport("opportunistic_retransmission")[0]: False})
    ]


def _last_bytes(case: _Case) -> _Found:
    found = _other(case, "scheduler", "earliest")
    paths = case.session["paths"]
    left = [path for path in paths if path not in case.by]
    if left and left != paths and len(case.by) == 1:
        found.append((f"without {case.by[0]}", {f"session.{case.entry}.paths": left}))
    return found or _nearer(case)


def _window(case: _Case) -> _Found:
    found: _Found = []
    lossy = [link for link in case.links if case.scenario["link"][link]["up"]["loss"] != _NO_LOSS]
    if lossy:
        keys = {f"link.{link}.up.loss": "0 %" for link in lossy}
        found.append((f"no loss of acknowledgments on {case.named}", keys))
    coupled = case.chosen("congestion_control") in _COUPLED
    return found + _other(case, "congestion_control", "cubic" if coupled else "bbr")


def _pacing(_: _Case) -> _Found:
    return [("no pacing of responses", {"server.response_pacing": "off"})]


def _start_up(case: _Case) -> _Found:
    place, _ = case.transport("initial_window")
    return [("a larger initial window", {place: _INITIAL_WINDOW})]


def _idle(case: _Case) -> _Found:
    return [("no decay of the window while idle", {case.transport("idle_restart")[0]: False})]


def _request(case: _Case) -> _Found:
    video = case.session.get("video", {})
    place = f"session.{case.entry}.video"
    found: _Found = []
    if (longer := _LONGER_SEGMENTS.get(video.get("ladder", ""))) is not None:
        found.append(("longer media segments", {f"{place}.ladder": longer}))
    elif "segment_duration" in video and "rates" in video:
        longer = f"{_LARGER * _seconds(video['segment_duration']):g} s"
        found.append(("longer media segments", {f"{place}.segment_duration": longer}))
    return found or _nearer(case)


def _nearer(case: _Case) -> _Found:
    """Half the round trip."""
    keys = {}
    for link in case.links:
        for way in ("up", "down"):
            half = _seconds(case.scenario["link"][link][way]["delay"]) / 2.0
            keys[f"link.{link}.{way}.delay"] = f"{1e3 * half:g} ms"
    return [(f"half the round trip on {case.named}", keys)]


def _order(case: _Case) -> _Found:
    keys: dict[str, Any] = {}
    for link in case.links:
        for way in ("down", "up"):
            table = case.scenario["link"][link][way]
            if "jitter" in table:
                keys[f"link.{link}.{way}.jitter"] = {"kind": "uniform", "half_width": "0 ms"}
            if "reordering" in table:
                keys[f"link.{link}.{way}.reordering"] = {"share": "0 %", "by": "0 ms"}
    return [(f"no jitter and no reordering on {case.named}", keys)]


def _faster(case: _Case) -> _Found:
    keys = {}
    for link in case.links:
        rate = case.down(link)["rate"]
        if rate["kind"] != "constant" or rate.get("rate") in (None, "unlimited"):
            return []
        keys[f"link.{link}.down.rate"] = f"{_MORE_CAPACITY * _core.rate_bps(rate['rate']) / 1e6:g} Mb/s"
    return [(f"links that are {_MORE_CAPACITY:g} times as fast", keys)]


def _other(case: _Case, key: str, name: str) -> _Found:
    """Another replaceable part than the present one."""
    place, _ = case.transport(key)
    keys: dict[str, Any] = {place: name}
    if key == "congestion_control":
        own = [path for path in case.paths if key in case.scenario["path"][path]]
        keys |= {f"path.{path}.{key}": name for path in own}
    words = {"scheduler": "scheduler", "path_policy": "path policy", "congestion_control": "congestion control"}
    return [] if case.chosen(key) == name else [(f"the {words[key]} {name}", keys)]


_REMEDIES: Mapping[str, Callable[[_Case], _Found]] = {
    linktime.USEFUL: _faster,
    "request": _request,
    "start-up": _start_up,
    "pacing": _pacing,
    "reader": _reader,
    "application": _application,
    "window": _window,
    "loss-random": _loss,
    "loss-queue": _queue,
    "loss-outage": _outages,
    "reordering": _order,
    "idle-decay": _idle,
    "receive-window": _receive_buffer,
    "send-buffer": _send_buffer,
    "policy": _policy,
    "backup": _backup,
    "scheduler": _scheduler,
    "not-joined": _nearer,
    "shared": _alone,
    "link-down": _outages,
    "link-slow": _slower,
    "copies": _copies,
    "last-bytes": _last_bytes,
}
"""What is tried against each cause; against others nothing is known."""


def of_parts(
    scenario: Mapping[str, Any],
    entry: int,
    capacity: Mapping[str, float],
    useful_share: float,
    parts: Sequence[LinkTime],
) -> list[Remedy]:
    """The remedies worth trying, those of the largest causes first.

    Args:
        scenario: The resolved scenario.
        entry: The position of the session's entry in it.
        capacity: The mean rate of each path, in bit/s.
        useful_share: The share of new data.
        parts: What the rest went to.
    """
    parts = of_outages(parts)
    shares = by_cause(parts)
    wanted = [cause for cause, share in shares.items() if share >= LEAST_SHARE]
    if useful_share >= _FULL_LINKS:
        wanted.insert(0, linktime.USEFUL)
    found: dict[tuple[tuple[str, str], ...], Remedy] = {}
    for cause in wanted:
        least = min(_LEAST_OF_CAUSE * shares.get(cause, 0.0), LEAST_SHARE)
        mine = [part for part in parts if part.cause == cause and part.share >= least]
        paths = dict.fromkeys(part.path for part in mine) or dict.fromkeys(scenario["session"][entry]["paths"])
        by = dict.fromkeys(part.by for part in mine if part.by is not None)
        case = _Case(scenario, entry, capacity, tuple(paths), tuple(by))
        for what, keys in _REMEDIES[cause](case) if cause in _REMEDIES else ():
            text = {key: _core.value_text(value, key) for key, value in keys.items()}
            # Two causes may have one remedy, which then belongs to the larger one.
            if text:
                found.setdefault(tuple(text.items()), Remedy(cause, what, text))
    return list(found.values())[:MOST_REMEDIES]


def entry_of(scenario: Mapping[str, Any], position: int) -> int:
    """The position of the entry that a session is one of."""
    for entry, table in enumerate(scenario["session"]):
        if position < table["count"]:
            return entry
        position -= table["count"]
    raise AssertionError("the run has the session")


def _seconds(text: str) -> float:
    return _core.time_s(text)


def _size(text: str | int) -> float:
    """A size of a resolved scenario in bytes; packets are full ones."""
    number, unit = re.fullmatch(r"([\d.]+) ?(\w*)", str(text)).groups()  # type: ignore[union-attr]
    if unit.startswith("packet"):
        return float(number) * _PACKET
    return float(number) * _SIZES[unit.removesuffix("B")]


def _kilobytes(size: float) -> str:
    return f"{math.ceil(size / 1e3)} kB"
