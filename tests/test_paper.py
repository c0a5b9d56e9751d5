"""Papers of one's own: a new one executes, mistakes have their place, and runs are shared."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from anabranch import InputError, _core
from anabranch.experiments import claims, paper, paper_new, reproduction, statistics
from anabranch.experiments.claims import Decision, Finding, Outcome, Relation, Verdict
from anabranch.experiments.executor import Finished, Threads
from anabranch.experiments.statistics import Interval
from anabranch.experiments.stopping import CONFIDENCE_OF_LOOKS, LOOKS
from anabranch.experiments.store import Store
from anabranch.experiments.study import Case, Metric, Study
from anabranch.report import paper_text
from anabranch.system import provenance
from conftest import Run

ROOT = Path(__file__).parent.parent


class Counted:
    """How many runs were made."""

    def __init__(self) -> None:
        self.runs = 0

    def begin(self, runs: int, *, kept: int) -> None:
        assert kept >= 0
        self.runs += runs

    def advance(self, finished: Finished) -> None:
        assert finished.error is None


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    paper_new.write(tmp_path / "mine")
    plan = tmp_path / "mine" / "sessions.toml"
    # Seconds of video are enough for the machinery.
    plan.write_text(plan.read_text("utf-8").replace('"20 s"', '"4 s"').replace('"60 s"', '"10 s"'), "utf-8")
    return tmp_path / "mine"


def change(file: Path, old: str, new: str) -> None:
    text = file.read_text("utf-8")
    assert old in text
    file.write_text(text.replace(old, new), "utf-8")


def reproduce(folder: Path, *, seeds: int = 2, sensitivity: bool = False) -> tuple[reproduction.Reproduction, Counted]:
    counted = Counted()
    with Store(folder.parent / "store", provenance.build()) as store:
        (found,) = reproduction.reproduce(
            [paper.load(folder)], store, seeds=seeds, sensitivity=sensitivity, execute=Threads(2), progress=counted
        )
    return found, counted


def test_a_new_paper_runs_and_its_sentences_quote_the_table(mine: Path) -> None:
    found, counted = reproduce(mine, sensitivity=True)
    (row,) = found.rows
    # Two schedulers with two seeds, as shipped and with one variant.
    assert counted.runs == 8
    text = paper_text.text(found)
    saved = row.values["saved"]
    assert f"C1 is {row.verdict}: a byte waits {saved:.1f} ms less" in text
    assert "{" not in text
    assert [under.variant for under in row.under] == ["as shipped", "queues of 20 packets"]
    assert "Varied, with 2 seeds each: queues of 20 packets." in text
    assert "All 4 sessions were played to the end." in text
    first, second = (quantity.ours.estimate for quantity in row.quantities)
    assert saved == pytest.approx(first - second)


def test_conditions_that_no_claim_reads_are_made_without_variants(mine: Path) -> None:
    change(mine / "sessions.toml", '"transport.scheduler" = [', '"transport.scheduler" = ["ecf", ')
    file = 'file = "sessions.toml"'
    change(mine / "paper.toml", file, f'{file}\nunvaried = [{{ "transport.scheduler" = "ecf" }}]')
    _, counted = reproduce(mine, sensitivity=True)
    # Three schedulers with two seeds as shipped, and two of them with one variant.
    assert counted.runs == 6 + 4
    change(mine / "paper.toml", '"ecf"', '["ecf", "min-rtt"]')
    with pytest.raises(InputError, match=r"has no condition with \{'transport\.scheduler': 'min-rtt'\}"):
        reproduce(mine, sensitivity=True)


def test_the_command_makes_a_folder_that_the_other_one_executes(tmp_path: Path, anabranch: Run) -> None:
    made = anabranch("paper", "new", str(tmp_path / "mine"))
    assert made.returncode == 0, made.stderr
    out = tmp_path / "report"
    store = str(tmp_path / "store")
    done = anabranch("reproduce", str(tmp_path / "mine"), "--seeds", "2", "--out", str(out), "--store", store)
    assert done.returncode == 0, done.stderr
    assert "1 claim: " in done.stdout
    report = json.loads((out / "report.json").read_text("utf-8"))
    assert report["papers"][0]["title"] == "mine"
    assert sorted(file.name for file in (tmp_path / "mine").iterdir()) == [
        "criteria.py",
        "paper.toml",
        "sessions.toml",
        "text.md",
    ]
    spaced = anabranch("paper", "new", "my own")
    assert "execute it: anabranch reproduce 'my own' --sensitivity --out 'my own-report'\n" in spaced.stdout
    again = anabranch("paper", "new", str(tmp_path / "mine"))
    assert again.returncode == 2
    assert "exists already" in again.stderr


MISTAKES = [
    ("paper.toml", "title =", "titel =", r"paper\.toml:2: unknown key `titel`.*did you mean `title`"),
    (
        "paper.toml",
        'file = "sessions.toml"',
        'file = "session.toml"',
        r"paper\.toml:7: there is no file "
        r".*session\.toml",
    ),
    (
        "paper.toml",
        'file = "sessions.toml"',
        'file = "sessions.toml"\nunvaried = [{ "transport.scheduler" = "efc" }]',
        r"paper\.toml:8: the plan has no `transport\.scheduler` with the value 'efc'",
    ),
    (
        "paper.toml",
        'file = "sessions.toml"',
        'file = "sessions.toml"\nunvaried = [{ scheduler = "ecf" }]',
        r"paper\.toml:8: unknown key `scheduler`",
    ),
    ("paper.toml", "set =", "sett =", r"paper\.toml:12: unknown key `sett`.*did you mean `set`"),
    (
        "paper.toml",
        "{ set",
        '{ scenario = "dash/*", set',
        r"paper\.toml:12: `queues of 20 packets` sets this in no "
        r"condition",
    ),
    ("paper.toml", "link.wifi.queue", "link.wify.queue", r"paper\.toml:12: `queues of 20 packets`: .*wify"),
    (
        "sessions.toml",
        "seeds = 10",
        'seeds = 10\nreducers = ["recovery"]',
        r"sessions\.toml:6: no reducer is called `recovery`; .*did you mean "
        r"`recovery_s`",
    ),
    ("sessions.toml", '"blest"]', '"blesst"]', r"sessions\.toml:14: .*blesst"),
    ("text.md", "{{verdicts}}", "{{verdict}}", r"text\.md:8: nothing is called `verdict`; .*did you mean `verdicts`"),
    ("text.md", "{{played}}", "{{played session}}", r"text\.md:12: the paper has no plan `session`.*`sessions`"),
    ("text.md", "{{C1.saved .1f}}", "{{C1.save .1f}}", r"text\.md:3: nothing is called `C1.save .1f`"),
    ("criteria.py", "def c1(", "def c1)", r"criteria\.py:23: SyntaxError"),
    (
        "criteria.py",
        '"reorder_delay_s.mean"',
        '"reorder_delay.mean"',
        r"criteria\.py: C1: the table has no column `reorder_delay.mean`; did "
        r"you mean `reorder_delay_s.mean`",
    ),
    (
        "criteria.py",
        'scheduler("min-rtt"), WAIT)\n    yield q',
        'scheduler("min_rtt"), WAIT)\n    yield q',
        r"criteria\.py: C1: min_rtt: the plan `sessions` has no condition "
        r"with",
    ),
    ("criteria.py", '"sessions", {', '"session", {', r"C1: blest: the paper has no plan `session`.*`sessions`"),
    ("criteria.py", '"reproduced":', '"reproducible":', r"C1: `reproducible` is no verdict"),
    ("criteria.py", "return Case(", "return Cas(", r"criteria\.py:13: C1: NameError"),
]


@pytest.mark.parametrize(("file", "old", "new", "message"), MISTAKES, ids=[f"{m[0]} {m[2]}" for m in MISTAKES])
def test_a_mistake_is_refused_with_its_place(mine: Path, file: str, old: str, new: str, message: str) -> None:
    change(mine / file, old, new)
    with pytest.raises(InputError, match=message):
        paper_text.text(reproduce(mine, sensitivity=True)[0])


def test_runs_that_two_plans_need_are_made_once(mine: Path) -> None:
    text = (mine / "sessions.toml").read_text("utf-8")
    (mine / "again.toml").write_text(text.replace("seeds = 10", 'seeds = 10\nreducers = ["segment_delivery"]'), "utf-8")
    change(
        mine / "paper.toml",
        '[[plan]]\nfile = "sessions.toml"',
        '[[plan]]\nfile = "sessions.toml"\n[[plan]]\nfile = "again.toml"\nmost_seeds = 2',
    )
    found, counted = reproduce(mine, seeds=3)
    assert counted.runs == 6
    assert found.study.seeds == {"sessions": 3, "again": 2}
    case = Case("blest", "again", {"transport.scheduler": "blest"})
    delays = found.study.values(case, Metric("delay", "segment_delivery.delay_mean_s"))
    assert (delays > 0).all()


def outcomes(*found: Outcome) -> list[Finding]:
    return [Finding("", Decision(each)) for each in found]


HOLDS, FAILS, UNDECIDED = Outcome.HOLDS, Outcome.FAILS, Outcome.UNDECIDED


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        ((HOLDS, HOLDS), "reproduced"),
        ((HOLDS, FAILS), "partly"),
        ((FAILS, FAILS), "not reproduced"),
        ((), "not testable"),
        # An interval could change it.
        ((UNDECIDED,), "undecided"),
        ((HOLDS, UNDECIDED), "undecided"),
        ((FAILS, UNDECIDED), "undecided"),
        # Whatever the undecided one turns out to be.
        ((HOLDS, FAILS, UNDECIDED), "partly"),
    ],
)
def test_a_verdict_counts_the_findings(found: Sequence[Outcome], verdict: str) -> None:
    assert Verdict.of(outcomes(*found)) == verdict


def test_an_interval_that_reaches_to_both_sides_of_a_mark_decides_nothing() -> None:
    def around(half: float) -> Interval:
        return Interval.around(-40.0, half, 10)

    def below(mean: Interval) -> Outcome:
        return claims.below_threshold(mean, 0).outcome

    assert below(around(318)) == claims.above_threshold(around(318), 0).outcome == UNDECIDED
    assert (below(around(39)), claims.above_threshold(around(39), 0).outcome) == (HOLDS, FAILS)
    # An end that touches the threshold: "below" is strict, "at most" is not.
    assert (below(around(40)), claims.at_most(around(40), 0).outcome) == (UNDECIDED, HOLDS)
    none = Interval(0.0, 0.0, 0.0)
    assert (below(none), claims.at_least(none, 0).outcome) == (FAILS, HOLDS)
    unknown = claims.below_threshold(Interval(-40.0, float("nan"), float("nan"), 1), 0)
    assert (unknown.outcome, unknown.needs) == (UNDECIDED, math.inf)
    # Half of the interval has to shrink from 80 to 40: four times as many seeds.
    assert claims.below_threshold(around(80), 0).needs == 40


def test_a_finding_of_two_comparisons_fails_with_either() -> None:
    holds, fails, undecided = (Decision(each) for each in (HOLDS, FAILS, UNDECIDED))
    assert [each.outcome for each in (holds & holds, holds & undecided, undecided & fails)] == [HOLDS, UNDECIDED, FAILS]
    assert [each.outcome for each in (fails | fails, fails | undecided, undecided | holds)] == [FAILS, UNDECIDED, HOLDS]
    assert [(~each).outcome for each in (holds, fails, undecided)] == [FAILS, HOLDS, UNDECIDED]


@pytest.mark.parametrize(
    ("low", "high", "relation", "lower", "higher", "like"),
    [
        # The margin is 10.
        (-30, -15, Relation.LOWER, HOLDS, FAILS, FAILS),
        (-30, -5, Relation.LOWER, HOLDS, FAILS, UNDECIDED),
        (15, 30, Relation.HIGHER, FAILS, HOLDS, FAILS),
        # It is certain, and it does not matter.
        (-8, -2, Relation.SAME, FAILS, FAILS, HOLDS),
        (-9, 9, Relation.SAME, FAILS, FAILS, HOLDS),
        (-10, 10, Relation.SAME, FAILS, FAILS, HOLDS),
        (-12, 12, Relation.UNDECIDED, UNDECIDED, UNDECIDED, UNDECIDED),
        # Whatever it is, it is not lower by what matters.
        (-5, 40, Relation.UNDECIDED, FAILS, UNDECIDED, UNDECIDED),
    ],
)
def test_a_difference_is_lower_higher_none_that_matters_or_undecided(
    low: float, high: float, relation: Relation, lower: Outcome, higher: Outcome, like: Outcome
) -> None:
    difference = Interval((low + high) / 2, low, high, 10)
    assert Relation.of(difference, 10.0) is relation
    found = (claims.is_lower(difference, 10.0), claims.is_higher(difference, 10.0), claims.is_like(difference, 10.0))
    assert [each.outcome for each in found] == [lower, higher, like]
    assert {each.relation for each in found} == {relation}


def test_margins_are_those_of_like_and_never_wider() -> None:
    assert claims.SHARE == 0.1
    assert claims.margin_of(np.array([-90.0, -110.0])) == pytest.approx(10.0)
    assert claims.margin_of(np.array([1.0, 3.0]), negligible=1.0) == 1.0
    given = {
        metric.negligible
        for name in paper.shipped()
        for metric in vars(sys.modules[f"criteria of {paper.load(name).document.path.parent.name}"]).values()
        if isinstance(metric, Metric)
    }
    # One underflow, and a second of pictures.
    assert given == {0.0, 1.0, 24.0}


def test_a_difference_about_zero_is_decided_with_more_seeds() -> None:
    """With the interval alone it never was: more seeds make an interval around zero narrower, and it stays there."""
    random = np.random.default_rng(1)

    def outcome(seeds: int) -> Outcome:
        return claims.is_lower(statistics.mean(random.normal(0, 10, seeds)), 5.0).outcome

    assert outcome(5) == UNDECIDED
    assert outcome(300) == FAILS


def test_looks_together_find_what_is_not_there_no_more_often_than_one_would() -> None:
    random, false, tried = np.random.default_rng(2), 0, 2000
    for _ in range(tried):
        values = random.normal(0, 1, LOOKS[-1])
        intervals = (statistics.mean(values[:seeds], CONFIDENCE_OF_LOOKS) for seeds in LOOKS)
        false += any(Relation.of(each, 0.0) in (Relation.LOWER, Relation.HIGHER) for each in intervals)
    assert false <= 0.05 * tried
    # Intervals of 95 % at each look would be wrong twice as often.
    assert pytest.approx(0.9875) == CONFIDENCE_OF_LOOKS


def test_more_than_a_number_is_counted_whatever_the_undecided_turn_out_to_be() -> None:
    found = [Decision(HOLDS), Decision(HOLDS), Decision(UNDECIDED, 50.0), Decision(FAILS)]
    assert [claims.more_than(found, number).outcome for number in (1, 2, 3)] == [HOLDS, UNDECIDED, FAILS]
    assert claims.more_than(found, 2).needs == 50.0


@pytest.mark.parametrize("name", paper.shipped())
def test_no_sentence_has_a_number_that_was_not_counted(name: str) -> None:
    read = paper.load(name)
    for claim in read.claims:
        for verdict, sentence in claim.why.items():
            assert claims.uncounted(sentence, read.given) == [], f"{claim.id}, {verdict}"


def test_numbers_that_were_not_counted_are_found() -> None:
    given = "flow 1 and flow 2 with 10 s segments at 1:5, twice what chance gives"
    right = "flow 1's part with 10 s segments at 1:5 is {part:.0f} % in {count} of {findings}, twice what chance gives"
    assert claims.uncounted(right, given) == []
    wrong = "one comparison of twenty-four holds, by 3 s, and two thirds of 12 others, twice as many, 5.6 Mb/s"
    found = ["one", "twenty-four", "3", "two", "thirds", "12", "twice", "5.6"]
    assert claims.uncounted(wrong, given) == found


def test_until_decided_adds_seeds_to_what_is_undecided_alone(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reproduction, "LOOKS", (3, 5, 8))
    # A second claim about what the same runs cannot decide, and a condition that neither reads.
    change(mine / "sessions.toml", '"transport.scheduler" = [', '"transport.scheduler" = ["ecf", ')
    with (mine / "criteria.py").open("a", encoding="utf-8") as file:
        file.write(_OPEN)
    counted = Counted()
    with Store(mine.parent / "store", provenance.build()) as store:
        (found,) = reproduction.reproduce(
            [paper.load(mine)],
            store,
            seeds=None,
            sensitivity=False,
            execute=Threads(2),
            progress=counted,
            until_decided_s=60.0,
        )
    rows = {row.claim.id: row for row in found.rows}
    # C2 is decided at once; C3 stays open to the last look, and reads two conditions of three.
    assert (rows["C2"].seeds, rows["C2"].verdict) == (3, Verdict.REPRODUCED)
    assert (rows["C3"].seeds, rows["C3"].verdict) == (8, Verdict.UNDECIDED)
    assert counted.runs == 3 * 3 + 2 * 5
    assert {row.confidence for row in found.rows} == {CONFIDENCE_OF_LOOKS}
    assert "1 of 1 finding undecided with 8 seeds; no number of seeds" in rows["C3"].why
    assert all(finding.decision.needs == math.inf for finding in rows["C3"].findings)


_OPEN = """

@claim("C2", "A constant is above zero", criterion="its mean is above zero")
def c2(study):
    from anabranch.experiments.claims import above

    yield above(study, scheduler("min-rtt"), Metric("a constant", lambda _: 1.0), 0.0)


@claim("C3", "Seeds alternate", criterion="the difference, made up, is lower than zero")
def c3(study):
    import numpy as np

    from anabranch.experiments.claims import is_lower

    values = study.values(scheduler("min-rtt"), WAIT) * 0 + study.values(scheduler("blest"), WAIT) * 0
    signs = np.where(np.arange(len(values)) % 2, 10.0, -10.0)
    yield Finding("made up", is_lower(study.interval(values + signs - signs.mean()), 0.0))
"""


def test_digits_follow_the_interval() -> None:
    def of(mean: float, half: float) -> str:
        return claims.digits(Interval.around(mean, half))

    assert [of(1234.56, 12.3), of(64.94, 1.23), of(0.812, 0.004)] == ["1235 ± 12", "64.9 ± 1.2", "0.812 ± 0.004"]
    assert [claims.significant(value) for value in (0.0, 0.7391, 1.2345, 12.34, 5926.4)] == [
        "0",
        "0.739",
        "1.23",
        "12.3",
        "5926",
    ]


def test_a_study_pairs_by_seed_and_a_run_that_failed_has_no_number() -> None:
    rows = [
        {"seed": seed, "x": x, "session": 0, "error": None, "y": value}
        for x, values in (("a", (1.0, 10.0, 100.0)), ("b", (0.0, 9.0, 99.0)))
        for seed, value in enumerate(values, start=1)
    ]
    study = Study({"plan": rows})
    a, b = (Case(x, "plan", {"x": x}) for x in "ab")
    metric = Metric("y", "y", scale=2.0)
    difference = study.difference(a, b, metric)
    assert (difference.estimate, difference.half_width) == (2.0, 0.0)
    assert study.first(2).values(a, metric).tolist() == [2.0, 20.0]
    failed = Study({"plan": [*rows[1:], {"seed": 1, "x": "a", "error": "it broke"}]})
    assert np.isnan(failed.values(a, metric)).tolist() == [False, False, True]
    with pytest.raises(InputError, match="several conditions"):
        study.rows(Case("both", "plan"))


def test_the_reference_of_papers_has_every_key() -> None:
    page = (ROOT / "docs" / "reference" / "paper.md").read_text("utf-8")
    for keys in (paper.KEYS, paper.PLAN_KEYS, paper.KEPT_KEYS, paper.VARIANT_KEYS, paper.CHANGE_KEYS):
        table = "\n".join(f"| `{key}` | {meaning.replace('|', chr(92) + '|')} |" for key, meaning in keys.items())
        assert f"| key | meaning |\n|---|---|\n{table}\n" in page


def test_the_reference_of_reducers_has_every_reducer_and_column() -> None:
    page = (ROOT / "docs" / "reference" / "reducers.md").read_text("utf-8")
    summaries = {name: summary for kind, name, summary, _ in _core.registry() if kind == "reducers"}
    rows = re.findall(r"^\| (?:`(\w+)` )?\| (.*?) \|", page, re.MULTILINE)
    assert [name for name, _ in rows if name] == list(summaries)
    documented = {name.replace("PATH", "path1") for _, names in rows for name in re.findall(r"`(.+?)`", names)}
    scenario = _core.load(str(_core.shipped("dash/ratio-1-1")), name="x", directory=None, overrides=[])
    outline = json.loads(_core.metrics_outline(scenario, reducers=list(summaries)))
    columns = {column for column in outline["reduced"][0] if ".path2." not in column}
    assert documented == columns
