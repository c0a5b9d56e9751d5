"""A TOML text in which every key knows its line, so that messages name the place."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self, TypeVar

from anabranch import _core
from anabranch.errors import InputError, alternatives
from anabranch.system import regular

_T = TypeVar("_T")

_OVERRIDE = "--set "

Way = tuple[str, ...]
"""The keys from the top of a text to a value; positions in lists are keys, too."""


class Document:
    """A text that was read.

    Attributes:
        path: Where it is from; stands in front of messages.
        text: The text itself.
        data: Its tables.
    """

    def __init__(self, text: str, path: Path) -> None:
        self.path = path
        self.text = text
        self._given: dict[Way, str] = {}
        self._lines = {tuple(way): line for way, line in reversed(_core.toml_lines(text, name=str(path)))}
        try:
            self.data: dict[str, Any] = tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            # Python's reader has limits of its own, such as that of digits.
            raise InputError(f"{path}: {error}") from error

    def with_values(self, values: Mapping[Way, tuple[Any, str]]) -> Self:
        """A copy with other values at some places, each with what messages say instead of file and line."""
        changed = copy.copy(self)
        changed.data = copy.deepcopy(self.data)
        changed._given = {**self._given, **{way: said for way, (_, said) in values.items()}}
        for way, (value, _) in values.items():
            table = changed.data
            for key in way[:-1]:
                table = table[key]
            table[way[-1]] = value
        return changed

    def line(self, way: Way) -> int | None:
        """The line of a key, or of the nearest table around it that is in the text."""
        for length in range(len(way), 0, -1):
            if (line := self._lines.get(way[:length])) is not None:
                return line
        return None

    def place(self, way: Way) -> str:
        """The file, and the line where it is known; or the option that gave the value."""
        if (said := self.given(way)) is not None:
            return said
        line = self.line(way)
        return str(self.path) if line is None else f"{self.path}:{line}"

    def given(self, way: Way) -> str | None:
        """The option that gave the value at a place; ``None`` where it is that of the text."""
        found = (self._given.get(way[:length]) for length in range(len(way), 0, -1))
        return next((said for said in found if said is not None), None)

    def mistake(self, way: Way, message: str) -> InputError:
        """What is wrong with what is written at a place."""
        if self.given(way) and message.startswith(_OVERRIDE):
            # The reader of scenarios has named the option, with the very value that is wrong.
            return InputError(message)
        return InputError(f"{self.place(way)}: {message}")

    def check_keys(self, way: Way, table: Mapping[str, Any], known: Iterable[str]) -> None:
        """Refuses keys that a table does not have."""
        expected = list(known)
        for key in table:
            if key not in expected:
                inside = f" in [{'.'.join(way)}]" if way else ""
                raise self.mistake((*way, key), f"unknown key `{key}`{inside}{alternatives(key, expected)}")

    def typed(self, way: Way, value: Any, kind: type[_T], expected: str) -> _T:
        """The value, if it is of a type; true and false are no numbers."""
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.mistake(way, f"`{way[-1]}` is {_kind(value)}; expected {expected}")
        return value


def read(path: Path, what: str = "a plan") -> Document:
    """Reads a file that should be `what`.

    Raises:
        InputError: It is no regular file or no TOML in UTF-8; the message has the line.
    """
    try:
        text = regular.read(path, regular.MOST_TEXT).decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: this is no text in UTF-8; expected {what} in TOML") from error
    return Document(text, path)


def _kind(value: Any) -> str:
    # Booleans are integers in Python, so they come first.
    kinds: list[tuple[type, str]] = [
        *((bool, "true or false"), (str, "a text"), (int, "a number"), (float, "a number")),
        *((list, "a list"), (dict, "a table")),
    ]
    return next((name for kind, name in kinds if isinstance(value, kind)), "a date or nothing")
