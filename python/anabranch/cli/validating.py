"""`anabranch validate`: the same cells in simulation and with this machine's kernel, side by side."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from anabranch import InputError
from anabranch.cli.console import Exit, answer, err, fail, progress_bar
from anabranch.programs import ToolError

if TYPE_CHECKING:
    from anabranch.live.judging import Witness

EXAMPLES = (
    "Example: anabranch validate --quick --only a --only f\n\n"
    "After a change of the simulator: anabranch validate --again FILE, where FILE is what --json printed before.\n\n"
    "A comparison passes if the 90 % interval of log(simulated / kernel) lies inside its tolerance, differs if it "
    "lies wholly outside, and is inconclusive otherwise. The exit code is 1 if anything differs. Live runs need root, "
    "TUN and a kernel with MPTCP."
)

_BEGIN, _END = "<!-- begin kernel -->\n", "<!-- end kernel -->"
_COLUMNS = ("cell", "quantity", "simulated", "kernel", "ratio, 90 % interval", "tolerance", "verdict")
_STYLES = {
    "equivalent": ("pass", "green"),
    "differs": ("differs", "bold red"),
    "inconclusive": ("inconclusive", "yellow"),
}


def validate(
    quick: Annotated[bool, typer.Option("--quick", help="A few cells of every part, in under four minutes.")] = False,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="PART", help="One of the parts a to f. Repeatable; all where absent."),
    ] = None,
    cell: Annotated[
        str | None, typer.Option("--cell", metavar="TEXT", help="Only cells with this in their names.")
    ] = None,
    at_once: Annotated[
        int, typer.Option("--at-once", min=1, max=64, help="Live runs at a time. Runs that come too late are void.")
    ] = 12,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on standard output and nothing else.")
    ] = False,
    again: Annotated[
        Path | None,
        typer.Option(
            "--again",
            metavar="FILE",
            help="Judge the live runs that an earlier --json printed by new simulations: a minute, and no root.",
        ),
    ] = None,
    document: Annotated[
        Path | None,
        typer.Option("--write", metavar="FILE", help="Put the tables into this document, between its markers."),
    ] = None,
) -> None:
    """Run cells in simulation and with the Linux kernel, and judge whether they agree."""
    # The compiled part has it on Linux only, and the other commands must work elsewhere.
    if sys.platform != "linux":
        fail("the kernel that judges is Linux's; this is another system", Exit.RUN_FAILED)
    from anabranch._core import LiveError, judge, judge_browses, judge_parts

    parts = only or [letter for letter, _title in judge_parts()]
    if document is not None and _BEGIN not in _read(document):
        raise InputError(f"{document}: there is no line {_BEGIN.strip()} to write behind")
    earlier = None if again is None else _read(again)
    try:
        browser = _browser() if judge_browses(parts, quick=quick, only_cells=cell) else None
        with progress_bar("validating") as progress:
            report, markdown = judge(
                parts,
                quick=quick,
                only_cells=cell,
                at_once=at_once,
                browser=browser,
                earlier=earlier,
                progress=lambda done, of, _cell: progress(done / of),
            )
    except LiveError as error:
        fail(str(error), Exit.RUN_FAILED)
    except KeyboardInterrupt:
        fail("interrupted", Exit.INTERRUPTED)
    if document is not None:
        _write(document, markdown)
    found: dict[str, Any] = json.loads(report)
    if as_json:
        print(report, flush=True)
    else:
        _tell(found)
    if found["verdict"] == "differs":
        raise typer.Exit(Exit.RUN_FAILED)


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{file}: this is no text in UTF-8") from None


def _browser() -> tuple[Path, Witness] | None:
    """The video and who plays it; nothing, and a word about it, where this machine has not what it takes."""
    from anabranch.live import judging

    try:
        with progress_bar("encoding the browser's video") as progress:
            ladder = judging.video(progress)
        return ladder, judging.witness(ladder)
    except ToolError as error:
        err().print(Text(f"without the real dash.js in (d): {error}", style="yellow"), soft_wrap=True)
        return None


def _tell(found: dict[str, Any]) -> None:
    for part in found["parts"]:
        table = Table(*_COLUMNS, title=f"({part['letter']}) {part['title']}", title_justify="left", box=None)
        for row in part["rows"]:
            cells = [row[key] for key in ("cell", "quantity", "simulated", "live", "ratio", "tolerance")]
            table.add_row(*cells, Text(*_STYLES[row["verdict"]]))
        answer(table)
        if part["usual"] is not None:
            near, cells = part["usual"]
            answer(Text(f"goodput within 5 % in {near} of {cells} cells"))
        answer(Text.assemble(f"({part['letter']}): ", _STYLES[part["verdict"]], "\n"))
        for note in part["notes"]:
            err().print(Text(note, style="yellow"), soft_wrap=True)


def _write(document: Path, markdown: str) -> None:
    text = _read(document)
    before, _, rest = text.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not end:
        raise InputError(f"{document}: there is no line {_END}")
    document.write_text(f"{before}{_BEGIN}\n{markdown.strip()}\n\n{_END}{after}", encoding="utf-8")
