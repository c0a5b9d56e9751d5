"""Executes papers: makes the runs of their plans and variants, and tests their claims.

All runs of all papers are gathered first, so that a run which several plans, variants or papers need is made once.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from anabranch._core import __version__
from anabranch.errors import InputError
from anabranch.experiments import conditions, kept_runs, outside, realtime, table
from anabranch.experiments import plan as plans
from anabranch.experiments.claims import Claim, Finding, Outcome, Quantity, Table, TableOf, Value, Verdict, counts
from anabranch.experiments.conditions import Condition, Run
from anabranch.experiments.executor import Executor
from anabranch.experiments.paper import AS_SHIPPED, CRITERIA, Paper, PaperPlan, Variant, concerned, place_of
from anabranch.experiments.statistics import CONFIDENCE
from anabranch.experiments.stopping import CONFIDENCE_OF_LOOKS, LOOKS, more_seeds
from anabranch.experiments.store import Store
from anabranch.experiments.study import AbsentError, Case, Row, Study
from anabranch.experiments.sweep import Experiment, Progress, make_runs
from anabranch.results import columns
from anabranch.results.columns import DOWNLOADS, OF_LIVE
from anabranch.system.programs import ToolError
from anabranch.wording.summary import plural

UNEXPLAINED = "(not yet explained)"
"""What is shown for a verdict without a known reason."""


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
        confidence: The level of the intervals that its findings rest on.
        findings: The comparisons of its criterion.
        quantities: Measured values.
        values: What sentences quote.
        under: The verdicts under variants, behind that of the plans themselves with as many seeds; empty where nothing
            was varied.
        read: The conditions that its criterion reads.
    """

    claim: Claim
    seeds: int
    confidence: float
    findings: list[Finding] = field(default_factory=list)
    quantities: list[Quantity] = field(default_factory=list)
    values: dict[str, float] = field(default_factory=dict)
    under: list[Under] = field(default_factory=list)
    read: list[Case] = field(default_factory=list)

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
        """The sentence that explains the verdict, with the values that it quotes and the counts of its findings."""
        if self.verdict == Verdict.UNDECIDED:
            return self._undecided
        return self.sentences.get(self.verdict, UNEXPLAINED)

    @cached_property
    def sentences(self) -> dict[str, str]:
        """The sentences of all verdicts, with the values that they quote."""
        known = {**counts(self.findings), **self.values}
        return {verdict: sentence.format_map(known) for verdict, sentence in self.claim.why.items()}

    @property
    def _undecided(self) -> str:
        """How much is undecided, and what it would take."""
        undecided = [each.decision.needs for each in self.findings if each.outcome == Outcome.UNDECIDED]
        needs = max(undecided)
        of = plural(len(self.findings), "finding")
        text = f"{len(undecided)} of {of} undecided with {plural(self.seeds, 'seed')}"
        if math.isinf(needs):
            return f"{text}; no number of seeds would decide all of them if means are as measured"
        return f"{text}; if means are as measured, about {needs:.0f} would decide all of them"

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
class PlanRuns:
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
    until_decided_s: float | None = None,
) -> list[Reproduction]:
    """Makes what is missing, and tests every claim.

    Args:
        papers: The papers.
        store: Where runs are kept.
        seeds: The seeds of every condition; what its plan says where absent.
        sensitivity: Whether to test every claim under every variant, too.
        until_decided_s: For how many seconds to add seeds to undecided claims; none are added where absent.
        execute: What makes runs.
        progress: Gets told how far it is.

    Raises:
        InputError: A plan or a criterion has a mistake.
        OSError: A run could not be kept.
        KeyboardInterrupt: The user interrupted; what was finished is in the store.
    """
    began = time.monotonic()
    confidence = CONFIDENCE if until_decided_s is None else CONFIDENCE_OF_LOOKS
    seeds = seeds if until_decided_s is None else LOOKS[0]
    parts = [part for paper in papers for part in _shared(list(_parts(paper, seeds, sensitivity)))]
    make_runs([run for part in parts for run in part.runs], store, execute=execute, progress=progress)
    found = [_result(paper, [part for part in parts if part.paper is paper], store, confidence) for paper in papers]
    if until_decided_s is not None:
        deadline = began + until_decided_s
        add_seeds(found, Making(store, execute, progress, lambda: time.monotonic() < deadline))
    return found


@dataclass(frozen=True)
class Making:
    """How runs are made.

    Attributes:
        store: Where they are kept.
        execute: What makes them.
        progress: Gets told how far it is.
        in_time: Whether there is time for more.
    """

    store: Store
    execute: Executor
    progress: Progress
    in_time: Callable[[], bool]

    def __call__(self, runs: Sequence[Run]) -> bool:
        """Makes what is missing; whether all are there in the end."""
        make_runs(runs, self.store, execute=self.execute, progress=self.progress, in_time=self.in_time)
        return all(run.key in self.store for run in runs)


def add_seeds(found: Sequence[Reproduction], make: Making) -> None:
    """Tests undecided claims again with more seeds, look by look, until all are decided or time is up."""
    for seeds in LOOKS[1:]:
        for reproduction in found:
            for position, row in enumerate(reproduction.rows):
                if row.verdict is not Verdict.UNDECIDED:
                    continue
                if not make.in_time():
                    return
                again = _look(reproduction.paper, row, seeds, make)
                if again is not None:
                    reproduction.rows[position] = replace(again, under=row.under)


def _look(paper: Paper, row: Tested, seeds: int, make: Making) -> Tested | None:
    """A claim with more seeds of the conditions that it reads; ``None`` without time, or where plans allow no more."""
    read = list(row.read)
    while True:
        parts = _shared([part for each in paper.plans if (part := _read_part(paper, each, read, seeds)).runs])
        if max(len({run.seed for run in part.runs}) for part in parts) <= row.seeds:
            return None
        if not make([run for part in parts for run in part.runs]):
            return None
        try:
            return _test(paper, row.claim, _study(paper, parts, make.store, row.confidence, whole=False))
        except AbsentError as error:
            # It reads a condition now that it did not read before.
            read.append(error.case)


def _read_part(paper: Paper, each: PaperPlan, read: Sequence[Case], seeds: int) -> PlanRuns:
    """The runs of the conditions of a plan that were read."""
    cases = [case for case in read if case.plan == each.plan.name]

    def is_read(condition: Condition) -> bool:
        labels = condition.labels
        return any(all(labels.get(key, value) == value for key, value in case.labels.items()) for case in cases)

    chosen = [condition for condition in each.experiment.conditions if is_read(condition)]
    return PlanRuns(paper, AS_SHIPPED, each, _runs(each, chosen, _seeds(each, seeds)))


def measure(
    paper: Paper,
    store: Store,
    *,
    execute: Executor,
    progress: Progress,
    at_once: int = 1,
    seeds: int | None = None,
) -> int:
    """Makes the runs in real time that the tables of a paper lack, and keeps them there; returns how many there were.

    A run that failed, or was invalid in every try, is not kept, and is made again next time. Runs of programs are made
    last, `at_once` at a time. Plans have `seeds` seeds of each condition, or those that they say.

    Raises:
        InputError: The machine is not the one of the runs that are there.
        ToolError: Some runs failed; the others are kept.
        OSError: A table could not be written.
        KeyboardInterrupt: The user interrupted; what was finished is in the store.
    """
    wanted = [(each.plan, each.kept, each.columns, False) for each in paper.plans if each.kept is not None]
    wanted += [(plans.load(file), each.file, each.columns, True) for each in paper.kept for file in each.plans]
    made, errors = 0, list[str]()
    for plan, file, names, simulations in wanted:
        have = kept_runs.identities(file, (*plan.columns, "seed", "live_run"))
        read = PaperPlan(plan, None, False, columns=(*names, *OF_LIVE) if names else kept_runs.columns(file))
        runs = [
            realtime.untried(run, store, plan.live_runs)
            for run in Experiment.of(plan).runs(_seeds(read, seeds))
            if (simulations or run.engine.is_live) and kept_runs.identity(run.labels) not in have
        ]
        if runs:
            make_runs(runs, store, execute=execute, progress=progress)
            rows = list(_rows(read, runs, store))
            good = [row for row in rows if row["error"] is None]
            if good:
                kept_runs.add(file, good, (*plan.columns, "seed"))
            made += len(good)
            errors += [row["error"] for row in rows if row["error"] is not None]
    if errors:
        raise ToolError(f"{paper.name}: {plural(len(errors), 'run')} in real time failed, the last with: {errors[-1]}")
    return made + sum(outside.make(each, at_once) for each in paper.kept)


def _parts(paper: Paper, seeds: int | None, sensitivity: bool) -> Iterator[PlanRuns]:
    """The runs that a paper needs."""
    varied: list[Condition] = []
    for each in paper.plans:
        wanted = _seeds(each, seeds)
        yield PlanRuns(paper, AS_SHIPPED, each, _runs(each, each.experiment.conditions, wanted))
        own = [condition for condition in each.experiment.conditions if each.varies(condition)]
        varied += own
        if sensitivity and own:
            for variant in paper.variants:
                under = [_under(paper, each, variant, condition) for condition in own]
                yield PlanRuns(paper, variant.name, each, _runs(each, under, wanted[: paper.variant_seeds]))
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


def _shared(parts: Sequence[PlanRuns]) -> list[PlanRuns]:
    """The same, where a run that several plans need with different reducers is one with all of them."""
    wanted: dict[tuple[str, int], set[str]] = {}
    for part in parts:
        for run in part.runs:
            wanted.setdefault((run.digest, run.seed), set()).update(run.reducers)

    def whole(run: Run) -> Run:
        return replace(run, reducers=tuple(sorted(wanted[run.digest, run.seed])))

    return [replace(part, runs=[whole(run) for run in part.runs]) for part in parts]


def _result(paper: Paper, parts: Sequence[PlanRuns], store: Store, confidence: float) -> Reproduction:
    shipped = [part for part in parts if part.variant == AS_SHIPPED]
    study = _study(paper, shipped, store, confidence)
    rows = [_test(paper, claim, study) for claim in paper.claims]
    errors = [row["error"] for plan in shipped for row in study.sessions([plan.plan.plan.name]) if row["error"]]
    if len(parts) > len(shipped):
        _vary(paper, parts, study, rows, store)
    filled = [_fill(paper, study, wanted) for wanted in paper.tables]
    failed = (len(errors), errors[-1]) if errors else (0, "")
    return Reproduction(paper, max(study.seeds.values()), rows, filled, study, failed)


def _vary(paper: Paper, parts: Sequence[PlanRuns], study: Study, rows: Sequence[Tested], store: Store) -> None:
    """Tests again what variants concern."""
    fixed = {each.plan.name for each in paper.plans if not each.varied}
    varied = [row for row in rows if row.claim.plan not in fixed]
    seeds = min(paper.variant_seeds, max(study.seeds.values()))
    studies = {AS_SHIPPED: study.first(seeds)}
    confidence = study.confidence
    for name in (AS_SHIPPED, *(variant.name for variant in paper.variants)):
        own = [part for part in parts if part.variant == name]
        under = studies.get(name) or _study(paper, own, store, confidence)
        for row in varied:
            found = _test(paper, row.claim, under)
            row.under.append(Under(name, seeds, found.verdict, found.holding))


def _study(paper: Paper, parts: Sequence[PlanRuns], store: Store, confidence: float, *, whole: bool = True) -> Study:
    rows: dict[str, list[Row]] = {each.name: [*each.rows] for each in paper.kept}
    for part in parts:
        rows[part.plan.plan.name] = [*_rows(part.plan, part.runs, store), *_kept(part.plan)]
    return Study(rows, confidence, whole=whole, plans=[part.plan.plan for part in parts])


def _kept(plan: PaperPlan) -> list[Row]:
    """The kept runs of a plan: those with its engines, and with values of its axes."""
    if plan.kept is None:
        return []
    points = [{tuple(point.labels[name] for name in axis.columns) for point in axis.points} for axis in plan.plan.axes]
    return [
        row
        for row in kept_runs.read(plan.kept)
        if all(
            tuple(row[name] for name in axis.columns) in known
            for axis, known in zip(plan.plan.axes, points, strict=True)
        )
    ]


def _rows(plan: PaperPlan, runs: Sequence[Run], store: Store) -> Iterator[Row]:
    """A row per session."""
    # One text for all rows: a large plan has a hundred thousand.
    wanted = {name: name for name in (*plan.columns, "session", "error")}
    for run, content in zip(runs, store.read(run.key for run in runs), strict=True):
        assert content is not None
        head = {**run.labels, "version": __version__}
        with table.reading(run.key, store.folder):
            found = json.loads(content)
            rows = table.session_rows(found)
        for number, row in enumerate(rows):
            if not plan.columns:
                yield {**head, **row}
                continue
            own = {wanted[name]: value for name, value in row.items() if name in wanted}
            if DOWNLOADS in wanted and "metrics" in found:
                own[DOWNLOADS] = columns.download_times_s(found["metrics"]["sessions"][number])
            yield {**head, **own}


def _test(paper: Paper, claim: Claim, study: Study) -> Tested:
    seeds = study.seeds[claim.plan] if claim.plan in study.seeds else max(study.seeds.values())
    tested = Tested(claim, seeds, study.confidence)
    study.read.clear()
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
        tested.read = list(study.read.values())
        # A sentence that quotes an unknown value is refused here, whichever verdict it belongs to.
        tested.sentences  # noqa: B018
    except AbsentError:
        raise
    except InputError as error:
        raise InputError(f"{path}: {claim.id}: {error}") from error
    except Exception as error:
        raise InputError(f"{place_of(path, error)}: {claim.id}: {type(error).__name__}: {error}") from error
    return tested


def _fill(paper: Paper, study: Study, wanted: TableOf) -> Table:
    path = paper.document.path.parent / CRITERIA
    try:
        head, rows, *note = wanted.fill(study)
    except Exception as error:
        raise InputError(f"{place_of(path, error)}: table {wanted.name}: {type(error).__name__}: {error}") from error
    return Table(wanted.name, wanted.title, head, rows, wanted.texts, *note)
