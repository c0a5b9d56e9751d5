"""How tests are distributed over processes."""

import shutil
import subprocess
import sys
from pathlib import Path

MODULE = """
import os

import pytest


@pytest.mark.parametrize("number", range(8))
def test_notes_its_process(number: int) -> None:
    with open(FILE, "a", encoding="utf-8") as file:
        file.write(os.environ["PYTEST_XDIST_WORKER"] + "\\n")
"""


def test_a_module_and_the_live_tests_stay_in_one_process(tmp_path: Path) -> None:
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
    for name in ("first", "second"):
        text = MODULE.replace("FILE", repr(str(tmp_path / "plain" / name)))
        (tmp_path / f"test_{name}.py").write_text(text, "utf-8")
        live = MODULE.replace("FILE", repr(str(tmp_path / "live"))) + "\n\npytestmark = pytest.mark.live\n"
        (tmp_path / f"test_live_{name}.py").write_text(live, "utf-8")
    (tmp_path / "plain").mkdir()
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = live\n", "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "--numprocesses=2", "--dist=loadgroup", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    for file, tests in (("plain/first", 8), ("plain/second", 8), ("live", 16)):
        processes = (tmp_path / file).read_text("utf-8").split()
        assert len(processes) == tests
        assert len(set(processes)) == 1, f"{file}: {processes}"
