import json
import os
import signal
import struct
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from conftest import SCENARIO, Run

RUN_KEYS = "schema scenario seed version engine sim_seconds cpu_seconds packets links sessions"
LINK_KEYS = "name direction bytes queue_delay_s drops_queue drops_random"
SESSION_KEYS = (
    "startup_s stalls stall_s played_s picture_discards buffer_underflows path_switches path_switches_new_data "
    "goodput_bps reorder_delay_s reorder_bytes_max receive_window_limited_s scheduler_wait_s subflows"
)
SUBFLOW_KEYS = (
    "path goodput_bps bytes segments_sent retransmissions reinjections rto_count loss_events mean_cwnd_packets "
    "mean_srtt_s"
)


def png_size(path: Path) -> tuple[int, int]:
    header = path.read_bytes()[:24]
    assert header[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", header[16:24])
    return width, height


def test_json_keeps_the_contract(answer: Callable[..., Any], scenario: Path) -> None:
    found = answer("run", scenario)
    assert set(RUN_KEYS.split()) <= set(found)
    assert (found["schema"], found["seed"], found["engine"]) == (1, 1, "sim")
    assert 0 < found["cpu_seconds"] < 60
    assert {(link["name"], link["direction"]) for link in found["links"]} == {
        (name, direction) for name in ("wifi", "lte") for direction in ("up", "down")
    }
    assert all(set(LINK_KEYS.split()) <= set(link) for link in found["links"])
    assert all({"mean", "p95"} <= set(link["queue_delay_s"]) for link in found["links"])
    (session,) = found["sessions"]
    assert set(SESSION_KEYS.split()) <= set(session)
    assert {"mean", "p95", "max"} <= set(session["reorder_delay_s"])
    assert {subflow["path"] for subflow in session["subflows"]} == {"wifi", "lte"}
    assert all(set(SUBFLOW_KEYS.split()) <= set(subflow) for subflow in session["subflows"])


def test_the_numbers_fit_the_scenario(answer: Callable[..., Any], scenario: Path) -> None:
    found = answer("run", scenario)
    (session,) = found["sessions"]
    # The whole file arrived, over links that cannot carry more, and 24 s of video were played or skipped.
    payload = sum(subflow["bytes"] for subflow in session["subflows"])
    assert payload >= 12e6
    assert session["goodput_bps"] < 5e6
    assert 20 < session["played_s"] <= 24.05
    assert next(link for link in found["links"] if link["name"] == "wifi" and link["direction"] == "down")[
        "drops_random"
    ]


def test_json_alone_leaves_nothing_behind(answer: Callable[..., Any], scenario: Path) -> None:
    answer("run", scenario)
    assert [path.name for path in scenario.parent.iterdir()] == ["short.toml"]


def test_no_figure_is_drawn_where_none_is_wanted(launch: Run, scenario: Path) -> None:
    done = launch("run", scenario, "--out", "drawn", "--set", "duration=2 s")
    assert done.returncode == 0, done.stderr
    done = launch("run", scenario, "--out", "plain", "--set", "duration=2 s", "--no-figure")
    assert done.returncode == 0, done.stderr
    drawn, plain = ({file.name for file in (scenario.parent / name).iterdir()} for name in ("drawn", "plain"))
    assert drawn - plain == {"session.png", "session.svg"}
    # A figure of an earlier run does not stay.
    launch("run", scenario, "--out", "drawn", "--set", "duration=2 s", "--no-figure")
    assert not (scenario.parent / "drawn" / "session.png").exists()


def test_a_run_folder_holds_everything(launch: Run, scenario: Path) -> None:
    done = launch("run", scenario, "--seed", 5)
    assert (done.returncode, done.stderr) == (0, "")
    folder = scenario.parent / "runs" / "short-5-1"
    assert f"run folder: {folder.relative_to(scenario.parent)}" in done.stdout
    assert {path.name for path in folder.iterdir()} == {
        *("scenario.toml", "metrics.json", "run.json", "samples.parquet", "incidents.parquet"),
        *("session.png", "session.svg"),
    }
    about = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    assert {"seed", "version", "cpu_seconds", "wall_seconds", "machine"} <= set(about)
    assert about["seed"] == 5
    metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    assert "cpu_seconds" not in metrics, "times belong to a machine, not to a result"
    assert (folder / "session.svg").read_text(encoding="utf-8").startswith("<?xml")
    width, height = png_size(folder / "session.png")
    assert 1200 <= width <= 3000
    assert 800 <= height <= 3000


def test_a_person_reads_what_the_viewer_saw(anabranch: Run, scenario: Path) -> None:
    shown = anabranch("run", scenario).stdout
    metrics = json.loads((scenario.parent / "runs" / "short-1-1" / "metrics.json").read_text(encoding="utf-8"))
    (session,) = metrics["sessions"]
    assert f"{session['stalls']} stall" in shown
    assert f"{session['picture_discards']} discard" in shown
    for word in ("start-up", "goodput", "path switch", "wifi", "lte"):
        assert word in shown
    assert "\x1b" not in shown, "colours are for terminals"


def test_runs_are_numbered(anabranch: Run, scenario: Path) -> None:
    for _ in range(2):
        assert anabranch("run", scenario).returncode == 0
    assert {path.name for path in (scenario.parent / "runs").iterdir()} == {"short-1-1", "short-1-2"}


def test_the_same_seed_gives_the_same_files(anabranch: Run, scenario: Path) -> None:
    for name in ("a", "b"):
        assert anabranch("run", scenario, "--out", name, "--events", "--seed", 11).returncode == 0
    a, b = scenario.parent / "a", scenario.parent / "b"
    for name in ("metrics.json", "scenario.toml", "session.svg", "session.png"):
        assert (a / name).read_bytes() == (b / name).read_bytes(), name
    for name in ("events.parquet", "samples.parquet", "incidents.parquet"):
        assert pl.read_parquet(a / name).equals(pl.read_parquet(b / name)), name


def test_another_seed_gives_another_run(answer: Callable[..., Any], scenario: Path) -> None:
    one, two = (answer("run", scenario, "--seed", seed)["sessions"] for seed in (1, 2))
    assert one != two


def test_the_resolved_scenario_gives_the_same_run(anabranch: Run, answer: Callable[..., Any], scenario: Path) -> None:
    assert anabranch("run", scenario, "--set", "transport.scheduler=gr-sty", "--out", "a").returncode == 0
    metrics = json.loads((scenario.parent / "a" / "metrics.json").read_text(encoding="utf-8"))
    again = answer("run", "a/scenario.toml")
    assert (again["links"], again["sessions"]) == (metrics["links"], metrics["sessions"])


def test_overrides_reach_the_run(anabranch: Run, scenario: Path) -> None:
    overrides = (
        "--set",
        "transport.scheduler=gr-sty",
        "--set",
        "link.wifi.loss=0 %",
        "--set",
        'link.lte.rate="4 Mb/s"',
    )
    assert anabranch("run", scenario, *overrides, "--out", "a").returncode == 0
    resolved = tomllib.loads((scenario.parent / "a" / "scenario.toml").read_text(encoding="utf-8"))
    assert resolved["transport"]["scheduler"] in ("gr-sty", {"name": "gr-sty"})
    metrics = json.loads((scenario.parent / "a" / "metrics.json").read_text(encoding="utf-8"))
    assert all(link["drops_random"] == 0 for link in metrics["links"])


def test_events_tell_what_the_metrics_count(anabranch: Run, scenario: Path) -> None:
    assert anabranch("run", scenario, "--out", "a", "--events").returncode == 0
    events = pl.read_parquet(scenario.parent / "a" / "events.parquet")
    (session,) = json.loads((scenario.parent / "a" / "metrics.json").read_text(encoding="utf-8"))["sessions"]
    sender = events.filter(pl.col("source").cast(pl.String).is_in(["session 0/server", "session 0/player"]))
    counts = dict(sender["event"].cast(pl.String).value_counts().iter_rows())
    assert counts.get("picture-discarded", 0) == session["picture_discards"]
    assert counts.get("buffer-underflow", 0) == session["buffer_underflows"]
    assert counts["segment-sent"] == sum(subflow["segments_sent"] for subflow in session["subflows"])
    sent = events.filter(pl.col("event").cast(pl.String) == "segment-sent")
    assert set(sent["source"].cast(pl.String)) == {"session 0/server", "session 0/client"}
    on_path = dict(
        sent.filter(pl.col("source").cast(pl.String) == "session 0/server")["path"]
        .cast(pl.String)
        .value_counts()
        .iter_rows()
    )
    assert on_path == {subflow["path"]: subflow["segments_sent"] for subflow in session["subflows"]}
    assert events.filter(pl.col("subflow").is_not_null() & pl.col("path").is_null()).is_empty()
    assert events["time_s"].is_sorted()
    assert events.filter(pl.col("event").cast(pl.String) == "playback-started")["subflow"].null_count() == 1


def test_out_replaces_an_earlier_run(anabranch: Run, scenario: Path) -> None:
    assert anabranch("run", scenario, "--out", "a", "--events").returncode == 0
    assert anabranch("run", scenario, "--out", "a", "--seed", 2).returncode == 0
    folder = scenario.parent / "a"
    assert not (folder / "events.parquet").exists()
    assert json.loads((folder / "run.json").read_text(encoding="utf-8"))["seed"] == 2


def test_a_shipped_scenario_runs_by_name(answer: Callable[..., Any]) -> None:
    found = answer("run", "bulk/one-path", "--set", "duration=2 s")
    assert found["scenario"] == "bulk/one-path"
    assert found["sessions"][0]["startup_s"] is None, "nothing is played"


# --- Bad input ------------------------------------------------------------------------------------------------------

# What is changed in the scenario, and what the message must name besides the file and the line of the change.
MISTAKES = {
    "unknown key": (('rate = "3 Mb/s"', 'rates = "3 Mb/s"'), "`rates`", "did you mean `rate`?"),
    "unknown algorithm": (('"min-rtt"', '"min-rt"'), "`min-rt`", "did you mean `min-rtt`?"),
    "unknown control": (('"cubic"', '"qubic"'), "`qubic`", "did you mean `cubic`?"),
    "wrong unit": (('rtt = "30 ms"', 'rtt = "30 Mb"'), "30 Mb", "expected"),
    "negative rate": (('rate = "3 Mb/s"', 'rate = "-3 Mb/s"'), "-3 Mb/s", "expected"),
    "wrong type": (('rtt = "30 ms"', "rtt = [30]"), "rtt", "expected"),
    "unknown path": (('paths = ["wifi", "lte"]', 'paths = ["wify", "lte"]'), "`wify`", "did you mean `wifi`?"),
    "unknown link in an event": (('link = "wifi"\ndown = true', 'link = "wifii"\ndown = true'), "`wifii`", "`wifi`"),
    "no TOML": (('rate = "3 Mb/s"', 'rate = "3 Mb/s'), "TOML", ""),
}


def check_refused(done: subprocess.CompletedProcess[str]) -> str:
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    assert "panicked" not in done.stderr
    assert len(done.stderr.splitlines()) == 1, "one clear message"
    assert done.stderr.startswith("error: ")
    return done.stderr


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_with_file_and_line(anabranch: Run, scenario: Path, mistake: str) -> None:
    (before, after), *named = MISTAKES[mistake]
    assert SCENARIO.count(before) == 1
    scenario.write_text(SCENARIO.replace(before, after), encoding="utf-8")
    line = 1 + SCENARIO[: SCENARIO.index(before)].count("\n")
    message = check_refused(anabranch("run", "short.toml"))
    assert f"short.toml:{line}:" in message
    for name in named:
        assert name in message
    assert not (scenario.parent / "runs").exists()


def test_bad_input_is_told_in_words_also_with_json(anabranch: Run, scenario: Path) -> None:
    scenario.write_text("schema = 7\n", encoding="utf-8")
    assert "schema = 1" in check_refused(anabranch("run", "short.toml", "--json"))


def test_a_scenario_without_a_path_is_refused(anabranch: Run, scenario: Path) -> None:
    scenario.write_text('schema = 1\nquestion = "?"\nduration = "1 s"\n[[session]]\n', encoding="utf-8")
    message = check_refused(anabranch("run", "short.toml"))
    assert "no path" in message
    assert "[link.NAME]" in message


def test_a_file_that_is_no_text_is_refused(anabranch: Run, scenario: Path) -> None:
    scenario.write_bytes(b"\xff\xfe\x00schema")
    assert "UTF-8" in check_refused(anabranch("run", "short.toml"))


def test_a_wrong_override_is_named(anabranch: Run, scenario: Path) -> None:
    for override, named in {
        "transport.scheduler=gr-stx": "did you mean `gr-sty`?",
        "transport.schedular=gr-sty": "did you mean `scheduler`?",
        "link.wifi.rate=fast": "expected",
    }.items():
        message = check_refused(anabranch("run", scenario, "--set", override))
        assert f"--set {override}" in message
        assert named in message
    assert "KEY=VALUE" in check_refused(anabranch("run", scenario, "--set", "transport.scheduler"))


def test_an_unknown_scenario_is_refused_with_the_nearest(anabranch: Run) -> None:
    assert "did you mean `sticky/base`?" in check_refused(anabranch("run", "sticky/bas"))


def test_wrong_usage_ends_with_2(launch: Run, scenario: Path) -> None:
    for arguments in (["run"], ["run", scenario, "--seed", "-1"], ["run", scenario, "--sede", "1"], ["walk"]):
        done = launch(*arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert "Traceback" not in done.stderr


def test_a_folder_that_cannot_be_written_ends_with_1(launch: Run, scenario: Path) -> None:
    (scenario.parent / "file").write_text("", encoding="utf-8")
    done = launch("run", scenario, "--out", "file/run")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "file/run" in done.stderr


# --- Ends -----------------------------------------------------------------------------------------------------------


def test_a_run_whose_paths_all_die_ends_by_itself_and_says_so(anabranch: Run, scenario: Path) -> None:
    dead = SCENARIO.split("[[event]]")[0].replace('"60 s"', '"5000 s"') + "\n".join(
        f'[[event]]\nat = "10 s"\nlink = "{link}"\ndown = true\n' for link in ("wifi", "lte")
    )
    scenario.write_text(dead, encoding="utf-8")
    done = anabranch("run", scenario, "--out", "a")
    assert done.returncode == 0
    assert "cut off: nothing could arrive any more" in done.stderr
    metrics = json.loads((scenario.parent / "a" / "metrics.json").read_text(encoding="utf-8"))
    assert metrics["sim_seconds"] < 4000
    assert 5 < metrics["sessions"][0]["played_s"] < 24


@pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")
def test_an_interrupt_ends_a_run_at_once(scenario: Path) -> None:
    endless = SCENARIO.replace('duration = "60 s"', 'duration = "100000 s"').replace('"3 Mb/s"', '"2 Gb/s"')
    video = '{ kind = "progressive", size = "12 MB", rate = "4 Mb/s", fps = 25 }\nplayer = "vlc"'
    endless = endless.replace(video, '{ kind = "bulk" }').replace('"1 %"', '"0 %"').split("[[event]]")[0]
    scenario.write_text(endless, encoding="utf-8")
    command = [sys.executable, "-m", "anabranch", "run", str(scenario), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        time.sleep(2.0)
        assert process.poll() is None, "the run must last longer than the test waits"
        process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=20)
        finally:
            process.kill()
    assert (process.returncode, out, err) == (130, "", "error: interrupted\n")
