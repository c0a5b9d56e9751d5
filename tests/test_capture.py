"""Captures of simulated runs: tshark reads them, and its own analysis agrees with the metrics of the run."""

from __future__ import annotations

import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import anabranch
from conftest import Run, require

# Two paths that differ in delay, one of them lossy, and a scheduler that uses both: retransmissions, data out of order.
LOSSY = {
    "schema": 1,
    "duration": "20 s",
    "transport": {"scheduler": "round-robin", "opportunistic_retransmission": False, "penalisation": False},
    "link": {
        "wifi": {"rtt": "20 ms", "rate": "3 Mb/s", "loss": "1 %"},
        "lte": {"rtt": "90 ms", "rate": "2 Mb/s", "queue": "200 packets"},
    },
    "session": [{"video": {"kind": "bulk", "size": "4 MB"}}],
}

# The flags of Wireshark's expert information: its severity "error".
ERROR = 0x0080_0000
# The direction in a packet's flags (pcapng).
INBOUND, OUTBOUND = 1, 2


# What Wireshark says of a packet, and how it classifies what is not new.
AGAIN = [f"tcp.analysis.{kind}" for kind in ("retransmission", "fast_retransmission", "spurious_retransmission")]
FIELDS = [
    *("frame.time_epoch", "_ws.malformed", "_ws.expert.severity", "frame.cap_len", "frame.len"),
    *("frame.interface_name", "frame.packet_flags_direction", "tcp.stream", "tcp.srcport", "tcp.len"),
    *("mptcp.stream", "mptcp.analysis.subflows", "tcp.options.mptcp.rawdataseqno"),
    *AGAIN,
    "tcp.analysis.out_of_order",
]
SERVER_PORT = "80"

Packets = list[dict[str, str]]


def tshark(file: Path) -> Packets:
    """What tshark says of every packet. It does not verify checksums: there is no payload to compute them from."""
    command = ["tshark", "-n", "-r", str(file), "-T", "fields"]
    for field in FIELDS:
        command += ["-e", field]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    return [dict(zip(FIELDS, line.split("\t"), strict=True)) for line in done.stdout.splitlines()]


def data_of(packets: Packets) -> Packets:
    """The server's packets that have payload."""
    return [each for each in packets if each["tcp.srcport"] == SERVER_PORT and each["tcp.len"] != "0"]


@dataclass(frozen=True)
class Captured:
    """A run, and what tshark sees at its ends."""

    run: anabranch.Run
    ends: dict[str, Packets]


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Captured:
    require("tshark")
    folder = tmp_path_factory.mktemp("captures")
    run = anabranch.run(LOSSY, seed=4, events=True, captures=folder)
    return Captured(run, {end: tshark(folder / f"{end}.pcapng") for end in ("client", "server")})


def subflows(captured: Captured) -> list[Any]:
    return list(captured.run.metrics["sessions"][0]["subflows"])


@pytest.mark.parametrize("end", ["client", "server"])
def test_tshark_finds_no_fault(captured: Captured, end: str) -> None:
    packets = captured.ends[end]
    assert len(packets) > 4000
    assert not [each for each in packets if each["_ws.malformed"]]
    severities = {int(number, 0) for each in packets for number in each["_ws.expert.severity"].split(",") if number}
    assert max(severities) < ERROR
    whole = [each for each in packets if each["frame.cap_len"] == each["frame.len"]]
    assert 0 < len(whole) < len(packets), "acknowledgments are whole, data ends behind its headers"
    assert max(int(each["frame.cap_len"]) for each in packets) <= 80
    assert max(int(each["frame.len"]) for each in packets) == 1500


def test_both_ends_see_the_packets_that_the_links_carried(captured: Captured) -> None:
    links = {(link["name"], str(link["direction"])): link for link in captured.run.metrics["links"]}
    for end, sent, received in (("client", "up", "down"), ("server", "down", "up")):
        fields = ("frame.interface_name", "frame.packet_flags_direction")
        seen = Counter((each[fields[0]], int(each[fields[1]], 0)) for each in captured.ends[end])
        for name in ("wifi", "lte"):
            assert seen[name, OUTBOUND] == links[name, sent]["packets_sent"]
            assert seen[name, INBOUND] == links[name, received]["packets"]


@pytest.mark.parametrize("end", ["client", "server"])
def test_tshark_joins_the_subflows_of_a_connection(captured: Captured, end: str) -> None:
    packets = captured.ends[end]
    # Only from the second packet on there are keys that name the connection.
    assert {each["mptcp.stream"] for each in packets[1:]} == {"0"}, "one connection of Multipath TCP"
    joined = max((each["mptcp.analysis.subflows"].split() for each in packets), key=len)
    assert len(joined) == len(subflows(captured)) == 2
    assert {each["tcp.stream"] for each in packets} == set(joined)


def test_tshark_counts_our_retransmissions_at_the_sender(captured: Captured) -> None:
    """At the sender every data segment that tshark does not take for new is a retransmission: nothing overtakes there.

    Wireshark calls a retransmission that follows soon on other segments out of order: it cannot know where it is.
    """
    data = data_of(captured.ends["server"])
    old = [each for each in data if any(each[field] for field in (*AGAIN, "tcp.analysis.out_of_order"))]
    ours = {each["path"]: each["retransmissions"] for each in subflows(captured)}
    assert ours["wifi"] > 10, "the lossy path retransmits"
    again = Counter(each["frame.interface_name"] for each in old)
    assert {path: again[path] for path in ours} == ours
    sent = Counter(each["frame.interface_name"] for each in data)
    assert sent == {each["path"]: each["segments_sent"] for each in subflows(captured)}


def test_the_data_out_of_order_that_tshark_sees_is_ours(captured: Captured) -> None:
    """Bytes that arrived before earlier ones by the data sequence numbers of the capture, and how long they waited.

    A segment waits from its arrival at the client until all data before it has arrived; of data that arrives twice the
    first arrival counts.
    """
    data = data_of(captured.ends["client"])
    first = int(data[0]["tcp.options.mptcp.rawdataseqno"])
    expected, early, waits = 0, dict[int, tuple[int, float]](), list[tuple[int, float]]()
    for each in data:
        start, now = int(each["tcp.options.mptcp.rawdataseqno"]) - first, float(each["frame.time_epoch"])
        if start >= expected:
            early.setdefault(start, (int(each["tcp.len"]), now))
        while expected in early:
            length, since = early.pop(expected)
            waits.append((length, now - since))
            expected += length
    assert not early, "everything arrived in the end"
    at_client = pl.col("source") == "session 0/client"
    waited = captured.run.events.filter(at_client, pl.col("event") == "delivered", pl.col("waited_s") > 0)
    assert sum(length for length, wait in waits if wait > 0) == waited["bytes"].sum() > 100_000
    mean = sum(length * wait for length, wait in waits) / expected
    ours = captured.run.metrics["sessions"][0]["reorder_delay_s"]["mean"]
    assert mean == pytest.approx(ours, rel=1e-6)


def test_the_command_writes_captures_into_the_run_folder(anabranch: Run, scenario: Path, tmp_path: Path) -> None:
    done = anabranch("run", scenario, "--set", 'duration="3 s"', "--pcap", "--out", "folder")
    assert done.returncode == 0, done.stderr
    for end in ("client", "server"):
        assert (tmp_path / "folder" / f"{end}.pcapng").stat().st_size > 10_000


def test_a_capture_changes_nothing(tmp_path: Path) -> None:
    captured = anabranch.run(LOSSY, seed=4, captures=tmp_path)
    assert captured.metrics == anabranch.run(LOSSY, seed=4).metrics


def test_a_file_in_the_place_of_the_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError, match="file"):
        anabranch.run(LOSSY, captures=tmp_path / "file")
