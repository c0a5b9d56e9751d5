"""What this machine can do, and what is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from anabranch import _core
from anabranch.live import abilities
from anabranch.live.run import clients
from conftest import Run


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with no programs but those of the returned folder."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def by_name(answer: Callable[..., Any]) -> dict[str, Any]:
    return {ability["name"]: ability for ability in answer("doctor", "--json")["abilities"]}


@pytest.mark.usefixtures("bare")
def test_what_is_missing_has_a_remedy(answer: Callable[..., Any]) -> None:
    found = by_name(answer)
    assert found["simulate"] == {
        "name": "simulate",
        "purpose": "simulate, sweep, compare, reproduce papers",
        "works": True,
        "missing": [],
    }
    assert found["content"]["missing"] == ["ffmpeg is missing: apt install ffmpeg"]
    assert "`ip` is not installed: apt-get install iproute2" in found["live"]["missing"]
    assert not any(found[name]["works"] for name in clients())
    assert "npm is missing: apt install npm" in found["dash.js"]["missing"]


def test_an_installed_program_is_no_longer_missing(bare: Path, answer: Callable[..., Any]) -> None:
    ffmpeg = bare / "ffmpeg"
    ffmpeg.write_text("#!/bin/sh\n", encoding="utf-8")
    ffmpeg.chmod(0o755)
    found = by_name(answer)
    assert found["content"]["works"]
    assert "ffmpeg is missing: apt install ffmpeg" not in found["vlc"]["missing"]


def test_every_client_is_examined(answer: Callable[..., Any]) -> None:
    assert set(clients()) < set(by_name(answer))


def test_the_checks_of_the_kernel_are_part_of_it(answer: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(_core, "kernel_checks"):
        pytest.skip("needs Linux")
    unmet = {"name": "BTF", "found": "none", "remedy": "boot another kernel"}
    monkeypatch.setattr(_core, "kernel_checks", lambda: [{"name": "kernel", "found": "new", "remedy": None}, unmet])
    monkeypatch.setattr(_core, "kernel_supported", lambda: False)
    assert by_name(answer)["kernel"]["missing"] == [
        "this build has no programs for the kernel: build it where clang is",
        "BTF: none; boot another kernel",
    ]


@pytest.mark.usefixtures("bare")
def test_the_table_has_a_row_for_each_ability(anabranch: Run) -> None:
    lines = anabranch("doctor").stdout.splitlines()
    assert lines[0].startswith(f"anabranch {abilities.machine().anabranch}, Python ")
    rows = [line for line in lines[2:] if not line.startswith(" ")]
    assert [row.split(maxsplit=1)[1] for row in rows] == [ability.purpose for ability in abilities.abilities()]
    assert "no   encode real video (content make)" in rows
    assert "       ffmpeg is missing: apt install ffmpeg" in lines


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_user_without_privilege_and_device_learns_that_serve_will_fail() -> None:
    code = "from anabranch.live import abilities; print(abilities._serve())"
    # Of no group either, and without capabilities.
    command = ["setpriv", "--reuid", "65534", "--clear-groups", "--bounding-set", "-all", "--no-new-privs"]
    done = subprocess.run([*command, sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if "Permission denied" in done.stderr:
        pytest.skip("another user cannot read this checkout")
    assert "serve --setup --user NAME" in done.stdout or "may not open /dev/net/tun" in done.stdout, done
