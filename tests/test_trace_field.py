"""Small trace files as people's own tools write them: read as an independent reader reads them, or refused by name.

The files in ``field/traces`` are ours. What they mean is computed here by Python's ``csv`` and plain arithmetic.
"""

import csv
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from conftest import Run

FIELD = Path(__file__).parent / "field" / "traces"


@dataclass(frozen=True)
class Course:
    """Times in seconds and rates in bit/s, as the rows have them."""

    times_s: list[float]
    rates_bps: list[float]

    @property
    def lengths_s(self) -> list[float]:
        """Each row holds until the next one, the last as long as the one before it."""
        between = [after - before for before, after in zip(self.times_s, self.times_s[1:], strict=False)]
        return [*between, between[-1]]

    @property
    def span_s(self) -> float:
        return sum(self.lengths_s)

    @property
    def mean_bps(self) -> float:
        moved = sum(length * rate for length, rate in zip(self.lengths_s, self.rates_bps, strict=True))
        return moved / self.span_s


def course(
    text: str, time: str, rate: str, *, seconds: float = 1, bps: float = 1e6, delimiter: str = ",", comma: bool = False
) -> Course:
    """A table read by Python's csv."""

    def number(field: str) -> float:
        return float(field.replace(",", ".") if comma else field)

    rows = list(csv.DictReader(io.StringIO(text), delimiter=delimiter))
    return Course([number(row[time]) * seconds for row in rows], [number(row[rate]) * bps for row in rows])


def field(name: str) -> str:
    return (FIELD / name).read_text(encoding="utf-8")


def info(anabranch: Run, file: Path, *options: str) -> tuple[dict[str, Any], str]:
    done = anabranch("trace", "info", str(file), *options, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


READ: list[tuple[str, tuple[str, ...], Callable[[str], Course]]] = [
    ("gbps.csv", (), lambda text: course(text, "t_s", "rate_gbps", bps=1e9)),
    ("MBps.csv", (), lambda text: course(text, "t_s", "throughput_MBps", bps=8e6)),
    ("pandas-index.csv", (), lambda text: course(text, "t_s", "mbps")),
    ("pandas-nan2.csv", ("--rate", "lte_mbps"), lambda text: course(text, "t_s", "lte_mbps")),
    ("decimal-comma.csv", (), lambda text: course(text, "t_s", "mbps", delimiter=";", comma=True)),
    ("time-ms.csv", (), lambda text: course(text, "time_ms", "mbps", seconds=1e-3)),
    ("quoted.csv", (), lambda text: course(text, "time", "mbps")),
    ("gap.csv", (), lambda text: course(text, "t_s", "mbps")),
    (
        "one-rate-per-line.txt",
        ("--interval", "1 s", "--unit", "Mb/s"),
        lambda text: course("t,r\n" + "".join(f"{t},{r}\n" for t, r in enumerate(text.split())), "t", "r"),
    ),
]


@pytest.mark.parametrize(("name", "options", "expected"), READ, ids=[name for name, _, _ in READ])
def test_a_file_is_read_as_an_independent_reader_reads_it(
    anabranch: Run, tmp_path: Path, name: str, options: tuple[str, ...], expected: Callable[[str], Course]
) -> None:
    course = expected(field(name))
    found, _ = info(anabranch, FIELD / name, *options)
    assert found["duration_s"] == pytest.approx(course.span_s)
    # Means are whole bits per second.
    assert found["mean_bps"] == pytest.approx(course.mean_bps, abs=1)
    shown = [row["rate_bps"] for row in found["understood"]["first_rows"]]
    assert shown == pytest.approx(course.rates_bps[:3])
    # Written as our own table it is the same, so that a wrong reading can be seen.
    table = tmp_path / "own.csv"
    done = anabranch("trace", "convert", str(FIELD / name), str(table), *options)
    assert (done.returncode, done.stdout) == (0, "")
    assert "read as columns, UTF-8, separator" in done.stderr
    own = list(csv.DictReader(io.StringIO(table.read_text(encoding="utf-8"))))
    rates = [float(row["rate_bps"]) for row in own][: len(course.rates_bps)]
    assert rates == pytest.approx(course.rates_bps)
    times = [float(row["time_s"]) for row in own][: len(course.times_s)]
    assert times == pytest.approx([at - course.times_s[0] for at in course.times_s])


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("pandas-nan2.csv", ("--rate", "wifi_mbps"), "FILE:3: column wifi_mbps: empty"),
        ("pandas-nan2.csv", (), "FILE: several columns may hold the rates: wifi_mbps, lte_mbps"),
        ("mahimahi-comment.up", (), 'FILE:1: "# comment" is no time in milliseconds'),
        ("one-rate-per-line.txt", (), "FILE: no time column: give an interval"),
        ("gap.csv", ("--gap", "error"), "FILE:3: a gap of 7200 s follows"),
    ],
)
def test_a_file_is_refused_by_name(anabranch: Run, name: str, options: tuple[str, ...], expected: str) -> None:
    done = anabranch("trace", "info", str(FIELD / name), *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert expected.replace("FILE", str(FIELD / name)) in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("gap.csv", (), "a gap of 7200 s after line 3"),
        ("one-line.up", (), "nothing can be sent before 500 s"),
        ("gbps.csv", ("--unit", "b/s"), "column rate_gbps in b/s: a mean of 1 b/s is implausible"),
        ("time-ms.csv", ("--time-unit", "ns"), "a usual step of 1 us"),
    ],
)
def test_what_is_odd_is_a_warning(anabranch: Run, name: str, options: tuple[str, ...], expected: str) -> None:
    found, stderr = info(anabranch, FIELD / name, *options)
    if "1 us" in expected:  # The shortest plausible step: no warning of it.
        assert not any("usual step of" in each for each in found["understood"]["warnings"])
        return
    assert any(expected in each for each in found["understood"]["warnings"]), found["understood"]["warnings"]
    assert f"warning: {FIELD / name}: " in stderr
    assert expected in " ".join(stderr.split())


# Further kinds: what a tool writes, what is to be given, mean in bit/s and span in seconds by hand.
KINDS: list[tuple[str, bytes, tuple[str, ...], float, float]] = [
    ("R's write.table", b'"t" "mbps"\n"1" 0 20\n"2" 1 22\n', (), 21e6, 2),
    ("R's write.csv", b'"","t","mbps"\n"1",0,20\n"2",1,22\n', (), 21e6, 2),
    ("numpy.savetxt with a header", b"# time_ms rate_kbps\n0.000e+00 1.0e+03\n5.00e+02 3.0e+03\n", (), 2e6, 1),
    ("a German spreadsheet", "\ufeffZeit (s);Datenrate (MBit/s)\r\n0,0;20,5\r\n0,5;21,5\r\n".encode(), (), 21e6, 1),
    ("a spreadsheet's Unicode text", "Time (s)\tRate (kbit/s)\r\n0\t1\r\n1\t2\r\n".encode("utf-16"), (), 1500, 2),
    ("thousands in quotes", b'time,kbps\n0,"1,000"\n1,"3,000.5"\n', (), 2_000_250, 2),
    ("dates with a zone", b"Timestamp,mbps\n2026-03-01T00:59:59+01:00,1\n2026-03-01T00:00:00Z,3\n", (), 2e6, 2),
    ("pandas' dates", b",time,mbps\n0,2026-01-01 00:00:00.000,1\n1,2026-01-01 00:00:00.250,3\n", (), 2e6, 0.5),
    ("nanoseconds since 1970", b"timestamp_ns,Mbps\n1700000000000000001,1\n1700000000100000001,3\n", (), 2e6, 0.2),
    ("milliseconds since 1970", b"timestamp,Mbps\n1700000000000,1\n1700000001000,3\n", (), 2e6, 2),
    ("old Mac line ends", b"t_s,mbps\r0,1\r1,3\r", (), 2e6, 2),
    (
        "a phone's log",
        b"Timestamp,DL_bitrate,UL_bitrate\n0,1000,1\n1,3000,1\n",
        ("--rate", "DL_bitrate", "--unit", "kb/s"),
        2e6,
        2,
    ),
    ("bytes in each interval", b"125000\n375000\n", ("--interval", "1 s", "--unit", "B per interval"), 2e6, 2),
    ("columns by number", b"0,7,1\n1,7,3\n", ("--time", "0", "--rate", "2", "--unit", "Mb/s"), 2e6, 2),
    ("binary prefixes", b"t_s,KiB/s\n0,1\n1,3\n", (), 2 * 8192, 2),
    ("a gap that is zero", b"t_s,mbps\n0,1\n1,1\n2,1\n102,1\n103,1\n", ("--gap", "zero"), 5e6 / 104, 104),
]


@pytest.mark.parametrize(
    ("content", "options", "mean", "span"), [kind[1:] for kind in KINDS], ids=[k[0] for k in KINDS]
)
def test_kinds_of_files_are_read(
    anabranch: Run, tmp_path: Path, content: bytes, options: tuple[str, ...], mean: float, span: float
) -> None:
    file = tmp_path / "trace.csv"
    file.write_bytes(content)
    found, _ = info(anabranch, file, *options)
    assert found["mean_bps"] == pytest.approx(mean, abs=1)
    assert found["duration_s"] == pytest.approx(span)
    own = tmp_path / "own.csv"
    assert anabranch("trace", "convert", str(file), str(own), *options).returncode == 0
    again, _ = info(anabranch, own)
    assert (again["mean_bps"], again["duration_s"]) == (found["mean_bps"], found["duration_s"])


REFUSED: list[tuple[str, bytes, tuple[str, ...], str]] = [
    ("an index and no time", b",mbps\n0,1\n1,3\n", (), "no time column: give an interval"),
    ("a constant index", b"t_s,mbps\n0,1\n0,3\n", (), "all rows have the same time"),
    ("capitals", b"t_s,MBPS\n0,1\n1,3\n", (), "the heading `MBPS` does not, or not for certain"),
    ("no unit", b"t_s,rate\n0,1\n1,3\n", (), "nothing says in which unit"),
    ("durations, not times", b"duration_ms,bandwidth_kbps\n100,1\n100,3\n", (), "no time column"),
    ("another number of fields", b"t_s,mbps\n0,1\n1,2,3\n", (), "trace.csv:3: the line has 3 fields"),
    ("a time that goes back", b"t_s,mbps\n0,1\n2,1\n1,1\n", (), "trace.csv:4: column t_s: the time lies before"),
    ("not a number", b"t_s,mbps\n0,1\n1,NA\n", (), 'trace.csv:3: column mbps: "NA" is no rate in Mb/s'),
    ("not finite", b"t_s,mbps\n0,1\n1,nan\n", (), "trace.csv:3: column mbps: the rate in Mb/s is nan"),
    ("two decimal marks", b"t_s;mbps\n0;1,5\n1;1.5\n", (), "trace.csv:3: column mbps: "),
    ("an unknown column", b"t_s,mbps\n0,1\n1,1\n", ("--rate", "mpbs"), "did you mean `mbps`?"),
    ("a fraction of Mahimahi's", b"1.5\n2.5\n", ("--from", "mahimahi"), 'trace.csv:1: "1.5" is no time'),
    ("an empty line of Mahimahi's", b"\n1\n2\n", ("--from", "mahimahi"), "trace.csv:1: the line is empty"),
]


@pytest.mark.parametrize(
    ("content", "options", "expected"), [kind[1:] for kind in REFUSED], ids=[k[0] for k in REFUSED]
)
def test_kinds_of_files_are_refused(
    anabranch: Run, tmp_path: Path, content: bytes, options: tuple[str, ...], expected: str
) -> None:
    file = tmp_path / "trace.csv"
    file.write_bytes(content)
    done = anabranch("trace", "info", str(file), *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert expected in done.stderr
    assert len(done.stderr.splitlines()) == 1


SCENARIO = """\
schema = 1
duration = "5 s"
[link.wifi]
rtt = "20 ms"
rate = {{ trace = "{file}"{more} }}
[[session]]
video = {{ kind = "bulk" }}
"""


def test_a_run_warns_of_what_is_odd_in_its_traces(anabranch: Run, tmp_path: Path) -> None:
    scenario = tmp_path / "slow.toml"

    def warnings(name: str, more: str = "") -> tuple[list[dict[str, str]], str]:
        scenario.write_text(SCENARIO.format(file=FIELD / name, more=more), encoding="utf-8")
        done = anabranch("run", str(scenario), "--out", str(tmp_path / "out" / name))
        assert done.returncode == 0, done.stderr
        kept = json.loads((tmp_path / "out" / name / "run.json").read_text(encoding="utf-8"))["warnings"]
        return kept, " ".join(done.stderr.split())

    kept, stderr = warnings("one-line.up")
    nothing = [each for each in kept if each["kind"] == "nothing-passes"]
    assert len(nothing) == 1
    assert "lets no packet through in 5 s: the first one passes after 500 s" in nothing[0]["message"]
    assert "lets no packet through in 5 s" in stderr
    kept, stderr = warnings("gap.csv")
    assert [each["kind"] for each in kept] == ["trace"]
    assert "a gap of 7200 s after line 3" in kept[0]["message"]
    assert "a gap of 7200 s after line 3" in stderr
    assert warnings("gap.csv", ', gap = "zero"')[0] == []
    assert warnings("pandas-nan2.csv", ', rate_column = "lte_mbps"')[0] == []
    assert warnings("one-rate-per-line.txt", ', interval = "1 s", unit = "Mb/s"')[0] == []


def test_the_former_key_of_the_column_still_works(anabranch: Run, tmp_path: Path) -> None:
    def resolved(more: str) -> str:
        scenario = tmp_path / "links.toml"
        scenario.write_text(SCENARIO.format(file=FIELD / "pandas-nan2.csv", more=more), encoding="utf-8")
        done = anabranch("run", str(scenario), "--json")
        assert done.returncode == 0, done.stderr
        sessions: str = json.dumps(json.loads(done.stdout)["sessions"])
        return sessions

    assert resolved(", column = 2") == resolved(', rate_column = "lte_mbps"') == resolved(", rate_column = 2")
    scenario = tmp_path / "links.toml"
    both = ", column = 2, rate_column = 2"
    scenario.write_text(SCENARIO.format(file=FIELD / "pandas-nan2.csv", more=both), encoding="utf-8")
    done = anabranch("run", str(scenario))
    assert done.returncode == 2
    assert "both `column` and `rate_column` are given" in done.stderr
