"""How runs and sessions ended, and what must be known before their numbers are compared."""

from __future__ import annotations

from collections.abc import Mapping

from anabranch.results.metrics import Metrics, SessionMetrics, viewer_of

_WHY: Mapping[str, str] = {
    "finished": "its connection ended too early",
    "duration": "the scenario's duration was over",
    "stuck": "nothing could arrive any more",
    "stopped": "the run was stopped",
}

SEED_WITHOUT_EFFECT = (
    "the seed changes nothing in this scenario: no loss, delay, queue, rate or beginning is random, so runs with other "
    'seeds are the same run; start_spread = "1 s" of a session or trace_offset = "random" gives each seed its own'
)
"""What is said where a seed was chosen that has no effect."""


_SHORTLY: Mapping[str, str] = {
    "finished": "its connection ended too early",
    "duration": "the scenario ended first",
    "stuck": "no more data could arrive",
    "stopped": "the run was stopped",
}
"""The same in the few words that a table has room for."""


def is_incomplete(metrics: Metrics) -> bool:
    """Whether the run is none to compare with others: a session was cut off, or the run was stuck or stopped."""
    return metrics["ended"] in ("stuck", "stopped") or any(session["cut_off"] for session in metrics["sessions"])


def cut_off(session: SessionMetrics) -> str:
    """How a session was cut off, in a few words; empty where it reached its end."""
    return ", ".join(cut_off_parts(session))


def cut_off_parts(session: SessionMetrics) -> list[str]:
    """The same in parts, for a narrow column: that it was cut off and why, and what was played; empty as well."""
    if not session["cut_off"]:
        return []
    return list(filter(None, (f"incomplete ({_SHORTLY[session['ended']]})", _played(session))))


def warnings(metrics: Metrics) -> list[str]:
    """What makes the numbers of the run doubtful, a sentence each."""
    found = [_warning(session) for session in metrics["sessions"] if session["cut_off"]]
    if not found and metrics["ended"] in ("stuck", "stopped"):
        found.append(f"the run ended before its sessions did: {_WHY[metrics['ended']]}")
    return found


def _warning(session: SessionMetrics) -> str:
    played = _played(session)
    return (
        f"{session['name']} was cut off: {_WHY[session['ended']]}"
        + (f"; it {played}, less than the video" if session["video_s"] is not None and played else "")
        + ". Stalls and all else count until then only"
    )


def _played(session: SessionMetrics) -> str:
    """How much of a video was played; empty where there is none or it was not observed."""
    viewer = viewer_of(session)
    if session["video_s"] is None or viewer is None:
        return ""
    return f"played {viewer['played_s']:.1f} s of {session['video_s']:.1f} s"
