"""The congestion control ``newreno``: one packet more per round trip, half after a loss (RFC 5681, RFC 6582)."""

from __future__ import annotations

from anabranch.algorithms import Ack, CongestionControl, LossCause, Siblings, Window


class NewReno(CongestionControl):
    """increase per acknowledged packet: ``w += 1/floor(w)``; after a loss: ``ssthresh = max(w/2, 2)``."""

    def on_ack(self, ack: Ack, window: Window, siblings: Siblings) -> None:
        """Slow start up to the threshold, congestion avoidance beyond it."""
        if not ack.may_grow:
            return
        left = window.slow_start(ack.delivered)
        if left > 0.0:
            window.grow_per_window(left)

    def on_congestion(self, cause: LossCause, window: Window, siblings: Siblings) -> None:
        """Half the window."""
        window.reduce_to(window.cwnd / 2.0)
