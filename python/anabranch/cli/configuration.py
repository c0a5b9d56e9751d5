"""The configuration file of a command: its options by the same names, without the dashes in front."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import click

from anabranch.experiments.document import Document
from anabranch.experiments.document import read as read_document


def read(path: Path, context: click.Context, *, excluded: Collection[str]) -> dict[str, Any]:
    """The values of a file by the names of the command's parameters, checked as if they were typed.

    A relative path is relative to the file.

    Raises:
        InputError: The file is no TOML, a key is no option or one of `excluded`, or a value is wrong. The message has the line.
        OSError: The file cannot be read.
    """
    document = read_document(path, "a configuration")
    options = {name: parameter for parameter in context.command.params if (name := _name(parameter)) not in excluded}
    document.check_keys((), document.data, options)
    return {
        str(options[key].name): _value(document, key, value, options[key], context)
        for key, value in document.data.items()
    }


def _name(parameter: click.Parameter) -> str:
    return max(parameter.opts, key=len).lstrip("-")


def _value(document: Document, key: str, value: Any, parameter: click.Parameter, context: click.Context) -> Any:
    if parameter.multiple:
        texts: Sequence[Any] = document.typed((key,), value, list, "a list of texts")
        return [_converted(document, key, text, parameter, context) for text in texts]
    if isinstance(parameter, click.Option) and parameter.is_flag:
        return document.typed((key,), value, bool, "true or false")
    return _converted(document, key, value, parameter, context)


def _converted(document: Document, key: str, value: Any, parameter: click.Parameter, context: click.Context) -> Any:
    kind = parameter.type
    if isinstance(kind, click.types.IntParamType):
        document.typed((key,), value, int, "a whole number")
    elif isinstance(kind, click.types.FloatParamType):
        value = float(value) if type(value) is int else document.typed((key,), value, float, "a number")
    else:
        document.typed((key,), value, str, "a text")
    if isinstance(kind, click.Path) and value != "-":
        value = str(document.path.absolute().parent / value)
    try:
        return kind.convert(value, parameter, context)
    except click.BadParameter as error:
        raise document.mistake((key,), f"`{key}`: {error.message}") from error
