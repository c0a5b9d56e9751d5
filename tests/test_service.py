"""`anabranch serve` as a service: its parent, its configuration file, its messages to systemd, and its unit."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from anabranch.cli.serve.notify import Notifier
from conftest import FILM_LEN, Run, require
from test_serve_page import TIMEOUT_S, Namespace, network

pytestmark = pytest.mark.live

CONFIGURATION = """\
listen = ["srv1=203.0.113.10", "srv2=203.0.113.10"]
uplink = ["srv1=up1,192.0.2.1", "srv2=up2,198.51.100.1"]
user = "root"
root = "videos"
access-log = "log"
pid-file = "pid"
metrics = "127.0.0.1:9100"
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('listen = ["srv1=10.0.0.1"]\nmax-connection = 5\n', "serve.toml:2: unknown key `max-connection`"),
        ('listen = ["srv1=10.0.0.1"]\nmax-connection = 5\n', "did you mean `max-connections`?"),
        ("\nport = 70000\n", "serve.toml:2: `port` is 70000; expected at least 1 and at most 65535"),
        ('port = "80"\n', "serve.toml:1: `port` is a text; expected a whole number"),
        ("grace = true\n", "serve.toml:1: `grace` is true or false; expected a number"),
        ("hidden = 1\n", "serve.toml:1: `hidden` is a number; expected true or false"),
        ('listen = "srv1=10.0.0.1"\n', "serve.toml:1: `listen` is a text; expected a list of texts"),
        ("setup = true\n", "serve.toml:1: unknown key `setup`"),
        ("port = \n", "serve.toml:1"),
    ],
)
def test_a_mistake_in_the_configuration_has_its_line(anabranch: Run, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "serve.toml").write_text(text, "utf-8")
    done = anabranch("serve", "--config", "serve.toml", "--root", ".")
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_what_is_typed_comes_before_the_configuration(anabranch: Run, tmp_path: Path) -> None:
    (tmp_path / "serve.toml").write_text('listen = ["srv1=10.0.0.1"]\nscheduler = "nonsense"\nroot = "."\n', "utf-8")
    done = anabranch("serve", "--config", "serve.toml")
    assert "nothing is called `nonsense`" in done.stderr
    done = anabranch("serve", "--config", "serve.toml", "--scheduler", "other")
    assert "nothing is called `other`" in done.stderr
    done = anabranch("serve", "--config", "nowhere.toml")
    assert done.returncode == 2
    done = anabranch("serve", "--config", "serve.toml", "--reload")
    assert (done.returncode, "--reload needs the --pid-file" in done.stderr) == (2, True)
    done = anabranch("serve", "--reload", "--pid-file", "nowhere")
    assert (done.returncode, "no server has it" in done.stderr) == (2, True)


@contextmanager
def manager(tmp_path: Path) -> Iterator[tuple[Path, Callable[[], list[str]]]]:
    """A socket like systemd's, and what has come to it since the last call."""
    path = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(path))
        listener.setblocking(False)

        def received() -> list[str]:
            messages = []
            while True:
                try:
                    messages.append(listener.recv(4096).decode())
                except BlockingIOError:
                    return messages

        yield path, received


def test_messages_to_the_service_manager(tmp_path: Path) -> None:
    with manager(tmp_path) as (path, received):
        environment = {"NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": "3000000", "WATCHDOG_PID": str(os.getpid())}
        notifier = Notifier.of(environment)
        assert environment == {}
        assert notifier.watchdog_s == 3.0
        notifier.ready("serving")
        notifier.reloading()
        notifier.status("3 clients")
        notifier.alive()
        notifier.stopping()
        ready, reloading, *others = received()
        assert ready == "READY=1\nSTATUS=serving"
        assert re.fullmatch(r"RELOADING=1\nMONOTONIC_USEC=\d+", reloading)
        assert others == ["STATUS=3 clients", "WATCHDOG=1", "STOPPING=1"]
        # The watchdog of another process is not ours.
        other = Notifier.of({"NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "1"})
        assert other.watchdog_s is None
        other.alive()
        assert received() == []
    # Nothing listens, and there is no manager: neither keeps the server from serving.
    notifier.ready("serving")
    Notifier.of({}).ready("serving")


def test_a_name_in_the_abstract_name_space() -> None:
    name = f"anabranch-{os.getpid()}-notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind("\0" + name)
        listener.settimeout(5)
        Notifier.of({"NOTIFY_SOCKET": f"@{name}"}).stopping()
        assert listener.recv(100) == b"STOPPING=1"


def test_systemd_accepts_the_unit(anabranch: Run, tmp_path: Path) -> None:
    (tmp_path / "serve.toml").write_text('listen = ["srv1=10.0.0.1"]\ngrace = 7.5\n', "utf-8")
    done = anabranch("serve", "--install-unit", "--dry-run", "--config", "serve.toml", "--user", "root")
    assert done.returncode == 0, done.stderr
    unit = done.stdout
    assert "Type=notify\n" in unit
    assert "TimeoutStopSec=18\n" in unit
    assert re.search(rf"^ExecStart=/\S+.* serve --config {tmp_path}/serve.toml ", unit, re.MULTILINE)
    refused = anabranch("serve", "--install-unit")
    assert (refused.returncode, "--install-unit needs --config FILE" in refused.stderr) == (2, True)
    require("systemd-analyze")
    (tmp_path / "anabranch.service").write_text(unit, "utf-8")
    command = ["systemd-analyze", "verify", "--man=no", str(tmp_path / "anabranch.service")]
    verified = subprocess.run(command, capture_output=True, text=True, check=False)
    complaints = [line for line in verified.stderr.splitlines() if "anabranch" in line]
    assert complaints == [], verified.stderr


@pytest.fixture
def site(videos: Path) -> Path:
    """A directory with `videos/film.mp4` and `serve.toml`; skips where namespaces cannot be made."""
    (videos / "serve.toml").write_text(CONFIGURATION, "utf-8")
    return videos


class Service:
    """A server with `serve.toml`, as systemd starts it."""

    def __init__(self, machine: Namespace, directory: Path, environment: str = "") -> None:
        machine.run("anabranch serve --config serve.toml --setup", directory)
        script = f"{environment} exec anabranch serve --config serve.toml"
        self.process = machine.start(script, directory, start_new_session=True)
        self.pid = self.process.pid
        self.output = b""
        assert self.process.stderr is not None
        os.set_blocking(self.process.stderr.fileno(), False)

    def wait_for(self, text: str, after: int = 0) -> int:
        """Waits until it has printed a line with a text behind the first lines; the number of lines until there."""
        until = time.monotonic() + TIMEOUT_S
        assert self.process.stderr is not None
        while time.monotonic() < until:
            with contextlib.suppress(BlockingIOError):
                self.output += os.read(self.process.stderr.fileno(), 1 << 16)
            for number, line in enumerate(self.output.decode().splitlines()[after:], after + 1):
                if text in line:
                    return number
            time.sleep(0.02)
        raise AssertionError(f"no {text!r} behind line {after} of {self.output.decode()}")

    def child(self) -> int:
        """The process that serves."""
        (child,) = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text("ascii").split()
        return int(child)

    def end(self) -> None:
        """Kills what is left of it."""
        if self.process.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)
            self.process.wait(timeout=TIMEOUT_S)
        assert self.process.stderr is not None
        self.process.stderr.close()


FETCH = 'mptcpize run curl --silent --show-error --max-time 55 {} --output {} "http://$ADDRESS/film.mp4"'


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < until, "it never came"
        time.sleep(0.02)


@pytest.mark.parametrize("victim", ["child", "parent"])
def test_clients_are_reset_within_a_second_when_a_process_is_killed(site: Path, victim: str) -> None:
    with network(True, site) as (machine, client):
        service = Service(machine, site)
        try:
            service.wait_for("serving ")
            client.run("sysctl -q -w net.ipv4.tcp_rmem='4096 65536 131072'", site)
            # Without resets they would wait for curl's limit, which has another exit code.
            downloads = [client.start("exec " + FETCH.format("--limit-rate 300k", name), site) for name in "ab"]
            wait_for(lambda: joins(site, client) == 2)
            # The list of subflows is a tenth of a second old.
            time.sleep(0.3)
            child = service.child()
            began = time.monotonic()
            os.kill(child if victim == "child" else service.pid, signal.SIGKILL)
            for download in downloads:
                _, complaints = download.communicate(timeout=TIMEOUT_S)
                assert download.returncode == 56, complaints
                assert "reset" in complaints.lower(), complaints
            print(f"after the {victim} was killed, clients were reset within {time.monotonic() - began:.2f} s")
            if victim == "child":
                after = service.wait_for("the server was killed by signal 9")
                service.wait_for("serving ", after)
                assert service.child() != child
                client.run(FETCH.format("--fail", "got"), site)
                assert (site / "got").read_bytes() == (site / "videos" / "film.mp4").read_bytes()
            else:
                wait_for(lambda: not Path(f"/proc/{child}").exists())
        finally:
            service.end()


def joins(site: Path, client: Namespace) -> int:
    """The number of joins of the client that the server has accepted."""
    rows = client.run("nstat -asz MPTcpExtMPJoinSynAckRx", site).split()
    return int(rows[rows.index("MPTcpExtMPJoinSynAckRx") + 1])


@pytest.mark.slow
def test_a_reload_keeps_connections_and_changes_what_new_ones_get(site: Path) -> None:
    with network(True, site) as (machine, client):
        service = Service(machine, site)
        try:
            after = service.wait_for("serving ")
            download = client.start("exec " + FETCH.format("--fail --limit-rate 8M", "got"), site)
            wait_for(lambda: (site / "got").exists() and (site / "got").stat().st_size > FILM_LEN // 10)
            child = service.child()
            (site / "other").mkdir()
            shutil.move(site / "log", site / "log.1")
            file = site / "serve.toml"
            other = 'scheduler = "round-robin"\nresponse-pacing = "sammy"\n'
            file.write_text(CONFIGURATION.replace('"videos"', '"other"') + other, "utf-8")
            machine.run("anabranch serve --config serve.toml --reload", site)
            after = service.wait_for("options read again", after)
            # What is under way is completed, new requests get what the new options say.
            missing = client.run(FETCH.format("--write-out '%{http_code}'", "/dev/null"), site)
            assert missing.endswith("404")
            wait_for(lambda: "404" in (site / "log").read_text("utf-8"))
            page = machine.run("curl --silent http://127.0.0.1:9100/metrics", site)
            assert 'scheduler="round-robin"' in page
            assert 'response_pacing="sammy"' in page
            # A mistake changes nothing.
            file.write_text(CONFIGURATION + "prot = 80\n", "utf-8")
            os.kill(service.pid, signal.SIGHUP)
            after = service.wait_for("unknown key `prot`", after)
            _, complaints = download.communicate(timeout=TIMEOUT_S)
            assert download.returncode == 0, complaints
            assert (site / "got").read_bytes() == (site / "videos" / "film.mp4").read_bytes()
            assert service.child() == child
            # Another path needs another process; the devices that stay are never released.
            changed = CONFIGURATION.replace(', "srv2=203.0.113.10"', "").replace(', "srv2=up2,198.51.100.1"', "")
            file.write_text(changed, "utf-8")
            os.kill(service.pid, signal.SIGHUP)
            after = service.wait_for("listen changed", after)
            service.wait_for("serving ", after)
            assert service.child() != child
            client.run(FETCH.format("--fail", "again"), site)
            assert (site / "again").read_bytes() == (site / "videos" / "film.mp4").read_bytes()
            os.kill(service.pid, signal.SIGTERM)
            assert service.process.wait(timeout=TIMEOUT_S) == 0
            assert not (site / "pid").exists()
        finally:
            service.end()


def test_a_deleted_device_ends_its_path_and_nothing_else(site: Path) -> None:
    with network(True, site) as (machine, client):
        service = Service(machine, site)
        try:
            after = service.wait_for("serving ")
            child = service.child()
            download = client.start("exec " + FETCH.format("--fail --limit-rate 4M", "got"), site)
            wait_for(lambda: (site / "got").exists() and (site / "got").stat().st_size > FILM_LEN // 10)
            # Without a second path the connection would end with the first one.
            wait_for(lambda: joins(site, client) == 1)
            machine.run("ip link del srv1", site)
            after = service.wait_for("the device srv1 is gone", after)
            _, complaints = download.communicate(timeout=TIMEOUT_S)
            assert download.returncode == 0, complaints
            assert (site / "got").read_bytes() == (site / "videos" / "film.mp4").read_bytes()
            # A reload does not make it: the operator's own command would find it busy.
            os.kill(service.pid, signal.SIGHUP)
            after = service.wait_for("options read again", after)
            assert "srv1" not in machine.run("ip -brief link", site)
            machine.run("anabranch serve --config serve.toml --setup", site)
            service.wait_for("the device srv1 is back", after)
            client.run(FETCH.format("--fail", "again"), site)
            assert (site / "again").read_bytes() == (site / "videos" / "film.mp4").read_bytes()
            assert service.child() == child
        finally:
            service.end()


# Each of these is in the file when the signal to read it comes, and a part of the message.
_USELESS = [
    ("max-connections = 99999999999999999999\n", "`max-connections` is 99999999999999999999; expected at"),
    ("max-connections = " + "9" * 5000 + "\n", "serve.toml"),
    ("memory = 1e15\n", "`memory` is 1e+15; expected at"),
    ("send-memory = inf\n", "`send-memory` is inf; expected at"),
    ("idle-time = nan\n", "`idle-time` is nan; expected at"),
    ("grace = 1e300\n", "`grace` is 1e+300; expected at"),
    ('metrics = "127.0.0.1"\n', "is no ADDRESS:PORT"),
    ('state = "a\\u0000b"\n', "`state` has a zero character"),
    (f'access-log = "{"x" * 100_000}"\n', "the options take 100"),
    ("[[[\n", "serve.toml:"),
    (None, "is a FIFO; expected a regular file"),
]


def test_no_configuration_ends_a_server_that_reads_it(site: Path) -> None:
    with network(True, site) as (machine, client):
        service = Service(machine, site)
        try:
            after = service.wait_for("serving ")
            child, file = service.child(), site / "serve.toml"
            for text, message in _USELESS:
                file.unlink()
                if text is None:
                    os.mkfifo(file)
                else:
                    kept = [line for line in CONFIGURATION.splitlines() if line.split()[0] != text.split()[0]]
                    file.write_text("\n".join(kept) + "\n" + text, "utf-8")
                os.kill(service.pid, signal.SIGHUP)
                after = service.wait_for("the server goes on as before", after)
                assert message in service.output.decode().splitlines()[after - 1]
            assert service.child() == child
            # Options that only another process can have, and with which none can serve: those of before are used again.
            file.unlink()
            file.write_text(CONFIGURATION.replace("127.0.0.1:9100", "192.0.2.77:9100"), "utf-8")
            os.kill(service.pid, signal.SIGHUP)
            after = service.wait_for("the former options are used again", after)
            service.wait_for("serving ", after)
            client.run(FETCH.format("--fail", "got"), site)
            assert (site / "got").read_bytes() == (site / "videos" / "film.mp4").read_bytes()
            assert "Traceback" not in service.output.decode()
        finally:
            service.end()


@pytest.mark.slow
def test_systemd_gets_its_messages_and_signs_of_life(site: Path) -> None:
    with manager(site) as (path, received), network(True, site) as (machine, _):
        service = Service(machine, site, f"NOTIFY_SOCKET={path} WATCHDOG_USEC=2000000")
        try:
            messages: list[str] = []

            def got(text: str, count: int = 1) -> bool:
                messages.extend(received())
                return sum(text in message for message in messages) >= count

            wait_for(lambda: got("READY=1"))
            wait_for(lambda: got("WATCHDOG=1", 2))
            wait_for(lambda: got("STATUS=0 clients, srv1 0.0 Mb/s"))
            os.kill(service.pid, signal.SIGHUP)
            wait_for(lambda: got("RELOADING=1") and got("READY=1", 2))
            # A child that hangs is killed, and another one is started.
            child = service.child()
            os.kill(child, signal.SIGSTOP)
            service.wait_for("no sign of life for 2 s")
            wait_for(lambda: got("READY=1", 3))
            assert service.child() != child
            os.kill(service.pid, signal.SIGTERM)
            assert service.process.wait(timeout=TIMEOUT_S) == 0
            wait_for(lambda: got("STOPPING=1"))
        finally:
            service.end()
