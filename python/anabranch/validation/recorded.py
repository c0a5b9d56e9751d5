"""The live runs of an earlier report, read strictly: what is missing, renamed or no number is never taken for zero."""

from __future__ import annotations

import dataclasses
import json
import math
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from anabranch.errors import InputError
from anabranch.validation.cases import TestCase
from anabranch.validation.criteria import Part
from anabranch.validation.measurement import Lateness, Measurement, UnobservedError
from anabranch.validation.report import Kernel, Report


@dataclass(frozen=True)
class Recorded:
    """The live runs of a test case.

    Attributes:
        invalid: How many were invalid, first tries included.
        errors: Why others failed.
        lateness: That of those that count; ``None`` without any.
        live: Those that count.
    """

    invalid: int = 0
    errors: tuple[str, ...] = ()
    lateness: Lateness | None = None
    live: tuple[Measurement, ...] = ()


_T = TypeVar("_T")

# What a report has besides, which is made anew.
_IGNORED = {"parts", "verdict"}
_IGNORED_OF_CASE = {"judgement", "simulated"}
# The fields of a test case's runs, by their names in reports.
_FIELDS = {"void": "invalid", "errors": "errors", "lateness": "lateness", "live": "live"}


@dataclass(frozen=True)
class LiveRuns:
    """Live runs of test cases.

    Attributes:
        kernel: The kernel that all were made with.
        by_case: Those of each test case, by its part and its name.
    """

    kernel: Kernel
    by_case: Mapping[tuple[Part, str], Recorded]

    @staticmethod
    def of_report(report: Report) -> LiveRuns:
        """Those of a comparison."""
        return LiveRuns(
            report.kernel,
            {
                (each.case.part, each.case.name): Recorded(
                    each.invalid, tuple(each.errors), each.lateness, tuple(each.live)
                )
                for each in report.found
            },
        )

    @property
    def parts(self) -> list[Part]:
        """The parts whose test cases there are."""
        known = {part for part, _ in self.by_case}
        return [part for part in Part if part in known]

    def of(self, cases: Sequence[TestCase]) -> list[Recorded]:
        """The runs of some test cases, which have what these compare; none of test cases that are not there.

        Raises:
            InputError: One lacks something that is compared.
        """
        recorded = [self.by_case.get((case.part, case.name), Recorded()) for case in cases]
        try:
            for case, each in zip(cases, recorded, strict=True):
                _check(case, each)
        except (ValueError, UnobservedError) as error:
            raise InputError(f"live runs that cannot be compared: {error}") from error
        return recorded


def of_json(report: str) -> LiveRuns:
    """The live runs of what ``validate --json`` printed.

    Raises:
        InputError: It is no report; the message names the key.
    """
    try:
        return LiveRuns(*_report(json.loads(report)))
    except ValueError as error:
        raise InputError(f"no report of validate --json: {error}") from error


def _report(data: Any) -> tuple[Kernel, dict[tuple[Part, str], Recorded]]:
    whole = _members(data, "the report", ("kernel", "cells"), _IGNORED)
    found: dict[tuple[Part, str], Recorded] = {}
    for number, case in enumerate(_list(whole["cells"], "cells")):
        at = f"cells[{number}]"
        members = _members(case, at, ("cell", *_FIELDS), _IGNORED_OF_CASE)
        hints = typing.get_type_hints(Recorded)
        fields = {field: value(hints[field], members[key], f"{at}.{key}") for key, field in _FIELDS.items()}
        # The first one counts, as it did when the report was written.
        found.setdefault(_identity(members["cell"], f"{at}.cell"), Recorded(**fields))
    return _object(Kernel, whole["kernel"], "kernel"), found


def _identity(data: Any, at: str) -> tuple[Part, str]:
    if not isinstance(data, Mapping):
        raise ValueError(f"{at}: expected an object")
    for key in ("part", "name"):
        if not isinstance(data.get(key), str):
            raise ValueError(f"{at}.{key}: expected a text")
    by_key = {part.key: part for part in Part}
    if (part := by_key.get(data["part"])) is None:
        raise ValueError(f"{at}.part: `{data['part']}`; expected one of {', '.join(by_key)}")
    return part, data["name"]


def _check(case: TestCase, recorded: Recorded) -> None:
    """Whether the runs have what the test case compares."""
    for run in recorded.live:
        try:
            run.check(case)
        except UnobservedError as error:
            raise UnobservedError(f"{case.name}: {error}") from None
    if recorded.lateness is None and recorded.live:
        raise ValueError(f"{case.name}: `lateness` is null although there are live runs")


def _members(data: Any, at: str, wanted: Sequence[str], ignored: set[str]) -> Mapping[str, Any]:
    """An object that has all of some keys, and none besides that is unknown."""
    if not isinstance(data, Mapping):
        raise ValueError(f"{at}: expected an object")
    for key in wanted:
        if key not in data:
            raise ValueError(f"{at}: `{key}` is missing")
    for key in data:
        if key not in wanted and key not in ignored:
            raise ValueError(f"{at}: unknown key `{key}`; expected {', '.join(wanted)}")
    return data


def _list(data: Any, at: str) -> list[Any]:
    if not isinstance(data, list):
        raise ValueError(f"{at}: expected a list")
    return data


def _object(kind: type[_T], data: Any, at: str) -> _T:
    """A dataclass of this kind from an object that has its fields."""
    hints = typing.get_type_hints(kind)
    members = _members(data, at, tuple(hints), set())
    return kind(**{name: value(hint, members[name], f"{at}.{name}") for name, hint in hints.items()})


def value(kind: Any, data: Any, at: str) -> Any:
    """A value of the type of a field, of what JSON or a table has.

    Raises:
        ValueError: It is of another type; the message begins with `at`.
    """
    choices = typing.get_args(kind)
    if typing.get_origin(kind) is types.UnionType:
        return None if data is None else value(next(each for each in choices if each is not type(None)), data, at)
    if typing.get_origin(kind) is tuple:
        return tuple(value(choices[0], each, f"{at}[{i}]") for i, each in enumerate(_list(data, at)))
    if dataclasses.is_dataclass(kind):
        return _object(typing.cast(type[Any], kind), data, at)
    if kind is str and isinstance(data, str):
        return data
    if kind is int and isinstance(data, int) and not isinstance(data, bool) and data >= 0:
        return data
    if kind is float and isinstance(data, (int, float)) and not isinstance(data, bool) and math.isfinite(data):
        return float(data)
    wanted = {str: "a text", int: "a whole number", float: "a number"}[kind]
    raise ValueError(f"{at}: {data!r}; expected {wanted}")
