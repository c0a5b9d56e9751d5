"""Dictionaries whose keys are attributes, too: what the generated types of metrics are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from anabranch.errors import nearest


class Record(dict[str, Any]):
    """An object of JSON: ``record["goodput_bps"]`` and ``record.goodput_bps`` are the same.

    A class that is generated says which keys there are, so that an editor completes them and a type checker sees
    one that is misspelt. A key that only some objects have, such as those of DASH videos, is ``None`` as an attribute
    where it is absent, and is not there as a key.
    """

    __slots__ = ()

    if not TYPE_CHECKING:
        # Type checkers see the annotations of each class alone.
        def __getattr__(self, name: str) -> Any:
            if name in self:
                return self[name]
            if name in type(self).__annotations__:
                return None
            raise AttributeError(self._unknown(name))

        def __dir__(self) -> list[str]:
            return [*super().__dir__(), *self]

    def _unknown(self, name: str) -> str:
        return f"{type(self).__name__} has no `{name}`{nearest(name, type(self).__annotations__)}"

    def __reduce__(self) -> tuple[type[Self], tuple[dict[str, Any]]]:
        return type(self), (dict(self),)
