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
        answer(_table(rows, name, rules=kind == "abr_rule"))
        seeds = len(checking.SEEDS)
        if kind == "abr_rule":
            err().print(
                Text("Bitrate: the mean on screen. QoE: the linear QoE, the mean per media segment.", style="dim")
            )
        err().print(
            Text(f"Means of {seeds} seeds, for orientation: a plan with more seeds gives intervals.", style="dim")
        )
    if faults:
        fail(f"`{name}` breaks {faults} of {len(found)} properties", Exit.RUN_FAILED)


def _line(finding: checking.ContractCheck) -> Text:
    if finding.fault is None:
        return Text.assemble(("passes  ", "green"), finding.property)
    return Text.assemble(("fails   ", "bold red"), finding.property, "\n        ", finding.fault)


def _table(rows: list[checking.Row], own: str, *, rules: bool) -> Table:
    """A row for each algorithm; of bitrate rules with what they decide, the bitrate and the QoE."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("", overflow="fold")
    quality = ("bitrate", "QoE") if rules else ()
    for heading in (*quality, "goodput", "stalls", "frozen", "startup", "CPU"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        startup = "none" if row.startup_s is None else f"{row.startup_s:.2f} s"
        table.add_row(
            row.name,
            *(_quality(row) if rules else ()),
            f"{row.goodput_bps / 1e6:.2f} Mb/s",
            f"{row.stalls:.1f}",
            f"{row.stall_s:.1f} s",
            startup,
            f"{row.cpu_s:.2f} s",
            style="bold" if row.name == own else "",
        )
    return table


def _quality(row: checking.Row) -> tuple[str, str]:
    bitrate, qoe = row.mean_bitrate_bps, row.qoe_linear_per_segment
    return (
        "none" if bitrate is None else f"{bitrate / 1e6:.2f} Mb/s",
        "none" if qoe is None else f"{qoe:.0f} kb/s",
    )
