"""`anabranch reproduce`: the machinery, with the smallest number of seeds. Nothing here asserts that a claim holds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from anabranch import _core

VERDICTS = {"reproduced", "partly", "not reproduced", "undecided", "not testable"}


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "anabranch", "reproduce", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def dash(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], Path]:
    folder = tmp_path_factory.mktemp("reproduce")
    return run("dash", "--seeds", "2", "--jobs", "2", "--json", "--out", str(folder)), folder


def test_every_row_has_values_a_verdict_and_a_sentence(
    dash: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    done, folder = dash
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["schema"], report["seeds"]) == (1, 2)
    assert [row["id"] for row in report["rows"]] == [f"D{n}" for n in range(1, 10)]
    for row in report["rows"]:
        assert row["verdict"] in VERDICTS
        assert all(row[key] for key in ("claim", "criterion", "why", "findings"))
        held = sum(finding["holds"] for finding in row["findings"])
        assert row["findings_that_hold"] == held
        assert not any(finding["holds"] and not finding["decided"] for finding in row["findings"])
        assert row["verdict"] == expected_verdict(row["findings"])
        assert all(value["seeds"] == 2 for value in row["measured"])
    assert json.loads((folder / "report.json").read_text()) == report
    document = (folder / "report.md").read_text()
    assert "## Performance of DASH over Multipath TCP" in document
    assert all(f"| D{n} |" in document for n in range(1, 10))


def expected_verdict(findings: list[dict[str, Any]]) -> str:
    """An interval that decides nothing leaves open what the verdict is, unless others have settled that."""
    held = any(finding["holds"] for finding in findings)
    failed = any(finding["decided"] and not finding["holds"] for finding in findings)
    if held and failed:
        return "partly"
    if not all(finding["decided"] for finding in findings):
        return "undecided"
    return "reproduced" if held else "not reproduced"


def test_two_seeds_leave_something_undecided_and_the_table_says_so(
    dash: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    rows = json.loads(dash[0].stdout)["rows"]
    undecided = [row for row in rows if row["verdict"] == "undecided"]
    assert undecided, "an interval from two seeds is wide"
    assert all("more seeds" in row["why"] for row in undecided)
    document = (dash[1] / "report.md").read_text(encoding="utf-8")
    assert "| undecided |" in document
    assert "  - undecided: " in document


def test_papers_have_the_names_of_the_command_line() -> None:
    assert _core.papers() == ["sticky", "handoff", "mptcp-plus", "dash"]


def test_wrong_input_names_the_remedy() -> None:
    done = run("dahs")
    assert done.returncode == 2
    assert "did you mean dash" in done.stderr
    assert run("dash", "--seeds", "1").returncode == 2


def test_what_the_progress_callback_raises_ends_the_work() -> None:
    def stop(_fraction: float) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        _core.reproduce("dash", seeds=50, jobs=1, sensitivity=True, progress=stop)
