"""The paper `one-pipe`: its bound, its networks, and what its tables make of times that were measured."""

import json
import platform
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from anabranch import InputError, _core
from anabranch.experiments import formats, kept_runs, paper, reproduction, statistics
from anabranch.experiments.executor import Threads
from anabranch.experiments.paper import Paper
from anabranch.experiments.realtime import ByEngine
from anabranch.experiments.store import Store
from anabranch.experiments.study import Case, Study
from anabranch.experiments.sweep import make_runs
from anabranch.report import paper_text
from anabranch.results.columns import download_times_s
from anabranch.results.frames import frame
from anabranch.system import provenance
from conftest import require_live
from test_paper import Counted

PAGES = Path(__file__).resolve().parent.parent / "docs" / "validation"
CASE = {"loss": "2 %", "queue": "1 BDP", "chunk": "100 kB"}


@pytest.fixture(scope="module")
def study() -> Paper:
    """The paper."""
    return paper.load("one-pipe")


@pytest.fixture(scope="module")
def criteria(study: Paper) -> ModuleType:
    """Its module."""
    return sys.modules[f"criteria of {study.name}"]


def test_the_least_time_by_hand(criteria: ModuleType) -> None:
    def bound(rates: tuple[float, float], rtts: tuple[int, int]) -> float:
        return float(criteria.Network(rates, rtts).least_ms(50_000))

    # 50 000 bytes are 36 packets with 72 bytes of headers each: 52 592 bytes, 420.736 kbit at 2000 kb/s in sum.
    assert bound((1000.0, 1000.0), (60, 60)) == pytest.approx(30 + 30 + 210.368)
    # The request takes the shorter round trip's half. The second path begins 20 ms later and lacks 20 kbit.
    assert bound((1000.0, 1000.0), (20, 60)) == pytest.approx(10 + 10 + (420.736 + 20) / 2)
    # The slow path's first bit would arrive after everything else.
    assert bound((10.0, 2000.0), (600, 60)) == pytest.approx(30 + 30 + 210.368)


def test_quantiles_are_those_of_nearest_rank() -> None:
    values = [float(n) for n in range(1, 101)]
    assert [formats.quantile(values, share) for share in (0.5, 0.9, 0.99, 0.0)] == [50.0, 90.0, 99.0, 1.0]
    assert formats.quantiles([4.0, 5.0]) == "4 / 5 / 5"


def test_intervals_are_those_of_student() -> None:
    # Two values: the mean, and t(0.975, 1) = 12.706 of the standard error, half of their distance.
    assert formats.interval([1.0, 3.0], 3) == "2.000 ± 12.706"
    assert formats.interval([1.0]) == "1.00", "one value has no interval"
    assert formats.difference([0.9, 1.0, 1.1], 1) == "**+1.0 ± 0.2**"
    assert formats.difference([-1.0, 0.8], 1) == "-0.1 ± 11.4"


def test_the_times_of_a_session_are_without_what_never_arrived() -> None:
    chunks = [{"requested_s": 1.0, "finished_s": 1.5}, {"requested_s": 2.0, "finished_s": None}]
    assert download_times_s({"downloads": chunks}) == [0.5]


def test_the_reference_has_the_sum_of_the_rates_and_the_weighted_round_trip(criteria: ModuleType) -> None:
    labels = {**CASE, "scenario": "one-pipe/pipe", "ratio": "1:1", "rtts": "20/60 ms"}
    pipe = criteria.network(labels)
    assert (pipe["link.pipe.rate"], pipe["link.pipe.rtt"]) == ("2000.000 kb/s", "40.000 ms")
    assert pipe["link.pipe.queue"] == "15000 B", "10 000 bytes would be less than ten packets"
    paths = criteria.network({**labels, "scenario": "one-pipe/chunks", "ratio": "5:1"})
    assert (paths["link.slow.rate"], paths["link.fast.rate"]) == ("1666.667 kb/s", "333.333 kb/s")
    assert (paths["link.slow.rtt"], paths["link.fast.rtt"]) == ("20.000 ms", "60.000 ms")


def test_the_grid_is_the_documented_one(study: Paper, criteria: ModuleType) -> None:
    (grid,) = [each.plan for each in study.plans if each.plan.name == "grid"]
    # Two scenarios, with pauses and without.
    assert grid.conditions == 2 * 2 * 7 * 5 * 3 * 3 * 4
    (rtts,) = [[point.labels["rtts"] for point in axis.points] for axis in grid.axes if axis.columns == ("rtts",)]
    assert rtts == [*criteria.TUNED_RTTS, *criteria.UNSEEN_RTTS]


def measured(study: Paper, plan: str, folder: Path, **labels: object) -> Study:
    """The sessions of some conditions of a plan, with two seeds."""
    (each,) = [own for own in study.plans if own.plan.name == plan]
    chosen = [
        one for one in each.experiment.conditions if all(one.labels[key] == value for key, value in labels.items())
    ]
    part = reproduction.PlanRuns(study, "as shipped", each, reproduction._runs(each, chosen, (1, 2)))
    with Store(folder, provenance.build()) as store:
        make_runs(part.runs, store, execute=Threads(2), progress=Counted())
        return reproduction._study(study, [part], store, statistics.CONFIDENCE)


def test_our_sender_is_near_the_pipe_on_unlike_paths(study: Paper, criteria: ModuleType, tmp_path: Path) -> None:
    labels = {"rates": "333 + 1667", "sender": "cbbr, earliest", "chunk": "100 kB"}
    case = Case("ours", "senders", labels)
    found = measured(study, "senders", tmp_path, **labels)
    median = formats.quantile(found.downloads_ms(case), 0.5)
    assert median <= 490
    assert criteria.Network.of(labels).least_ms(100_000) / median > 0.97
    assert criteria.copied(found.rows(case)) <= 0.025


def session(scenario: str, overrides: dict[str, str]) -> dict[str, Any]:
    """The session of a run."""
    text = _core.shipped(scenario)
    assert text is not None
    checked = _core.load(text, name=scenario, directory=None, overrides=tuple(overrides.items()))
    found: dict[str, Any] = json.loads(_core.measure(checked, seed=1, stop=_core.Stop()))["metrics"]["sessions"][0]
    return found


def longest_gap(scheduler: str) -> float:
    """The longest time in which nothing arrived in one-pipe/silent-cut, in seconds."""
    changes = {"transport.scheduler": scheduler, "session.0.video.size": "20 MB", "duration": "60 s"}
    found = session("one-pipe/silent-cut", changes)
    assert found["bytes"] >= 20_000_000, "everything arrived"
    return float(found["longest_delivery_gap_s"])


def test_a_silent_cut_is_bridged_before_a_timeout() -> None:
    assert longest_gap("earliest") <= 0.3
    assert longest_gap('{ name = "earliest", failover = false }') > 0.3


@pytest.mark.parametrize("control", ["cubic", "lia", "bbr", "cbbr", "bbr3", "wvegas"])
@pytest.mark.parametrize("kernel", ["legacy", "upstream"])
def test_every_chunk_arrives_with_any_control_in_both_commit_models(
    criteria: ModuleType, control: str, kernel: str
) -> None:
    network = criteria.network({**CASE, "scenario": "one-pipe/chunks", "ratio": "1:5", "rtts": "60/20 ms"})
    found = session("one-pipe/chunks", {**network, "transport.congestion_control": control, "transport.kernel": kernel})
    times_s = download_times_s(found)
    # 120 requests, less those that the download before them delayed beyond the end.
    assert len(times_s) >= 90
    assert max(times_s) < 10
    assert criteria.copied([found]) <= 0.05


@pytest.mark.parametrize("name", ["live", "wire-cuts", "wire-recorded", "wire-dash"])
def test_the_page_has_the_tables_of_the_kept_runs(study: Paper, name: str, tmp_path: Path) -> None:
    """Compared with the simulations as they are now, except where these are kept, too."""
    with Store(tmp_path, provenance.build()) as store:
        (found,) = reproduction.reproduce(
            [study.only([name])], store, seeds=None, sensitivity=False, execute=Threads(2), progress=Counted()
        )
    assert paper_text.markdown(found.tables[0]) in (PAGES / study.page).read_text("utf-8")


def test_no_kept_run_is_counted_twice(study: Paper) -> None:
    files = {each.kept for each in study.plans if each.kept} | {each.file for each in study.kept}
    assert len(files) == 4
    for file in files:
        names = [name for name in kept_runs.columns(file) if name in ("network", "rates", "chunk", "sender", "engine")]
        assert len(kept_runs.identities(file, (*names, "seed", "live_run"))) == len(kept_runs.read(file)), file


def test_the_bar_of_a_silent_cut_holds_on_the_wire() -> None:
    """0.3 s, with round trips up to 100 ms and queues up to a bandwidth-delay product, for downloads and videos."""
    ours = [
        row for row in kept_runs.read(kept_runs.DATA / "one-pipe-cuts.parquet") if row["sender"] == "`earliest`, `cbbr`"
    ]
    assert {row["network"] for row in ours} == {"a video", "a download"}
    assert max(row["longest_delivery_gap_s"] for row in ours) <= 0.3


def test_rows_are_added_in_order_and_only_of_the_same_kernel(tmp_path: Path) -> None:
    file = tmp_path / "runs.parquet"

    def row(seed: int, kernel: str) -> dict[str, Any]:
        return {"seed": seed, "live.kernel": kernel, "download_s": [0.5], "error": None}

    here = platform.release()
    kept_runs.add(file, [row(3, here), row(1, here)], ["seed"])
    kept_runs.add(file, [row(2, here)], ["seed"])
    assert [each["seed"] for each in kept_runs.read(file)] == [1, 2, 3]
    assert kept_runs.identity({"seed": 2, "live_run": None}) in kept_runs.identities(file, ["seed", "live_run"])
    frame([row(1, "another")]).write_parquet(file)
    with pytest.raises(InputError, match="these runs were made with Linux another"):
        kept_runs.add(file, [row(4, here)], ["seed"])
    file.write_text("nothing", "utf-8")
    with pytest.raises(InputError, match="no table of kept runs"):
        kept_runs.read(file)


@pytest.mark.slow
@pytest.mark.live
def test_two_unlike_paths_to_a_kernels_client_are_as_fast_as_simulated(study: Paper, tmp_path: Path) -> None:
    """`--live` makes the runs that a table lacks, and none again."""
    require_live("ip")
    (ours,) = [each for each in study.plans if each.plan.name == "wire-ours"]
    # The first point of every axis but that of the engines.
    *varied, engines = ours.plan.axes
    plan = replace(ours.plan, seeds=(1,), axes=(*(replace(axis, points=axis.points[:1]) for axis in varied), engines))
    one = replace(ours, plan=plan, kept=tmp_path / "runs.parquet")
    chosen = replace(study, plans=(one,), kept=(), tables=())
    with Store(tmp_path / "store", provenance.build()) as store:
        how: Any = {"execute": ByEngine(Threads(2)), "progress": Counted()}
        assert [reproduction.measure(chosen, store, **how) for _ in range(2)] == [1, 0]
        (found,) = reproduction.reproduce([chosen], store, seeds=None, sensitivity=False, **how)
    rows = {row["engine"]: row for row in found.study.sessions(["wire-ours"])}
    live, simulated = rows["live/anabranch"], rows["sim"]
    times_s = [sorted(row["download_s"]) for row in (live, simulated)]
    assert [len(times) for times in times_s] == [60, 60], "every chunk arrived"
    # Times of the emulated links' packets: medians of the two differ by less than a packet of the slow one, 18 ms.
    assert abs(times_s[0][30] - times_s[1][30]) < 0.018
