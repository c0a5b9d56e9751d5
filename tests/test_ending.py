"""How a run ended, and whether its seed matters: seen in the metrics, the summary, the comparison and the exit code."""

import json
import shutil
import tomllib
import warnings
from pathlib import Path
from typing import Any

import pytest

import anabranch as package
from anabranch import _core
from anabranch.runs import naming, runfolder
from anabranch.wording import ending
from conftest import SCENARIO, Run

# The video of the scenario plays for 24 s.
CUT = ("--set", "duration=9 s")
# Both links are cut for ever.
STUCK = (
    ("event.1.link", "lte"),
    ("event.1.down", True),
    ("stuck_after", "5 s"),
)


def test_a_session_that_was_cut_off_is_a_warning_everywhere(anabranch: Run, scenario: Path) -> None:
    done = anabranch("run", scenario, *CUT, "--out", "cut")
    assert done.returncode == 0
    metrics = json.loads((scenario.parent / "cut" / "metrics.json").read_text(encoding="utf-8"))
    (session,) = metrics["sessions"]
    assert (metrics["ended"], session["ended"], session["cut_off"]) == ("duration", "duration", True)
    assert session["video_s"] == pytest.approx(24.0, abs=0.1)
    played = f"played {session['played_s']:.1f} s of {session['video_s']:.1f} s"
    assert f"incomplete (the scenario ended first), {played}" in done.stdout
    assert "\nwarning: session 0 was cut off: the scenario's duration was over" in done.stderr
    assert f"{played}, less than the video" in done.stderr
    assert "incomplete (the scenario ended first)" in (scenario.parent / "cut" / "session.svg").read_text(
        encoding="utf-8"
    )
    assert not (json_of := anabranch("run", scenario, *CUT, "--json")).returncode
    assert "cut off" in json_of.stderr
    assert json.loads(json_of.stdout)["sessions"][0]["cut_off"]


def test_strict_refuses_what_was_cut_off_and_nothing_else(anabranch: Run, scenario: Path) -> None:
    for cut in (CUT, [part for key, value in STUCK for part in ("--set", f"{key}={json.dumps(value)}")]):
        strict = anabranch("run", scenario, *cut, "--strict", "--out", "cut")
        assert strict.returncode == 1
        assert "--strict" in strict.stderr
        assert (scenario.parent / "cut" / "run.json").is_file(), "the folder is written all the same"
    whole = anabranch("run", scenario, "--strict")
    assert (whole.returncode, whole.stderr) == (0, "")
    assert "incomplete" not in whole.stdout


def test_a_run_that_is_stuck_says_so() -> None:
    run = package.run(tomllib.loads(SCENARIO), set=dict(STUCK))
    (session,) = run.metrics["sessions"]
    assert (run.metrics["ended"], session["ended"], session["cut_off"]) == ("stuck", "stuck", True)
    assert ending.cut_off(session).startswith("incomplete (no more data could arrive), played ")
    (warning,) = run.warnings
    assert "nothing could arrive any more" in warning.message


def test_a_comparison_marks_what_was_counted_of_a_part(anabranch: Run, scenario: Path) -> None:
    assert anabranch("run", scenario, "--out", "whole").returncode == 0
    assert anabranch("run", scenario, *CUT, "--out", "cut").returncode == 0
    done = anabranch("compare", "whole", "cut")
    assert done.returncode == 0
    rows = {line.split("  ")[0]: line for line in done.stdout.splitlines()}
    assert "finished" in rows["ended"]
    assert "incomplete" in rows["ended"]
    assert "(the scenario ended first)" in done.stdout
    for row in ("stalls", "frozen picture, s", "longest stall, s"):
        # The column of the part alone.
        assert rows[row].rstrip().endswith("\u2020")
        assert rows[row].count("\u2020") == 1
    assert "may seem better than it was" in done.stdout
    assert "incomplete" in (scenario.parent / "comparison.svg").read_text(encoding="utf-8")
    found = json.loads(anabranch("compare", "whole", "cut", "--json").stdout)
    assert [bool(run["warnings"]) for run in found["runs"]] == [False, True]
    assert "\u2020" not in anabranch("compare", "whole", "whole").stdout


def test_an_endless_download_has_no_end_to_miss(anabranch: Run) -> None:
    done = anabranch("run", "bulk/one-path", "--set", "duration=2 s", "--strict")
    assert (done.returncode, done.stderr) == (0, "")


def test_each_link_accounts_for_all_packets() -> None:
    cut = package.run(tomllib.loads(SCENARIO), set={"duration": "9 s"}).metrics
    for link in cut["links"]:
        entered = link["packets_sent"] + link["packets_duplicated"]
        dropped = link.drops_queue + link.drops_random + link.drops_outage + link.drops_too_big
        assert entered == link["packets"] + dropped + link["packets_in_flight"] > 0
    assert any(link["packets_in_flight"] for link in cut["links"])
    assert any(link["drops_random"] for link in cut["links"])


def test_a_broken_invariant_is_an_error_without_a_traceback(
    anabranch: Run, scenario: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class PanicException(BaseException):
        __module__ = "pyo3_runtime"

    def lose_count(*_: object, **__: object) -> None:
        raise PanicException("link wifi (down) lost count of packets")

    monkeypatch.setattr(_core, "run", lose_count)
    done = anabranch("run", scenario)
    assert done.returncode == 1
    assert done.stderr.startswith("error: internal error: link wifi (down) lost count of packets")
    assert "Traceback" not in done.stderr


def test_downloads_are_listed(scenario: Path) -> None:
    text = scenario.read_text(encoding="utf-8")
    video = next(line for line in text.splitlines() if line.startswith("video"))
    text = text.replace(video, 'video = { kind = "bulk", size = "100 kB" }').replace('"vlc"', '"on-off"')
    (session,) = package.run(tomllib.loads(text), set={"duration": "6.5 s"}).metrics["sessions"]
    downloads = session["downloads"]
    assert downloads is not None
    assert [round(one["requested_s"] - downloads[0]["requested_s"]) for one in downloads] == list(range(7))
    for one in downloads[:-1]:
        assert one["first_byte_s"] is not None
        assert one["finished_s"] is not None
        assert one["requested_s"] < one["first_byte_s"] <= one["finished_s"]
        assert one["bytes"] == 100_000
    gap = session["longest_delivery_gap_s"]
    assert gap is not None
    assert 0.0 < gap < 1.0, "the pauses between requests do not count"
    assert (session["cut_off"], session["video_s"]) == (False, None)


def test_copies_and_metered_paths_are_counted() -> None:
    text = SCENARIO.replace('"min-rtt"', '"redundant"')
    text += '[path.wifi]\nlinks = ["wifi"]\n[path.lte]\nlinks = ["lte"]\nmetered = true\n'
    (session,) = package.run(tomllib.loads(text), set={"duration": "9 s"}).metrics["sessions"]
    sent = {subflow["path"]: subflow["bytes"] for subflow in session["subflows"]}
    assert [subflow["metered"] for subflow in session["subflows"]] == [s["path"] == "lte" for s in session["subflows"]]
    assert session["metered_bytes"] == sent["lte"] > 0
    assert session["copied_bytes"] is not None
    assert 0.2 * sum(sent.values()) < session["copied_bytes"] < sum(sent.values())
    (alone,) = package.run(tomllib.loads(SCENARIO), set={"session.0.paths": ["lte"]}).metrics["sessions"]
    assert (alone["copied_bytes"], alone["metered_bytes"]) == (0, 0)


def test_a_metered_path_rests_while_the_viewers_buffer_is_long() -> None:
    def run(change: dict[str, Any]) -> package.Run:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", package.RunWarning)
            settled = {"duration": "200 s", "transport.idle_restart": "false"}
            return package.run("viewers/metered", seed=6, set={**settled, **change})

    changes: list[dict[str, Any]] = [{"transport.scheduler": "min-rtt"}, {}, {"server.response_pacing": "off"}]
    usual, rests, unknown = (run(change).metrics["sessions"][0]["metered_bytes"] for change in changes)
    assert 0 < rests < 0.5 * usual
    # Without an estimate of the buffer it decides as its base does, in pauses as well, where windows would decay.
    assert unknown == usual


def test_a_seed_without_effect_is_told_to_who_chose_it(anabranch: Run, scenario: Path) -> None:
    scenario.write_text(SCENARIO.replace('loss = "1 %"\n', ""), encoding="utf-8")
    assert anabranch("run", scenario).stderr == ""
    chosen = anabranch("run", scenario, "--seed", 3, "--out", "three")
    assert chosen.returncode == 0
    assert "the seed changes nothing in this scenario" in chosen.stderr
    shutil.copytree(scenario.parent / "runs" / "short-1-1", scenario.parent / "one")
    one, three = (runfolder.read(scenario.parent / name) for name in ("one", "three"))
    assert one.metrics | {"seed": 3} == three.metrics
    assert not one.metrics["seed_matters"]
    assert ending.SEED_WITHOUT_EFFECT in " ".join(anabranch("compare", "one", "three").stdout.split())
    assert naming.names([one, three]) == ["seed=1", "seed=3"]


def test_no_note_where_the_seed_matters(anabranch: Run, scenario: Path) -> None:
    done = anabranch("run", scenario, "--seed", 3)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("name", [entry[1] for entry in _core.registry() if entry[0] == "scenarios"])
def test_what_is_said_of_the_seed_is_so(name: str) -> None:
    one, two = (package.run(name, seed=seed).metrics for seed in (1, 2))
    assert (one | {"seed": 2} != two) == one["seed_matters"] == two["seed_matters"]


@pytest.mark.slow
@pytest.mark.parametrize("name", [entry[1] for entry in _core.registry() if entry[0] == "scenarios"])
def test_every_shipped_scenario_comes_to_its_end(name: str) -> None:
    assert package.run(name).warnings == ()
