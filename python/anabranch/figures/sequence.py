"""Sequence plots and plots of round trips, per subflow, as tcptrace draws them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from anabranch.figures import panels, stack, style
from anabranch.figures.stack import Happened, Panel
from anabranch.results import sequence
from anabranch.results.capturefile import Integers
from anabranch.results.recording import Array
from anabranch.results.sequence import Sequences, Subflow

MOST_SUBFLOWS = 8
"""More subflows than this are not drawn above each other."""

# None is the colour of a path.
RETRANSMISSION, COPY, SACK, ACKNOWLEDGMENT, WINDOW = "#c8102e", style.INK, "#7b5ea7", style.MUTED, "#b8860b"
_MB = 1e6
_MS = 1e3
# What falls on the same place of a grid this fine is drawn once: the pixels of a panel, and of one of round trips.
_COLUMNS, _ROWS, _ROUND_TRIP_ROWS = 1200, 700, 200
# What is rare must be seen in a long run, too.
_WIDTH, _RARE_WIDTH = 1.2, 2.0
_HEIGHT, _ROUND_TRIP_HEIGHT = 3.6, 2.0
_HEADROOM = 1.04


def draw_sequences(
    sequences: Sequences, *, title: str, subtitle: str, happened: Happened, span_s: float, paths: Sequence[str]
) -> Figure:
    """The sequence plot of a session: a panel per subflow, and one of the data of the whole connection.

    Args:
        sequences: Those of the session, with at least one subflow.
        title: The first line, in bold.
        subtitle: The lines below it.
        happened: Scheduled changes of the network, and how the session ended.
        span_s: The time that is drawn.
        paths: The paths of the scenario, which decide on colours.
    """
    drawn, styles = sequences.subflows[:MOST_SUBFLOWS], style.path_styles(paths)
    content = []
    for each, name in zip(drawn, sequence.names(sequences.subflows), strict=False):
        colour = styles[each.path].colour
        drawing = partial(_sequence, subflow=each, span_s=span_s, colour=colour)
        content.append(Panel(f"{sequence.sequence_title(name)} (MB)", _HEIGHT, drawing))
    if sequences.data:
        content.append(
            Panel(f"{sequence.DATA_TITLE} (MB)", _HEIGHT, partial(_data, sequences, span_s=span_s, styles=styles))
        )
    with style.applied():
        return stack.draw(
            content,
            title=title,
            subtitle=subtitle + _left_out(sequences),
            happened=happened,
            span_s=span_s,
            legend=_legend(drawn),
        )


def draw_round_trips(
    sequences: Sequences, *, title: str, subtitle: str, happened: Happened, span_s: float, paths: Sequence[str]
) -> Figure:
    """The samples of the round trip of a session, a panel per subflow with the same scale; arguments as above."""
    drawn, styles = sequences.subflows[:MOST_SUBFLOWS], style.path_styles(paths)
    top = max((float(each.rtts_s[:, 1].max(initial=0.0)) for each in drawn), default=0.0) * _MS * _HEADROOM or 1.0
    content = [
        Panel(
            f"{sequence.round_trips_title(name)} (ms)",
            _ROUND_TRIP_HEIGHT,
            partial(_round_trips, subflow=each, top=top, colour=styles[each.path].colour, span_s=span_s),
        )
        for each, name in zip(drawn, sequence.names(sequences.subflows), strict=False)
    ]
    with style.applied():
        return stack.draw(
            content,
            title=title,
            subtitle=subtitle + _left_out(sequences),
            happened=happened,
            span_s=span_s,
            legend=(),
        )


def _left_out(sequences: Sequences) -> str:
    of_all = len(sequences.subflows)
    return f"; the first {MOST_SUBFLOWS} of {of_all} subflows" if of_all > MOST_SUBFLOWS else ""


def _legend(drawn: Sequence[Subflow]) -> list[Artist]:
    """What occurs."""
    occurs = {
        ("retransmission", RETRANSMISSION): any(_of_kind(each, sequence.RETRANSMISSION).any() for each in drawn),
        ("copy", COPY): any(_of_kind(each, sequence.COPY).any() for each in drawn),
        ("SACK", SACK): any(len(each.sacked_s) for each in drawn),
        ("acknowledged", ACKNOWLEDGMENT): True,
        ("window", WINDOW): True,
    }
    return [Line2D([], [], color=colour, label=name) for (name, colour), there in occurs.items() if there]


def _of_kind(subflow: Subflow, kind: str) -> Array:
    return np.asarray(subflow.kinds == sequence.KINDS.index(kind))


def _sequence(axes: Axes, *, subflow: Subflow, span_s: float, colour: str) -> None:
    axes.set_ylim(0.0, float(subflow.ends.max(initial=1)) / _MB * _HEADROOM)
    for name, values, line_colour in (
        ("window", subflow.window_ends, WINDOW),
        ("acknowledged", subflow.acknowledged, ACKNOWLEDGMENT),
    ):
        _steps(axes, subflow.acknowledged_s, values, line_colour, name, span_s)
    _bars(axes, (subflow.sacked_s, subflow.sacked[:, 0], subflow.sacked[:, 1]), SACK, "sack", span_s)
    colours = (colour, RETRANSMISSION, COPY)
    for kind, ink in zip(sequence.KINDS, colours, strict=True):
        own = _of_kind(subflow, kind)
        _bars(axes, (subflow.sent_s[own], subflow.begins[own], subflow.ends[own]), ink, kind, span_s)


def _data(
    sequences: Sequences, axes: Axes, *, span_s: float, styles: Mapping[str, style.PathStyle]
) -> list[panels.Label]:
    """The data of the connection, each segment in the colour of its path; returns labels that name the paths."""
    highest = max((int((s.data_begins + s.ends - s.begins).max(initial=1)) for s in sequences.subflows), default=1)
    axes.set_ylim(0.0, highest / _MB * _HEADROOM)
    for acked in sequences.data:
        _steps(axes, acked.times_s, acked.acknowledged, ACKNOWLEDGMENT, "data-acknowledged", span_s)
    ends: dict[str, list[float]] = {}
    for subflow in sequences.subflows:
        own = subflow.data_begins >= 0
        begins, lengths = subflow.data_begins[own], (subflow.ends - subflow.begins)[own]
        _bars(axes, (subflow.sent_s[own], begins, begins + lengths), styles[subflow.path].colour, "data", span_s)
        ends.setdefault(subflow.path, []).append(float(begins.max(initial=0)) / _MB)
    return [(max(heights), path, styles[path].colour) for path, heights in ends.items()]


def _round_trips(axes: Axes, *, subflow: Subflow, top: float, colour: str, span_s: float) -> None:
    axes.set_ylim(0.0, top)
    times, samples = subflow.rtts_s[:, 0], subflow.rtts_s[:, 1] * _MS
    distinct = _distinct(times / span_s * _COLUMNS, samples / top * _ROUND_TRIP_ROWS)
    axes.plot(
        times[distinct],
        samples[distinct],
        linestyle="none",
        marker=".",
        markersize=1.6,
        color=colour,
        gid="round-trips",
    )


def _distinct(*coordinates: Any) -> Integers:
    """The first of those that fall on the same place of the grid, in order."""
    places = np.floor(np.stack(coordinates, axis=1))
    _, found = np.unique(places, axis=0, return_index=True)
    return np.sort(found)


def _steps(axes: Axes, times: Array, values: Integers, colour: str, gid: str, span_s: float) -> None:
    """A line of steps in MB, with those points that can be told apart; it begins where it is known."""
    heights, top = values / _MB, axes.get_ylim()[1]
    # A value that stays does so until the next one.
    found = _distinct(times / span_s * _COLUMNS, heights / top * _ROWS)
    axes.plot(times[found], heights[found], color=colour, linewidth=0.8, drawstyle="steps-post", zorder=1.9, gid=gid)


def _bars(axes: Axes, what: tuple[Array, Integers, Integers], colour: str, gid: str, span_s: float) -> None:
    """Vertical bars from the first byte to the last, at their instants, with those that can be told apart."""
    times, begins, ends = what
    if not len(times):
        return
    scale = _ROWS / (axes.get_ylim()[1] * _MB)
    found = _distinct(times / span_s * _COLUMNS, begins * scale, ends * scale)
    x, low, high = times[found], begins[found] / _MB, ends[found] / _MB
    lines = np.stack([np.stack([x, low], axis=1), np.stack([x, high], axis=1)], axis=1)
    rare = gid in (sequence.RETRANSMISSION, sequence.COPY)
    collection = LineCollection(
        list(lines),
        colors=colour,
        linewidths=_RARE_WIDTH if rare else _WIDTH,
        # A bar shorter than a pixel is a dot.
        capstyle="projecting",
        zorder=2.2 if rare else 2.0,
        gid=gid,
    )
    axes.add_collection(collection, autolim=False)
