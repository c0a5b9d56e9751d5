"""What this machine can do with Anabranch, what is missing for the rest, and how to get it."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from anabranch import _core
from anabranch._core import __version__
from anabranch.live.run import clients

if TYPE_CHECKING:
    from anabranch.live.clients.watch import Client

# Encodes what players play.
_FFMPEG = {"ffmpeg": "ffmpeg"}


@dataclass(frozen=True)
class Ability:
    """Something that Anabranch does on some machines only.

    Attributes:
        name: A short name, for scripts.
        purpose: What it is, with the command that needs it.
        missing: What stands in the way, a sentence each with the remedy; nothing if it works.
    """

    name: str
    purpose: str
    missing: tuple[str, ...]

    @property
    def works(self) -> bool:
        """Whether nothing is missing."""
        return not self.missing


@dataclass(frozen=True)
class Machine:
    """The versions that a report of a fault should name.

    Attributes:
        anabranch, python, system: Versions; of the system its kernel's.
        processor: The architecture, such as ``x86_64``.
        processors: How many may be used.
    """

    anabranch: str
    python: str
    system: str
    processor: str
    processors: int


def machine() -> Machine:
    """This machine."""
    return Machine(
        anabranch=__version__,
        python=platform.python_version(),
        system=f"{platform.system()} {platform.release()}",
        processor=platform.machine(),
        processors=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
    )


def abilities() -> list[Ability]:
    """All of them, the ones that need least first."""
    live = _live()
    return [
        Ability("simulate", "simulate, sweep, compare, reproduce papers", ()),
        Ability("content", "encode real video (content make)", _programs(_FFMPEG)),
        Ability("live", "run in real time, compare with the kernel (run --live, validate)", live),
        *(
            Ability(name, f"run live with {client.sentence} (--client {name})", (*live, *_programs(_of(name, client))))
            for name, client in clients().items()
        ),
        Ability("serve", "serve real clients (serve)", _serve()),
        Ability("kernel", "coupled congestion control in this kernel's own connections (kernel attach)", _kernel()),
        Ability("captures", "decode the captures of --pcap with tshark", _programs({"tshark": "tshark"})),
    ]


def _of(name: str, client: Client) -> Mapping[str, str]:
    """The programs of a client, and those that make what it needs."""
    makers = {"dash.js": {**_FFMPEG, "npm": "npm"}, "vlc": _FFMPEG}
    return {**client.programs, **makers.get(name, {})}


def _programs(wanted: Mapping[str, str]) -> tuple[str, ...]:
    """The programs that are not installed."""
    return tuple(f"{name} is missing: apt install {of}" for name, of in wanted.items() if shutil.which(name) is None)


def _live() -> tuple[str, ...]:
    if not hasattr(_core, "live_missing"):
        return ("live runs need Linux: use a Linux machine",)
    return tuple(reason.removesuffix(".") for reason in _core.live_missing())


def _serve() -> tuple[str, ...]:
    if not hasattr(_core, "Serving"):
        return ("the server needs Linux: use a Linux machine",)
    tun = "/dev/net/tun"
    if not Path(tun).exists():
        return (f"there is no {tun}: modprobe tun",)
    if not os.access(tun, os.R_OK | os.W_OK):
        return (f"this user may not open {tun}: chmod 666 {tun} as root",)
    if not _may_administer() and not _has_device():
        return (
            "this user may open no TUN device: as root, `anabranch serve --setup --user NAME ...` makes devices that "
            "belong to a user; or run the server with the capability CAP_NET_ADMIN",
        )
    return ()


# The number of CAP_NET_ADMIN in linux/capability.h.
_CAP_NET_ADMIN = 12


def _may_administer() -> bool:
    """Whether this process has CAP_NET_ADMIN, with which it opens any device. Root may lack it, as in a container."""
    status = _read("/proc/self/status") or ""
    effective = next((line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")), "0")
    return bool(int(effective, 16) >> _CAP_NET_ADMIN & 1)


def _has_device() -> bool:
    """Whether there is a TUN device that belongs to this user."""
    owners = Path("/sys/class/net").glob("*/owner")
    return any(_read(owner) == f"{os.geteuid()}\n" for owner in owners)


def _read(path: str | Path) -> str | None:
    try:
        return Path(path).read_text("ascii")
    except (OSError, UnicodeDecodeError):
        return None


def _kernel() -> tuple[str, ...]:
    if not hasattr(_core, "kernel_checks"):
        return ("these programs are for Linux: use a Linux machine",)
    build = () if _core.kernel_supported() else ("this build has no programs for the kernel: build it where clang is",)
    unmet = (f"{c['name']}: {c['found']}; {c['remedy']}" for c in _core.kernel_checks() if c["remedy"])
    return (*build, *unmet)


def as_json(found: Iterable[Ability]) -> list[dict[str, object]]:
    """Abilities as JSON has them."""
    return [{"name": a.name, "purpose": a.purpose, "works": a.works, "missing": list(a.missing)} for a in found]
