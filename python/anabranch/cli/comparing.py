"""`anabranch compare`: runs side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from anabranch import InputError, comparison, ending, runfolder
from anabranch.cli.console import Exit, answer, err, fail, out

EXAMPLES = "Example: anabranch compare runs/sticky-base-1-1 runs/sticky-base-1-2"

# A figure of more columns would be illegible.
_MOST_RUNS = 6


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
                for r, name in zip(runs, comparison.names(runs), strict=True)
            ]
            print(json.dumps({"schema": 1, "runs": found}, indent=2, ensure_ascii=False), flush=True)
        else:
            answer(comparison.table(runs, session))
        png = comparison.save_figure(runs, directory or directories[0].resolve().parent, session)
        (err() if as_json else out()).print(f"\nfigure: {png}", soft_wrap=True)
    except KeyboardInterrupt:
        fail("interrupted", Exit.INTERRUPTED)
