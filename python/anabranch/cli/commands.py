"""The commands by name, each in a module of its own, which is imported when the command is named.

To import them all takes most of half a second: libraries of tables, numbers and figures, of which `anabranch list` or
a shell that completes a word needs none.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any

import typer
from typer.core import TyperGroup

_PLACES = {
    "demo": "demo:demonstrate",
    "list": "list:list_names",
    "run": "run:run",
    "explain": "explain:explain",
    "plan": "plan:app",
    "sweep": "sweep:sweep",
    "report": "report:report",
    "compare": "compare:compare",
    "check": "check:check",
    "paper": "paper:app",
    "reproduce": "reproduce:reproduce",
    "content": "content:app",
    "completion": "completion:print_script",
    "doctor": "doctor:examine",
    "kernel": "kernel:app",
    "schema": "schema:print_schema",
    "serve": "serve.command:serve",
    "trace": "trace:app",
    "validate": "validate:validate",
}
"""Each command's module in this package and, behind the colon, its function, or its application with subcommands."""


def _load(name: str) -> Any:
    """The command of a name, as the library of command lines has it."""
    module_name, _, attribute = _PLACES[name].partition(":")
    module = importlib.import_module(f"anabranch.cli.{module_name}")
    found = getattr(module, attribute)
    if isinstance(found, typer.Typer):
        # A group, even of a single command.
        command: Any = typer.main.get_group(found)
    else:
        alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
        alone.command(name, epilog=module.EXAMPLES)(found)
        command = typer.main.get_command(alone)
    command.name = name
    return command


class _Commands(Mapping[str, Any]):
    """All commands, in the order in which the help lists them."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = _load(name)
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_PLACES)

    def __len__(self) -> int:
        return len(_PLACES)


class Commands(TyperGroup):
    """The group of all commands."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = _Commands()  # type: ignore[assignment]

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """Their names, without importing anything."""
        return list(self.commands)
