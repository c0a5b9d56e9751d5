"""The picture of one session: what the paths carried and what the viewer saw, over one time axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import get_args

from matplotlib.figure import Figure

from anabranch.figures import labels, panels, stack, style
from anabranch.figures.stack import Panel
from anabranch.results import series
from anabranch.results.recording import Mark, SessionRecording
from anabranch.results.series import SessionSeries
from anabranch.results.timeline import Kind

_HEIGHTS: Mapping[Kind, float] = {
    "bitrate": 2.6,
    "buffer": 2.0,
    "throughput": 1.3,
    "window": 2.4,
    "discards": 1.2,
    "switches": 1.2,
    "note": 1.5,
}


def draw_session(
    recording: SessionRecording,
    *,
    title: str,
    subtitle: str,
    marks: Sequence[Mark] = (),
    ending: labels.Ending | None = None,
    paths: Sequence[str] = (),
) -> Figure:
    """Draws one session.

    Args:
        recording: What to draw.
        title: The first line, in bold.
        subtitle: The second line.
        marks: Scheduled changes of the network.
        ending: How it ended, if not of its own.
        paths: The paths of the scenario, which decide on colours; those of the session where absent.

    Returns:
        A figure, as wide as a page's text.
    """
    with style.applied():
        styles = style.path_styles(paths or [path.path for path in recording.paths])
        session = series.of_session(recording)
        return stack.draw(
            _panels(session, styles),
            title=title,
            subtitle=subtitle,
            happened=(marks, ending),
            span_s=float(recording.times_s[-1]) if len(recording.times_s) else 1.0,
            legend=panels.legend([recording]),
            behind=lambda axes: panels.stalls(axes, session),
        )


def _panels(session: SessionSeries, styles: Mapping[str, style.PathStyle]) -> list[Panel]:
    rows = panels.rows([session], _HEIGHTS, styles, shades=" and resolution")
    found = [Panel(row.title, row.height, partial(row.draw, number=0, styles=styles)) for row in rows]
    if any(len(path.disabled_s) for path in session.paths):
        in_use = Panel(
            "Paths in use", 0.35 * len(session.paths), partial(panels.paths_in_use, session=session, styles=styles)
        )
        kinds = get_args(Kind)
        found.insert(sum(kinds.index(row.kind) < kinds.index("window") for row in rows), in_use)
    return found
