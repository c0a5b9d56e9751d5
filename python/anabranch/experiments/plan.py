"""Plans: what is varied, with which seeds, and what is compared. ``docs/reference/plan.md`` explains the keys."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

from anabranch import _core
from anabranch.errors import InputError, alternatives
from anabranch.experiments import engines, variation
from anabranch.experiments.changes import NO_CHANGES, Changes
from anabranch.experiments.contrast_spec import Contrast, Margin, Unfinished
from anabranch.experiments.document import Document, Way, read
from anabranch.experiments.engines import SIMULATION, Engine
from anabranch.experiments.variation import MOST_POINTS, Axis, Draw
from anabranch.runs import reading

SCHEMA = 1
"""The version of plans."""

KEYS: Mapping[str, str] = {
    "schema": "The version of plans: 1. Required.",
    "question": "The question that the plan answers, in one sentence. Required.",
    "scenario": "The base: a shipped scenario, or a file next to the plan. A list of them is an axis. Required.",
    "seeds": 'The seeds of every condition: how many (`10`), which (`"5..14"`), or a list. Required.',
    "engines": 'What makes the runs: `sim`, `live`, `live/SERVER`, `live/SERVER/CLIENT`; `["sim"]` where absent. '
    "Simulations in a plan with `live/kernel` have this kernel's `transport.header_room`, unless the plan sets it.",
    "live_runs": "How often every seed is run in real time: 1 where absent.",
    "metrics": "Columns of the table that the summary shows in addition to those that are compared.",
    "reducers": "[Reducers](reducers.md), whose numbers become columns; those of columns named here are added.",
    "set": "Overrides of every run, as `--set` takes them. A text may have `{seed}`, or `{1 + 0.5 * seed}`.",
    "vary": "A key per entry, each an axis: a list of values, or a range `{ from, to, step | steps, unit, spacing }`.",
    "zip": "A list, `[[zip]]`: keys whose lists are walked together, one axis each.",
    "choose": "`[choose.AXIS]`: named sets of overrides, an axis each.",
    "sample": "Random points: `method` (`random`, `latin-hypercube`), `points`, `seed`, and `keys`, each with a range.",
    "traces": "Recordings: a pattern of files per rate of a link. Files belong together if `*` is the same text.",
    "compare": "`[compare]`, or a list `[[compare]]`: what is compared.",
    "never_started": "What a session counts for that never started or was cut off: `worst`, as the worst session; "
    "`exclude`, not at all; `error`, nothing is compared. Until the end of what should have played where absent.",
    "figures": "A list, `[[figures]]`: what the report draws besides the differences of the comparisons.",
}
"""The keys of a plan and what they mean."""

COMPARE_KEYS: Mapping[str, str] = {
    "metric": "The column that is compared. Required.",
    "better": "`higher` or `lower`. Required.",
    "between": "The axes whose values are compared, a column or a list of them. Required.",
    "reference": "The values that all others are compared with; the best ones where absent.",
    "equivalent": 'The largest difference without practical meaning: `"5 %"` of the reference\'s mean, or a number.',
    "quantiles": 'Quantiles whose differences the file of comparisons has, too: `["10 %", "90 %"]`.',
    "over": "Axes besides those of traces and samples whose values are paired, and are networks where those are not.",
    "family": "A name: p-values are corrected for the tests of all comparisons of this name; of all that have none.",
}
"""The keys of ``[compare]`` and what they mean."""

FIGURE_KEYS: Mapping[str, str] = {
    "y": "The column that is drawn. Required.",
    "x": "The axis over which its means are drawn, with intervals; without it, its distribution is drawn.",
    "by": "The axes whose values are a line each; what the first comparison compares where absent.",
    "kind": "`lines`, the default, or `map`: the differences that a comparison of `y` found, over `x` and `rows`.",
    "rows": "Of a map, the axis whose values are its rows.",
}
"""The keys of ``[[figures]]`` and what they mean."""

_REQUIRED = ("schema", "question", "scenario", "seeds")


@dataclass(frozen=True)
class Figure:
    """A figure of the report. Axes that it does not mention make a panel each.

    Attributes:
        y: The column that is drawn.
        x: The axis over which its means are drawn; its distribution where absent.
        by: The axes whose values are a line each.
        way: Where in the plan it is written.
        rows: Of a map, the axis from top to bottom; ``None`` of a chart of lines.
    """

    y: str
    x: str | None = None
    by: tuple[str, ...] = ()
    way: Way = ()
    rows: str | None = None


@dataclass(frozen=True)
class Plan:
    """A plan that was read and checked.

    Attributes:
        name: The file's name without its ending.
        document: The text, for messages about it.
        question: What it answers.
        scenarios: The scenarios, the first of which is the base of the checks.
        seeds: The seeds of every condition.
        engines: What makes the runs.
        live_runs: How often every seed is run in real time.
        metrics: Columns for the summary.
        reducers: What is computed of every run in addition to the metrics.
        overrides: What every run sets.
        axes: What varies.
        draws: What every seed draws.
        contrasts: What is compared.
        figures: What the report draws besides; empty where the plan says nothing.
        changes: What replaces values of the file.
        given: Of these, what every run sets, after everything else.
    """

    name: str
    document: Document
    question: str
    scenarios: tuple[str, ...]
    seeds: tuple[int, ...]
    engines: tuple[Engine, ...]
    live_runs: int
    metrics: tuple[str, ...]
    reducers: tuple[str, ...]
    overrides: tuple[tuple[str, str], ...]
    axes: tuple[Axis, ...]
    draws: tuple[Draw, ...]
    contrasts: tuple[Contrast, ...]
    figures: tuple[Figure, ...] = ()
    changes: Changes = NO_CHANGES
    given: tuple[tuple[str, str], ...] = ()

    @cached_property
    def folder(self) -> Path:
        """The folder that it is in, absolute: worker processes look there for modules, too."""
        return self.document.path.parent.resolve()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that its axes fill."""
        return tuple(itertools.chain.from_iterable(axis.columns for axis in self.axes))

    @property
    def policies(self) -> tuple[str, ...]:
        """Those whose values make conditions: networks, such as traces and samples, are pooled as seeds are."""
        return tuple(column for axis in self.axes if not axis.drawn for column in axis.columns)

    @property
    def is_live(self) -> bool:
        """Whether some runs are made in real time."""
        return any(engine.is_live for engine in self.engines)

    @property
    def conditions(self) -> int:
        """The number of its conditions."""
        return math.prod(len(axis.points) for axis in self.axes)


def shipped() -> dict[str, Path]:
    """The shipped plans by name."""
    folder = Path(str(resources.files("anabranch") / "plans"))
    return {file.stem: file for file in sorted(folder.glob("*.toml"))}


def load(plan: str | Path, changes: Changes = NO_CHANGES) -> Plan:
    """Reads a file, or a shipped plan by its name.

    Args:
        plan: The file, or the name.
        changes: What replaces its values.

    Raises:
        InputError: There is none, or it has a mistake; the message has file, line and what was expected.
    """
    path = Path(plan)
    if path.is_dir() or not path.exists():
        known = shipped()
        if str(plan) not in known:
            what = (
                "this is a directory; expected a plan" if path.is_dir() else "there is no such file and no shipped plan"
            )
            raise InputError(f"{plan}: {what}{alternatives(str(plan), known)}")
        path = known[str(plan)]
    return of_document(read(path), changes)


def of_document(document: Document, changes: Changes = NO_CHANGES) -> Plan:
    """Reads and checks a text, some of whose values may be replaced.

    Raises:
        InputError: It has a mistake, as `load` says it.
    """
    document.check_keys((), document.data, KEYS)
    written = document.data.get("engines")
    document = changes.applied(document)
    data = document.data
    for key in _REQUIRED:
        if key not in data:
            raise InputError(f"{document.path}: the key `{key}` is missing: {KEYS[key]}")
    if data["schema"] != SCHEMA:
        raise document.mistake(("schema",), f"this is schema {data['schema']!r}; expected {SCHEMA}")
    made_by = _engines(document)
    scenarios = _scenarios(document)
    axes, draws = _axes(document, scenarios)
    # One engine is no axis, and its name stands in the table without one. Where an option chose it from several, it is
    # the only value of the plan's axis, which comparisons may name.
    several = len(made_by) > 1 or (isinstance(written, list) and len(written) > 1)
    axes = (*axes, variation.of_engines(made_by)) if several else axes
    axes = tuple(changes.selected(axes))
    metrics = _texts(document, ("metrics",), data.get("metrics", []))
    contrasts = _contrasts(document, axes)
    figures = _figures(document, axes, contrasts)
    columns = [*metrics, *(contrast.metric for contrast in contrasts), *(figure.y for figure in figures)]
    return Plan(
        name=document.path.stem,
        document=document,
        question=document.typed(("question",), data["question"], str, "a sentence"),
        scenarios=scenarios,
        seeds=_seeds(document, data["seeds"]),
        engines=made_by,
        live_runs=_live_runs(document, made_by),
        metrics=metrics,
        reducers=_reducers(document, columns, made_by),
        overrides=variation.overrides(document.typed(("set",), data.get("set", {}), dict, "a table of overrides")),
        axes=axes,
        draws=draws,
        contrasts=contrasts,
        figures=figures,
        changes=changes,
        given=changes.of_scenario(axes),
    )


def _engines(document: Document) -> tuple[Engine, ...]:
    names = _texts(document, ("engines",), document.data.get("engines", [SIMULATION.name]))
    if not names:
        raise document.mistake(("engines",), "`engines` has no value; expected sim, live, or both")
    found: list[Engine] = []
    for position, name in enumerate(names):
        way = ("engines", str(position))
        try:
            engine = engines.parse(name)
        except InputError as error:
            raise document.mistake(way, str(error)) from error
        if any(engine.identity == other.identity for other in found):
            raise document.mistake(way, f"the engine `{name}` is there twice")
        found.append(engine)
    return tuple(found)


_MOST_LIVE_RUNS = 1000


def _live_runs(document: Document, found: Sequence[Engine]) -> int:
    way, value = ("live_runs",), document.data.get("live_runs", 1)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST_LIVE_RUNS:
        raise document.mistake(way, f"`live_runs` is {value!r}; expected a number from 1 to {_MOST_LIVE_RUNS}")
    if "live_runs" in document.data and not any(engine.is_live for engine in found):
        raise document.mistake(way, "a simulation is repeated exactly; expected more `seeds`, or a live engine")
    return value


def reducers() -> tuple[str, ...]:
    """The names of all reducers."""
    return tuple(name for kind, name, *_ in _core.registry() if kind == "reducers")


def _reducers(document: Document, columns: Sequence[str], made_by: Sequence[Engine]) -> tuple[str, ...]:
    """The reducers that a plan names, and those of columns that it names."""
    known = reducers()
    named = _texts(document, ("reducers",), document.data.get("reducers", []))
    for position, name in enumerate(named):
        if name not in known:
            raise document.mistake(
                ("reducers", str(position)), f"no reducer is called `{name}`{alternatives(name, known)}"
            )
    implied = [name for column in columns if (name := column.partition(".")[0]) in known]
    if (wanted := sorted({*named, *implied})) and any(engine.is_live for engine in made_by):
        raise document.mistake(
            ("engines",), f"`{wanted[0]}` is a reducer, which only simulations have, and the plan has runs in real time"
        )
    return tuple(wanted)


def _scenarios(document: Document) -> tuple[str, ...]:
    """Names of shipped scenarios, and files as they are opened from here."""
    value = document.data["scenario"]
    given = _texts(document, ("scenario",), value if isinstance(value, list) else [value])
    if not given:
        raise document.mistake(("scenario",), "`scenario` has no value; expected a scenario")
    found = []
    for position, name in enumerate(given):
        file = document.path.parent / name
        if file.is_file():
            found.append(str(file))
        elif _core.shipped(name) is not None:
            found.append(name)
        else:
            place = ("scenario", str(position)) if isinstance(value, list) else ("scenario",)
            what = f"there is no file {file} and no shipped scenario `{name}`{reading.nearest_scenario(name)}"
            raise document.mistake(place, what)
    return tuple(found)


_SEED_RANGE = re.compile(r"(\d+)\.\.(\d+)")
_HIGHEST_SEED = 2**64 - 1


def _seeds(document: Document, value: Any) -> tuple[int, ...]:
    way, expected = ("seeds",), 'how many seeds, a range such as "1..10", or a list of them'
    match value:
        case bool():
            raise document.mistake(way, f"`seeds` is true or false; expected {expected}")
        case int():
            seeds: Sequence[Any] = range(1, value + 1)
        case str() if found := _SEED_RANGE.fullmatch(value.replace(" ", "")):
            seeds = range(int(found[1]), int(found[2]) + 1)
        case list():
            seeds = value
        case _:
            raise document.mistake(way, f"`seeds` is {value!r}; expected {expected}")
    if not 1 <= len(seeds) <= MOST_POINTS:
        raise document.mistake(way, f"there are {len(seeds)} seeds; expected 1 to {MOST_POINTS}")
    for seed in seeds:
        if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed <= _HIGHEST_SEED:
            raise document.mistake(way, f"the seed {seed!r} is no whole number from 0 to 2**64 - 1")
    if len(set(seeds)) < len(seeds):
        raise document.mistake(way, "a seed is there twice, which would count one run as two")
    return tuple(seeds)


def _axes(document: Document, scenarios: Sequence[str]) -> tuple[tuple[Axis, ...], tuple[Draw, ...]]:
    data, axes, draws = document.data, list[Axis](), tuple[Draw, ...]()
    if isinstance(data["scenario"], list):
        axes.append(variation.of_scenarios(scenarios))
    for table in ("vary", "choose", "sample", "traces"):
        document.typed((table,), data.get(table, {}), dict, "a table")
    for path, key, value in variation.leaves(data.get("vary", {}), lambda value: "from" in value):
        axes.append(variation.of_key(document, ("vary", *path), key, value))
    for position, table in enumerate(document.typed(("zip",), data.get("zip", []), list, "tables, [[zip]]")):
        axes.append(variation.of_zip(document, ("zip", str(position)), table))
    axes += [variation.of_choice(document, ("choose", name), name, t) for name, t in data.get("choose", {}).items()]
    if "sample" in data:
        axes.append(variation.of_sample(document, ("sample",), data["sample"]))
    if "traces" in data:
        axis, draws = variation.of_traces(document, ("traces",), data["traces"])
        axes.append(axis)
    _check_columns(document, axes)
    return tuple(axes), draws


_OWN_COLUMNS = ("seed", "session", "engine", "version", "error", "run", "live_run")


def _check_columns(document: Document, axes: Sequence[Axis]) -> None:
    counts = Counter(itertools.chain.from_iterable(axis.columns for axis in axes))
    for axis in axes:
        for column in axis.columns:
            if counts[column] > 1:
                raise document.mistake(axis.points[-1].way, f"`{column}` is varied twice")
            if column in _OWN_COLUMNS:
                raise document.mistake(
                    axis.points[-1].way, f"`{column}` is a column of every table; expected another name"
                )
    if (number := math.prod(len(axis.points) for axis in axes)) > MOST_POINTS:
        raise InputError(f"{document.path}: {number} conditions are more than the {MOST_POINTS} that a plan may have")


def _contrasts(document: Document, axes: Sequence[Axis]) -> tuple[Contrast, ...]:
    value = document.data.get("compare", [])
    if isinstance(value, dict):
        return (_contrast(document, ("compare",), value, axes),)
    tables = enumerate(document.typed(("compare",), value, list, "[compare] or [[compare]]"))
    return tuple(_contrast(document, ("compare", str(position)), table, axes) for position, table in tables)


def _contrast(document: Document, way: Way, table: Any, axes: Sequence[Axis]) -> Contrast:
    table = document.typed(way, table, dict, "a table")
    document.check_keys(way, table, COMPARE_KEYS)
    for key in ("metric", "better", "between"):
        if key not in table:
            raise document.mistake(way, f"[compare] lacks `{key}`: {COMPARE_KEYS[key]}")
    if table["better"] not in ("higher", "lower"):
        raise document.mistake((*way, "better"), f"`better` is {table['better']!r}; expected `higher` or `lower`")
    between = _axis_names(document, (*way, "between"), table["between"], axes)
    if not between:
        raise document.mistake((*way, "between"), "nothing is compared; expected the name of an axis")
    over = _axis_names(document, (*way, "over"), table.get("over", []), axes)
    # What belongs to one axis changes together.
    drawn = [axis for axis in axes if axis.drawn and not set(axis.columns) & set(between)]
    chosen = [axis for axis in axes if set(axis.columns) & set(over)]
    return Contrast(
        metric=document.typed((*way, "metric"), table["metric"], str, "the name of a column"),
        higher_is_better=table["better"] == "higher",
        between=between,
        units=tuple(dict.fromkeys(column for axis in (*drawn, *chosen) for column in axis.columns)),
        networks=tuple(axis.columns[0] for axis in drawn or chosen),
        reference=_reference(document, (*way, "reference"), table.get("reference"), between, axes),
        margin=_margin(document, (*way, "equivalent"), table.get("equivalent")),
        quantiles=_quantiles(document, (*way, "quantiles"), table.get("quantiles", [])),
        unfinished=_unfinished(document),
        family=document.typed((*way, "family"), table.get("family", ""), str, "the name of a family of comparisons"),
        way=way,
    )


def _unfinished(document: Document) -> Unfinished:
    value = document.data.get("never_started", Unfinished.TO_THE_END)
    known = [each for each in Unfinished if each is not Unfinished.TO_THE_END]
    if value is not Unfinished.TO_THE_END and value not in known:
        raise document.mistake(
            ("never_started",), f"`never_started` is {value!r}; expected one of {', '.join(known)}, or no such key"
        )
    return Unfinished(value)


def _figures(document: Document, axes: Sequence[Axis], contrasts: Sequence[Contrast]) -> tuple[Figure, ...]:
    tables = document.typed(("figures",), document.data.get("figures", []), list, "tables, [[figures]]")
    return tuple(_figure(document, ("figures", str(i)), table, axes, contrasts) for i, table in enumerate(tables))


def _figure(document: Document, way: Way, table: Any, axes: Sequence[Axis], contrasts: Sequence[Contrast]) -> Figure:
    table = document.typed(way, table, dict, "a table")
    document.check_keys(way, table, FIGURE_KEYS)
    if "y" not in table:
        raise document.mistake(way, f"[[figures]] lacks `y`: {FIGURE_KEYS['y']}")
    if (kind := table.get("kind", "lines")) not in ("lines", "map"):
        raise document.mistake((*way, "kind"), f"`kind` is {kind!r}; expected `lines` or `map`")
    if kind == "map":
        return _map(document, way, table, axes, contrasts)
    if "rows" in table:
        raise document.mistake((*way, "rows"), '`rows` are of maps; expected `kind = "map"` with it')
    x = None
    if "x" in table:
        text = document.typed((*way, "x"), table["x"], str, "the name of an axis")
        (x,) = _axis_names(document, (*way, "x"), text, axes)
    compared = contrasts[0].between if contrasts else ()
    by = _axis_names(document, (*way, "by"), table.get("by", [name for name in compared if name != x]), axes)
    if x in by:
        raise document.mistake((*way, "by"), f"`{x}` is the axis `x` already; expected another one")
    return Figure(document.typed((*way, "y"), table["y"], str, "the name of a column"), x, by, way)


def _map(document: Document, way: Way, table: Any, axes: Sequence[Axis], contrasts: Sequence[Contrast]) -> Figure:
    """A figure of differences over two axes."""
    if "by" in table:
        raise document.mistake((*way, "by"), "a map has a panel for each of the compared; expected no `by`")
    places = list[str]()
    for key in ("x", "rows"):
        if key not in table:
            raise document.mistake(way, f"a map lacks `{key}`: an axis of the plan")
        text = document.typed((*way, key), table[key], str, "the name of an axis")
        places += _axis_names(document, (*way, key), text, axes)
    y = document.typed((*way, "y"), table["y"], str, "the name of a column")
    if places[0] == places[1]:
        raise document.mistake((*way, "rows"), f"`{places[0]}` is the axis `x` already; expected another one")
    if not any(each.metric == y and not {*places} & {*each.between, *each.units} for each in contrasts):
        raise document.mistake(
            (*way, "y"), f"a map shows differences, and no [compare] compares `{y}` for each {' and '.join(places)}"
        )
    return Figure(y, places[0], (), way, rows=places[1])


def _axis_names(document: Document, way: Way, value: Any, axes: Sequence[Axis]) -> tuple[str, ...]:
    known = [column for axis in axes for column in axis.columns]
    names = _texts(document, way, [value] if isinstance(value, str) else value)
    for name in names:
        if name not in known:
            what = alternatives(name, known) if known else "; the plan varies nothing"
            raise document.mistake(way, f"nothing varies `{name}`{what}")
    return names


def _reference(
    document: Document, way: Way, value: Any, between: Sequence[str], axes: Sequence[Axis]
) -> Mapping[str, Any] | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        if len(between) > 1:
            raise document.mistake(way, f"several axes are compared; expected a value for each of {', '.join(between)}")
        value = {between[0]: value}
    given = {key: each for _, key, each in variation.leaves(value, _nothing)}
    if set(given) != set(between):
        raise document.mistake(
            way, f"the reference has {', '.join(given)}; expected a value for each of {', '.join(between)}"
        )
    for key, each in given.items():
        known = list(_labels(axes, key))
        if each not in known:
            expected = alternatives(str(each), [str(label) for label in known])
            by = _given(document, axes, key)
            raise document.mistake(way, f"`{key}` has no value {each!r}{f' by {by}' if by else ''}{expected}")
    return {key: given[key] for key in between}


def _given(document: Document, axes: Sequence[Axis], column: str) -> str | None:
    """The option that gave the values of an axis."""
    ways = (axis.points[0].way for axis in axes if column in axis.columns)
    return next((said for way in ways if (said := document.given(way))), None)


def _nothing(_: Any) -> bool:
    return False


def _labels(axes: Sequence[Axis], column: str) -> Iterator[variation.Label]:
    for axis in axes:
        if column in axis.columns:
            yield from dict.fromkeys(point.labels[column] for point in axis.points)


_PERCENT = re.compile(r"(\d+(?:\.\d*)?) ?%")


def _margin(document: Document, way: Way, value: Any) -> Margin | None:
    if value is None:
        return None
    if isinstance(value, str) and (found := _PERCENT.fullmatch(value)):
        share, relative = float(found[1]) / 100, True
    elif isinstance(value, int | float) and not isinstance(value, bool):
        share, relative = float(value), False
    else:
        raise document.mistake(way, f'`equivalent` is {value!r}; expected a share such as "5 %", or a number')
    if not (share > 0 and math.isfinite(share)):
        raise document.mistake(way, "a difference without meaning is above zero")
    return Margin(share, relative)


def _quantiles(document: Document, way: Way, value: Any) -> tuple[float, ...]:
    shares = []
    for position, text in enumerate(_texts(document, way, value)):
        found = _PERCENT.fullmatch(text)
        if found is None or not 0 < float(found[1]) < 100:
            raise document.mistake((*way, str(position)), f'{text!r} is no quantile; expected a share such as "90 %"')
        shares.append(float(found[1]) / 100)
    return tuple(shares)


def _texts(document: Document, way: Way, value: Any) -> tuple[str, ...]:
    items = document.typed(way, value, list, "a list of names")
    return tuple(document.typed((*way, str(i)), item, str, "a name") for i, item in enumerate(items))
