"""`anabranch check`: the conformance suite for an own algorithm, and a first comparison."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from anabranch.algorithms import checking
from anabranch.cli.console import Exit, answer, echo_json, err, fail

EXAMPLES = (
    "Example: anabranch check my_module:MyScheduler\n\n"
    "A built-in one written again in Python: anabranch check anabranch.algorithms.examples.min_rtt:MinRtt"
)


def check(
    name: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:CLASS", help="An algorithm of yours; the module is in this directory.", show_default=False
        ),
    ],
    compares: Annotated[
        bool, typer.Option("--compare/--no-compare", help="Compare with the built-in algorithms of its kind, too.")
    ] = True,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on standard output and nothing else.")
    ] = False,
) -> None:
    """Check that an algorithm in Python keeps the contract that the built-in ones keep, and compare it with them."""
    kind = checking.kind_of(name)
    found = []
    for finding in checking.findings(kind, name):
        found.append(finding)
        if not as_json:
            answer(_line(finding))
    faults = sum(finding.fault is not None for finding in found)
    rows = list(checking.comparison(kind, name)) if compares and not faults else []
    if as_json:
        about = {"schema": 1, "name": name, "kind": kind}
        lists = {"findings": [asdict(finding) for finding in found], "comparison": [asdict(row) for row in rows]}
        echo_json({**about, **lists})
    elif rows:
        answer("")
        answer(_table(rows, name))
        seeds = len(checking.SEEDS)
        err().print(
            Text(f"Means of {seeds} seeds, for orientation: a plan with more seeds gives intervals.", style="dim")
        )
    if faults:
        fail(f"`{name}` breaks {faults} of {len(found)} properties", Exit.RUN_FAILED)


def _line(finding: checking.ContractCheck) -> Text:
    if finding.fault is None:
        return Text.assemble(("passes  ", "green"), finding.property)
    return Text.assemble(("fails   ", "bold red"), finding.property, "\n        ", finding.fault)


def _table(rows: list[checking.Row], own: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("")
    for heading in ("goodput", "stalls", "frozen", "startup", "CPU"):
        table.add_column(heading, justify="right")
    for row in rows:
        startup = "none" if row.startup_s is None else f"{row.startup_s:.2f} s"
        table.add_row(
            row.name,
            f"{row.goodput_bps / 1e6:.2f} Mb/s",
            f"{row.stalls:.1f}",
            f"{row.stall_s:.1f} s",
            startup,
            f"{row.cpu_s:.2f} s",
            style="bold" if row.name == own else "",
        )
    return table
