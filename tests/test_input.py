"""What can be given to a run, and what is said where it is wrong or probably not meant."""

import io
import json
import os
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import anabranch
import anabranch.traces
from conftest import SCENARIO, Run


@pytest.fixture
def short() -> dict[str, Any]:
    return tomllib.loads(SCENARIO)


def resolved(scenario: Any, changes: dict[str, Any]) -> dict[str, Any]:
    return tomllib.loads(anabranch.run(scenario, set={"duration": "15 s", **changes}).scenario)


# --- Overrides ------------------------------------------------------------------------------------------------------


def test_a_nested_override_merges(short: dict[str, Any]) -> None:
    nested = resolved(short, {"transport": {"scheduler": "ecf"}, "link": {"wifi": {"loss": "3 %"}}})
    assert nested == resolved(short, {"transport.scheduler": "ecf", "link.wifi.loss": "3 %"})
    assert nested["transport"]["congestion_control"]["name"] == "cubic"
    assert resolved(short, {"transport": {}}) == resolved(short, {}), "an empty dictionary merges nothing"


def test_a_table_of_another_kind_and_a_list_replace(short: dict[str, Any]) -> None:
    changed = resolved(short, {"session.0": {"video": {"kind": "bulk"}, "player": "bulk", "paths": ["lte"]}})
    assert changed["session"][0]["video"] == {"kind": "bulk"}
    assert changed["session"][0]["paths"] == ["lte"]


def test_the_command_line_merges_a_table_and_empties_it_with_two_braces(anabranch: Run, scenario: Path) -> None:
    def transport(value: str) -> dict[str, Any]:
        done = anabranch("run", scenario, "--set", f"transport={value}", "--set", "duration=15 s", "--out", "a")
        assert done.returncode == 0, done.stderr
        table: dict[str, Any] = tomllib.loads((scenario.parent / "a" / "scenario.toml").read_text("utf-8"))["transport"]
        return table

    scenario.write_text(SCENARIO.replace('"cubic"', '"lia"'), encoding="utf-8")
    assert transport('{ scheduler = "ecf" }')["congestion_control"]["name"] == "lia"
    assert transport("{}")["congestion_control"]["name"] == "cubic"


# --- Mistakes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"session": [{"player": "vcl"}]}, "scenario, key `session[0].player`: "),
        ({"event": [{"at": "1 s", "link": "wify", "down": True}]}, "scenario, key `event[0].link`: "),
        ({"link": {"wifi": {"rate": "3 Mbps", "rtt": "30 ms"}}}, "scenario, key `link.wifi.rate`: "),
        ({"link": {"wifi": {"rates": "3 Mb/s", "rtt": "30 ms"}}}, "scenario, key `link.wifi.rates`: "),
        ({"session": [{"paths": ["wifi", {3}]}]}, "scenario, key `session[0].paths[1]`: "),
        ({"schema": 2}, "scenario, key `schema`: "),
    ],
)
def test_a_mistake_in_a_dictionary_names_its_key(short: dict[str, Any], change: dict[str, Any], place: str) -> None:
    with pytest.raises(anabranch.InputError) as caught:
        anabranch.run({**short, **change})
    assert str(caught.value).startswith(place)


@pytest.mark.parametrize(
    ("override", "named"),
    [
        ("link.wifi.rate=900 Tb/s", "did you mean `900000 Gb/s`?"),
        ("duration=1 day", "did you mean `86400 s`?"),
        ("session.0.video={ kind = 'dash', num_segment = 3 }", "did you mean `segment_duration`?"),
        ("sample_interval=1 ns", 'expected at least "6 us" for this `duration`'),
        ("link.lte.rate=0 b/s", "the rate of [link.lte] (down) is zero all the time"),
    ],
)
def test_a_wrong_value_names_the_remedy(anabranch: Run, scenario: Path, override: str, named: str) -> None:
    done = anabranch("run", scenario, "--set", override)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert named in done.stderr


def test_a_directory_is_no_scenario(anabranch: Run, scenario: Path) -> None:
    done = anabranch("run", scenario.parent)
    assert (done.returncode, done.stdout) == (2, "")
    assert "this is a directory" in done.stderr
    assert "did you mean" not in done.stderr
    assert anabranch("run", scenario, "--out", "a").returncode == 0
    assert "did you mean `a/scenario.toml`?" in anabranch("run", "a").stderr


# --- Standard input -------------------------------------------------------------------------------------------------


def test_a_scenario_comes_from_standard_input(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "anabranch", "run", "-", "--json"]
    done = subprocess.run(command, input=SCENARIO, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["scenario"] == "stdin"
    wrong = SCENARIO.replace('"3 Mb/s"', '"3 Mbps"')
    done = subprocess.run(command, input=wrong, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error: stdin:11:8: ")


def test_standard_input_that_is_no_text_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff\xfe")))
    with pytest.raises(anabranch.InputError, match="stdin: this is no text in UTF-8"):
        anabranch.run("-")


# --- Warnings -------------------------------------------------------------------------------------------------------


def test_what_is_probably_not_meant_is_a_python_warning_of_the_caller(short: dict[str, Any]) -> None:
    with pytest.warns(anabranch.RunWarning, match=r"\[\[event\]\] 1 is at 14 s") as caught:
        run = anabranch.run(short, set={"duration": "12 s"})
    assert [each.kind for each in run.warnings] == ["event-after-end", "cut-off"]
    assert str(run.warnings[0]).startswith("scenario, key `event[1].at`: ")
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert anabranch.run(short).warnings == ()


def test_what_is_probably_not_meant_is_on_standard_error_and_in_run_json(anabranch: Run, scenario: Path) -> None:
    done = anabranch("run", scenario, "--set", "duration=12 s", "--out", "a")
    assert done.returncode == 0
    line, cut_off = done.stderr.splitlines()
    assert "cut off" in cut_off
    assert line.startswith(("warning: short.toml", f"warning: {scenario}"))
    assert "it never happens" in line
    about = json.loads((scenario.parent / "a" / "run.json").read_text("utf-8"))
    assert [warning["kind"] for warning in about["warnings"]] == ["event-after-end", "cut-off"]
    assert about["warnings"][0]["message"] in line


# --- Places that cannot be written ----------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [["run", "sticky/base"], ["reproduce", "dash"], ["compare", "a", "b"]])
def test_a_place_that_cannot_be_written_is_refused_before_the_work(
    anabranch: Run, tmp_path: Path, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setattr("anabranch._core.run", None)
    monkeypatch.setattr("anabranch._core.measure", None)
    done = anabranch(*command, "--out", "file/run")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: file/run: file is a file, not a folder\n"


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no file system that cannot be written")
def test_what_permissions_do_not_tell_is_tried(anabranch: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anabranch._core.run", None)
    done = anabranch("run", "sticky/base", "--out", "/proc/run")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: /proc/run: /proc cannot be written: ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("writer", ["pathlib.Path.write_text", "polars.DataFrame.write_parquet"])
def test_a_full_disk_loses_no_finished_run(
    anabranch: Run, scenario: Path, monkeypatch: pytest.MonkeyPatch, writer: str
) -> None:
    import importlib

    module, owner, name = writer.split(".")
    original = getattr(getattr(importlib.import_module(module), owner), name)
    full = scenario.parent / "full"

    def write(self: Any, *arguments: Any, **options: Any) -> Any:
        if full in Path(self if isinstance(self, Path) else arguments[0]).resolve().parents:
            raise OSError(28, os.strerror(28))
        return original(self, *arguments, **options)

    monkeypatch.setattr(writer, write)
    monkeypatch.setenv("TMPDIR", str(scenario.parent / "elsewhere"))
    (scenario.parent / "elsewhere").mkdir()
    monkeypatch.setattr("tempfile.tempdir", None)
    done = anabranch("run", scenario, "--out", full)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: {full}: No space left on device; the finished run is in ")
    rescued = Path(line.rpartition(" ")[2])
    assert anabranch("compare", rescued, rescued, "--out", "figure").returncode == 0
    assert "goodput" in done.stdout, "and the summary was printed"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a file system")
def test_a_disk_that_is_really_full(launch: Run, scenario: Path) -> None:
    small = scenario.parent / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(small)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("this machine mounts nothing")
    try:
        done = launch("run", scenario, "--out", small / "run")
        files = {path.name for path in (small / "run").iterdir()}
    finally:
        subprocess.run(["umount", str(small)], check=True)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: {small / 'run'}: No space left on device; the finished run is in ")
    assert "run.json" not in files, "an unfinished folder is marked as one"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_an_output_that_is_full_ends_with_one_sentence(scenario: Path) -> None:
    command = [sys.executable, "-m", "anabranch", "run", str(scenario), "--out", "a"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, cwd=scenario.parent, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "error: No space left on device\n")
    assert (scenario.parent / "a" / "run.json").is_file(), "the folder is not lost with it"


# --- Arguments ------------------------------------------------------------------------------------------------------

TINY = {"duration": "1 s"}
PLAN = {
    "schema": 1,
    "question": "Which is faster?",
    "scenario": "bulk/one-path",
    "seeds": 1,
    "vary": {"transport.congestion_control": ["cubic", "lia"]},
    "compare": {"metric": "goodput_bps", "better": "higher", "between": "transport.congestion_control"},
}


@pytest.fixture(scope="module")
def done() -> anabranch.Run:
    return anabranch.run("bulk/one-path", set=TINY)


@pytest.mark.parametrize(
    ("given", "named", "remedy"),
    [
        ({"seed": "2"}, "seed='2' is a text", "such as seed=2"),
        ({"seed": 2.0}, "seed=2.0 is a number", "whole number"),
        ({"seed": True}, "seed=True is true or false", "whole number"),
        ({"seed": None}, "seed=None is nothing", "whole number"),
        (
            {"set": "transport.scheduler=ecf"},
            "set='transport.scheduler=ecf' is a text",
            '{"transport.scheduler": "ecf"}',
        ),
        ({"set": ["transport.scheduler=ecf"]}, "is a list", "a dictionary"),
        ({"set": {1: "a"}}, "set: the key 1 is a number", "a dictionary"),
        ({"events": "yes"}, "events='yes' is a text", "True or False"),
        ({"events": 1}, "events=1 is a number", "True or False"),
        ({"progress": "bar"}, "progress='bar' is a text", "a function"),
        ({"captures": 3}, "captures=3 is a number", "the name of a directory"),
        ({"scenario": None}, "scenario=None is nothing", "a shipped scenario"),
        ({"scenario": 3}, "scenario=3 is a number", "a shipped scenario"),
        ({"scenario": ["bulk/one-path"]}, "scenario=['bulk/one-path'] is a list", "a shipped scenario"),
        ({"scenario": b"bulk/one-path"}, "is bytes", "a shipped scenario"),
    ],
)
def test_an_argument_of_run_of_a_wrong_type_is_named_with_what_to_pass(given: Any, named: str, remedy: str) -> None:
    with pytest.raises(anabranch.InputError) as caught:
        anabranch.run(**{"scenario": "bulk/one-path", **given})
    assert named in str(caught.value)
    assert remedy in str(caught.value)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"plan": 3}, "plan=3 is a number"),
        ({"seeds": 1.5}, "seeds=1.5 is a number"),
        ({"seeds": True}, "seeds=True is true or false"),
        ({"seeds": {}}, "seeds={} is a dictionary"),
        ({"seeds": ["1"]}, "seeds[0]='1' is a text"),
        ({"engines": "sim"}, "engines='sim' is a text; expected a list"),
        ({"engines": 3}, "engines=3 is a number"),
        ({"store": 3}, "store=3 is a number"),
        ({"jobs": "2"}, "jobs='2' is a text"),
        ({"jobs": 0}, "jobs 0: expected a whole number of at least 1"),
        ({"at_once": "1"}, "at_once='1' is a text"),
        ({"until": 3}, "until=3 is a number"),
        ({"until": "interval < 5 %", "budget_s": "10 s"}, "budget_s='10 s' is a text; expected a number of seconds"),
        ({"set": "a"}, "set='a' is a text"),
    ],
)
def test_an_argument_of_sweep_of_a_wrong_type_is_named(given: Any, named: str, tmp_path: Path) -> None:
    with pytest.raises(anabranch.InputError) as caught:
        anabranch.sweep(**{"plan": PLAN, "store": tmp_path / "store", **given})
    assert named in str(caught.value)
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda _: cast(Any, anabranch.Scenario)("bulk/one-path"), "Scenario.load(file or name)"),
        (lambda _: anabranch.Scenario.load(3), "scenario=3 is a number"),  # type: ignore[arg-type]
        (lambda _: anabranch.Scenario.load("bulk/one-path", set="a=1"), "set='a=1' is a text"),  # type: ignore[arg-type]
        (lambda run: run.plot(session="0"), "session='0' is a text"),
        (lambda run: run.plot(session=0.0), "session=0.0 is a number"),
        (lambda run: run.save(3), "directory=3 is a number"),
        (lambda run: run.save("x", session="0"), "session='0' is a text"),
        (lambda run: run.noted(3), "name=3 is a number"),
        (lambda run: anabranch.compare(run, 2), "run 1: run=2 is a number"),  # type: ignore[arg-type]
        (lambda run: anabranch.compare([run, run]), "compare(first, second)"),  # type: ignore[arg-type]
        (lambda run: anabranch.compare(run, run, session="0"), "session='0' is a text"),  # type: ignore[arg-type]
        (lambda run: anabranch.compare(run, run).save(3), "directory=3 is a number"),  # type: ignore[arg-type]
        (lambda _: anabranch.scheduler(anabranch.Scheduler), '@anabranch.scheduler("my-name")'),  # type: ignore[arg-type]
        (lambda _: anabranch.traces.read(3), "file=3 is a number"),  # type: ignore[arg-type]
        (lambda _: anabranch.traces.synthesize("lte", mean=3), "mean=3 is a number"),  # type: ignore[arg-type]
        (lambda _: anabranch.traces.synthesize("lte", mean="3 Mb/s", seed="1"), "seed='1' is a text"),  # type: ignore[arg-type]
    ],
)
def test_other_calls_with_a_wrong_type_name_the_argument(
    call: Any, named: str, done: anabranch.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(anabranch.InputError) as caught:
        call(done)
    assert named in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_numbers_of_numpy_are_numbers() -> None:
    run = anabranch.run("bulk/one-path", seed=np.int64(2), set=TINY, events=np.bool_(True))  # type: ignore[arg-type]
    assert run.has_events
    assert (type(run.seed), run.seed) == (int, 2)
