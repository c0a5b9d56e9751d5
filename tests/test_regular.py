"""Files that others made: what is no regular file, or inflates, is refused by name, without a traceback."""

import json
import os
import re
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from anabranch import InputError
from anabranch.cli.console import visible
from anabranch.experiments import store
from anabranch.experiments.keys import KEY_BYTES
from anabranch.system import provenance, regular
from conftest import SCENARIO, Run


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _directory(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize(("make", "kind"), [(_fifo, "FIFO"), (_device, "device"), (_directory, "folder")])
def test_what_is_no_regular_file_is_refused_by_name(
    anabranch: Run, tmp_path: Path, make: Callable[[Path], None], kind: str
) -> None:
    for name in ("plan.toml", "trace", "kept.parquet"):
        make(tmp_path / name)
    for command in (("sweep", "plan.toml"), ("trace", "info", "trace"), ("report", "kept.parquet")):
        done = anabranch(*command)
        assert done.returncode in (1, 2), done.stderr
        named = {"folder": ("folder", "directory", "store")}.get(kind, (kind,))
        assert any(f"this is a {name}" in done.stderr or f"this {name}" in done.stderr for name in named), done.stderr
        assert "Traceback" not in done.stderr, done.stderr
    with pytest.raises(InputError, match=f"this is a {kind}; expected a regular file"):
        regular.read(tmp_path / "trace")


@pytest.mark.parametrize("make", [_fifo, _device])
def test_what_a_scenario_names_is_regular(anabranch: Run, tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "other.toml")
    make(tmp_path / "named")
    done = anabranch("run", "other.toml")
    assert done.returncode == 2
    assert re.fullmatch(r"error: other\.toml: this is a \w+; expected a regular file\n", done.stderr), done.stderr
    (tmp_path / "scenario.toml").write_text(SCENARIO, "utf-8")
    for key, value in (
        ("link.wifi.rate", '{ trace = "named" }'),
        ("session.0.video", '{ kind = "dash", mpd = "named" }'),
    ):
        done = anabranch("run", "scenario.toml", "--set", f"{key}={value}")
        assert done.returncode == 2
        assert "this is no regular file" in done.stderr, done.stderr
        assert "Traceback" not in done.stderr, done.stderr


def test_sizes_are_known_before_reading(tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(InputError, match="bytes are more than such a file has"):
        regular.read(path)
    assert regular.inflated(zlib.compress(b"x" * 1000), 1000) == b"x" * 1000
    packed = zlib.compress(b"\0" * 1_000_000)
    for wrong in (packed, packed[:-1], b"junk"):
        with pytest.raises(ValueError, match=r"more than 1000 bytes|incomplete|incorrect header"):
            regular.inflated(wrong, 1000)


def test_junk_is_refused_by_name(tmp_path: Path) -> None:
    for text in (
        "{",
        "[" * 100_000,
        '{"a": ' + "9" * 10_000 + "}",
        "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"),
    ):
        (tmp_path / "run.json").write_text(text, "utf-8")
        with pytest.raises(InputError, match=r"run\.json: this is no JSON"):
            regular.read_json(tmp_path / "run.json")
    (tmp_path / "samples.parquet").write_bytes(b"PAR1" + bytes(range(256)) * 40 + b"PAR1")
    with pytest.raises(InputError, match=r"samples\.parquet: this is no table in Parquet"):
        regular.read_parquet(tmp_path / "samples.parquet")


def _record(content: bytes) -> bytes:
    key = b"k" * KEY_BYTES
    return struct.pack(f"<4sII{len(key)}s", b"ANR1", len(content), zlib.crc32(content, zlib.crc32(key)), key) + content


def test_records_of_a_store_that_are_no_runs_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "store.json").write_text(json.dumps({"schema": store.SCHEMA, **provenance.build()}), "utf-8")
    file = tmp_path / "runs" / "a.runs"
    for content in (b"junk", zlib.compress(b"\0" * (1 << 29))):
        file.write_bytes(_record(content))
        with store.Store(tmp_path, provenance.build()) as kept, pytest.raises(InputError, match="is no run: "):
            kept.get(b"k" * KEY_BYTES)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(InputError, match="this is a FIFO"):
        store.Store(tmp_path, provenance.build())


def test_json_on_a_terminal_is_still_json(anabranch: Run, tmp_path: Path) -> None:
    name = "a\u202e\x9b\u2028.toml"
    (tmp_path / name).write_text(SCENARIO, "utf-8")
    done = anabranch("run", name, "--json", "--set", "duration=1 s")
    assert done.returncode == 0, done.stderr
    assert not set("\u202e\x9b\u2028") & set(done.stdout)
    assert json.loads(done.stdout)["scenario"] == name


def test_no_name_controls_a_terminal(anabranch: Run) -> None:
    assert visible("a\tb\nü\x1b[2J\x9b2J\u202etxt\u2028\x7f\r") == "a\tb\nü\\x1b[2J\\x9b2J\\u202etxt\\u2028\\x7f\\r"
    done = anabranch("run", "no\x1b[2J\x9b\u202ewhere")
    assert done.returncode == 2
    assert not set("\x1b\x9b\u202e") & set(done.stderr)
    assert "\\x1b[2J\\x9b\\u202ewhere" in done.stderr, done.stderr
