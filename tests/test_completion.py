"""Shell completion, as a shell asks for it."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from anabranch.cli import completion
from conftest import Run

# What bash does when the tabulator key is pressed: it divides words at `=` and `:`, too.
PRESS_TAB = """\
eval "$SCRIPT"
COMP_LINE="$1"; COMP_POINT=${#1}
mapfile -t COMP_WORDS < <(sed -E 's/([=:])/ \\1 /g' <<< "$1" | tr -s ' ' '\\n')
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_anabranch_completion "$PROGRAM"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("anabranch run sticky/b", ["sticky/base"]),
        ("anabranch run sticky/base --set transport.scheduler=gr", ["gr-sty"]),
        ("anabranch serve --listen srv1=10.0.0.1,me", ["10.0.0.1,metered"]),
    ],
)
def test_bash_completes(line: str, expected: list[str], anabranch: Run, tmp_path: Path) -> None:
    program = tmp_path / "anabranch"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m anabranch "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    script = anabranch("completion", "bash").stdout
    environment = {**os.environ, "SCRIPT": script, "PROGRAM": str(program)}
    command = ["bash", "-c", PRESS_TAB, "bash", line]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.split() == expected, done.stderr


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_a_script(shell: str, anabranch: Run) -> None:
    done = anabranch("completion", shell)
    assert done.returncode == 0
    assert f"complete_{shell}" in done.stdout


def test_an_unknown_shell_is_refused(anabranch: Run) -> None:
    assert anabranch("completion", "tcsh").returncode == 2


def test_names_are_those_of_the_registries() -> None:
    assert ("sticky/base" in dict(completion.scenarios("sticky/"))) is True
    assert dict(completion.overrides("session.0.player=bol")).keys() == {"session.0.player=bola"}
    assert dict(completion.overrides("transport.congestion_control=ol")).keys() == {"transport.congestion_control=olia"}
    assert list(dict(completion.overrides("durat"))) == ["duration="]
    assert list(dict(completion.overrides("transport.sche"))) == ["transport.scheduler="]
    assert completion.overrides("duration=") == []
    assert list(dict(completion.plans("st"))) == ["stickiness"]
    assert list(dict(completion.papers("a"))) == ["all"]
    assert list(dict(completion.kinds("abr"))) == ["abr-rules"]
