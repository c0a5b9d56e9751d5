"""The conformance suite for own algorithms, and a first comparison with the built-in ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anabranch import _core
from anabranch.algorithms import loading
from anabranch.algorithms.bases import BASES
from anabranch.errors import InputError
from anabranch.results.metrics import SessionMetrics, quality_of
from anabranch.runs import reading, session

CASES = 200
"""Arbitrary inputs on which a contract is tried. The same ones each time."""

SEEDS = (1, 2, 3)
"""Seeds of the comparison: enough to see a blunder, not enough for a claim."""


@dataclass(frozen=True)
class ContractCheck:
    """A property that was tried.

    Attributes:
        property: What must hold, in a sentence.
        fault: What was found instead, or ``None`` if it holds.
    """

    property: str
    fault: str | None


@dataclass(frozen=True)
class Row:
    """An algorithm in the comparison.

    Attributes:
        name: The algorithm.
        goodput_bps: Mean goodput of the session over the seeds, bit/s.
        stalls: Mean number of stalls.
        stall_s: Mean time of stalls, seconds.
        startup_s: Mean time before the first picture, seconds.
        cpu_s: Processor time of a run, seconds.
        mean_bitrate_bps: Mean bitrate on screen, bit/s; ``None`` if a session showed nothing.
        qoe_linear_per_segment: Mean linear QoE per media segment, kb/s; ``None`` if a session showed nothing.
    """

    name: str
    goodput_bps: float
    stalls: float
    stall_s: float
    startup_s: float | None
    cpu_s: float
    mean_bitrate_bps: float | None
    qoe_linear_per_segment: float | None


def kind_of(name: str) -> str:
    """The kind of an algorithm, by its base.

    Raises:
        InputError: There is no such class, or it has none of the four bases.
    """
    if ":" not in name:
        raise InputError(f"`{name}`: expected module:Class, such as my_module:MyScheduler")
    try:
        cls = loading.locate(name)
        kind = next((kind for kind, base in BASES.items() if isinstance(cls, type) and issubclass(cls, base)), None)
        if kind is None:
            bases = ", ".join(f"anabranch.{base.__name__}" for base in BASES.values())
            raise InputError(f"`{name}` has none of the bases {bases}")
        loading.make(kind, name, (), {})
    except loading.RefusalError as refusal:
        raise InputError(str(refusal.args[1])) from None
    return kind


def findings(kind: str, name: str) -> Iterator[ContractCheck]:
    """Tries every property; later ones only where they mean something."""
    if kind != "abr_rule":
        fault = _core.check_contract(kind, name, directory=None, cases=CASES)
        yield ContractCheck(_CONTRACTS[kind], fault)
    healing = _of_kind(kind, name, _HEALING)
    fault = _fault(lambda: _finishes(healing))
    yield ContractCheck("after each outage the session goes on and completes", fault)
    if fault is None:
        yield ContractCheck(
            "the same seed gives the same bytes, also in another process", _fault(lambda: _repeats(healing))
        )


_CONTRACTS = {
    "scheduler": f"on {CASES} arbitrary sequences of views: data goes to candidates only, and no subflow starves",
    "congestion_control": f"on {CASES} arbitrary lives of a subflow: the window stays sane, and repeats itself",
    "path_policy": f"on {CASES} arbitrary sequences of states: some subflow may send, and the time goes on",
}

# Each path is cut and heals, once while the other one works and once both together.
_HEALING: dict[str, Any] = {
    "schema": 1,
    "question": "Does the session come through outages?",
    "duration": "300 s",
    "transport": {"congestion_control": "newreno"},
    "link": {
        "wifi": {"rtt": "30 ms", "rate": "6 Mb/s", "loss": "0.5 %"},
        "lte": {"rtt": "80 ms", "rate": "3 Mb/s"},
    },
    "session": [{"video": {"kind": "dash", "ladder": "bbb-2s", "duration": "60 s"}, "player": "bola"}],
    "event": [
        {"at": "5 s", "link": "wifi", "down": True},
        {"at": "12 s", "link": "wifi", "down": False},
        {"at": "20 s", "link": "lte", "down": True},
        {"at": "27 s", "link": "lte", "down": False},
        {"at": "33 s", "link": "wifi", "down": True},
        {"at": "34 s", "link": "lte", "down": True},
        {"at": "40 s", "link": "wifi", "down": False},
        {"at": "41 s", "link": "lte", "down": False},
    ],
}

# A fast path with a short queue and a slow one with a long queue, both with rates that vary.
_COMPARED: dict[str, Any] = {
    "schema": 1,
    "question": "How does an algorithm compare with the built-in ones?",
    "duration": "300 s",
    "transport": {"congestion_control": "cubic"},
    "link": {
        "wifi": {"rtt": "30 ms", "rate": {"synthetic": "wifi-walk", "mean": "4 Mb/s"}, "queue": "64 kB"},
        "lte": {"rtt": "70 ms", "rate": {"synthetic": "lte", "mean": "3 Mb/s"}, "queue": "250 kB"},
    },
    "session": [{"video": {"kind": "dash", "ladder": "bbb-2s", "duration": "120 s"}, "player": "dash.js-5"}],
}


def _of_kind(kind: str, name: str, scenario: dict[str, Any]) -> dict[str, Any]:
    """A scenario with this algorithm in it."""
    if kind != "abr_rule":
        return {**scenario, "transport": {**scenario["transport"], kind: name}}
    (viewer,) = scenario["session"]
    player = {"kind": _RULE_PLAYER, "rule": name} if ":" in name else {"kind": name, "buffer": _RULE_BUFFER}
    return {**scenario, "session": [{**viewer, "player": player}]}


# Rules are compared with the same buffer; otherwise the largest one wins.
_RULE_PLAYER = "bola"
_RULE_BUFFER = "25 s"


def _fault(attempt: Callable[[], str | None]) -> str | None:
    try:
        return attempt()
    except _core.AlgorithmError as error:
        return str(error)


def _finishes(scenario: dict[str, Any]) -> str | None:
    metrics = session.simulate(scenario).metrics
    if metrics["ended"] == "finished":
        return None
    (viewer,) = metrics["sessions"]
    played = viewer["played_s"] or 0.0
    until = "nothing more could happen from {} s on" if metrics["ended"] == "stuck" else "it had not ended after {} s"
    when = until.format(f"{metrics['sim_seconds']:.0f}")
    return f"{played:.0f} s of the video were played, and {when}: does the algorithm wait for ever?"


_AGAIN = (
    "import sys; from anabranch import _core; from anabranch.runs import reading; s = reading.load(sys.argv[1]);"
    "print(_core.measure(s, seed=1, stop=_core.Stop()))"
)


def _repeats(scenario: dict[str, Any]) -> str | None:
    """Runs twice in this process, where state of the module would be left over, and once in one with other hashes."""
    loaded = reading.load(scenario)
    first, second = (_core.measure(loaded, seed=1, stop=_core.Stop()) for _ in range(2))
    if first != second:
        return f"two runs in one process differ: {_difference(first, second)}"
    with tempfile.TemporaryDirectory(prefix="anabranch-") as folder:
        file = Path(folder) / "scenario.toml"
        file.write_text(loaded.resolved, encoding="utf-8")
        environment = {**os.environ, "PYTHONHASHSEED": "4711", "PYTHONPATH": os.pathsep.join(["", *sys.path])}
        command = [sys.executable, "-c", _AGAIN, str(file)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return (done.stderr.strip().splitlines() or ["another process failed without a message"])[-1]
    # The scenario's name is that of its file there.
    here, there = (_nameless(text) for text in (first, done.stdout))
    return None if here == there else f"a run in another process differs: {_difference(here, there)}"


def _nameless(measured: str) -> str:
    found = json.loads(measured)
    found["metrics"]["scenario"] = ""
    return json.dumps(found)


def _difference(one: str, other: str) -> str:
    """The first metric of the session that differs, for a hint where to look."""
    first, second = (json.loads(text)["metrics"] for text in (one, other))
    for mine, its in zip(first["sessions"], second["sessions"], strict=False):
        for key in mine:
            if mine[key] != its.get(key):
                return f"{key} is {_short(mine[key])} and {_short(its.get(key))}"
    return "their events differ"


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 30 else text[:27] + "..."


def comparison(kind: str, name: str) -> Iterator[Row]:
    """The algorithm, then the built-in ones of its kind, in one scenario with the same seeds."""
    built_in = [entry[1] for entry in _core.registry() if entry[0] == loading.registry_of(kind)]
    for each in [name, *built_in]:
        scenario = _of_kind(kind, each, _COMPARED)
        began = time.process_time()
        sessions = [session.simulate(scenario, seed=seed).metrics["sessions"][0] for seed in SEEDS]
        yield _row(each, sessions, (time.process_time() - began) / len(SEEDS))


def _row(name: str, sessions: list[SessionMetrics], cpu_s: float) -> Row:
    def mean(values: list[float]) -> float:
        return sum(values) / len(values)

    def known(values: list[float | None]) -> float | None:
        """The mean over all seeds: without those that showed nothing it would be that of other networks."""
        there = [value for value in values if value is not None]
        return mean(there) if len(there) == len(values) else None

    startups = [each["startup_s"] for each in sessions if each["startup_s"] is not None]
    quality = [quality_of(each) for each in sessions]
    return Row(
        name=name,
        goodput_bps=mean([each["goodput_bps"] for each in sessions]),
        stalls=mean([each["stalls"] or 0 for each in sessions]),
        stall_s=mean([each["stall_s"] or 0.0 for each in sessions]),
        startup_s=mean(startups) if startups else None,
        cpu_s=cpu_s,
        mean_bitrate_bps=known([each and each["mean_bitrate_bps"] for each in quality]),
        qoe_linear_per_segment=known([each and each["qoe_linear_per_segment"] for each in quality]),
    )
