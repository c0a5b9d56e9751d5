"""The configuration file of a command: its options by the same names, without the dashes in front."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from anabranch.errors import InputError
from anabranch.experiments.document import Document
from anabranch.experiments.document import read as read_document


@dataclass(frozen=True)
class Option:
    """An option of a command.

    Attributes:
        parameter: The name of the function's parameter.
        kind: The type of a value.
        many: Whether it may be given several times.
        least: The least number, if there is one.
        most: The greatest number, if there is one.
    """

    parameter: str
    kind: type
    many: bool
    least: float | None
    most: float | None


def options_of(command: Callable[..., None], *, excluded: Collection[str]) -> dict[str, Option]:
    """The options of a command's function by their names, without the `excluded` ones."""
    hints = get_type_hints(command, include_extras=True)
    options = {}
    for parameter, hint in hints.items():
        name = parameter.replace("_", "-")
        if get_origin(hint) is not Annotated or name in excluded:
            continue
        annotated, info, *_ = get_args(hint)
        alternatives = get_args(annotated) if get_origin(annotated) is UnionType else (annotated,)
        (kind,) = (kind for kind in alternatives if kind is not NoneType)
        many = get_origin(kind) is list
        options[name] = Option(parameter, get_args(kind)[0] if many else kind, many, info.min, info.max)
    return options


def read(path: Path, options: dict[str, Option]) -> dict[str, Any]:
    """The values of a file by the names of the command's parameters. A relative path is relative to the file.

    Raises:
        InputError: The file is no TOML, a key is no option, or a value is wrong. The message has the line.
        OSError: The file cannot be read.
    """
    document = read_document(path, "a configuration")
    document.check_keys((), document.data, options)
    return {options[key].parameter: _value(document, key, value, options[key]) for key, value in document.data.items()}


def _value(document: Document, key: str, value: Any, option: Option) -> Any:
    if option.many:
        texts: list[Any] = document.typed((key,), value, list, "a list of texts")
        return [document.typed((key,), text, str, "a list of texts") for text in texts]
    if option.kind is bool:
        return document.typed((key,), value, bool, "true or false")
    if option.kind in (int, float):
        return _number(document, key, value, option)
    text = document.typed((key,), value, str, "a text")
    if "\0" in text:
        # The kernel's names end there.
        raise document.mistake((key,), f"`{key}` has a zero character; expected a text without")
    if issubclass(option.kind, Path):
        return Path(text) if text == "-" else document.path.absolute().parent / text
    return text


def check_numbers(values: Mapping[str, Any], options: Mapping[str, Option]) -> None:
    """Checks what was typed: the command line's own check lets pass what is no number ("nan").

    Raises:
        InputError: A number is outside its bounds.
    """
    for name, option in options.items():
        value = values.get(option.parameter)
        if option.kind in (int, float) and (problem := _out_of_bounds(value, option)) is not None:
            raise InputError(f"--{name}: {problem}")


def _number(document: Document, key: str, value: Any, option: Option) -> float:
    whole = option.kind is int or type(value) is int
    document.typed((key,), value, int if whole else float, "a whole number" if option.kind is int else "a number")
    if (problem := _out_of_bounds(value, option)) is not None:
        raise document.mistake((key,), f"`{key}` is {problem}")
    # What is inside of bounds fits: a whole number in a file has as many digits as its author likes.
    number: float = option.kind(value)
    return number


def _out_of_bounds(number: Any, option: Option) -> str | None:
    least, most = option.least or 0, option.most
    # Comparisons of "nan" are false. They are exact between whole numbers and others.
    if least <= number <= (float("inf") if most is None else most) and number != float("inf"):
        return None
    shown = str(number) if type(number) is int else f"{number:.12g}"
    shown = shown if len(shown) <= _MOST_SHOWN else f"{shown[:_MOST_SHOWN]}..."
    return f"{shown}; expected at least {least:.12g}" + ("" if most is None else f" and at most {most:.12g}")


# Characters of a number in a message.
_MOST_SHOWN = 24
