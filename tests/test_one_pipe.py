"""The bound of scripts/one-pipe.py, and what it makes of measured times."""

import json
from pathlib import Path
from types import ModuleType

import pytest

from anabranch import _core
from conftest import load_script, require_live

VALIDATION = Path(__file__).resolve().parent.parent / "docs" / "validation"


@pytest.fixture(scope="module")
def one_pipe() -> ModuleType:
    """The script."""
    return load_script("one-pipe")


def bound(script: ModuleType, rates: tuple[float, float], rtts: tuple[int, int], chunk_kb: int) -> float:
    """The least time of a chunk."""
    return float(script.least_ms(script.Case(rates, rtts, "0 %", "64 kB", chunk_kb)))


def test_the_least_time_by_hand(one_pipe: ModuleType) -> None:
    # 50 000 bytes are 36 packets with 72 bytes of headers each: 52 592 bytes, 420.736 kbit at 2000 kb/s in sum.
    assert bound(one_pipe, (1000.0, 1000.0), (60, 60), 50) == pytest.approx(30 + 30 + 210.368)
    # The request takes the shorter round trip's half. The second path begins 20 ms later and lacks 20 kbit.
    assert bound(one_pipe, (1000.0, 1000.0), (20, 60), 50) == pytest.approx(10 + 10 + (420.736 + 20) / 2)
    # The slow path's first bit would arrive after everything else.
    assert bound(one_pipe, (10.0, 2000.0), (600, 60), 50) == pytest.approx(30 + 30 + 210.368)


def test_quantiles_are_those_of_nearest_rank(one_pipe: ModuleType) -> None:
    sample = one_pipe.Sample(tuple(float(n) for n in range(1, 101)), 0.0)
    assert [sample.quantile(share) for share in (0.5, 0.9, 0.99, 0.0)] == [50.0, 90.0, 99.0, 1.0]


def test_the_reference_has_the_sum_of_the_rates_and_the_weighted_round_trip(one_pipe: ModuleType) -> None:
    case = one_pipe.Case((500.0, 1500.0), (20, 60), "2 %", "1 BDP", 100)
    pipe = case.one_pipe()
    assert (pipe["link.pipe.rate"], pipe["link.pipe.rtt"]) == ("2000.000 kb/s", "50.000 ms")
    assert pipe["link.pipe.queue"] == "15000 B", "12 500 bytes would be less than ten packets"


def test_the_grid_is_the_documented_one(one_pipe: ModuleType) -> None:
    assert len(list(one_pipe.cases(one_pipe.TUNED_RTTS, "1 s"))) == 7 * 3 * 3 * 3 * 4
    assert len(list(one_pipe.cases(one_pipe.UNSEEN_RTTS, "0 s"))) == 7 * 2 * 3 * 3 * 4


def test_our_sender_is_near_the_pipe_on_unlike_paths(one_pipe: ModuleType) -> None:
    case = one_pipe.Case((333.0, 1667.0), (60, 60), "0.5 %", "30 kB", 100)
    ours = one_pipe.measured("chunks", {**case.two_paths(), **one_pipe.OUR_SENDER}, 2)
    assert ours.quantile(0.5) <= 490
    assert one_pipe.least_ms(case) / ours.quantile(0.5) > 0.97
    assert ours.copied <= 0.025


def longest_gap(script: ModuleType, scheduler: str) -> float:
    """The longest time in which nothing arrived in one-pipe/silent-cut, in seconds."""
    text = (script.SCENARIOS / "one-pipe" / "silent-cut.toml").read_text(encoding="utf-8")
    overrides = (("transport.scheduler", scheduler), ("session.0.video.size", "20 MB"), ("duration", "60 s"))
    checked = _core.load(text, name="silent-cut", directory=None, overrides=overrides)
    session = json.loads(_core.measure(checked, seed=1, stop=_core.Stop()))["metrics"]["sessions"][0]
    assert session["bytes"] >= 20_000_000, "everything arrived"
    return float(session["longest_delivery_gap_s"])


def test_a_silent_cut_is_bridged_before_a_timeout(one_pipe: ModuleType) -> None:
    assert longest_gap(one_pipe, "earliest") <= 0.3
    assert longest_gap(one_pipe, '{ name = "earliest", failover = false }') > 0.3


@pytest.mark.parametrize("control", ["cubic", "lia", "bbr", "cbbr", "bbr3", "wvegas"])
@pytest.mark.parametrize("kernel", ["legacy", "upstream"])
def test_every_chunk_arrives_with_any_control_in_both_commit_models(
    one_pipe: ModuleType, control: str, kernel: str
) -> None:
    case = one_pipe.Case((333.0, 1667.0), (60, 20), "2 %", "1 BDP", 100)
    changes = {**case.two_paths(), "transport.congestion_control": control, "transport.kernel": kernel}
    sample = one_pipe.measured("chunks", changes, 1)
    # 120 requests, less those that the download before them delayed beyond the end.
    assert len(sample.times_ms) >= 90
    assert sample.quantile(1.0) < 10_000
    assert sample.copied <= 0.05


def test_intervals_are_those_of_student() -> None:
    players = load_script("one-pipe-players")
    # Two values: the mean, and t(0.975, 1) = 12.706 of the standard error, half of their distance.
    assert players.interval([1.0, 3.0]) == pytest.approx((2.0, 12.706), abs=1e-3)
    assert players.signed(0.5, 0.2, 1) == "**+0.5 ± 0.2**"
    assert players.signed(-0.1, 0.2, 1) == "-0.1 ± 0.2"


def test_the_times_of_sessions_are_joined_without_what_never_arrived() -> None:
    players = load_script("one-pipe-players")
    chunks = [{"requested_s": 1.0, "finished_s": 1.5}, {"requested_s": 2.0, "finished_s": None}]
    assert players.times_ms([{"downloads": chunks}, {"downloads": chunks[:1]}]) == [500.0, 500.0]


def test_the_page_has_the_times_of_the_kept_live_runs() -> None:
    live = load_script("one-pipe-live")
    kept = [live.kept_run(run) for run in live.load_kept(VALIDATION / "one-pipe-runs.json")["runs"]]
    page = (VALIDATION / "one-pipe.md").read_text(encoding="utf-8")
    assert all(run.lateness_s <= live.MOST_LATENESS_S for run in kept)
    for index, sender in enumerate(live.SENDERS):
        for rates in live.RATES if sender.scenario == "chunks" else live.RATES[:1]:
            runs = [run for run in kept if (run.job.sender, run.job.rates_kbps) == (index, rates)]
            name = f"{rates[0]} + {rates[1]}" if sender.scenario == "chunks" else "one path"
            (line,) = [line for line in page.splitlines() if line.startswith(f"| {name} | {sender.name} |")]
            for column, chunk_kb in ((2, 100), (4, 250)):
                times = [time for run in runs if run.job.chunk_kb == chunk_kb for time in run.times_ms]
                assert line.split(" | ")[column] == live.quantiles(times), line


def test_the_page_has_the_tables_of_the_kept_viewers() -> None:
    viewers = load_script("one-pipe-viewers")
    runs = viewers.load_kept(viewers.KEPT)["runs"]
    page = (VALIDATION / "one-pipe.md").read_text(encoding="utf-8")
    for name in viewers.TABLES:
        assert viewers.markdown_of(name, runs) in page, name
    kept = [(run["table"], run["network"], run["sender"], run["seed"]) for run in runs if not run["void"]]
    assert len(set(kept)) == len(kept), "no run is counted twice"


def test_the_bar_of_a_silent_cut_holds_on_the_wire() -> None:
    """0.3 s, with round trips up to 100 ms and queues up to a bandwidth-delay product, for downloads and videos."""
    viewers = load_script("one-pipe-viewers")
    ours = [
        run
        for run in viewers.load_kept(viewers.KEPT)["runs"]
        if (run["table"], run["sender"], run["void"]) == ("wire-cuts", viewers.SENDERS[0], False)
    ]
    assert {run["network"] for run in ours} == {"a video", "a download"}
    for run in ours:
        assert max(run[where]["longest_delivery_gap_s"] for where in ("wire", "simulated")) <= 0.3, run


def test_missing_runs_are_added_in_order_and_only_by_the_same_kernel(tmp_path: Path) -> None:
    wire_runs = load_script("wire_runs")
    file = tmp_path / "runs.json"
    kept = wire_runs.load_kept(file)

    def make(seed: int) -> dict[str, int]:
        return {"seed": seed}

    def complete(seeds: list[int]) -> None:
        wire_runs.complete(kept, seeds, make, at_once=2, order=lambda run: run["seed"], file=file)

    complete([3, 1])
    complete([2])
    assert [run["seed"] for run in wire_runs.load_kept(file)["runs"]] == [1, 2, 3]
    kept["kernel"] = "another"
    complete([])
    with pytest.raises(SystemExit, match="runs were made with Linux another"):
        complete([4])


@pytest.mark.slow
@pytest.mark.live
def test_two_unlike_paths_to_a_kernels_client_are_as_fast_as_simulated() -> None:
    require_live("ip")
    live = load_script("one-pipe-live")
    (ours,) = [index for index, sender in enumerate(live.SENDERS) if sender.name == "earliest, cbbr"]
    job = live.Job(ours, (667, 1333), 100, 1, 40)
    run = live.live(job)
    assert run.lateness_s <= live.MOST_LATENESS_S, "the machine was busy in three tries"
    assert len(run.times_ms) == 40, "every chunk arrived"
    # Times of the emulated links' packets: medians of the two differ by less than a packet of the slow one, 18 ms.
    medians = [sorted(times)[20] for times in (run.times_ms, live.simulated(job))]
    assert abs(medians[0] - medians[1]) < 18, medians
