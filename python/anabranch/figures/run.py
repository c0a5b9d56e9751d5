"""The figure of a run: its session in detail, or several sessions side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from anabranch.figures.comparison import Column, compare
from anabranch.figures.ending import of_session
from anabranch.figures.session import draw_session
from anabranch.results.metrics import Metrics
from anabranch.results.recording import Recording
from anabranch.wording import summary

MOST_SESSIONS = 6
"""More sessions than this are not drawn side by side."""


def draw_run(
    recording: Recording, metrics: Metrics, scenario: Mapping[str, Any], seed: int, session: int | None = None
) -> Figure:
    """Draws the sessions of a run.

    Args:
        recording: The run over time, of one session at least.
        metrics: What it found.
        scenario: The resolved scenario.
        seed: Its seed.
        session: Which session to draw in detail, counted from 0. Where absent, the only one in detail, or the first six
            of several side by side.
    """
    of_all = len(metrics["sessions"])
    if session is None and of_all > 1:
        return _side_by_side(recording, metrics, scenario, seed)
    number = session or 0
    title = str(metrics["scenario"])
    if of_all > 1:
        title += f", {metrics['sessions'][number]['name']} of {of_all}"
    return draw_session(
        recording.sessions[number],
        title=title,
        subtitle=f"{policies(scenario)}, seed {seed}: {summary.in_short(metrics['sessions'][number])}",
        marks=recording.marks,
        ending=of_session(metrics, number),
        paths=tuple(scenario["path"]),
    )


def _side_by_side(recording: Recording, metrics: Metrics, scenario: Mapping[str, Any], seed: int) -> Figure:
    drawn = recording.sessions[:MOST_SESSIONS]
    columns = [
        Column(
            title=session.name,
            subtitle=summary.in_short(metrics["sessions"][number]),
            recording=session,
            marks=recording.marks,
            ending=of_session(metrics, number),
            paths=tuple(scenario["path"]),
        )
        for number, session in enumerate(drawn)
    ]
    of_all = len(metrics["sessions"])
    title = f"{metrics['scenario']}, {policies(scenario)}, seed {seed}"
    if of_all > len(drawn):
        title += f": the first {len(drawn)} of {of_all} sessions"
    return compare(columns, title=title)


def policies(scenario: Mapping[str, Any]) -> str:
    """The scheduler, the congestion control and, unless it is the usual one, the path policy of a scenario."""
    transport = scenario["transport"]
    named = ", ".join(_name(transport[key]) for key in ("scheduler", "congestion_control"))
    policy = _name(transport["path_policy"])
    return named if policy == "full-mesh" else f"{named}, {policy}"


def _name(choice: Any) -> str:
    """The name of a replaceable part, which may stand alone or in a table with its options."""
    return str(choice["name"] if isinstance(choice, dict) else choice)
