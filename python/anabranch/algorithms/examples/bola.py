"""The bitrate rule ``bola`` with its defaults: utility over the buffer's level (Spiteri et al., INFOCOM 2016).

``m*`` maximises ``(V*(v_m + gp) - Q) / S_m``, with ``v_m = ln(S_m / S_1)`` and ``V = (Q_D - 1) / (v_M + gp)``; ``Q``
is the buffer in media segments. Near the beginning and the end of a video ``Q_D`` is smaller (BOLA-FINITE). A switch
upwards is capped by the throughput of the last media segment (BOLA-U).
"""

from __future__ import annotations

import math

from anabranch.algorithms import AbrRule, Decision, PlayerView, Progress

GAMMA_P = 5.0
"""The weight of stalls, in units of utility."""

MIN_CAPACITY_SEGMENTS = 2.0
FINITE_SHARE = 0.5
FINITE_FLOOR_SEGMENTS = 3.0


class Bola(AbrRule):
    """BOLA-FINITE with BOLA-U; the capacity is the player's buffer."""

    def __init__(self) -> None:
        self.weight = 0.0

    def decide(self, view: PlayerView) -> Decision:
        """The representation of the highest score; above the highest level a pause first."""
        p = view.ladder.segment_duration
        self.weight = (self._capacity_segments(view) - 1.0) / (self._utility(view, view.top) + GAMMA_P)
        full = self._highest_level(view, view.top)
        q = view.buffer / p
        best, best_score = 0, -math.inf
        for m in range(view.top + 1):
            score = (self._highest_level(view, m) - min(q, full)) / view.ladder.bps(m)
            if score >= best_score:
                best, best_score = m, score
        representation = self._capped(view, best)
        if q > full:
            reason = "the buffer is full"
        elif representation == best:
            reason = "highest utility for the buffer"
        else:
            reason = "highest utility for the buffer, capped by the last throughput"
        return Decision(representation, wait=max(q - full, 0.0) * p, reason=reason)

    def on_progress(self, view: PlayerView, progress: Progress) -> Decision | None:
        """Abandons where a lower representation scores more than what is left."""
        left = max(progress.total - progress.bytes, 0)
        q = view.buffer / view.ladder.segment_duration
        here = self._highest_level(view, progress.representation) - q
        if progress.bytes == 0 or left <= 0 or here < 0.0:
            return None
        best, best_score = None, here / left
        for m in range(progress.representation):
            whole = progress.total * view.ladder.bps(m) / view.ladder.bps(progress.representation)
            score = (self._highest_level(view, m) - q) / whole
            if score > best_score or (best is not None and score == best_score):
                best, best_score = m, score
        if best is None:
            return None
        return Decision(best, reason="a lower representation has the higher utility for what is left")

    def _utility(self, view: PlayerView, m: int) -> float:
        # The engine's logarithm: that of Python may differ in the last bit.
        return self.ctx.math.log(view.ladder.bps(m) / view.ladder.bps(0))

    def _highest_level(self, view: PlayerView, m: int) -> float:
        """The level in media segments up to which a representation's score is not negative."""
        return self.weight * (self._utility(view, m) + GAMMA_P)

    def _capacity_segments(self, view: PlayerView) -> float:
        p = view.ladder.segment_duration
        q_max = view.buffer_target / p
        played = max(view.next * p - view.buffer, 0.0)
        left = view.ladder.segments * p - played
        t = max(FINITE_SHARE * min(played, left), FINITE_FLOOR_SEGMENTS * p)
        return max(min(q_max, t / p), MIN_CAPACITY_SEGMENTS)

    def _capped(self, view: PlayerView, best: int) -> int:
        last = min(view.current, view.top)
        if best <= last or not view.downloads:
            return best
        sustained = view.ladder.highest_within(view.downloads[-1].throughput_bps, view.top)
        if sustained >= best:
            return best
        return last if sustained < last else sustained + 1
