"""What the kernel counted in a namespace."""

from __future__ import annotations

import json
import subprocess

_MPTCP = "MPTcpExt:"


def mptcp(namespace: str) -> dict[str, int]:
    """Its counters of Multipath TCP that are not zero, without the prefix that ``nstat`` puts in front.

    Raises:
        OSError: The namespace is gone.
    """
    text = _run("ip", "netns", "exec", namespace, "cat", "/proc/net/netstat")
    # Two lines each: names and numbers.
    names, numbers = (line.split()[1:] for line in text.splitlines() if line.startswith(_MPTCP))
    counted = {name: int(number) for name, number in zip(names, numbers, strict=True)}
    return {name: number for name, number in counted.items() if number}


def received_bytes(namespace: str) -> dict[str, int]:
    """Bytes that each of its devices received, the loopback left out.

    Raises:
        OSError: The namespace is gone.
    """
    devices = json.loads(_run("ip", "-netns", namespace, "-stats", "-json", "link", "show"))
    return {one["ifname"]: one["stats64"]["rx"]["bytes"] for one in devices if one["ifname"] != "lo"}


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout
