"""How often `earliest` and `joined` leave a path that works: over LTE whose scheduler pauses, drawn and recorded."""

import random
from bisect import bisect
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from anabranch import run

RECORDED = Path(__file__).parents[2] / "shared" / "data" / "traces" / "mahimahi"
LTE = ("ATT-LTE-driving-2016", "TMobile-LTE-short", "Verizon-LTE-short")
# A path that is silent for longer may be left: the bound of `crates/stack/src/scheduler/earliest/silence.rs`.
LONGEST_PAUSE_S = 0.2
DRAWN_S, RECORDED_S = 120, 600
SENDERS = [("earliest", "cubic"), ("joined", "lia")]


def _drawn(seed: int, duration_s: float) -> list[float]:
    """Times at which packets may leave, in seconds: bursts of one packet a millisecond, and short pauses."""
    draws = random.Random(seed)
    times, now = [], 0.0
    while now < duration_s:
        for _ in range(draws.randint(5, 120)):
            now += 0.001
            times.append(now)
        now += min(draws.expovariate(1 / 0.03), 0.9 * LONGEST_PAUSE_S)
    return times


def _mahimahi(times: list[float]) -> str:
    return "".join(f"{round(1000 * time)}\n" for time in times)


def _repeated(file: Path, duration_s: float) -> list[float]:
    """The times of a recording, which begins anew at its end."""
    times = [int(line) / 1000 for line in file.read_text("utf-8").split()]
    return [cycle * times[-1] + time for cycle in range(int(duration_s / times[-1]) + 1) for time in times]


def _leavings(trace: Path, times: list[float], scheduler: str, control: str, duration_s: int) -> tuple[int, int]:
    """How often the path was left, and how often without a long pause in the second before; times are the trace's."""
    down = {"rate": {"trace": str(trace)}, "queue": "300 kB"}
    scenario: dict[str, Any] = {
        "schema": 1,
        "duration": f"{duration_s} s",
        "transport": {"scheduler": scheduler, "congestion_control": control},
        "link": {
            "wifi": {"rtt": "30 ms", "rate": "4 Mb/s"},
            "lte": {"rtt": "60 ms", "up": {"rate": "5 Mb/s"}, "down": down},
        },
        "session": [{"paths": ["wifi", "lte"], "video": {"kind": "bulk"}}],
    }
    events = run(scenario, events=True).events
    silent = events.filter((pl.col("event") == "forecast") & (pl.col("detail") == "silent") & (pl.col("subflow") == 1))
    false = 0
    for left in silent["time_s"]:
        before = [*times[bisect(times, left - 1) : bisect(times, left)], left]
        false += all(later - time < LONGEST_PAUSE_S for time, later in pairwise(before))
    return len(silent), false


@pytest.mark.parametrize(("scheduler", "control"), SENDERS)
def test_a_path_with_short_pauses_is_never_left(tmp_path: Path, scheduler: str, control: str) -> None:
    times = _drawn(1, DRAWN_S)
    (tmp_path / "drawn.down").write_text(_mahimahi(times), "utf-8")
    assert _leavings(tmp_path / "drawn.down", times, scheduler, control, DRAWN_S) == (0, 0)


@pytest.mark.slow
@pytest.mark.skipif(not RECORDED.is_dir(), reason="the recordings are not there")
@pytest.mark.parametrize(("scheduler", "control"), SENDERS)
def test_recorded_lte_is_left_for_long_pauses_only(scheduler: str, control: str) -> None:
    files = [RECORDED / f"{name}.down" for name in LTE]
    left = [_leavings(file, _repeated(file, RECORDED_S), scheduler, control, RECORDED_S) for file in files]
    # Half an hour in all. One an hour is the bar.
    assert sum(false for _, false in left) == 0, left
