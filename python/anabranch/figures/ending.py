"""How the sessions of a run ended, for figures."""

from __future__ import annotations

from anabranch.figures.labels import Ending
from anabranch.results.metrics import Metrics

_TEXTS = {"stuck": "stuck", "duration": "cut off", "stopped": "interrupted"}


def of_session(metrics: Metrics, number: int) -> Ending | None:
    """How a session was cut off; nothing of one that reached its end, or that has none.

    Args:
        metrics: Of its run.
        number: Which session.
    """
    session, at = metrics["sessions"][number], metrics["sim_seconds"]
    if not session["cut_off"] or session["ended"] not in _TEXTS:
        return None
    return Ending(at, f"{_TEXTS[session['ended']]} at {at:.0f} s")
