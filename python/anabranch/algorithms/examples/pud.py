"""The path policy ``pud`` with its defaults (MPTCP+): a path far slower than the best one is not used."""

from __future__ import annotations

from collections import deque

from anabranch.algorithms import PathPolicy, Subflow

SMOOTHED = 3
"""Raw samples in the moving average."""


class Meter:
    """One subflow's samples.

    Attributes:
        mean: The weighted mean at the last evaluation with enough samples, in bytes per second.
        allowed: Whether the subflow may carry new data.
    """

    def __init__(self, n: int) -> None:
        self.raw: deque[float] = deque(maxlen=SMOOTHED)
        self.smoothed: deque[float] = deque(maxlen=n)
        self.mean: float | None = None
        self.allowed = True

    def sample(self, raw: float) -> None:
        """Takes one throughput in, in bytes per second."""
        self.raw.append(raw)
        # Added one by one: the function `sum` of Python 3.12 and later rounds otherwise than the engine.
        total = 0.0
        for value in self.raw:
            total += value
        self.smoothed.append(total / len(self.raw))

    def weighted_mean(self, least: int) -> float | None:
        """The mean of at least ``least`` samples, the latest weighing most."""
        n = len(self.smoothed)
        if n < least:
            return None
        total = 0.0
        for weight, average in enumerate(self.smoothed, start=1):
            total += average * weight
        return total / (n * (n + 1.0) / 2.0)


class Pud(PathPolicy):
    """``x = sum(i * MA_i) / (n (n + 1) / 2)``; used are the paths with ``x > rho * max x``.

    Args:
        n: Samples in the weighted mean.
        rho: Share of the best path's mean above which a path is used.
        period_ms: Time between two samples, in milliseconds.
    """

    def __init__(self, *, n: int = 150, rho: float = 0.6, period_ms: float = 100.0) -> None:
        self.n, self.rho, self.period_s = n, rho, period_ms / 1e3
        self.next_tick = 0.0
        self.tick = 0
        self.meters: dict[int, Meter] = {}

    def decide(self, subflows: tuple[Subflow, ...]) -> list[Subflow] | None:
        """Samples at each tick, decides at each tenth of ``n``."""
        known = self.meters
        self.meters = {subflow.id: known.get(subflow.id) or Meter(self.n) for subflow in subflows}
        if self.ctx.now >= self.next_tick:
            self.next_tick = self.ctx.after(self.period_s)
            if any(subflow.in_flight > 0 or subflow.queued > 0 for subflow in subflows):
                self.tick += 1
                self._sample(subflows)
                if self.tick % max(self.n // 10, 1) == 0:
                    self._evaluate()
        return self._allowed(subflows)

    def poll_timeout(self) -> float:
        """The next tick."""
        return self.next_tick

    def _sample(self, subflows: tuple[Subflow, ...]) -> None:
        for subflow in subflows:
            meter = self.meters[subflow.id]
            busy = subflow.in_flight > 0 or subflow.queued > 0
            if subflow.established and busy and meter.allowed and subflow.srtt > 0.0:
                meter.sample(subflow.rate)

    def _evaluate(self) -> None:
        for meter in self.meters.values():
            if meter.allowed:
                mean = meter.weighted_mean(self.n)
                meter.mean = meter.mean if mean is None else mean
        # No decision before every subflow has been measured: a start-up's spike must not set the threshold.
        if any(meter.mean is None for meter in self.meters.values()):
            return
        best = max((meter.mean or 0.0 for meter in self.meters.values() if meter.allowed), default=0.0)
        for meter in self.meters.values():
            meter.allowed = meter.mean is not None and meter.mean > self.rho * best

    def _allowed(self, subflows: tuple[Subflow, ...]) -> list[Subflow] | None:
        used = [subflow for subflow in subflows if self.meters[subflow.id].allowed]
        # Every allowed path has failed: a slow path is better than none.
        works = any(subflow.established and not subflow.potentially_failed for subflow in used)
        return used if works else None
