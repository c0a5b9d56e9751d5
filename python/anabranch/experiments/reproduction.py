"""Executes papers: makes the runs of their plans and variants, and tests their claims.

All runs of all papers are gathered first, so that a run which several plans, variants or papers need is made once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from anabranch import InputError, __version__
from anabranch.experiments import conditions, table
from anabranch.experiments.claims import Claim, Finding, Outcome, Quantity, Table, TableOf, Value, Verdict
from anabranch.experiments.conditions import Condition, Run
from anabranch.experiments.executor import Executor
from anabranch.experiments.paper import AS_SHIPPED, CRITERIA, Paper, PaperPlan, Variant, concerned, place_of
from anabranch.experiments.stopping import more_seeds
from anabranch.experiments.store import Store
from anabranch.experiments.study import Row, Study
from anabranch.experiments.sweep import Experiment, Progress, make_runs

UNDECIDED = "an interval has values that meet the criterion and values that miss it; more seeds make it narrower"
"""Why a claim is undecided, whichever it is."""

UNEXPLAINED = "(not yet explained)"
"""Where a verdict comes out for which nobody has found a reason yet."""


@dataclass(frozen=True)
class Under:
    """A claim's verdict under a variant.

    Attributes:
        variant: Its name.
        seeds: The number of seeds.
        verdict: The verdict then.
        holding: How many findings hold.
    """

    variant: str
    seeds: int
    verdict: Verdict
    holding: int


@dataclass
class Tested:
    """A claim with its verdict.

    Attributes:
        claim: The claim.
        seeds: The number of seeds.
        findings: The comparisons of its criterion.
        quantities: Measured values.
        values: What sentences quote.
        under: The verdicts under variants, behind that of the plans themselves with as many seeds; empty where nothing
            was varied.
    """

    claim: Claim
    seeds: int
    findings: list[Finding] = field(default_factory=list)
    quantities: list[Quantity] = field(default_factory=list)
    values: dict[str, float] = field(default_factory=dict)
    under: list[Under] = field(default_factory=list)

    @property
    def verdict(self) -> Verdict:
        """What the findings say."""
        return Verdict.of(self.findings)

    @property
    def holding(self) -> int:
        """How many findings hold."""
        return sum(finding.outcome == Outcome.HOLDS for finding in self.findings)

    @cached_property
    def why(self) -> str:
        """The sentence that explains the verdict, with the values that it quotes."""
        if self.verdict == Verdict.UNDECIDED:
            return UNDECIDED
        sentence = self.claim.why.get(self.verdict)
        return UNEXPLAINED if sentence is None else sentence.format_map(self.values)

    @property
    def flips(self) -> list[Under]:
        """The variants with another verdict than the plans themselves."""
        return [under for under in self.under[1:] if under.verdict != self.under[0].verdict]


@dataclass
class Reproduction:
    """What was found of a paper: all that a report needs.

    Attributes:
        paper: The paper.
        seeds: The seeds of every condition.
        rows: Its claims.
        tables: The further tables of its report.
        study: The sessions of its plans.
        failed: How many runs failed, and the error of the last.
    """

    paper: Paper
    seeds: int
    rows: list[Tested]
    tables: list[Table]
    study: Study
    failed: tuple[int, str] = (0, "")


@dataclass(frozen=True)
class Part:
    """The runs of a plan of a paper, as shipped or under a variant."""

    paper: Paper
    variant: str
    plan: PaperPlan
    runs: Sequence[Run]


def reproduce(
    papers: Sequence[Paper],
    store: Store,
    *,
    seeds: int | None,
    sensitivity: bool,
    execute: Executor,
    progress: Progress,
) -> list[Reproduction]:
    """Makes what is missing, and tests every claim.

    Args:
        papers: The papers.
        store: Where runs are kept.
        seeds: The seeds of every condition; what its plan says where absent.
        sensitivity: Whether to test every claim under every variant, too.
        execute: What makes runs.
        progress: Gets told how far it is.

    Raises:
        InputError: A plan or a criterion has a mistake.
        OSError: A run could not be kept.
        KeyboardInterrupt: The user interrupted; what was finished is in the store.
    """
    parts = [part for paper in papers for part in _shared(list(_parts(paper, seeds, sensitivity)))]
    make_runs([run for part in parts for run in part.runs], store, execute=execute, progress=progress)
    return [_result(paper, [part for part in parts if part.paper is paper], store) for paper in papers]


def _parts(paper: Paper, seeds: int | None, sensitivity: bool) -> Iterator[Part]:
    """The runs that a paper needs."""
    varied: list[Condition] = []
    for each in paper.plans:
        experiment = Experiment.of(each.plan)
        wanted = _seeds(each, seeds)
        yield Part(paper, AS_SHIPPED, each, _runs(each, experiment.conditions, wanted))
        own = [condition for condition in experiment.conditions if each.varies(condition)]
        varied += own
        if sensitivity and own:
            for variant in paper.variants:
                found = [_under(paper, each, variant, condition) for condition in own]
                yield Part(paper, variant.name, each, _runs(each, found, wanted[: paper.variant_seeds]))
    concerned(paper, varied)


def _seeds(each: PaperPlan, wanted: int | None) -> tuple[int, ...]:
    seeds = each.plan.seeds
    if wanted is not None:
        seeds = more_seeds(seeds, wanted)[:wanted]
    return seeds if each.most_seeds is None else seeds[: each.most_seeds]


def _runs(each: PaperPlan, found: Sequence[Condition], seeds: Sequence[int]) -> list[Run]:
    # Lists of media segments are long, and criteria read reducers of them.
    return [replace(run, segments=False) for run in conditions.runs(each.plan, found, seeds)]


def _under(paper: Paper, each: PaperPlan, variant: Variant, condition: Condition) -> Condition:
    overrides = variant.overrides(condition)
    try:
        return conditions.with_more(each.plan, condition, overrides) if overrides else condition
    except InputError as error:
        way = next(change.way for change in variant.changes if change.concerns(condition))
        raise paper.document.mistake(way, f"`{variant.name}`: {error}") from error


def _shared(parts: Sequence[Part]) -> list[Part]:
    """The same, where a run that several plans need with different reducers is one with all of them."""
    wanted: dict[tuple[str, int], set[str]] = {}
    for part in parts:
        for run in part.runs:
            wanted.setdefault((run.digest, run.seed), set()).update(run.reducers)

    def whole(run: Run) -> Run:
        return replace(run, reducers=tuple(sorted(wanted[run.digest, run.seed])))

    return [replace(part, runs=[whole(run) for run in part.runs]) for part in parts]


def _result(paper: Paper, parts: Sequence[Part], store: Store) -> Reproduction:
    shipped = [part for part in parts if part.variant == AS_SHIPPED]
    study = _study(shipped, store)
    rows = [_test(paper, claim, study) for claim in paper.claims]
    errors = [row["error"] for plan in shipped for row in study.sessions([plan.plan.plan.name]) if row["error"]]
    if len(parts) > len(shipped):
        _vary(paper, parts, study, rows, store)
    filled = [_fill(paper, study, wanted) for wanted in paper.tables]
    failed = (len(errors), errors[-1]) if errors else (0, "")
    return Reproduction(paper, max(study.seeds.values()), rows, filled, study, failed)


def _vary(paper: Paper, parts: Sequence[Part], study: Study, rows: Sequence[Tested], store: Store) -> None:
    """Tests again what variants concern."""
    fixed = {each.plan.name for each in paper.plans if not each.varied}
    varied = [row for row in rows if row.claim.plan not in fixed]
    seeds = min(paper.variant_seeds, max(study.seeds.values()))
    studies = {AS_SHIPPED: study.first(seeds)}
    for name in (AS_SHIPPED, *(variant.name for variant in paper.variants)):
        under = studies.get(name) or _study([part for part in parts if part.variant == name], store)
        for row in varied:
            found = _test(paper, row.claim, under)
            row.under.append(Under(name, seeds, found.verdict, found.holding))


def _study(parts: Sequence[Part], store: Store) -> Study:
    return Study({part.plan.plan.name: list(_rows(part.runs, store)) for part in parts})


def _rows(runs: Sequence[Run], store: Store) -> Iterator[Row]:
    """A row per session."""
    for run, content in zip(runs, store.read(run.key for run in runs), strict=True):
        assert content is not None
        head = {**run.labels, "version": __version__}
        yield from ({**head, **row} for row in table.session_rows(json.loads(content)))


def _test(paper: Paper, claim: Claim, study: Study) -> Tested:
    seeds = study.seeds[claim.plan] if claim.plan in study.seeds else max(study.seeds.values())
    tested = Tested(claim, seeds)
    path = paper.document.path.parent / CRITERIA
    try:
        for found in claim.measure(study):
            match found:
                case Finding():
                    tested.findings.append(found)
                case Quantity():
                    tested.quantities.append(found)
                case Value():
                    tested.values[found.name] = found.value
        tested.why  # noqa: B018 (a sentence that quotes an unknown value is refused here)
    except InputError as error:
        raise InputError(f"{path}: {claim.id}: {error}") from error
    except Exception as error:
        raise InputError(f"{place_of(path, error)}: {claim.id}: {type(error).__name__}: {error}") from error
    return tested


def _fill(paper: Paper, study: Study, wanted: TableOf) -> Table:
    path = paper.document.path.parent / CRITERIA
    try:
        head, rows = wanted.fill(study)
    except Exception as error:
        raise InputError(f"{place_of(path, error)}: table {wanted.name}: {type(error).__name__}: {error}") from error
    return Table(wanted.name, wanted.title, head, rows)
