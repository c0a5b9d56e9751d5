"""Reading a scenario: a file, the name of a shipped one, standard input, or a dictionary."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from anabranch import _core, arguments
from anabranch.errors import InputError, nearest
from anabranch.system import regular

# What a scenario given as a dictionary is called in messages and metrics.
_DICTIONARY_NAME = "scenario"

STANDARD_INPUT = "-"
"""What stands for standard input in the place of a file."""

_STANDARD_INPUT_NAME = "stdin"


def as_given(overrides: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Overrides as ``--set`` takes them."""
    return tuple(f"{key}={value}" for key, value in overrides)


def load(
    scenario: str | Path | Mapping[str, Any], overrides: Sequence[tuple[str, str]] = (), modules: Path | None = None
) -> _core.Scenario:
    """Reads and checks a scenario; arguments and errors as those of `run`, overrides as text.

    Modules of own algorithms are looked for next to the scenario, then in the folder ``modules``.
    """
    arguments.source("scenario", scenario, "scenario")
    if isinstance(scenario, Mapping):
        return _core.load_dictionary(scenario, name=_DICTIONARY_NAME, overrides=overrides)
    path, name = Path(scenario), str(scenario)
    if name == STANDARD_INPUT:
        text = _text(sys.stdin.buffer.read(), _STANDARD_INPUT_NAME)
        return _core.load(text, name=_STANDARD_INPUT_NAME, directory=None, overrides=overrides, modules=modules)
    if path.exists() and not path.is_dir():
        text = _text(regular.read(path, regular.MOST_TEXT), name)
        return _core.load(text, name=str(path), directory=path.parent, overrides=overrides, modules=modules)
    shipped = _core.shipped(name)
    if shipped is None:
        raise InputError(_folder(path) if path.is_dir() else _unknown(name))
    return _core.load(shipped, name=name, directory=None, overrides=overrides, modules=modules)


def overrides_of(changes: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Overrides as text. An empty dictionary merges nothing."""
    items = arguments.keys("set", changes).items()
    return [(k, _core.value_text(v, k)) for k, v in items if not (isinstance(v, Mapping) and not v)]


def _text(content: bytes, name: str) -> str:
    try:
        # Windows' line ends count as one, as they do in a file that is opened as text.
        return content.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: this is no text in UTF-8; expected a scenario in TOML") from error


def _folder(path: Path) -> str:
    inside = path / "scenario.toml"
    hint = f"; did you mean `{inside}`?" if inside.is_file() else ""
    return f"{path}: this is a directory; expected a scenario's file or the name of a shipped scenario{hint}"


def _unknown(name: str) -> str:
    return f"{name}: there is no such file and no shipped scenario of that name{nearest_scenario(name)}"


def nearest_scenario(name: str) -> str:
    """What to say of a name that no shipped scenario has."""
    names = [entry[1] for entry in _core.registry() if entry[0] == "scenarios"]
    return nearest(name, names, "; `anabranch list scenarios` names them")
