"""The four bases of own algorithms. Their methods are those of the engine's traits, in the engine's order of calls."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Literal

from anabranch._core import (
    Ack,
    Context,
    Decision,
    Duplicate,
    PlayerEvent,
    PlayerView,
    Progress,
    SchedulerView,
    Send,
    SentPacket,
    Siblings,
    Subflow,
    Wait,
    Window,
)

Trigger = Literal["new-data", "reinjection"]
"""Why a scheduler is asked: bytes that were never sent wait, or those of a failed subflow."""

LossCause = Literal["fast-retransmit", "timeout", "penalty"]
"""Why a congestion episode begins: acknowledgments showed a loss, the retransmission timer fired, or the subflow blocks
the shared receive window."""


class Algorithm(ABC):
    """What all four have in common.

    Attributes:
        ctx: Time, random numbers, mathematics and notes. The engine sets it after the constructor.
    """

    ctx: Context


class Scheduler(Algorithm):
    """Decides which subflow carries the next data. One object for each end of a connection.

    Attributes:
        duplicates: Whether to ask also while no new data can be sent, so that data in flight can be duplicated.
        watches_flight: Whether ``view.flight`` shall list the packets in flight while no new data can be sent.
    """

    duplicates: bool = False
    watches_flight: bool = False

    @abstractmethod
    def decide(self, view: SchedulerView, trigger: Trigger) -> Subflow | Send | Duplicate | Wait | None:
        """Decides one step; asked again until it waits.

        Asked only while there is something to send that the peer's window allows, and at least one candidate.

        Args:
            view: The connection and its subflows.
            trigger: Why it is asked. For a ``"reinjection"`` a subflow, ``Send`` or ``None`` make sense.

        Returns:
            One of ``view.candidates`` for one full segment; ``Send`` for another number of bytes; ``Duplicate`` for
            bytes that another subflow carried; ``None`` or ``Wait`` to send nothing now. After ``None`` it is asked
            again when something changed, after ``Wait(until)`` at that time at the latest.
        """

    def on_sent(self, packet: SentPacket, subflow: Subflow) -> None:
        """A packet with data leaves on a subflow, whoever decided that; ``subflow`` is the state before."""

    def silence(self, view: SchedulerView) -> Subflow | Wait | None:
        """Whether a subflow is silent for so long that its data shall be sent on the others.

        Asked whenever something changed, before any decision.

        Returns:
            The subflow to give up for now, ``Wait(until)`` to be asked again at that time, or ``None``.
        """


class CongestionControl(Algorithm):
    """Decides the window of one subflow. One object per subflow.

    The window counts packets and has a fraction. Each method may change ``window``; what it sets must be at least one
    packet.

    Attributes:
        governs_itself: Whether recovery and the decay of idle windows shall leave ``cwnd`` alone.
    """

    governs_itself: bool = False

    def on_established(self, window: Window, siblings: Siblings) -> None:
        """The subflow is established: ``window`` is the initial one, and ``siblings.own.srtt`` the handshake's."""

    @abstractmethod
    def on_ack(self, ack: Ack, window: Window, siblings: Siblings) -> None:
        """New data was acknowledged. The window may grow only where ``ack.may_grow`` says so."""

    @abstractmethod
    def on_congestion(self, cause: LossCause, window: Window, siblings: Siblings) -> None:
        """A congestion episode begins: set ``window.ssthresh``, at least 2 packets (``window.reduce_to``).

        Called once per episode. The subflow moves ``cwnd`` itself: to the threshold by proportional rate reduction, or
        to one packet more than is in flight on a timeout.
        """

    def on_recovery_end(self, window: Window) -> None:
        """The repair is complete; ``cwnd`` is the threshold."""

    def on_undo(self, window: Window) -> None:
        """The last reduction was unnecessary; ``cwnd`` and ``ssthresh`` are what they were before it."""

    def on_restart(self, idle: float, window: Window) -> None:
        """Sending begins again after ``idle`` seconds without anything in flight."""


class PathPolicy(Algorithm):
    """Decides which subflows may carry new data. One object for each end of a connection.

    Attributes:
        signals_peer: Whether to ask the peer, by MP_PRIO, not to send on subflows that are not allowed.
    """

    signals_peer: bool = False

    @abstractmethod
    def decide(self, subflows: tuple[Subflow, ...]) -> Iterable[Subflow] | None:
        """The subflows that may carry new data, at least one of them; ``None`` for all.

        Asked when a subflow opened or closed, and at the time of :meth:`poll_timeout`.
        """

    def poll_timeout(self) -> float | None:
        """When to decide again, in seconds since the start; ``None`` if only changes of the subflows matter.

        Asked once before the first decision, and after each one. ``self.ctx.after(0.1)`` is a tenth of a second from
        now, rounded as the engine rounds times, so that ``self.ctx.now`` will equal it.
        """
        return None


class AbrRule(Algorithm):
    """Decides in which representation the next media segment is fetched. One object per session."""

    @abstractmethod
    def decide(self, view: PlayerView) -> int | Decision:
        """A request for media segment ``view.next`` is due.

        Returns:
            The rank of the representation, from 0, the lowest, to ``view.top``; or a ``Decision``, which may have a
            pause before the request, and a reason for the table of events.
        """

    def observe(self, view: PlayerView, event: PlayerEvent) -> None:
        """Something happened since the last decision; ``event.kind`` says what."""

    def on_progress(self, view: PlayerView, progress: Progress) -> int | Decision | None:
        """More of the running request's body arrived.

        Returns:
            ``None`` to go on; otherwise the request is aborted, and the same media segment is fetched in this
            representation.
        """
        return None


BASES: dict[str, type[Algorithm]] = {
    "scheduler": Scheduler,
    "congestion_control": CongestionControl,
    "path_policy": PathPolicy,
    "abr_rule": AbrRule,
}
"""The base of each kind, by the word that scenarios use for the kind."""


def overrides(cls: type[Algorithm], name: str) -> bool:
    """Whether a class has a method of its own for one that its base has for readers alone."""
    for base in BASES.values():
        if issubclass(cls, base):
            return getattr(cls, name) is not getattr(base, name)
    return True
