"""What a caller passes: a value of a wrong type is refused with the argument's name and what to pass in its place."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from anabranch.errors import InputError

# A longer value is cut in messages.
_LONGEST_SHOWN = 40

_LARGEST_SEED = 2**64 - 1


def whole(name: str, value: object, expected: str, *, least: int | None = 0, most: int | None = None) -> int:
    """A whole number, also one of numpy; true and false are none."""
    if _is_flag(value) or not hasattr(value, "__index__"):
        raise refused(name, value, expected)
    number = operator.index(value)
    if (least is not None and number < least) or (most is not None and number > most):
        raise InputError(f"{name} {number}: expected {expected}")
    return number


def seed(name: str, value: object) -> int:
    """A seed."""
    return whole(name, value, f"a whole number from 0 to 2**64 - 1, such as {name}=2", most=_LARGEST_SEED)


def number(name: str, value: object, expected: str) -> float:
    """A number that is not negative."""
    if _is_flag(value) or not hasattr(value, "__float__") or not float(value) >= 0:
        raise refused(name, value, expected)
    return float(value)


def flag(name: str, value: object) -> bool:
    """True or false."""
    if not _is_flag(value):
        raise refused(name, value, "True or False")
    return bool(value)


def text(name: str, value: object, expected: str) -> str:
    """A text."""
    if not isinstance(value, str):
        raise refused(name, value, expected)
    return value


def texts(**values: object) -> None:
    """Refuses what is no text and not absent: quantities are texts, because they have a unit."""
    for name, value in values.items():
        if value is not None:
            text(name, value, "a text in quotes")


def place(name: str, value: object, expected: str) -> str | os.PathLike[str]:
    """A text or a path."""
    if isinstance(value, str) or (isinstance(value, os.PathLike) and isinstance(os.fspath(value), str)):
        return value
    raise refused(name, value, expected)


def source(name: str, value: object, what: str) -> None:
    """Refuses what is neither a file nor a name nor a dictionary."""
    if not isinstance(value, Mapping):
        place(name, value, f"a file, the name of a shipped {what}, or a dictionary with the keys of a {what}")


def keys(name: str, value: object) -> Mapping[str, Any]:
    """Keys with their values, or none."""
    expected = f'a dictionary, such as {name}={{"transport.scheduler": "ecf"}}'
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise refused(name, value, expected)
    for key in value:
        if not isinstance(key, str):
            raise InputError(f"{name}: the key {_shown(key)} is {_kind(key)}; expected {expected}")
    return value


def listed(name: str, value: object, expected: str) -> Sequence[Any]:
    """Several values in an order, also those of an array; a text is none, although it has letters."""
    if isinstance(value, str | bytes | Mapping) or not (hasattr(value, "__len__") and hasattr(value, "__getitem__")):
        raise refused(name, value, expected)
    return tuple(value)  # type: ignore[arg-type]


def function(name: str, value: object, expected: str) -> Callable[..., Any]:
    """Something that can be called."""
    if not callable(value):
        raise refused(name, value, expected)
    return value


def refused(name: str, value: object, expected: str) -> InputError:
    """The error of a value that is of a wrong type."""
    return InputError(f"{name}={_shown(value)} is {_kind(value)}; expected {expected}")


def _is_flag(value: object) -> bool:
    # Numpy need not be loaded for this.
    return isinstance(value, bool) or (type(value).__module__ == "numpy" and type(value).__name__ in ("bool", "bool_"))


def _kind(value: object) -> str:
    if value is None:
        return "nothing"
    if _is_flag(value):
        return "true or false"
    kinds: list[tuple[type | tuple[type, ...], str]] = [
        (str, "a text"),
        (bytes, "bytes"),
        ((int, float), "a number"),
        (Mapping, "a dictionary"),
        ((list, tuple), "a list"),
    ]
    return next((word for kind, word in kinds if isinstance(value, kind)), f"of the type `{type(value).__name__}`")


def _shown(value: object) -> str:
    shown = " ".join(repr(value).split())
    return shown if len(shown) <= _LONGEST_SHOWN else f"{shown[: _LONGEST_SHOWN - 3]}..."
