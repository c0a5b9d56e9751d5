import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from anabranch.cli import app
from conftest import Run

ROOT = Path(__file__).resolve().parent.parent


def test_every_kind_lists_names_with_a_sentence(answer: Callable[..., Any]) -> None:
    groups = answer("list")
    assert {"schedulers", "congestion-controls", "players", "scenarios"} <= set(groups)
    for kind, entries in groups.items():
        names = [entry["name"] for entry in entries]
        assert names, kind
        assert len(set(names)) == len(names), kind
        assert all(entry["summary"].rstrip()[-1] in ".?" for entry in entries), kind


def test_what_is_a_player_and_what_its_bitrate_rule_is_said(anabranch: Run, answer: Callable[..., Any]) -> None:
    groups = answer("list")
    rules = {entry["name"] for entry in groups["abr-rules"]}
    for kind, other in (("players", "abr-rules"), ("abr-rules", "players")):
        for entry in groups[kind]:
            assert entry["also"] == ([other] if entry["name"] in rules else []), entry
        note = anabranch("list", kind).stdout.splitlines()[1]
        assert re.search("player.* rule .*same name|player of the same name, not the rule", note), note
    assert all(entry["also"] == [] for entry in groups["schedulers"])


def test_the_stable_names_are_there(answer: Callable[..., Any]) -> None:
    stable = {
        "schedulers": "min-rtt linux round-robin redundant blest ecf gr-sty tp-sty tr-sty largest-window highest-rate",
        "congestion-controls": "newreno cubic compound lia olia balia wvegas bbr",
        "players": "vlc vlc-2 bulk",
        "scenarios": "sticky/base sticky/3p-50 sticky/3p-150 handoff/limited handoff/large handoff/cellular "
        "bulk/one-path bulk/two-paths bulk/three-paths fairness/shared-bottleneck",
    }
    for kind, names in stable.items():
        listed = {entry["name"] for entry in answer("list", kind)[kind]}
        assert set(names.split()) <= listed


def test_the_shipped_scenarios_are_the_files_of_the_folder(answer: Callable[..., Any]) -> None:
    folder = ROOT / "scenarios"
    files = {path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.toml")}
    assert {entry["name"] for entry in answer("list", "scenarios")["scenarios"]} == files


def test_each_name_begins_a_line(anabranch: Run, answer: Callable[..., Any]) -> None:
    done = anabranch("list", "schedulers")
    assert done.returncode == 0
    title, *lines = done.stdout.splitlines()
    assert title == "schedulers"
    assert [line.split()[0] for line in lines if line[0] != " "] == [
        e["name"] for e in answer("list", "schedulers")["schedulers"]
    ]
    assert "\x1b" not in done.stdout, "colours are for terminals"


@pytest.mark.parametrize("arguments", [[], ["--json"]])
def test_an_unknown_kind_is_refused_with_the_nearest_one(anabranch: Run, arguments: list[str]) -> None:
    done = anabranch("list", "schedulrs", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "did you mean `schedulers`?" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def _commands(group: Any, *names: str) -> Iterator[tuple[str, ...]]:
    """The names of every command and subcommand."""
    yield names
    for name, command in getattr(group, "commands", {}).items():
        yield from _commands(command, *names, name)


@pytest.mark.parametrize("command", list(_commands(typer.main.get_command(app)))[1:], ids=" ".join)
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_the_help_of_every_command_shows_an_example(anabranch: Run, command: tuple[str, ...], option: str) -> None:
    done = anabranch(*command, option)
    assert done.returncode == 0
    assert f"Example: anabranch {' '.join(command)}" in done.stdout


def test_the_program_s_own_help_names_a_first_step(anabranch: Run) -> None:
    assert "anabranch run sticky/base" in " ".join(anabranch("--help").stdout.split())


def test_the_version_is_the_package_s(launch: Run) -> None:
    version = re.search(r'^version = "(.+)"$', (ROOT / "Cargo.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert version
    assert launch("--version").stdout == f"anabranch {version[1]}\n"


def test_json_is_plain_json(anabranch: Run) -> None:
    done = anabranch("list", "--json")
    assert isinstance(json.loads(done.stdout), dict)
