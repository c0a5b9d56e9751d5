"""What a capture at the sender says: sessions of any capture, and where their time went."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import anabranch
from anabranch.errors import InputError
from anabranch.results import capturefile, connections, evidence
from anabranch.runs.captured import explain_capture
from conftest import Run

TWO = {
    "schema": 1,
    "duration": "20 s",
    "transport": {"receive_buffer": "4 MB", "send_buffer": "4 MB"},
    "link": {
        "wifi": {"rate": "8 Mb/s", "rtt": "30 ms", "queue": "80 kB"},
        "lte": {"rate": "4 Mb/s", "rtt": "60 ms", "queue": "80 kB"},
    },
    "path": {"wifi": {"links": ["wifi"]}, "lte": {"links": ["lte"]}},
    "session": [{"paths": ["wifi", "lte"], "video": {"kind": "bulk", "size": "6 MB"}}],
}


BURSTS = {"kind": "gilbert-elliott", "good_to_bad": "0.8 %", "bad_to_good": "25 %"}
JITTER = {"kind": "gamma", "mean": "14 ms", "shape": 1.0, "reorders": True}


def captured(folder: Path, **keys: Any) -> Path:
    """The server's capture of a download over two paths."""
    anabranch.run(TWO, set=keys, captures=folder)
    return folder / "server.pcapng"


@pytest.mark.parametrize(
    ("keys", "cause", "path"),
    [
        ({"link.wifi.loss": "3 %"}, "loss-random", "10.0.1.1"),
        ({"link.lte.loss": "4 %"}, "loss-random", "10.0.2.1"),
        # The bursts are short that tell the rate of such paths.
        ({"link.wifi.queue": "4500 B", "link.lte.queue": "4500 B"}, "loss-queue", None),
        ({"link.wifi.loss": BURSTS}, "loss-random", "10.0.1.1"),
        ({"link.wifi.down.jitter": JITTER}, "reordering", "10.0.1.1"),
        ({"transport.receive_buffer": "20 kB"}, "receive-window", None),
        ({"transport.send_buffer": "20 kB"}, "send-buffer", None),
        ({"path.lte.backup": True}, "backup", "10.0.2.1"),
        ({"event": [{"at": "1 s", "link": "wifi", "down": True}]}, "link-down", "10.0.1.1"),
        ({"event": [{"at": "2 s", "link": "wifi", "rate": "1 Mb/s"}]}, "slower-or-shared", "10.0.1.1"),
        ({"traffic": [{"path": "wifi", "count": 3, "start": "2 s"}]}, "slower-or-shared", "10.0.1.1"),
        ({"transport.scheduler": "redundant"}, "copies", None),
    ],
)
def test_the_first_cause_is_what_was_planted(
    tmp_path: Path, keys: dict[str, Any], cause: str, path: str | None
) -> None:
    found = explain_capture(captured(tmp_path, **keys))
    assert found.first_cause == cause
    assert path is None or found.first_path == path


def test_last_bytes_belong_to_the_path_that_has_them(tmp_path: Path) -> None:
    keys = {
        "transport.scheduler": "min-rtt",
        "link.lte.rate": "0.4 Mb/s",
        "link.lte.rtt": "300 ms",
        "session.0.video.size": "700 kB",
        "session.0.player": {"kind": "on-off", "duration": "15 s", "interval": "1 s"},
    }
    found = explain_capture(captured(tmp_path, **keys))
    assert (found.first_cause, found.first_path) == ("last-bytes", "10.0.2.1")
    # The faster path is the one that is idle.
    largest = found.parts[0]
    assert (largest.path, largest.by) == ("10.0.1.1", "10.0.2.1")
    # Where a loss delays them, they belong to the loss.
    lossy = explain_capture(captured(tmp_path, **keys, **{"link.lte.loss": "10 %"}))
    waits = {(part.path, part.cause, part.by) for part in lossy.parts}
    assert ("10.0.1.1", "loss-random", "10.0.2.1") in waits


DASH = {"kind": "dash", "rates": ["1 Mb/s", "3 Mb/s", "6 Mb/s"], "segment_duration": "4 s", "duration": "60 s"}
WIDE = {
    "link.wifi.rate": "15 Mb/s",
    "link.wifi.rtt": "20 ms",
    "link.wifi.queue": "250 kB",
    "link.lte.rate": "7 Mb/s",
    "link.lte.rtt": "78 ms",
    "link.lte.queue": "250 kB",
}


@pytest.mark.parametrize(
    "keys",
    [
        # The end of a response is sent while another path has yet to send what is before it.
        {"transport.scheduler": "gr-sty", "session.0.video": DASH, "session.0.player": {"kind": "rate"}},
        # What was sent reaches the end of the receive window, with data in it that another path has yet to send.
        {"transport.scheduler": "tr-sty", "session.0.video.size": "40 MB", **WIDE},
    ],
)
def test_data_that_a_busy_path_has_yet_to_send_is_the_schedulers(tmp_path: Path, keys: dict[str, Any]) -> None:
    upstream = {"duration": "90 s", "transport.kernel": "upstream", "transport.congestion_control": "newreno", **keys}
    truth, found = anabranch.explain(TWO, set=upstream), explain_capture(captured(tmp_path, **upstream))
    assert (truth.first_cause, found.first_cause) == ("scheduler", "scheduler-or-policy")
    assert found.causes["scheduler-or-policy"] == pytest.approx(truth.causes["scheduler"], abs=0.02)


def test_without_a_fault_the_paths_carry_new_data_and_every_share_is_counted(tmp_path: Path) -> None:
    found = explain_capture(captured(tmp_path))
    assert found.useful_share > 0.9
    assert found.useful_share + sum(found.causes.values()) == pytest.approx(1.0)
    # 12 Mb/s less headers.
    assert found.possible_bits / found.due_s == pytest.approx(11.6e6, rel=0.04)
    assert (found.session, found.sessions, found.lacks) == (0, 1, ())


def test_what_a_connection_left_that_was_given_up_is_not_on_its_way_for_ever(tmp_path: Path) -> None:
    # BOLA abandons media segments, and with each its connection.
    rates = [f"{rate} Mb/s" for rate in (0.6, 1.2, 2.4, 4.3, 6.1, 7.9, 9.7)]
    video = {"kind": "dash", "rates": rates, "segment_duration": "4 s", "duration": "80 s"}
    keys = {
        "duration": "100 s",
        "transport.congestion_control": "cubic",
        "session.0.video": video,
        "session.0.player": {"kind": "bola"},
        "link.wifi.loss": "2 %",
        "link.lte.loss": "2 %",
    }
    server = captured(tmp_path, **keys)
    found = connections.read(server)
    (session,) = found.sessions
    assert session.connections > 1
    paths = evidence.of_paths(found.packets, session)
    assert any(np.isinf(path.known_s).any() for path in paths)
    assert all(path.in_flight(np.array([200.0])) == 0.0 for path in paths)
    assert explain_capture(server).first_cause == "loss-random"


# --- Players --------------------------------------------------------------------------------------------------------

STALLING = {
    **TWO,
    "duration": "60 s",
    "session": [
        {
            "paths": ["wifi", "lte"],
            "video": {"kind": "dash", "rates": ["2 Mb/s", "5 Mb/s"], "segment_duration": "2 s", "duration": "50 s"},
            "player": {"kind": "dash.js-5", "buffer": "12 s"},
        }
    ],
    "event": [
        {"at": "20 s", "link": "wifi", "down": True},
        {"at": "20 s", "link": "lte", "rate": "300 kb/s"},
        {"at": "40 s", "link": "wifi", "down": False},
        {"at": "40 s", "link": "lte", "rate": "4 Mb/s"},
    ],
}
LATER_S = 1_795_772_082.5
"""The clock of the player in the tests is ahead of the capture's by so much."""


def stalled(folder: Path) -> tuple[Path, Path, list[tuple[float, float]]]:
    """The capture of a session that stalls, the log of its player, and its stalls."""
    run = anabranch.run(STALLING, captures=folder)
    session = run.recording.sessions[0]
    stalls = [(begin, end) for begin, end in session.stalls_s.tolist()]
    events = [
        *[("fragmentLoadingStarted", at, {}) for at in run.media_segments["requested_s"].to_list()],
        *[("playbackWaiting", begin, {}) for begin, _ in stalls],
        *[
            ("playbackPlaying", end, {})
            for end in (run.metrics["sessions"][0]["startup_s"], *(end for _, end in stalls))
        ],
        *[
            # JavaScript writes null where it is not a number.
            ("bufferLevelUpdated", time, {"mediaType": "video", "bufferLevel": None if math.isnan(level) else level})
            for time, level in zip(session.times_s.tolist(), session.buffer_s.tolist(), strict=True)
        ],
    ]
    log = folder / "events.json"
    log.write_text(json.dumps([{"type": kind, "time": (at + LATER_S) * 1000, **more} for kind, at, more in events]))
    return folder / "server.pcapng", log, stalls


def test_a_stall_is_explained_with_the_log_of_the_player(tmp_path: Path) -> None:
    server, log, stalls = stalled(tmp_path)
    assert stalls
    truth = anabranch.explain(STALLING, stall=1)
    found = explain_capture(server, player=log, stall=1)
    assert found.question == "stall 1"
    # The clocks are compared by the requests, which take half a round trip to the server.
    assert np.array(found.stalls_s) == pytest.approx(np.array(stalls), abs=0.1)
    assert found.begin_s == pytest.approx(truth.begin_s, abs=0.3)
    assert found.end_s == pytest.approx(truth.end_s, abs=0.1)
    # At the server, each response is due for a round trip less.
    assert truth.due_s - 1.0 < found.due_s < truth.due_s
    assert (truth.first_cause, found.first_cause, found.parts[0].path) == ("link-down", "link-down", "10.0.1.1")
    assert found.useful_share + sum(found.causes.values()) == pytest.approx(1.0)
    assert found.lacks == ()
    # The whole session lost less to the outage.
    assert explain_capture(server, player=log).causes["link-down"] < 0.9 * found.causes["link-down"]


def test_without_levels_and_requests_a_log_says_what_it_lacks(tmp_path: Path) -> None:
    server, log, stalls = stalled(tmp_path)
    events = [
        {**event, "time": event["time"] - LATER_S * 1000}
        for event in json.loads(log.read_text())
        if event["type"].startswith("playback")
    ]
    log.write_text(json.dumps(events))
    found = explain_capture(server, player=log, stall=1)
    assert found.end_s == pytest.approx(stalls[0][1])
    # Without levels of the buffer, it begins with the session.
    assert found.begin_s == explain_capture(server).begin_s
    assert "its clock is taken for that of the capture" in found.lacks[0]
    # A stall that never ends lasts as long as the log.
    log.write_text(json.dumps([event for event in events if event["time"] < stalls[0][1] * 1000 - 1]))
    assert np.array(explain_capture(server, player=log).stalls_s) == pytest.approx(np.array([[stalls[0][0]] * 2]))


@pytest.mark.parametrize(
    ("content", "stall", "sentence"),
    [
        ("{", None, "no JSON; expected an array of the events of a player"),
        ("{}", None, "expected an array of the events of a player"),
        ("[1]", None, "event 0: expected an object with `type` and `time`"),
        ('[{"type": "playbackPlaying"}]', None, "`time` of an event `playbackPlaying`: None; expected a number"),
        ('[{"type": "playbackPlaying", "time": 1e999}]', None, "inf; expected a number"),
        ('[{"type": "bufferLevelUpdated", "time": 1, "bufferLevel": "2"}]', None, "`bufferLevel` of an event"),
        ("[]", 1, "there is no stall 1; the player had none"),
        (None, 9, r"there is no stall 9; the player had \d"),
        (None, -1, "there is no stall -1"),
    ],
)
def test_a_wrong_log_is_refused_in_words(tmp_path: Path, content: str | None, stall: int | None, sentence: str) -> None:
    server, log, _ = stalled(tmp_path)
    if content is not None:
        log.write_text(content)
    with pytest.raises(InputError, match=sentence):
        explain_capture(server, player=log, stall=stall)


def test_the_log_of_another_session_is_refused(tmp_path: Path) -> None:
    server, log, _ = stalled(tmp_path)
    events = [{"type": "fragmentLoadingStarted", "time": 3700.0 * number**2} for number in range(20)]
    log.write_text(json.dumps(events))
    with pytest.raises(InputError, match="its requests are not those of the captured session"):
        explain_capture(server, player=log)
    with pytest.raises(InputError, match="a stall is explained from the log of the player; expected one"):
        explain_capture(server, stall=1)


def test_the_command_explains_stalls_and_lists_them(tmp_path: Path, launch: Run) -> None:
    server, log, stalls = stalled(tmp_path)
    # In the directory of both.
    told = launch("explain", "--pcap", server.name, "--player", log.name, "--stall", 1)
    assert told.returncode == 0, told.stderr
    assert told.stdout.splitlines()[0].endswith(", stall 1")
    length = stalls[0][1] - stalls[0][0]
    assert "The player stalled" in told.stdout
    assert f"for {length:.1f} s" in told.stdout
    for wrong, sentence in (
        (("--pcap", server, "--stall", 1), "expected --player FILE"),
        (("sticky/base", "--player", log), "--player: only with --pcap"),
        (("--pcap", server, "--segment", 1), "--segment: not with --pcap"),
    ):
        refused = launch("explain", *wrong)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert sentence in refused.stderr


# --- Files ----------------------------------------------------------------------------------------------------------


def rewritten(file: Path, order: str, magic: int, link: int, header: bytes) -> bytes:
    """The packets of a capture as a pcap, behind a header of a link."""
    frames = capturefile.read(file)
    per_second = 10**9 if magic == 0xA1B23C4D else 10**6
    whole = struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 65535, link)
    for time, begin, end in zip(frames.time_s.tolist(), frames.ip.tolist(), frames.end.tolist(), strict=True):
        seconds, part = divmod(round(time * per_second), per_second)
        packet = header + frames.content[begin:end].tobytes()
        whole += struct.pack(f"{order}IIII", seconds, part, len(packet), len(packet)) + packet
    return whole


@pytest.mark.parametrize(
    ("order", "magic", "link", "header"),
    [
        ("<", 0xA1B2C3D4, 101, b""),
        (">", 0xA1B2C3D4, 1, bytes(12) + b"\x08\x00"),
        ("<", 0xA1B23C4D, 1, bytes(12) + b"\x81\x00\x00\x05\x08\x00"),
        ("<", 0xA1B23C4D, 113, bytes(16)),
        (">", 0xA1B23C4D, 276, bytes(20)),
    ],
)
def test_other_formats_say_the_same(tmp_path: Path, order: str, magic: int, link: int, header: bytes) -> None:
    server = captured(tmp_path, **{"link.wifi.loss": "3 %"})
    other = tmp_path / "other.pcap"
    other.write_bytes(rewritten(server, order, magic, link, header))
    ours, theirs = explain_capture(server), explain_capture(other)
    assert theirs.useful_share == pytest.approx(ours.useful_share, abs=0.01)
    assert list(theirs.causes)[:2] == list(ours.causes)[:2]


def section(order: str, packets: list[tuple[float, bytes]]) -> bytes:
    """A section of a pcapng with one interface, of raw IP, whose times are nanoseconds."""

    def block(kind: int, content: bytes) -> bytes:
        size = struct.pack(f"{order}I", 12 + len(content))
        return struct.pack(f"{order}I", kind) + size + content + size

    whole = block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1))
    whole += block(1, struct.pack(f"{order}HHIHHB3xHH", 101, 0, 0, 9, 1, 9, 0, 0))
    for time, packet in packets:
        high, low = divmod(round(time * 10**9), 1 << 32)
        numbers = struct.pack(f"{order}IIIII", 0, high, low, len(packet), len(packet))
        whole += block(6, numbers + packet.ljust(-(-len(packet) // 4) * 4, b"\0"))
    return whole


def test_each_section_of_a_capture_has_its_own_byte_order_and_interfaces(tmp_path: Path) -> None:
    server = captured(tmp_path, **{"link.wifi.loss": "3 %"})
    frames = capturefile.read(server)
    ends = zip(frames.time_s.tolist(), frames.ip.tolist(), frames.end.tolist(), strict=True)
    packets = [(time, frames.content[begin:end].tobytes()) for time, begin, end in ends]
    half, both = len(packets) // 2, tmp_path / "both.pcapng"
    both.write_bytes(section("<", packets[:half]) + section(">", packets[half:]))
    again = capturefile.read(both)
    assert again.interface.tolist() == [0] * half + [1] * (len(packets) - half)
    assert again.time_s == pytest.approx(frames.time_s, abs=1e-9)
    assert explain_capture(both).causes == pytest.approx(explain_capture(server).causes)


def test_a_capture_that_begins_late_says_what_it_lacks(tmp_path: Path) -> None:
    server = captured(tmp_path, **{"link.wifi.loss": "3 %"})
    whole = rewritten(server, "<", 0xA1B23C4D, 101, b"")
    # The first record that is two seconds after the beginning.
    at = 24
    while struct.unpack_from("<I", whole, at)[0] < 2:
        at += 16 + struct.unpack_from("<I", whole, at + 8)[0]
    late = tmp_path / "late.pcap"
    late.write_bytes(whole[:24] + whole[at:])
    found = explain_capture(late)
    # Both subflows are found by their data acknowledgments.
    assert {part.path for part in found.parts} == {"10.0.1.1", "10.0.2.1"}
    assert found.first_cause == "loss-random"
    assert "begins after the handshake of 2 of 2 subflows" in found.lacks[0]
    assert "No request was captured" in found.lacks[1]
    # A program that is ended leaves a record that is cut off.
    late.write_bytes(whole[:-30])
    assert explain_capture(late).first_cause == "loss-random"


def test_connections_of_tcp_that_follow_each_other_are_one_session(tmp_path: Path) -> None:
    keys = {"session.0.paths": ["wifi"], "transport.protocol": "tcp", "link.wifi.loss": "2 %"}
    whole, alone = b"", []
    for number in range(2):
        anabranch.run(TWO, seed=3 + number, set=keys, captures=tmp_path)
        server = tmp_path / "server.pcapng"
        alone.append(explain_capture(server))
        frames = capturefile.read(server)
        for time, begin, end in zip(frames.time_s.tolist(), frames.ip.tolist(), frames.end.tolist(), strict=True):
            packet = bytearray(frames.content[begin:end].tobytes())
            # Each from a port of its own, half a minute after the one before. Sequence numbers begin elsewhere.
            port = 22 if packet[20:22] == struct.pack(">H", 80) else 20
            packet[port + 1] += number
            seconds, part = divmod(round((time + 30 * number) * 10**9), 10**9)
            whole += struct.pack("<IIII", seconds, part, len(packet), len(packet)) + packet
    twice = tmp_path / "twice.pcap"
    twice.write_bytes(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 101) + whole)
    sessions = connections.read(twice).sessions
    assert [(each.is_multipath, each.connections, len(each.requests_s)) for each in sessions] == [(False, 2, 2)]
    both = explain_capture(twice)
    assert both.due_s == pytest.approx(sum(each.due_s for each in alone), abs=0.1)
    assert both.useful_share == pytest.approx(sum(each.useful_share for each in alone) / 2, abs=0.02)
    assert {each.first_cause for each in (both, *alone)} == {"loss-random"}


def test_subflows_are_joined_by_their_tokens(tmp_path: Path) -> None:
    file = captured(tmp_path, **{"session.0.count": 2, "session.0.video.size": "200 kB"})
    sessions = connections.read(file).sessions
    assert [(each.is_multipath, len(each.streams), each.connections) for each in sessions] == [(True, 2, 1)] * 2
    assert all(stream.has_begun for each in sessions for stream in each.streams)
    assert sessions[0].name == "10.0.0.1:80 to 10.0.1.1:49152"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "an empty file; expected a capture"),
        (b"no capture at all, only words", "no capture; expected the formats pcap or pcapng"),
        (struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101), "no packet of TCP in it"),
        (struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 195) + bytes(16), "its link has the type 195"),
    ],
)
def test_other_files_are_refused_in_words(tmp_path: Path, content: bytes, sentence: str) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    with pytest.raises(InputError, match=sentence):
        explain_capture(file)


def test_the_receivers_capture_and_cut_headers_are_refused(tmp_path: Path) -> None:
    server = captured(tmp_path, **{"session.0.video.size": "300 kB"})
    with pytest.raises(InputError, match="seems to be the receiver's"):
        explain_capture(tmp_path / "client.pcapng")
    with pytest.raises(InputError, match="there is no session 4; expected one of 0 to 0"):
        explain_capture(server, session=4)
    with pytest.raises(InputError, match="there is no session -1; expected one of 0 to 0"):
        explain_capture(server, session=-1)
    frames = capturefile.read(server)
    whole = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 44, 101)
    for begin in frames.ip.tolist():
        whole += struct.pack("<IIII", 0, 0, 44, 1500) + frames.content[begin : begin + 44].tobytes()
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(whole)
    with pytest.raises(InputError, match="headers were not captured whole; expected at least 160 bytes"):
        explain_capture(cut)
