"""Sweeps: nothing that was finished is lost, nothing is mixed, and the tables are the same however they came about."""

import errno
import io
import json
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rich.console import Console

from anabranch import InputError
from anabranch.experiments import conditions, plan, store, summary, sweep, table
from anabranch.experiments.executor import Finished, Stop, Threads, Work, execute, simulate
from anabranch.experiments.store import Store
from anabranch.system import provenance
from anabranch.wording.summary import plural
from conftest import Run

PLAN = """\
schema = 1
question = "Does ecf carry more than min-rtt?"
scenario = "base.toml"
seeds = 20
[vary]
transport.scheduler = ["min-rtt", "ecf", "redundant"]
[compare]
metric = "goodput_bps"
better = "higher"
between = "transport.scheduler"
reference = "min-rtt"
"""

BASE = """\
schema = 1
duration = "1 s"
[link.wifi]
rtt = "20 ms"
rate = "4 Mb/s"
loss = "1 %"
[link.lte]
rtt = "60 ms"
rate = "2 Mb/s"
[[session]]
video = { kind = "bulk" }
"""

BUILD = {"version": "1", "library_sha256": "abc"}


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A plan of 60 runs of some milliseconds."""
    (tmp_path / "base.toml").write_text(BASE, encoding="utf-8")
    file = tmp_path / "small.toml"
    file.write_text(PLAN, encoding="utf-8")
    return file


class NoProgress:
    """Counts, and says nothing."""

    def __init__(self) -> None:
        self.runs = self.kept = self.failed = 0

    def begin(self, runs: int, *, kept: int) -> None:
        self.runs, self.kept = runs, kept

    def advance(self, finished: Finished) -> None:
        self.failed += finished.error is not None


def swept(file: Path, folder: Path, work: Work = simulate, **options: Any) -> sweep.Result:
    """A sweep in this process."""
    with Store(folder, provenance.build()) as opened:
        return sweep.sweep(
            sweep.Experiment.of(plan.load(file)), opened, execute=Threads(2, work), progress=NoProgress(), **options
        )


def key(number: int) -> bytes:
    return number.to_bytes(32)


# --- The store ------------------------------------------------------------------------------------------------------


def test_what_is_kept_is_read_again(tmp_path: Path) -> None:
    with Store(tmp_path / "s", BUILD) as first:
        assert not (tmp_path / "s").exists(), "nothing is written before there is something to keep"
        first.put(key(1), b"one")
        first.put(key(1), b"another one")
    with Store(tmp_path / "s", BUILD) as second:
        second.put(key(2), b"two" * 1000)
        assert list(second.read(iter([key(2), key(3), key(1)]))) == [b"two" * 1000, None, b"one"]
    assert len(list((tmp_path / "s" / "runs").iterdir())) == 2


@pytest.mark.parametrize("cut", range(0, 54, 6))
def test_a_record_that_was_cut_off_is_ignored_wherever_it_was(tmp_path: Path, cut: int) -> None:
    with Store(tmp_path / "s", BUILD) as first:
        first.put(key(1), b"one")
        first.put(key(2), b"two")
    (file,) = (tmp_path / "s" / "runs").iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) - 1 - cut])
    with Store(tmp_path / "s", BUILD) as second:
        assert key(1) in second
        assert key(2) not in second
        second.put(key(2), b"two again")
    assert Store(tmp_path / "s", BUILD).get(key(2)) == b"two again"


def test_a_record_that_changed_on_the_disk_is_ignored(tmp_path: Path) -> None:
    with Store(tmp_path / "s", BUILD) as first:
        for number in range(3):
            first.put(key(number), b"x" * 100)
    (file,) = (tmp_path / "s" / "runs").iterdir()
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    assert [key(number) in Store(tmp_path / "s", BUILD) for number in range(3)] == [True, False, True]


def test_a_full_disk_loses_nothing_that_was_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk takes half of the third record."""
    real, written = store.write_all, 0

    def full(file: Any, data: bytes) -> None:
        nonlocal written
        written += 1
        if written == 3:
            real(file, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")
        real(file, data)

    with Store(tmp_path / "s", BUILD) as first:
        with monkeypatch.context() as patch:
            patch.setattr(store, "write_all", full)
            first.put(key(1), b"one")
            first.put(key(2), b"two")
            with pytest.raises(OSError, match="No space left") as caught:
                first.put(key(3), b"three")
        assert caught.value.errno == errno.ENOSPC
        assert key(3) not in first
        # There is room again.
        first.put(key(4), b"four")
    again = Store(tmp_path / "s", BUILD)
    assert [key(number) in again for number in (1, 2, 3, 4)] == [True, True, False, True]


def test_a_sweep_on_a_full_disk_says_so_and_continues_later(
    small: Path, anabranch: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, room = store.write_all, 20_000

    def full(file: Any, data: bytes) -> None:
        nonlocal room
        real(file, data[:room])
        room -= len(data)
        if room < 0:
            room = 0
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(store, "write_all", full)
        done = anabranch("sweep", small, "--store", "s")
    assert done.returncode == 1
    assert "No space left on device; finished runs are kept in s" in done.stderr
    kept = len(Store(tmp_path / "s", provenance.build()))
    assert 0 < kept < 60
    assert f"{plural(60 - kept, 'run')} made, {kept} were there" in anabranch("sweep", small, "--store", "s").stdout


def test_two_stores_merge(tmp_path: Path) -> None:
    with Store(tmp_path / "a", BUILD) as a, Store(tmp_path / "b", BUILD) as b:
        a.put(key(1), b"one")
        b.put(key(1), b"one")
        b.put(key(2), b"two")
        assert a.merge(tmp_path / "b") == 1
    assert Store(tmp_path / "a", BUILD).get(key(2)) == b"two"
    # Copying the files is the same.
    shutil.copytree(tmp_path / "a" / "runs", tmp_path / "b" / "runs", dirs_exist_ok=True)
    assert len(Store(tmp_path / "b", BUILD)) == 2


def test_a_store_of_another_build_is_refused(tmp_path: Path) -> None:
    other = {**BUILD, "library_sha256": "def"}
    for name, build in (("a", BUILD), ("b", other)):
        with Store(tmp_path / name, build) as made:
            made.put(key(1), b"one")
    with pytest.raises(InputError, match=r"another build.*another --store"):
        Store(tmp_path / "a", other)
    with Store(tmp_path / "a", BUILD) as a, pytest.raises(InputError, match="another build"):
        a.merge(tmp_path / "b")
    with Store(tmp_path / "a", BUILD) as a, pytest.raises(InputError, match="no store"):
        a.merge(tmp_path / "nowhere")


# --- The sweep ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_sweep_that_was_killed_ten_times_gives_the_table_of_an_undisturbed_one(small: Path, tmp_path: Path) -> None:
    # So many runs that no kill comes after the last.
    small.write_text(PLAN.replace("seeds = 20", "seeds = 120"), "utf-8")
    undisturbed, folder = swept(small, tmp_path / "whole"), tmp_path / "killed"
    command = [sys.executable, "-m", "anabranch", "sweep", str(small), "--store", str(folder), "--jobs", "2"]
    moments, kept = random.Random(1), [0]
    for _ in range(10):
        before = size(folder)
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        # Only the time of the runs is of interest, not the start of the interpreter.
        _wait(lambda: size(folder) > before, process)  # noqa: B023
        time.sleep(moments.uniform(0, 0.01))
        assert process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait()
        kept.append(len(Store(folder, provenance.build())))
    assert sorted(set(kept)) == kept, "every start kept what was there, and added to it"
    assert kept[-1] < 360
    finished = swept(small, folder)
    assert (finished.made, finished.kept) == (360 - kept[-1], kept[-1])
    assert finished.sessions.equals(undisturbed.sessions)
    assert files(folder) == files(tmp_path / "whole")


def _wait(until: Callable[[], bool], process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + 60
    while not until():
        if time.monotonic() > deadline:
            process.kill()
            pytest.fail("the sweep keeps nothing")
        time.sleep(0.002)


def size(folder: Path) -> int:
    """Bytes of a store's files."""
    return sum(file.stat().st_size for file in (folder / "runs").glob("*.runs"))


def files(folder: Path) -> dict[str, bytes]:
    """The tables of a store, to the last byte."""
    return {file.name: file.read_bytes() for file in sorted(folder.glob("*.parquet"))}


def test_jobs_and_order_change_nothing(small: Path, tmp_path: Path) -> None:
    one = swept(small, tmp_path / "one")
    experiment = sweep.Experiment.of(plan.load(small))
    with Store(tmp_path / "shards", provenance.build()) as opened:
        for number in (3, 1, 2):
            sweep.make(experiment, opened, sweep.Shard(number, 3), execute=Threads(1), progress=NoProgress())
    made = swept(small, tmp_path / "shards")
    assert (made.made, made.kept) == (0, 60)
    assert files(tmp_path / "one") == files(tmp_path / "shards")
    assert one.sessions.height == 60


def test_a_plan_that_grew_computes_only_what_is_new(small: Path, tmp_path: Path) -> None:
    swept(small, tmp_path / "s")
    small.write_text(PLAN.replace("seeds = 20", "seeds = 25").replace('"redundant"', '"redundant", "blest"'), "utf-8")
    grown = swept(small, tmp_path / "s")
    assert (grown.made, grown.kept) == (4 * 25 - 60, 60)


def test_an_interrupted_sweep_keeps_what_was_finished(small: Path, tmp_path: Path) -> None:
    done = 0

    def interrupted(run: conditions.Run, stop: Stop) -> bytes:
        nonlocal done
        done += 1
        if done == 8:
            # What Ctrl-C does, at a moment that is known.
            signal.raise_signal(signal.SIGINT)
        return simulate(run, stop)

    with pytest.raises(KeyboardInterrupt):
        swept(small, tmp_path / "s", work=interrupted)
    kept = len(Store(tmp_path / "s", provenance.build()))
    # Seven were over before it, but for those of the other thread.
    assert 6 <= kept < 60
    again = swept(small, tmp_path / "s")
    assert (again.kept, again.made) == (kept, 60 - kept)


def test_a_run_that_fails_is_a_row_with_its_error(small: Path, tmp_path: Path) -> None:
    def failing(run: conditions.Run, stop: Stop) -> bytes:
        if run.seed == 3:
            raise RuntimeError("link wifi lost count of packets")
        return simulate(run, stop)

    found = swept(small, tmp_path / "s", work=failing)
    failed = found.sessions.filter(pl.col("error").is_not_null())
    assert (found.failed, failed["seed"].unique().to_list()) == (3, [3])
    assert failed["error"][0] == "RuntimeError: link wifi lost count of packets"
    assert failed["goodput_bps"].is_null().all()
    (comparison,) = found.comparisons
    assert comparison.pairs == 19
    assert "3 runs failed and have no values" in comparison.notes


def test_the_row_of_a_session_has_its_metrics(small: Path, tmp_path: Path) -> None:
    import anabranch

    found = swept(small, tmp_path / "s").sessions
    run = anabranch.run(tmp_path / "base.toml", seed=4, set={"transport.scheduler": "ecf"})
    (row,) = found.filter((pl.col("seed") == 4) & (pl.col("transport.scheduler") == "ecf")).iter_rows(named=True)
    session = run.metrics["sessions"][0]
    assert row["goodput_bps"] == session["goodput_bps"]
    assert row["reorder_delay_s.p95"] == session["reorder_delay_s"]["p95"]
    (lte,) = [subflow for subflow in session["subflows"] if subflow["path"] == "lte"]
    assert row["subflows.lte.mean_cwnd_packets"] == lte["mean_cwnd_packets"]
    down = next(link for link in run.metrics["links"] if link["name"] == "wifi" and link["direction"] == "down")
    assert row["links.wifi.down.drops_random"] == down["drops_random"]
    scalars = {k for k, v in session.items() if isinstance(v, int | float | str) and k != "name"}
    assert scalars <= set(found.columns)


def test_media_segments_have_a_table_of_their_own(small: Path, tmp_path: Path) -> None:
    video = 'video = { kind = "dash", ladder = "bbb-2s", duration = "6 s" }\nplayer = "dash.js-5"'
    (tmp_path / "base.toml").write_text(BASE.replace('"1 s"', '"30 s"').replace('video = { kind = "bulk" }', video))
    small.write_text(PLAN.replace("seeds = 20", "seeds = 2").replace("goodput_bps", "qoe_linear"), "utf-8")
    found = swept(small, tmp_path / "s")
    downloaded = [len(run.metrics["sessions"][0]["media_segments"]) for run in _runs(tmp_path / "base.toml")]
    assert found.segments.height == sum(downloaded) >= 3 * 2 * 3
    assert {"transport.scheduler", "seed", "index", "download_s"} <= set(found.segments.columns)
    read, about = table.read(tmp_path / "s" / "small-segments.parquet")
    assert read.equals(found.segments)
    assert about.axes == ("transport.scheduler",)


def _runs(base: Path) -> Iterator[Any]:
    import anabranch

    for scheduler in ("min-rtt", "ecf", "redundant"):
        for seed in (1, 2):
            yield anabranch.run(base, seed=seed, set={"transport.scheduler": scheduler})


def test_a_file_that_changed_after_its_key_is_no_result(small: Path, tmp_path: Path) -> None:
    runs = sweep.Experiment.of(plan.load(small)).runs((1,))
    (tmp_path / "base.toml").write_text(BASE.replace("4 Mb/s", "5 Mb/s"), "utf-8")
    conditions._load.cache_clear()
    with (
        Store(tmp_path / "s", provenance.build()) as opened,
        pytest.raises(InputError, match=r"base.toml: .* changed meanwhile"),
    ):
        execute(runs, opened, jobs=1, finished=lambda _: None)
    assert len(Store(tmp_path / "s", provenance.build())) == 0


def test_nothing_is_done_twice_and_threads_share_the_work(small: Path, tmp_path: Path) -> None:
    experiment = sweep.Experiment.of(plan.load(small))
    runs = experiment.runs((1, 2, 3))
    seen: list[bytes] = []

    def work(run: conditions.Run, stop: Stop) -> bytes:
        seen.append(run.key)
        return simulate(run, stop)

    with Store(tmp_path / "s", provenance.build()) as opened:
        execute(runs, opened, jobs=3, finished=lambda _: None, work=work)
    assert sorted(seen) == sorted(run.key for run in runs)


# --- The command ----------------------------------------------------------------------------------------------------


def test_a_sweep_says_what_it_found(small: Path, anabranch: Run, tmp_path: Path) -> None:
    done = anabranch("sweep", small)
    assert done.returncode == 0, done.stderr
    assert "min-rtt is the reference of goodput, " in done.stdout
    assert "60 runs made, 0 were there" in done.stdout
    again = anabranch("sweep", small)
    assert "0 runs made, 60 were there" in again.stdout
    rows = [line for line in done.stdout.splitlines() if " ± " in line and not line.endswith(".")]
    assert len(rows) == 4, "a heading and three conditions"
    assert all(len(line) <= 80 for line in rows)
    assert sorted(file.name for file in (tmp_path / "runs" / "small").glob("*.parquet")) == [
        "small-comparisons.parquet",
        "small.parquet",
    ]


@pytest.fixture
def recorded(small: Path) -> Path:
    """A plan with four recorded pairs, three seeds and three schedulers."""
    folder = small.parent / "pairs"
    folder.mkdir()
    for number in range(4):
        for link, rate in (("wifi", 3000 + 500 * number), ("lte", 2000)):
            rows = "".join(f"{at},{rate + 300 * (at % 2)}\n" for at in range(10))
            (folder / f"{number}_{link}.csv").write_text(f"time_s,rate_kbps\n{rows}", "utf-8")
    text = PLAN.replace("seeds = 20", 'seeds = 3\nmetrics = ["goodput_bps"]')
    small.write_text(text + TRACES, "utf-8")
    return small


TRACES = """\
[set]
trace_offset = "random"
[traces]
"link.wifi.rate" = { glob = "pairs/*_wifi.csv", unit = "kb/s" }
"link.lte.rate" = { glob = "pairs/*_lte.csv", unit = "kb/s" }
"""


def _rows(printed: str, head: str) -> list[str]:
    """The rows of the table whose head has this as its first line, above the names of the axes and the units."""
    lines = printed.splitlines()
    (start,) = [number for number, line in enumerate(lines) if line.split() == head.split()]
    rest = lines[start + 2 :]
    return rest[: next(number for number, line in enumerate(rest) if " ± " not in line)]


def test_means_pool_recordings_with_the_interval_of_networks(recorded: Path, anabranch: Run) -> None:
    done = anabranch("sweep", recorded)
    means = {row.split()[0]: row.split()[1:4] for row in _rows(done.stdout, "goodput")}
    compared = {row.split()[0]: row.split()[1:4] for row in _rows(done.stdout, "mean ± 95 % difference ± 95 %")}
    assert list(means) == ["min-rtt", "ecf", "redundant"]
    assert all(1 < float(mean) < 10 for mean, *_ in means.values()), "Mb/s, as the head says"
    assert means == compared, "one way of pooling: a network is one value"
    assert "over 4 values of trace with 3 seeds; a network is one value. --by trace" in done.stdout


def test_heads_of_a_narrow_table_break_between_words() -> None:
    rows = pl.DataFrame(
        {
            "transport.congestion_control": ["lia", "lia", "bbr", "bbr"],
            "seed": [1, 2, 1, 2],
            "error": [None] * 4,
            "goodput_bps": [1.5e6, 1.7e6, 2e6, 2.2e6],
        }
    )
    shown = summary.means_table(rows, ["transport.congestion_control"], ["goodput_bps"])
    console = Console(width=24, file=io.StringIO())
    console.print(shown)
    lines = [line.split() for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]
    assert lines[:2] == [["congestion", "goodput"], ["control", "Mb/s"]]
    assert lines[2][:2] == ["lia", "1.6"]


def test_rows_by_recording_are_shown_when_asked_for(recorded: Path, anabranch: Run) -> None:
    anabranch("sweep", recorded)
    done = anabranch("sweep", recorded, "--by", "trace")
    rows = _rows(done.stdout, "goodput")
    assert [row.split()[:2] for row in rows] == [[s, t] for s in ("min-rtt", "ecf", "redundant") for t in "0123"]
    assert "--by" not in done.stdout
    assert "0 runs made, 36 were there" in done.stdout
    wrong = anabranch("sweep", recorded, "--by", "trase")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "did you mean `trace`?" in wrong.stderr


def test_json_has_every_number(small: Path, answer: Callable[..., Any], tmp_path: Path) -> None:
    anabranch_says = answer("sweep", small, "--store", tmp_path / "s")
    (comparison,) = anabranch_says["comparisons"]
    assert [entry["transport.scheduler"] for entry in comparison["entries"] if entry["verdict"] == "reference"] == [
        "min-rtt"
    ]
    assert comparison["tests"] == 2
    assert anabranch_says["runs_made"] == 60


def test_a_sweep_with_other_values_continues_and_says_so(
    small: Path, anabranch: Run, answer: Callable[..., Any], tmp_path: Path
) -> None:
    changes = ("--seeds", "3", "--set", "duration=2 s", "--set", 'transport.scheduler=["min-rtt", "blest"]')
    (tmp_path / "s").mkdir()
    assert anabranch("sweep", small, "--store", "s", "--shard", "1/2", *changes).returncode == 0
    # A digest of the build shares the runs out, so every number of them may be the first shard's.
    half = len(Store(tmp_path / "s", provenance.build()))
    done = anabranch("sweep", small, "--store", "s", *changes)
    assert f"{plural(6 - half, 'run')} made, {half} were there" in done.stdout
    assert "changed: --set 'duration=2 s'" in done.stdout
    assert "note:" not in done.stderr
    rows = pl.read_parquet(tmp_path / "s" / "small.parquet")
    assert set(rows["transport.scheduler"]) == {"min-rtt", "blest"}
    assert set(rows["run.sim_seconds"]) == {2.0}
    again = answer("sweep", small, "--store", "s", *changes)
    assert (again["runs_made"], again["runs_kept"]) == (0, 6)
    assert again["changes"][-2:] == ["--seeds", "3"]

    # The report reads the folder alone: it finds the same runs, and says how to make them.
    report = anabranch("report", "s", "--timelines", "1")
    assert report.returncode == 0, report.stderr
    assert "--seeds 3" in (tmp_path / "s" / "small.html").read_text("utf-8")

    # Without the options the plan is what its file says, and nothing of before is lost.
    whole = anabranch("sweep", small, "--store", "s")
    assert "60 runs made, 0 were there" in whole.stdout
    assert "small.toml --set 'duration=2 s'" in whole.stderr
    assert set(pl.read_parquet(tmp_path / "s" / "small.parquet")["run.sim_seconds"]) == {1.0}
    assert "0 runs made, 6 were there" in anabranch("sweep", small, "--store", "s", *changes).stdout


def test_python_takes_other_values_too(small: Path, tmp_path: Path) -> None:
    import anabranch

    swept = anabranch.sweep(small, set={"transport.scheduler": ["min-rtt", "ecf"]}, seeds=[3, 5], store=tmp_path / "s")
    assert (swept.made, swept.seeds) == (4, (3, 5))
    assert set(swept.sessions["transport.scheduler"]) == {"min-rtt", "ecf"}


def test_shards_share_a_store_and_write_no_table(small: Path, anabranch: Run, tmp_path: Path) -> None:
    for number in (1, 2, 3):
        assert anabranch("sweep", small, "--store", "s", "--shard", f"{number}/3").returncode == 0
    assert not list((tmp_path / "s").glob("*.parquet"))
    assert "0 runs made, 60 were there" in anabranch("sweep", small, "--store", "s").stdout


def test_runs_of_another_store_are_taken(small: Path, anabranch: Run) -> None:
    for number in (1, 2):
        anabranch("sweep", small, "--store", f"s{number}", "--shard", f"{number}/2")
    merged = anabranch("sweep", small, "--store", "s1", "--merge", "s2")
    assert "0 runs made, 60 were there" in merged.stdout
    assert "taken from s2" in merged.stderr


def test_strict_refuses_sessions_that_were_cut_off(small: Path, anabranch: Run, tmp_path: Path) -> None:
    small.write_text(PLAN.replace("seeds = 20", "seeds = 2"), "utf-8")
    assert anabranch("sweep", small, "--store", "endless", "--strict").returncode == 0, "an endless download has no end"
    (tmp_path / "base.toml").write_text(BASE.replace('"bulk" }', '"bulk", size = "90 MB" }'), "utf-8")
    done = anabranch("sweep", small, "--store", "cut", "--strict")
    assert done.returncode == 1
    assert "6 sessions came not to an end" in done.stderr
    assert "6 of 6 sessions were cut off" in done.stdout


def test_until_adds_seeds_until_intervals_are_narrow(small: Path, answer: Callable[..., Any]) -> None:
    small.write_text(PLAN.replace("seeds = 20", "seeds = 3"), "utf-8")
    before = answer("sweep", small, "--store", "s")
    after = answer("sweep", small, "--store", "s", "--until", "interval < 3 %")
    assert after["goal_reached"]
    assert len(after["seeds"]) > len(before["seeds"])
    widths = [
        (entry["difference_high"] - entry["difference_low"]) / 2
        for entry in after["comparisons"][0]["entries"]
        if entry["verdict"] != "reference"
    ]
    (reference,) = [e for e in after["comparisons"][0]["entries"] if e["verdict"] == "reference"]
    assert max(widths) < 0.03 * reference["mean"]


def test_a_budget_ends_the_search(small: Path, answer: Callable[..., Any]) -> None:
    small.write_text(PLAN.replace("seeds = 20", "seeds = 2"), "utf-8")
    found = answer("sweep", small, "--until", "interval < 0.0001 %", "--budget", "0.3 s")
    assert found["goal_reached"] is False
    assert len(found["seeds"]) >= 2


@pytest.mark.parametrize(
    ("arguments", "culprit"),
    [
        (["nowhere.toml"], "nowhere.toml"),
        (["small.toml", "--shard", "4/3"], "4/3"),
        (["small.toml", "--until", "width < 5"], "interval < 5 %"),
        (["small.toml", "--until", "interval < 5 %", "--shard", "1/2"], "one of the two"),
        (["small.toml", "--merge", "nowhere"], "nowhere"),
        (["small.toml", "--budget", "soon"], "soon"),
    ],
)
def test_wrong_options_are_refused(small: Path, anabranch: Run, arguments: list[str], culprit: str) -> None:
    done = anabranch("sweep", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert culprit in done.stderr
    assert "Traceback" not in done.stderr
    assert not (small.parent / "runs").exists()


def test_a_store_of_another_build_is_refused_by_the_command(small: Path, anabranch: Run, tmp_path: Path) -> None:
    anabranch("sweep", small, "--store", "s")
    about = tmp_path / "s" / "store.json"
    about.write_text(json.dumps({**json.loads(about.read_text()), "library_sha256": "0" * 64}))
    done = anabranch("sweep", small, "--store", "s")
    assert done.returncode == 2
    assert "another build" in done.stderr
    assert "--store" in done.stderr


def test_tables_of_two_versions_are_compared(
    small: Path, anabranch: Run, answer: Callable[..., Any], tmp_path: Path
) -> None:
    anabranch("sweep", small, "--store", "old")
    (tmp_path / "base.toml").write_text(BASE.replace("4 Mb/s", "5 Mb/s"))
    anabranch("sweep", small, "--store", "new")
    shown = anabranch("compare", "old", "new", "--metric", "goodput_bps")
    assert shown.returncode == 0, shown.stderr
    assert "higher" in shown.stdout
    sentences = " ".join(shown.stdout.split())
    assert "corrected by Holm for 1 test (the other table with the first one, in 1 metric)" in sentences
    both = " ".join(anabranch("compare", "old", "new", "old/small.parquet").stdout.split())
    assert "(each other table with the first one, in " in both
    rows = answer("compare", "old", "new/small.parquet", "--metric", "goodput_bps")["rows"]
    (changed,) = [row for row in rows if row["verdict"] != "reference"]
    assert changed["pairs"] == 60
    assert changed["difference_low"] > 0
    wrong = anabranch("compare", "old", "new", "--metric", "godput_bps")
    assert wrong.returncode == 2
    assert "did you mean `goodput_bps`?" in wrong.stderr
    assert anabranch("compare", "old", ".").returncode == 2


def test_what_differs_between_two_tables_is_named(small: Path, anabranch: Run, answer: Callable[..., Any]) -> None:
    anabranch("sweep", small, "--store", "old", "--seeds", 3)
    anabranch("sweep", small, "--store", "new", "--seeds", "2..5", "--set", "link.lte.loss=2 %")
    shown = anabranch("compare", "old", "new", "--metric", "goodput_bps")
    lines = shown.stdout.splitlines()
    assert [line.split()[0] for line in lines[: lines.index("")]] == ["differs", "seeds", "options"]
    assert "1 to 3" in lines[1]
    assert "2 to 5" in lines[1]
    assert "link.lte.loss=2 %" in lines[2]
    assert shown.stderr.startswith("warning: the tables have different seeds; runs of 2 seeds that all have")
    found = json.loads(anabranch("compare", "old", "new", "--metric", "goodput_bps", "--json").stdout)
    assert list(found["differences"]) == ["seeds", "options"]
    assert {row["pairs"] for row in found["rows"]} == {6}
    assert answer("compare", "old", "old/small.parquet", "--metric", "goodput_bps")["differences"] == {}
