"""Makes one run of nginx for its CPU time with a coupled control, as root; `anabranch reproduce` starts it.

python cost.py '{"sender": "LIA", "connections": 1000, "seed": 1}'
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from senders import SENDERS, Sender

from anabranch.experiments import outside
from anabranch.live.servers import ADDRESS, controls_of, inside, nginx, shell


class Pair:
    """A client and a server in namespaces of their own, and two links between them, which the kernel shapes."""

    def __init__(self, rate: str, queue: str) -> None:
        prefix = f"anabranch-{os.getpid()}-cost"
        self.client, self.server = f"{prefix}-client", f"{prefix}-server"
        for name in (self.client, self.server):
            subprocess.run(["ip", "netns", "add", name], check=True)
        for n in (1, 2):
            far = ["peer", "name", f"ct{n}", "netns", self.client]
            subprocess.run(["ip", "link", "add", f"st{n}", "netns", self.server, "type", "veth", *far], check=True)
        common = "sysctl -q net.ipv4.conf.all.rp_filter=0 net.ipv4.tcp_no_metrics_save=1; ip link set lo up\n"
        client, server = [common, "ip mptcp limits set subflows 2"], [common, f"ip addr add {ADDRESS}/32 dev lo"]
        for n in (1, 2):
            client.append(
                f"ip addr add 10.{n}.0.2/32 dev ct{n}; ip link set ct{n} up\n"
                f"ip rule add from 10.{n}.0.2 lookup 10{n}\n"
                f"ip route add {ADDRESS} dev ct{n} src 10.{n}.0.2 table 10{n}\n"
                f"ip mptcp endpoint add 10.{n}.0.2 dev ct{n} subflow"
            )
            server.append(
                f"ip link set st{n} up; ip route add 10.{n}.0.2 dev st{n} src {ADDRESS} congctl cubic\n"
                f"tc qdisc add dev st{n} root tbf rate {rate} burst 128k limit {queue}"
            )
        client.append(f"ip route add {ADDRESS} dev ct1 src 10.1.0.2")
        shell(self.server, "\n".join(server))
        shell(self.client, "\n".join(client))

    def remove(self) -> None:
        """Removes both and their connections, which would keep their controls for minutes: they have data to send."""
        for name in (self.server, self.client):
            # A kernel without CONFIG_INET_DIAG_DESTROY refuses; the namespaces are removed nevertheless.
            subprocess.run(inside(name, "ss", "--kill", "--tcp"), check=False, stdout=subprocess.DEVNULL)
        for name in (self.client, self.server):
            subprocess.run(["ip", "netns", "delete", name], check=True)


# Reads from many connections until the time is over; prints the bytes.
_READERS = """
import resource, selectors, socket, sys, time
address, port, count, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
resource.setrlimit(resource.RLIMIT_NOFILE, (8192, 8192))
chosen = selectors.DefaultSelector()
for _ in range(count):
    one = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
    one.connect((address, port))
    one.sendall(b"GET /file HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n")
    one.setblocking(False)
    chosen.register(one, selectors.EVENT_READ)
buffer, total, until = bytearray(1 << 18), 0, time.monotonic() + seconds
while (left := until - time.monotonic()) > 0:
    for key, _ in chosen.select(left):
        total += key.fileobj.recv_into(buffer)
print(total)
"""

# The links together have two thirds of what one core of the kernel serves. Their queues hold some 40 ms.
COST_RATE, COST_QUEUE = "400mbit", "2mb"
COST_S = 10.0


def _cpu_s(pids: Sequence[int]) -> float:
    """User and system time of processes and of threads of the kernel."""
    ticks = os.sysconf("SC_CLK_TCK")
    total = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / ticks


def _ksoftirqd() -> list[int]:
    """The threads in which the kernel handles packets that it could not handle at once."""
    found = subprocess.run(["pgrep", "-x", "ksoftirqd/[0-9]+"], capture_output=True, text=True, check=True)
    return [int(pid) for pid in found.stdout.split()]


def cost(sender: Sender, connections: int) -> tuple[float, float]:
    """CPU seconds per Gbit of nginx, its kernel and its client together; and goodput in Mb/s."""
    pair = Pair(COST_RATE, COST_QUEUE)
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "www").mkdir()
            with (folder / "www" / "file").open("wb") as file:
                file.truncate(1 << 33)
            control, port = sender.of_socket, sender.port
            with nginx(pair.server, folder / "www", folder, control=control, port=port, writes="pages") as master:
                children = Path(f"/proc/{master}/task/{master}/children").read_text("ascii").split()
                pids = [*map(int, children), *_ksoftirqd()]
                before, mine = _cpu_s(pids), resource.getrusage(resource.RUSAGE_CHILDREN)
                words = (sys.executable, "-c", _READERS, ADDRESS, port, connections, COST_S)
                with subprocess.Popen(inside(pair.client, *words), stdout=subprocess.PIPE, text=True) as client:
                    time.sleep(COST_S / 2)
                    names = controls_of(pair.server, port)
                    output, _ = client.communicate()
                after, used = _cpu_s(pids), resource.getrusage(resource.RUSAGE_CHILDREN)
    finally:
        pair.remove()
    assert names == [sender.expected], names
    gbit = int(output) * 8 / 1e9
    cpu_s = after - before + used.ru_utime + used.ru_stime - mine.ru_utime - mine.ru_stime
    return cpu_s / gbit, 1000 * gbit / COST_S


def measured(labels: Mapping[str, Any]) -> dict[str, float]:
    """The run that these labels name."""
    cpu_s, rate = cost(SENDERS[labels["sender"]], labels["connections"])
    return {"cpu_s_per_gbit": cpu_s, "goodput_mbps": rate}


if __name__ == "__main__":
    outside.answer(measured)
