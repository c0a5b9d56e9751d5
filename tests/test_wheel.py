"""The release wheel's training (scripts/wheel.py)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from anabranch import _core
from conftest import load_script

ROOT = Path(__file__).parent.parent

wheel = load_script("wheel")


def test_no_scenario_of_the_benchmark_is_trained_with() -> None:
    benchmark = (ROOT / "benches" / "simulator.rs").read_text() + (ROOT / "scripts" / "instructions.py").read_text()
    measured = set(re.findall(r'"([a-z-]+/[a-z0-9-]+)"', benchmark))
    assert {"sticky/base", "dash/ratio-1-5"} < measured, "the expression finds the names of scenarios"
    assert measured.isdisjoint(name for name, _, _ in wheel.TRAINING)


def test_every_scenario_of_the_training_is_accepted() -> None:
    for name, seconds, settings in wheel.TRAINING:
        text = _core.shipped(name)
        assert text is not None, name
        _core.load(text, name=name, directory=None, overrides=wheel.overrides(seconds, settings))


@pytest.mark.parametrize(("version", "accepted"), [("14.0.6", False), ("22.1.2", True), ("23.1.0", True)])
def test_a_tool_of_an_older_compiler_is_not_taken(
    version: str, accepted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "llvm-profdata"
    tool.write_text(f'#!/bin/sh\necho "LLVM"\necho "  LLVM version {version}"\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(wheel, "compilers_llvm", lambda: 22)
    monkeypatch.setattr(wheel, "output", lambda *_: str(tmp_path))
    assert (wheel.find_profdata() == str(tool)) is accepted


PLAN = """\
schema = 1
question = "Does blest help?"
scenario = "bulk/two-paths"
seeds = 2

[set]
duration = "3 s"

[vary]
transport.scheduler = ["min-rtt", "blest"]

[compare]
metric = "goodput_bps"
better = "higher"
between = "transport.scheduler"
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the sources as they are, without the profile of `make wheel`, which changes no content."""
    dist = tmp_path_factory.mktemp("dist")
    environment = {name: value for name, value in os.environ.items() if name != "CONDA_PREFIX"}
    maturin = Path(sys.executable).with_name("maturin")
    command = [str(maturin), "build", "--release", "--locked", "--out", str(dist)]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, timeout=1800)
    (found,) = dist.glob("*.whl")
    return found


@pytest.mark.slow
def test_the_wheel_has_every_file_of_the_package(built: Path) -> None:
    names = set(zipfile.ZipFile(built).namelist())
    listed = subprocess.run(["git", "ls-files", "python"], cwd=ROOT, capture_output=True, text=True, check=True)
    tracked = {name.removeprefix("python/") for name in listed.stdout.splitlines()}
    assert {"anabranch/plans/schedulers.toml", "anabranch/report/assets/page.css"} <= tracked
    assert tracked <= names
    assert "cp311-abi3-manylinux" in built.name, "one wheel for every Python, and for other distributions"


@pytest.mark.slow
def test_the_wheel_works_where_there_is_nothing_else(built: Path, tmp_path: Path) -> None:
    """An empty environment, no compiler, no git, no repository: the commands of the first half hour."""
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    programs = tmp_path / "venv" / "bin"
    constraints = ROOT / "requirements" / "constraints.txt"
    pip = [str(programs / "pip"), "install", "--quiet", "--constraint", str(constraints), str(built)]
    subprocess.run(pip, check=True, timeout=900)
    home = tmp_path / "home"
    home.mkdir()
    (home / "plan.toml").write_text(PLAN, encoding="utf-8")
    environment = {"PATH": str(programs), "HOME": str(home), "LANG": "C.UTF-8"}

    def call(*arguments: str) -> str:
        command = [str(programs / "anabranch"), *arguments]
        done = subprocess.run(
            command, cwd=home, env=environment, capture_output=True, text=True, timeout=900, check=False
        )
        assert done.returncode == 0, f"anabranch {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    assert "three side by side" in call("demo")
    assert (home / "runs" / "demo" / "comparison.png").stat().st_size > 50_000
    assert "4 runs made" in call("sweep", "plan.toml", "--store", "store")
    call("report", "store", "--out", "report.html")
    assert (home / "report.html").stat().st_size > 50_000
    assert "sticky" in call("list", "papers")
    call("run", "sticky/base", "--set", 'duration="20 s"', "--pcap", "--out", "captured")
    assert (home / "captured" / "client.pcapng").exists()
    assert "reproduced" in call("reproduce", "dash", "--seeds", "2")
