"""What a report says: plain data, without a word of how it looks.

A report is a list of sections, a section a list of blocks. Pages and the figures of papers are made of the same data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from anabranch.report.timelines import Timeline

Value = str | float | int | bool | None
"""What stands in a table."""

Tone = Literal["good", "bad", "same", "open", "plain"]
"""How a verdict is coloured: better or reproduced; worse or not reproduced; no difference; undecided; none of these."""


@dataclass(frozen=True)
class Text:
    """Paragraphs.

    Attributes:
        paragraphs: Plain text each.
        quiet: Whether it is a remark, in smaller letters.
    """

    paragraphs: Sequence[str]
    quiet: bool = False


@dataclass(frozen=True)
class Statement:
    """A sentence with its verdict.

    Attributes:
        verdict: In one or two words, such as ``better`` or ``reproduced``.
        text: The sentence.
        tone: How the verdict is coloured.
        detail: How it came about: values with intervals, the criterion.
    """

    verdict: str
    text: str
    tone: Tone = "plain"
    detail: str = ""


@dataclass(frozen=True)
class Statements:
    """Statements below each other."""

    items: Sequence[Statement]


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        name: Its head, in words.
        unit: Its unit; empty for none, and for text.
        number: Whether it is aligned as numbers are.
        key: What files and commands call it, such as a key of ``metrics.json``; empty where that is the name.
    """

    name: str
    unit: str = ""
    number: bool = False
    key: str = ""


@dataclass(frozen=True)
class Mark:
    """A text of a table with a colour.

    Attributes:
        text: The text.
        tone: The colour.
    """

    text: str
    tone: Tone


@dataclass(frozen=True)
class Code:
    """A text that is shown as it is, on demand, such as a plan.

    Attributes:
        title: What it is.
        text: The text.
    """

    title: str
    text: str


@dataclass(frozen=True)
class Grid:
    """A table that is read as it stands.

    Attributes:
        columns: The columns.
        rows: Their texts, row by row.
        caption: What it shows.
        name: What its exported files are called; it is not exported where this is empty.
        folded: Whether it is shown only on demand, because it repeats what a chart shows.
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[str | Mark]]
    caption: str = ""
    name: str = ""
    folded: bool = False


@dataclass(frozen=True)
class Line:
    """A line of a chart, or its points where the axis has categories.

    Attributes:
        name: In the legend.
        x: Ascending.
        y: ``None`` where there is no value.
        low: The lower ends of intervals; empty without.
        high: The upper ends.
        colour: Its place in the palette.
        dash: Its place in the list of dashes; 0 is solid.
        labels: The condition that it shows: keys of `Sessions.labels` with values.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float | None]
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()
    colour: int = 0
    dash: int = 0
    labels: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class LineChart:
    """Lines over a common axis.

    Attributes:
        title: What it shows.
        x_label: With its unit.
        y_label: With its unit.
        lines: The lines.
        stepped: Whether values hold until the next one, as those of a distribution do.
        categories: Texts for x = 0, 1, ...; empty where x is a number. Points of categories are not joined.
        logarithmic: Whether the x axis is; all of x is above zero then.
        view: The part of the x axis that is shown at first; all of it where absent.
        outside: The share of the values that is outside of the view.
        note: What should be known of it.
        name: What its exported file is called.
        axis: The key of the x axis: a label of `Sessions`, or of a distribution its metric.
        where: What all lines have in common: keys of `Sessions.labels` with values.
    """

    title: str
    x_label: str
    y_label: str
    lines: Sequence[Line]
    stepped: bool = False
    categories: Sequence[str] = ()
    logarithmic: bool = False
    view: tuple[float, float] | None = None
    outside: float = 0.0
    note: str = ""
    name: str = ""
    axis: str = ""
    where: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class Item:
    """A row of a chart of intervals.

    Attributes:
        label: What it is of.
        estimate: The value.
        low: The lower end of its interval.
        high: The upper end.
        verdict: In a word.
        tone: Its colour.
        note: What is shown with its value.
        labels: The condition that it shows: keys of `Sessions.labels` with values.
    """

    label: str
    estimate: float
    low: float
    high: float
    verdict: str = ""
    tone: Tone = "plain"
    note: str = ""
    labels: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class IntervalChart:
    """Estimates with intervals, a row each.

    Attributes:
        title: What it shows.
        x_label: With its unit.
        short_label: The same where there is little room, below the title.
        items: The rows, from top to bottom.
        margin: Half the width of the shaded band of no practical meaning around zero; ``None`` without.
        note: What should be known of it.
        name: What its exported file is called.
        where: What all rows have in common: keys of `Sessions.labels` with values.
        headed: Whether the heading of its section says already what the title does, which the page then leaves out.
    """

    title: str
    x_label: str
    short_label: str
    items: Sequence[Item]
    margin: float | None = None
    note: str = ""
    name: str = ""
    where: Mapping[str, Value] = field(default_factory=dict)
    headed: bool = False


@dataclass(frozen=True)
class Tile:
    """A place of a map.

    Attributes:
        text: What stands in it; empty where nothing is known.
        tone: Its colour.
        strength: How strong the colour is, from 0 to 1.
        note: What is shown with it: the difference with its interval.
    """

    text: str
    tone: Tone
    strength: float
    note: str = ""


@dataclass(frozen=True)
class MapChart:
    """Differences over two axes.

    Attributes:
        title: What it shows.
        x_label: The axis from left to right.
        y_label: The axis from top to bottom.
        columns: The values from left to right.
        rows: The values from top to bottom.
        tiles: Row by row.
        note: What should be known of it.
        name: What its exported file is called.
    """

    title: str
    x_label: str
    y_label: str
    columns: Sequence[str]
    rows: Sequence[str]
    tiles: Sequence[Sequence[Tile]]
    note: str = ""
    name: str = ""


@dataclass(frozen=True)
class Filling:
    """What the pieces of a bar mean.

    Attributes:
        name: In the legend.
        colour: As a hexadecimal number with a hash.
        hatch: As matplotlib has it; empty without.
        sum: Whether it is a sum of what is too small to be named.
    """

    name: str
    colour: str
    hatch: str = ""
    sum: bool = False


@dataclass(frozen=True)
class Piece:
    """A piece of a bar.

    Attributes:
        filling: Its place in the list of fillings.
        share: The part of the whole that it is, from 0 to 1.
        text: What it is, in words.
    """

    filling: int
    share: float
    text: str


@dataclass(frozen=True)
class Bar:
    """A whole with its parts.

    Attributes:
        label: What it is of.
        pieces: Its parts; the first one is what is wanted, and the others are in the order in which they are drawn.
        note: What should be known of it.
        span: When it was, in seconds since the run began; ``None`` where it has no place in time.
    """

    label: str
    pieces: Sequence[Piece]
    note: str = ""
    span: tuple[float, float] | None = None


@dataclass(frozen=True)
class ShareChart:
    """Wholes with their parts, a bar each.

    Attributes:
        title: What it shows.
        bars: The bars, from top to bottom.
        fillings: What pieces point to.
        note: What should be known of it.
        name: What its exported file is called.
    """

    title: str
    bars: Sequence[Bar]
    fillings: Sequence[Filling]
    note: str = ""
    name: str = ""


Chart = LineChart | IntervalChart | MapChart
Block = Text | Statements | Grid | Code | LineChart | IntervalChart | MapChart | ShareChart


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Attributes:
        title: Its heading.
        blocks: What it has.
        parts: Its parts, with headings of their own.
    """

    title: str
    blocks: Sequence[Block] = ()
    parts: Sequence[Section] = ()


@dataclass(frozen=True)
class Sessions:
    """The table that sorts and filters, and opens timelines.

    Attributes:
        labels: The columns that say which session it is, and their values, row by row within each.
        numbers: The columns of metrics, likewise.
        commands: For each row the arguments of the command that repeats it, quoted for a shell; empty if unknown.
        timelines: For each row the position in `Report.timelines`; ``None`` without one.
        errors: For each row why its run failed; ``None`` if it did not.
        opened: The rows that are open from the beginning.
        note: What should be known of it.
    """

    labels: Sequence[tuple[Column, Sequence[Value]]]
    numbers: Sequence[tuple[Column, Sequence[float | None]]]
    commands: Sequence[Sequence[str]] = ()
    timelines: Sequence[int | None] = ()
    errors: Sequence[str | None] = ()
    opened: Sequence[int] = ()
    note: str = ""


@dataclass(frozen=True)
class Report:
    """A report.

    Attributes:
        name: What it is of, such as the plan's name.
        question: What it answers.
        lead: What was done, in a sentence or two.
        sections: Its parts, before the sessions.
        sessions: The table of sessions, if there is one.
        timelines: The timelines that the table opens.
        appendix: Parts after the sessions, such as the plan.
        provenance: What it was made from and with: names and values.
    """

    name: str
    question: str
    lead: str = ""
    sections: Sequence[Section] = ()
    sessions: Sessions | None = None
    timelines: Sequence[Timeline] = ()
    appendix: Sequence[Section] = ()
    provenance: Sequence[tuple[str, str]] = ()
