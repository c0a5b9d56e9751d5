"""Claims of a paper, and verdicts that follow from written criteria.

A claim is a function over a `Study`. It yields findings, comparisons that hold, fail or are undecided, and the
quantities and values that belong to them. The verdict is counted from the findings, never written.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from anabranch.errors import InputError, alternatives
from anabranch.experiments import statistics
from anabranch.experiments.statistics import Array, Interval
from anabranch.experiments.study import Case, Metric, Study

# The most runs of a condition.
_MOST_SEEDS = 1e6


class Outcome(StrEnum):
    """The outcome of a comparison."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNDECIDED = "undecided"


class Relation(StrEnum):
    """What a difference is."""

    LOWER = "lower"
    HIGHER = "higher"
    SAME = "no difference that matters"
    UNDECIDED = "undecided"

    @staticmethod
    def of(difference: Interval, margin: float) -> Relation:
        """From the interval of a mean difference, and the largest difference that does not matter.

        Two one-sided tests find that no difference matters (Schuirmann 1987), each at half of what the interval leaves
        to chance. That comes first: a difference may be certain and not matter.
        """
        if -margin <= difference.low and difference.high <= margin:
            return Relation.SAME
        if difference.high < 0:
            return Relation.LOWER
        return Relation.HIGHER if difference.low > 0 else Relation.UNDECIDED


@dataclass(frozen=True)
class Decision:
    """The outcome of a comparison, and how many seeds would decide it.

    Attributes:
        outcome: What the comparison shows.
        needs: With about how many seeds an undecided one would be decided, if the mean is as measured; infinite if
            never, and zero where it is decided.
        relation: What the difference is; ``None`` of a comparison with a threshold.
        in_margins: The difference with its interval, where one is the largest difference that does not matter: so
            differences of all kinds have one axis. ``None`` of a comparison with a threshold, or without a margin.
    """

    outcome: Outcome
    needs: float = 0.0
    relation: Relation | None = None
    in_margins: Interval | None = None

    @staticmethod
    def of(
        meets: bool, misses: bool, interval: Interval, distance: float, relation: Relation | None = None
    ) -> Decision:
        """From an interval.

        Args:
            meets: Whether all of it meets the criterion.
            misses: Whether all of it misses the criterion.
            interval: The interval.
            distance: From its middle to the nearest value at which the criterion changes.
            relation: What the difference is.
        """
        if meets or misses:
            return Decision(Outcome.HOLDS if meets else Outcome.FAILS, 0.0, relation)
        # An interval shrinks with the root of the number of seeds.
        known = math.isfinite(interval.half_width) and distance > 0
        needs = interval.count * (interval.half_width / distance) ** 2 if known else math.inf
        needs = float(max(math.ceil(needs), interval.count + 1)) if needs < _MOST_SEEDS else math.inf
        return Decision(Outcome.UNDECIDED, needs, relation)

    def __and__(self, other: Decision) -> Decision:
        """Both hold."""
        return _together((self, other), Outcome.FAILS)

    def __or__(self, other: Decision) -> Decision:
        """One of them holds, or both."""
        return _together((self, other), Outcome.HOLDS)

    def __invert__(self) -> Decision:
        """It does not hold."""
        turned = {Outcome.HOLDS: Outcome.FAILS, Outcome.FAILS: Outcome.HOLDS}
        return replace(self, outcome=turned.get(self.outcome, self.outcome))


def _together(decisions: Sequence[Decision], deciding: Outcome) -> Decision:
    """Decided by any with this outcome, else undecided by any that is."""
    outcomes = [each.outcome for each in decisions]
    if deciding in outcomes:
        return Decision(deciding)
    if Outcome.UNDECIDED in outcomes:
        return Decision(Outcome.UNDECIDED, max(each.needs for each in decisions))
    return Decision(outcomes[0])


def more_than(decisions: Sequence[Decision], number: float) -> Decision:
    """More than so many of these hold, whatever the undecided ones turn out to be."""
    certain = sum(each.outcome is Outcome.HOLDS for each in decisions)
    undecided = [each.needs for each in decisions if each.outcome is Outcome.UNDECIDED]
    if certain > number:
        return Decision(Outcome.HOLDS)
    if certain + len(undecided) <= number:
        return Decision(Outcome.FAILS)
    return Decision(Outcome.UNDECIDED, max(undecided))


def is_lower(difference: Interval, margin: float) -> Decision:
    """The interval of the differences lies below zero, and some of it matters.

    Args:
        difference: The mean difference.
        margin: The largest difference that does not matter.
    """
    relation = Relation.of(difference, margin)
    # Where none of it is lower by more than the margin, it is no difference that matters or a higher value.
    missed = relation in (Relation.SAME, Relation.HIGHER) or difference.low >= -margin
    distance = max(-difference.estimate, difference.estimate + margin)
    decision = Decision.of(relation is Relation.LOWER, missed, difference, distance, relation)
    return replace(decision, in_margins=_in_margins(difference, margin))


def is_higher(difference: Interval, margin: float) -> Decision:
    """The interval of the differences lies above zero, and some of it matters."""
    mirrored = Interval(-difference.estimate, -difference.high, -difference.low, difference.count)
    found = is_lower(mirrored, margin)
    return replace(found, relation=Relation.of(difference, margin), in_margins=_in_margins(difference, margin))


def is_like(difference: Interval, margin: float) -> Decision:
    """No difference matters: the interval of the differences lies within the margin around zero."""
    relation = Relation.of(difference, margin)
    missed = difference.low > margin or difference.high < -margin
    distance = abs(margin - abs(difference.estimate))
    decision = Decision.of(relation is Relation.SAME, missed, difference, distance, relation)
    return replace(decision, in_margins=_in_margins(difference, margin))


def _in_margins(difference: Interval, margin: float) -> Interval | None:
    """The difference as a multiple of the largest one that does not matter."""
    if margin <= 0 or not math.isfinite(difference.half_width):
        return None
    low, high = difference.low / margin, difference.high / margin
    return Interval(difference.estimate / margin, low, high, difference.count)


def above_threshold(mean: Interval, threshold: float) -> Decision:
    """The interval lies above a threshold."""
    return Decision.of(mean.low > threshold, mean.high <= threshold, mean, abs(mean.estimate - threshold))


def below_threshold(mean: Interval, threshold: float) -> Decision:
    """The interval lies below a threshold."""
    return Decision.of(mean.high < threshold, mean.low >= threshold, mean, abs(mean.estimate - threshold))


def at_most(mean: Interval, threshold: float) -> Decision:
    """The interval lies at a threshold or below it."""
    return Decision.of(mean.high <= threshold, mean.low > threshold, mean, abs(mean.estimate - threshold))


def at_least(mean: Interval, threshold: float) -> Decision:
    """The interval lies at a threshold or above it."""
    return Decision.of(mean.low >= threshold, mean.high < threshold, mean, abs(mean.estimate - threshold))


def holds(so: bool | np.bool) -> Decision:
    """Of a comparison without an interval."""
    return Decision(Outcome.HOLDS if so else Outcome.FAILS)


@dataclass(frozen=True)
class Finding:
    """A comparison.

    Attributes:
        text: The comparison in words, with what was measured.
        decision: Its outcome.
    """

    text: str
    decision: Decision

    @property
    def outcome(self) -> Outcome:
        """Its outcome, in a word."""
        return self.decision.outcome


@dataclass(frozen=True)
class Quantity:
    """A measured value, with the paper's where it gives one.

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
        criterion: What has to be found, in words.
        why: One sentence per verdict, which explains it. It belongs to the verdict: where there is another one, it is
            not shown, and a new one has to be found. What was counted or measured stands in it as ``{name}``: a value
            of the claim, or a count of its findings (`counts`).
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
        texts: How many of the first columns are texts; the others are numbers. ``None``: all are texts.
        note: A sentence below it.
    """

    name: str
    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: int | None = None
    note: str = ""


Filled = tuple[Sequence[str], Sequence[Sequence[str]]] | tuple[Sequence[str], Sequence[Sequence[str]], str]
"""The head of a table and its rows; and a note, where there is one."""


@dataclass(frozen=True)
class TableOf:
    """A table that is yet to be filled from a study."""

    name: str
    title: str
    fill: Callable[[Study], Filled]
    texts: int | None = None
    plans: Sequence[str] = ()


def table(
    name: str, title: str, *, texts: int | None = None, plans: Sequence[str] = ()
) -> Callable[[Callable[[Study], Filled]], TableOf]:
    """Makes a table of the report of the function that gives its head and its rows.

    Args:
        name: What stands for it in the text.
        title: Its heading.
        texts: How many of the first columns are texts, if the others are numbers.
        plans: The plans that it reads, so that it can be made alone; all where absent.
    """
    return lambda fill: TableOf(name, title, fill, texts, tuple(plans))


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
    """A mean to be shown, with the paper's value; its interval is that of 95 %, whatever findings need."""
    unit = f", {metric.unit}" if metric.unit else ""
    mean = statistics.mean(study.values(case, metric))
    return Quantity(f"{case.name}: {metric.name}{unit}", mean, len(study.rows(case)), paper)


def lower(study: Study, first: Case, second: Case, metric: Metric) -> Finding:
    """The first is lower than the second: the interval of the paired differences lies below zero, and it matters."""
    difference, text = _difference(study, first, second, metric)
    return Finding(text, is_lower(difference, margin(study, second, metric)))


def higher(study: Study, first: Case, second: Case, metric: Metric) -> Finding:
    """The first is higher than the second: the interval of the paired differences lies above zero, and it matters."""
    difference, text = _difference(study, first, second, metric)
    return Finding(text, is_higher(difference, margin(study, second, metric)))


def like(study: Study, first: Case, second: Case, metric: Metric) -> Finding:
    """The first is like the second: no difference matters."""
    difference, text = _difference(study, first, second, metric)
    return Finding(text, is_like(difference, margin(study, second, metric)))


SHARE = 0.1
"""Means are alike that differ by no more than this part of the reference's mean."""


def margin(study: Study, reference: Case, metric: Metric) -> float:
    """The largest difference from a condition that does not matter."""
    return margin_of(study.values(reference, metric), metric.negligible)


def margin_of(reference: Array, negligible: float = 0.0) -> float:
    """The same of values: a tenth of their mean, or what is negligible if that is more."""
    return max(SHARE * abs(float(np.mean(reference))), negligible)


def above(study: Study, case: Case, metric: Metric, threshold: float) -> Finding:
    """A mean lies above a threshold, for certain."""
    mean = study.mean(case, metric)
    return Finding(f"{_words(case, metric, mean)}, threshold {threshold:g}", above_threshold(mean, threshold))


def below(study: Study, case: Case, metric: Metric, threshold: float) -> Finding:
    """A mean lies below a threshold, for certain."""
    mean = study.mean(case, metric)
    return Finding(f"{_words(case, metric, mean)}, threshold {threshold:g}", below_threshold(mean, threshold))


def near(study: Study, case: Case, metric: Metric, paper: float, distance: float) -> Finding:
    """A mean lies within a distance of the paper's value, for certain."""
    mean = study.mean(case, metric)
    text = f"{_words(case, metric, mean)}, paper {paper:g}"
    return Finding(text, at_least(mean, paper - distance) & at_most(mean, paper + distance))


def _difference(study: Study, first: Case, second: Case, metric: Metric) -> tuple[Interval, str]:
    difference = study.difference(first, second, metric)
    return difference, f"{metric.name}, {first.name} − {second.name}: {digits(difference)}{_unit(metric)}"


def _words(case: Case, metric: Metric, mean: Interval) -> str:
    return f"{case.name}: {metric.name} {digits(mean)}{_unit(metric)}"


def _unit(metric: Metric) -> str:
    return f" {metric.unit}" if metric.unit else ""


def tally(name: str, total: str, findings: Sequence[Finding]) -> list[Value]:
    """How many of some findings hold, and how many there are, for sentences to quote."""
    held = sum(finding.outcome is Outcome.HOLDS for finding in findings)
    return [Value(name, held), Value(total, len(findings))]


def counts(findings: Sequence[Finding]) -> dict[str, float]:
    """What every sentence can quote of its findings: how many there are, by outcome, and by what a difference is."""
    outcomes = [finding.outcome for finding in findings]
    relations = [finding.decision.relation for finding in findings]
    return {
        "findings": len(findings),
        "hold": outcomes.count(Outcome.HOLDS),
        "fail": outcomes.count(Outcome.FAILS),
        "undecided": outcomes.count(Outcome.UNDECIDED),
        "lower": relations.count(Relation.LOWER),
        "higher": relations.count(Relation.HIGHER),
        "same": relations.count(Relation.SAME),
    }


def uncounted(sentence: str, given: str) -> list[str]:
    """The numbers of a sentence, as digits or words, that are neither filled in nor given.

    What was measured or counted stands in a sentence as ``{name}``. Another number is allowed where it belongs to a
    name, such as "10 s segments" or "path 1": it stands in the given texts with the word before or behind it.

    Args:
        sentence: With its placeholders.
        given: The claims and their criteria, and what else has names.
    """
    words = [word.strip("(),;:.") for word in re.sub(r"\{[^}]*\}", "…", sentence).replace("'s", "").split()]
    found = []
    for position, word in enumerate(words):
        has_digit = any(character.isdigit() for character in word)
        if not has_digit and not {word.lower(), *word.lower().split("-")} & _NUMBER_WORDS:
            continue
        phrases = [" ".join(words[max(0, position - 1) : position + 1]), " ".join(words[position : position + 2])]
        # A name such as 3p-50 or 1:5 needs no other word.
        is_name = has_digit and re.search(r"[A-Za-z:]", word)
        if not any(phrase in given for phrase in ([word] if is_name else phrases) if is_name or " " in phrase):
            found.append(word)
    return found


_NUMBER_WORDS = frozenset(
    [
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "fifteen",
        "twenty",
        "thirty",
        "forty",
        "fifty",
        "sixty",
        "seventy",
        "eighty",
        "ninety",
        "hundred",
        "hundreds",
        "thousand",
        "thousands",
        "dozen",
        "half",
        "halves",
        "third",
        "thirds",
        "quarter",
        "quarters",
        "fifth",
        "fifths",
        "sixth",
        "sixths",
        "seventh",
        "eighth",
        "ninth",
        "ninths",
        "tenth",
        "tenths",
        "twice",
        "thrice",
        "double",
        "triple",
        "none",
    ]
)
