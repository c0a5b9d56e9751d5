"""The comparison with the kernel: its live runs as a table, and the page, made again by simulations from them."""

import json
import math
import re
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from anabranch import InputError
from anabranch.experiments import kept_runs
from anabranch.experiments.statistics import Interval
from anabranch.system import outputs
from anabranch.validation import cases, kept
from anabranch.validation.criteria import ComparedQuantity, Criterion, Part
from anabranch.validation.judgement import Compared, Equivalence
from anabranch.validation.measurement import Drops, Lateness, Measurement
from anabranch.validation.recorded import LiveRuns, Recorded
from anabranch.validation.report import Kernel
from conftest import Run

PAGE = Path(__file__).parent.parent / "docs" / "validation" / "kernel.md"
TABLE = kept_runs.DATA / "kernel-runs.parquet"
KERNEL = Kernel("6.12.8", 256, "at-once")
RUN = Measurement(0, 2e6, 0.0, None, None, 0.5, None, None, None, None, (Drops(1, 0),))
LATENESS = Lateness(3e-5, 2e-4)


def recorded(*seeds: int) -> Recorded:
    return Recorded(1, (), LATENESS, tuple(replace(RUN, seed=seed) for seed in seeds))


def runs(kernel: Kernel = KERNEL, **by_case: Recorded) -> LiveRuns:
    return LiveRuns(kernel, {(Part.ON_OFF, name): each for name, each in by_case.items()})


def test_live_runs_are_the_same_after_they_were_kept(tmp_path: Path) -> None:
    file = tmp_path / "runs.parquet"
    live = runs(a=recorded(2, 1), b=Recorded(3, ("it broke",)), c=recorded(5))
    assert kept.write(file, live) == live
    assert kept.read(file) == live


def test_later_runs_of_a_test_case_replace_those_that_are_there(tmp_path: Path) -> None:
    file = tmp_path / "runs.parquet"
    first, other, second = recorded(1, 2), recorded(1), recorded(3, 4, 5)
    kept.write(file, runs(a=first, b=other))
    kept.write(file, runs(a=second))
    assert kept.read(file) == runs(a=second, b=other)
    with pytest.raises(InputError, match=r"another kernel, Linux 6\.12\.8 .* than those of now, Linux 6\.18"):
        kept.write(file, runs(replace(KERNEL, release="6.18"), a=first))


def test_a_file_that_could_not_be_written_is_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "runs.parquet"
    file.write_text("before", "utf-8")
    with suppress(InterruptedError), outputs.replacing(file) as new:
        new.write_text("half", "utf-8")
        raise InterruptedError
    assert {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()} == {file.name: "before"}
    with outputs.replacing(file) as new:
        new.write_text("whole", "utf-8")
    assert {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()} == {file.name: "whole"}


def test_what_is_no_table_of_live_runs_is_refused(anabranch: Run, tmp_path: Path) -> None:
    pl.DataFrame({"seed": [1]}).write_parquet(tmp_path / "other.parquet")
    (tmp_path / "text.parquet").write_text("nothing", "utf-8")
    for arguments, message in (
        (("--again", "other.parquet"), "the column `part` is missing"),
        (("--again", "text.parquet"), "no table of kept runs"),
        (("--again", "nowhere.parquet"), "nowhere.parquet: there is no such file; expected one, or a shipped table"),
        (("--keep", "runs.json"), "expected a file that ends in .parquet"),
    ):
        done = anabranch("validate", *arguments)
        assert done.returncode == 2
        assert message in " ".join(done.stderr.split())


def test_the_shipped_table_has_every_test_case_with_all_its_runs() -> None:
    live = kept.read(TABLE)
    wanted = cases.chosen("abcdefg", quick=False, text=None)
    assert set(live.by_case) == {(case.part, case.name) for case in wanted}
    found = live.of(wanted)
    assert all(each.live and not each.errors for each in found)
    assert sum(len(each.live) for each in found) == 1508


def test_the_shipped_table_of_drawn_test_cases_is_complete() -> None:
    live = kept.read(kept_runs.DATA / "kernel-drawn.parquet")
    wanted = cases.chosen("h", quick=False, text=None)
    assert set(live.by_case) == {(case.part, case.name) for case in wanted}
    assert {len(each.live) for each in live.of(wanted)} == {cases.DRAWN_RUNS}


def test_means_agree_within_either_tolerance() -> None:
    no_interval = Interval.around(0.0, math.inf)
    for share, number, simulated, measured, agree in (
        (0.05, None, 1.04, 1.0, True),
        (0.05, None, 0.94, 1.0, False),
        (0.25, 20.0, 25.0, 10.0, True),
        (0.25, 20.0, 31.0, 10.0, False),
        (None, 0.05, 0.5, 0.56, False),
    ):
        criterion = Criterion(ComparedQuantity.GOODPUT, share=share, number=number)
        compared = Compared(criterion, simulated, measured, no_interval, no_interval, Equivalence.INCONCLUSIVE)
        assert compared.means_agree == agree


def agrees(simulated: float, live: float, tolerance: str) -> bool:
    """Whether a tolerance of the page, such as `25 % or 20`, holds for two means."""
    limits = [live * float(text[:-1]) / 100 if text.endswith("%") else float(text) for text in tolerance.split(" or ")]
    return abs(simulated - live) <= max(limits)


@pytest.mark.parametrize("mark", ["kernel", "drawn"])
def test_the_page_counts_the_verdicts_of_its_tables(mark: str) -> None:
    _, rest = PAGE.read_text(encoding="utf-8").split(f"<!-- begin {mark} -->\n")
    rest = rest.partition("<!-- end ")[0]
    rows = re.findall(
        r"\| ([\d.]+) \| ([\d.]+) \| [^|]+ \| ([^|]+) \| (pass|inconclusive|differs) \|$", rest, re.MULTILINE
    )
    words = Counter(verdict for *_, verdict in rows)
    means = sum(agrees(float(simulated), float(live), tolerance) for simulated, live, tolerance, _ in rows)
    assert rest.startswith(
        f"\n{len(rows)} comparisons: {words['pass']} pass, {words['inconclusive']} inconclusive, "
        f"{words['differs']} different; {means} means are within the tolerances.\n"
    )
    assert set(words) == {"pass", "inconclusive", "differs"}


@pytest.mark.slow
@pytest.mark.parametrize(("table", "parts"), [("kernel-runs.parquet", "abcefg"), ("kernel-drawn.parquet", "h")])
def test_the_tables_of_the_page_follow_from_the_kept_live_runs(launch: Run, table: str, parts: str) -> None:
    """The simulator agrees with the kernel as well as the page says."""
    # The video of part (d) depends on an encoder.
    chosen = [argument for part in parts for argument in ("--only", part)]
    done = launch("validate", "--again", table, *chosen, "--json", timeout=1800)
    shown = PAGE.read_text(encoding="utf-8")
    words = {"equivalent": "pass", "differs": "differs", "inconclusive": "inconclusive"}
    compared = 0
    for part in json.loads(done.stdout)["parts"]:
        for row in part["rows"]:
            values = [row[key] for key in ("cell", "quantity", "simulated", "live", "ratio", "tolerance")]
            line = f"| {' | '.join([*values, words[row['verdict']]])} |"
            assert line in shown
            compared += 1
    assert compared > 140
