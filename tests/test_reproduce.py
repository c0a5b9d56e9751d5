"""`anabranch reproduce`: the machinery, with the smallest number of seeds. Nothing here asserts that a claim holds."""

from __future__ import annotations

import html
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from anabranch.experiments import paper, reproduction
from anabranch.experiments.paper import AS_SHIPPED
from anabranch.experiments.reproduction import PlanRuns
from anabranch.report import reproduced
from anabranch.report.document import IntervalChart, Section, Statements
from conftest import Run

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


def test_a_report_of_claims_has_their_findings_as_charts(
    dash: tuple[subprocess.CompletedProcess[str], Path], anabranch: Run, tmp_path: Path
) -> None:
    done = anabranch("report", dash[1], "--out", tmp_path / "page.html", "--export", tmp_path / "figures")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "page.html").read_text("utf-8")
    rows = json.loads(dash[0].stdout)["rows"]
    found = reproduced.of_folder(dash[1])
    (claims,) = (section for section in found.sections if section.title == "Claims")
    (said,) = claims.blocks
    assert isinstance(said, Statements)
    assert [item.verdict for item in said.items] == [row["verdict"] for row in rows]
    assert all(html.escape(row["claim"]) in page for row in rows)
    charts = {chart.name: chart for chart in charts_of(found.sections)}
    for row in rows:
        differences = [each for each in row["findings"] if each["in_margins"] is not None]
        if not differences:
            continue
        chart = charts[f"dash-{row['id']}"]
        assert [item.estimate for item in chart.items] == [each["in_margins"]["mean"] for each in differences]
        for item, each in zip(chart.items, differences, strict=True):
            assert each["text"] == f"{item.label}: {item.note}"
            expected = "open" if not each["decided"] else "good" if each["holds"] else "bad"
            assert item.tone == expected
            assert (item.low < -1 or item.high > 1) or each["difference"] == "no difference that matters"
    names = {file.name for file in (tmp_path / "figures").iterdir()}
    assert {"dash-verdicts.tex", "dash-quantities.csv", *(f"{name}-chart.svg" for name in charts)} <= names


def charts_of(sections: Sequence[Section]) -> Iterator[IntervalChart]:
    for section in sections:
        yield from (block for block in section.blocks if isinstance(block, IntervalChart))
        yield from charts_of(section.parts)


def test_a_report_of_the_folder_of_a_paper_makes_its_runs(anabranch: Run, tmp_path: Path) -> None:
    assert anabranch("paper", "new", "mine").returncode == 0
    done = anabranch("report", "mine")
    assert done.stdout == "report: mine/report.html\n", done.stderr
    assert "C1: " in (tmp_path / "mine" / "report.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "this is no JSON"),
        ("[]", "this is no object"),
        ('{"schema": 1, "version": "0", "seeds": 2, "rows": []}', "`papers` is missing"),
        ('{"schema": 9, "version": "0", "seeds": 2, "rows": [], "papers": []}', "schema 9, expected 1"),
        ('{"schema": 1, "version": "0", "seeds": 2, "rows": [{}], "papers": []}', "was written by another version"),
    ],
)
def test_what_is_no_report_of_claims_is_refused(anabranch: Run, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "found").mkdir()
    (tmp_path / "found" / "report.json").write_text(text)
    done = anabranch("report", "found")
    assert done.returncode == 2
    assert message in done.stderr
    assert "`anabranch reproduce PAPER --out found` writes it again" in " ".join(done.stderr.split())


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


def test_a_shipped_study_names_its_page_and_every_table_and_figure_is_in_its_text() -> None:
    for each in map(paper.load, paper.shipped()):
        if not each.source:
            assert (Path(__file__).parent.parent / "docs" / "validation" / each.page).is_file()
            assert each.tables
            assert all(f"{{{{table {table.name}}}}}" in each.text for table in each.tables), each.name
            drawn = [plan.plan.name for plan in each.plans if plan.plan.figures]
            assert all(f"{{{{figure {name}}}}}" in each.text for name in drawn), each.name
            assert each.text.count("{{") == len(each.tables) + len(drawn), each.name


@pytest.mark.parametrize("name", CLAIMS)
def test_every_variant_of_the_assumptions_changes_runs(name: str) -> None:
    """A misspelt key would be refused; one that changes nothing would be an assumption that is never varied."""
    read = paper.load(name)
    parts = list(reproduction._parts(read, 2, True))
    shipped = {part.plan.plan.name: part for part in parts if part.variant == AS_SHIPPED}

    def changed(part: PlanRuns) -> int:
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
        (("--until", "decided", "--seeds", "4"), "no --seeds with it"),
        (("--until", "decided", "--budget", "soon"), "soon"),
    ):
        done = run("dash", *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert remedy in done.stderr
