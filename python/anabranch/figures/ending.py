"""How the sessions of a run ended, for figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anabranch.figures.labels import Ending
from anabranch.metrics import Metrics


def of_session(metrics: Metrics, scenario: Mapping[str, Any], number: int) -> Ending | None:
    """How a session ended that did not come to its end; nothing of one that did, or that has none.

    Args:
        metrics: Of its run.
        scenario: The resolved scenario.
        number: Which session.
    """
    at, ended = metrics["sim_seconds"], metrics["ended"]
    if metrics["sessions"][number]["finished_s"] is not None or _endless(scenario, number):
        return None
    texts = {"stuck": "stuck", "duration": "cut off", "stopped": "interrupted"}
    return Ending(at, f"{texts[ended]} at {at:.0f} s") if ended in texts else None


def _endless(scenario: Mapping[str, Any], number: int) -> bool:
    """Whether a session downloads as long as the run lasts."""
    for session in scenario.get("session", []):
        number -= session.get("count", 1)
        if number < 0:
            return bool(session["video"]["kind"] == "bulk" and "size" not in session["video"])
    return False
