"""The bound of scripts/one-pipe.py, and what it makes of measured times."""

from types import ModuleType

import pytest

from conftest import load_script


@pytest.fixture(scope="module")
def one_pipe() -> ModuleType:
    """The script."""
    return load_script("one-pipe")


def bound(script: ModuleType, rates: tuple[float, float], rtts: tuple[int, int], chunk_kb: int) -> float:
    """The least time of a chunk."""
    return float(script.least_ms(script.Case(rates, rtts, "0 %", "64 kB", chunk_kb)))


def test_the_least_time_by_hand(one_pipe: ModuleType) -> None:
    # 35 full packets and 20 bytes with 72 bytes of headers: 12 ms and 0.736 ms at 1000 kb/s.
    # Both paths bring 17 until 30 + 30 + 204 ms, one of them another one until 276 ms, the other one the last packet.
    assert bound(one_pipe, (1000.0, 1000.0), (60, 60), 50) == pytest.approx(276.0)
    # The fast path alone: the slow one would need 1200 ms for its first packet.
    packets = 35 * 12000 / 2000
    assert bound(one_pipe, (10.0, 2000.0), (60, 60), 50) == pytest.approx(60 + packets + 92 * 8 / 2000)
    # The request takes the shorter round trip's half.
    assert bound(one_pipe, (10.0, 2000.0), (20, 60), 50) == pytest.approx(40 + packets + 92 * 8 / 2000)


def test_quantiles_are_those_of_nearest_rank(one_pipe: ModuleType) -> None:
    sample = one_pipe.Sample(tuple(float(n) for n in range(1, 101)), 0.0)
    assert [sample.quantile(share) for share in (0.5, 0.9, 0.99, 0.0)] == [50.0, 90.0, 99.0, 1.0]


def test_the_reference_has_the_sum_of_the_rates_and_the_weighted_round_trip(one_pipe: ModuleType) -> None:
    case = one_pipe.Case((500.0, 1500.0), (20, 60), "2 %", "1 BDP", 100)
    pipe = case.one_pipe()
    assert (pipe["link.pipe.rate"], pipe["link.pipe.rtt"]) == ("2000.000 kb/s", "50.000 ms")
    assert pipe["link.pipe.queue"] == "15000 B", "12 500 bytes would be less than ten packets"


def test_the_grid_is_the_documented_one(one_pipe: ModuleType) -> None:
    assert len(list(one_pipe.cases(one_pipe.TUNED_RTTS))) == 7 * 3 * 3 * 3 * 4
    assert len(list(one_pipe.cases(one_pipe.UNSEEN_RTTS))) == 7 * 2 * 3 * 3 * 4


def test_our_sender_is_near_the_pipe_on_unlike_paths(one_pipe: ModuleType) -> None:
    case = one_pipe.Case((333.0, 1667.0), (60, 60), "0.5 %", "30 kB", 100)
    ours = one_pipe.measured("chunks", {**case.two_paths(), **one_pipe.OUR_SENDER}, 2)
    assert ours.quantile(0.5) <= 495
    assert one_pipe.least_ms(case) / ours.quantile(0.5) > 0.95
    assert ours.copied <= 0.025
