"""What people see in a terminal of 80 columns, and what programs read from a pipe."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from anabranch import run
from conftest import SCENARIO, Run

COLUMNS = 80
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")

Screen = Callable[..., list[str]]


@pytest.fixture
def screen(tmp_path: Path) -> Screen:
    """Calls the command line with a terminal of 80 columns as its output; gives the lines without colours."""

    def call(*arguments: object) -> list[str]:
        mine, its = pty.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
        command = [sys.executable, "-m", "anabranch", *map(str, arguments)]
        environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")}
        with subprocess.Popen(command, cwd=tmp_path, stdout=its, stderr=subprocess.DEVNULL, env=environment) as process:
            os.close(its)
            written = _all_of(mine)
        assert process.returncode == 0
        return [line.rstrip() for line in ESCAPE.sub("", written).splitlines()]

    return call


def _all_of(descriptor: int) -> str:
    """What is written to the other end of a terminal until it is closed."""
    parts: list[bytes] = []
    with os.fdopen(descriptor, "rb", buffering=0) as terminal:
        while True:
            # Linux ends a terminal whose other end is closed with an error.
            try:
                part = terminal.read(4096)
            except OSError:
                break
            if not part:
                break
            parts.append(part)
    return b"".join(parts).decode()


DASH = {
    "session.0.video": {"kind": "dash", "ladder": "bbb-2s", "duration": "30 s"},
    "session.0.player": "dash.js-5",
}


@pytest.fixture(scope="module")
def six(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Folders of six runs that differ in scheduler and congestion control, of DASH."""
    folder = tmp_path_factory.mktemp("six")
    kept = []
    for control in ("cubic", "lia"):
        for scheduler in ("min-rtt", "gr-sty", "round-robin"):
            changes = {**DASH, "transport": {"scheduler": scheduler, "congestion_control": control}}
            kept.append(run(tomllib.loads(SCENARIO), set=changes).save(folder / f"{control}-{scheduler}"))
    return kept


def test_six_runs_fit_into_eighty_columns(screen: Screen, six: list[Path]) -> None:
    lines = screen("compare", *six, "--out", ".")
    assert max(len(line) for line in lines if "comparison.png" not in line) <= COLUMNS
    (goodput,) = [line for line in lines if line.startswith("goodput")]
    numbers = goodput.removeprefix("goodput, Mb/s").split()
    assert len(numbers) == 6, "a row stays one line"
    assert len({len(number.partition(".")[2]) for number in numbers}) == 1, "with one precision"
    head = "".join(lines[: lines.index(next(line for line in lines if line.startswith("start-up")))])
    for word in ("scheduler=", "round-robin", "congestion_control="):
        assert word in re.sub(r"\s+", " ", head) or word.rstrip("=") in head


def test_rows_of_the_decoder_are_for_players_that_decode(anabranch: Run, six: list[Path], tmp_path: Path) -> None:
    shown = anabranch("compare", *six[:2], "--out", tmp_path).stdout
    assert "discarded pictures" not in shown
    assert "buffer underflows" not in shown
    assert "mean bitrate, Mb/s" in shown
    vlc = run(tomllib.loads(SCENARIO)).save(tmp_path / "vlc")
    mixed = anabranch("compare", six[0], vlc, "--out", tmp_path).stdout
    (row,) = [line for line in mixed.splitlines() if line.startswith("discarded pictures")]
    assert row.split()[2] == "-", "the DASH player decodes nothing"


def test_awk_can_read_the_tables(anabranch: Run, scenario: Path) -> None:
    done = anabranch("run", scenario)
    lines = done.stdout.splitlines()
    (wifi,) = [line.split() for line in lines if line.startswith("wifi ")]
    assert len(wifi) == 8
    assert all(re.fullmatch(r"\d+(\.\d+)?", number) for number in wifi[1:])
    assert done.stdout.isascii()


def test_a_summary_fits_into_eighty_columns(screen: Screen, scenario: Path) -> None:
    lines = screen("run", scenario)
    table = [line for line in lines if line.startswith(("wifi", "lte", "path"))]
    assert len(table) == 3
    assert max(map(len, table)) <= COLUMNS


def test_names_are_listed_without_broken_words(screen: Screen) -> None:
    lines = screen("list")
    assert max(map(len, lines)) <= COLUMNS
    text = " ".join(" ".join(lines).split())
    for name in ("robust-mpc", "gilbert-elliott-time", "dash/ratio-1-5"):
        assert name in text


def test_runs_that_differ_in_nothing_have_their_folders_names(anabranch: Run, tmp_path: Path) -> None:
    for name in ("a", "b"):
        run(tomllib.loads(SCENARIO)).save(tmp_path / name)
    assert anabranch("compare", "a", "b").stdout.splitlines()[0].split() == ["a", "b"]
    for place in ("one", "two"):
        run(tomllib.loads(SCENARIO)).save(tmp_path / place / "same")
    head = anabranch("compare", "one/same", "two/same").stdout.splitlines()[0].split()
    assert head == ["one/same", "two/same"]


@pytest.mark.parametrize(
    ("changes", "head"),
    [
        ([{"seed": 1}, {"seed": 2}], ["seed=1", "seed=2"]),
        (
            [{"link.wifi.rate": "2 Mb/s"}, {"link.wifi.rate": "3 Mb/s"}],
            ["link.wifi.rate=2 Mb/s", "link.wifi.rate=3 Mb/s"],
        ),
        (
            [{"link.wifi.loss": "1 %"}, {"link.wifi.loss": "2 %"}],
            ["link.wifi.down.loss=1 %", "link.wifi.down.loss=2 %"],
        ),
        (
            [{"transport.scheduler": {"name": "min-rtt"}}, {"transport.scheduler": "round-robin"}],
            ["scheduler=min-rtt", "scheduler=round-robin"],
        ),
        (
            [{}, {"transport.kernel": "upstream", "transport.scheduler": "linux"}],
            ["scheduler=min-rtt", "scheduler=linux"],
        ),
    ],
)
def test_a_column_is_headed_by_what_differs(
    anabranch: Run, tmp_path: Path, changes: list[dict[str, object]], head: list[str]
) -> None:
    for name, change in zip("ab", changes, strict=True):
        seed = change.pop("seed", 1)
        assert isinstance(seed, int)
        run(tomllib.loads(SCENARIO), seed=seed, set={"duration": "15 s", **change}).save(tmp_path / name)
    shown = anabranch("compare", "a", "b").stdout.splitlines()[0]
    found = [text for text in re.split(r"\s{2,}", shown.strip()) if text]
    assert [text.split(", ")[0] for text in found] == head
