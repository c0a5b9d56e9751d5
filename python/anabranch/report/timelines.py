"""Timelines: what a session's paths carried and what its viewer saw, as the page draws it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anabranch.report import sequences
from anabranch.results import series, timeline
from anabranch.results.metrics import Metrics
from anabranch.results.recording import Array, Recording
from anabranch.results.sequence import Sequences
from anabranch.results.series import SessionSeries
from anabranch.results.timeline import Graph
from anabranch.wording import numerals, summary

_SIGNIFICANT = 4

Numbers = list[float | None]


@dataclass(frozen=True)
class Timeline:
    """A session over time.

    Attributes:
        title: Which session it is.
        outcome: What its viewer saw, in a line.
        data: The series, as the page's program reads them.
    """

    title: str
    outcome: str
    data: Mapping[str, Any]


def of_session(
    recording: Recording,
    metrics: Metrics,
    number: int,
    *,
    title: str,
    paths: Sequence[str] = (),
    packets: Sequences | None = None,
    why: Mapping[str, Any] | None = None,
) -> Timeline:
    """The timeline of a session.

    Args:
        recording: The run over time.
        metrics: What it found.
        number: Which session, from 0.
        title: What the page calls it.
        paths: The paths of the scenario, which decide on colours; those of the session where absent.
        packets: What the packets of the run say of each subflow, if it is known.
        why: Where its link time went, as `anabranch.report.why` has it; ``None`` without a panel of it.
    """
    from anabranch.figures import ending, style

    recorded = recording.sessions[number]
    session = series.of_session(recorded)
    styles = style.path_styles(list(paths) or [path.name for path in session.paths])
    end = ending.of_session(metrics, number)
    colours = {name: style.PATHS.index(each) for name, each in styles.items()}
    own = None if packets is None else packets.of(number)
    data = {
        "first_s": _time(float(session.middles_s[0])) if len(session.middles_s) else 0.0,
        "width_s": _time(session.width_s),
        "points": len(session.middles_s),
        "state_times": _times(session.state_times_s),
        "paths": [
            {"name": path.name, "colour": colours[path.name], "disabled": _spans(path.disabled_s)}
            for path in session.paths
        ],
        "graphs": [_graph(graph, session, colours) for graph in timeline.of_session(session) if graph.is_shown],
        "stalls": _spans(recorded.stalls_s),
        "marks": [[_time(mark.at_s), mark.text] for mark in recording.marks],
        "packets": sequences.of_session(own, colours) if own is not None and own.subflows else None,
        "why": why,
        "ending": None if end is None else [_time(end.at_s), end.text],
    }
    return Timeline(title, summary.in_short(metrics["sessions"][number]), data)


def _graph(graph: Graph, session: SessionSeries, colours: Mapping[str, int]) -> dict[str, Any]:
    """A graph; times that several have in common are named, and a colour is the place in the palette."""
    shared = {id(session.middles_s): "intervals", id(session.state_times_s): "states"}
    lines = [
        {
            "role": line.role,
            "name": line.name,
            "colour": None if line.path is None else colours[line.path],
            "values": _numbers(line.values),
        }
        for line in graph.lines
    ]
    return {
        "kind": graph.kind,
        "title": graph.title,
        "unit": ", ".join(filter(None, (graph.unit, graph.detail))),
        "times": shared.get(id(graph.times_s)) or _times(graph.times_s),
        "lines": lines,
        "path": graph.path,
        "limit": numerals.rounded(graph.limit, _SIGNIFICANT),
        "texts": graph.texts,
        "underflows": _times(graph.underflows_s),
    }


def _numbers(values: Array) -> Numbers:
    return [numerals.rounded(value, _SIGNIFICANT) for value in values.tolist()]


def _times(instants: Array) -> list[float]:
    return [_time(at) for at in instants.tolist()]


def _spans(spans: Array) -> list[list[float]]:
    return [[_time(begin), _time(end)] for begin, end in spans.tolist()]


def _time(value: float) -> float:
    """An instant or a length in seconds, to the millisecond: significant digits would blur the end of a long run."""
    return round(value, 3)
