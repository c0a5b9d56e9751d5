"""Captures of the kernel's Multipath TCP, on both ends, tell faults that its links or hosts are known to have."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from anabranch.experiments import kept_runs, outside, paper
from conftest import module_of_paper, require_live

pytestmark = [pytest.mark.live, pytest.mark.slow]

AT_ONCE = 4


def test_captures_of_the_kernel_name_nine_of_ten_faults_and_their_paths(tmp_path: Path) -> None:
    require_live(*module_of_paper("explain", "kernel").PROGRAMS)
    (kernel,) = (kept for kept in paper.load("explain").kept if kept.name == "kernel")
    runs = replace(kernel, file=tmp_path / "runs.parquet")
    outside.make(runs, AT_ONCE)
    found = [row for row in kept_runs.read(runs.file) if row["planted"]]
    assert len(found) >= 10
    wrong = [(row["name"], row["capture"]) for row in found if not row["capture_is_right"]]
    assert len(wrong) <= 0.1 * len(found), wrong
    assert [row["name"] for row in found if not row["capture_path_is_right"]] == []
