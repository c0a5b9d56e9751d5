"""Labels of events above a figure: merged, staggered, or numbered, so that none covers another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from anabranch.figures import style
from anabranch.results.recording import Mark

SIZE = 8.0
"""Of the letters, in points."""

ROW_IN = 0.155
"""The height of a row of labels in inches."""

# More rows of labels than this push the panels away from the title; numbers take less room.
_MOST_ROWS = 3
# Between two labels of a row, and between a label and a line, in inches.
_GAP_IN = 0.07
_OFFSET_IN = 0.03
_NUMBERS_SIZE = 7.5
# The explanation of numbers is at most this many lines long; scenarios may have thousands of events.
_MOST_LINES = 6

DASHED = (0, (4, 2))


@dataclass(frozen=True)
class Ending:
    """How a session ended that did not come to its end.

    Attributes:
        at_s: When.
        text: How, in a few words.
    """

    at_s: float
    text: str


@dataclass(frozen=True)
class Label:
    """A label of an instant.

    Attributes:
        at_s: The instant.
        text: What stands there.
        strong: Whether it is the session's end rather than an event.
    """

    at_s: float
    text: str
    strong: bool = False


@dataclass(frozen=True)
class _Placed:
    label: Label
    row: int
    begin_in: float
    end_in: float
    left: bool
    """Whether the text begins at its line, rather than ends there."""

    def covers(self, at_in: float) -> bool:
        return self.begin_in - _OFFSET_IN < at_in < self.end_in + _OFFSET_IN


@dataclass(frozen=True)
class Strip:
    """Labels with their places.

    Attributes:
        span_s: The time that the width shows.
        rows: How many rows they take.
        placed: The labels, but for those of a crowd that found no room.
    """

    span_s: float
    rows: int
    placed: Sequence[_Placed]

    @property
    def height_in(self) -> float:
        """The height of all rows in inches."""
        return self.rows * ROW_IN

    def draw(self, axes: Axes) -> None:
        """Draws the labels into axes of their own, right above a panel, with their lines down to it."""
        axes.set_axis_off()
        axes.set_ylim(self.rows, 0)
        # Not a share of the panel's axis, which would take away its ticks.
        axes.set_xlim(0.0, self.span_s)
        for placed in self.placed:
            label = placed.label
            axes.plot([label.at_s] * 2, [placed.row + 0.1, self.rows], clip_on=False, **_line(label.strong))
            axes.annotate(
                label.text,
                (label.at_s, placed.row + 0.5),
                xytext=((1 if placed.left else -1) * _OFFSET_IN * 72.0, 0),
                textcoords="offset points",
                ha="left" if placed.left else "right",
                va="center",
                fontsize=SIZE,
                fontweight="bold" if label.strong else "normal",
                annotation_clip=False,
                gid="event-label",
            )


def _line(strong: bool) -> dict[str, Any]:
    """The line of an event, or of the end."""
    if strong:
        return {"color": style.INK, "linewidth": 1.6, "linestyle": "-"}
    return {"color": style.INK, "linewidth": 0.9, "linestyle": DASHED}


def add_strip(figure: Figure, panel: Axes, strip: Strip) -> None:
    """Draws labels into the room above a panel."""
    if not strip.rows:
        return
    place, height_in = panel.get_position(), float(figure.get_figheight())
    axes = figure.add_axes((place.x0, place.y1, place.width, strip.height_in / height_in), gid="events")
    strip.draw(axes)


def add_explanation(figure: Figure, lines: Sequence[str], left_in: float) -> None:
    """Writes what the numbers stand for at the lower edge of a figure."""
    width_in, height_in = figure.get_size_inches()
    for position, line in enumerate(lines):
        y = (0.06 + (len(lines) - position - 0.5) * ROW_IN) / height_in
        figure.text(left_in / width_in, y, line, fontsize=_NUMBERS_SIZE, color=style.MUTED, va="center")


def merged(marks: Sequence[Mark]) -> list[Mark]:
    """The events with those of the same instant as one; what several links have in common is said once."""
    texts: dict[float, list[str]] = {}
    for mark in marks:
        texts.setdefault(mark.at_s, []).append(mark.text)
    return [Mark(at, ", ".join(dict.fromkeys(found))) for at, found in sorted(texts.items())]


def strips(columns: Sequence[tuple[Sequence[Mark], Ending | None]], span_s: float, width_in: float) -> list[Strip]:
    """The labels of each column of a figure: as text, or as numbers where the text of one column finds no room.

    Args:
        columns: Events and end of each.
        span_s: The time that a column shows.
        width_in: The width of a column in inches.
    """
    events = [merged(marks) for marks, _ in columns]
    ends = [[Label(end.at_s, end.text, strong=True)] if end else [] for _, end in columns]
    texts = [[Label(m.at_s, m.text) for m in own] + end for own, end in zip(events, ends, strict=True)]
    found = [_arranged(tuple(own), span_s, width_in) for own in texts]
    if all(len(strip.placed) == len(own) for strip, own in zip(found, texts, strict=True)):
        return found
    numbers = {mark: str(number) for number, mark in enumerate(_distinct(events), start=1)}
    short = [[Label(m.at_s, numbers[m]) for m in own] + end for own, end in zip(events, ends, strict=True)]
    return [_arranged(tuple(own), span_s, width_in) for own in short]


def explanation(columns: Sequence[Sequence[Mark]], drawn: Sequence[Strip], width_in: float) -> list[str]:
    """What the numbers stand for, in lines of at most this width; nothing where the labels are text."""
    distinct = _distinct([merged(marks) for marks in columns])
    known = {mark.text for mark in distinct}
    if any(p.label.text in known for strip in drawn for p in strip.placed) or not distinct:
        return []
    entries = [f"{n} {m.text} ({m.at_s:g} s)" for n, m in enumerate(distinct, start=1)]
    lines: list[str] = []
    for position, entry in enumerate(entries):
        rest = f"and {len(entries) - position} more"
        longer = f"{lines[-1]}   {entry}" if lines else entry
        room = width_in - (style.text_width_in(f"   {rest}", _NUMBERS_SIZE) if len(lines) == _MOST_LINES else 0.0)
        if lines and style.text_width_in(longer, _NUMBERS_SIZE) <= room:
            lines[-1] = longer
        elif len(lines) < _MOST_LINES:
            lines.append(entry)
        else:
            lines[-1] += f"   {rest}"
            break
    return lines


def _distinct(columns: Iterable[Sequence[Mark]]) -> list[Mark]:
    return sorted({mark for own in columns for mark in own}, key=lambda mark: (mark.at_s, mark.text))


@lru_cache(maxsize=16)
def _arranged(labels: tuple[Label, ...], span_s: float, width_in: float) -> Strip:
    """Puts each label into the highest row where it covers nothing; leaves out what finds no room."""
    placed: list[_Placed] = []
    # The end is more important than any event.
    for label in sorted(labels, key=lambda label: (not label.strong, label.at_s)):
        at_in = min(max(label.at_s / span_s, 0.0), 1.0) * width_in
        width = style.text_width_in(label.text, SIZE, bold=label.strong) + _OFFSET_IN
        sides = [(at_in, at_in + width, True), (at_in - width, at_in, False)]
        within = [side for side in sides if side[0] >= 0.0 and side[1] <= width_in]
        tries = (_Placed(label, row, *side) for row in range(_MOST_ROWS) for side in within)
        if fitting := next((one for one in tries if _fits(one, at_in, placed, span_s, width_in)), None):
            placed.append(fitting)
    return Strip(span_s, max((p.row + 1 for p in placed), default=0), tuple(placed))


def _fits(one: _Placed, at_in: float, placed: Sequence[_Placed], span_s: float, width_in: float) -> bool:
    for other in placed:
        their_line = other.label.at_s / span_s * width_in
        apart = one.end_in + _GAP_IN <= other.begin_in or other.end_in + _GAP_IN <= one.begin_in
        if one.row == other.row and not apart:
            return False
        # A line goes down through the rows below its label.
        if other.row > one.row and other.covers(at_in) and at_in != their_line:
            return False
        if one.row > other.row and one.covers(their_line) and at_in != their_line:
            return False
    return True
