"""`anabranch serve`: its messages on wrong input. That it works is shown in test_serve_page.py and in Rust."""

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from anabranch.cli.list import entries
from anabranch.cli.serve import process, supervisor
from conftest import Run

pytestmark = pytest.mark.live

if TYPE_CHECKING:
    from anabranch._core import _Facts

LISTEN = ("--listen", "srv1=10.99.0.1")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--root", ".", "--scheduler", "min-rt", *LISTEN), "--scheduler: nothing is called `min-rt`"),
        (("--root", ".", "--scheduler", "min-rt", *LISTEN), "did you mean `min-rtt`?"),
        (("--root", ".", "--congestion-control", "cubik", *LISTEN), "did you mean `cubic`?"),
        (("--root", ".", "--path-policy", "ful-mesh", *LISTEN), "did you mean `full-mesh`?"),
        (("--root", ".", "--origin", "localhost:80", *LISTEN), "one of --root DIR and --origin HOST:PORT"),
        (LISTEN, "one of --root DIR and --origin HOST:PORT"),
        (("--origin", "localhost", *LISTEN), "is not HOST:PORT"),
        (("--root", ".", "--listen", "srv1"), "expected DEVICE=ADDRESS, such as srv1=10.99.0.1"),
        (("--root", ".", "--listen", "srv1=10.99.0"), "`10.99.0` is no IP address"),
        (("--root", ".", "--listen", "srv1=10.99.0.1,metred"), "srv1=10.99.0.1,metred: nothing is called `metred`"),
        (("--root", ".", "--listen", "srv1=10.99.0.1,metred"), "did you mean `metered`?"),
        (("--root", ".", "--listen", "srv1=10.99.0.1,"), "nothing is called ``; expected one of metered"),
        (("--root", ".", "--listen", "srv1=,metered"), "expected DEVICE=ADDRESS, such as srv1=10.99.0.1"),
        (("--root", ".", *LISTEN, *LISTEN), "path 2 has the device srv1 of an earlier one"),
        (("--root", ".", *LISTEN, "--metrics", "9100"), "`9100` is no ADDRESS:PORT"),
        (("--root", ".", "--response-pacing", "level", *LISTEN), "did you mean `levels`?"),
        (("--root", ".", "--response-pacing", "mine:Own", *LISTEN), "--response-pacing: nothing is called `mine:Own`"),
        (("--origin", "a:1", "--response-pacing", "levels", *LISTEN), "--response-pacing belongs to --root"),
    ],
)
def test_wrong_arguments_end_with_2_and_a_remedy(anabranch: Run, arguments: tuple[str, ...], message: str) -> None:
    done = anabranch("serve", *arguments)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_directory_that_is_not_there_ends_with_1(anabranch: Run, tmp_path: Path) -> None:
    done = anabranch("serve", "--root", str(tmp_path / "nowhere"), *LISTEN)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: cannot serve {tmp_path / 'nowhere'}: ")


def test_a_device_that_cannot_be_opened_ends_with_1_and_the_way_to_get_it(anabranch: Run) -> None:
    # No interface can have so long a name.
    done = anabranch("serve", "--root", ".", "--listen", "a-name-that-is-too-long=10.99.0.1")
    assert done.returncode == 1
    assert "cannot open the TUN device a-name-that-is-too-long" in done.stderr
    assert "ip tuntap add dev" in done.stderr
    if os.geteuid() != 0:
        assert "CAP_NET_ADMIN" in done.stderr


def test_help_names_the_defaults(anabranch: Run) -> None:
    done = anabranch("serve", "--help")
    assert done.returncode == 0
    for word in ("--max-connections", "1024", "--send-timeout", "60", "Example: anabranch serve"):
        assert word in done.stdout


def _facts(uptime: float, sent: tuple[int, int]) -> "_Facts":
    return {
        "uptime": uptime,
        "accepted": 3,
        "refused": 0,
        "unmade": 0,
        "failed": 0,
        "open": 1,
        "half_open": 0,
        "send_queue": 1_250_000,
        "paths": [
            {
                "device": f"srv{number}",
                "gone": False,
                "sent_bytes": sent_bytes,
                "received_bytes": 0,
                "segments": 0,
                "retransmitted_segments": 0,
                "subflows": 1,
                "mtu_reported": 0,
                "mtu_black_holes": 0,
                "mtu": 0,
                "false_acknowledgments": 0,
            }
            for number, sent_bytes in enumerate(sent, 1)
        ],
    }


def test_a_line_names_the_path_with_a_smaller_link_and_how_it_was_found() -> None:
    path = _facts(1.0, (0, 0))["paths"][1]
    path["mtu"] = 1400
    assert process.mtu_line(path, reported=True) == (
        "srv2: some link to a client takes smaller packets than the device (a router reported it); "
        "segments for this client are now made for 1400 bytes"
    )
    assert "(no router reported it)" in process.mtu_line(path, reported=False)


def test_a_line_names_the_path_of_a_client_that_lies() -> None:
    path = _facts(1.0, (0, 0))["paths"][1]
    assert process.false_acknowledgments_line(path) == (
        "srv2: a client acknowledged data that had not been sent to it, and its connection on this path was reset; "
        "anabranch_path_false_acknowledgments_total counts them"
    )


def test_the_line_tells_clients_rates_queue_and_how() -> None:
    before, now = _facts(2.0, (1_000_000, 0)), _facts(4.0, (6_000_000, 250_000))
    line = process.line(before, now, "min-rtt, cubic")
    assert line == "1 client, srv1 20.0 Mb/s, srv2 1.0 Mb/s, 1.2 MB in the send queue (min-rtt, cubic)"
    # Before the server's first report.
    first = process.line({**before, "uptime": 0.0, "paths": []}, now, "x, y")
    assert "srv1 0.0 Mb/s" in first
    gone = {**now, "paths": [{**now["paths"][0], "gone": True}, now["paths"][1]]}
    assert process.line(before, gone, "x, y").startswith("1 client, srv1 gone, srv2 1.0 Mb/s")  # type: ignore[arg-type]
    failed = process.line(before, {**now, "unmade": 1, "failed": 2}, "my:Own, cubic")
    assert failed.endswith("in the send queue, 3 reset because of an own algorithm (my:Own, cubic)")


@pytest.mark.parametrize(
    ("changed", "texts"),
    [
        ({"scheduler": "min-rtt"}, ["srv2", "min-rtt", process.RESTING]),
        ({"scheduler": "min-rtt", "metered": False}, []),
        ({"scheduler": "my:Own"}, []),
        ({}, []),
        ({"response_pacing": "off"}, [process.RESTING, "--response-pacing levels"]),
        ({"root": None}, [process.RESTING, "--origin"]),
    ],
)
def test_a_warning_tells_of_options_that_change_nothing(changed: dict[str, object], texts: list[str]) -> None:
    given = {"scheduler": process.RESTING, "response_pacing": "levels", "root": ".", "metered": True, **changed}
    listen = [("srv1", "10.99.0.1", False), ("srv2", "10.99.0.1", given["metered"])]
    warnings = list(process.idle_options({**given, "listen": listen}))
    assert len(warnings) == bool(texts)
    assert all(text in warnings[0] for text in texts)


def test_the_scheduler_for_metered_paths_is_one() -> None:
    assert process.RESTING in [entry["name"] for entry in entries("schedulers")]


def test_signals_are_handled_as_before_afterwards() -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    stopped: list[int] = []
    with supervisor._signals_to(stopped.append) as waker:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
        assert waker.recv(16) == bytes([signal.SIGINT, signal.SIGTERM])
    assert stopped == [signal.SIGINT, signal.SIGTERM]
    assert {number: signal.getsignal(number) for number in before} == before
