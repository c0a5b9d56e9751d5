"""What was found of papers, as Markdown and JSON."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from anabranch._core import __version__
from anabranch.errors import InputError, alternatives
from anabranch.experiments.claims import Finding, Outcome, Quantity, Relation, Table, digits
from anabranch.experiments.reproduction import Reproduction, Tested, Under
from anabranch.experiments.statistics import Interval
from anabranch.report import paper_figures
from anabranch.wording import markdown as marked
from anabranch.wording import numerals
from anabranch.wording.summary import plural

SCHEMA = 1
"""The version of these contracts."""

_NOT_VARIED = "The assumptions were not varied; `anabranch reproduce --sensitivity` does."


def claims(found: Sequence[Reproduction], *, sensitivity: bool) -> dict[str, Any]:
    """What ``--json`` prints. The names of keys are a contract: scripts depend on them.

    Args:
        found: What was found of each paper.
        sensitivity: Whether the claims were tested under variants, too.
    """
    return {
        "schema": SCHEMA,
        "version": __version__,
        "seeds": max(each.seeds for each in found),
        "sensitivity": sensitivity,
        "rows": [row for each in found for row in rows(each)],
    }


def document(found: Sequence[Reproduction], *, sensitivity: bool) -> dict[str, Any]:
    """What ``report.json`` has: the claims, and each paper with its tables and its text."""
    return {**claims(found, sensitivity=sensitivity), "papers": [paper(each) for each in found]}


def rows(found: Reproduction) -> list[dict[str, Any]]:
    """A paper's claims for programs. The names of keys are a contract: scripts depend on them."""
    return [_row(found, row) for row in found.rows]


def _row(found: Reproduction, row: Tested) -> dict[str, Any]:
    return {
        "paper": found.paper.name,
        "id": row.claim.id,
        "claim": row.claim.claim,
        "criterion": row.claim.criterion,
        "seeds": row.seeds,
        "confidence": row.confidence,
        "verdict": row.verdict.value,
        "findings_that_hold": row.holding,
        "why": row.why,
        "findings": [_finding(each) for each in row.findings],
        "measured": [_quantity(each) for each in row.quantities],
        "under": [_under(each) for each in row.under],
        "depends_on": [each.variant for each in row.flips],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "text": finding.text,
        "holds": finding.outcome == Outcome.HOLDS,
        "decided": finding.outcome != Outcome.UNDECIDED,
        "difference": finding.decision.relation,
        "in_margins": _interval(finding.decision.in_margins),
        "seeds_needed": numerals.known(finding.decision.needs) if finding.outcome == Outcome.UNDECIDED else None,
    }


def _interval(each: Interval | None) -> dict[str, float] | None:
    return None if each is None else {"mean": each.estimate, "low": each.low, "high": each.high}


def _quantity(each: Quantity) -> dict[str, Any]:
    return {
        "what": each.what,
        "paper": each.paper or None,
        "mean": numerals.known(each.ours.estimate),
        "half_width": numerals.known(each.ours.half_width),
        "seeds": each.seeds,
    }


def _under(each: Under) -> dict[str, Any]:
    return {
        "variant": each.variant,
        "seeds": each.seeds,
        "verdict": each.verdict.value,
        "findings_that_hold": each.holding,
    }


def paper(found: Reproduction) -> dict[str, Any]:
    """What is known of the paper itself, with its tables, for programs."""
    tables = [
        {
            "name": t.name,
            "title": t.title,
            "head": list(t.head),
            "rows": [list(texts) for texts in t.rows],
            "texts": len(t.head) if t.texts is None else t.texts,
            "note": t.note,
        }
        for t in tables_of(found)
    ]
    return {
        "name": found.paper.name,
        "title": found.paper.title,
        "source": found.paper.source or None,
        "tables": tables,
        "figures": paper_figures.for_programs(found),
        "text": text(found),
    }


def tables_of(found: Reproduction) -> list[Table]:
    """Every table of a paper's report."""
    tables = [verdicts(found), *found.tables]
    if any(row.quantities for row in found.rows):
        tables.append(quantities(found))
    if any(row.under for row in found.rows):
        tables.append(variants(found))
    return tables


def verdicts(found: Reproduction) -> Table:
    """The verdicts of a paper's claims."""
    head = ["id", "the paper's claim", "criterion", "findings that hold", "verdict", "why"]
    texts = [
        [
            row.claim.id,
            row.claim.claim,
            row.claim.criterion,
            f"{row.holding} of {len(row.findings)}",
            row.verdict,
            row.why,
        ]
        for row in found.rows
    ]
    return Table("verdicts", "Verdicts", head, texts)


def quantities(found: Reproduction) -> Table:
    """Measured values and the paper's."""
    texts = [
        [row.claim.id, each.what, each.paper or "–", digits(each.ours)] for row in found.rows for each in row.quantities
    ]
    return Table("quantities", "Measured values", ["claim", "quantity", "the paper", "here, 95 % interval"], texts)


def variants(found: Reproduction) -> Table:
    """Which assumptions change which verdict."""
    head = ["id", "as shipped", "findings that hold", "the same verdict under", "another verdict under"]
    return Table("variants", "Verdicts that depend on assumptions", head, [_variants(r) for r in found.rows if r.under])


def _variants(row: Tested) -> list[str]:
    holding = [under.holding for under in row.under]
    number = len(row.under) - 1
    return [
        row.claim.id,
        f"{row.under[0].verdict} ({row.under[0].holding})",
        f"{min(holding)} to {max(holding)} of {len(row.findings)}",
        f"{number - len(row.flips)} of {number}",
        "; ".join(f"{under.variant}: {under.verdict} ({under.holding})" for under in row.flips),
    ]


def markdown(table: Table) -> str:
    """A table; its texts have no `|`."""
    whole = marked.table(table.head, table.rows, table.texts)
    return f"{whole}\n\n{table.note}" if table.note else whole


def findings(found: Reproduction) -> str:
    """Every finding, under its claim."""
    lines = []
    for row in found.rows:
        lines.append(f"- **{row.claim.id}** ({row.verdict})")
        lines += [f"  - {finding.outcome}: {finding.text}{_is(finding)}" for finding in row.findings]
    return "\n".join(lines)


def _is(finding: Finding) -> str:
    """What a decided difference is, and what an undecided one needs."""
    relation, needs = finding.decision.relation, finding.decision.needs
    if finding.outcome is not Outcome.UNDECIDED:
        return f" ({relation})" if relation not in (None, Relation.UNDECIDED) else ""
    return f" (about {needs:.0f} seeds would decide)" if math.isfinite(needs) else " (no number of seeds would decide)"


def text(found: Reproduction) -> str:
    """The paper's text, with what was measured in the place of its placeholders.

    Raises:
        InputError: There is no such placeholder; the message has file and line.
    """
    known = _placeholders(found)

    def fill(match: re.Match[str]) -> str:
        words = match[1].split()
        try:
            if not words or words[0] not in known:
                raise InputError(f"nothing is called `{match[1].strip()}`{alternatives(match[1].strip(), known)}")
            return known[words[0]](words[1:])
        except (InputError, ValueError) as error:
            line = 1 + found.paper.text.count("\n", 0, match.start())
            raise InputError(f"{found.paper.text_path}:{line}: {error}") from error

    return _PLACE.sub(fill, found.paper.text)


_PLACE = re.compile(r"\{\{(.*?)\}\}")


def _placeholders(found: Reproduction) -> dict[str, Callable[[Sequence[str]], str]]:
    """What a text may have between double braces: words after the name are its arguments."""
    places: dict[str, Callable[[Sequence[str]], str]] = {
        "seeds": lambda _: str(found.seeds),
        "seeds_of_claims": lambda _: _seeds(found),
        "verdicts": lambda _: markdown(verdicts(found)),
        "quantities": lambda _: markdown(quantities(found)),
        "variants": lambda _: _varied(found),
        "findings": lambda _: findings(found),
        "played": lambda plans: _played(found, plans),
        "table": lambda names: _table(found, names),
        "figure": lambda names: _figure(found, names),
    }
    for row in found.rows:
        places[f"{row.claim.id}.verdict"] = lambda _, row=row: row.verdict.value  # type: ignore[misc]
        for name, value in row.values.items():
            places[f"{row.claim.id}.{name}"] = lambda form, value=value: format(value, form[0] if form else "g")  # type: ignore[misc]
    return places


def _seeds(found: Reproduction) -> str:
    """With how many seeds the claims were decided, and at which level."""
    counts = Counter(row.seeds for row in found.rows if row.findings)
    parts = [f"{plural(number, 'claim')} with {seeds} seeds" for seeds, number in sorted(counts.items())]
    level = f"{found.rows[0].confidence * 100:g} %"
    return f"Tested: {', '.join(parts)}. Findings rest on intervals of {level}."


def _varied(found: Reproduction) -> str:
    varied = next((row for row in found.rows if row.under), None)
    if varied is None:
        return _NOT_VARIED
    names = "; ".join(under.variant for under in varied.under[1:])
    return f"Varied, with {varied.under[0].seeds} seeds each: {names}.\n\n{markdown(variants(found))}"


def _table(found: Reproduction, names: Sequence[str]) -> str:
    known = {table.name: table for table in found.tables}
    name = " ".join(names)
    if name not in known:
        raise InputError(f"{name}: there is no such @table{alternatives(name, known)}")
    return markdown(known[name])


def _figure(found: Reproduction, names: Sequence[str]) -> str:
    """The figures of a plan."""
    known = {each.plan.name: each for each in found.paper.plans if each.plan.figures}
    name = " ".join(names)
    if name not in known:
        raise InputError(f"{name}: there is no plan of that name with [[figures]]{alternatives(name, known)}")
    return "\n\n".join(drawing.markdown for drawing in paper_figures.of_plan(found, known[name]))


def _played(found: Reproduction, names: Sequence[str]) -> str:
    """How many sessions of some plans, or all, were not played to the end."""
    known = [each.plan.name for each in found.paper.plans]
    for name in names:
        if name not in known:
            raise InputError(f"the paper has no plan `{name}`{alternatives(name, known)}")
    sessions = found.study.sessions(names or known)
    missing = sum(row.get("run.ended") != "finished" for row in sessions)
    if not missing:
        return f"All {len(sessions)} sessions were played to the end."
    return f"{missing} of {plural(len(sessions), 'session')} were not played to the end within the scenario's time."


def report(head: str, found: Iterable[Reproduction]) -> str:
    """A report on several papers: the texts, each one's headings a level lower."""
    return "\n".join([head, *(_lower(text(each)) for each in found)])


def _lower(document: str) -> str:
    return re.sub(r"^(#+ )", r"#\1", document, flags=re.MULTILINE)
