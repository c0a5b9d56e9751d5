"""The scheduler ``min-rtt``: the lowest round trip first."""

from __future__ import annotations

from anabranch.algorithms import Scheduler, SchedulerView, Subflow, Trigger


class MinRtt(Scheduler):
    """Among the subflows with room in their windows, the one with the lowest smoothed round trip."""

    def decide(self, view: SchedulerView, trigger: Trigger) -> Subflow:
        """The older subflow on a tie, because ``min`` keeps the first."""
        return min(view.candidates, key=lambda subflow: subflow.srtt)
