"""Reports: one self-contained HTML page of sections, charts, sessions and their timelines.

What a report says is a `Report`, made of plain data; `write` makes the page. Two modules fill one in: from
a store of a sweep (``stored``) and from run folders (``folders``). Others, such as those of papers, make their own
sections and use the same page.
"""

from anabranch.report.document import (
    Chart,
    Code,
    Column,
    Grid,
    IntervalChart,
    Item,
    Line,
    LineChart,
    Mark,
    Report,
    Section,
    Sessions,
    ShareChart,
    Statement,
    Statements,
    Text,
)
from anabranch.report.page import render, write
from anabranch.report.timelines import Timeline

__all__ = [
    "Chart",
    "Code",
    "Column",
    "Grid",
    "IntervalChart",
    "Item",
    "Line",
    "LineChart",
    "Mark",
    "Report",
    "Section",
    "Sessions",
    "ShareChart",
    "Statement",
    "Statements",
    "Text",
    "Timeline",
    "render",
    "write",
]
