"""The live runs of a comparison as a table, which can be compared again without root: a row per run.

A row names its test case, what was compared of the run, and the kernel; it repeats how late the links of the test
case's runs were, and how many were invalid or failed. A test case without a valid run has one row, without a seed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from anabranch.errors import InputError
from anabranch.experiments import kept_runs
from anabranch.results.frames import frame
from anabranch.system import outputs
from anabranch.validation import recorded
from anabranch.validation.criteria import Part
from anabranch.validation.measurement import Lateness, Measurement
from anabranch.validation.recorded import LiveRuns, Recorded
from anabranch.validation.report import Kernel

Row = Mapping[str, Any]

_SHIPPED = ("kernel-runs.parquet", "kernel-drawn.parquet")
"""Tables of this project's runs: all parts but the drawn test cases, and those."""
# The columns besides those of a measurement: the field of each kind, and what the table calls it.
_LATENESS = {field.name: f"lateness.{field.name}" for field in dataclasses.fields(Lateness)}
_KERNEL = {"release": kept_runs.KERNEL, "header_room": "header_room", "writer": "writer"}
_MEASURED = tuple(field.name for field in dataclasses.fields(Measurement))
_COLUMNS = ("part", "test_case", *_MEASURED, "invalid", "errors", *_LATENESS.values(), *_KERNEL.values())


def write(file: Path, runs: LiveRuns) -> LiveRuns:
    """Keeps live runs; test cases that the table has already are replaced.

    Returns:
        What the table has then.

    Raises:
        InputError: The runs there were made with another kernel.
        OSError: It cannot be written.
    """
    whole = runs
    if file.exists():
        old = read(file)
        if old.kernel != runs.kernel:
            raise InputError(
                f"{file}: these runs were made with another kernel, {_named(old.kernel)}, than those of now, "
                f"{_named(runs.kernel)}; keep them in another file"
            )
        whole = LiveRuns(runs.kernel, {**old.by_case, **runs.by_case})
    rows = [row for (part, name), each in whole.by_case.items() for row in _rows(part, name, each, whole.kernel)]
    with outputs.writing(file), outputs.replacing(file) as new:
        frame(rows).write_parquet(new, compression="zstd", statistics=False)
    return whole


def _named(kernel: Kernel) -> str:
    return f"Linux {kernel.release} (header room {kernel.header_room}, writer {kernel.writer})"


def _rows(part: Part, name: str, runs: Recorded, kernel: Kernel) -> Iterator[Row]:
    tail = {"error": None, "invalid": runs.invalid, "errors": list(runs.errors)}
    tail |= {column: getattr(runs.lateness, field, None) for field, column in _LATENESS.items()}
    tail |= {column: getattr(kernel, field) for field, column in _KERNEL.items()}
    measured = [dataclasses.asdict(run) for run in runs.live] or [dict.fromkeys(_MEASURED)]
    for run in measured:
        yield {"part": part.key, "test_case": name, **run, **tail}


def read(file: Path) -> LiveRuns:
    """The live runs of a table, or of a shipped one where there is no file of its name.

    Raises:
        InputError: It is no table of live runs.
    """
    if not file.exists():
        if str(file) not in _SHIPPED:
            raise InputError(
                f"{file}: there is no such file; expected one, or a shipped table, {' or '.join(_SHIPPED)}"
            )
        file = kept_runs.DATA / file
    rows = kept_runs.read(file)
    if missing := [name for name in _COLUMNS if not rows or name not in rows[0]]:
        raise InputError(f"{file}: this is no table of `validate --keep`: the column `{missing[0]}` is missing")
    by_case: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        by_case.setdefault((row["part"], row["test_case"]), []).append(row)
    known = {part.key: part for part in Part}
    try:
        kernel = _object(Kernel, {field: rows[0][column] for field, column in _KERNEL.items()}, "kernel")
        return LiveRuns(kernel, {(known[part], name): _recorded(name, own) for (part, name), own in by_case.items()})
    except (ValueError, KeyError) as error:
        raise InputError(f"{file}: this is no table of `validate --keep`: {error}") from error


def _recorded(name: str, rows: Sequence[Row]) -> Recorded:
    lateness = {field: rows[0][column] for field, column in _LATENESS.items()}
    late = None if None in lateness.values() else _object(Lateness, lateness, f"{name}: lateness")
    live = [{field: row[field] for field in _MEASURED} for row in rows if row["seed"] is not None]
    measured = tuple(_object(Measurement, run, name) for run in live)
    return Recorded(rows[0]["invalid"], tuple(rows[0]["errors"]), late, measured)


def _object(kind: Any, data: Row, at: str) -> Any:
    return recorded.value(kind, data, at)
