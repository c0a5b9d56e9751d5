"""`anabranch validate`: its messages on wrong input, and the quick test cases where the machine can run them."""

import json
import time
from pathlib import Path

import pytest

from conftest import LADDER_BPS, LADDER_S, Run, require_live

# (d) plays for two minutes; all other quick test cases run beside it.
_QUICK_LIMIT_S = 600


def test_an_unknown_part_is_named_with_those_that_exist(anabranch: Run) -> None:
    done = anabranch("validate", "--only", "z")
    assert done.returncode == 2
    assert "part `z`: expected one of a, b, c, d, e, f" in done.stderr


def test_a_document_without_markers_is_refused_before_anything_runs(anabranch: Run, tmp_path: Path) -> None:
    document = tmp_path / "page.md"
    document.write_text("# Nothing to fill in\n", encoding="utf-8")
    done = anabranch("validate", "--write", document)
    assert done.returncode == 2
    assert "<!-- begin kernel -->" in done.stderr
    assert str(document) in done.stderr
    assert document.read_text(encoding="utf-8") == "# Nothing to fill in\n"


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
        kernel = {"release": "6.12.8", "header_room": 256}
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


@pytest.mark.slow
def test_the_real_dash_js_is_a_witness_as_long_as_it_is_wanted(ladder: Path) -> None:
    require_live("ffmpeg", "chromium", "npm", "mptcpize")
    from anabranch.live import browsing

    play = browsing.witness(ladder)
    scenario = (
        'schema = 1\nduration = "60 s"\n[transport]\nprotocol = "tcp"\n[link.path1]\nrate = "2 Mb/s"\nrtt = "50 ms"\n'
        '[[session]]\nvideo = { kind = "dash", mpd = "manifest.mpd" }\nplayer = "dash.js-5"\n'
    )
    began = time.monotonic()
    metrics = json.loads(play(scenario, "kernel", 1, lambda: True).metrics_json)
    took = time.monotonic() - began
    session = metrics["sessions"][0]
    assert session["played_s"] == pytest.approx(LADDER_S, abs=2.5)
    low, high = LADDER_BPS
    # The mean is a quotient of floats.
    assert low - 1 <= session["mean_bitrate_bps"] <= high + 1
    assert metrics["live"]["lateness_s"]["p50"] < 0.1
    began = time.monotonic()
    with pytest.raises(browsing.UnwantedError):
        play(scenario, "kernel", 1, lambda: False)
    assert time.monotonic() - began < took, "not played to its end"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "runs", "parts", "least"),
    # The video of part (d) depends on an encoder.
    [("kernel.md", "kernel-runs.json", "abcef", 150), ("kernel-controls.md", "kernel-controls-runs.json", "g", 39)],
)
def test_the_tables_of_the_page_follow_from_the_kept_live_runs(
    launch: Run, page: str, runs: str, parts: str, least: int
) -> None:
    """The simulator agrees with the kernel as well as the page says."""
    folder = Path(__file__).parent.parent / "docs" / "validation"
    chosen = [argument for part in parts for argument in ("--only", part)]
    done = launch("validate", "--again", folder / runs, *chosen, "--json", timeout=1800)
    shown = (folder / page).read_text(encoding="utf-8")
    words = {"equivalent": "pass", "differs": "differs", "inconclusive": "inconclusive"}
    compared = 0
    for part in json.loads(done.stdout)["parts"]:
        for row in part["rows"]:
            values = [row[key] for key in ("cell", "quantity", "simulated", "live", "ratio", "tolerance")]
            line = f"| {' | '.join([*values, words[row['verdict']]])} |"
            assert line in shown
            compared += 1
    assert compared > least
