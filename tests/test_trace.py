import json
from pathlib import Path

import pytest

from anabranch.cli.trace import sparkline
from conftest import Run


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A minute of 12 Mb/s with two seconds of nothing, and of half of it at the end."""
    rates = [0 if t in (10, 11) else 6 if t >= 40 else 12 for t in range(60)]
    path = tmp_path / "lte.csv"
    path.write_text("t_s,mbps\n" + "".join(f"{t},{rate}\n" for t, rate in enumerate(rates)), encoding="utf-8")
    return path


def test_the_information_is_printed_for_people_and_programs(anabranch: Run, table: Path) -> None:
    done = anabranch("trace", "info", str(table))
    assert done.returncode == 0
    lines = dict(line.split("  ", 1) for line in done.stdout.splitlines())
    assert lines["format"].strip() == "columns, UTF-8"
    assert lines["separator"].strip() == "comma, heading in line 1"
    assert lines["times"].strip() == "column 0 (t_s) in s"
    assert lines["rates"].strip() == "column 1 (mbps) in Mb/s"
    assert lines["first rows"].strip().startswith("0 s: 12 Mb/s (from 0 12); 1 s: 12 Mb/s (from 1 12); 2 s")
    assert lines["span"].strip() == "60 s"
    assert lines["step"].strip() == "1 s (median), 60 rows"
    assert lines["gaps"].strip() == "none"
    assert lines["zero"].strip() == "3.33 % of the time"
    assert lines["mean"].strip() == "9.6 Mb/s"
    assert lines["outages"].strip().startswith("3.33 % of the time below 480 kb/s, 1 of them, 2 s on average")
    assert "▁" not in done.stdout, "sparklines are for terminals"
    found = json.loads(anabranch("trace", "info", str(table), "--json").stdout)
    assert (found["schema"], found["mean_bps"], found["longest_outage_s"], found["duration_s"]) == (1, 9.6e6, 2, 60.0)
    assert 0 < found["autocorrelation"]["1"] < 1


def test_a_trace_goes_from_format_to_format(anabranch: Run, table: Path, tmp_path: Path) -> None:
    for name in ("lte.down", "lte.json", "again.csv"):
        assert anabranch("trace", "convert", str(table), str(tmp_path / name), "--offset", "30 s").returncode == 0
    packets = (tmp_path / "lte.down").read_text(encoding="utf-8").split()
    assert (len(packets), packets[-1]) == (9_600_000 * 60 // 12_000, "60000")
    for name in ("lte.down", "lte.json", "again.csv"):
        found = json.loads(anabranch("trace", "info", str(tmp_path / name), "--json").stdout)
        assert abs(found["mean_bps"] / 9.6e6 - 1) < 1e-3
        assert found["outages"] == 1
    printed = anabranch("trace", "convert", str(table), "-", "--format", "json", "--scale", "2", "--duration", "1 s")
    assert json.loads(printed.stdout) == [{"duration_ms": 1000, "bandwidth_kbps": 24000}]


def test_a_trace_is_synthesised(anabranch: Run, tmp_path: Path) -> None:
    arguments = ("--mean", "12 Mb/s", "--duration", "300 s", "--seed", "3")
    target = tmp_path / "made.csv"
    assert anabranch("trace", "synthesize", "lte", str(target), *arguments).returncode == 0
    assert anabranch("trace", "synthesize", "lte", "-", "--format", "columns", *arguments).stdout == target.read_text(
        encoding="utf-8"
    )
    found = json.loads(anabranch("trace", "info", str(target), "--json").stdout)
    assert found["duration_s"] == 300.0
    assert 4e6 < found["mean_bps"] < 30e6


@pytest.mark.parametrize(
    ("content", "arguments", "expected"),
    [
        (b"", ["info", "FILE"], "FILE: no line holds numbers"),
        (b"0,1\n1,x\n", ["info", "FILE", "--unit", "Mb/s"], 'FILE:2: column 1: "x" is no rate in Mb/s'),
        (b"0,1\n1,-1\n", ["info", "FILE", "--unit", "Mb/s"], "FILE:2: column 1: the rate in Mb/s is -1"),
        (b"5\n4\n", ["info", "FILE"], "FILE:2: the time lies before"),
        (b"\x1f\x8b\x08", ["info", "FILE"], "FILE:1: this is no text"),
        (b"5\n6\n", ["info", "FILE", "--from", "jsn"], "did you mean `json`?"),
        (b"5\n6\n", ["convert", "FILE", "out.xyz"], "out.xyz: the name does not say the format"),
        (b"5\n6\n", ["convert", "FILE", "out.csv", "--scale", "0"], "--scale 0: is no usable factor"),
        (b"5\n6\n", ["convert", "FILE", "out.csv", "--offset", "3"], "--offset 3: `3` has no unit"),
        (b"", ["synthesize", "lti", "out.csv", "--mean", "1 Mb/s"], "did you mean `lte`?"),
        (b"", ["info", "none.csv"], "none.csv: No such file"),
    ],
)
def test_mistakes_are_told_in_one_line(
    anabranch: Run, tmp_path: Path, content: bytes, arguments: list[str], expected: str
) -> None:
    file = tmp_path / "trace"
    file.write_bytes(content)
    done = anabranch("trace", *(str(file) if argument == "FILE" else argument for argument in arguments))
    assert (done.returncode, done.stdout) == (2, "")
    assert expected.replace("FILE", str(file)) in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_byte_order_mark_and_carriage_returns_are_accepted(anabranch: Run, tmp_path: Path) -> None:
    file = tmp_path / "windows.csv"
    file.write_bytes(b"\xef\xbb\xbft;mbps\r\n0;1\r\n1;3\r\n")
    assert json.loads(anabranch("trace", "info", str(file), "--json").stdout)["mean_bps"] == 2e6


def test_units_in_brackets_are_printed(anabranch: Run, tmp_path: Path) -> None:
    file = tmp_path / "brackets.tsv"
    file.write_text("Time [s]\tRate [kbps]\n0\t1000\n1\t2000\n", "utf-8")
    printed = anabranch("trace", "info", str(file)).stdout
    assert "(Time [s]) in s" in printed
    assert "(Rate [kbps]) in kb/s" in printed


def test_a_sparkline_shows_the_course() -> None:
    assert sparkline([0, 1, 2, 4, 8]) == "▁▂▃▅█"
    assert sparkline([0, 8, 4, 4], most=2) == "██"
    assert sparkline([0.0]) == "▁"


def test_a_scenario_with_a_broken_trace_is_refused_with_its_line(anabranch: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("t,mbps\n0,1\n1,-3\n", encoding="utf-8")
    scenario = tmp_path / "broken.toml"
    link = '[link.wifi]\nrate = { trace = "bad.csv" }\n[[session]]\n'
    scenario.write_text(f'schema = 1\nduration = "9 s"\n{link}', encoding="utf-8")
    done = anabranch("run", str(scenario))
    assert (done.returncode, done.stdout) == (2, "")
    assert "broken.toml:4:" in done.stderr
    assert (
        "bad.csv:3: column mbps: the rate in Mb/s is -3; expected a finite number that is not negative" in done.stderr
    )
    assert len(done.stderr.splitlines()) == 1
