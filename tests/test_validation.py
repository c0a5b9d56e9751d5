"""The comparison with the kernel: test cases, what is read of runs, verdicts, and the engine that makes the runs."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anabranch import InputError, _core, run
from anabranch.experiments import realtime, statistics
from anabranch.experiments.conditions import Run
from anabranch.experiments.executor import Finished, Stop
from anabranch.experiments.store import Store
from anabranch.system import provenance
from anabranch.validation import cases, criteria, recorded
from anabranch.validation.campaign import Campaign
from anabranch.validation.cases import TestCase
from anabranch.validation.criteria import USUAL_PARTS, Part
from anabranch.validation.judgement import Equivalence, Judgement, part_verdict
from anabranch.validation.measurement import Lateness, Measurement, UnobservedError, emulated
from anabranch.validation.report import Kernel

SEVERAL = Measurement(
    seed=1,
    goodput_bps=1e6,
    retransmissions=30.0,
    chunk_s=None,
    chunk_p90_s=None,
    first_share=None,
    smallest_share=None,
    mean_bitrate_bps=None,
    switches=None,
    stalls=None,
    drops=(),
)


def bulk() -> TestCase:
    return cases.of_parts([Part.ONE_PATH])[0]


def on_off() -> TestCase:
    """The test case that is quickest to simulate, with few and short runs."""
    case = cases.of_parts([Part.ON_OFF], quick=True)[0]
    scenario = case.scenario.replace('duration = "60 s"', 'duration = "4 s"')
    assert scenario != case.scenario
    return replace(case, scenario=scenario, seconds=4, simulated_runs=3)


def judged(simulated: float, live: float) -> Judgement:
    def runs(value: float) -> list[Measurement]:
        return [replace(SEVERAL, goodput_bps=value * factor) for factor in (0.999, 1.0, 1.001)]

    found = Judgement.of(bulk(), runs(simulated), runs(live))
    assert found is not None
    return found


def test_every_test_case_has_a_name_of_its_own_and_a_scenario_of_its_length() -> None:
    found = cases.of_parts(Part)
    assert len({(case.part, case.name) for case in found}) == len(found)
    for case in found:
        assert f'duration = "{case.seconds} s"' in case.scenario
        assert case.live_runs >= 2, "a single run says nothing"


def test_the_test_cases_of_one_path_cover_the_grid() -> None:
    of_one_path = [case.name for case in cases.of_parts([Part.ONE_PATH])]
    names = {name.rpartition(", ")[0] for name in of_one_path if name.endswith("newreno")}
    assert len(names) == 20
    rates, rtts, losses, queues = (sorted({name.split(", ")[at] for name in names}) for at in range(4))
    assert (len(rates), len(rtts), len(losses), len(queues)) == (3, 4, 3, 3)
    pairs = {tuple(name.split(", ")[at] for at in columns) for name in names for columns in ((0, 1), (0, 2), (0, 3))}
    assert pairs >= {
        *itertools.product(rates, rtts),
        *itertools.product(rates, losses),
        *itertools.product(rates, queues),
    }


def test_drawn_test_cases_stay_the_same_and_have_every_axis() -> None:
    found = cases.of_parts([Part.DRAWN])
    assert len(found) == 60
    # Drawn before any of them was run: a change of the grid or the seed draws others.
    text = "".join(case.name + case.scenario for case in found)
    assert hashlib.sha256(text.encode()).hexdigest().startswith("f4e8cc06093f776f")
    wanted = ("steps", "lte", "backup", "two connections", "window 50 kB", "chunks of 10 kB", "newreno", "uplink 0.1 %")
    assert all(any(word in case.name for case in found) for word in wanted)
    for case in found:
        _core.load(case.scenario, name=case.name, directory=None, overrides=())


def test_the_quick_test_cases_are_a_few_of_every_part() -> None:
    found = cases.of_parts(USUAL_PARTS, quick=True)
    assert {case.part for case in found} == set(USUAL_PARTS)
    assert len(found) < 20
    assert not any(case.in_browser for case in found), "a browser takes the time of all others"


def test_one_test_case_in_ten_may_be_off_by_more_than_usual_but_none_by_much() -> None:
    def part(odd: float, count: int) -> Equivalence:
        return part_verdict(Part.ONE_PATH, [judged(odd if i < count else 1e6, 1e6) for i in range(20)])

    assert part(1.1e6, 2) is Equivalence.EQUIVALENT
    assert part(1.1e6, 3) is Equivalence.DIFFERS
    assert part(1.3e6, 1) is Equivalence.DIFFERS


def test_a_test_case_that_could_not_be_measured_passes_nothing() -> None:
    assert part_verdict(Part.ON_OFF, [judged(1e6, 1e6), None]) is Equivalence.INCONCLUSIVE
    assert Judgement.of(bulk(), [SEVERAL], []) is None


def test_twenty_segments_are_close_enough_whatever_the_share() -> None:
    def verdict(simulated: float, live: float) -> Equivalence:
        first, second = ([replace(SEVERAL, retransmissions=number)] * 3 for number in (simulated, live))
        found = Judgement.of(bulk(), first, second)
        assert found is not None
        return found.verdict

    assert verdict(1.0, 20.0) is Equivalence.EQUIVALENT
    assert verdict(100.0, 122.0) is Equivalence.EQUIVALENT
    assert verdict(100.0, 140.0) is Equivalence.DIFFERS


@pytest.mark.parametrize(
    ("mean", "half", "verdict"),
    [
        (0.01, 0.02, Equivalence.EQUIVALENT),
        (0.0, 0.2, Equivalence.INCONCLUSIVE),
        (0.2, 0.1, Equivalence.DIFFERS),
        (-0.2, 0.1, Equivalence.DIFFERS),
        (0.0, math.inf, Equivalence.INCONCLUSIVE),
    ],
)
def test_only_a_narrow_interval_passes(mean: float, half: float, verdict: Equivalence) -> None:
    assert Equivalence.within_share(statistics.Interval.around(mean, half), 0.05) is verdict


def test_either_tolerance_suffices_and_all_criteria_count() -> None:
    same, differs, unclear = Equivalence.EQUIVALENT, Equivalence.DIFFERS, Equivalence.INCONCLUSIVE
    assert [Equivalence.either(pair) for pair in ([differs, same], [differs, unclear], [differs, differs])] == [
        same,
        unclear,
        differs,
    ]
    assert [Equivalence.all_of(pair) for pair in ([same, unclear], [unclear, differs], [same, same])] == [
        unclear,
        differs,
        same,
    ]


def test_simulated_links_are_late_as_live_ones_were_on_average() -> None:
    found = Lateness.typical([Lateness(30e-6, 200e-6), Lateness(50e-6, 400e-6)])
    assert found is not None
    assert Lateness.typical([]) is None
    overrides = dict(emulated(["path1", "path2"], 320, "at-once", found))
    jitter = '{ kind = "percentiles", p50 = "40.000 us", p99 = "300.000 us", p999 = "453.034 us" }'
    assert overrides == {
        "link.path1.jitter": jitter,
        "link.path2.jitter": jitter,
        "session.0.start_spread": "1 ms",
        "transport.header_room": "320",
        "transport.writer": '"at-once"',
    }


def test_what_is_compared_is_read_from_the_metrics_of_a_run(tmp_path: Path) -> None:
    pair = next(case for case in cases.of_parts([Part.SEVERAL_PATHS]) if case.name.startswith("two sessions"))
    file = tmp_path / "case.toml"
    file.write_text(pair.scenario.replace('duration = "60 s"', 'duration = "4 s"'), encoding="utf-8")
    pair = replace(pair, seconds=4)
    metrics = run(file, seed=3).metrics
    found = Measurement.of(pair, 3, metrics)
    received = [session["bytes"] for session in metrics["sessions"]]
    sent = [(subflow["path"], subflow["bytes"]) for each in metrics["sessions"] for subflow in each["subflows"]]
    assert (found.seed, found.goodput_bps) == (3, sum(received) * 2)
    assert found.smallest_share == min(received) / sum(received)
    assert found.first_share == sum(n for path, n in sent if path == "path1") / sum(n for _, n in sent)
    assert len(found.drops) == 2
    assert found.chunk_s is None
    with pytest.raises(UnobservedError, match="`chunk_s` was not observed"):
        Measurement.of(replace(pair, criteria=criteria.OF_PART[Part.ON_OFF]), 3, metrics)


class Quiet:
    """Counts the runs that are made."""

    def __init__(self) -> None:
        self.made = 0

    def begin(self, runs: int, *, kept: int) -> None:
        """Nothing is shown."""

    def advance(self, _finished: Finished) -> None:
        """A run is over."""
        self.made += 1


Measure = Callable[[Run, Stop], bytes]


@pytest.fixture
def pretended(monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """Live runs are simulations that say how late their links were; the runs that were made."""
    made: list[Run] = []

    def measure(one: Run, _stop: Stop, *, content: Path | None = None) -> bytes:
        assert content is None
        made.append(one)
        metrics: dict[str, Any] = json.loads(json.dumps(run(Path(one.condition.scenario), seed=one.seed).metrics))
        metrics["live"] = {"lateness_s": {"p50": 3e-5, "p99": 2e-4}, "notes": []}
        return json.dumps({"metrics": metrics, "tries": 2 if one.seed == 1 else 1}).encode()

    monkeypatch.setattr(realtime, "measure", measure)
    monkeypatch.setattr(realtime, "missing", list)
    # Other systems have none.
    monkeypatch.setattr(_core, "header_room", lambda: 256, raising=False)
    return made


def test_runs_that_are_kept_are_not_made_again_and_failed_ones_are_tried_again(
    pretended: list[Run], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    measure: Any = realtime.measure

    def compare() -> tuple[int, dict[str, Any]]:
        progress = Quiet()
        with Store(tmp_path / "store", provenance.build()) as store:
            found = Campaign([on_off()], store, 2, progress, None).compare(2)
        return progress.made, found.json()

    def broken(one: Run, stop: Stop, *, content: Path | None = None) -> bytes:
        if one.seed == 2:
            raise RuntimeError("the cable was pulled")
        return bytes(measure(one, stop, content=content))

    monkeypatch.setattr(realtime, "measure", broken)
    made, found = compare()
    assert made == 2 + 3
    (case,) = found["cells"]
    assert (case["void"], case["errors"]) == (1, ["RuntimeError: the cable was pulled"])
    assert [each["seed"] for each in case["live"]] == [1]
    assert "1 run was invalid; 1 run failed: RuntimeError: the cable was pulled" in found["parts"][0]["notes"][0]
    monkeypatch.setattr(realtime, "measure", measure)
    made, found = compare()
    assert made == 1, "the simulations and the valid live run are there"
    (case,) = found["cells"]
    assert (case["void"], case["errors"], len(case["live"]), len(case["simulated"])) == (1, [], 2, 3)
    again = compare()
    assert again == (0, found)
    assert len(pretended) == 2


def test_the_statistics_are_those_of_hand_computed_intervals() -> None:
    # Differences 1, 1, 2: mean 4/3, deviation 1/sqrt(3), t(2) = 2.919986.
    found = statistics.mean_difference(np.array([11.0, 101.0, 1002.0]), np.array([10.0, 100.0, 1000.0]), paired=True)
    assert [found.estimate, found.half_width] == pytest.approx([4 / 3, 2.919986 / 3])
    # Variances 2 and 0: all uncertainty is from the first two runs, with one degree of freedom.
    found = statistics.mean_difference(np.array([1.0, 3.0]), np.array([1.0] * 4), paired=False)
    assert [found.estimate, found.half_width] == pytest.approx([1.0, 6.313752])
    assert statistics.mean_difference(np.array([1.0]), np.array([1.0]), paired=True).half_width == math.inf
    assert statistics.mean_difference(np.array([1.0, 2.0]), np.array([1.0]), paired=False).half_width == math.inf
    found = statistics.mean_difference(np.array([2.0, 2.0]), np.array([1.0, 1.0]), paired=False)
    assert found == statistics.Interval(1.0, 1.0, 1.0)


def test_an_interval_inside_the_margin_is_what_the_equivalence_test_of_plans_finds() -> None:
    first, second = np.array([5.0, 6.1, 7.3, 8.2, 9.4]), np.array([5.1, 6.0, 7.0, 8.4, 9.1])
    interval = statistics.mean_difference(first, second, paired=True)
    edge = max(-interval.low, interval.high)
    differences = np.column_stack([first - second] * 2)
    inside, outside = statistics.equivalence(differences, np.array([edge * 1.001, edge * 0.999]))
    assert inside < 0.05 < outside


def report() -> dict[str, Any]:
    """A report of live runs with every key, as ``validate --json`` prints it."""
    case = on_off()
    runs = [
        dataclasses.asdict(replace(SEVERAL, seed=seed, chunk_s=0.29, chunk_p90_s=0.3, stalls=0.0)) for seed in (1, 2, 3)
    ]
    for each in runs:
        each["drops"] = [{"queue": 7, "random": 1}]
    found = {
        "cell": {"part": case.part.key, "name": case.name},
        "void": 1,
        "errors": ["broke off"],
        "lateness": {"median_s": 3e-5, "p99_s": 2e-4},
        "live": runs,
    }
    return {
        "kernel": {"release": "6.12.8", "header_room": 256, "writer": "at-once"},
        "cells": [found],
        "verdict": "differs",
    }


def places(value: Any, way: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The ways to all leaves."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [each for key, member in members for each in places(member, (*way, key))] or [way]


def changed(way: tuple[str | int, ...], change: Callable[[Any, Any], None]) -> str:
    whole = report()
    parent: Any = whole
    for key in way[:-1]:
        parent = parent[key]
    change(parent, way[-1])
    return json.dumps(whole)


def test_a_report_can_be_read_again_and_gives_the_same_live_runs() -> None:
    live = recorded.of_json(json.dumps(report()))
    assert live.kernel == Kernel("6.12.8", 256, "at-once")
    assert live.parts == [Part.ON_OFF]
    found, nothing = live.of([on_off(), bulk()])
    assert (found.invalid, found.errors, len(found.live)) == (1, ("broke off",), 3)
    assert (nothing.lateness, nothing.live) == (None, ())


@pytest.mark.parametrize("way", [way for way in places(report()) if way != ("verdict",)], ids=str)
def test_each_value_that_is_missing_renamed_or_no_number_is_refused_by_its_key(way: tuple[str | int, ...]) -> None:
    key = str(way[-1])

    def refused(text: str) -> None:
        with pytest.raises(InputError, match=r"no report of validate --json: |cannot be compared: ") as error:
            recorded.of_json(text).of([on_off()])
        assert key in str(error.value)

    refused(changed(way, lambda parent, key: parent.__setitem__(key, math.nan)))
    if isinstance(way[-1], str):
        refused(changed(way, lambda parent, key: parent.pop(key) and None))
        refused(changed(way, lambda parent, key: parent.__setitem__(f"{key}_", parent.pop(key))))
    # What this test case does not compare need not have been observed.
    optional = {each.name for each in dataclasses.fields(Measurement) if "None" in str(each.type)} - {"chunk_s"}
    if key not in optional:
        refused(changed(way, lambda parent, key: parent.__setitem__(key, None)))
