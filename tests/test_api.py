import copy
import itertools
import multiprocessing
import pickle
import threading
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import anabranch
from conftest import SCENARIO


@pytest.fixture(scope="module")
def short() -> dict[str, Any]:
    return tomllib.loads(SCENARIO)


@pytest.fixture(scope="module")
def recorded(short: dict[str, Any]) -> anabranch.Run:
    return anabranch.run(short, seed=3, events=True)


def test_a_file_its_name_and_a_dictionary_give_the_same_run(short: dict[str, Any], scenario: Path) -> None:
    runs = [anabranch.run(given).metrics["sessions"] for given in (scenario, str(scenario), short)]
    assert runs[0] == runs[1] == runs[2]


def test_a_dictionary_keeps_the_order_of_its_paths(short: dict[str, Any]) -> None:
    turned = {**short, "link": dict(reversed(short["link"].items()))}
    del turned["session"][0]["paths"]
    subflows = anabranch.run(turned).metrics["sessions"][0]["subflows"]
    assert [subflow["path"] for subflow in subflows][:2] == ["lte", "wifi"]


def test_overrides_take_python_values(short: dict[str, Any]) -> None:
    changes = {
        "transport.scheduler": {"name": "tr-sty"},
        "transport.penalisation": False,
        "transport.initial_window": 4,
        "link.wifi.loss": "0 %",
    }
    resolved = tomllib.loads(anabranch.run(short, set=changes).scenario)
    assert resolved["transport"]["scheduler"] in ("tr-sty", {"name": "tr-sty"}) or (
        resolved["transport"]["scheduler"]["name"] == "tr-sty"
    )
    assert resolved["transport"]["penalisation"] is False
    assert resolved["transport"]["initial_window"] == 4


@pytest.mark.parametrize(
    ("scenario", "changes", "named"),
    [
        ("sticky/bsae", {}, "did you mean `sticky/base`"),
        (Path("nowhere.toml"), {}, "nowhere.toml"),
        ({"schema": 1, "duration": object()}, {}, "key `duration`: a value of type `object`"),
        ({"schema": 1, 7: 1}, {}, "the key 7 is no text"),
        ({"schema": 2**70}, {}, "64-bit"),
        ({"schema": None}, {}, "`NoneType`"),
        ("sticky/base", {"transport.scheduler": "gr-stx"}, "did you mean `gr-sty`"),
        ("sticky/base", {"link": object()}, "link: a value of type `object`"),
    ],
)
def test_wrong_input_raises_an_input_error(scenario: Any, changes: dict[str, Any], named: str) -> None:
    with pytest.raises(anabranch.InputError) as caught:
        anabranch.run(scenario, set=changes)
    assert named in str(caught.value)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_a_seed_out_of_range_is_refused(short: dict[str, Any], seed: int) -> None:
    with pytest.raises(anabranch.InputError, match="seed"):
        anabranch.run(short, seed=seed)


def test_the_largest_seed_is_taken(short: dict[str, Any]) -> None:
    assert anabranch.run(short, seed=2**64 - 1).metrics["seed"] == 2**64 - 1


def test_the_recording_agrees_with_the_metrics(recorded: anabranch.Run) -> None:
    (metrics,) = recorded.metrics["sessions"]
    (session,) = recorded.recording.sessions
    assert len(session.stalls_s) == metrics["stalls"]
    assert float(np.diff(session.stalls_s).sum()) == pytest.approx(metrics["stall_s"], abs=1e-6)
    assert len(session.underflows_s) == metrics["buffer_underflows"]
    # What happens after the last sample is in no bin.
    assert 0 <= metrics["picture_discards"] - session.discards.sum() <= 3
    assert 0 <= metrics["path_switches"] - session.path_switches.sum() <= 30
    assert session.interval_s == pytest.approx(0.1)
    carried = sum(float(np.nansum(path.throughput_bps)) * session.interval_s / 8 for path in session.paths)
    assert carried == pytest.approx(12e6, rel=0.01)
    assert [mark.at_s for mark in recorded.recording.marks] == [10.0, 14.0]
    assert session.plays


def test_a_run_folder_is_read_back_as_it_was_written(recorded: anabranch.Run, tmp_path: Path) -> None:
    from anabranch.runs import runfolder

    stored = runfolder.read(recorded.save(tmp_path / "run"))
    assert stored.metrics == recorded.metrics
    assert stored.recording.marks == recorded.recording.marks
    for written, read in zip(recorded.recording.sessions, stored.recording.sessions, strict=True):
        assert written.name == read.name
        for column in ("times_s", "buffer_s", "discards", "path_switches", "stalls_s", "underflows_s"):
            np.testing.assert_array_equal(getattr(written, column), getattr(read, column), column)
        for a, b in zip(written.paths, read.paths, strict=True):
            assert a.path == b.path
            for column in ("throughput_bps", "cwnd_packets", "srtt_s"):
                np.testing.assert_array_equal(getattr(a, column), getattr(b, column), column)


def test_what_was_on_screen_and_which_paths_were_forbidden_is_read_back(tmp_path: Path) -> None:
    from anabranch.runs import runfolder

    changes = {"transport.path_policy": "pud", "duration": "100 s"}
    run = anabranch.run("dash/ratio-1-5", set=changes)
    (session,) = run.recording.sessions
    (stored,) = runfolder.read(run.save(tmp_path / "run")).recording.sessions
    assert stored.shown == session.shown
    assert {s.resolution for s in session.shown} <= {"320x240", "480x360", "854x480", "1280x720"}
    assert all(a.end_s == b.begin_s for a, b in itertools.pairwise(session.shown))
    (metrics,) = run.metrics["sessions"]
    for path, again, subflow in zip(session.paths, stored.paths, metrics["subflows"], strict=True):
        np.testing.assert_array_equal(path.disabled_s, again.disabled_s)
        assert subflow["disabled_spans_s"] is not None
        np.testing.assert_allclose(path.disabled_s, np.array(subflow["disabled_spans_s"]).reshape(-1, 2))
    assert len(session.paths[0].disabled_s) > 0


def test_events_are_there_only_if_asked_for(short: dict[str, Any], recorded: anabranch.Run) -> None:
    assert recorded.events.height > 1000
    assert recorded.events["event"].null_count() == 0
    quiet = anabranch.run(short)
    assert not quiet.has_events
    with pytest.raises(ValueError, match="events=True"):
        _ = quiet.events


def test_progress_rises_and_what_it_raises_ends_the_run() -> None:
    endless = {
        "schema": 1,
        "duration": "100000 s",
        "link": {"a": {"rtt": "10 ms", "rate": "1 Gb/s", "queue": "1 MB"}},
        "session": [{"video": {"kind": "bulk"}}],
    }
    seen: list[float] = []

    class EnoughError(Exception):
        pass

    def report(fraction: float) -> None:
        seen.append(fraction)
        if len(seen) == 3:
            raise EnoughError

    with pytest.raises(EnoughError):
        anabranch.run(endless, progress=report)
    assert seen == sorted(seen)
    assert 0 < seen[0] < seen[-1] < 1


def test_other_threads_go_on_during_a_run() -> None:
    long = {"transport.scheduler": "min-rtt", "duration": "60 s"}
    stop = threading.Event()
    ticks = 0

    def tick() -> None:
        nonlocal ticks
        while not stop.wait(0.001):
            ticks += 1

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        run = anabranch.run("bulk/three-paths", set=long)
    finally:
        stop.set()
        thread.join()
    # A run that kept the interpreter to itself would allow a tick or two.
    assert ticks > 20, run.wall_seconds


def test_two_runs_at_once_are_the_runs_that_they_are_alone(short: dict[str, Any]) -> None:
    found: dict[int, Any] = {}

    def work(seed: int) -> None:
        found[seed] = anabranch.run(short, seed=seed).metrics

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(found[seed] == anabranch.run(short, seed=seed).metrics for seed in range(4))


def test_a_run_is_shown_in_a_line(recorded: anabranch.Run) -> None:
    text = repr(recorded)
    assert len(text) < 240
    assert "\n" not in text
    assert text.startswith("<Run of scenario, seed 3, ended finished: start-up ")


def test_a_run_is_copied_and_pickled_whole(recorded: anabranch.Run, tmp_path: Path) -> None:
    from anabranch.runs import runfolder

    for again in (pickle.loads(pickle.dumps(recorded)), copy.copy(recorded), copy.deepcopy(recorded)):
        assert again.metrics == recorded.metrics
        assert (again.scenario, again.seed, again.warnings) == (recorded.scenario, 3, ())
        assert again.has_events
        assert again.events.equals(recorded.events)
        assert again.recording.marks == recorded.recording.marks
        np.testing.assert_array_equal(again.recording.sessions[0].buffer_s, recorded.recording.sessions[0].buffer_s)
        with pytest.raises(ValueError, match="copied or pickled"):
            _ = again.outcome
        assert repr(again) == repr(recorded)
    stored = runfolder.read(pickle.loads(pickle.dumps(recorded)).save(tmp_path / "run"))
    assert stored.metrics == recorded.metrics


def test_a_pickled_run_without_events_has_none(short: dict[str, Any]) -> None:
    again = pickle.loads(pickle.dumps(anabranch.run(short, set={"duration": "20 s"})))
    assert not again.has_events
    with pytest.raises(ValueError, match="events=True"):
        _ = again.events


def test_runs_come_back_from_other_processes(short: dict[str, Any]) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        runs = pool.map(_of_seed, [(short, seed) for seed in (1, 2)])
    assert [run.metrics for run in runs] == [anabranch.run(short, seed=seed).metrics for seed in (1, 2)]


def _of_seed(given: tuple[dict[str, Any], int]) -> anabranch.Run:
    scenario, seed = given
    return anabranch.run(scenario, seed=seed)
