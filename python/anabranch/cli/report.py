"""`anabranch report`: one page for what a sweep, some runs, or the reproduction of a paper found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anabranch.cli.console import Exit, err, fail, out, progress_bar
from anabranch.errors import InputError
from anabranch.system import outputs
from anabranch.wording.summary import plural

if TYPE_CHECKING:
    from anabranch.report import Report

EXAMPLES = (
    "Example: anabranch report runs/schedulers\n\n"
    "Of run folders: anabranch report runs/sticky-base-1-1 runs/sticky-base-2-1 --out sticky.html\n\n"
    "For a paper: anabranch report runs/schedulers --export figures\n\n"
    "Of the claims of a paper: anabranch reproduce mine --out found; anabranch report found"
)

_TIMELINES = 60
_MOST_FOLDERS = 60


def report(
    places: Annotated[
        list[Path],
        typer.Argument(
            metavar="STORE|DIR...",
            help="A store of a sweep (or a table in it), one or several run folders, a folder of `reproduce --out`, or "
            "the folder of a paper.",
            show_default=False,
        ),
    ],
    target: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="The page; STORE/PLAN.html, or report.html in the folder or next to the first of several.",
            show_default=False,
        ),
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(
            "--export",
            metavar="DIR",
            help="Also write the tables as CSV and LaTeX, and the figures as SVG and PDF for a two-column paper.",
            show_default=False,
        ),
    ] = None,
    timelines: Annotated[
        int, typer.Option("--timelines", min=0, metavar="N", help="Of a sweep, how many sessions get a timeline.")
    ] = _TIMELINES,
) -> None:
    """Write one HTML page, which needs no network, of a sweep, of run folders or of a paper."""
    from anabranch.experiments import store

    stored = len(places) == 1 and (places[0].suffix == ".parquet" or store.is_store(places[0]))
    _check(places)
    file = target or _file(places, stored)
    if file.is_dir():
        raise InputError(f"--out {file}: this is a folder; expected the name of a file, such as {file}/report.html")
    for folder in (file.parent, *([export] if export else [])):
        outputs.check_folder(folder)
    try:
        made = _of_store(places[0], timelines) if stored else _of_paper(places) or _of_folders(places)
        _write(made, file, export)
    except KeyboardInterrupt:
        fail("interrupted; nothing was written", Exit.INTERRUPTED)


def _check(places: Sequence[Path]) -> None:
    from anabranch.experiments import store

    if len(places) > 1:
        for place in places:
            if store.is_store(place) or place.suffix == ".parquet":
                raise InputError(
                    f"{place}: this is a store, and a report is of one store or of run folders; "
                    "`anabranch compare` compares the tables of several"
                )
    if len(places) > _MOST_FOLDERS:
        raise InputError(f"{len(places)} run folders given; expected at most {_MOST_FOLDERS}")
    if len({place.resolve() for place in places}) < len(places):
        raise InputError("a run folder is given twice; expected different ones")


def _file(places: Sequence[Path], stored: bool) -> Path:
    from anabranch.report import stored as stores

    if stored:
        folder, table = stores.table_of(places[0])
        return folder / f"{table.stem}.html"
    return (places[0] if len(places) == 1 else places[0].resolve().parent) / "report.html"


def _of_store(place: Path, timelines: int) -> Report:
    from anabranch.report import stored

    with progress_bar("making timelines") as progress:
        return stored.of_store(place, timelines=timelines, progress=progress)


def _of_paper(places: Sequence[Path]) -> Report | None:
    """The report of a paper, if this is what the place is."""
    from anabranch.cli import reproduce
    from anabranch.experiments import paper
    from anabranch.report import paper_text, reproduced

    place, *others = places
    if others:
        return None
    if reproduced.is_reproduction(place):
        return reproduced.of_folder(place)
    if not (place / paper.FILE).is_file():
        return None
    found = reproduce.found_of([paper.load(str(place))], reproduce.How())
    return reproduced.of_document(paper_text.document(found, sensitivity=False))


def _of_folders(places: Sequence[Path]) -> Report:
    from anabranch.report import folders

    with progress_bar("making runs again, to explain them") as progress:
        return folders.of_folders(places, progress=progress)


def _write(made: Report, file: Path, export: Path | None) -> None:
    from anabranch import report as reports
    from anabranch.report import exports

    reports.write(made, file)
    size = f"{file.stat().st_size / 1e6:.1f} MB"
    sessions = made.sessions
    rows = len(sessions.timelines) if sessions else 0
    said = f"{plural(rows, 'session')}, {len(made.timelines)} of them with a timeline; {size}" if rows else size
    out().print(f"report: {file}", soft_wrap=True)
    err().print(said, soft_wrap=True)
    if export is not None:
        written = exports.write(made, export)
        err().print(f"{plural(len(written), 'file')} for a paper in {export}", soft_wrap=True)
