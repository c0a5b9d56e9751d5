"""The systemd unit of `anabranch serve`."""

from __future__ import annotations

import math
import os
import pwd
import subprocess
import sys
from pathlib import Path

from anabranch.cli.console import Exit, echo, fail
from anabranch.errors import InputError

NAME = "anabranch.service"
PLACE = Path("/etc/systemd/system") / NAME

# How much longer than the grace period the end may take before systemd kills what is left.
_SPARE_S = 10

# %t is /run. `+` runs the wiring as root and outside of the restrictions below.
_UNIT = """\
[Unit]
Description=Multipath TCP server (anabranch)
Wants=network-online.target
After=network-online.target

[Service]
Type=notify
User={user}
ExecStartPre=+{command} --setup --user {user}
ExecStart={command} --state %t/anabranch/state
ExecReload=/bin/kill -HUP $MAINPID
# The parent passes orders on; its child would end without waiting for downloads.
KillMode=mixed
TimeoutStopSec={stop_s}
WatchdogSec=20
Restart=on-failure
RestartSec=1
RuntimeDirectory=anabranch
RuntimeDirectoryMode=0700
RuntimeDirectoryPreserve=restart
LogsDirectory=anabranch
# Devices belong to the user, and ports below 1024 are the endpoint's own: no privilege is needed.
CapabilityBoundingSet=
NoNewPrivileges=yes
DevicePolicy=closed
DeviceAllow=/dev/net/tun rw
ProtectSystem=strict
ProtectHome=read-only
ProtectControlGroups=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
PrivateTmp=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
RestrictNamespaces=yes
RestrictRealtime=yes
LockPersonality=yes

[Install]
WantedBy=multi-user.target
"""


def text(config: Path, user: str, grace_s: float) -> str:
    """The unit of a server with this configuration."""
    # The program next to this interpreter, or the package where it was started without one.
    program = Path(sys.executable).with_name("anabranch")
    start = str(program) if program.exists() else f"{sys.executable} -m anabranch"
    command = f"{start} serve --config {config.absolute()}"
    return _UNIT.format(command=command, user=user, stop_s=math.ceil(grace_s) + _SPARE_S)


def install(config: Path | None, user: str | None, grace_s: float, *, dry_run: bool) -> None:
    """Writes the unit, or prints it.

    Raises:
        InputError: There is no configuration, or no such user.
    """
    if config is None:
        raise InputError("--install-unit needs --config FILE: the unit starts the server with it")
    owner = user or "anabranch"
    try:
        pwd.getpwnam(owner)
    except KeyError:
        if not dry_run:
            raise InputError(f"--user: there is no user {owner}; make one with `useradd --system {owner}`") from None
    unit = text(config, owner, grace_s)
    if dry_run:
        echo(unit.rstrip())
        return
    if os.geteuid() != 0:
        fail("--install-unit needs root; --dry-run prints the unit", Exit.RUN_FAILED)
    PLACE.write_text(unit, "utf-8")
    echo(f"wrote {PLACE}")
    subprocess.run(["systemctl", "daemon-reload"], check=False)
    echo(f"Start it, and at each boot: systemctl enable --now {NAME.removesuffix('.service')}")
