"""What replaces values of a plan without a change of its file: `--set`, `--seeds` and `--engine`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from anabranch.errors import InputError, alternatives
from anabranch.experiments.document import Document, Way
from anabranch.experiments.variation import Axis, Point, leaves

_DIRECTION = re.compile(r"^(link\.[^.]+)\.(?:up|down)\b")
_KIND = re.compile(r"\.(?:name|kind)$")


@dataclass(frozen=True)
class Changes:
    """Values in the place of those of a plan.

    Attributes:
        overrides: Keys with their values as ``--set`` takes them. The key of an axis chooses its values; any other key
            is one of the scenario, and holds in every run.
        seeds: What the plan's key ``seeds`` may be; ``None`` for those of the plan.
        engines: The engines; none for those of the plan.
    """

    overrides: tuple[tuple[str, str], ...] = ()
    seeds: int | str | tuple[int, ...] | None = None
    engines: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self != Changes()

    @property
    def options(self) -> list[str]:
        """The same as options of the command line."""
        seeds = ",".join(map(str, self.seeds)) if isinstance(self.seeds, tuple) else self.seeds
        return [
            *(part for key, value in self.overrides for part in ("--set", f"{key}={value}")),
            *(() if seeds is None else ("--seeds", str(seeds))),
            *(part for engine in self.engines for part in ("--engine", engine)),
        ]

    def applied(self, document: Document) -> Document:
        """The document with the values of its seeds, its engines, and its axes of `[vary]`.

        Raises:
            InputError: A value for an axis is no TOML.
        """
        values: dict[Way, tuple[Any, str]] = {}
        if self.seeds is not None:
            seeds = list(self.seeds) if isinstance(self.seeds, tuple) else self.seeds
            values["seeds",] = (seeds, " ".join(Changes(seeds=self.seeds).options))
        if self.engines:
            values["engines",] = (list(self.engines), " ".join(Changes(engines=self.engines).options))
        varied = document.data.get("vary", {})
        ways = {key: ("vary", *way) for way, key, _ in leaves(varied, _is_range)} if isinstance(varied, dict) else {}
        for key, value in self.overrides:
            if key in ways:
                values[ways[key]] = (_of_axis(key, value), _said(key, value))
        return document.with_values(values) if values else document

    def selected(self, axes: Iterable[Axis]) -> Iterator[Axis]:
        """The axes, those that are named with the chosen of their points.

        Raises:
            InputError: An axis has no such value.
        """
        given = dict(self.overrides)
        for axis in axes:
            # Those of [vary] have the values already, which may be new ones.
            own = [column for column in axis.columns if column in given and axis.points[0].way[0] != "vary"]
            yield replace(axis, points=_chosen(axis, own[0], given[own[0]])) if own else axis

    def of_scenario(self, axes: Sequence[Axis]) -> tuple[tuple[str, str], ...]:
        """The overrides that are of the scenario, because no axis has their key.

        Raises:
            InputError: An axis sets a key itself, so that its values would be the same in this.
        """
        columns = {column for axis in axes for column in axis.columns}
        found = tuple((key, value) for key, value in self.overrides if key not in columns)
        for key, value in found:
            for axis in axes:
                if (own := next((each for each in _keys(axis) if _hides(key, each)), None)) is not None:
                    raise InputError(f"{_said(key, value)}: {_remedy(axis, own)}")
        return found


NO_CHANGES = Changes()
"""Those of a plan as its file has it."""


def seeds_of(text: str) -> int | str | tuple[int, ...]:
    """What ``--seeds`` takes, as a plan has it: a number, a range, or seeds with commas between them."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        return text
    return int(parts[0]) if len(parts) == 1 else tuple(map(int, parts))


def _said(key: str, value: str) -> str:
    return f"--set {key}={value}"


def _is_range(value: Mapping[str, Any]) -> bool:
    return "from" in value


def _of_axis(key: str, text: str) -> Any:
    """The values for an axis: a list or a range as [vary] has it; anything else is one value."""
    value = _toml(key, text)
    return value if isinstance(value, list) or (isinstance(value, dict) and _is_range(value)) else [value]


def _toml(key: str, text: str) -> Any:
    """A value; what is no TOML is a text, unless it begins as a list does."""
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError) as error:
        if text.startswith("["):
            raise InputError(
                f'{_said(key, text)}: this is no list in TOML; expected one such as ["min-rtt", "ecf"]'
            ) from error
        return text
    return value if isinstance(value, str | bool | int | float | list | dict) else text


def _chosen(axis: Axis, column: str, text: str) -> tuple[Point, ...]:
    """The points of an axis whose label is among the values of a text."""
    value = _toml(column, text)
    wanted = [str(each) for each in (value if isinstance(value, list) else [value])]
    known = list(dict.fromkeys(str(point.labels[column]) for point in axis.points))
    for each in wanted:
        if each not in known:
            raise InputError(f"{_said(column, text)}: `{column}` has no value {each!r}{alternatives(each, known)}")
    if not wanted:
        raise InputError(f"{_said(column, text)}: the list is empty, so there would be no run")
    return tuple(point for point in axis.points if str(point.labels[column]) in wanted)


def _keys(axis: Axis) -> dict[str, None]:
    """The keys of the scenario that the points of an axis set, each once: of a table its keys."""
    found: dict[str, None] = {}
    for key, text in dict.fromkeys(pair for point in axis.points for pair in point.overrides):
        value = _toml(key, text)
        table = {key: value} if isinstance(value, dict) else {key: text}
        found |= dict.fromkeys(own for _, own, _ in leaves(table, lambda inner: not inner))
    return found


def _hides(key: str, other: str) -> bool:
    """Whether the value of a key, which comes later, leaves nothing of what another key was given."""
    key, other = (_KIND.sub("", _DIRECTION.sub(r"\1", each)) for each in (key, other))
    return other == key or other.startswith(f"{key}.")


def _remedy(axis: Axis, key: str) -> str:
    column, place = axis.columns[0], axis.points[0].way[0]
    axis_name = f"the axis `{column}` sets `{key}`" if column != key else f"the axis `{column}` has its values"
    label = axis.points[0].labels[column]
    shown = f'"{label}"' if isinstance(label, str) and " " in label else label
    return f"{axis_name} ([{place}] of the plan); expected some of its values, such as --set {column}={shown}"
