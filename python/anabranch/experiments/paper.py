"""Papers that can be executed: a folder with plans, criteria, and a text; see ``docs/reference/paper.md``."""

from __future__ import annotations

import fnmatch
import importlib.util
import inspect
import sys
import tomllib
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from importlib import resources
from pathlib import Path
from types import ModuleType
from typing import Any

from anabranch.errors import InputError, alternatives
from anabranch.experiments import kept_runs, variation
from anabranch.experiments import plan as plans
from anabranch.experiments.claims import Claim, TableOf
from anabranch.experiments.conditions import Condition, Overrides, with_more
from anabranch.experiments.document import Document, Way, read
from anabranch.experiments.plan import Plan
from anabranch.experiments.sweep import Experiment
from anabranch.runs.reading import overrides_of

SCHEMA = 1
"""The version of ``paper.toml``."""

FILE = "paper.toml"
CRITERIA = "criteria.py"
TEXT = "text.md"

KEYS: Mapping[str, str] = {
    "schema": "The version of this file: 1. Required.",
    "title": "The title of the paper in reports. Required.",
    "source": "Where it was published. `anabranch reproduce all` executes the shipped papers that have one.",
    "page": "The file that `--pages` writes: `claims-NAME.md` where absent.",
    "plan": "A list, `[[plan]]`: the plans with whose runs the claims are tested. Required.",
    "kept": "A list, `[[kept]]`: runs in real time that were made once, whose results are read.",
    "variant_seeds": "The most seeds of every condition under a variant: 4 where absent.",
    "variant": "A list, `[[variant]]`: other values of what the paper leaves open. `--sensitivity` tests the claims "
    "with each.",
}
"""The keys of ``paper.toml`` and what they mean."""

PLAN_KEYS: Mapping[str, str] = {
    "file": "The plan: a file in this folder, or the name of a shipped plan. Required.",
    "most_seeds": "The most seeds of this plan, also if `--seeds` is larger.",
    "varied": "Whether variants apply to its runs: true where absent.",
    "unvaried": "A list of tables: conditions with these values of axes are made without variants, because no claim "
    "reads them. A value may be a list.",
    "columns": "The columns that criteria read; all where absent. Large plans name them, which saves memory. "
    "`download_s` is the list of the times of a session's downloads, and has to be named.",
    "derive": "A function of `criteria.py`: further overrides of a condition, as a dictionary, from the "
    "values of its axes.",
    "kept": "A table of the plan's runs in real time, as a file of `[[kept]]`; a plan with such runs needs one.",
}
"""The keys of ``[[plan]]`` and what they mean."""

KEPT_KEYS: Mapping[str, str] = {
    "name": "What criteria call it, as they call a plan. Required.",
    "file": "The table of their sessions: a Parquet file in this folder, or of the shipped `data`. Required. A "
    "table that nothing here makes is only read, such as one of results whose runs were not kept: a row per result.",
    "plans": "The plans in this folder whose runs they are, all of whose engines are kept. They may need what not "
    "everybody has: they are read only by `--live`, which makes the runs that the table lacks.",
    "columns": "What the table has of a session of these plans; where absent, all, or what is there already.",
    "runs": "A function of `criteria.py`, for runs that no plan describes: what names each of them, as a dictionary.",
    "program": "The Python program in this folder that `--live` starts for each of these: what names the run is its "
    "argument, and the rest of the row its output, both as JSON objects.",
    "at_once": "How many of these `--live` makes at a time at most: 64 where absent.",
}
"""The keys of ``[[kept]]`` and what they mean."""

VARIANT_KEYS: Mapping[str, str] = {
    "name": "Its name in reports. Required.",
    "change": "A list, `[[variant.change]]`: which keys it sets, and in which runs. Required.",
}
"""The keys of ``[[variant]]`` and what they mean."""

CHANGE_KEYS: Mapping[str, str] = {
    "set": "Overrides, as those of a plan. Required.",
    "scenario": "In these scenarios only: a pattern such as `dash/ratio-*`, or a list of them.",
    "where": "Only where the plan sets one of these keys.",
    "unless": "Only where the plan sets none of these keys.",
}
"""The keys of ``[[variant.change]]`` and what they mean."""

_VARIANT_SEEDS = 4
_MOST_AT_ONCE = 64
AS_SHIPPED = "as shipped"
"""What the plans themselves are called among the variants."""


@dataclass(frozen=True)
class PaperPlan:
    """A plan of a paper.

    Attributes:
        plan: The plan.
        most_seeds: No more seeds than this.
        varied: Whether variants concern it.
        unvaried: Values of axes, by column; variants concern no condition that has one of each in some table.
        columns: What criteria read; everything where empty.
        derive: Further overrides of a condition, from its labels.
        kept: The table of its runs in real time; ``None`` of a plan without such.
    """

    plan: Plan
    most_seeds: int | None
    varied: bool
    unvaried: tuple[Mapping[str, Sequence[Any]], ...] = ()
    columns: tuple[str, ...] = ()
    derive: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None
    kept: Path | None = None

    @cached_property
    def experiment(self) -> Experiment:
        """The plan with its simulated conditions, all checked, with the overrides that follow from their axes.

        Raises:
            InputError: The plan has a mistake.
        """
        whole = Experiment.of(self.plan)
        simulated = (each for each in whole.conditions if not each.engine.is_live)
        return replace(whole, conditions=tuple(map(self._derived, simulated)))

    def _derived(self, condition: Condition) -> Condition:
        if self.derive is None:
            return condition
        try:
            return with_more(self.plan, condition, tuple(overrides_of(self.derive(condition.labels))))
        except InputError as error:
            raise InputError(f"{self.plan.document.path}: {error} (with {dict(condition.labels)})") from error

    def varies(self, condition: Condition) -> bool:
        """Whether variants concern a condition of the plan."""
        labels = condition.labels
        return self.varied and not any(
            all(labels[column] in values for column, values in table.items()) for table in self.unvaried
        )


@dataclass(frozen=True)
class Kept:
    """Runs that were made once and are read again.

    Attributes:
        name: What criteria call them.
        file: The table of their sessions.
        plans: The files of the plans that make them.
        columns: What is kept of a session of these; where empty, all, or the columns of the table that is there.
        runs: What names each run that a program makes; ``None`` without a program.
        program: What makes one of these.
        at_once: How many of these are made at a time at most.
    """

    name: str
    file: Path
    plans: tuple[Path, ...] = ()
    columns: tuple[str, ...] = ()
    runs: Callable[[], Iterable[Mapping[str, Any]]] | None = None
    program: Path | None = None
    at_once: int = 1

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of the table; none of one that is yet to be made.

        Raises:
            InputError: It is no table, or it is missing and nothing here makes it.
        """
        made = self.file.exists() or not (self.plans or self.program)
        return [dict(row) for row in kept_runs.read(self.file)] if made else []


@dataclass(frozen=True)
class Change:
    """What a variant sets in some conditions.

    Attributes:
        overrides: What it sets.
        scenarios: Patterns of the scenarios; any where empty.
        where: The plan sets one of these keys; any where empty.
        unless: The plan sets none of these keys.
        way: Where it is written.
    """

    overrides: Overrides
    scenarios: tuple[str, ...]
    where: tuple[str, ...]
    unless: tuple[str, ...]
    way: Way

    def concerns(self, condition: Condition) -> bool:
        """Whether it sets something in a condition."""
        keys = _keys(condition.overrides)
        # A file next to the plan is known by its name.
        names = (condition.scenario, Path(condition.scenario).name)
        fits = not self.scenarios or any(fnmatch.fnmatchcase(n, pattern) for n in names for pattern in self.scenarios)
        return fits and (not self.where or bool(keys & {*self.where})) and not keys & {*self.unless}


@lru_cache(maxsize=4096)
def _keys(overrides: Overrides) -> set[str]:
    """The keys that overrides set, and the tables that these are in: ``a = { b = 1 }`` sets ``a`` and ``a.b``."""
    found: set[str] = set()

    def add(key: str, value: Any) -> None:
        found.add(key)
        if isinstance(value, dict):
            for inner, each in value.items():
                add(f"{key}.{inner}", each)

    for key, text in overrides:
        try:
            add(key, tomllib.loads(f"value = {text}")["value"])
        except tomllib.TOMLDecodeError:
            found.add(key)
    return found


@dataclass(frozen=True)
class Variant:
    """What a paper leaves open, set otherwise.

    Attributes:
        name: What it is called.
        changes: What it sets.
    """

    name: str
    changes: tuple[Change, ...]

    def overrides(self, condition: Condition) -> Overrides:
        """What it sets in a condition."""
        return tuple(pair for change in self.changes if change.concerns(condition) for pair in change.overrides)


@dataclass(frozen=True)
class Paper:
    """A paper that was read and checked.

    Attributes:
        name: The folder's name.
        title: What it is called in reports.
        source: Where it was published.
        document: ``paper.toml``, for messages about it.
        plans: Its plans.
        kept: Its runs that were made once.
        variants: What it leaves open.
        variant_seeds: The seeds of a variant.
        claims: Its claims, in the order of ``criteria.py``.
        tables: Further tables of its report.
        text: The text with placeholders.
        text_path: Where that is from.
        page: The file that has its text in documentation.
    """

    name: str
    title: str
    source: str
    document: Document
    plans: tuple[PaperPlan, ...]
    kept: tuple[Kept, ...]
    variants: tuple[Variant, ...]
    variant_seeds: int
    claims: tuple[Claim, ...]
    tables: tuple[TableOf, ...]
    text: str
    text_path: Path
    page: str

    def only(self, tables: Sequence[str]) -> Paper:
        """The same with some tables, the plans and kept runs that these read, and no claim.

        Raises:
            InputError: There is no such table.
        """
        known = {each.name: each for each in self.tables}
        for name in tables:
            if name not in known:
                raise InputError(f"{self.name}: there is no table `{name}`{alternatives(name, known)}")
        chosen = tuple(known[name] for name in dict.fromkeys(tables))
        plans = {name for each in chosen for name in each.plans}
        whole = any(not each.plans for each in chosen)
        own = tuple(each for each in self.plans if whole or each.plan.name in plans)
        kept = tuple(each for each in self.kept if whole or each.name in plans)
        return replace(self, tables=chosen, plans=own, kept=kept, claims=(), variants=())

    @property
    def given(self) -> str:
        """All texts that have names of conditions: claims, criteria, plans and variants."""
        claims = [f"{claim.id} {claim.claim} {claim.criterion}" for claim in self.claims]
        return "\n".join([*claims, self.document.text, *(each.plan.document.text for each in self.plans)])


def shipped() -> dict[str, Path]:
    """The folders of the shipped papers by name, in the order of reports."""
    folder = Path(str(resources.files("anabranch") / "papers"))
    found = {file.parent.name: file.parent for file in sorted(folder.glob(f"*/{FILE}"))}
    return {name: found[name] for name in sorted(found, key=lambda name: (_ORDER.get(name, len(_ORDER)), name))}


# The older papers first.
_ORDER = {name: position for position, name in enumerate(("sticky", "handoff", "mptcp-plus", "dash"))}


def load(paper: str | Path) -> Paper:
    """Reads a folder, or a shipped paper by its name.

    Raises:
        InputError: There is none, or it has a mistake; the message has file, line and what was expected.
    """
    known = shipped()
    folder = Path(paper)
    if str(paper) in known:
        folder = known[str(paper)]
    elif not folder.is_dir():
        raise InputError(f"{paper}: there is no such folder and no shipped paper{alternatives(str(paper), known)}")
    for name in (FILE, CRITERIA, TEXT):
        if not (folder / name).is_file():
            raise InputError(f"{folder}: the file {name} is missing; `anabranch paper new NAME` makes a whole folder")
    return _of_folder(folder)


def _of_folder(folder: Path) -> Paper:
    document = read(folder / FILE)
    data = document.data
    document.check_keys((), data, KEYS)
    for key in ("schema", "title"):
        if key not in data:
            raise InputError(f"{document.path}: the key `{key}` is missing: {KEYS[key]}")
    if data["schema"] != SCHEMA:
        raise document.mistake(("schema",), f"this is schema {data['schema']!r}; expected {SCHEMA}")
    seeds = document.typed(("variant_seeds",), data.get("variant_seeds", _VARIANT_SEEDS), int, "a number of seeds")
    _check_seeds(document, ("variant_seeds",), seeds)
    module = _import(folder / CRITERIA)
    claims, tables = _criteria(folder / CRITERIA, module)
    name = folder.resolve().name
    paper = Paper(
        name=name,
        title=document.typed(("title",), data["title"], str, "a text"),
        source=document.typed(("source",), data.get("source", ""), str, "a text"),
        document=document,
        plans=tuple(_plans(document, folder, module)),
        kept=tuple(_kept(document, folder, module)),
        variants=tuple(_variants(document)),
        variant_seeds=seeds,
        claims=claims,
        tables=tables,
        text=(folder / TEXT).read_text(encoding="utf-8"),
        text_path=folder / TEXT,
        page=document.typed(("page",), data.get("page", f"claims-{name}.md"), str, "the name of a file"),
    )
    _check_plans_of_claims(paper)
    return paper


def _plans(document: Document, folder: Path, module: ModuleType) -> Iterator[PaperPlan]:
    given = document.typed(("plan",), document.data.get("plan", []), list, "tables, [[plan]]")
    if not given and not document.data.get("kept"):
        raise InputError(f"{document.path}: there is no plan; expected a [[plan]] with a `file`")
    for position, table in enumerate(given):
        way = ("plan", str(position))
        document.check_keys(way, document.typed(way, table, dict, "a table"), PLAN_KEYS)
        file = document.typed((*way, "file"), table.get("file"), str, "the name of a plan's file")
        path = folder / file if (folder / file).is_file() else plans.shipped().get(file)
        if path is None:
            raise document.mistake(
                (*way, "file"),
                f"there is no file {folder / file}, and no shipped plan{alternatives(file, plans.shipped())}",
            )
        most = table.get("most_seeds")
        if most is not None:
            _check_seeds(document, (*way, "most_seeds"), document.typed((*way, "most_seeds"), most, int, "a number"))
        varied = document.typed((*way, "varied"), table.get("varied", True), bool, "true or false")
        plan = plans.load(path)
        kept = _table(folder, document.typed((*way, "kept"), table["kept"], str, "a file")) if "kept" in table else None
        if plan.is_live and kept is None:
            raise plan.document.mistake(
                ("engines",), f"anyone can execute a paper: its runs in real time are kept, and {FILE} names the `kept`"
            )
        unvaried = _unvaried(document, (*way, "unvaried"), table.get("unvaried", []), plan)
        columns = document.typed((*way, "columns"), table.get("columns", []), list, "a list of names of columns")
        derive = _derive(document, (*way, "derive"), table, module)
        yield PaperPlan(plan, most, varied, unvaried, tuple(columns), derive, kept)


def _derive(
    document: Document, way: Way, table: Mapping[str, Any], module: ModuleType
) -> Callable[[Mapping[str, Any]], Mapping[str, Any]] | None:
    """The function of the criteria that derives overrides."""
    if "derive" not in table:
        return None
    return _function(document, way, document.typed(way, table["derive"], str, "the name of a function"), module)


def _function(document: Document, way: Way, name: str, module: ModuleType) -> Callable[..., Any]:
    """A function of the criteria."""
    known = {key: value for key, value in vars(module).items() if inspect.isfunction(value)}
    if name not in known:
        raise document.mistake(way, f"{CRITERIA} has no function `{name}`{alternatives(name, known)}")
    return known[name]


def _kept(document: Document, folder: Path, module: ModuleType) -> Iterator[Kept]:
    given = document.typed(("kept",), document.data.get("kept", []), list, "tables, [[kept]]")
    for position, table in enumerate(given):
        way = ("kept", str(position))
        document.check_keys(way, document.typed(way, table, dict, "a table"), KEPT_KEYS)
        name, file = (document.typed((*way, key), table.get(key), str, "a text") for key in ("name", "file"))
        plans_of = tuple(
            folder / plan for plan in document.typed((*way, "plans"), table.get("plans", []), list, "files")
        )
        if absent := next((plan for plan in plans_of if not plan.is_file()), None):
            raise document.mistake((*way, "plans"), f"there is no file {absent}")
        columns = document.typed((*way, "columns"), table.get("columns", []), list, "a list of names of columns")
        runs, program = (document.typed((*way, key), table.get(key, ""), str, "a text") for key in ("runs", "program"))
        if bool(runs) != bool(program):
            raise document.mistake(way, "`runs` and `program` belong together: expected both, or neither")
        if program and not (folder / program).is_file():
            raise document.mistake((*way, "program"), f"there is no file {folder / program}")
        at_once = document.typed((*way, "at_once"), table.get("at_once", _MOST_AT_ONCE), int, "a number of runs")
        if at_once < 1:
            raise document.mistake((*way, "at_once"), "expected at least one run at a time")
        yield Kept(
            name,
            _table(folder, file),
            plans_of,
            tuple(columns),
            _function(document, (*way, "runs"), runs, module) if runs else None,
            folder / program if program else None,
            at_once,
        )


def _table(folder: Path, file: str) -> Path:
    """The table of kept runs that a paper names: in its folder, or a shipped one; a shipped paper has it there."""
    is_shipped = folder.resolve() in (own.resolve() for own in shipped().values())
    data = kept_runs.DATA / file
    return data if (is_shipped or data.is_file()) and not (folder / file).is_file() else folder / file


def _unvaried(document: Document, way: Way, given: Any, plan: Plan) -> tuple[Mapping[str, Sequence[Any]], ...]:
    found = []
    for position, table in enumerate(document.typed(way, given, list, "a list of tables")):
        place = (*way, str(position))
        document.check_keys(place, document.typed(place, table, dict, "a table of values of axes"), plan.columns)
        values = {column: value if isinstance(value, list) else [value] for column, value in table.items()}
        for column, own in values.items():
            known = [point.labels[column] for axis in plan.axes if column in axis.columns for point in axis.points]
            for value in own:
                if value not in known:
                    other = alternatives(str(value), map(str, known))
                    raise document.mistake(
                        (*place, column), f"the plan has no `{column}` with the value {value!r}{other}"
                    )
        found.append(values)
    return tuple(found)


def _check_seeds(document: Document, way: Way, seeds: int) -> None:
    if seeds < 2:
        raise document.mistake(way, "an interval needs at least two seeds")


def _variants(document: Document) -> Iterator[Variant]:
    names: set[str] = {AS_SHIPPED}
    for position, table in enumerate(
        document.typed(("variant",), document.data.get("variant", []), list, "[[variant]]")
    ):
        way = ("variant", str(position))
        document.check_keys(way, document.typed(way, table, dict, "a table"), VARIANT_KEYS)
        name = document.typed((*way, "name"), table.get("name"), str, "a name")
        if name in names:
            raise document.mistake((*way, "name"), f"there are two variants `{name}`")
        names.add(name)
        changes = document.typed((*way, "change"), table.get("change"), list, "tables, [[variant.change]]")
        yield Variant(name, tuple(_change(document, (*way, "change", str(n)), c) for n, c in enumerate(changes)))


def _change(document: Document, way: Way, table: Any) -> Change:
    document.check_keys(way, document.typed(way, table, dict, "a table"), CHANGE_KEYS)
    overrides = variation.overrides(document.typed((*way, "set"), table.get("set"), dict, "a table of overrides"))

    def texts(key: str) -> tuple[str, ...]:
        value = table.get(key, [])
        items = document.typed((*way, key), [value] if isinstance(value, str) else value, list, "a list of names")
        return tuple(document.typed((*way, key, str(n)), item, str, "a name") for n, item in enumerate(items))

    return Change(overrides, texts("scenario"), texts("where"), texts("unless"), way)


def _criteria(path: Path, module: ModuleType) -> tuple[tuple[Claim, ...], tuple[TableOf, ...]]:
    """The claims and tables that a file defines, in its order."""
    found = list(vars(module).values())
    claims = tuple(each for each in found if isinstance(each, Claim))
    tables = tuple(each for each in found if isinstance(each, TableOf))
    if not claims and not tables:
        raise InputError(f"{path}: there is no claim and no table; expected functions with @claim or @table")
    for position, each in enumerate(claims):
        if each.id in (other.id for other in claims[:position]):
            raise InputError(f"{path}: there are two claims {each.id}")
    return claims, tables


def _import(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"criteria of {path.parent.name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look for their module there.
    sys.modules[spec.name] = module
    # A folder that is passed on gets no files by being executed.
    written, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except Exception as error:
        raise InputError(f"{place_of(path, error)}: {type(error).__name__}: {error}") from error
    finally:
        sys.dont_write_bytecode = written
    return module


def place_of(path: Path, error: BaseException) -> str:
    """The file, and the line of it in which an exception was raised, if it was there."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f"{path}:{error.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f"{path}:{lines[-1]}" if lines else str(path)


def _check_plans_of_claims(paper: Paper) -> None:
    names = [*(each.plan.name for each in paper.plans), *(each.name for each in paper.kept)]
    for position, name in enumerate(names):
        if name in names[:position]:
            number = position - len(paper.plans)
            way = ("plan", str(position), "file") if number < 0 else ("kept", str(number), "name")
            raise paper.document.mistake(way, f"the plan `{name}` is there twice")
    path = paper.document.path.parent / CRITERIA
    for claim in paper.claims:
        if claim.plan is not None and claim.plan not in names:
            raise InputError(f"{path}: {claim.id} names the plan `{claim.plan}`{alternatives(claim.plan, names)}")


def concerned(paper: Paper, conditions: Sequence[Condition]) -> None:
    """Refuses a variant that changes none of these conditions: it would vary nothing.

    Raises:
        InputError: There is one.
    """
    for variant in paper.variants:
        for change in variant.changes:
            if not any(change.concerns(condition) for condition in conditions):
                raise paper.document.mistake(change.way, f"`{variant.name}` sets this in no condition of the paper")
