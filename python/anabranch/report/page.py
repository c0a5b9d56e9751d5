"""The page: one HTML file with its styles, its program, its charting library and its data, which loads nothing.

Text and tables are in the HTML itself, so that they print, can be searched, and are there without JavaScript. Charts,
the table of sessions and the timelines are drawn by ``assets/*.js`` from one JSON text.
"""

from __future__ import annotations

import base64
import json
import math
import re
import zlib
from collections.abc import Iterator, Sequence
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

from anabranch.report import shares
from anabranch.report.document import (
    Block,
    Chart,
    Code,
    Column,
    Grid,
    IntervalChart,
    Line,
    LineChart,
    MapChart,
    Mark,
    Report,
    Section,
    Sessions,
    ShareChart,
    Statement,
    Statements,
    Text,
    Tile,
    Value,
)
from anabranch.system import outputs
from anabranch.wording import numerals

_STYLES = ("uPlot.min.css", "page.css")
# Where page.css needs the dark colours: where the system asks for them, and where the reader does.
_DARK = "/* dark.css */"
_PROGRAMS = (
    "uPlot.iife.min.js",
    "brush.js",
    "charts.js",
    "export.js",
    "shares.js",
    "timeline.js",
    "sessions.js",
    "page.js",
)
# Decimals of numbers on a screen.
_SIGNIFICANT = 6
_LARGEST = 2**53


def write(report: Report, path: Path) -> Path:
    """Writes the page of a report; one that is there is replaced at the end.

    Args:
        report: What it says.
        path: The file.

    Returns:
        The file.

    Raises:
        OSError: It cannot be written.
    """
    text = render(report)
    with outputs.writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with outputs.replacing(path) as new:
            new.write_text(text, encoding="utf-8")
    return path


def render(report: Report) -> str:
    """The page as a text; the same report gives the same text."""
    page = _Page()
    body = "\n".join(page.body(report))
    styles = "\n".join(_asset(name) for name in _STYLES).replace(_DARK, _asset("dark.css"))
    licence = _asset("uPlot.LICENSE").strip()
    # The end of a script must not occur within it.
    programs = "\n".join(f"<script>{_asset(name)}</script>" for name in _PROGRAMS)
    data = json.dumps(page.data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # Within a script "<!--" and "<script" change where it ends, and not only "</script".
    data = data.replace("<", "\\u003c")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<title>{escape(report.name)}: {escape(report.question)}</title>
<link rel="icon" href="data:,">
<style>
{styles}
</style>
</head>
<body>
{body}
<script type="application/json" id="data">{data}</script>
<!-- uPlot, which draws the charts, is used under this licence:

{licence}
-->
{programs}
</body>
</html>
"""


# A page that cannot load anything does not, whatever a text in it says.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def _asset(name: str) -> str:
    return (resources.files("anabranch.report") / "assets" / name).read_text(encoding="utf-8")


class _Page:
    """Collects what the page's program needs while the HTML is made."""

    def __init__(self) -> None:
        self.charts: list[dict[str, Any]] = []
        self.data: dict[str, Any] = {"charts": self.charts}

    def body(self, report: Report) -> Iterator[str]:
        sections = list(report.sections)
        titles = [s.title for s in sections] + (["Sessions"] if report.sessions else [])
        titles += [s.title for s in report.appendix] + ["Provenance"]
        yield self._head(report, titles)
        yield "<main>"
        for section in sections:
            yield from self._section(section, 2)
        if report.sessions is not None:
            yield from self._sessions(report.sessions, report)
        for section in report.appendix:
            yield from self._section(section, 2)
        yield _provenance(report.provenance)
        yield "</main>"

    def _head(self, report: Report, titles: Sequence[str]) -> str:
        links = "".join(f'<a href="#{_anchor(title)}">{escape(title)}</a>' for title in titles)
        lead = f'<p class="lead">{escape(report.lead)}</p>' if report.lead else ""
        return f"""<header>
<a class="skip" href="#{_anchor(titles[0])}">Skip to the content</a>
<div class="bar"><span class="kind">Anabranch report</span><span class="name">{escape(report.name)}</span>
<span class="tools"><button type="button" id="theme" aria-label="Change between light and dark">Dark</button>
<button type="button" id="print">Print</button></span></div>
<h1>{escape(report.question)}</h1>
{lead}
<nav aria-label="Contents">{links}</nav>
<noscript><p class="quiet">Charts, sessions and timelines need JavaScript; all else is here.</p></noscript>
</header>"""

    def _section(self, section: Section, level: int) -> Iterator[str]:
        anchor = f' id="{_anchor(section.title)}"' if level == 2 else ""
        yield f"<section{anchor}><h{level}>{escape(section.title)}</h{level}>"
        charts: list[str] = []
        for block in section.blocks:
            # Charts that follow each other stand next to each other.
            if isinstance(block, LineChart | IntervalChart | MapChart):
                charts.append(self._block(block))
                continue
            yield from _together(charts)
            charts = []
            yield self._block(block)
        yield from _together(charts)
        for part in section.parts:
            yield from self._section(part, min(level + 1, 4))
        yield "</section>"

    def _block(self, block: Block) -> str:
        match block:
            case Text():
                kind = ' class="quiet"' if block.quiet else ""
                return "".join(f"<p{kind}>{escape(paragraph)}</p>" for paragraph in block.paragraphs)
            case Statements():
                return f'<ul class="findings">{"".join(map(_finding, block.items))}</ul>'
            case Grid():
                return _grid(block)
            case Code():
                return f"<details><summary>{escape(block.title)}</summary><pre>{escape(block.text)}</pre></details>"
            case MapChart():
                self.charts.append(_tiles(block))
                return _map(block, len(self.charts) - 1)
            case ShareChart():
                about = {"kind": "shares", "name": block.name, "title": block.title, "note": block.note}
                self.charts.append({**about, **shares.packed(block.bars, block.fillings)})
                note = f'<span class="note">{escape(block.note)}</span>' if block.note else ""
                caption = f"<figcaption><span>{escape(block.title)}</span>{note}</figcaption>"
                return f'<figure class="chart shares" data-chart="{len(self.charts) - 1}">{caption}</figure>'
            case LineChart() | IntervalChart():
                return self._chart(block)

    def _chart(self, chart: LineChart | IntervalChart) -> str:
        self.charts.append(_intervals(chart) if isinstance(chart, IntervalChart) else _lines(chart))
        kind = "intervals" if isinstance(chart, IntervalChart) else "lines"
        kind += "" if _titled(chart) else " headed"
        return (
            f'<figure class="chart {kind}" data-chart="{len(self.charts) - 1}">'
            f"<figcaption>{_titled(chart)}</figcaption>"
            f'<div class="plot"></div></figure>'
        )

    def _sessions(self, sessions: Sessions, report: Report) -> Iterator[str]:
        self.data["sessions"] = _table(sessions)
        self.data["timelines"] = [
            {"title": each.title, "outcome": each.outcome, "packed": _packed(each.data)} for each in report.timelines
        ]
        note = f'<p class="quiet">{escape(sessions.note)}</p>' if sessions.note else ""
        yield (
            f'<section id="sessions"><h2>Sessions</h2>{note}'
            '<div id="table"><p class="quiet">The table needs JavaScript.</p></div></section>'
        )


def _titled(chart: Chart) -> str:
    """Title and note of a chart, or nothing where the heading above has them."""
    if isinstance(chart, IntervalChart) and chart.headed:
        return ""
    note = f'<span class="note">{escape(chart.note)}</span>' if chart.note else ""
    # A sign stays on the line of its number.
    title = chart.title.replace(" %", "\N{NO-BREAK SPACE}%")
    return f"<span>{escape(title)}</span>{note}"


def _together(charts: Sequence[str]) -> Iterator[str]:
    if charts:
        yield f'<div class="charts{" alone" if len(charts) == 1 else ""}">{"".join(charts)}</div>'


def _anchor(title: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in title.lower())


def _finding(finding: Statement) -> str:
    # A mean stays on the line of its interval.
    said = _minus(finding.detail).replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")
    detail = f'<span class="how">{escape(said)}</span>' if said else ""
    return (
        f'<li class="tone-{finding.tone}"><span class="verdict">{escape(finding.verdict)}</span>'
        f"<span>{escape(finding.text)}{detail}</span></li>"
    )


def _grid(grid: Grid) -> str:
    heads = "".join(
        f'<th scope="col"{_number(column)}{_key(column)}>{escape(column.name)}{_unit(column)}</th>'
        for column in grid.columns
    )
    body = "".join("<tr>" + "".join(map(_entry, row, grid.columns)) + "</tr>" for row in grid.rows)
    # Above the table and not in it: a narrow table would make a long caption a narrow column.
    caption = f'<p class="caption">{escape(grid.caption)}</p>' if grid.caption and not grid.folded else ""
    # A wide table scrolls by itself, also by keyboard.
    label = escape(grid.caption or "Table", quote=True)
    table = (
        f'{caption}<div class="scroll" tabindex="0" role="region" aria-label="{label}"><table>'
        f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
    )
    return f"<details><summary>{escape(grid.caption)}</summary>{table}</details>" if grid.folded else table


def _entry(value: str | Mark, column: Column) -> str:
    if isinstance(value, Mark):
        return f'<td{_number(column)}><span class="mark tone-{value.tone}">{escape(_minus(value.text))}</span></td>'
    return f"<td{_number(column)}>{escape(_minus(value) if column.number else value)}</td>"


def _minus(text: str) -> str:
    """Numbers with a minus, which is as wide as a plus, in the place of a hyphen."""
    return re.sub(r"(?<![\w.-])-(?=\d)", "\N{MINUS SIGN}", text)


def _key(column: Column) -> str:
    """What files and commands call the column, as a tooltip."""
    return f' title="{escape(column.key, quote=True)}"' if column.key else ""


def _number(column: Column) -> str:
    return ' class="number"' if column.number else ""


def _unit(column: Column) -> str:
    return f' <span class="unit">{escape(column.unit)}</span>' if column.unit else ""


def _provenance(entries: Sequence[tuple[str, str]]) -> str:
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in entries)
    return f'<section id="provenance"><h2>Provenance</h2><dl>{rows}</dl></section>'


# --- Data for the page's program ------------------------------------------------------------------------------------


# Steps that an eye can tell apart.
_LEVELS = 4


def _map(chart: MapChart, number: int) -> str:
    """A map as a table: it needs no JavaScript, and its numbers can be read and copied."""
    heads = "".join(f'<th scope="col">{escape(column)}</th>' for column in chart.columns)
    body = "".join(
        f'<tr><th scope="row">{escape(row)}</th>{"".join(map(_tile, tiles))}</tr>'
        for row, tiles in zip(chart.rows, chart.tiles, strict=True)
    )
    return (
        f'<figure class="chart map" data-chart="{number}"><figcaption>{_titled(chart)}</figcaption>'
        f'<div class="wide"><table><thead><tr><th scope="col">{escape(chart.y_label)} \\ {escape(chart.x_label)}</th>'
        f"{heads}</tr></thead><tbody>{body}</tbody></table></div></figure>"
    )


def _tile(tile: Tile) -> str:
    level = math.ceil(tile.strength * _LEVELS)
    text = f"{escape(tile.text)}{_SIGNS[tile.tone]}"
    return f'<td class="tone-{tile.tone} level-{level}" title="{escape(tile.note)}">{text}</td>'


_SIGNS = {"good": " ▲", "bad": " ▼", "same": " =", "open": " ?", "plain": ""}


def _about(kind: str, chart: Chart) -> dict[str, Any]:
    """What the program needs of every chart."""
    return {"kind": kind, "name": chart.name, "title": chart.title, "note": chart.note, "x": chart.x_label}


def _tiles(chart: MapChart) -> dict[str, Any]:
    """A map as its exported files need it."""
    return {
        **_about("map", chart),
        "y": chart.y_label,
        "columns": list(chart.columns),
        "rows": list(chart.rows),
        "tiles": [
            [
                {"text": t.text, "sign": _SIGNS[t.tone], "tone": t.tone, "strength": t.strength, "note": t.note}
                for t in row
            ]
            for row in chart.tiles
        ],
    }


def _intervals(chart: IntervalChart) -> dict[str, Any]:
    return {
        **_about("intervals", chart),
        "where": dict(chart.where),
        "short": chart.short_label,
        "margin": _short(chart.margin),
        "items": [
            {
                "label": item.label,
                "at": _short(item.estimate),
                "low": _short(item.low),
                "high": _short(item.high),
                "verdict": item.verdict,
                "tone": item.tone,
                "note": item.note,
                "labels": dict(item.labels),
            }
            for item in chart.items
        ],
    }


def _lines(chart: LineChart) -> dict[str, Any]:
    return {
        **_about("lines", chart),
        "axis": chart.axis,
        "where": dict(chart.where),
        "y": chart.y_label,
        "stepped": chart.stepped,
        "categories": list(chart.categories),
        "logarithmic": chart.logarithmic,
        "view": None if chart.view is None else [_short(value) for value in chart.view],
        "lines": [_line(line) for line in chart.lines],
    }


def _line(line: Line) -> dict[str, Any]:
    found = {
        "name": line.name,
        "x": [_short(value) for value in line.x],
        "y": [_short(value) for value in line.y],
        "colour": line.colour,
        "dash": line.dash,
        "labels": dict(line.labels),
    }
    if line.low:
        found |= {"low": [_short(value) for value in line.low], "high": [_short(value) for value in line.high]}
    return found


def _table(sessions: Sessions) -> dict[str, Any]:
    """The columns of the table; texts and parts of commands that occur often are stored once."""
    parts: dict[str, int] = {}
    commands = [[parts.setdefault(part, len(parts)) for part in command] for command in sessions.commands]
    return {
        "labels": [_label(column, values) for column, values in sessions.labels],
        "numbers": [
            {"key": c.key or c.name, "name": c.name, "unit": c.unit, "values": [_short(value) for value in values]}
            for c, values in sessions.numbers
        ],
        "parts": list(parts),
        "commands": commands,
        "timelines": list(sessions.timelines),
        "opened": list(sessions.opened),
        "errors": {str(row): error for row, error in enumerate(sessions.errors) if error is not None},
    }


def _label(column: Column, values: Sequence[Value]) -> dict[str, Any]:
    # A text is found whatever it is, and numbers sort as numbers.
    words = dict.fromkeys(values)
    places = {word: position for position, word in enumerate(words)}
    return {
        "key": column.key or column.name,
        "name": column.name,
        "number": column.number,
        # Seeds may have more digits than a number of JavaScript.
        "words": [str(w) if isinstance(w, int) and abs(w) > _LARGEST else w for w in words],
        "values": [places[value] for value in values],
    }


def _short(value: float | None) -> float | None:
    """The number with the digits that a screen shows."""
    return numerals.rounded(value, _SIGNIFICANT)


def _packed(data: Any) -> str:
    """JSON, compressed: a timeline is unpacked when it is opened."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()
