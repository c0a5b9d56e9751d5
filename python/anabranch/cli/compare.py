"""`anabranch compare`: runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.measure import Measurement

from anabranch.cli.console import ANY_WIDTH, Exit, answer, echo_json, err, fail, out, say_warning
from anabranch.errors import InputError
from anabranch.runs import comparison, naming, runfolder
from anabranch.system import outputs
from anabranch.wording import ending

EXAMPLES = (
    "Example: anabranch compare runs/sticky-base-1-1 runs/sticky-base-1-2\n\n"
    "Two tables of one plan: anabranch compare old/schedulers.parquet new/schedulers.parquet --metric stall_s"
)

# A figure of more columns would be illegible.
_MOST_RUNS = 6


_Metrics = Annotated[
    list[str] | None,
    typer.Option("--metric", metavar="NAME", help="Of tables, a column to compare. Repeatable.", show_default=False),
]


def compare(
    directories: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR DIR...", help="Run folders, or tables or stores of sweeps, two to six.", show_default=False
        ),
    ],
    directory: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Where to write comparison.png and comparison.svg; next to the first run where absent.",
        ),
    ] = None,
    session: Annotated[
        int, typer.Option("--session", min=0, metavar="N", help="Which session of each run, counted from 0.")
    ] = 0,
    metrics: _Metrics = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on standard output and nothing else.")
    ] = False,
) -> None:
    """Put one session of each of several runs side by side, as a table and as a figure; or compare tables of sweeps."""
    if not 2 <= len(directories) <= _MOST_RUNS:
        given = "one folder or table" if len(directories) == 1 else f"{len(directories)} folders or tables"
        raise InputError(f"{given} given; expected 2 to {_MOST_RUNS} of runs, or of sweeps")
    if _are_tables(directories):
        _compare_tables(directories, metrics or [], as_json)
        return
    if metrics:
        raise InputError("--metric is for tables of sweeps; run folders are compared in all metrics")
    target = directory or directories[0].resolve().parent
    outputs.check_folder(target)
    try:
        runs = [runfolder.read(d) for d in directories]
        for run in runs:
            if not run.metrics["sessions"]:
                raise InputError(f"{run.directory}: this run has no session: there is nothing to compare")
            runfolder.check_session(session, run.directory, len(run.recording.sessions))
        _say(runs, session, as_json)
        png = comparison.save_figure(runs, target, session)
        (err() if as_json else out()).print(f"\nfigure: {png}", soft_wrap=True)
    except KeyboardInterrupt:
        fail("interrupted", Exit.INTERRUPTED)


def _say(runs: Sequence[runfolder.StoredRun], session: int, as_json: bool) -> None:
    """Prints what differs, and the metrics."""
    if (said := comparison.of_seeds(runs)) is not None:
        say_warning(said)
    if as_json:
        found = [
            {
                "directory": str(run.directory),
                "name": name,
                "seed": run.about["seed"],
                "warnings": ending.warnings(run.metrics),
                "metrics": run.metrics,
            }
            for run, name in zip(runs, naming.names(runs), strict=True)
        ]
        echo_json({"schema": 1, "differences": naming.every_difference(runs), "runs": found})
        return
    if (differences := comparison.every_difference(runs)) is not None:
        answer(differences)
        answer("")
    answer(_table(runs, session))


def _are_tables(paths: Sequence[Path]) -> bool:
    from anabranch.experiments import versions

    tables = [path for path in paths if versions.is_table(path)]
    if tables and len(tables) < len(paths):
        other = next(path for path in paths if path not in tables)
        raise InputError(f"{other}: this is no table of a sweep, and {tables[0]} is one; expected all or none of them")
    return bool(tables)


def _compare_tables(paths: Sequence[Path], metrics: Sequence[str], as_json: bool) -> None:
    from anabranch.experiments import contrast, summary, versions

    if len({path.resolve() for path in paths}) < len(paths):
        raise InputError("a table is given twice; expected different ones")
    tables = versions.read(paths)
    found, differences = versions.compare(tables, metrics), versions.differences(tables)
    if (said := versions.of_seeds(tables)) is not None:
        say_warning(said)
    if as_json:
        rows = [row for each in found for row in contrast.rows(each)]
        echo_json({"schema": 1, "differences": differences, "rows": rows})
        return
    if differences:
        answer(comparison.differences_table(differences, list(map(str, paths))))
        answer("")
    answer(summary.versions_table(found))
    for note in dict.fromkeys(note for each in found for note in each.notes):
        answer(f"Note: {note}.")
    answer(summary.method(found))


def _table(runs: Sequence[runfolder.StoredRun], session: int) -> RenderableType:
    """The table with what differs in its head, or in rows where the terminal is too narrow for that."""
    console, wide = out(), comparison.table(runs, session)
    # The sentences below the table wrap.
    needed = Measurement.get(console, console.options.update(max_width=ANY_WIDTH), wide.renderables[0]).maximum
    return wide if needed <= console.width else comparison.table(runs, session, stacked=True)
