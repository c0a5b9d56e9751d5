"""`anabranch compare`: runs side by side."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.measure import Measurement

from anabranch import InputError, comparison, ending, naming, outputs, runfolder
from anabranch.cli.console import Exit, answer, err, fail, out

EXAMPLES = "Example: anabranch compare runs/sticky-base-1-1 runs/sticky-base-1-2"

# A figure of more columns would be illegible.
_MOST_RUNS = 6
# More columns than any terminal has.
_ANY_WIDTH = 10_000


def compare(
    directories: Annotated[
        list[Path], typer.Argument(metavar="DIR DIR...", help="Run folders, two to six.", show_default=False)
    ],
    directory: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Where to write comparison.png and comparison.svg; beside the first run where absent.",
        ),
    ] = None,
    session: Annotated[
        int, typer.Option("--session", min=0, metavar="N", help="Which session of each run, counted from 0.")
    ] = 0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on standard output and nothing else.")
    ] = False,
) -> None:
    """Put one session of each of several runs side by side, as a table and as a figure."""
    if not 2 <= len(directories) <= _MOST_RUNS:
        raise InputError(f"{len(directories)} run folder(s) given; expected two to {_MOST_RUNS}")
    target = directory or directories[0].resolve().parent
    outputs.check_folder(target)
    try:
        runs = [runfolder.read(d) for d in directories]
        for run in runs:
            if not run.metrics["sessions"]:
                raise InputError(f"{run.directory}: this run has no session: there is nothing to compare")
            runfolder.check_session(session, run.directory, len(run.recording.sessions))
        if as_json:
            found = [
                {
                    "directory": str(r.directory),
                    "name": name,
                    "seed": r.about["seed"],
                    "warnings": ending.warnings(r.metrics),
                    "metrics": r.metrics,
                }
                for r, name in zip(runs, naming.names(runs), strict=True)
            ]
            print(json.dumps({"schema": 1, "runs": found}, indent=2, ensure_ascii=False), flush=True)
        else:
            answer(_table(runs, session))
        png = comparison.save_figure(runs, target, session)
        (err() if as_json else out()).print(f"\nfigure: {png}", soft_wrap=True)
    except KeyboardInterrupt:
        fail("interrupted", Exit.INTERRUPTED)


def _table(runs: Sequence[runfolder.StoredRun], session: int) -> RenderableType:
    """The table with what differs in its head, or in rows where the terminal is too narrow for that."""
    console, wide = out(), comparison.table(runs, session)
    needed = Measurement.get(console, console.options.update(max_width=_ANY_WIDTH), wide).maximum
    return wide if needed <= console.width else comparison.table(runs, session, stacked=True)
