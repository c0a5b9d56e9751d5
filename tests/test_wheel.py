"""The release wheel's training (scripts/wheel.py)."""

from __future__ import annotations

import re
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
