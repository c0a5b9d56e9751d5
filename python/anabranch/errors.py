"""The error of a wrong input, and what it says of a wrong name: a leaf, which every other module may import."""

from __future__ import annotations

from collections.abc import Iterable

from anabranch import _core
from anabranch._core import InputError

__all__ = ["InputError", "alternatives", "nearest"]

# A longer list hides the answer.
_MOST_LISTED = 16


def alternatives(word: str, known: Iterable[str]) -> str:
    """What to say after a wrong word: what there is, and what was probably meant."""
    names = list(known)
    meant = nearest(word, names)
    listed = names and (not meant or len(names) <= _MOST_LISTED)
    return (f"; expected one of {', '.join(names)}" if listed else "") + meant


def nearest(word: str, known: Iterable[str], otherwise: str = "", *, prefix: str = "") -> str:
    """What to say after a wrong word whose alternatives are not listed: what was probably meant, if any is near.

    Args:
        word: The wrong word.
        known: What there is.
        otherwise: What to say if none is near.
        prefix: What stands in front of the word where it is written.
    """
    found = _core.nearest(word, list(known))
    return f"; did you mean `{prefix}{found}`?" if found else otherwise
