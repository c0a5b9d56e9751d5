"""The pages on the server, docs/how-to/serve.md and operate.md: their own commands, run in namespaces."""

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

from conftest import FILM_LEN, SERVER_PROGRAMS, require_live

pytestmark = pytest.mark.live

HOW_TO = Path(__file__).parents[1] / "docs" / "how-to"
PAGES = "".join((HOW_TO / name).read_text("utf-8") for name in ("serve.md", "operate.md"))
# No step takes longer.
TIMEOUT_S = 30.0


@pytest.fixture(autouse=True)
def _machine() -> None:
    require_live(*SERVER_PROGRAMS)


def blocks() -> dict[str, str]:
    """The shell commands of the pages, by heading, or by the word behind `sh`."""
    found: dict[str, str] = {}
    heading = ""
    for match in re.finditer(r"^## (.+)$|^ *```sh ?(.*)\n((?:.*\n)*?) *```$", PAGES, re.MULTILINE):
        if match[1]:
            heading = match[1]
        else:
            name = match[2] or heading
            assert name not in found
            found[name] = match[3]
    return found


class Namespace:
    """A network namespace, gone with its owner."""

    def __init__(self, label: str) -> None:
        # The same form of name as in Rust, so that its sweep finds what a killed test left.
        self.name = f"anabranch-{os.getpid()}-page{time.monotonic_ns() % 10**6}-{label}"
        subprocess.run(["ip", "netns", "add", self.name], check=True)

    def start(self, script: str, directory: Path, **more: object) -> subprocess.Popen[str]:
        """Starts bash on the page's settings and a script."""
        environment = {**os.environ, "RUN_AS": "root", "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        command = ["ip", "netns", "exec", self.name, "bash", "-euc", blocks()["Settings"] + script]
        return subprocess.Popen(command, cwd=directory, env=environment, text=True, stderr=subprocess.PIPE, **more)  # type: ignore[call-overload,no-any-return]

    def run(self, script: str, directory: Path) -> str:
        """Runs a script to its end; returns what it printed."""
        process = self.start(script, directory, stdout=subprocess.PIPE)
        output, complaints = process.communicate(timeout=TIMEOUT_S * 2)
        assert process.returncode == 0, complaints
        return output

    def remove(self) -> None:
        subprocess.run(["ip", "netns", "delete", self.name], check=True)


# What the operator's network is like: the client stands where the gateways are.
_CLIENT = """
sysctl -q -w net.mptcp.enabled=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.tcp_no_metrics_save=1
ip link set lo up
for n in 1 2; do
  gateway=GATEWAY$n
  ip addr add "${!gateway}/30" dev ct$n
  ip link set ct$n up
done
"""
_CLIENT_ROUTES = """
ip mptcp limits set subflows 1
for n in 1 2; do
  gateway=GATEWAY$n
  ip route add default via {hop} dev {device} src "${{!gateway}}" table 10$n
  ip rule add from "${{!gateway}}" lookup 10$n pref 10$n
  ip mptcp endpoint add "${{!gateway}}" dev {device} id $n subflow
done
ip route add default via 192.0.2.2 dev ct1
"""


@contextmanager
def network(two_uplinks: bool, directory: Path) -> Iterator[tuple[Namespace, Namespace]]:
    """The operator's machine, with one uplink or two, and a client with two addresses behind them."""
    machine = Namespace("machine")
    try:
        client = Namespace("client")
        try:
            for n in (1, 2):
                far = ["peer", "name", f"ct{n}", "netns", client.name]
                subprocess.run(["ip", "link", "add", f"up{n}", "netns", machine.name, "type", "veth", *far], check=True)
            client.run(_CLIENT, directory)
            machine.run(
                "ip link set lo up; ip link set up1 up; ip addr add 192.0.2.2/30 dev up1;"
                "ip link set up2 up; ip addr add 198.51.100.2/30 dev up2;"
                # The film takes four seconds over one path: on a busy machine a client's kernel was seen to send its
                # join 1.8 s after the first data.
                "for n in 1 2; do tc qdisc add dev up$n root tbf rate 40mbit burst 64k latency 20ms; done",
                directory,
            )
            hop, device = ("192.0.2.2", "ct1")
            if two_uplinks:
                hop, device = ("$([ $n = 1 ] && echo 192.0.2.2 || echo 198.51.100.2)", "ct$n")
            client.run(_CLIENT_ROUTES.format(hop=hop, device=device), directory)
            yield machine, client
        finally:
            client.remove()
    finally:
        machine.remove()


@contextmanager
def serving(machine: Namespace, script: str, directory: Path) -> Iterator[None]:
    """A server while it runs; it must end in order on Ctrl-C."""
    server = machine.start(script.replace("setpriv", "exec setpriv"), directory, start_new_session=True)
    assert server.stderr is not None
    try:
        banner = server.stderr.readline()
        assert banner.startswith("serving "), banner + server.stderr.read()
        yield
        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=TIMEOUT_S) == 0
        output = server.stderr.read()
        assert re.search(r"served \d+ connections", output), output
    finally:
        if server.poll() is None:
            server.kill()
            server.wait()
        server.stderr.close()


def capabilities_of_the_server(machine: Namespace, directory: Path) -> set[str]:
    """What the processes in the namespace whose command is `anabranch` may do, as the kernel prints it."""
    pids = machine.run(f"ip netns pids {machine.name}", directory).split()
    found = set()
    for pid in pids:
        try:
            command = Path("/proc", pid, "cmdline").read_bytes()
            status = Path("/proc", pid, "status").read_text("utf-8")
        except OSError:
            continue  # It has ended meanwhile.
        if b"anabranch" in command:
            found.add(re.search(r"^CapEff:\s*(\S+)$", status, re.MULTILINE)[1])  # type: ignore[index]
    return found


def received(client: Namespace, directory: Path, device: str) -> int:
    return int(client.run(f"cat /sys/class/net/{device}/statistics/rx_bytes", directory))


def counters(output: str) -> dict[str, int]:
    """What nstat printed."""
    rows = (line.split() for line in output.splitlines() if line.startswith("MPTcp"))
    return {row[0]: int(row[1]) for row in rows}


def test_every_block_of_the_page_is_run_here() -> None:
    # Those on metered paths in test_serve_metered.py.
    tested = {
        "Settings",
        "Devices and routes",
        "one-uplink",
        "Run the server",
        "metered",
        "mobile-clients",
        "HTTPS and other protocols",
        "Monitor",
        "client",
    }
    assert set(blocks()) == tested | {"Remove the devices"}


def test_two_uplinks(videos: Path) -> None:
    page = blocks()
    with network(True, videos) as (machine, client):
        machine.run(page["Devices and routes"], videos)
        with serving(machine, page["Run the server"], videos):
            assert capabilities_of_the_server(machine, videos) == {"0" * 16}
            output = counters(client.run(page["client"], videos))
            assert output["MPTcpExtMPCapableSYNACKRX"] == 1
            assert output["MPTcpExtMPJoinSynAckRx"] == 1
            for device in ("ct1", "ct2"):
                assert received(client, videos, device) > FILM_LEN // 20, device
            time.sleep(1.5)  # Metrics are at most a second old.
            metrics = machine.run(page["Monitor"], videos)
            assert "anabranch_connections_accepted_total 1\n" in metrics
            # Every metric of the page's table exists. A suffix alone stands for the name before it with another end.
            rows = re.findall(r"^\| (`\w.*?) \|", PAGES, re.MULTILINE)
            for name in re.findall(r"`((?:anabranch|process)_\w+)`", " ".join(rows)):
                assert f"# TYPE {name} " in metrics, name
            for suffix in re.findall(r"`(_\w+)`", " ".join(rows)):
                assert re.search(rf"^# TYPE \w+{suffix}(_total)? ", metrics, re.MULTILINE), suffix
        machine.run(page["Remove the devices"], videos)
        assert "srv" not in machine.run("ip -brief link; ip rule", videos)


def test_one_uplink_and_a_client_with_two_addresses(videos: Path) -> None:
    page = blocks()
    with network(False, videos) as (machine, client):
        machine.run(page["one-uplink"] + "ip route replace 198.51.100.1/32 via 192.0.2.1 dev up1", videos)
        script = page["Run the server"].replace('--listen srv2="$ADDRESS" ', "")
        with serving(machine, script, videos):
            output = counters(client.run(page["client"], videos))
            assert output["MPTcpExtMPCapableSYNACKRX"] == 1
            assert output["MPTcpExtMPJoinSynAckRx"] == 1


def test_https_by_another_server(videos: Path) -> None:
    page = blocks()
    certificate = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=anabranch.test "
        "-keyout key.pem -out certificate.pem 2>&1"
    )
    with network(True, videos) as (machine, client):
        machine.run(page["Devices and routes"], videos)
        machine.run(certificate, videos)
        files = "-cert ../certificate.pem -key ../key.pem"
        origin = machine.start(f"cd videos; exec openssl s_server -quiet -accept 127.0.0.1:8443 {files} -WWW", videos)
        try:
            with serving(machine, page["HTTPS and other protocols"], videos):
                fetch = (
                    "mptcpize run curl --insecure --silent --show-error --fail --retry 5 --retry-all-errors "
                    '--retry-delay 1 --output got "https://$ADDRESS/film.mp4"'
                )
                client.run(fetch, videos)
                assert (videos / "got").read_bytes() == (videos / "videos" / "film.mp4").read_bytes()
        finally:
            origin.kill()
            origin.communicate()
