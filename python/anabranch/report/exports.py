"""Tables and figures of a report for a paper: CSV, LaTeX, and SVG and PDF as wide as a column of two."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from anabranch.report.document import (
    Block,
    Column,
    Grid,
    IntervalChart,
    LineChart,
    MapChart,
    Mark,
    Report,
    Section,
    Sessions,
)
from anabranch.system import outputs


def write(report: Report, folder: Path) -> list[Path]:
    """Writes every table and figure that has a name, and the sessions as ``sessions.csv``.

    Returns:
        The files.

    Raises:
        OSError: Something cannot be written.
    """
    written = []
    with outputs.writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in _texts(report):
            (folder / name).write_text(content, encoding="utf-8")
            written.append(folder / name)
        charts = [each for each in _blocks(report.sections) if isinstance(each, LineChart | IntervalChart | MapChart)]
        written += [file for chart in charts if chart.name for file in _draw(chart, folder)]
    return written


def _texts(report: Report) -> Iterator[tuple[str, str]]:
    for block in _blocks(report.sections):
        if isinstance(block, Grid) and block.name:
            yield f"{block.name}.csv", of_rows(block.columns, [[_plain(text) for text in row] for row in block.rows])
            yield f"{block.name}.tex", latex(block)
    if report.sessions is not None:
        yield "sessions.csv", _sessions(report.sessions)


def _blocks(sections: Sequence[Section]) -> Iterator[Block]:
    for section in sections:
        yield from section.blocks
        yield from _blocks(section.parts)


def _draw(chart: LineChart | IntervalChart | MapChart, folder: Path) -> list[Path]:
    from anabranch.figures import style
    from anabranch.report import paper

    figure = paper.draw(chart)
    # LaTeX takes PDF; what edits figures takes SVG.
    files = [folder / f"{chart.name}-chart{suffix}" for suffix in (".svg", ".pdf")]
    for file in files:
        style.save(figure, file)
    return files


def _plain(text: str | Mark) -> str:
    return text.text.lstrip("▲▼=? ") if isinstance(text, Mark) else text


def of_rows(columns: Sequence[Column], rows: Sequence[Sequence[object]]) -> str:
    """Rows as CSV, the units with the heads."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([f"{c.name} ({c.unit})" if c.unit else c.name for c in columns])
    writer.writerows(rows)
    return text.getvalue()


def _sessions(sessions: Sessions) -> str:
    parts = [*sessions.labels, *sessions.numbers]
    values = [list(each) for _, each in parts]
    heads = [column for column, _ in parts]
    if sessions.commands:
        heads.append(Column("command"))
        values.append([" ".join(command) for command in sessions.commands])
    return of_rows(heads, list(zip(*values, strict=True)))


_LATEX = {
    "\\": r"\textbackslash{}",
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "±": r"$\pm$",
    "\N{MINUS SIGN}": "$-$",
    "\N{MULTIPLICATION SIGN}": r"$\times$",
    "μ": r"$\mu$",
    "▲": r"$\uparrow$",
    "▼": r"$\downarrow$",
    "†": r"$\dagger$",
}


def escaped(text: str) -> str:
    """A text as LaTeX prints it."""
    return "".join(_LATEX.get(letter, letter) for letter in text)


def latex(grid: Grid) -> str:
    """A table for the package booktabs, with its caption as a comment."""
    kinds = "".join("r" if column.number else "l" for column in grid.columns)
    heads = [escaped(f"{c.name} ({c.unit})" if c.unit else c.name) for c in grid.columns]
    rows = [[escaped(text.text if isinstance(text, Mark) else text) for text in row] for row in grid.rows]
    lines = [
        f"% {grid.caption}",
        r"\begin{tabular}{" + kinds + "}",
        r"\toprule",
        _row(heads),
        r"\midrule",
        *map(_row, rows),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _row(texts: Sequence[str]) -> str:
    return " & ".join(_MINUS.sub("$-$", text) for text in texts) + r" \\"


# A minus is no hyphen.
_MINUS = re.compile(r"^-(?=[\d.])")
