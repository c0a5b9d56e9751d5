"""Plans with runs in real time: with simulations, repeated where they were invalid, and compared with them."""

from __future__ import annotations

import json
import platform
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from anabranch import _core
from anabranch.errors import InputError
from anabranch.experiments import paper, plan, realtime, reproduction, sweep
from anabranch.experiments.conditions import Run as PlannedRun
from anabranch.experiments.executor import Finished, Stop, Threads
from anabranch.experiments.realtime import ByEngine
from anabranch.experiments.store import Store
from anabranch.live import run as live
from anabranch.runs import session
from anabranch.system import provenance
from anabranch.system.programs import ToolError
from conftest import Run, require_live

pytestmark = pytest.mark.live

BASE = """\
schema = 1
duration = "20 s"
[link.wifi]
rtt = "20 ms"
rate = "8 Mb/s"
queue = "40 kB"
loss = "0.1 %"
[link.lte]
rtt = "50 ms"
rate = "4 Mb/s"
queue = "40 kB"
[[session]]
video = { kind = "bulk", size = "1 MB" }
"""

PLAN = """\
schema = 1
question = "Is a download the same in simulation and with the kernel?"
scenario = "base.toml"
seeds = 3
engines = ["sim", "live/kernel"]
live_runs = 2
metrics = ["live.tries"]
[vary]
link.lte.rate = ["4 Mb/s", "3 Mb/s"]
[compare]
metric = "goodput_bps"
better = "higher"
between = "engine"
reference = "sim"
equivalent = "50 %"
"""


@pytest.fixture
def both(tmp_path: Path) -> Path:
    """A plan of 6 simulations and 12 runs in real time."""
    (tmp_path / "base.toml").write_text(BASE, encoding="utf-8")
    file = tmp_path / "both.toml"
    file.write_text(PLAN, encoding="utf-8")
    return file


class NoProgress:
    def begin(self, runs: int, *, kept: int) -> None: ...

    def advance(self, finished: Finished) -> None: ...


class Testbed:
    """Answers as a testbed does, without one: which tries are invalid is given."""

    __test__ = False

    def __init__(self, invalid: Callable[[int, int], bool]) -> None:
        self._invalid = invalid
        self.tries: dict[int, int] = {}
        self.notes: list[str] = []
        self.asked: list[tuple[str, str]] = []

    def __call__(self, _loaded: Any, *, seed: int, server: str, client: str, **_: Any) -> Any:
        self.asked.append((server, client))
        self.tries[seed] = self.tries.get(seed, 0) + 1
        found = session.simulate(Path("base.toml"), seed=seed)
        lateness = {"p50": 1e-5, "p99": 2.5e-3, "p999": 3e-3, "max": 4e-3}
        metrics: dict[str, Any] = found.metrics | {"engine": "live"}
        metrics["live"] = {
            "void": self._invalid(seed, self.tries[seed]),
            "kernel": platform.release(),
            "lateness_s": lateness,
            "notes": self.notes,
        }
        return type("Found", (), {"metrics": metrics})


@pytest.fixture
def with_testbed(both: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[sweep.Result, Testbed]]:
    """Sweeps the plan, with one run a seed, on such a testbed."""
    monkeypatch.chdir(both.parent)
    both.write_text(PLAN.replace("live_runs = 2\n", "").replace(', "3 Mb/s"]', "]"), encoding="utf-8")

    def call(invalid: Callable[[int, int], bool]) -> tuple[sweep.Result, Testbed]:
        testbed = Testbed(invalid)
        monkeypatch.setattr(live, "run_loaded", testbed)
        with Store(both.parent / "s", provenance.build()) as opened:
            experiment = sweep.Experiment.of(plan.load(both))
            made = sweep.sweep(experiment, opened, execute=ByEngine(Threads(2)), progress=NoProgress())
        return made, testbed

    return call


def test_an_invalid_run_is_made_again(with_testbed: Callable[..., tuple[sweep.Result, Testbed]]) -> None:
    found, testbed = with_testbed(lambda seed, number: seed == 2 and number == 1)
    rows = found.sessions.filter(pl.col("engine") == "live/kernel")
    assert rows["live.tries"].to_list() == [1, 2, 1]
    assert rows["error"].is_null().all()
    assert set(testbed.asked) == {("kernel", "model")}
    simulated = found.sessions.filter(pl.col("engine") == "sim")
    assert simulated["live.tries"].is_null().all()
    assert simulated["goodput_bps"].to_list() == rows["goodput_bps"].to_list()


PAPER = """\
schema = 1
title = "mine"
[[kept]]
name = "both"
file = "both-kept.parquet"
plans = ["both.toml", "base-again.toml"]
columns = ["goodput_bps", "subflows.far.goodput_bps"]
"""
CRITERIA = """\
from anabranch.experiments.claims import table


@table("runs", "Runs", texts=1, plans=("both",))
def runs(study):
    return ("engine",), [[row["engine"]] for row in study.sessions(["both"])]
"""


def test_live_runs_of_a_paper_that_failed_are_made_again_later(both: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that is yet to be made has no rows; `seeds` says how many of each condition it gets."""
    monkeypatch.chdir(both.parent)
    for name, text in (("paper.toml", PAPER), ("criteria.py", CRITERIA), ("text.md", "#")):
        Path(name).write_text(text, encoding="utf-8")
    both.write_text(PLAN.replace("live_runs = 2\n", "").replace(', "3 Mb/s"]', "]"), encoding="utf-8")
    Path("far.toml").write_text(BASE.replace("[link.lte]", "[link.far]"), encoding="utf-8")
    again = 'schema = 1\nquestion = "And with another link?"\nscenario = "far.toml"\nseeds = 3\nengines = ["sim"]\n'
    Path("base-again.toml").write_text(f'{again}[choose.engines]\n"another link" = {{}}\n', encoding="utf-8")
    (kept,) = paper.load(both.parent).kept
    assert kept.rows == []
    testbed = Testbed(lambda _seed, _number: False)
    testbed.notes = ["session 0: this kernel has no congestion control `lia`; it serves with cubic"]
    monkeypatch.setattr(live, "run_loaded", testbed)
    how: Any = {"execute": ByEngine(Threads(2)), "progress": NoProgress(), "seeds": 2}
    with Store(both.parent / "s", provenance.build()) as opened:
        with pytest.raises(ToolError, match=r"2 runs in real time failed, the last with: .* control `lia`.*attach"):
            reproduction.measure(paper.load(both.parent), opened, **how)
        assert {row["engine"] for row in kept.rows} == {"sim", None}
        testbed.notes = []
        assert [reproduction.measure(paper.load(both.parent), opened, **how) for _ in range(2)] == [2, 0]
    found = [(row["engine"], row["seed"]) for row in kept.rows if row["engine"]]
    assert found == [(engine, seed) for engine in ("live/kernel", "sim") for seed in (1, 2)]
    # The second plan's runs have a column that those of the first one do not have.
    assert [row["subflows.far.goodput_bps"] is not None for row in kept.rows] == [
        row["engine"] is None for row in kept.rows
    ]


def test_a_table_that_nothing_makes_has_to_be_there(both: Path) -> None:
    missing = paper.Kept("results", both.parent / "results.parquet")
    with pytest.raises(InputError, match="no table of kept runs"):
        _ = missing.rows


def test_a_run_that_is_never_valid_stays_a_row_that_says_so(
    with_testbed: Callable[..., tuple[sweep.Result, Testbed]],
) -> None:
    found, _testbed = with_testbed(lambda seed, _: seed == 2)
    (row,) = found.sessions.filter(pl.col("error").is_not_null()).iter_rows(named=True)
    assert (row["engine"], row["seed"], row["live.tries"]) == ("live/kernel", 2, realtime.TRIES)
    assert (
        row["error"] == "invalid: the links of the run were too late in each of 3 tries, one packet of 100 later "
        "than 2.5 ms at last"
    )
    assert row["goodput_bps"] is None, "its numbers are of the machine"
    (comparison,) = found.comparisons
    assert comparison.pairs == 2
    assert "1 run failed and has no values" in comparison.notes
    again, _ = with_testbed(lambda _seed, _number: False)
    assert (again.made, again.kept) == (0, 6), "it is not tried for ever"


def test_ctrl_c_ends_a_run_in_real_time(both: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stop = Stop()

    def endless(*_: Any, progress: Callable[[float], object], **__: Any) -> Any:
        stop.set()
        progress(0.5)

    monkeypatch.setattr(live, "run_loaded", endless)
    with pytest.raises(KeyboardInterrupt):
        realtime.measure(_runs(both)[-1], stop)


def test_the_key_of_a_live_run_has_kernel_and_number(both: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = _runs(both)
    assert [(run.engine.name, run.live_run) for run in runs[:5]] == [
        ("sim", None),
        ("sim", None),
        ("sim", None),
        ("live/kernel", 1),
        ("live/kernel", 2),
    ]
    assert len({run.key for run in runs}) == len(runs) == 18
    monkeypatch.setattr(platform, "release", lambda: "0.0.1")
    other = _runs(both)
    same = [one.key == two.key for one, two in zip(runs, other, strict=True)]
    assert same == [not run.engine.is_live for run in runs]


def test_simulations_for_the_kernel_have_its_room_for_headers(both: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_core, "header_room", lambda: 256, raising=False)
    build = ("transport.header_room", "256")
    assert [build in run.overrides for run in _runs(both)] == [not run.engine.is_live for run in _runs(both)]
    # What the plan says holds, and without the kernel's runs nothing depends on this machine.
    both.write_text(f"{PLAN}[set]\ntransport.header_room = 320\n", encoding="utf-8")
    rooms = {tomllib.loads(run.scenario().resolved)["transport"]["header_room"] for run in _runs(both)}
    assert rooms == {320}
    both.write_text(PLAN.replace(', "live/kernel"]\nlive_runs = 2', ', "live"]'), encoding="utf-8")
    assert not any(build in run.overrides for run in _runs(both))


def test_a_kernel_of_an_unknown_build_is_named(both: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> int:
        raise _core.LiveError("the room for headers is unknown")

    monkeypatch.setattr(_core, "header_room", unknown, raising=False)
    with pytest.raises(InputError, match=r"both\.toml: .*the room for headers is unknown"):
        _runs(both)


def _runs(file: Path) -> list[PlannedRun]:
    read = plan.load(file)
    return sweep.Experiment.of(read).runs(read.seeds)


def test_what_runs_in_real_time_cannot_be_made_with_is_refused(both: Path, anabranch: Run, tmp_path: Path) -> None:
    done = anabranch("sweep", both, "--shard", "1/2")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--shard" in done.stderr
    assert not (tmp_path / "runs").exists()


def test_a_machine_that_cannot_run_live_says_what_it_lacks(
    both: Path, anabranch: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(realtime, "missing", lambda: ["root is needed; use sudo"])
    done = anabranch("sweep", both)
    assert (done.returncode, done.stdout) == (1, "")
    assert "use sudo" in done.stderr
    assert not (tmp_path / "runs").exists()
    assert anabranch("plan", "show", both).returncode == 0, "a plan can be read anywhere"


def test_plan_show_counts_live_runs_and_real_time(both: Path, answer: Callable[..., Any]) -> None:
    found = answer("plan", "show", both, "--at-once", "4")
    assert len(found["runs"]) == 18
    assert found["live_seconds"] == pytest.approx(12 * 20 / 4)
    assert found["runs"][3]["command"][-5:] == ["--live", "--server", "kernel", "--client", "model"]


@pytest.mark.slow
def test_the_same_in_simulation_and_with_the_kernel_is_one_plan(
    both: Path, anabranch: Run, answer: Callable[..., Any], tmp_path: Path
) -> None:
    require_live("ip")
    # Downloads of two seconds vary with their random losses: three seeds can leave too wide an interval.
    both.write_text(PLAN.replace("seeds = 3", "seeds = 8"), encoding="utf-8")
    found = answer("sweep", both, "--at-once", "2", "--store", "s")
    assert (found["runs_made"], found["runs_failed"]) == (48, 0)
    assert len(found["comparisons"]) == 2
    for comparison in found["comparisons"]:
        verdicts = {entry["engine"]: entry["verdict"] for entry in comparison["entries"]}
        assert verdicts == {"sim": "reference", "live/kernel": "equivalent"}
    table = pl.read_parquet(tmp_path / "s" / "both.parquet")
    real = table.filter(pl.col("engine") == "live/kernel")
    assert sorted(real["live_run"].to_list()) == [1] * 16 + [2] * 16
    assert set(real["live.kernel"]) == {platform.release()}
    assert real["goodput_bps"].n_unique() > 16, "no two runs in real time are alike"
    assert anabranch("sweep", both, "--store", "s").stdout.count("0 runs made, 48 were there") == 1
    written = anabranch("report", "s", "--out", tmp_path / "page.html")
    assert written.returncode == 0, written.stderr
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "16 simulated runs and 32 in real time" in page
    assert "6 of them with a timeline" in written.stderr
    command = json.dumps("--server kernel")
    assert command in page
