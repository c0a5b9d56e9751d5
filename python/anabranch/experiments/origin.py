"""Where the tables of a store came from: the plan as it was, where it was, and with which seeds it was swept.

The tables themselves have no place of this machine in them, so that they are the same wherever they were made.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anabranch.errors import InputError
from anabranch.experiments import plan as plans
from anabranch.experiments.changes import NO_CHANGES, Changes
from anabranch.experiments.document import Document
from anabranch.experiments.plan import Plan
from anabranch.system import outputs, regular

SCHEMA = 1
"""The version of the file."""

_ENDING = "-plan.json"


@dataclass(frozen=True)
class Origin:
    """What a sweep was of.

    Attributes:
        name: The plan's name, as its tables are called.
        path: Where the plan was, absolute.
        text: The plan, as it was.
        seeds: The seeds that every condition has; ``--until`` may have added some.
        changes: What replaced values of the text.
    """

    name: str
    path: Path
    text: str
    seeds: tuple[int, ...]
    changes: Changes = NO_CHANGES

    def plan(self) -> Plan:
        """The plan, checked again: the files that it names have to be where they were.

        Raises:
            InputError: They are not, or it has a mistake; the message has the place.
        """
        return plans.of_document(Document(self.text, self.path), self.changes)


def write(folder: Path, plan: Plan, seeds: tuple[int, ...]) -> Path:
    """Writes it next to the tables.

    Raises:
        OSError: It cannot be written.
    """
    file = folder / f"{plan.name}{_ENDING}"
    content = {
        "schema": SCHEMA,
        "plan": str(plan.document.path.resolve()),
        "text": plan.document.text,
        "seeds": list(seeds),
        "changes": _table(plan.changes),
    }
    with outputs.writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with outputs.replacing(file) as new:
            new.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return file


def read(folder: Path, name: str) -> Origin:
    """Reads what a sweep was of.

    Raises:
        InputError: There is no such file, or it is none of these.
    """
    file = folder / f"{name}{_ENDING}"
    try:
        found: dict[str, Any] = regular.read_json(file)
        if found["schema"] != SCHEMA:
            raise InputError(f"{file}: schema {found['schema']!r}; expected {SCHEMA}; {_remedy(folder)}")
        seeds = tuple(map(int, found["seeds"]))
        return Origin(name, Path(found["plan"]), str(found["text"]), seeds, _changes(found.get("changes", {})))
    except FileNotFoundError as error:
        raise InputError(f"{folder}: {file.name} is missing, which says what {name} was; {_remedy(folder)}") from error
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{file}: this does not say what a sweep was of; {_remedy(folder)}") from error


def _table(changes: Changes) -> dict[str, Any]:
    """What the file says of changes: nothing of a plan that was swept as it is."""
    seeds = list(changes.seeds) if isinstance(changes.seeds, tuple) else changes.seeds
    told = {"set": [list(pair) for pair in changes.overrides], "seeds": seeds, "engines": list(changes.engines)}
    return {key: value for key, value in told.items() if value not in ([], None)}


def _changes(table: Mapping[str, Any]) -> Changes:
    """The changes that a file has."""
    seeds = table.get("seeds")
    return Changes(
        overrides=tuple((str(key), str(value)) for key, value in table.get("set", ())),
        seeds=tuple(map(int, seeds)) if isinstance(seeds, list) else seeds,
        engines=tuple(map(str, table.get("engines", ()))),
    )


def _remedy(folder: Path) -> str:
    return f"`anabranch sweep PLAN --store {folder}` writes it again, and keeps the runs"
