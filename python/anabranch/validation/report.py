"""The report of a comparison, as text and as JSON."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from anabranch.experiments.statistics import Interval
from anabranch.validation.cases import TestCase
from anabranch.validation.criteria import Part
from anabranch.validation.judgement import Compared, Equivalence, Judgement, part_verdict
from anabranch.validation.measurement import Lateness, Measurement
from anabranch.wording import markdown, numerals
from anabranch.wording.summary import plural


@dataclass(frozen=True)
class Kernel:
    """The kernel that live runs were made with.

    Attributes:
        release: Its release, such as ``6.12.8``.
        header_room: Bytes that its build reserves for headers in front of each packet: ``transport.header_room`` of
            simulated runs.
        writer: How the testbed's server wrote: ``transport.writer`` of simulated runs.
    """

    release: str
    header_room: int
    writer: str


@dataclass(frozen=True)
class Found:
    """A test case with its results.

    Attributes:
        case: The test case.
        judgement: The comparison; ``None`` without a valid live run.
        lateness: That of the live runs that count; ``None`` without any.
        invalid: Live runs that were invalid, first tries included.
        errors: Why runs failed.
        simulated: The simulated runs.
        live: The valid live runs.
    """

    case: TestCase
    judgement: Judgement | None
    lateness: Lateness | None
    invalid: int
    errors: Sequence[str]
    simulated: Sequence[Measurement]
    live: Sequence[Measurement]

    @property
    def note(self) -> str | None:
        """What was invalid or failed."""
        parts = [f"{plural(self.invalid, 'run was', 'runs were')} invalid"] if self.invalid else []
        if self.errors:
            parts.append(f"{plural(len(self.errors), 'run')} failed: {self.errors[0]}")
        if self.judgement is None:
            parts.append("no run counts")
        return f"{self.case.name}: {'; '.join(parts)}" if parts else None


Row = Mapping[str, Any]


@dataclass(frozen=True)
class PartReport:
    """The report of a part.

    Attributes:
        part: The part.
        verdict: Its result.
        usual: For (a): the number of test cases within the usual tolerance, and of all.
        rows: A row per comparison.
        notes: Invalid and failed runs.
    """

    part: Part
    verdict: Equivalence
    usual: tuple[int, int] | None
    rows: Sequence[Row]
    notes: Sequence[str]

    @staticmethod
    def of(part: Part, found: Sequence[Found]) -> PartReport:
        """Gathers the test cases of a part."""
        judgements = [each.judgement for each in found]
        near = sum(judgement is not None and judgement.usual is Equivalence.EQUIVALENT for judgement in judgements)
        return PartReport(
            part,
            part_verdict(part, judgements),
            (near, len(found)) if part is Part.ONE_PATH else None,
            [_row(each.case, compared) for each in found if each.judgement for compared in each.judgement.compared],
            [each.note for each in found if each.note is not None],
        )

    def json(self) -> dict[str, Any]:
        """The part of the JSON object."""
        usual = None if self.usual is None else list(self.usual)
        head = {"letter": self.part.letter, "title": self.part.title, "verdict": self.verdict.value, "usual": usual}
        return {**head, "rows": list(self.rows), "notes": list(self.notes)}

    def markdown(self) -> str:
        """The part as a section of a document."""
        lines = [f"### ({self.part.letter}) {self.part.title}: {self.verdict.word}", ""]
        if self.usual is not None:
            lines += [f"Goodput within 5 % in {self.usual[0]} of {self.usual[1]} test cases.", ""]
        head = ("test case", "quantity", "simulated", "kernel", "ratio, 90 % interval", "tolerance", "verdict")
        keys = ("cell", "quantity", "simulated", "live", "ratio", "tolerance")
        rows = [[*(row[key] for key in keys), Equivalence(row["verdict"]).word] for row in self.rows]
        lines.append(markdown.table(head, rows))
        for note in self.notes:
            lines += ["", f"- {note}"]
        return "\n".join([*lines, ""])


@dataclass(frozen=True)
class Report:
    """The report of test cases.

    Attributes:
        kernel: The kernel of the live runs.
        found: The test cases with their results.
    """

    kernel: Kernel
    found: Sequence[Found]

    @property
    def parts(self) -> list[PartReport]:
        """The reports of the parts that have test cases."""
        by_part = {part: [each for each in self.found if each.case.part is part] for part in Part}
        return [PartReport.of(part, found) for part, found in by_part.items() if found]

    def of(self, letters: str) -> Report:
        """The report of the parts with these letters."""
        return Report(self.kernel, [each for each in self.found if each.case.part.letter in letters])

    def json(self) -> dict[str, Any]:
        """The report as a JSON object."""
        parts = self.parts
        return {
            "kernel": asdict(self.kernel),
            "parts": [part.json() for part in parts],
            "verdict": Equivalence.all_of([part.verdict for part in parts]).value,
            "cells": [_of_case(found) for found in self.found],
        }

    def markdown(self) -> str:
        """The report as sections of a document."""
        return "\n".join([f"{self.summary}\n", *(part.markdown() for part in self.parts)])

    @property
    def summary(self) -> str:
        """How many comparisons have which outcome, and how many means agree."""
        words = Counter(Equivalence(row["verdict"]).word for part in self.parts for row in part.rows)
        total = words.total()
        ways = f"{words['pass']} pass, {words['inconclusive']} inconclusive, {words['differs']} different"
        agree = sum(row["means_agree"] for part in self.parts for row in part.rows)
        return f"{total} comparisons: {ways}; {agree} means are within the tolerances."


def _of_case(found: Found) -> dict[str, Any]:
    case = found.case
    return {
        "cell": {
            "part": case.part.key,
            "name": case.name,
            "scenario": case.scenario,
            "sessions": case.sessions,
            "seconds": case.seconds,
            "live_runs": case.live_runs,
            "simulated_runs": case.simulated_runs,
            "runs": "paired" if case.paired else "unpaired",
        },
        "judgement": None
        if found.judgement is None
        else {"compared": [_compared(c) for c in found.judgement.compared]},
        "lateness": None if found.lateness is None else asdict(found.lateness),
        "void": found.invalid,
        "errors": list(found.errors),
        "simulated": [asdict(run) for run in found.simulated],
        "live": [asdict(run) for run in found.live],
    }


def _compared(compared: Compared) -> dict[str, Any]:
    criterion = compared.criterion
    return {
        "criterion": {"quantity": criterion.quantity.key, "share": criterion.share, "number": criterion.number},
        "simulated": compared.simulated,
        "live": compared.live,
        "ratio": _interval(compared.ratio),
        "difference": _interval(compared.difference),
        "means_agree": compared.means_agree,
        "verdict": compared.verdict.value,
    }


def _interval(found: Interval) -> dict[str, float | None]:
    return {"mean": found.estimate, "half": numerals.known(found.half_width)}


def _row(case: TestCase, compared: Compared) -> Row:
    criterion = compared.criterion
    quantity = criterion.quantity
    tolerance = [] if criterion.share is None else [f"{criterion.share * 100:.0f} %"]
    tolerance += [] if criterion.number is None else [f"{criterion.number * quantity.scale:.0f}"]
    return {
        "cell": case.name,
        "quantity": quantity.title,
        "simulated": f"{compared.simulated * quantity.scale:.{quantity.digits}f}",
        "live": f"{compared.live * quantity.scale:.{quantity.digits}f}",
        "ratio": _ratio(compared),
        "tolerance": " or ".join(tolerance),
        "means_agree": compared.means_agree,
        "verdict": compared.verdict.value,
    }


def _ratio(compared: Compared) -> str:
    """The ratio; the difference where counts are zero."""
    found = compared.ratio
    if compared.simulated == 0.0 or compared.live == 0.0 or found.half_width > 1.0:
        d = compared.difference
        return f"difference {d.estimate:+.1f}, {d.low:+.1f} to {d.high:+.1f}"
    estimate, low, high = ((math.exp(log) - 1.0) * 100.0 for log in (found.estimate, found.low, found.high))
    return f"{estimate:+.1f} %, {low:+.1f} to {high:+.1f}"
