"""What makes the runs of a plan: the simulator, or this machine in real time with a server and a client."""

from __future__ import annotations

import platform
from dataclasses import dataclass

from anabranch.errors import InputError, alternatives
from anabranch.live.run import MODEL, SERVERS, clients

KERNEL = "kernel"
"""The server of live runs that is this machine's kernel."""

_SIM = "sim"
_LIVE = "live"


@dataclass(frozen=True)
class Engine:
    """An engine.

    Attributes:
        name: As the plan writes it, and as it stands in tables.
        server: Who serves in real time; ``None`` in simulation.
        client: Who watches in real time; ``None`` in simulation.
    """

    name: str
    server: str | None = None
    client: str | None = None

    @property
    def is_live(self) -> bool:
        """Whether its runs are made in real time."""
        return self.server is not None

    @property
    def identity(self) -> str:
        """What belongs into the key of a run: in real time the kernel, too, which is a part of what is measured."""
        return f"{_LIVE}/{self.server}/{self.client}/{platform.release()}" if self.is_live else _SIM

    @property
    def options(self) -> list[str]:
        """The options of ``anabranch run``."""
        if self.server is None or self.client is None:
            return []
        return ["--live", "--server", self.server, "--client", self.client]


SIMULATION = Engine(_SIM)
"""The simulator."""


def parse(text: str) -> Engine:
    """Reads ``sim``, or ``live`` with a server and a client behind it: ``live/kernel``, ``live/kernel/curl``.

    Raises:
        InputError: It is something else.
    """
    name, *rest = text.split("/")
    if name not in (_SIM, _LIVE):
        raise InputError(f"no engine of plans is called `{name}`{alternatives(name, (_SIM, _LIVE))}")
    if name == _SIM and not rest:
        return SIMULATION
    if name == _SIM or len(rest) > 2:
        raise InputError(f"`{text}` is no engine; expected sim, live, live/SERVER, or live/SERVER/CLIENT")
    server, client = (*rest, *(SERVERS[0], MODEL)[len(rest) :])
    if server not in SERVERS:
        raise InputError(f"no server of live runs is called `{server}`{alternatives(server, SERVERS)}")
    if client not in (known := (MODEL, *clients())):
        raise InputError(f"no client of live runs is called `{client}`{alternatives(client, known)}")
    return Engine(text, server, client)
