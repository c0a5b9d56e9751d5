"""docs/how-to/kernel.md: its own commands, in a namespace, from nginx to a coupled control and path use."""

import fcntl
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from anabranch import _core
from conftest import require_live
from test_serve_page import Namespace, network

pytestmark = pytest.mark.live

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "kernel.md"
MOST_COMMANDS = 10
# No command takes longer.
TIMEOUT_S = 30.0
# PUD decides after 150 samples, ten a second; handshakes and slow start come first.
DECIDED_WITHIN_S = 60.0
# Long enough for the kernel's retransmission timers, and a rate that either path has.
KILLED_FOR_S = 5.0
SLOW_BYTES_PER_S = 50_000
MARK = "-- the end of the output, with the exit code:"

# What an installed machine has: packages, and systemd. Everything else of the page is run as it is.
STUBS = {
    "apt-get": "for program in nginx mptcpize; do command -v $program; done",
    "mptcpize": '[ "$1" = enable ] || exec /usr/bin/mptcpize "$@"',
    "systemctl": '[ "$1 $2" = "restart nginx" ] && exec /usr/bin/mptcpize run nginx -e stderr -c "$PWD/nginx.conf"',
    "systemd-run": '[ "$1" = --unit ] && unit=$2 && shift 2 && { "$@" > "$unit.log" 2>&1 & echo $! > "$unit.pid"; }',
}
NGINX = """
user root; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ }}
http {{ access_log off; sendfile on;
client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
server {{ listen 80; root {folder}/videos; }} }}
"""


def commands(heading: str) -> list[str]:
    """The commands of the section's block."""
    block = re.search(rf"^## {heading}$.*?^```sh\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert block is not None
    return block[1].splitlines()


class Shell:
    """A shell that stays in a namespace, with a BPF file system of its own."""

    def __init__(self, namespace: Namespace, folder: Path) -> None:
        for name, script in STUBS.items():
            file = folder / "bin" / name
            file.parent.mkdir(exist_ok=True)
            file.write_text(f"#!/bin/bash\n{script}\n", "utf-8")
            file.chmod(0o755)
        path = f"{folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        # Not `ip netns exec`, which would hide the cgroups of this machine.
        command = ["nsenter", f"--net=/run/netns/{namespace.name}", "unshare", "--mount", "bash"]
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, "PATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.run("mount -t bpf bpf /sys/fs/bpf")

    def run(self, command: str) -> str:
        """Runs a command, which must succeed; what it printed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{command}\ncode=$?; echo; echo '{MARK}' $code\n")
        self._process.stdin.flush()
        output = ""
        for line in self._process.stdout:
            if line.startswith(MARK):
                assert line.split()[-1] == "0", f"{command}: {output}"
                return output
            output += line
        raise AssertionError(f"{command}: the shell ended: {output}")

    def close(self) -> None:
        """Ends the shell; what it mounted is gone then."""
        self._process.communicate(timeout=TIMEOUT_S)


@contextmanager
def installed(machine: Namespace, folder: Path) -> Iterator[Shell]:
    """The operator's shell; nothing that it started is left."""
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder), "utf-8")
    shell = Shell(machine, folder)
    try:
        yield shell
    finally:
        for name in ("anabranch-paths.pid", "nginx.pid"):
            if (folder / name).exists():
                shell.run(f"kill $(cat {name})")
        shell.run("anabranch kernel detach")
        shell.close()


@contextmanager
def downloading(client: Namespace, folder: Path, address: str) -> Iterator[subprocess.Popen[str]]:
    """A client of nginx, until the end of the block."""
    fetch = f"exec mptcpize run curl --silent --show-error --fail --output /dev/null http://{address}/film.mp4"
    process = client.start(fetch, folder)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=TIMEOUT_S)


def received(client: Namespace, folder: Path) -> int:
    """Bytes that came in at the client, on both paths."""
    return sum(int(line) for line in client.run("cat /sys/class/net/ct[12]/statistics/rx_bytes", folder).split())


def soon(what: str, shell: Shell, command: str, pattern: str, within_s: float) -> str:
    """Asks until the output matches."""
    until = time.monotonic() + within_s
    while not re.search(pattern, output := shell.run(command)):
        assert time.monotonic() < until, f"{what}: {output}"
        time.sleep(0.2)
    return output


def metrics_of(shell: Shell) -> str:
    """What the page has Prometheus read."""
    (command,) = re.findall(r"^    (anabranch kernel status --metrics .*)$", PAGE.read_text("utf-8"), re.MULTILINE)
    file = Path(command.split()[-1])
    shell.run("mount -t tmpfs none /var/lib")
    shell.run(f"mkdir --parents {file.parent}")
    shell.run(command)
    return shell.run(f"cat {file}")


def test_the_page_needs_few_commands() -> None:
    both = commands("From a new machine to a coupled server") + commands("Path use")
    assert len(both) <= MOST_COMMANDS
    assert all("&&" not in command and ";" not in command for command in both)


@pytest.mark.slow
def test_the_commands_of_the_page(videos: Path) -> None:
    require_live("nginx", "mptcpize", "nsenter", "unshare")
    if not _core.kernel_supported():
        pytest.skip("the package was built without clang")
    with (
        # Names of controls belong to the whole machine: the tests of crates/kernel wait for this file, too.
        Path("/run/anabranch-kernel-tests.lock").open("a") as lock,
        network(True, videos) as (machine, client),
    ):
        fcntl.flock(lock, fcntl.LOCK_EX)
        machine.run("tc qdisc replace dev up1 root tbf rate 8mbit burst 16k latency 60ms", videos)
        machine.run("tc qdisc replace dev up2 root tbf rate 1mbit burst 16k latency 60ms", videos)
        # The film lasts longer than PUD's decision takes.
        with (videos / "videos" / "film.mp4").open("ab") as film:
            film.truncate(200_000_000)
        with installed(machine, videos) as shell:
            for command in commands("From a new machine to a coupled server"):
                shell.run(command)
            with downloading(client, videos, "192.0.2.2"):
                assert re.search(r"^anabranch_kernel_subflows_open\{.*\} \d$", metrics_of(shell), re.MULTILINE)
                both = r"(?s)192\.0\.2\.2:80.*192\.0\.2\.2:80"
                found = soon("two subflows", shell, "anabranch kernel status", both, TIMEOUT_S)
                assert "lia" in found
                assert {"192.0.2.1", "198.51.100.1"} <= set(re.findall(r"(\d+\.\d+\.\d+\.\d+):(?!80\b)", found))
            for command in commands("Path use"):
                shell.run(command)
            # The kernel refuses joins until the path manager of the command listens.
            soon("a path policy", shell, "cat anabranch-paths.log", "pud decides on path use", TIMEOUT_S)
            with downloading(client, videos, "192.0.2.2") as download:
                soon("two subflows", shell, "anabranch kernel status", both, TIMEOUT_S)
                decision = soon("a decision", shell, "cat anabranch-paths.log", "not used", DECIDED_WITHIN_S)
                assert re.search(r"192\.0\.2\.2:80 -> 198\.51\.100\.1:\d+: not used", decision)
                assert not re.search(r"-> 192\.0\.2\.1:\d+: not used", decision)
                # The daemon is killed: the download goes on, and one command removes what was attached.
                shell.run("kill -KILL $(cat anabranch-paths.pid); rm anabranch-paths.pid")
                assert "Detached lia." in shell.run("anabranch kernel detach")
                before = received(client, videos)
                time.sleep(KILLED_FOR_S)
                assert download.poll() is None
                assert received(client, videos) - before > KILLED_FOR_S * SLOW_BYTES_PER_S
            # Its connection was the last one.
            names = "cat /proc/sys/net/ipv4/tcp_available_congestion_control"
            soon("no program", shell, names, r"\A(?!.*anabranch_)", TIMEOUT_S)
