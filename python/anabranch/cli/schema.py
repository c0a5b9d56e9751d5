"""`anabranch schema`: the JSON Schema of scenarios, for editors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anabranch import _core
from anabranch.cli.console import answer, echo
from anabranch.system import outputs

EXAMPLES = "Example: anabranch schema --out anabranch.schema.json"


def print_schema(
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write it to a file instead of standard output."),
    ] = None,
) -> None:
    """Print the JSON Schema of scenarios: completion and error marks in editors.

    An editor with a language server for TOML uses it if the scenario's first line names the file:
    #:schema anabranch.schema.json
    """
    text = _core.scenario_schema()
    if out is None:
        echo(text)
        return
    with outputs.writing(out):
        out.write_text(text + "\n", encoding="utf-8")
    answer(f"schema: {out}")
