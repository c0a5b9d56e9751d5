"""`anabranch doctor`: what this machine can do, what is missing, and how to get it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from anabranch.cli.console import answer, echo_json
from anabranch.live import abilities

EXAMPLES = "Example: anabranch doctor\n\nIn a report of a fault: anabranch doctor --json"


def examine(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on standard output and nothing else.")
    ] = False,
) -> None:
    """Report what this machine can do: simulate, run live, play in a browser, serve. What is missing has a remedy."""
    this, found = abilities.machine(), abilities.abilities()
    if as_json:
        echo_json({"machine": asdict(this), "abilities": abilities.as_json(found)})
        return
    processors = "1 processor" if this.processors == 1 else f"{this.processors} processors"
    answer(Text(f"anabranch {this.anabranch}, Python {this.python}, {this.system}, {this.processor}, {processors}\n"))
    answer(_table(found))


def _table(found: list[abilities.Ability]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for ability in found:
        mark = ("yes", "green") if ability.works else ("no", "bold red")
        table.add_row(Text(*mark), ability.purpose)
        for reason in ability.missing:
            table.add_row("", Text(f"  {reason}", style="dim"))
    return table
