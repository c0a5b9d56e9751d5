"""Runs that a paper's own program makes, and the tables of `kernel-controls`, which are of such runs."""

from __future__ import annotations

import json
import os
import platform
import signal
import sys
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from anabranch import InputError, _core
from anabranch.experiments import kept_runs, outside, paper
from anabranch.experiments.executor import Threads
from anabranch.experiments.paper import Kept
from anabranch.experiments.reproduction import reproduce
from anabranch.experiments.store import Store
from anabranch.experiments.study import Study
from anabranch.live import servers
from anabranch.report import paper_text
from anabranch.results.frames import frame
from anabranch.runs import reading
from anabranch.system import provenance
from anabranch.system.programs import ToolError
from conftest import module_of_paper
from test_paper import Counted

PAGES = Path(__file__).resolve().parent.parent / "docs" / "validation"
_PROGRAM = """
import json, sys, time

labels = json.loads(sys.argv[1])
if labels["size"] == 3:
    sys.exit("error: the links were late")
print({"bad": "no object"}.get(labels["name"]) or json.dumps({"time_s": labels["size"] / 2}))
"""
_PAPER = """
schema = 1
title = "mine"

[[kept]]
name = "times"
file = "times.parquet"
runs = "wanted"
program = "once.py"
at_once = 2
"""
_CRITERIA = """
from anabranch.experiments.claims import table


def wanted():
    for size in (1, 2, 3, 4):
        yield {"name": "good", "size": size, "seed": 1}


@table("times", "Times", texts=1)
def times(study):
    return ("size", "time, s"), [[str(row["size"]), f"{row['time_s']:g}"] for row in study.sessions(["times"])]
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    folder.mkdir()
    for name, text in (("paper.toml", _PAPER), ("criteria.py", _CRITERIA), ("once.py", _PROGRAM), ("text.md", "#")):
        (folder / name).write_text(text, "utf-8")
    return folder


def test_a_program_makes_what_the_table_lacks_and_keeps_it_in_order(mine: Path) -> None:
    (kept,) = paper.load(mine).kept
    with pytest.raises(ToolError, match=r"1 of 4 runs failed, the last with: error: the links were late \(with"):
        outside.make(kept, 8)
    rows = kept_runs.read(kept.file)
    assert [(row["size"], row["time_s"], row["error"]) for row in rows] == [
        (1, 0.5, None),
        (2, 1.0, None),
        (4, 2.0, None),
    ]
    assert {row[kept_runs.KERNEL] for row in rows} == {platform.release()}
    # What was kept is not made again, so that only the run that failed is.
    (mine / "once.py").write_text(_PROGRAM.replace("== 3", "!= 3"), "utf-8")
    assert outside.make(kept, 8) == 1
    assert [row["size"] for row in kept_runs.read(kept.file)] == [1, 2, 3, 4]
    assert outside.make(kept, 8) == 0


_SLOW_PROGRAM = """
import json, pathlib, signal, sys, time

signal.signal(signal.SIGINT, signal.default_int_handler)
size = json.loads(sys.argv[1])["size"]
if size > 1:
    try:
        pathlib.Path(__file__).with_name(f"begun-{size}").touch()
        time.sleep(60)
    except KeyboardInterrupt:
        pathlib.Path(__file__).with_name(f"removed-{size}").touch()
        raise
print(json.dumps({"time_s": 1}))
"""


def test_after_an_interrupt_no_program_begins_and_those_that_run_clean_up(mine: Path) -> None:
    (kept,) = paper.load(mine).kept
    (mine / "once.py").write_text(_SLOW_PROGRAM, "utf-8")

    def interrupt() -> None:
        while not ((mine / "begun-2").exists() and (mine / "begun-3").exists() and kept.file.exists()):
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    # A shell that starts the tests in the background has the signal ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Thread(target=interrupt, daemon=True).start()
        with pytest.raises(KeyboardInterrupt):
            outside.make(kept, 2)
    finally:
        signal.signal(signal.SIGINT, before)
    assert sorted(file.name for file in mine.glob("*-[0-9]")) == ["begun-2", "begun-3", "removed-2", "removed-3"]
    assert [row["size"] for row in kept_runs.read(kept.file)] == [1], "what was finished is kept"


def test_another_kernels_table_is_refused_before_a_run_is_made(mine: Path) -> None:
    (kept,) = paper.load(mine).kept
    frame([{"name": "good", "size": 9, "seed": 1, kept_runs.KERNEL: "another"}]).write_parquet(kept.file)
    (mine / "once.py").write_text("raise SystemExit('it ran')", "utf-8")
    with pytest.raises(InputError, match="these runs were made with Linux another"):
        outside.make(kept, 1)


def test_a_program_that_prints_something_else_is_named(mine: Path) -> None:
    (kept,) = paper.load(mine).kept
    with pytest.raises(InputError, match=r"once\.py: it printed no JSON object"):
        outside.make(replace(kept, runs=lambda: [{"name": "bad", "size": 1, "seed": 1}]), 1)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('runs = "wanted"\n', "", r"paper\.toml:\d+: `runs` and `program` belong together"),
        ('"wanted"', '"wantd"', r"criteria\.py has no function `wantd`, did you mean `wanted`|`wantd`"),
        ('"once.py"', '"twice.py"', r"paper\.toml:9: there is no file .*twice\.py"),
        ("at_once = 2", "at_once = 0", r"paper\.toml:10: expected at least one run at a time"),
    ],
)
def test_mistakes_have_their_place(mine: Path, old: str, new: str, message: str) -> None:
    file = mine / "paper.toml"
    file.write_text(file.read_text("utf-8").replace(old, new), "utf-8")
    with pytest.raises(InputError, match=message):
        paper.load(mine)


@pytest.mark.parametrize("name", ["explain", "kernel-controls", "kernel-servers"])
def test_the_page_is_what_the_paper_makes_of_the_kept_runs(tmp_path: Path, name: str) -> None:
    read = paper.load(name)
    with Store(tmp_path, provenance.build()) as store:
        (found,) = reproduce([read], store, seeds=None, sensitivity=False, execute=Threads(1), progress=Counted())
    assert paper_text.text(found) == (PAGES / read.page).read_text("utf-8")


def test_kept_runs_of_a_goal_replace_its_recorded_result_once_there_are_as_many() -> None:
    criteria = module_of_paper("kernel-controls", "criteria")
    goal = criteria.GOALS[1]
    recorded = {"goal": goal.name, "control": "lia", "mean": 0.96, "half_width": 0.04, "runs": 2}
    # Of 1500 bytes on the wire the connection carries 1428 and the TCP 1448: it gets half of what the TCP gets.
    rates = {"goodput_bps": 1428e3, "traffic.0.goodput_bps": 2 * 1448e3}
    runs = [{"goal": goal.name, "control": "lia", "seed": seed, **rates} for seed in (1, 2)]
    for rows, mean in (([], 0.96), (runs[:1], 0.96), (runs, 0.5)):
        found = goal.measured(Study({"goals": rows, "goals-recorded": [recorded]}), "lia")
        assert (found.estimate, found.count) == (pytest.approx(mean), 2)


def test_a_program_tries_again_what_was_invalid(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["program", '{"seed": 7}'])
    late = [True, True, False]

    def attempt(labels: Mapping[str, Any]) -> dict[str, Any]:
        if late.pop(0):
            raise outside.LateError("the links were late")
        return {"time_s": labels["seed"]}

    outside.answer(attempt)
    row = json.loads(capsys.readouterr().out)
    assert (row["time_s"], row["invalid"]) == (7, 2)
    late[:] = [True] * outside.TRIES
    with pytest.raises(SystemExit, match="error: no try of 3 counts: the links were late; the links were late"):
        outside.answer(attempt)


def test_a_row_says_how_much_more_simulated_transfers_bring_than_those_of_each_server() -> None:
    criteria = module_of_paper("kernel-servers", "criteria")
    network = next(iter(criteria.NETWORKS))
    overrides = [*criteria.NETWORKS[network], *criteria.emulation({}).items()]
    scenario = reading.load(criteria.PLAN.scenarios[0], overrides)
    (session,) = json.loads(_core.measure(scenario, seed=1, stop=_core.Stop()))["metrics"]["sessions"]
    (goodput,) = criteria.values(network, session)
    assert 5 < goodput < 12
    simulated = [{"network": network, "seed": 1, "session": 0, "bytes": session["bytes"]}]
    runs = [{"network": network, "server": server, "values": [goodput / 2]} for server in criteria.SERVERS]
    (row,) = criteria.rows_of(Study({"simulated": simulated, "runs": runs}), network)
    assert row[2:] == [f"{goodput:.3f}", *[f"{goodput / 2:.3f} (+100.0 %)"] * len(criteria.SERVERS)]


def test_a_server_that_is_missing_or_does_not_listen_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolError, match="nginx is missing; on Debian and Ubuntu: apt install nginx-light"):  # noqa: SIM117
        with servers.nginx("nowhere", tmp_path, tmp_path, control="reno", port=80, writes="pages"):
            pass
    for name, line in (("nginx", ""), ("nsenter", "echo one; echo no such namespace; exit 1")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n", "utf-8")
        (tmp_path / name).chmod(0o755)
    with pytest.raises(ToolError, match=r"^nginx does not listen: no such namespace$"):  # noqa: SIM117
        with servers.nginx("nowhere", tmp_path, tmp_path, control="reno", port=80, writes="pages"):
            pass


def of_programs() -> list[Kept]:
    """The tables of `kernel-controls` whose runs a program makes."""
    return [each for each in paper.load("kernel-controls").kept if each.program]


@pytest.mark.parametrize("kept", of_programs(), ids=lambda kept: kept.name)
def test_every_wanted_run_is_kept_once_and_had_its_control(kept: Kept) -> None:
    assert kept.runs is not None
    wanted = [kept_runs.identity(labels) for labels in kept.runs()]
    rows = kept_runs.read(kept.file)
    have = Counter(kept_runs.identity({name: row[name] for name, _ in wanted[0]}) for row in rows)
    assert have == Counter(wanted)
    if kept.name == "cost":
        return  # Its program checks the controls while it runs.
    clients = module_of_paper("kernel-controls", "clients")
    for row in rows:
        spec = clients.Spec.of(row)
        clients.check(spec, row)
        # Recordings are not distributed.
        if not spec.network.startswith("recorded"):
            assert len(tomllib.loads(spec.scenario(None).resolved)["session"][0]["paths"]) == 2
