"""`anabranch paper`: papers of one's own."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from anabranch.cli.console import answer

EXAMPLES = "Example: anabranch paper new mine; then: anabranch reproduce mine"

app = typer.Typer(
    help="Papers that anyone can execute.",
    epilog=EXAMPLES,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _group() -> None:
    pass


@app.command("new", epilog=EXAMPLES)
def new(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder to make; its name is the paper's.")],
) -> None:
    """Make the folder of a paper that runs: a plan, a claim with its criterion, and a text."""
    from anabranch.experiments import paper_new

    files = paper_new.write(folder)
    answer(f"made {', '.join(map(str, files))}")
    command = shlex.join(["anabranch", "reproduce", str(folder), "--sensitivity", "--out", f"{folder}-report"])
    answer(f"execute it: {command}")
