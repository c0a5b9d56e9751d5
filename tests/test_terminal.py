"""What people see in a terminal of 80 columns, and what programs read from a pipe."""

import fcntl
import json
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
from anabranch.cli import kernel
from conftest import SCENARIO, Run

COLUMNS = 80
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")

Screen = Callable[..., list[str]]


@pytest.fixture
def screen(tmp_path: Path) -> Screen:
    """Calls the command line with a terminal of 80 columns as its output; gives the lines without colours."""
    return lambda *arguments: _screen(["-m", "anabranch", *map(str, arguments)], tmp_path)


def _screen(arguments: list[str], folder: Path, columns: int = COLUMNS) -> list[str]:
    """What Python writes to a terminal of that many columns, without colours."""
    mine, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")}
    command = [sys.executable, *arguments]
    with subprocess.Popen(command, cwd=folder, stdout=its, stderr=subprocess.DEVNULL, env=environment) as process:
        os.close(its)
        written = _all_of(mine)
    assert process.returncode == 0
    return [line.rstrip() for line in ESCAPE.sub("", written).splitlines()]


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
    ],
)
def test_a_column_is_headed_by_what_differs(
    anabranch: Run, tmp_path: Path, changes: list[dict[str, object]], head: list[str]
) -> None:
    for name, change in zip("ab", changes, strict=True):
        seed = change.pop("seed", 1)
        assert isinstance(seed, int)
        run(tomllib.loads(SCENARIO), seed=seed, set={"duration": "15 s", **change}).save(tmp_path / name)
    # Several differences have a table of their own before that of the values.
    shown = next(line for line in anabranch("compare", "a", "b").stdout.splitlines() if head[0] in line)
    found = [text for text in re.split(r"\s{2,}", shown.strip()) if text]
    assert [text.split(", ")[0] for text in found] == head


def test_differences_that_are_too_wide_for_the_heads_are_rows(anabranch: Run, tmp_path: Path) -> None:
    for name, change in {"a": {}, "b": {"transport.kernel": "upstream", "transport.scheduler": "linux"}}.items():
        run(tomllib.loads(SCENARIO), set={"duration": "15 s", **change}).save(tmp_path / name)
    lines = anabranch("compare", "a", "b").stdout.splitlines()
    assert lines[0].split() == ["differs", "a", "b"]
    assert lines[lines.index("") + 1].split() == ["scheduler", "min-rtt", "linux"]
    assert "and 4 keys more" in lines


def _report(*rows: tuple[str, ...]) -> str:
    """A report of `anabranch validate` with one part, as JSON."""
    keys = ("cell", "quantity", "simulated", "live", "ratio", "tolerance", "verdict")
    named = [dict(zip(keys, row, strict=True)) for row in rows]
    part = {"letter": "f", "title": "on-off chunks", "rows": named, "usual": None, "verdict": "differs", "notes": []}
    return json.dumps({"parts": [part]})


# What a pipe has instead of a terminal's columns.
PIPE_COLUMNS = 100

ONE_PATH = "250 kB, 10 Mb/s, 50 ms, 0 %, 1 BDP, cubic"
TWO_PATHS = "300 kB, 10 Mb/s, 100 ms, 0.5 %, 1 BDP + 10 Mb/s, 100 ms, 0.5 %, 1 BDP, newreno"
REPORT = _report(
    (ONE_PATH, "goodput, Mb/s", "0.724", "0.721", "+0.4 %, +0.3 to +0.5", "15 %", "equivalent"),
    (ONE_PATH, "retransmissions", "1021.5", "857.7", "+118.1 %, -12.5 to +140.2", "25 % or 20", "inconclusive"),
    (TWO_PATHS, "90th percentile of chunks, s", "0.2912", "0.2944", "-1.1 %, -1.3 to -0.9", "10 %", "equivalent"),
    (TWO_PATHS, "retransmissions", "0.0", "0.7", "difference +0.0, -0.7 to +0.7", "25 % or 20", "differs"),
)
SHOWN = ["-c", f"from anabranch.cli import validate; import json; validate.show(json.loads({REPORT!r}))"]


@pytest.mark.parametrize("columns", [80, 160])
def test_a_comparison_with_the_kernel_reads_well_in_a_terminal(tmp_path: Path, columns: int) -> None:
    lines = _screen(SHOWN, tmp_path, columns)
    assert max(map(len, lines)) <= columns
    assert lines[1].startswith("tolerances: goodput 15 %; retransmissions 25 % or 20; ")
    assert lines.count(ONE_PATH) == 1, "a test case stands above its rows, once"
    numbers = re.compile(r"  \S.* +(\d\S*) +(\d\S*) +[+d-]\S.* to \S+ +(pass|inconclusive|differs)")
    found = [match.groups() for line in lines if (match := numbers.fullmatch(line))]
    assert found == [
        ("0.724", "0.721", "pass"),
        ("1021.5", "857.7", "inconclusive"),
        ("0.2912", "0.2944", "pass"),
        ("0.0", "0.7", "differs"),
    ]
    ends = {
        line.rindex(verdict)
        for line in lines
        for *_, verdict in found
        if line.startswith("  ") and line.endswith(verdict)
    }
    assert len(ends) == 1, "verdicts stand below each other"


def test_a_comparison_with_the_kernel_keeps_to_a_hundred_columns_in_a_pipe(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, *SHOWN], cwd=tmp_path, check=True, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= PIPE_COLUMNS
    assert [lines.count(case) for case in (ONE_PATH, TWO_PATHS)] == [1, 1]
    verdicts = [line.split()[-1] for line in lines if line.startswith("  ") and line.split()[-1] != "verdict"]
    assert verdicts == ["pass", "inconclusive", "pass", "differs"]


LONG = "the-very-long-name-of-the-{}-link-of-the-home-network-of-a-family"
LONG_NAMES = f"""
schema = 1
question = "Does a question of many words, which are the title of a paper, keep to the columns of a pipe?"
duration = "15 s"
[link.{LONG.format("first")}]
rtt = "30 ms"
rate = "5 Mb/s"
[link.{LONG.format("second")}]
rtt = "60 ms"
rate = "3 Mb/s"
loss = "1 %"
[[session]]
video = {{ kind = "dash", ladder = "bbb-2s", duration = "8 s" }}
player = "bola"
"""
LONG_PLAN = f"""
schema = 1
question = "Which scheduler is better where names are long, and does the table keep to the columns that a pipe has?"
scenario = "long.toml"
seeds = 2
[vary]
"transport.scheduler" = ["min-rtt", {{ name = "ecf", avoid_recovery = true }}]
"link.{LONG.format("first")}.loss" = ["0 %", "1 %"]
"link.{LONG.format("second")}.rate" = ["3 Mb/s", {{ synthetic = "lte", mean = "3 Mb/s" }}]
[compare]
metric = "goodput_bps"
better = "higher"
between = "transport.scheduler"
"""


def test_what_is_piped_keeps_to_a_hundred_columns(anabranch: Run, tmp_path: Path) -> None:
    (tmp_path / "long.toml").write_text(LONG_NAMES)
    (tmp_path / "plan.toml").write_text(LONG_PLAN)
    (tmp_path / "trace.csv").write_text(
        "time,a heading of a column with rates in Mb/s\n" + "".join(f"{n},{n % 5}\n" for n in range(60))
    )
    differs = ("--seed", "2", "--set", "transport.scheduler=ecf", "--set", f"link.{LONG.format('first')}.loss=1 %")
    commands: list[tuple[str, ...]] = [
        ("run", "long.toml", "--out", "a"),
        ("run", "long.toml", *differs, "--out", "b"),
        ("compare", "a", "b"),
        ("plan", "show", "plan.toml"),
        ("sweep", "plan.toml", "--store", "store"),
        ("sweep", "plan.toml", "--store", "store", "--by", "transport.scheduler"),
        ("list",),
        ("list", "reducers"),
        ("trace", "info", "trace.csv"),
        ("report", "store"),
    ]
    for command in commands:
        done = anabranch(*command)
        assert done.returncode == 0, done.stderr
        assert [line for line in done.stdout.splitlines() if len(line) > PIPE_COLUMNS] == [], command
        folded = "".join(done.stdout.split())
        if command[0] in ("run", "compare"):
            assert LONG.format("second") in folded, "no name is cut"
        assert "\u2026" not in folded


def test_a_row_of_the_kernels_subflows_is_one_line_where_programs_read_it(capfd: pytest.CaptureFixture[str]) -> None:
    long = "[2001:db8:1234:5678:9abc:def0:1234:5678]"
    subflow = {
        "connection": 1,
        "number": 0,
        "local": f"{long}:443",
        "remote": f"{long}:54321",
        "window_packets": 10.0,
        "rtt_s": 0.05,
        "in_flight": 3,
        "losses": 0,
        "timeouts": 0,
    }
    attachment = {
        "control": "lia",
        "cgroup": None,
        "port": 443,
        "subflows": [subflow, {**subflow, "number": 1}],
        "claimed": 2,
        "degraded": 0,
    }
    kernel._print({"attachments": [attachment], "draining_subflows": [0]})  # type: ignore[list-item]
    lines = capfd.readouterr().out.splitlines()
    assert len(lines) == 4, lines
    assert all(f"{long}:443 " in line and f"{long}:54321 " in line for line in lines[2:])
