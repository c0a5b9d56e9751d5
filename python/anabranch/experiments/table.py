"""The tables of a sweep: a row per session and a row per media segment, as Parquet."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from anabranch._core import __version__
from anabranch.errors import InputError
from anabranch.experiments.conditions import Run
from anabranch.experiments.store import Store
from anabranch.results import columns
from anabranch.results.frames import frame
from anabranch.system import outputs, provenance, regular

_ABOUT = "anabranch"
_KEY_DIGITS = 16


@dataclass(frozen=True)
class About:
    """What a table says of itself.

    Attributes:
        question: The question of its plan.
        axes: The columns that its plan varies.
        version: The version that made its runs.
        library_sha256: The digest of the compiled part that made them.
        changes: What replaced values of the plan, as options of the command line.
    """

    question: str
    axes: tuple[str, ...]
    version: str
    library_sha256: str
    changes: tuple[str, ...] = ()

    @staticmethod
    def now(question: str, axes: Sequence[str], changes: Sequence[str] = ()) -> About:
        """That of a table which this build makes."""
        return About(question, tuple(axes), __version__, provenance.library_sha256(), tuple(changes))


def tables(runs: Sequence[Run], store: Store) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The sessions and the media segments of the runs that the store has, in the order of the runs."""
    heads: list[Mapping[str, Any]] = []
    sessions, segments = _Rows(), _Rows()
    for run, content in zip(runs, store.read(run.key for run in runs), strict=True):
        if content is None:
            continue
        key = run.key.hex()[:_KEY_DIGITS]
        heads.append({**run.labels, "engine": run.engine.name, "version": __version__, "run": key})
        with reading(run.key, store.folder):
            found = json.loads(content)
            sessions.add(session_rows(found))
            segments.add(list(columns.segments(found["metrics"])) if "metrics" in found else [])
    head = frame(heads)
    return sessions.joined(head), segments.joined(head)


@contextmanager
def reading(key: bytes, folder: Path) -> Iterator[None]:
    """Says which run of a store is none, when what is kept of it is something else.

    Raises:
        InputError: It is.
    """
    try:
        yield
    except InputError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(
            f"{folder}: what is kept under {key.hex()[:_KEY_DIGITS]} is no run; choose another --store, or remove this "
            "folder and make its runs again"
        ) from error


def session_rows(found: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """A row per session of what the store kept of a run; one row of a run that failed, and of one without sessions."""
    tries = {columns.TRIES: found["tries"]} if "tries" in found else {}
    if "metrics" not in found:
        return [{"error": found["error"], **tries}]
    rows: list[Mapping[str, Any]] = [
        {"error": None, **row, **tries} for row in columns.sessions(found["metrics"], found.get("reduced", ()))
    ]
    return rows or [{"error": None, **tries}]


class _Rows:
    """Rows of several runs, whose common part is added at the end and at once."""

    def __init__(self) -> None:
        self._rows: list[Mapping[str, Any]] = []
        self._runs: list[int] = []
        self._number = 0

    def add(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """The rows of the next run."""
        self._rows += rows
        self._runs += [self._number] * len(rows)
        self._number += 1

    def joined(self, heads: pl.DataFrame) -> pl.DataFrame:
        """The rows with the head of each one's run before it."""
        if not self._rows:
            return pl.DataFrame()
        return heads[self._runs].hstack(frame(self._rows))


def write(table: pl.DataFrame, path: Path, about: About) -> None:
    """Writes a table; one that is there is replaced at the end, so a reader never sees half of one.

    Raises:
        OSError: It cannot be written.
    """
    with outputs.writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with outputs.replacing(path) as new:
            table.write_parquet(new, metadata={_ABOUT: json.dumps(about.__dict__)})


def read(path: Path) -> tuple[pl.DataFrame, About]:
    """Reads a table.

    Raises:
        InputError: It is none that a sweep wrote.
    """
    try:
        frame = regular.read_parquet(path)
        about = json.loads(pl.read_parquet_metadata(path)[_ABOUT])
        lists = {key: tuple(about.get(key, ())) for key in ("axes", "changes")}
        return frame, About(**{**about, **lists})
    except (KeyError, ValueError, TypeError, pl.exceptions.PolarsError) as error:
        raise InputError(
            f"{path}: this is no table of `anabranch sweep`; expected a file such as STORE/PLAN.parquet"
        ) from error
