"""`anabranch reproduce`: the claims of papers, measured and tested."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from anabranch.cli import completion
from anabranch.cli.console import Exit, answer, echo, echo_json, err, fail, out, say_warning
from anabranch.cli.plan import BUILD_DIGITS, JobsOption, cores, duration_s
from anabranch.errors import InputError
from anabranch.system import outputs, provenance
from anabranch.wording import numerals
from anabranch.wording.summary import plural

if TYPE_CHECKING:
    from anabranch.experiments.paper import Paper
    from anabranch.experiments.progress import Bar
    from anabranch.experiments.realtime import ByEngine
    from anabranch.experiments.reproduction import Reproduction
    from anabranch.experiments.store import Store

EXAMPLES = (
    "Example: anabranch reproduce mptcp-plus --seeds 4\n\n"
    "Verdicts: reproduced (every finding is as claimed), partly, not reproduced, undecided (an "
    "interval is too wide), not testable. With more seeds until no claim is undecided, or the time is over: "
    'anabranch reproduce sticky --until decided --budget "20 min". '
    "Four seeds of dash take ten seconds; ten seeds of all four papers, with --sensitivity, four to six "
    "minutes of two cores.\n\n"
    "The tables of a long study alone: anabranch reproduce one-pipe --table senders --table baselines\n\n"
    "A paper of one's own is a folder: anabranch paper new mine; anabranch reproduce mine"
)

_ALL = "all"
_GOAL = "decided"
_BUDGET = "20 min"
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


_Paper = Annotated[
    str,
    typer.Argument(
        metavar="[PAPER]",
        help="A shipped paper, the folder of one, or `all`: the four shipped papers of other authors.",
        autocompletion=completion.papers,
    ),
]
_Seeds = Annotated[
    int | None,
    typer.Option(min=2, max=10_000, help="Seeds of each condition; what its plan says where absent."),
]
_Sensitivity = Annotated[
    bool, typer.Option("--sensitivity", help="Vary every assumption too, and say which verdicts depend on it.")
]
_Out = Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Write report.md and report.json there.")]
_Pages = Annotated[
    Path | None,
    typer.Option("--pages", metavar="DIR", help="Write each paper's text there: claims-NAME.md, or its own page."),
]
_Until = Annotated[
    str | None,
    typer.Option(
        metavar="GOAL",
        help='"decided": add seeds to undecided claims, tested with 10, 30, 100 and 300.',
        show_default=False,
    ),
]
_Budget = Annotated[str, typer.Option(metavar="TIME", help="With --until, for how long to add seeds.")]
_Store = Annotated[
    Path | None,
    typer.Option("--store", metavar="DIR", help="Where runs are kept; runs/papers/BUILD where absent."),
]
_Tables = Annotated[
    list[str] | None,
    typer.Option("--table", metavar="NAME", help="Only print this table of the paper, and make only its runs."),
]
_Live = Annotated[
    bool, typer.Option("--live", help="First make the runs in real time that the paper's tables of kept runs lack.")
]
_AtOnce = Annotated[int, typer.Option(min=1, help="With --live, how many runs in real time are made at a time.")]
_AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output and nothing else.")]


def reproduce(
    paper: _Paper = _ALL,
    seeds: _Seeds = None,
    jobs: JobsOption = None,
    sensitivity: _Sensitivity = False,
    directory: _Out = None,
    pages: _Pages = None,
    store: _Store = None,
    until: _Until = None,
    budget: _Budget = _BUDGET,
    tables: _Tables = None,
    live: _Live = False,
    at_once: _AtOnce = 1,
    as_json: _AsJson = False,
) -> None:
    """Measure the claims of papers, and test them by written criteria."""
    from anabranch.report import paper_text

    until_s = _until(until, budget, seeds)
    alone = not (directory or pages or sensitivity or as_json)
    chosen = _tables_of(_chosen(paper), tables, alone=alone) if tables else _chosen(paper)
    for place in filter(None, (directory, pages)):
        outputs.check_folder(place)
    how = How(seeds, jobs, sensitivity, until_s, at_once if live else None, store)
    found = found_of(chosen, how)
    if tables:
        _print_tables(found)
        return
    if as_json:
        echo_json(paper_text.claims(found, sensitivity=sensitivity))
    else:
        _show(found, sensitivity)
    if directory is not None:
        _write(directory, paper_text.document(found, sensitivity=sensitivity), found)
    if pages is not None:
        _write_pages(pages, found)
    _warn(found)


@dataclass(frozen=True)
class How:
    """How claims are measured.

    Attributes:
        seeds: The seeds of every condition; what a plan says where absent.
        jobs: The number of threads; one for each core where absent.
        sensitivity: Whether to vary every assumption, too.
        until_s: For how many seconds to add seeds to undecided claims.
        live: How many runs in real time are made at once; none are made where absent.
        store: Where runs are kept; ``runs/papers`` where absent.
    """

    seeds: int | None = None
    jobs: int | None = None
    sensitivity: bool = False
    until_s: float | None = None
    live: int | None = None
    store: Path | None = None


def found_of(chosen: Sequence[Paper], how: How) -> list[Reproduction]:
    """Makes the runs of papers that are not kept, with progress on the terminal, and tests their claims."""
    from anabranch.experiments import reproduction
    from anabranch.experiments.executor import Threads
    from anabranch.experiments.progress import Bar
    from anabranch.experiments.realtime import ByEngine
    from anabranch.experiments.store import Store

    threads = Threads(how.jobs or cores())
    folder = how.store or Path("runs") / "papers" / provenance.library_sha256()[:BUILD_DIGITS]
    outputs.check_folder(folder)
    try:
        with Store(folder, provenance.build()) as kept, Bar(err()) as bar:
            if how.live is not None:
                _measure(chosen, kept, ByEngine(threads, how.live), bar, how.seeds)
            return reproduction.reproduce(
                chosen,
                kept,
                seeds=how.seeds,
                sensitivity=how.sensitivity,
                execute=threads,
                progress=bar,
                until_decided_s=how.until_s,
            )
    except KeyboardInterrupt:
        fail(f"interrupted; finished runs are kept in {folder}, and the same command continues", Exit.INTERRUPTED)


def _until(goal: str | None, budget: str, seeds: int | None) -> float | None:
    """For how many seconds seeds are added; ``None`` where none are."""
    seconds = duration_s(budget)
    if goal is None:
        return None
    if goal != _GOAL:
        raise InputError(f'--until {goal}: expected "{_GOAL}", which adds seeds to the claims that are undecided')
    if seeds is not None:
        raise InputError("--until says with how many seeds claims are tested: expected no --seeds with it")
    return seconds


def _show(found: Sequence[Reproduction], sensitivity: bool) -> None:
    from anabranch.report import paper_text

    every = {each.paper.name: rows for each in found if (rows := paper_text.rows(each))}
    for name, rows in every.items():
        answer(_table(name, rows, sensitivity))
    if every:
        answer(_summary([row for rows in every.values() for row in rows]))


def _tables_of(chosen: Sequence[Paper], tables: Sequence[str], *, alone: bool) -> list[Paper]:
    if not alone:
        raise InputError("--table prints tables alone: expected no --out, --pages, --sensitivity or --json with it")
    return [each.only(tables) for each in chosen]


def _print_tables(found: Sequence[Reproduction]) -> None:
    from anabranch.report import paper_text

    for table in (table for each in found for table in each.tables):
        echo(f"{table.name}\n\n{paper_text.markdown(table)}\n")


def _measure(chosen: Sequence[Paper], store: Store, execute: ByEngine, bar: Bar, seeds: int | None) -> None:
    from anabranch.experiments import realtime, reproduction

    if missing := realtime.missing():
        fail(f"this machine cannot run in real time: {'; '.join(missing)}", Exit.RUN_FAILED)
    for each in chosen:
        made = reproduction.measure(each, store, execute=execute, progress=bar, at_once=execute.at_once, seeds=seeds)
        err().print(f"{each.name}: {plural(made, 'run')} in real time added", soft_wrap=True)


def _chosen(name: str) -> list[Paper]:
    from anabranch.experiments import paper as papers

    if name == _ALL:
        # The others are this project's own studies: they take longer, and their plans have their own seeds.
        return [each for each in map(papers.load, papers.shipped()) if each.source]
    return [papers.load(name)]


def _warn(found: Sequence[Reproduction]) -> None:
    for each in found:
        number, error = each.failed
        if number:
            say_warning(f"{each.paper.name}: {plural(number, 'run')} failed, the last with: {error}")


def _table(paper: str, rows: Sequence[Row], sensitivity: bool) -> Table:
    table = Table(title=paper, title_justify="left", title_style="bold", show_lines=True, expand=False)
    table.add_column("id", no_wrap=True)
    # A narrow terminal has the explanation below the claim: five columns would have a word per line.
    narrow = out().width < _NARROW
    table.add_column("the paper's claim, and why this is the verdict" if narrow else "the paper's claim", ratio=3)
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
    compared = [value for value in row["measured"] if value["paper"] is not None]
    if compared:
        lines = [
            f"{v['what']}: {numerals.plus_minus(v['mean'], v['half_width'])} (paper: {v['paper']})" for v in compared
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
    text = Text(f"{plural(len(rows), 'claim')}: ")
    for n, part in enumerate(parts):
        text.append(", " if n else "").append(*part)
    return text


def _write(directory: Path, report: Mapping[str, Any], found: Sequence[Reproduction]) -> None:
    from anabranch.report import paper_figures, paper_text

    head = (
        "# The papers' claims, measured\n\n"
        f"Anabranch {report['version']}, {report['seeds']} seeds of each condition, unless a claim has more; intervals "
        "are Student's, at 95 % where nothing else is said. "
        "docs/validation/claims.md explains the verdicts.\n"
    )
    with outputs.writing(directory):
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "report.md").write_text(paper_text.report(head, found), encoding="utf-8")
        (directory / "report.json").write_text(json.dumps(report, indent=2, ensure_ascii=False), encoding="utf-8")
        for each in found:
            paper_figures.write(each, directory)
    err().print(f"report: {directory / 'report.md'}; `anabranch report {directory}` makes a page of it", soft_wrap=True)


def _write_pages(folder: Path, found: Sequence[Reproduction]) -> None:
    from anabranch.report import paper_figures, paper_text

    for each in found:
        page = folder / each.paper.page
        with outputs.writing(page):
            folder.mkdir(parents=True, exist_ok=True)
            page.write_text(paper_text.text(each), encoding="utf-8")
        for figure in paper_figures.write(each, folder):
            err().print(f"figure: {figure}", soft_wrap=True)
        err().print(f"page: {page}", soft_wrap=True)
