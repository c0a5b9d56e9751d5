"""What a plan varies: axes, each a list of points.

A point is a few labels for the table, and overrides of the scenario.
"""

from __future__ import annotations

import glob
import hashlib
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anabranch import _core
from anabranch.errors import alternatives
from anabranch.experiments.document import Document, Way
from anabranch.experiments.engines import Engine
from anabranch.runs.reading import overrides_of
from anabranch.tables import TraceRate

Label = str | int | float | bool
"""A value of an axis as it stands in the table."""

SEED = "{seed}"
"""What stands for the seed of the run in a text."""

MOST_POINTS = 1_000_000
"""More points are a mistake: they take too long, and the list of runs would fill the memory."""


@dataclass(frozen=True)
class Point:
    """One value of an axis.

    Attributes:
        labels: What stands in the table, by column.
        overrides: Keys of the scenario and their values, as ``--set`` takes them.
        way: Where in the plan it is written.
        scenario: The scenario, if the axis is that of scenarios.
        engine: The engine, if the axis is that of engines.
    """

    labels: Mapping[str, Label]
    overrides: tuple[tuple[str, str], ...]
    way: Way
    scenario: str | None = None
    engine: Engine | None = None


@dataclass(frozen=True)
class Draw:
    """A number that every seed draws anew.

    Attributes:
        key: The key of the scenario.
        low: The lower end.
        high: The upper end.
    """

    key: str
    low: float
    high: float

    def value(self, seed: int) -> float:
        """The number of a seed; other keys draw others."""
        import numpy as np

        stream = int.from_bytes(hashlib.sha256(self.key.encode()).digest()[:8])
        return float(np.random.default_rng([stream, seed]).uniform(self.low, self.high))


@dataclass(frozen=True)
class Axis:
    """What is varied together.

    Attributes:
        columns: The columns of the table that it fills.
        points: Its values.
        drawn: Whether its points are a sample (of networks, of a space): conditions are paired on them, as on seeds.
    """

    columns: tuple[str, ...]
    points: tuple[Point, ...]
    drawn: bool = False


def of_scenarios(names: Sequence[str]) -> Axis:
    """An axis of scenarios."""
    points = (Point({"scenario": n}, (), ("scenario", str(i)), scenario=n) for i, n in enumerate(names))
    return Axis(("scenario",), tuple(points))


def of_engines(engines: Sequence[Engine]) -> Axis:
    """An axis of engines."""
    points = (Point({"engine": e.name}, (), ("engines", str(i)), engine=e) for i, e in enumerate(engines))
    return Axis(("engine",), tuple(points))


def of_key(document: Document, way: Way, key: str, value: Any) -> Axis:
    """An axis of one key: a list of values, or a range."""
    points = []
    for each, place in _values(document, way, value):
        points.append(Point({key: label(each, key)}, tuple(overrides_of({key: each})), place))
    return Axis((key,), tuple(points))


def of_zip(document: Document, way: Way, table: Mapping[str, Any]) -> Axis:
    """An axis of several keys whose values are taken together, the first with the first."""
    lists = {key: _values(document, (*way, *path), value) for path, key, value in leaves(table, _is_range)}
    if len(lists) < 2:
        raise document.mistake(way, "a [[zip]] has at least two keys; expected a second list, or the key in [vary]")
    lengths = {key: len(values) for key, values in lists.items()}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"`{key}` has {number}" for key, number in lengths.items())
        raise document.mistake(way, f"lists of a [[zip]] have the same length: {counts}")
    points = []
    for values in zip(*lists.values(), strict=True):
        each = dict(zip(lists, (value for value, _ in values), strict=True))
        labels = {key: label(value, key) for key, value in each.items()}
        points.append(Point(labels, tuple(overrides_of(each)), values[0][1]))
    return Axis(tuple(lists), tuple(points))


def of_choice(document: Document, way: Way, name: str, table: Any) -> Axis:
    """An axis of named sets of overrides."""
    entries = document.typed(way, table, dict, "a table of named sets of overrides")
    if not entries:
        raise document.mistake(way, f"[{'.'.join(way)}] has no entry; expected names with overrides")
    points = []
    for entry, chosen in entries.items():
        document.typed((*way, entry), chosen, dict, 'a table of overrides, such as {} or { duration = "60 s" }')
        points.append(Point({name: entry}, overrides(chosen), (*way, entry)))
    return Axis((name,), tuple(points))


_METHODS = ("random", "latin-hypercube")
_SAMPLE_COLUMN = "sample"


def of_sample(document: Document, way: Way, table: Mapping[str, Any]) -> Axis:
    """An axis of random points in a space of several keys."""
    document.check_keys(way, table, ("method", "points", "seed", "keys"))
    method = table.get("method", _METHODS[0])
    if method not in _METHODS:
        raise document.mistake((*way, "method"), f"unknown method `{method}`{alternatives(str(method), _METHODS)}")
    number = document.typed((*way, "points"), table.get("points"), int, "how many points to draw")
    seed = document.typed((*way, "seed"), table.get("seed", 1), int, "a whole number")
    _check_number(document, (*way, "points"), number)
    keys = document.typed((*way, "keys"), table.get("keys"), dict, "a table of keys, each with `from` and `to`")
    spaces = {key: _Range.of(document, (*way, "keys", *path), value) for path, key, value in leaves(keys, _is_range)}
    if not spaces:
        raise document.mistake((*way, "keys"), "no key is sampled; expected keys, each with `from` and `to`")
    points = []
    for position, shares in enumerate(_shares(method, number, len(spaces), seed)):
        each = {key: space.at(float(share)) for (key, space), share in zip(spaces.items(), shares, strict=True)}
        labels: dict[str, Label] = {_SAMPLE_COLUMN: position, **{k: label(v, k) for k, v in each.items()}}
        points.append(Point(labels, tuple(overrides_of(each)), way))
    return Axis((_SAMPLE_COLUMN, *spaces), tuple(points), drawn=True)


def _shares(method: str, points: int, dimensions: int, seed: int) -> Any:
    """Points of the unit cube."""
    import numpy as np

    if method == "random":
        return np.random.default_rng(seed).random((points, dimensions))
    from scipy.stats import qmc

    return qmc.LatinHypercube(d=dimensions, rng=np.random.default_rng(seed)).random(points)


# The keys of a recorded rate, with the former name of `rate_column`, and a pattern of files in the place of the file.
_TRACE_KEYS = ("glob", "column", *(key for key in TraceRate.__annotations__ if key not in ("kind", "trace")))
_TRACE_COLUMN = "trace"

SAMPLED_COLUMNS = (_TRACE_COLUMN, _SAMPLE_COLUMN)
"""The columns whose values are networks that were sampled."""


def of_traces(document: Document, way: Way, table: Mapping[str, Any]) -> tuple[Axis, tuple[Draw, ...]]:
    """An axis of recordings, a pattern per link: files belong together if their `*` is the same text."""
    found: dict[str, dict[str, Path]] = {}
    options: dict[str, dict[str, Any]] = {}
    draws = []
    for path, key, value in leaves(table, lambda value: isinstance(value, str) or "glob" in value):
        place = (*way, *path)
        entry = {"glob": value} if isinstance(value, str) else dict(value)
        document.check_keys(place, entry, _TRACE_KEYS)
        pattern = document.typed(
            (*place, "glob"), entry.pop("glob"), str, 'a pattern of files, such as "pairs/*_wifi.csv"'
        )
        found[key] = _matches(document, place, pattern)
        if isinstance(scale := entry.get("scale"), dict):
            del entry["scale"]
            draws.append(_scale(document, (*place, "scale"), f"{key}.scale", scale))
        options[key] = entry
    names = _paired(document, way, found)
    points = []
    for name in names:
        rates = {key: {"trace": str(files[name]), **options[key]} for key, files in found.items()}
        points.append(Point({_TRACE_COLUMN: name}, tuple(overrides_of(rates)), way))
    return Axis((_TRACE_COLUMN,), tuple(points), drawn=True), tuple(draws)


def _scale(document: Document, way: Way, key: str, table: Mapping[str, Any]) -> Draw:
    document.check_keys(way, table, ("from", "to"))
    ends = [float(document.typed((*way, end), _number(table.get(end)), float, "a number")) for end in ("from", "to")]
    if not 0 < ends[0] <= ends[1]:
        raise document.mistake(
            way, "a scale is drawn from a range above zero; expected { from = 0.5, to = 2 }, the lower end first"
        )
    return Draw(key, ends[0], ends[1])


def _matches(document: Document, way: Way, pattern: str) -> dict[str, Path]:
    """The files of a pattern, by the text that its ``*`` stands for; relative to the plan's folder."""
    if "**" in pattern or pattern.count("*") != 1:
        raise document.mistake(
            way, f'the pattern "{pattern}" has no `*`, or several; expected one, such as "pairs/*_wifi.csv"'
        )
    whole = document.path.parent / Path(pattern).expanduser()
    before, _, after = str(whole).partition("*")
    name = re.compile(f"{re.escape(before)}(.*){re.escape(after)}", re.DOTALL)
    # Path.glob takes no absolute pattern.
    files = sorted(glob.glob(f"{glob.escape(before)}*{glob.escape(after)}"))  # noqa: PTH207
    named = {
        match[1]: Path(file).resolve() for file in files if (match := name.fullmatch(file)) and Path(file).is_file()
    }
    if not named:
        raise document.mistake(way, f'no file matches "{whole}"')
    return named


def _paired(document: Document, way: Way, found: Mapping[str, Mapping[str, Path]]) -> list[str]:
    """The names that all patterns have in common, which are all names."""
    if not found:
        raise document.mistake(
            way, '[traces] has no key; expected a link\'s rate, such as "link.wifi.rate" = "pairs/*_wifi.csv"'
        )
    everywhere = set.intersection(*(set(files) for files in found.values()))
    for key, files in found.items():
        if alone := sorted(set(files) - everywhere):
            raise document.mistake(
                way,
                f"{len(alone)} file(s) of `{key}` have no partner with the same text for `*`: {files[alone[0]]}",
            )
    return sorted(everywhere)


@dataclass(frozen=True)
class _Range:
    """Numbers from one end to another, with a unit."""

    low: float
    high: float
    logarithmic: bool
    unit: str

    @staticmethod
    def of(document: Document, way: Way, table: Mapping[str, Any], besides: Sequence[str] = ()) -> _Range:
        document.check_keys(way, table, ("from", "to", "unit", "spacing", *besides))
        ends = [document.typed((*way, end), _number(table.get(end)), float, "a number") for end in ("from", "to")]
        spacing = table.get("spacing", "linear")
        if spacing not in ("linear", "log"):
            raise document.mistake((*way, "spacing"), f"unknown spacing `{spacing}`; expected `linear` or `log`")
        if not (ends[0] <= ends[1] and all(map(math.isfinite, ends))):
            raise document.mistake(
                way, f"the range from {ends[0]:g} to {ends[1]:g} is empty; expected the lower end first"
            )
        if spacing == "log" and ends[0] <= 0:
            raise document.mistake(way, "a logarithmic range begins above zero")
        unit = document.typed((*way, "unit"), table.get("unit", ""), str, 'a unit, such as "Mb/s"')
        return _Range(ends[0], ends[1], spacing == "log", unit)

    def at(self, share: float) -> str | float:
        """The value at a share of the way from one end to the other."""
        if self.logarithmic:
            value = self.low * (self.high / self.low) ** share
        else:
            value = self.low + (self.high - self.low) * share
        # Twelve digits hide what rounding adds: 0.30000000000000004.
        value = float(f"{value:.12g}")
        return f"{value:.12g} {self.unit}" if self.unit else value


def _values(document: Document, way: Way, value: Any) -> list[tuple[Any, Way]]:
    """The values of a list or a range, each with its place."""
    if isinstance(value, list):
        if not value:
            raise document.mistake(
                way, f"`{'.'.join(way[1:])}` has no value, so there would be no run; expected a list with values"
            )
        texts = [label(each, way[-1]) for each in value]
        for position, text in enumerate(texts):
            if text in texts[:position]:
                raise document.mistake((*way, str(position)), f"the value {text!r} is there twice")
        return [(each, (*way, str(position))) for position, each in enumerate(value)]
    if isinstance(value, dict):
        return [(each, way) for each in _steps(document, way, value)]
    raise document.mistake(
        way, f"`{'.'.join(way[1:])}` has one value and does not vary; expected a list, or the key in [set]"
    )


def _steps(document: Document, way: Way, table: Mapping[str, Any]) -> list[str | float]:
    space = _Range.of(document, way, table, besides=("step", "steps"))
    if ("step" in table) == ("steps" in table):
        raise document.mistake(way, "a range has either `step`, the distance of its values, or `steps`, their number")
    if "steps" in table:
        number = document.typed((*way, "steps"), table["steps"], int, "a whole number")
        _check_number(document, (*way, "steps"), number)
    else:
        step = document.typed((*way, "step"), _number(table["step"]), float, "a number")
        if step <= 0 or space.logarithmic:
            raise document.mistake((*way, "step"), "a step is above zero, and a logarithmic range has `steps` instead")
        # What rounding takes from the last step is no step less.
        number = math.floor((space.high - space.low) / step * (1 + 1e-12)) + 1
        _check_number(document, (*way, "step"), number)
        space = _Range(space.low, space.low + (number - 1) * step, False, space.unit)
    return list(dict.fromkeys(space.at(position / (number - 1) if number > 1 else 0.0) for position in range(number)))


def _check_number(document: Document, way: Way, number: int) -> None:
    if not 1 <= number <= MOST_POINTS:
        raise document.mistake(way, f"`{way[-1]}` asks for {number} values; expected 1 to {MOST_POINTS}")


def _number(value: Any) -> Any:
    """A whole number where a number is expected is one."""
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _is_range(value: Any) -> bool:
    return not isinstance(value, dict) or "from" in value


def leaves(table: Mapping[str, Any], is_leaf: Callable[[Any], bool], way: Way = ()) -> Iterator[tuple[Way, str, Any]]:
    """The values of nested tables, with the way to each and its dotted key: ``a.b = 1`` is ``"a.b" = 1``."""
    for key, value in table.items():
        if isinstance(value, dict) and not is_leaf(value):
            yield from leaves(value, is_leaf, (*way, key))
        else:
            yield (*way, key), ".".join((*way, key)), value


def overrides(table: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Overrides as ``--set`` takes them; a position in a list is a key, ``session.0.player``."""
    return tuple(overrides_of({key: value for _, key, value in leaves(table, _is_whole)}))


def _is_whole(value: Any) -> bool:
    """Whether a table can be one override: positions in lists are no keys of tables."""
    return not isinstance(value, dict) or all(not key.isdecimal() and _is_whole(inner) for key, inner in value.items())


_LINE = re.compile(r"\{(\d+(?:\.\d+)?) \+ (\d+(?:\.\d+)?) \* seed\}")


def with_seed(overrides: Sequence[tuple[str, str]], seed: int) -> tuple[tuple[str, str], ...]:
    """Overrides with the seed of a run in the place of ``{seed}``; alone in a text within a table, it is a number.

    ``{1 + 0.5 * seed}`` becomes the number that it says.
    """

    def number(found: re.Match[str]) -> str:
        whole = all("." not in group for group in found.groups())
        kind = int if whole else float
        return repr(kind(found[1]) + kind(found[2]) * seed)

    def filled(value: str) -> str:
        return _LINE.sub(number, value.replace(f'"{SEED}"', str(seed)).replace(SEED, str(seed)))

    return tuple((key, filled(value)) for key, value in overrides)


def follows_seed(overrides: Sequence[tuple[str, str]]) -> bool:
    """Whether the seed of the run is in them."""
    return any(SEED in value or _LINE.search(value) for _, value in overrides)


def label(value: Any, key: str) -> Label:
    """A value as the table has it: numbers as they are, the rest as text."""
    return value if isinstance(value, str | int | float | bool) else _core.value_text(value, key)
