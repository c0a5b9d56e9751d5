"""What criteria read: the sessions of a paper's plans, condition by condition and seed by seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from anabranch.errors import InputError, alternatives
from anabranch.experiments import contrast, statistics
from anabranch.experiments.contrast import Comparison
from anabranch.experiments.statistics import Array, Interval
from anabranch.results.frames import frame

if TYPE_CHECKING:
    import polars as pl

    from anabranch.experiments.plan import Plan

Row = Mapping[str, Any]
"""A session: what a column of the table has, by its name."""


@dataclass(frozen=True)
class Case:
    """A condition of a plan.

    Attributes:
        name: What sentences call it.
        plan: The plan.
        labels: The values of the plan's axes, by column. What the plan varies and is not here must have one value.
    """

    name: str
    plan: str
    labels: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Metric:
    """A quantity of a session.

    Attributes:
        name: What sentences call it.
        of: The column, or a function that computes it from a row; ``None`` where a session has no such number.
        unit: Its unit in sentences.
        scale: What a value is multiplied with, such as 1e-3 for kb/s from bit/s.
        negligible: A difference of means that does not matter, however large it is.
    """

    name: str
    of: str | Callable[[Row], float | None]
    unit: str = ""
    scale: float = 1.0
    negligible: float = 0.0

    def value(self, row: Row) -> float:
        """That of a session; NaN where it has none, which every mean over sessions shows."""
        if row.get("error") is not None:
            return math.nan
        found = self.of(row) if callable(self.of) else number(row, self.of)
        return math.nan if found is None else float(found) * self.scale


def number(row: Row, column: str, *, absent: float | None = None) -> float | None:
    """What a row has in a column.

    Args:
        row: The row.
        column: The column.
        absent: What a row without that column has, such as a count of what did not happen.

    Raises:
        InputError: There is no such column, and nothing was said for that.
    """
    if column in row:
        value: float | None = row[column]
        return value
    if absent is None:
        raise InputError(f"the table has no column `{column}`{alternatives(column, row)}")
    return absent


class AbsentError(Exception):
    """A condition of the plan has no runs yet."""

    def __init__(self, case: Case) -> None:
        """Of a condition."""
        super().__init__(f"{case.name}: the condition has no runs yet")
        self.case = case


class Study:
    """The sessions of plans.

    Attributes:
        seeds: How many seeds every condition has, by plan.
        confidence: The level of the intervals that findings rest on.
        read: The conditions that were read.
    """

    def __init__(
        self,
        rows: Mapping[str, Sequence[Row]],
        confidence: float = statistics.CONFIDENCE,
        *,
        whole: bool = True,
        plans: Iterable[Plan] = (),
    ) -> None:
        """From the rows of every plan, whose axes and seeds are columns of them; of some conditions if not whole."""
        self._whole = whole
        self._plans = {plan.name: plan for plan in plans}
        self._comparisons: dict[str, list[Comparison]] = {}
        self._rows = {plan: list(found) for plan, found in rows.items()}
        self.seeds = {plan: len({row.get("seed") for row in found}) for plan, found in self._rows.items()}
        self.confidence = confidence
        self.read: dict[tuple[str, tuple[tuple[str, Any], ...]], Case] = {}
        # By plan and names of columns: the rows of each combination of values.
        self._index: dict[tuple[str, tuple[str, ...]], dict[tuple[Any, ...], list[Row]]] = {}

    def first(self, seeds: int) -> Study:
        """The same with so many seeds of every condition, the first ones."""
        kept: dict[str, list[Row]] = {}
        for plan, found in self._rows.items():
            some = set(list(dict.fromkeys(row["seed"] for row in found))[:seeds])
            kept[plan] = [row for row in found if row["seed"] in some]
        return Study(kept, self.confidence, whole=self._whole, plans=self._plans.values())

    def axis(self, plan: str, column: str) -> list[Any]:
        """The values of an axis of a plan, in its order."""
        return list(dict.fromkeys(row[column] for row in self.sessions([plan])))

    def rows(self, case: Case) -> list[Row]:
        """The sessions of a condition, a row per seed.

        Raises:
            InputError: There is no such plan or condition, or it is several.
            AbsentError: It has no runs yet.
        """
        # A run that failed has no number of a session.
        found = self._find(case, {"session": 0, **case.labels})
        if len(found) > len({row["seed"] for row in found}):
            raise InputError(f"{case.name}: several conditions of `{case.plan}` have {dict(case.labels)}")
        return found

    def viewers(self, case: Case) -> list[Row]:
        """All sessions of a condition, whichever seed and viewer.

        Raises:
            InputError: There is no such plan or condition.
        """
        return self._find(case, case.labels)

    def _find(self, case: Case, labels: Mapping[str, Any]) -> list[Row]:
        self.read[case.plan, tuple(sorted(case.labels.items()))] = case
        if case.plan not in self._rows and not self._whole:
            raise AbsentError(case)
        if case.plan not in self._rows:
            raise InputError(f"{case.name}: the paper has no plan `{case.plan}`{alternatives(case.plan, self._rows)}")
        columns = tuple(sorted(labels))
        if (place := (case.plan, columns)) not in self._index:
            index = self._index.setdefault(place, {})
            for row in self._rows[case.plan]:
                values = tuple(row.get(key, 0 if key == "session" else None) for key in columns)
                index.setdefault(values, []).append(row)
        found = self._index[place].get(tuple(labels[key] for key in columns))
        if not found and not self._whole:
            raise AbsentError(case)
        if not found:
            raise InputError(f"{case.name}: the plan `{case.plan}` has no condition with {dict(case.labels)}")
        return found

    def downloads_ms(self, case: Case) -> Array:
        """The times of all downloads of a condition that arrived, from request to last byte, ascending."""
        times = [time for row in self.rows(case) for time in row["download_s"]]
        return np.sort(np.array(times, dtype=np.float64)) * 1e3

    def values(self, case: Case, metric: Metric) -> Array:
        """A quantity of a condition, by seed."""
        return np.array([metric.value(row) for row in self.rows(case)], dtype=np.float64)

    def mean(self, case: Case, metric: Metric) -> Interval:
        """Its mean with the interval of Student's t."""
        return self.interval(self.values(case, metric))

    def difference(self, first: Case, second: Case, metric: Metric) -> Interval:
        """The mean of the differences ``first - second``, taken seed by seed, with its interval."""
        return self.interval(self.values(first, metric) - self.values(second, metric))

    def interval(self, values: Array) -> Interval:
        """The mean of values, a value per seed, with the interval that findings rest on."""
        return statistics.mean(values, self.confidence)

    def sessions(self, plans: Sequence[str]) -> list[Row]:
        """All rows of some plans."""
        return [row for plan in plans for row in self._rows[plan]]

    def comparisons(self, plan: str) -> list[Comparison]:
        """What the comparisons of a plan say, for each combination of the axes that they do not compare.

        Raises:
            InputError: There is no such plan.
        """
        if plan not in self._plans:
            raise InputError(f"the paper has no plan `{plan}`{alternatives(plan, self._plans)}")
        if plan not in self._comparisons:
            own, sessions = self._plans[plan], self.table(plan)
            known = [each for each in own.contrasts if each.metric in sessions.columns]
            self._comparisons[plan] = contrast.compare_all(sessions, known, own.columns)
        return self._comparisons[plan]

    def table(self, plan: str) -> pl.DataFrame:
        """The rows of a plan as a table."""
        return frame(self._rows[plan])
