"""The report of papers: the verdict on each claim, its findings as a chart, and the papers' tables."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from anabranch.errors import InputError
from anabranch.experiments.claims import Verdict
from anabranch.report import paper_figures, paper_text
from anabranch.report.document import (
    Block,
    Column,
    Grid,
    IntervalChart,
    Item,
    Report,
    Section,
    Statement,
    Statements,
    Text,
    Tone,
)
from anabranch.system import regular
from anabranch.wording.summary import plural

FILE = "report.json"
"""What `anabranch reproduce --out` writes, and this reads."""

_TONES: Mapping[str, Tone] = {
    Verdict.REPRODUCED: "good",
    Verdict.PARTLY: "same",
    Verdict.NOT_REPRODUCED: "bad",
    Verdict.UNDECIDED: "open",
    Verdict.NOT_TESTABLE: "plain",
}
_AXIS = "difference, as a multiple of the largest one that does not matter"
_KEYS = {"schema", "version", "seeds", "rows", "papers"}

Row = Mapping[str, Any]


def is_reproduction(folder: Path) -> bool:
    """Whether a folder is one that `anabranch reproduce --out` wrote."""
    return (folder / FILE).is_file()


def of_folder(folder: Path) -> Report:
    """The report of a folder that `anabranch reproduce --out` wrote.

    Raises:
        InputError: Its ``report.json`` is not what this version writes; the message says what is missing.
    """
    file = folder / FILE
    remedy = f"`anabranch reproduce PAPER --out {folder}` writes it again"
    try:
        read = json.loads(regular.read(file, regular.MOST_TEXT))
    except ValueError as error:
        raise InputError(f"{file}: this is no JSON ({error}); {remedy}") from error
    if not isinstance(read, dict) or (missing := sorted(_KEYS - set(read))):
        lacks = "this is no object" if not isinstance(read, dict) else f"`{missing[0]}` is missing"
        raise InputError(f"{file}: {lacks}; {remedy}")
    if read["schema"] != paper_text.SCHEMA:
        raise InputError(f"{file}: schema {read['schema']!r}, expected {paper_text.SCHEMA}; {remedy}")
    try:
        return of_document(read)
    except (KeyError, TypeError, IndexError, ValueError) as error:
        raise InputError(f"{file}: this was written by another version ({error}); {remedy}") from error


def of_document(read: Mapping[str, Any]) -> Report:
    """The report of what `paper_text.document` gives."""
    papers = read["papers"]
    sections = [_claims(papers, read["rows"]), _findings(read["rows"]), _figures(papers), _tables(papers)]
    titles = " and ".join(paper["title"] for paper in papers)
    return Report(
        name=", ".join(paper["name"] for paper in papers),
        question=f"Which claims of {titles} are reproduced?" if read["rows"] else titles,
        lead=_lead(read),
        sections=[section for section in sections if section.blocks or section.parts],
        provenance=[
            ("Anabranch", read["version"]),
            *(("Source", f"{paper['title']}: {paper['source']}") for paper in papers if paper["source"]),
            ("All again", "; ".join(f"anabranch reproduce {paper['name']}" for paper in papers)),
        ],
    )


def _lead(read: Mapping[str, Any]) -> str:
    counts = Counter(row["verdict"] for row in read["rows"])
    parts = [f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict]]
    varied = " Every assumption was varied, too." if read["sensitivity"] else ""
    if not parts:
        shown = "Figures and tables" if any(paper["figures"] for paper in read["papers"]) else "Tables"
        return f"{shown} of conditions with up to {plural(read['seeds'], 'seed')} each.{varied}"
    return f"{plural(len(read['rows']), 'claim')} with {plural(read['seeds'], 'seed')}: {', '.join(parts)}.{varied}"


def _claims(papers: Sequence[Row], rows: Sequence[Row]) -> Section:
    """A sentence with its verdict for each claim."""
    parts = []
    for paper in papers:
        own = [row for row in rows if row["paper"] == paper["name"]]
        if own:
            parts.append(Section(paper["title"], [Statements([_claim(row) for row in own])]))
    return Section("Claims", parts[0].blocks) if len(parts) == 1 else Section("Claims", parts=parts)


def _claim(row: Row) -> Statement:
    number = len(row["findings"])
    of = f"{row['findings_that_hold']} of {plural(number, 'finding')} hold. " if number else ""
    why = f"{row['why'][:1].upper()}{row['why'][1:]}".rstrip(".")
    under = f" Another verdict under: {', '.join(row['depends_on'])}." if row["depends_on"] else ""
    return Statement(row["verdict"], f"{row['id']}: {row['claim']}", _TONES[row["verdict"]], f"{of}{why}.{under}")


def _findings(rows: Sequence[Row]) -> Section:
    """What each verdict was counted from, as a chart."""
    parts = []
    for row in rows:
        blocks = list(_of_claim(row))
        if blocks:
            said = Text([f"Criterion: {row['criterion']}."], quiet=True)
            parts.append(Section(f"{row['id']}: {row['verdict']}", [said, *blocks]))
    note = Text(
        [
            "A row is a finding: the mean difference with its interval, divided by the largest difference that does "
            "not matter. The shaded band is where no difference matters. ▲ holds, ▼ does not hold, hollow: undecided."
        ],
        quiet=True,
    )
    return Section("Findings", [note] if parts else [], parts)


def _of_claim(row: Row) -> Iterator[Block]:
    name = f"{row['paper']}-{row['id']}"
    items = [_item(finding) for finding in row["findings"] if finding["in_margins"] is not None]
    if items:
        yield IntervalChart(
            f"{row['id']}: {row['claim']}", _AXIS, "multiple of what matters", items, 1.0, name=name, headed=True
        )
    others = [finding for finding in row["findings"] if finding["in_margins"] is None]
    if others:
        yield Statements([Statement(*_verdict(each), detail="") for each in others])


def _item(finding: Row) -> Item:
    label, _, measured = finding["text"].rpartition(": ")
    found = finding["in_margins"]
    verdict, _, tone = _verdict(finding)
    return Item(label, found["mean"], found["low"], found["high"], verdict, tone, measured)


def _verdict(finding: Row) -> tuple[str, str, Tone]:
    if not finding["decided"]:
        return "undecided", finding["text"], "open"
    return ("holds", finding["text"], "good") if finding["holds"] else ("does not hold", finding["text"], "bad")


def _figures(papers: Sequence[Row]) -> Section:
    """The figures of the papers' plans."""
    parts = []
    for paper in papers:
        drawn = [paper_figures.of_program(figure) for figure in paper["figures"]]
        if drawn:
            parts.append(Section(paper["title"], drawn))
    return Section("Figures", parts[0].blocks) if len(parts) == 1 else Section("Figures", parts=parts)


def _tables(papers: Sequence[Row]) -> Section:
    """The papers' tables; that of verdicts, which the claims above say, on demand."""
    parts = []
    for paper in papers:
        grids = [_grid(paper["name"], table) for table in paper["tables"] if table["rows"]]
        if grids:
            parts.append(Section(paper["title"], grids))
    return Section("Tables", parts[0].blocks) if len(parts) == 1 else Section("Tables", parts=parts)


def _grid(paper: str, table: Row) -> Grid:
    heads = [Column(head, number=number >= table["texts"]) for number, head in enumerate(table["head"])]
    note = f". {table['note']}" if table["note"] else ""
    return Grid(
        heads,
        [[str(text) for text in row] for row in table["rows"]],
        caption=f"{table['title']}{note}",
        name=f"{paper}-{table['name']}",
        folded=table["name"] == "verdicts",
    )
