"""Claims of a paper, and verdicts that follow from written criteria.

A claim is a function over a `Study`. It yields findings, comparisons that hold, fail or are undecided, and the
quantities and values that belong to them. The verdict is counted from the findings, never written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from anabranch import InputError
from anabranch.experiments import statistics
from anabranch.experiments.document import alternatives
from anabranch.experiments.statistics import Array, Interval
from anabranch.experiments.study import Case, Metric, Study


class Outcome(StrEnum):
    """How a comparison came out."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNDECIDED = "undecided"

    @staticmethod
    def of(meets: bool, misses: bool) -> Outcome:
        """From whether the whole interval meets the criterion, and whether the whole interval misses it."""
        return Outcome.HOLDS if meets else Outcome.FAILS if misses else Outcome.UNDECIDED

    def __and__(self, other: Outcome) -> Outcome:
        """Both hold."""
        if Outcome.FAILS in (self, other):
            return Outcome.FAILS
        return Outcome.HOLDS if self == other == Outcome.HOLDS else Outcome.UNDECIDED


def above_threshold(mean: Interval, threshold: float) -> Outcome:
    """The interval lies above a threshold."""
    return Outcome.of(mean.low > threshold, mean.high <= threshold)


def below_threshold(mean: Interval, threshold: float) -> Outcome:
    """The interval lies below a threshold."""
    return Outcome.of(mean.high < threshold, mean.low >= threshold)


def at_most(mean: Interval, threshold: float) -> Outcome:
    """The interval lies at a threshold or below it."""
    return Outcome.of(mean.high <= threshold, mean.low > threshold)


def at_least(mean: Interval, threshold: float) -> Outcome:
    """The interval lies at a threshold or above it."""
    return Outcome.of(mean.low >= threshold, mean.high < threshold)


def holds(so: bool | np.bool) -> Outcome:
    """Of a comparison without an interval."""
    return Outcome.HOLDS if so else Outcome.FAILS


@dataclass(frozen=True)
class Finding:
    """A comparison.

    Attributes:
        text: The comparison in words, with what was measured.
        outcome: How it came out.
    """

    text: str
    outcome: Outcome


@dataclass(frozen=True)
class Quantity:
    """A measured value, beside the paper's where it gives one.

    Attributes:
        what: What it is, with its unit.
        ours: What was measured.
        seeds: Of how many seeds.
        paper: The paper's value; empty where only a figure shows it.
    """

    what: str
    ours: Interval
    seeds: int
    paper: str = ""


@dataclass(frozen=True)
class Value:
    """A number that sentences and the text quote.

    Attributes:
        name: What stands for it: ``{name}`` in the claim's sentences, ``{{ID.name}}`` in the text.
        value: The number.
    """

    name: str
    value: float


class Verdict(StrEnum):
    """The result of the findings of a claim."""

    REPRODUCED = "reproduced"
    PARTLY = "partly"
    NOT_REPRODUCED = "not reproduced"
    UNDECIDED = "undecided"
    NOT_TESTABLE = "not testable"

    @staticmethod
    def of(findings: Sequence[Finding]) -> Verdict:
        """All hold: reproduced; some do and some do not: partly; none: not reproduced.

        Undecided where the verdict depends on a finding that is. Without findings a claim is not testable.
        """
        found = {finding.outcome for finding in findings}
        if not findings:
            return Verdict.NOT_TESTABLE
        # Whatever the undecided ones turn out to be.
        if {Outcome.HOLDS, Outcome.FAILS} <= found:
            return Verdict.PARTLY
        if Outcome.UNDECIDED in found:
            return Verdict.UNDECIDED
        return Verdict.REPRODUCED if Outcome.HOLDS in found else Verdict.NOT_REPRODUCED


Criterion = Callable[[Study], Iterable[Finding | Quantity | Value]]


@dataclass(frozen=True)
class Claim:
    """A claim with its criterion, which was written before the measurement.

    Attributes:
        id: Such as ``S1``.
        claim: The paper's sentence.
        criterion: What has to come out, in words.
        why: One sentence per verdict, which explains it. It belongs to the verdict: where another one comes out, it is
            not shown, and a new one has to be found.
        plan: The plan whose seeds and variants count; all where absent.
        measure: The criterion itself.
    """

    id: str
    claim: str
    criterion: str
    why: Mapping[str, str]
    plan: str | None
    measure: Criterion


def claim(
    id: str,  # noqa: A002 (what claims are known by)
    sentence: str,
    *,
    criterion: str,
    why: Mapping[str, str] | None = None,
    plan: str | None = None,
) -> Callable[[Criterion], Claim]:
    """Makes a claim of the function that measures it; see `Claim`."""
    for verdict in why or {}:
        if verdict not in tuple(Verdict):
            raise InputError(f"{id}: `{verdict}` is no verdict{alternatives(verdict, Verdict)}")
    return lambda measure: Claim(id, sentence, criterion, dict(why or {}), plan, measure)


@dataclass(frozen=True)
class Table:
    """A table of a paper's report.

    Attributes:
        name: What stands for it in the text: ``{{table NAME}}``.
        title: Its heading in reports.
        head: The columns.
        rows: The texts.
    """

    name: str
    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class TableOf:
    """A table that is yet to be filled from a study."""

    name: str
    title: str
    fill: Callable[[Study], tuple[Sequence[str], Sequence[Sequence[str]]]]


def table(
    name: str, title: str
) -> Callable[[Callable[[Study], tuple[Sequence[str], Sequence[Sequence[str]]]]], TableOf]:
    """Makes a table of the report of the function that gives its head and its rows."""
    return lambda fill: TableOf(name, title, fill)


def digits(mean: Interval) -> str:
    """A mean with its interval: the decimals that the interval deserves, but no more than four digits of the mean."""
    size = max(mean.half_width, abs(mean.estimate) / 1e3)
    places = 0 if size >= 10 else 1 if size >= 1 else 2 if size >= 0.1 else 3
    return f"{mean.estimate:.{places}f} ± {mean.half_width:.{places}f}"


def significant(value: float) -> str:
    """A number with three significant digits or more."""
    size = abs(value)
    places = 0 if size >= 100 or size == 0 else 1 if size >= 10 else 2 if size >= 1 else 3
    return f"{value:.{places}f}"


def quantity(study: Study, case: Case, metric: Metric, paper: str = "") -> Quantity:
    """A mean to be shown, beside the paper's value."""
    unit = f", {metric.unit}" if metric.unit else ""
    return Quantity(f"{case.name}: {metric.name}{unit}", study.mean(case, metric), len(study.rows(case)), paper)


def lower(study: Study, first: Case, second: Case, metric: Metric) -> Finding:
    """The first is lower than the second: the interval of the paired differences lies below zero."""
    difference, text = _difference(study, first, second, metric)
    return Finding(text, below_threshold(difference, 0.0))


def higher(study: Study, first: Case, second: Case, metric: Metric) -> Finding:
    """The first is higher than the second: the interval of the paired differences lies above zero."""
    difference, text = _difference(study, first, second, metric)
    return Finding(text, above_threshold(difference, 0.0))


def above(study: Study, case: Case, metric: Metric, threshold: float) -> Finding:
    """A mean lies above a threshold, for certain."""
    mean = study.mean(case, metric)
    return Finding(f"{_words(case, metric, mean)}, threshold {threshold:g}", above_threshold(mean, threshold))


def below(study: Study, case: Case, metric: Metric, threshold: float) -> Finding:
    """A mean lies below a threshold, for certain."""
    mean = study.mean(case, metric)
    return Finding(f"{_words(case, metric, mean)}, threshold {threshold:g}", below_threshold(mean, threshold))


def near(study: Study, case: Case, metric: Metric, paper: float, distance: float) -> Finding:
    """A mean lies within a distance of the paper's value."""
    mean = study.mean(case, metric)
    return Finding(f"{_words(case, metric, mean)}, paper {paper:g}", holds(abs(mean.estimate - paper) <= distance))


def paired(first: Array, second: Array) -> Interval:
    """The mean of the differences of values that belong together, seed by seed."""
    return statistics.mean(first - second)


def _difference(study: Study, first: Case, second: Case, metric: Metric) -> tuple[Interval, str]:
    difference = study.difference(first, second, metric)
    return difference, f"{metric.name}, {first.name} − {second.name}: {digits(difference)}{_unit(metric)}"


def _words(case: Case, metric: Metric, mean: Interval) -> str:
    return f"{case.name}: {metric.name} {digits(mean)}{_unit(metric)}"


def _unit(metric: Metric) -> str:
    return f" {metric.unit}" if metric.unit else ""
