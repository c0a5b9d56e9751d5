import json
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from anabranch import run
from conftest import SCENARIO, Run
from test_run import png_size


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two run folders, `one` and `two`, that differ in their scheduler."""
    folder = tmp_path_factory.mktemp("made")
    for name, scheduler in {"one": "min-rtt", "two": "gr-sty"}.items():
        run(tomllib.loads(SCENARIO), set={"transport.scheduler": scheduler}).save(folder / name)
    return folder


@pytest.fixture
def two(made: Path, tmp_path: Path) -> Path:
    """The test's own copy of them, in `runs`."""
    shutil.copytree(made, tmp_path / "runs")
    return tmp_path


def test_runs_stand_side_by_side_under_what_distinguishes_them(anabranch: Run, two: Path) -> None:
    done = anabranch("compare", "runs/one", "runs/two")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split("\n")[0].split() == ["scheduler=min-rtt", "scheduler=gr-sty"]
    for name, column in {"one": 1, "two": 2}.items():
        (session,) = json.loads((two / "runs" / name / "metrics.json").read_text(encoding="utf-8"))["sessions"]
        (row,) = [line for line in done.stdout.splitlines() if line.startswith("path switches")]
        values = [value.strip() for value in row.split("  ") if value.strip()]
        assert int(values[column]) == session["path_switches"]
    width, height = png_size(two / "runs" / "comparison.png")
    assert width > 1000
    assert height > 600
    assert (two / "runs" / "comparison.svg").is_file()


def test_json_and_out(answer_with_figure: Callable[..., Any], two: Path) -> None:
    found = answer_with_figure("compare", "runs/one", "runs/two", "--out", "elsewhere")
    assert [run["name"] for run in found["runs"]] == ["scheduler=min-rtt", "scheduler=gr-sty"]
    assert (two / "elsewhere" / "comparison.png").is_file()


@pytest.fixture
def answer_with_figure(anabranch: Run) -> Callable[..., Any]:
    """Like `answer`, for a command that also prints where its figure is."""

    def call(*arguments: object) -> Any:
        done = anabranch(*arguments, "--json")
        assert done.returncode == 0
        assert done.stderr.strip().startswith("figure: ")
        return json.loads(done.stdout)

    return call


def test_every_difference_is_named_with_the_seed_first(anabranch: Run, made: Path, tmp_path: Path) -> None:
    changes = {"transport.scheduler": "gr-sty", "transport.congestion_control": "lia", "duration": "3 s"}
    loss = {"link.wifi.down.loss": "3 %", "link.wifi.up.loss": "1 %"}
    run(tomllib.loads(SCENARIO), seed=4, set={**changes, **loss}).save(tmp_path / "three")
    shutil.copytree(made / "one", tmp_path / "one")
    done = anabranch("compare", "one", "three")
    lines = done.stdout.splitlines()
    keys = [line.split()[0] for line in lines[1 : lines.index("")]]
    assert lines[0].split() == ["differs", "one", "three"]
    assert keys[0] == "seed"
    assert {"scheduler", "congestion_control", "duration", "link.wifi.down.loss", "link.wifi.up.loss"} <= set(keys)
    assert len(keys) == len(set(keys)) == 6
    assert done.stderr.startswith("warning: the seeds differ (1, 4)")
    found = json.loads(anabranch("compare", "one", "three", "--json").stdout)
    assert found["differences"]["seed"] == ["1", "4"]
    assert found["differences"]["link.wifi.up.loss"][1] == "1 %"


def test_another_version_and_other_files_are_differences(anabranch: Run, two: Path) -> None:
    about = two / "runs" / "two" / "run.json"
    content = json.loads(about.read_text("utf-8"))
    content |= {"version": "0.0.1", "library_sha256": "f" * 64, "files": {"files/walk.csv": "a" * 64}}
    about.write_text(json.dumps(content), "utf-8")
    lines = anabranch("compare", "runs/one", "runs/two").stdout.splitlines()
    keys = [line.split("  ")[0] for line in lines[1 : lines.index("")]]
    assert keys == ["version", "scheduler", "file files/walk.csv", "build"]


def test_a_seed_that_changes_nothing_is_no_reason_for_a_warning(anabranch: Run, tmp_path: Path) -> None:
    for seed in (1, 2):
        run("bulk/two-paths", seed=seed, set={"duration": "1 s"}).save(tmp_path / str(seed))
    done = anabranch("compare", "1", "2")
    assert "warning" not in done.stderr
    assert "the seed changes nothing" in done.stdout


def test_what_is_no_run_folder_is_refused(anabranch: Run, two: Path) -> None:
    (two / "runs" / "two" / "run.json").unlink()
    (two / "damaged").mkdir()
    for name in ("run.json", "metrics.json", "scenario.toml", "samples.parquet", "incidents.parquet"):
        (two / "damaged" / name).write_text("no", encoding="utf-8")
    for wrong, named in {"runs/two": "run.json", "nowhere": "no such folder", "damaged": "damaged"}.items():
        done = anabranch("compare", "runs/one", wrong)
        assert (done.returncode, done.stdout) == (2, "")
        assert wrong in done.stderr
        assert named in done.stderr
        assert "Traceback" not in done.stderr


def test_another_viewer_is_chosen_by_number(anabranch: Run, scenario: Path) -> None:
    text = scenario.read_text(encoding="utf-8")
    scenario.write_text(text.replace("[[session]]", '[[session]]\ncount = 2\nstagger = "3 s"'), encoding="utf-8")
    assert anabranch("run", scenario, "--session", 1, "--out", "runs/one").returncode == 0
    shutil.copytree(scenario.parent / "runs" / "one", scenario.parent / "runs" / "two")
    assert "session 1 of 2" in (scenario.parent / "runs" / "one" / "session.svg").read_text(encoding="utf-8")
    done = anabranch("compare", "runs/one", "runs/two", "--session", 1)
    assert done.returncode == 0
    metrics = json.loads((scenario.parent / "runs" / "one" / "metrics.json").read_text(encoding="utf-8"))
    (row,) = [line for line in done.stdout.splitlines() if line.startswith("path switches")]
    assert int(row.split("  ")[-1]) == metrics["sessions"][1]["path_switches"]
    for command in (("compare", "runs/one", "runs/two"), ("run", scenario)):
        wrong = anabranch(*command, "--session", 2)
        assert wrong.returncode == 2
        assert "sessions 0 to 1" in wrong.stderr


def test_one_run_is_no_comparison(anabranch: Run, two: Path) -> None:
    alone = anabranch("compare", two / "runs" / "one")
    assert alone.returncode == 2
    assert alone.stderr == "error: one folder or table given; expected 2 to 6 of runs, or of sweeps\n"
