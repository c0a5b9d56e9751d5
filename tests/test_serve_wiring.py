"""`anabranch serve --setup`, `--check`, `--teardown`, in namespaces; and clients of a server that was killed."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
import typer

from anabranch import InputError
from anabranch.cli.serve import setup
from anabranch.cli.serve.setup import chosen
from anabranch.cli.serve.wiring import paths_of, text_of, wanted
from conftest import FILM_LEN, Run
from test_serve_page import TIMEOUT_S, Namespace, counters, network

pytestmark = pytest.mark.live

PATHS = (
    '--listen srv1="$ADDRESS" --listen srv2="$ADDRESS" --uplink srv1=up1,"$GATEWAY1" --uplink srv2=up2,"$GATEWAY2" '
    "--user root"
)
SETUP = f"anabranch serve {PATHS} --setup\n"


def lines(output: str) -> list[str]:
    return output.partition("A client can try:")[0].splitlines()


def test_a_path_that_was_set_up_carries_data_and_can_be_removed(videos: Path) -> None:
    with network(True, videos) as (machine, client):
        before = machine.run("ip -brief link; ip rule; ip -4 route show table all", videos)
        planned = lines(machine.run(f"{SETUP.strip()} --dry-run", videos))
        assert machine.run("ip -brief link; ip rule; ip -4 route show table all", videos) == before
        missing = machine.run(f"anabranch serve {PATHS} --check 2>&1 || echo exit $?", videos)
        assert "missing  TUN device srv1: ip tuntap add dev srv1 mode tun user root" in missing
        assert "exit 1" in missing
        done = lines(machine.run(SETUP, videos))
        # A setting of a new device may be right already.
        assert set(done) <= set(planned)
        assert any(line.startswith("ip tuntap add dev srv2") for line in done)
        assert lines(machine.run(SETUP, videos)) == ["Everything is there."]
        assert all(line.startswith("ok ") for line in lines(machine.run(f"anabranch serve {PATHS} --check", videos)))
        smaller = f"ip link set up2 mtu 1400; anabranch serve {PATHS} --check; ip link set up2 mtu 1500"
        noted = [line for line in lines(machine.run(smaller, videos)) if not line.startswith("ok ")]
        about = "note     up2 takes packets of 1400 bytes, and srv2 is for 1500"
        assert noted == [f"{about}: --mtu 1400 saves each connection a few lost packets"]
        server = start(machine, videos, "--access-log log --access-log-json")
        try:
            fetch = 'mptcpize run curl --silent --show-error --fail --output got "http://$ADDRESS/film.mp4"\n'
            output = counters(client.run(f"{fetch} nstat -asz MPTcpExtMPJoinSynAckRx", videos))
            assert output["MPTcpExtMPJoinSynAckRx"] == 1
            assert (videos / "got").read_bytes() == (videos / "videos" / "film.mp4").read_bytes()
            # The line is written when everything is acknowledged.
            until = time.monotonic() + TIMEOUT_S
            while not (videos / "log").read_text("utf-8").endswith("\n"):
                assert time.monotonic() < until, "no line"
                time.sleep(0.02)
            line = json.loads((videos / "log").read_text("utf-8"))
            assert (line["request"], line["status"]) == ("GET /film.mp4 HTTP/1.1", 200)
            assert line["complete"]
            assert line["sent_bytes"] == len((videos / "got").read_bytes())
            assert all(path["bytes"] > FILM_LEN // 20 for path in line["paths"])
            assert 0 < line["first_byte_s"] < line["duration_s"] < line["acknowledged_s"]
            assert line["subflows"] == 2
        finally:
            kill(server)
        machine.run(f"anabranch serve {PATHS} --teardown", videos)
        assert lines(machine.run(f"anabranch serve {PATHS} --teardown", videos)) == ["Nothing is there."]
        assert machine.run("ip -brief link; ip rule; ip -4 route show table all", videos) == before


def test_a_device_that_is_busy_for_a_moment_is_waited_for(tmp_path: Path) -> None:
    message = "ioctl(TUNSETIFF): Device or resource busy"
    script = f"echo again >> tries; [ $(wc -l < tries) -ge 3 ] || {{ echo '{message}' >&2; exit 1; }}"
    setup._run(("bash", "-c", f"cd {tmp_path}; {script}"), dry_run=False)
    assert (tmp_path / "tries").read_text("utf-8") == "again\n" * 3
    # Nothing else is tried twice.
    with pytest.raises(typer.Exit):
        setup._run(("bash", "-c", f"cd {tmp_path}; echo again >> others; exit 1"), dry_run=False)
    assert (tmp_path / "others").read_text("utf-8") == "again\n"


def test_what_keeps_clients_out_is_named(videos: Path) -> None:
    with network(True, videos) as (machine, _):
        own = machine.run("anabranch serve --listen srv1=192.0.2.2 --check 2>&1 || true", videos)
        assert "192.0.2.2 is one of this machine's own addresses" in own
        wrong = machine.run("anabranch serve --listen srv1=$ADDRESS --uplink srv1=up9 --setup 2>&1 || true", videos)
        assert "there is no interface up9" in wrong
        assert "nothing was changed" in wrong
        assert "srv1" not in machine.run("ip -brief link", videos)


def start(machine: Namespace, videos: Path, options: str) -> subprocess.Popen[str]:
    """A server that runs."""
    script = f'exec anabranch serve --root videos --listen srv1="$ADDRESS" --listen srv2="$ADDRESS" {options}'
    server = machine.start(script, videos, start_new_session=True)
    assert server.stderr is not None
    banner = server.stderr.readline()
    assert banner.startswith("serving "), banner + server.stderr.read()
    return server


def kill(server: subprocess.Popen[str]) -> None:
    assert server.stderr is not None
    # Parent and child, so that no process is left to reset the clients' connections.
    os.killpg(server.pid, signal.SIGKILL)
    server.wait(timeout=TIMEOUT_S)
    server.stderr.close()


def test_clients_of_a_server_that_was_killed_end_when_it_is_started_again(videos: Path) -> None:
    with network(True, videos) as (machine, client):
        machine.run(SETUP, videos)
        server = start(machine, videos, "--state state")
        try:
            # A client that only reads sends nothing that a reset could answer. It reads what it has before it ends, so
            # that is little.
            client.run("sysctl -q -w net.ipv4.tcp_rmem='4096 65536 131072'", videos)
            fetch = (
                "exec mptcpize run curl --silent --show-error --max-time 55 --limit-rate 300k --output got "
                '"http://$ADDRESS/film.mp4"'
            )
            download = client.start(fetch, videos)
            # The state is written once a second.
            until = time.monotonic() + TIMEOUT_S
            while (videos / "state").read_text("utf-8").count("\n") < 3:
                assert time.monotonic() < until, "both subflows are in the state"
                time.sleep(0.1)
            kill(server)
            assert download.poll() is None
            server = start(machine, videos, "--state state")
            # Without the reset it would wait for its own limit, and behind that curl's, of 55 s.
            _, complaints = download.communicate(timeout=20)
            assert download.returncode == 56, complaints
            assert "reset" in complaints.lower(), complaints
        finally:
            kill(server)


def test_wiring_is_refused_where_it_makes_no_sense(anabranch: Run) -> None:
    listen = ("--listen", "srv1=203.0.113.10")
    for arguments, message in [
        ((*listen, "--setup", "--check"), "--setup and --check exclude each other"),
        ((*listen, "--dry-run", "--root", "."), "--dry-run belongs to --setup or --teardown"),
        ((*listen, "--check", "--uplink", "srv2=eth0"), "no --listen has the device srv2"),
        ((*listen, "--check", "--uplink", "eth0"), "expected DEVICE=INTERFACE[,GATEWAY]"),
        ((*listen, "--check", "--uplink", "srv1=eth0,gate"), "`gate` is no IP address"),
        ((*listen, "--check", "--uplink", "srv1=eth0,fd00::1"), "of different families"),
        ((*listen, "--listen", "srv2=203.0.113.10", "--check"), "several paths need an uplink each"),
        ((*listen, "--check", "--user", "no-user-has-this-name"), "there is no user no-user-has-this-name"),
        (("--listen", "srv1=here", "--check"), "`here` is no IP address"),
    ]:
        done = anabranch("serve", *arguments)
        assert done.returncode == 2, done.stderr
        assert message in done.stderr


def test_each_family_has_its_own_commands() -> None:
    paths = paths_of([("srv1", "2001:db8::10", False)], ["srv1=eth0,fe80::1"])
    commands = [text_of(item.make) for item in wanted(paths, "another", 1400)]
    assert commands == [
        "sysctl -q -w net.ipv6.conf.all.forwarding=1",
        "ip tuntap add dev srv1 mode tun user another",
        "ip link set srv1 up mtu 1400",
        "ip -6 route replace 2001:db8::10/128 dev srv1 table 201",
        "ip -6 rule add iif eth0 to 2001:db8::10/128 lookup 201 pref 201",
        "ip -6 route replace default via fe80::1 dev eth0 table 301",
        "ip -6 rule add iif srv1 lookup 301 pref 301",
    ]


def test_one_work_at_a_time() -> None:
    assert chosen(setup=False, check=False, teardown=False, dry_run=False) is None
    assert chosen(setup=True, check=False, teardown=False, dry_run=True) == "setup"
    with pytest.raises(InputError):
        chosen(setup=False, check=True, teardown=True, dry_run=False)
