"""`anabranch reproduce`: the machinery, with the smallest number of seeds. Nothing here asserts that a claim holds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from anabranch.experiments import paper, reproduction
from anabranch.experiments.paper import AS_SHIPPED
from anabranch.experiments.reproduction import Part

VERDICTS = {"reproduced", "partly", "not reproduced", "undecided", "not testable"}
CLAIMS = {
    "sticky": [f"S{n}" for n in range(1, 12)],
    "handoff": [f"H{n}" for n in range(1, 11)],
    "mptcp-plus": [f"P{n}" for n in range(1, 12)],
    "dash": [f"D{n}" for n in range(1, 10)],
}


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "anabranch", "reproduce", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def dash(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], Path]:
    folder = tmp_path_factory.mktemp("reproduce")
    store = str(folder / "store")
    return run("dash", "--seeds", "2", "--jobs", "2", "--json", "--out", str(folder), "--store", store), folder


def test_every_row_has_values_a_verdict_and_a_sentence(
    dash: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    done, folder = dash
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["schema"], report["seeds"]) == (1, 2)
    assert [row["id"] for row in report["rows"]] == CLAIMS["dash"]
    for row in report["rows"]:
        assert row["verdict"] in VERDICTS
        assert all(row[key] for key in ("claim", "criterion", "why", "findings"))
        held = sum(finding["holds"] for finding in row["findings"])
        assert row["findings_that_hold"] == held
        assert not any(finding["holds"] and not finding["decided"] for finding in row["findings"])
        assert row["verdict"] == expected_verdict(row["findings"])
        assert all(value["seeds"] == 2 for value in row["measured"])
    written = json.loads((folder / "report.json").read_text())
    assert {key: value for key, value in written.items() if key != "papers"} == report
    assert [table["name"] for table in written["papers"][0]["tables"]] == ["verdicts", "quantities"]
    document = (folder / "report.md").read_text()
    assert "## Claims: performance of DASH over Multipath TCP" in document
    assert "{{" not in document
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
    assert all("undecided with 2 seeds; " in row["why"] for row in undecided)
    document = (dash[1] / "report.md").read_text(encoding="utf-8")
    assert "| undecided |" in document
    assert "  - undecided: " in document


def test_a_second_start_makes_no_run_again(dash: tuple[subprocess.CompletedProcess[str], Path]) -> None:
    store = dash[1] / "store"
    files = sorted((store / "runs").iterdir())
    again = run("dash", "--seeds", "2", "--json", "--store", str(store))
    assert json.loads(again.stdout) == json.loads(dash[0].stdout)
    assert sorted((store / "runs").iterdir()) == files


def test_the_shipped_papers_have_all_claims_and_the_order_of_reports() -> None:
    read = {name: paper.load(name) for name in paper.shipped()}
    assert {name: [c.id for c in each.claims] for name, each in read.items() if each.source} == CLAIMS
    assert list(read)[: len(CLAIMS)] == list(CLAIMS)


def test_a_shipped_study_names_its_page_and_every_table_is_in_its_text() -> None:
    for each in map(paper.load, paper.shipped()):
        if not each.source:
            assert (Path(__file__).parent.parent / "docs" / "validation" / each.page).is_file()
            assert each.tables
            assert all(f"{{{{table {table.name}}}}}" in each.text for table in each.tables), each.name
            assert each.text.count("{{") == len(each.tables), each.name


@pytest.mark.parametrize("name", CLAIMS)
def test_every_variant_of_the_assumptions_changes_runs(name: str) -> None:
    """A misspelt key would be refused; one that changes nothing would be an assumption that is never varied."""
    read = paper.load(name)
    parts = list(reproduction._parts(read, 2, True))
    shipped = {part.plan.plan.name: part for part in parts if part.variant == AS_SHIPPED}

    def changed(part: Part) -> int:
        digests = {run.digest for run in shipped[part.plan.plan.name].runs}
        assert part.runs
        return sum(run.digest not in digests for run in part.runs)

    for variant in read.variants:
        assert sum(changed(part) for part in parts if part.variant == variant.name) > 0, variant.name


def test_wrong_input_names_the_remedy() -> None:
    done = run("dahs")
    assert done.returncode == 2
    assert "did you mean `dash`" in done.stderr
    assert run("dash", "--seeds", "1").returncode == 2
    for arguments, remedy in (
        (("--until", "certain"), 'expected "decided"'),
        (("--until", "decided", "--seeds", "4"), "no --seeds beside it"),
        (("--until", "decided", "--budget", "soon"), "soon"),
    ):
        done = run("dash", *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert remedy in done.stderr
