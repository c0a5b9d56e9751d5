"""`anabranch validate`: its messages on wrong input, and the quick test cases where the machine can run them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from anabranch.experiments.progress import Bar
from anabranch.experiments.store import Store
from anabranch.system import provenance
from anabranch.validation import cases
from anabranch.validation.campaign import Campaign
from anabranch.validation.cases import TestCase
from anabranch.validation.criteria import Part
from conftest import LADDER_BPS, Run, require_live

pytestmark = pytest.mark.live

# (d) plays for two minutes; all other quick test cases run at the same time.
_QUICK_LIMIT_S = 600


def test_an_unknown_part_is_named_with_those_that_exist(anabranch: Run) -> None:
    done = anabranch("validate", "--only", "z")
    assert done.returncode == 2
    assert "part `z`: expected one of a, b, c, d, e, f" in done.stderr


@pytest.mark.parametrize(
    ("part", "there", "missing"), [("a", "# Nothing to fill in\n", "kernel"), ("h", "<!-- begin kernel -->", "drawn")]
)
def test_a_document_without_markers_is_refused_before_anything_runs(
    anabranch: Run, tmp_path: Path, part: str, there: str, missing: str
) -> None:
    document = tmp_path / "page.md"
    document.write_text(there, encoding="utf-8")
    done = anabranch("validate", "--only", part, "--write", document)
    assert done.returncode == 2
    assert f"<!-- begin {missing} -->" in done.stderr
    assert str(document) in done.stderr
    assert document.read_text(encoding="utf-8") == there


def test_a_document_that_does_not_exist_is_named(anabranch: Run, tmp_path: Path) -> None:
    done = anabranch("validate", "--write", tmp_path / "nowhere.md")
    assert done.returncode == 2
    assert "nowhere.md: No such file" in done.stderr
    assert "Traceback" not in done.stderr


# The second is the former name of the first.
@pytest.mark.parametrize("option", ["--test-case", "--cell"])
def test_earlier_live_runs_are_compared_again_without_a_machine_for_them(
    anabranch: Run, tmp_path: Path, option: str
) -> None:
    name = "250 kB, 10 Mb/s, 50 ms, 0 %, 1 BDP, cubic"
    run: dict[str, float | list[object] | None] = {
        "goodput_bps": 2e6,
        "retransmissions": 0.0,
        "smallest_share": None,
        "mean_bitrate_bps": None,
        "switches": None,
        "stalls": None,
        "drops": [],
    }
    # What a kernel takes for a chunk, and three times that, from which the simulation differs.
    for chunk_s, verdict in ((0.2944, "equivalent"), (0.9, "differs")):
        live = [
            run | {"seed": seed, "chunk_s": chunk_s * (1 + seed / 1e3), "chunk_p90_s": chunk_s, "first_share": 1.0}
            for seed in (1, 2, 3)
        ]
        earlier = {"cell": {"name": name, "part": "OnOff"}, "void": 0, "errors": [], "live": live}
        earlier["lateness"] = {"median_s": 3e-5, "p99_s": 2e-4}
        kernel = {"release": "6.12.8", "header_room": 256, "writer": "at-once"}
        text = json.dumps({"kernel": kernel, "cells": [earlier]})
        (tmp_path / "earlier.json").write_text(text, encoding="utf-8")
        done = anabranch("validate", "--again", tmp_path / "earlier.json", "--only", "f", option, name, "--json")
        report = json.loads(done.stdout)
        assert report["kernel"] == kernel
        rows = [row for part in report["parts"] for row in part["rows"]]
        assert [row["verdict"] for row in rows if "chunk" in row["quantity"]] == [verdict], done.stderr
        assert done.returncode == (verdict == "differs")


def test_what_cannot_be_compared_again_is_refused(anabranch: Run, tmp_path: Path) -> None:
    (tmp_path / "no.json").write_text("{}", encoding="utf-8")
    for arguments, message in (
        (("--again", tmp_path / "no.json"), "no report of validate --json"),
        (("--again", tmp_path / "none.json"), "none.json"),
        (("--again", tmp_path / "no.json", "--test-case", "3 Gb/s"), "of these parts has `3 Gb/s` in its name"),
        (("--again", tmp_path / "no.json", "--live-runs", "4"), "--live-runs and --again exclude each other"),
    ):
        done = anabranch("validate", "--only", "f", *arguments)
        assert done.returncode == 2
        assert message in done.stderr


@pytest.mark.slow
def test_the_quick_test_cases_do_not_contradict_the_kernel(launch: Run) -> None:
    require_live()
    done = launch("validate", "--quick", "--json", timeout=_QUICK_LIMIT_S)
    report = json.loads(done.stdout)
    rows = [row for part in report["parts"] for row in part["rows"]]
    assert {part["letter"] for part in report["parts"]} == set("abcdef")
    # Two runs of a test case tell little, so most of what is not equivalent is inconclusive; what differs in spite of
    # that differs. The number of packets that a full queue drops is known to (docs/reference/deviations.md).
    differing = [row for row in rows if row["verdict"] == "differs" and row["quantity"] != "retransmissions"]
    assert not differing, differing
    assert any(row["verdict"] == "equivalent" for row in rows)
    assert (done.returncode == 0) == (report["verdict"] != "differs")


# Live runs of a few seconds tell little, but half or twice the goodput would be another network.
_SHORT_S = 4


def test_live_runs_of_either_server_are_compared_with_simulated_ones(tmp_path: Path) -> None:
    """The slow suite makes the quick test cases whole."""
    require_live()
    parts = (Part.ONE_PATH, Part.OUR_SERVER)
    chosen = [_shortened(cases.of_parts([part], quick=True)[0]) for part in parts]
    with Store(tmp_path / "store", provenance.build()) as store, Bar(Console(stderr=True)) as bar:
        report = Campaign(chosen, store, 2, bar, None).compare(4)
    for found in report.found:
        assert not found.errors
        # A busy machine is too late for the links of some runs; these are tried again, and do not count.
        assert len(found.live) == found.case.live_runs or found.invalid > 0
        if found.judgement is None:
            continue
        goodput = found.judgement.compared[0]
        assert goodput.live > 1e5
        assert 0.5 < goodput.simulated / goodput.live < 2.0
    assert [part.part for part in report.parts] == list(parts)


def _shortened(case: TestCase) -> TestCase:
    scenario = case.scenario.replace(f'duration = "{case.seconds} s"', f'duration = "{_SHORT_S} s"')
    assert scenario != case.scenario
    return replace(case, scenario=scenario, seconds=_SHORT_S)


@pytest.mark.slow
def test_the_real_dash_js_plays_the_test_cases_of_a_browser(ladder: Path, tmp_path: Path) -> None:
    require_live("ffmpeg", "chromium", "npm", "mptcpize")
    from anabranch.live import browsing

    browsing.prepare()
    played = next(case for case in cases.of_parts([Part.DASH]) if case.in_browser)
    case = replace(played, live_runs=1, simulated_runs=2)
    with Store(tmp_path / "store", provenance.build()) as store, Bar(Console(stderr=True)) as bar:
        (found,) = Campaign([case], store, 2, bar, ladder).compare(1).found
    assert not found.errors
    assert found.judgement is not None, found
    low, high = LADDER_BPS
    for run in (*found.live, *found.simulated):
        assert run.mean_bitrate_bps is not None
        # The mean is a quotient of floats.
        assert low - 1 <= run.mean_bitrate_bps <= high + 1
    assert found.lateness is not None
    assert found.lateness.median_s < 0.1
