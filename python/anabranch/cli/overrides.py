"""The option `--set`, which several commands take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from anabranch.cli import completion
from anabranch.errors import InputError

SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override a key, such as transport.scheduler=gr-sty. Repeatable.",
        autocompletion=completion.overrides,
    ),
]


def split(given: Sequence[str] | None) -> tuple[tuple[str, str], ...]:
    """The keys with their values.

    Raises:
        InputError: One has no key, or no sign of equality.
    """
    return tuple(_split(text) for text in given or ())


def _split(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not key.strip():
        raise InputError(f"--set {text}: expected KEY=VALUE, such as transport.scheduler=gr-sty")
    return key.strip(), value.strip()
