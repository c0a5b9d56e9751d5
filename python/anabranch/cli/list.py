"""`anabranch list`: what can be named in a scenario, and the shipped scenarios."""

from __future__ import annotations

from typing import Annotated, TypedDict

import typer
from rich.table import Table
from rich.text import Text

from anabranch import _core
from anabranch.cli import completion
from anabranch.cli.console import answer, echo_json
from anabranch.errors import InputError, alternatives
from anabranch.library import catalogue

EXAMPLES = "Example: anabranch list schedulers"

# A player and the bitrate rule that it decides by have the same name.
_NOTES = {
    "abr-rules": "How a player chooses bitrates. A scenario names the player of the same name, not the rule.",
    "reducers": "Numbers of sessions: a plan names them in `reducers`, or a column that begins with the name.",
    "plans": "What `anabranch sweep` runs; `anabranch plan show NAME` lists its runs.",
    "papers": "What `anabranch reproduce` executes and tests.",
    "players": "`player.kind` in a scenario. A DASH player decides by the bitrate rule of the same name (abr-rules).",
}


class Listed(TypedDict):
    """A line of the registry."""

    name: str
    summary: str
    source: str
    also: list[str]
    """The other kinds that have something of the same name: a player's bitrate rule, a rule's player."""


def list_names(
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="[KIND]",
            help="Which kind to list, such as schedulers, congestion-controls or scenarios; all where absent.",
            autocompletion=completion.kinds,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")] = False,
) -> None:
    """List what can be named: schedulers, congestion controls, players, scenarios and so on."""
    known = catalogue.kinds()
    if kind is not None and kind not in known:
        raise InputError(unknown(kind, known))
    groups = {each: entries(each) for each in (known if kind is None else [kind])}
    if as_json:
        echo_json(groups)
        return
    for number, (name, listed) in enumerate(groups.items()):
        answer(Text(f"{'' if number == 0 else chr(10)}{name}", style="bold"))
        if name in _NOTES:
            answer(Text(_NOTES[name], style="dim"))
        answer(_table(listed))


def entries(kind: str) -> list[Listed]:
    """All of one kind, in the order of the registry."""
    registry = _core.registry()
    registered = any(of == kind for of, *_ in registry)

    def also(name: str) -> list[str]:
        # A plan or a paper is called after what it is about.
        return [other for other, same, *_ in registry if registered and same == name and other != kind]

    return [
        {"name": name, "summary": entry.summary, "source": entry.source, "also": also(name)}
        for name, entry in catalogue.of_kind(kind).items()
    ]


def unknown(word: str, known: list[str]) -> str:
    """What to say when nothing has that name: what there is, and what was probably meant."""
    return f"nothing is called `{word}`{alternatives(word, known)}"


def _table(entries: list[Listed]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    table.add_column("name", style="cyan", no_wrap=True)
    table.add_column("summary", overflow="fold", ratio=3)
    if any(entry["source"] for entry in entries):
        table.add_column("source", style="dim", overflow="fold", ratio=2)
    for entry in entries:
        table.add_row(*(entry["name"], entry["summary"], entry["source"])[: len(table.columns)])
    return table
