"""`anabranch reproduce`: the claims of four papers, measured and tested."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from anabranch import InputError, __version__, _core, numerals, outputs
from anabranch.cli.console import Exit, answer, err, fail, out, progress_bar

EXAMPLES = (
    "Example: anabranch reproduce mptcp-plus --seeds 4\n\n"
    "Verdicts: reproduced (every finding is as claimed), partly, not reproduced, undecided (an "
    "interval is too wide: more seeds would tell), not testable. Four seeds of dash take "
    "ten seconds; ten seeds of all four papers, with --sensitivity, about ten minutes of two cores."
)

_ALL = "all"
_STYLES = {
    "reproduced": "green",
    "partly": "yellow",
    "not reproduced": "red",
    "undecided": "magenta",
    "not testable": "dim",
}
# Values or findings that the table shows of a claim; the report has all of them.
_MOST_VALUES = 3
# In a terminal with fewer columns than this the table has a column less.
_NARROW = 120

Row = Mapping[str, Any]


def reproduce(
    paper: Annotated[
        str, typer.Argument(metavar="[PAPER]", help=f"One of {', '.join(_core.papers())}, or {_ALL}.")
    ] = _ALL,
    seeds: Annotated[int, typer.Option(min=2, max=10_000, help="Seeds of each condition.")] = 10,
    jobs: Annotated[int | None, typer.Option(min=1, max=1024, help="Threads; one per core where absent.")] = None,
    sensitivity: Annotated[
        bool, typer.Option("--sensitivity", help="Vary every assumption too, and say which verdicts depend on it.")
    ] = False,
    directory: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write report.md and report.json there.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on standard output and nothing else.")
    ] = False,
) -> None:
    """Measure the claims of four papers, and test them by written criteria."""
    threads = jobs or os.cpu_count() or 1
    if directory is not None:
        outputs.check_folder(directory)
    rows: list[Row] = []
    documents: list[str] = []
    try:
        for name in _chosen(paper):
            with progress_bar(f"measuring {name}") as progress:
                text, document = _core.reproduce(
                    name, seeds=seeds, jobs=threads, sensitivity=sensitivity, progress=progress
                )
            measured: list[Row] = json.loads(text)
            rows += measured
            documents.append(document)
            if not as_json:
                answer(_table(name, measured, sensitivity))
        report = {"schema": 1, "version": __version__, "seeds": seeds, "sensitivity": sensitivity, "rows": rows}
        if as_json:
            print(json.dumps(report, indent=2, ensure_ascii=False), flush=True)
        else:
            answer(_summary(rows))
        if directory is not None:
            _write(directory, report, documents)
            err().print(f"report: {directory / 'report.md'}", soft_wrap=True)
    except KeyboardInterrupt:
        fail("interrupted", Exit.INTERRUPTED)


def _chosen(paper: str) -> Sequence[str]:
    names = _core.papers()
    if paper == _ALL:
        return names
    if paper not in names:
        near = _core.nearest(paper, [*names, _ALL])
        meant = f"; did you mean {near}?" if near else ""
        raise InputError(f"no paper {paper!r}: expected one of {', '.join(names)}, or {_ALL}{meant}")
    return [paper]


def _table(paper: str, rows: Sequence[Row], sensitivity: bool) -> Table:
    table = Table(title=paper, title_justify="left", title_style="bold", show_lines=True, expand=False)
    table.add_column("id", no_wrap=True)
    # A narrow terminal has the explanation below the claim: five columns would have a word per line.
    narrow = out().width < _NARROW
    table.add_column("the paper's claim, and why it came out so" if narrow else "the paper's claim", ratio=3)
    table.add_column("measured (95 % interval)", ratio=4)
    table.add_column("verdict", no_wrap=True)
    if not narrow:
        table.add_column("why", ratio=4)
    if sensitivity:
        table.add_column("another verdict under", ratio=2)
    for row in rows:
        claim, why = Text(row["claim"]), [Text(row["why"])]
        if narrow:
            claim, why = Text.assemble(row["claim"], "\n\n", (row["why"], "italic")), []
        texts = [row["id"], claim, _measured(row), _verdict(row), *why]
        table.add_row(*texts, *([Text(", ".join(row["depends_on"]))] if sensitivity else []))
    return table


def _verdict(row: Row) -> Text:
    total = len(row["findings"])
    of = f"\n{row['findings_that_hold']} of {total}\n{row['seeds']} seeds" if total else ""
    return Text.assemble((row["verdict"], _STYLES[row["verdict"]]), (of, "dim"))


def _measured(row: Row) -> Text:
    """The values that the paper gives numbers for; else the first findings."""
    beside = [value for value in row["measured"] if value["paper"] is not None]
    if beside:
        lines = [
            f"{v['what']}: {numerals.plus_minus(v['mean'], v['half_width'])} (paper: {v['paper']})" for v in beside
        ]
        shown = lines
    else:
        lines = [f"{_mark(f)} {f['text']}" for f in row["findings"]]
        shown = lines[:_MOST_VALUES]
    more = len(lines) - len(shown)
    return Text("\n".join([*shown, *([f"and {more} more (--out DIR)"] if more else [])]))


def _mark(finding: Row) -> str:
    """Holds, does not hold, or undecided."""
    if not finding["decided"]:
        return "?"
    return "+" if finding["holds"] else "-"


def _summary(rows: Sequence[Row]) -> Text:
    counts = {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in _STYLES}
    parts = [(f"{number} {verdict}", _STYLES[verdict]) for verdict, number in counts.items() if number]
    text = Text(f"{len(rows)} claims: ")
    for n, part in enumerate(parts):
        text.append(", " if n else "").append(*part)
    return text


def _write(directory: Path, report: Mapping[str, Any], documents: Sequence[str]) -> None:
    head = (
        "# The papers' claims, measured\n\n"
        f"Anabranch {report['version']}, {report['seeds']} seeds of each condition; intervals are Student's, at 95 %. "
        "docs/validation/claims.md explains the verdicts.\n"
    )
    with outputs.writing(directory):
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "report.md").write_text("\n".join([head, *documents]), encoding="utf-8")
        (directory / "report.json").write_text(json.dumps(report, indent=2, ensure_ascii=False), encoding="utf-8")
