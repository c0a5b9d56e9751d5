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
        duplicates: Whether `decide` is also called while no new data can be sent, so that it can duplicate data
            in flight.
        watches_flight: Whether ``view.flight`` lists the packets in flight while no new data can be sent.
    """

    duplicates: bool = False
    watches_flight: bool = False

    @abstractmethod
    def decide(self, view: SchedulerView, trigger: Trigger) -> Subflow | Send | Duplicate | Wait | None:
        """Decides one step; called again until it waits.

        Called only while there is data to send that the peer's window allows, and at least one candidate.

        Args:
            view: The connection and its subflows.
            trigger: What is to be sent: ``"new-data"``, which was never sent, or as ``"reinjection"`` the data of a
                subflow that failed. A reinjection can be answered by a subflow, ``Send`` or ``None``.

        Returns:
            One of ``view.candidates`` for one full segment; ``Send`` for another number of bytes; ``Duplicate`` for
            bytes that another subflow carried; ``None`` or ``Wait`` to send nothing now. After ``None`` it is called
            again when something has changed, after ``Wait(until)`` at that time at the latest.
        """

    def on_sent(self, packet: SentPacket, subflow: Subflow) -> None:
        """A packet with data leaves on a subflow, also where the scheduler did not decide it.

        ``subflow`` is the state before.
        """

    def silence(self, view: SchedulerView) -> Subflow | Wait | None:
        """Decides whether a subflow has been silent for so long that its data must be sent on the others.

        Called whenever something has changed, before any decision.

        Returns:
            The subflow to give up for now, ``Wait(until)`` to be called again at that time, or ``None``.
        """


class CongestionControl(Algorithm):
    """Decides the window of one subflow. One object per subflow.

    The window is a number of packets, with a fraction. Each method may change ``window``, to at least one packet.

    Attributes:
        governs_itself: Whether loss recovery and the decay of idle windows leave ``cwnd`` as it is.
    """

    governs_itself: bool = False

    def on_established(self, window: Window, siblings: Siblings) -> None:
        """The subflow is established: ``window`` is the initial one, ``siblings.own.srtt`` that of the handshake."""

    @abstractmethod
    def on_ack(self, ack: Ack, window: Window, siblings: Siblings) -> None:
        """New data was acknowledged. The window may grow only if ``ack.may_grow`` is true."""

    @abstractmethod
    def on_congestion(self, cause: LossCause, window: Window, siblings: Siblings) -> None:
        """A congestion episode begins: set ``window.ssthresh``, at least 2 packets (``window.reduce_to``).

        Called once per episode. The subflow itself then changes ``cwnd``: after a timeout to one packet more than is in
        flight, otherwise to the threshold, by proportional rate reduction.

        Args:
            cause: ``"fast-retransmit"`` (acknowledgments showed a loss), ``"timeout"`` (the retransmission timer fired)
                or ``"penalty"`` (the subflow blocks the shared receive window).
            window: The window to change.
            siblings: The subflows of the connection.
        """

    def on_recovery_end(self, window: Window) -> None:
        """Loss recovery is complete; ``cwnd`` is the threshold."""

    def on_undo(self, window: Window) -> None:
        """The last reduction was unnecessary and is undone: ``cwnd`` and ``ssthresh`` have their values before it."""

    def on_restart(self, idle: float, window: Window) -> None:
        """Sending begins again after ``idle`` seconds with nothing in flight."""


class PathPolicy(Algorithm):
    """Decides which subflows may carry new data. One object for each end of a connection.

    Attributes:
        signals_peer: Whether the peer is asked, by MP_PRIO, not to send on subflows that are not allowed.
    """

    signals_peer: bool = False

    @abstractmethod
    def decide(self, subflows: tuple[Subflow, ...]) -> Iterable[Subflow] | None:
        """Returns the subflows that may carry new data, at least one; ``None`` for all.

        Called when a subflow has opened or closed, and at the time of `poll_timeout`.
        """

    def poll_timeout(self) -> float | None:
        """Returns when to decide again, in seconds since the start; ``None`` if only changes of the subflows matter.

        Called once before the first decision, and after each one. After a decision the time must be later than now:
        otherwise the run ends. ``self.ctx.after(0.1)`` is a tenth of a second from now, rounded as the engine rounds
        times, so that ``self.ctx.now`` will equal it.
        """
        return None


class AbrRule(Algorithm):
    """Decides in which representation the next media segment is downloaded. One object per session."""

    @abstractmethod
    def decide(self, view: PlayerView) -> int | Decision:
        """Decides for the media segment ``view.next``, whose request is due.

        Returns:
            The rank of the representation, from 0, the lowest, to ``view.top``; or a ``Decision``, which can also have
            a pause before the request, and a reason for the table of events.
        """

    def observe(self, view: PlayerView, event: PlayerEvent) -> None:
        """An event since the last decision, of the kind ``event.kind``."""

    def on_progress(self, view: PlayerView, progress: Progress) -> int | Decision | None:
        """More of the running request's body arrived.

        Returns:
            ``None`` to continue. Otherwise the request is aborted, and the same media segment is downloaded in this
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
