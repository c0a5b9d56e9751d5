"""The figure of an explanation: what each path's link went to over time, with the player's buffer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from anabranch.figures import panels, stack, style
from anabranch.figures.stack import Panel
from anabranch.results import linktime, series
from anabranch.results.linktime import LinkTime
from anabranch.results.recording import Array, Mark, SessionRecording
from anabranch.wording import causes

OTHERS = "others"
_MOST_CAUSES = 7
"""More causes than this are summed: more fillings could not be distinguished."""

_MBPS = 1e-6
_WHITE = "#ffffff"
_VERMILION, _ORANGE, _BLUE, _SKY, _GREEN, _PURPLE, _BROWN = (
    *("#D55E00", "#E69F00", "#0072B2", "#56B4E9", "#009E73", "#CC79A7", "#8C6D31"),
)
# One hue for causes of one kind (losses, windows, choices of the sender, the link); hatches tell these apart.
FILLINGS = {
    # Pale, so that what was lost is seen first; no grey, which is that of stalls.
    linktime.USEFUL: ("#cfe0ee", ""),
    "loss-random": (_VERMILION, ""),
    "loss-outage": (_VERMILION, "////"),
    "loss-queue": (_ORANGE, ""),
    "reordering": (_ORANGE, "////"),
    "receive-window": (_BLUE, ""),
    "send-buffer": (_BLUE, "////"),
    linktime.PLAYER: (_BLUE, "...."),
    "reader": (_BLUE, "xxxx"),
    "window": (_SKY, ""),
    "start-up": (_SKY, "////"),
    "idle-decay": (_SKY, "...."),
    "pacing": (_SKY, "xxxx"),
    "scheduler": (_GREEN, ""),
    "policy": (_GREEN, "////"),
    "backup": (_GREEN, "...."),
    "not-joined": (_GREEN, "xxxx"),
    "link-slow": (_PURPLE, ""),
    "shared": (_PURPLE, "////"),
    "link-down": ("#4a4a4a", ""),
    "last-bytes": (_BROWN, ""),
    "request": (_BROWN, "////"),
    "application": (_BROWN, "xxxx"),
    "copies": (_BROWN, "...."),
    "unexplained": (_WHITE, "xxxx"),
    OTHERS: (_WHITE, "...."),
}
"""The colour and the hatches of each cause."""


@dataclass(frozen=True)
class Shown:
    """What an explanation is drawn from.

    Attributes:
        link_time: The link time of the session, by path and cause.
        recording: The session over time; none where it was not recorded.
        marks: Scheduled changes of the network.
        paths: The session's paths in their order.
    """

    link_time: LinkTime
    recording: SessionRecording | None
    marks: Sequence[Mark]
    paths: Sequence[str]


def draw_causes(shown: Shown, *, title: str, subtitle: str, shares: Mapping[str, float]) -> Figure:
    """Draws link time by cause.

    Args:
        shown: What to draw.
        title: The first line, in bold.
        subtitle: The lines below it.
        shares: The share of each cause in what is explained, the largest first: it decides which are told apart.

    Returns:
        A figure, as wide as a page's text.
    """
    begin, end = float(shown.link_time.edges_s[0]), float(shown.link_time.edges_s[-1])
    named = [cause for cause in shares if cause != linktime.PLAYER][:_MOST_CAUSES]
    content = []
    if shown.recording is not None and shown.recording.plays:
        content.append(Panel("Playout buffer (s)", 1.6, partial(_buffer, shown.recording, begin, end)))
    there = [path for path in shown.paths if path in shown.link_time.rates_bps]
    rates = {path: _summed(shown.link_time.rates_bps[path], named) for path in there}
    for path in there:
        drawing = partial(_causes, edges=shown.link_time.edges_s, rates=rates[path])
        content.append(Panel(f"Link of {path} while a response was due (Mb/s)", 2.4, drawing))
    drawn = [cause for cause in (linktime.USEFUL, *named, OTHERS) if any(cause in each for each in rates.values())]
    session = None if shown.recording is None else series.of_session(shown.recording)
    with style.applied():
        return stack.draw(
            content,
            title=title,
            subtitle=subtitle,
            happened=([mark for mark in shown.marks if begin <= mark.at_s <= end], None),
            span_s=end - begin,
            legend=_legend(drawn, shown.recording, begin, end),
            behind=None if session is None else (lambda axes: panels.stalls(axes, session)),
            begin_s=begin,
        )


def _summed(rates: Mapping[str, Array], named: Sequence[str]) -> dict[str, Array]:
    """The rates in Mb/s from the bottom to the top: new data, the named causes, and the sum of the others."""
    found = {cause: rates[cause] * _MBPS for cause in (linktime.USEFUL, *named) if cause in rates}
    others = [rate for cause, rate in rates.items() if cause not in found and cause != linktime.PLAYER]
    return {**found, OTHERS: np.sum(others, axis=0) * _MBPS} if others else found


def _filling(cause: str) -> dict[str, Any]:
    """How the area of a cause is filled, in a panel and in the legend."""
    colour, hatch = FILLINGS[cause]
    edge = "white" if hatch and colour != _WHITE else style.MUTED
    return {"facecolor": colour, "hatch": hatch, "edgecolor": edge, "linewidth": 0.0}


def _causes(axes: Axes, *, edges: Array, rates: Mapping[str, Array]) -> None:
    below = np.zeros(len(edges))
    for cause, rate in rates.items():
        # A step ends where the next one begins, and the last one at the last edge.
        above = below + np.append(rate, rate[-1:])
        axes.fill_between(
            edges,
            below,
            above,
            step="post",
            zorder=1.0,
            gid=f"cause-{cause}",
            **_filling(cause),
        )
        below = above
    axes.set_ylim(0.0, max(float(below.max(initial=0.0)) * 1.04, 1e-3))


def _buffer(recording: SessionRecording, begin: float, end: float, axes: Axes) -> None:
    within = (recording.times_s >= begin) & (recording.times_s <= end)
    panels.playout_buffer(axes, recording.times_s[within], recording.buffer_s[within])


def _legend(drawn: Sequence[str], recording: SessionRecording | None, begin: float, end: float) -> list[Artist]:
    handles: list[Artist] = []
    for cause in drawn:
        name = "other causes" if cause == OTHERS else causes.SHORT[cause]
        handles.append(Patch(label=name, **_filling(cause)))
    if recording is not None and any(a < end and b > begin for a, b in recording.stalls_s.tolist()):
        handles.append(panels.stall_key())
    return handles
