"""`anabranch validate`: the same test cases in simulation and with this machine's kernel, side by side."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from anabranch import _core
from anabranch.cli.console import Exit, answer, echo_json, err, fail, out, progress_bar
from anabranch.cli.plan import BUILD_DIGITS, JobsOption, cores
from anabranch.errors import InputError
from anabranch.system import outputs, provenance, regular
from anabranch.system.programs import ToolError
from anabranch.validation import cases
from anabranch.wording import markdown
from anabranch.wording.summary import plural

if TYPE_CHECKING:
    from anabranch.validation.recorded import LiveRuns
    from anabranch.validation.report import Report

EXAMPLES = (
    "Example: anabranch validate --quick --only a --only f\n\n"
    "After a change of the simulator: anabranch validate --again kernel-runs.parquet, or another table of --keep.\n\n"
    "A comparison passes if the 90 % interval of log(simulated / kernel) lies inside its tolerance, differs if it "
    "lies wholly outside, and is inconclusive otherwise. The exit code is 1 if anything differs. Live runs need root, "
    "TUN and a kernel with MPTCP."
)

# The names of the markers in a document, and the parts between them: drawn test cases are compared by themselves.
_MARKS = {"kernel": "abcdefg", "drawn": "h"}
_COLUMNS = ("quantity", "simulated", "kernel", "ratio, 90 % interval", "verdict")
_NUMBERS = (1, 2)
# What `--keep` writes.
_TABLE = ".parquet"
# Blanks before the rows of a test case.
_INDENT = 2
_STYLES = {
    "equivalent": ("pass", "green"),
    "differs": ("differs", "bold red"),
    "inconclusive": ("inconclusive", "yellow"),
}

# A row of the report's JSON.
_Row = dict[str, Any]

_Quick = Annotated[bool, typer.Option("--quick", help="A few test cases of every part, in under four minutes.")]
_Only = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        metavar="PART",
        help="One of the parts a to f, g (coupled controls by BPF), or h (drawn test cases). Repeatable; a to f where "
        "absent, and with --again those of the file.",
    ),
]
_TestCase = Annotated[
    str | None, typer.Option("--test-case", metavar="TEXT", help="Only test cases with this in their names.")
]
# The option's former name, for one version.
_Cell = Annotated[str | None, typer.Option("--cell", hidden=True)]
_AtOnce = Annotated[
    int,
    typer.Option("--at-once", min=1, max=64, help="Live runs at a time. Runs whose links are too late are invalid."),
]
_LiveRuns = Annotated[
    int | None,
    typer.Option(
        "--live-runs",
        metavar="N",
        min=2,
        help="Live runs of each test case, in place of its own number: more make intervals narrower.",
    ),
]
_Store = Annotated[
    Path | None,
    typer.Option("--store", metavar="DIR", help="Where runs are kept; runs/validate/BUILD where absent."),
]
_AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output and nothing else.")]
_Again = Annotated[
    Path | None,
    typer.Option(
        "--again",
        metavar="FILE",
        help="Compare the live runs of a table of --keep, or of what an earlier --json printed, with new simulations: "
        "a minute, and no root. Tables of this project's runs are shipped: kernel-runs.parquet and "
        "kernel-drawn.parquet.",
    ),
]
_Keep = Annotated[
    Path | None,
    typer.Option(
        "--keep",
        metavar="FILE",
        help="Keep the live runs in this table, a .parquet; test cases that it has already are replaced.",
    ),
]
_Document = Annotated[
    Path | None,
    typer.Option(
        "--write",
        metavar="FILE",
        help="Put the tables into this document, between its markers: those of part h have their own.",
    ),
]


def validate(
    quick: _Quick = False,
    only: _Only = None,
    test_case: _TestCase = None,
    cell: _Cell = None,
    at_once: _AtOnce = 12,
    live_runs: _LiveRuns = None,
    jobs: JobsOption = None,
    store: _Store = None,
    as_json: _AsJson = False,
    again: _Again = None,
    keep: _Keep = None,
    document: _Document = None,
) -> None:
    """Run test cases in simulation and with the Linux kernel, and test whether they are equivalent."""
    from anabranch.validation import kept, recorded

    # The compiled part can make live runs on Linux only, and the other commands must work elsewhere.
    if sys.platform != "linux":
        fail("the comparison is with Linux's kernel; this is another system", Exit.RUN_FAILED)
    if keep is not None and keep.suffix != _TABLE:
        raise InputError(f"--keep {keep}: expected a file that ends in {_TABLE}")
    if live_runs is not None and again is not None:
        raise InputError(f"--live-runs and --again exclude each other: {again} has its live runs")
    # Names are checked before a file is read, which may say which parts there are.
    text = test_case or cell
    wanted = cases.chosen(only or (), quick=quick, text=text) if only or again is None else []
    earlier = None if again is None else _earlier(again)
    if earlier is not None and not only:
        wanted = cases.chosen([part.letter for part in earlier.parts], quick=quick, text=text)
    if live_runs is not None:
        wanted = [replace(case, live_runs=live_runs) for case in wanted]
    if document is not None:
        # One without markers is refused before anything runs.
        _page(document, dict.fromkeys(_marks(wanted), ""))
    folder = store or Path("runs") / "validate" / provenance.library_sha256()[:BUILD_DIGITS]
    outputs.check_folder(folder)
    try:
        found = _compare(wanted, folder, at_once, jobs, earlier)
    except _core.LiveError as error:
        fail(str(error), Exit.RUN_FAILED)
    except KeyboardInterrupt:
        fail(f"interrupted; finished runs are kept in {folder}, and the same command continues", Exit.INTERRUPTED)
    if document is not None:
        with outputs.writing(document):
            texts = {mark: found.of(parts).markdown() for mark, parts in _marks(wanted).items()}
            document.write_text(_page(document, texts), encoding="utf-8")
    said = found.json()
    if keep is not None:
        by_case = kept.write(keep, recorded.LiveRuns.of_report(found)).by_case
        runs = sum(len(each.live) for each in by_case.values())
        err().print(f"kept: {keep}, {plural(len(by_case), 'test case')}, {plural(runs, 'live run')}", soft_wrap=True)
    if as_json:
        echo_json(said)
    else:
        show(said)
        answer(Text(found.summary))
    if said["verdict"] == "differs":
        raise typer.Exit(Exit.RUN_FAILED)


def _earlier(file: Path) -> LiveRuns:
    """What an earlier comparison printed or kept."""
    from anabranch.validation import kept, recorded

    return kept.read(file) if file.suffix == _TABLE else recorded.of_json(_read(file))


def _compare(
    wanted: list[cases.TestCase], folder: Path, at_once: int, jobs: int | None, earlier: LiveRuns | None
) -> Report:
    """Runs the test cases, or takes their live runs from an earlier report."""
    from anabranch.experiments.progress import Bar
    from anabranch.experiments.store import Store
    from anabranch.validation.campaign import Campaign

    video = _video(real=earlier is None) if any(case.in_browser for case in wanted) else None
    if video is None:
        wanted = [case for case in wanted if not case.in_browser]
    known = None if earlier is None else (earlier.kernel, earlier.of(wanted))
    with outputs.writing(folder), Store(folder, provenance.build()) as store, Bar(err()) as bar:
        campaign = Campaign(wanted, store, jobs or cores(), bar, video)
        return campaign.compare(at_once) if known is None else campaign.conclude(*known)


def _read(file: Path) -> str:
    try:
        return regular.read_text(file, regular.MOST_BYTES)
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{file}: this is no text in UTF-8") from None


def _video(*, real: bool) -> Path | None:
    """The video for the browser; none, with a message, where a program is missing on this machine.

    Args:
        real: Whether the real dash.js plays it, and not only the simulated one.
    """
    from anabranch.live import browsing

    try:
        with progress_bar("encoding the browser's video") as progress:
            folder = browsing.video(progress)
        if real:
            browsing.prepare()
        return folder
    except ToolError as error:
        err().print(Text(f"without the real dash.js in (d): {error}", style="yellow"), soft_wrap=True)
        return None


def show(found: dict[str, Any]) -> None:
    """Prints a report for people; programs read ``--json``."""
    for part in found["parts"]:
        answer(Text(f"({part['letter']}) {part['title']}", style="bold"))
        if part["rows"]:
            _tell_by_case(part["rows"])
        if part["usual"] is not None:
            near, of = part["usual"]
            answer(Text(f"goodput within 5 % in {near} of {of} test cases"))
        answer(Text.assemble(f"({part['letter']}): ", _STYLES[part["verdict"]], "\n"))
        for note in part["notes"]:
            err().print(Text(note, style="yellow"), soft_wrap=True)


def _tell_by_case(rows: list[_Row]) -> None:
    """Each test case stands once above its quantities, and each tolerance once above all."""
    tolerances = dict.fromkeys(f"{row['quantity'].partition(',')[0]} {row['tolerance']}" for row in rows)
    answer(Text(f"tolerances: {'; '.join(tolerances)}"))
    texts = [_texts(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(_COLUMNS, *texts, strict=True)]
    # In a narrow terminal columns move closer, and names of quantities wrap: numbers and verdicts stay in one piece.
    room = out().width - _INDENT
    gap = 2 if sum(widths) + 2 * (len(widths) - 1) <= room else 1
    widths[0] = max(1, min(widths[0], room - sum(widths[1:]) - gap * (len(widths) - 1)))
    answer(_aligned(widths, gap, [_COLUMNS], style="bold"))
    for case, pairs in groupby(zip(rows, texts, strict=True), key=lambda pair: pair[0]["cell"]):
        answer(Text(case))
        answer(_aligned(widths, gap, [shown for _, shown in pairs]))


def _texts(row: _Row) -> tuple[str | Text, ...]:
    """What stands in the columns."""
    return row["quantity"], row["simulated"], row["live"], row["ratio"], Text(*_STYLES[row["verdict"]])


def _aligned(widths: list[int], gap: int, rows: list[tuple[str | Text, ...]], style: str = "") -> Padding:
    """Lines in columns of these widths: a table for each test case, whose name is as wide as all columns."""
    grid = Table.grid(padding=(0, gap, 0, 0))
    for position, width in enumerate(widths):
        grid.add_column(width=width, justify="right" if position in _NUMBERS else "left", style=style)
    for row in rows:
        grid.add_row(*row)
    return Padding(grid, (0, 0, 0, _INDENT))


def _marks(wanted: list[cases.TestCase]) -> dict[str, str]:
    """The names of the markers between which these test cases stand, with their parts."""
    letters = {case.part.letter for case in wanted}
    return {mark: parts for mark, parts in _MARKS.items() if letters & set(parts)}


def _page(document: Path, texts: dict[str, str]) -> str:
    """The document with these texts between the markers of their names."""
    page = _read(document)
    try:
        for mark, text in texts.items():
            page = markdown.replaced(page, mark, text)
    except InputError as error:
        raise InputError(f"{document}: {error}") from error
    return page
