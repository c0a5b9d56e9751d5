"""How nginx's kernel sends: by an uncoupled control of its socket, or by one that is attached to its port."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from anabranch.live import servers

COUPLED = ("lia", "olia", "balia", "mcc")
# `ip netns exec` and a pin below /sys do not go together: it mounts another /sys.
FILE_SYSTEM = Path("/run/anabranch-kernel-controls")


@dataclass(frozen=True)
class Sender:
    """How nginx's kernel sends."""

    control: str
    pud: bool = False

    @property
    def is_coupled(self) -> bool:
        """Whether its control is attached."""
        return self.control in COUPLED

    @property
    def port(self) -> int:
        """Each coupled control has its own, to which it is attached; what is not coupled has the first."""
        return servers.FIRST_PORT + (1 + COUPLED.index(self.control) if self.is_coupled else 0)

    @property
    def of_socket(self) -> str:
        """The control of nginx's socket; a coupled one replaces it."""
        return "cubic" if self.is_coupled else self.control

    @property
    def expected(self) -> str:
        """The kernel's name of the control that its connections have."""
        return f"anabranch_{self.control}" if self.is_coupled else self.control


# By the names of the tables (criteria.py).
SENDERS = {
    "CUBIC, as it comes": Sender("cubic"),
    "BBR on each path": Sender("bbr"),
    **{control.upper(): Sender(control) for control in COUPLED},
    "LIA and PUD": Sender("lia", pud=True),
    "MCC and PUD (MPTCP+)": Sender("mcc", pud=True),
}
