"""Run folders are self-contained: moved elsewhere, without the files that they were made from, they run again."""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from anabranch import InputError, _core
from anabranch.runs import runfolder
from conftest import Run

# Both links follow recordings, one of them begins anywhere; the video is described by a table of sizes.
SCENARIO = """\
schema = 1
duration = "30 s"
[transport]
scheduler = "min-rtt"
congestion_control = "cubic"
[link.wifi]
rtt = "30 ms"
rate = { trace = "./t/wifi.csv", offset = "random" }
[link.lte]
rtt = "60 ms"
rate = { trace = "./t/lte.csv", scale = 0.5 }
[[session]]
video = { kind = "dash", table = "t/sizes.json" }
"""


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A folder with a scenario, its recordings and its video."""
    folder = tmp_path / "made"
    (folder / "t").mkdir(parents=True)
    (folder / "traced.toml").write_text(SCENARIO, encoding="utf-8")
    for name, first in {"wifi": 2, "lte": 5}.items():
        rows = "".join(f"{second},{first + second % 4}\n" for second in range(17))
        (folder / "t" / f"{name}.csv").write_text(f"t,mbps\n{rows}", encoding="utf-8")
    sizes = {
        "segment_duration_ms": 2000,
        "bitrates_kbps": [400, 1200],
        "segment_sizes_bits": [[800_000, 2_400_000]] * 8,
    }
    (folder / "t" / "sizes.json").write_text(json.dumps(sizes), encoding="utf-8")
    return folder


def _metrics(folder: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    # What a scenario is called is where it was.
    del read["scenario"]
    return read


def test_a_folder_that_was_moved_runs_again_with_the_same_metrics(
    anabranch: Run, recorded: Path, tmp_path: Path
) -> None:
    override = "transport.scheduler=blest"
    assert anabranch("run", recorded / "traced.toml", "--seed", 7, "--set", override, "--out", "run").returncode == 0
    moved = tmp_path / "far" / "away"
    moved.parent.mkdir()
    shutil.move(tmp_path / "run", moved)
    shutil.rmtree(recorded)
    assert {path.name for path in (moved / "files").iterdir()} == {"wifi.csv", "lte.csv", "sizes.json"}
    again = anabranch("run", moved / "scenario.toml", "--seed", 7, "--out", "again")
    assert (again.returncode, again.stderr) == (0, "")
    assert _metrics(tmp_path / "again") == _metrics(moved)
    assert (tmp_path / "again" / "scenario.toml").read_bytes() == (moved / "scenario.toml").read_bytes()
    # The recording begins elsewhere with another seed.
    assert anabranch("run", moved / "scenario.toml", "--seed", 8, "--out", "other").returncode == 0
    assert _metrics(tmp_path / "other")["links"] != _metrics(moved)["links"]


def test_run_json_says_what_made_the_run(anabranch: Run, recorded: Path, tmp_path: Path) -> None:
    overrides = ("--set", "transport.scheduler=blest", "--set", "link.wifi.rtt=40 ms")
    assert anabranch("run", recorded / "traced.toml", *overrides, "--out", "run").returncode == 0
    about = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))
    assert about["set"] == ["transport.scheduler=blest", "link.wifi.rtt=40 ms"]
    library = Path(str(_core.__file__)).read_bytes()
    assert about["library_sha256"] == hashlib.sha256(library).hexdigest()
    revision = about["source_revision"]
    assert revision is None or len(revision.removesuffix("-modified")) == 40
    digests = {
        f"files/{path.name}": hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (tmp_path / "run" / "files").iterdir()
    }
    assert about["files"] == digests


def test_only_the_files_of_the_earlier_run_are_replaced(anabranch: Run, recorded: Path, tmp_path: Path) -> None:
    assert anabranch("run", recorded / "traced.toml", "--out", "run").returncode == 0
    (tmp_path / "run" / "files" / "mine.txt").write_text("mine", encoding="utf-8")
    assert anabranch("run", "bulk/one-path", "--set", "duration=1 s", "--out", "run").returncode == 0
    assert [path.name for path in (tmp_path / "run" / "files").iterdir()] == ["mine.txt"]


def test_a_folder_of_an_earlier_version_is_refused_with_the_remedy(anabranch: Run, tmp_path: Path) -> None:
    assert anabranch("run", "bulk/one-path", "--set", "duration=1 s", "--out", "run").returncode == 0
    file = tmp_path / "run" / "metrics.json"
    metrics = json.loads(file.read_text(encoding="utf-8"))
    del metrics["sessions"][0]["copied_bytes"]
    file.write_text(json.dumps(metrics), encoding="utf-8")
    with pytest.raises(InputError, match=r"copied_bytes.*made again"):
        runfolder.read(tmp_path / "run")
