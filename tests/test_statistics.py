"""Statistics beside published values, and what comparisons make of them."""

import math
from typing import Any

import numpy as np
import polars as pl
import pytest

from anabranch import InputError
from anabranch.experiments import statistics
from anabranch.experiments.contrast import Comparison, Verdict, compare, rows
from anabranch.experiments.contrast_spec import Contrast, Margin
from anabranch.experiments.stopping import Goal, more_seeds

# Student's sleep data (Biometrika 6, 1908), as R has it: t.test(extra ~ group, data = sleep, paired = TRUE).
FIRST = np.array([0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0])
SECOND = np.array([1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4])


def test_paired_differences_are_those_of_r() -> None:
    found = statistics.paired(FIRST, SECOND)
    assert found.mean.estimate == pytest.approx(-1.58)
    assert (found.mean.low, found.mean.high) == pytest.approx((-2.4598858, -0.7001142), abs=1e-7)
    assert found.p_value == pytest.approx(0.002833, abs=5e-7)
    # t over the root of the number of pairs.
    assert found.effect_size == pytest.approx(-4.0621 / math.sqrt(10), abs=1e-4)


def test_wilcoxon_is_that_of_the_documentation_of_scipy() -> None:
    # Heights of corn, cross- and self-fertilised (Darwin): statistic 24, p-value 0.041259765625.
    differences = np.array([6, 8, 14, 16, 23, 24, 28, 29, 41, -48, 49, 56, 60, -67, 75], dtype=float)
    found = statistics.paired(differences, np.zeros(15))
    assert found.wilcoxon_p_value == pytest.approx(0.041259765625)


def test_holm_is_that_of_r() -> None:
    # p.adjust(c(0.01, 0.04, 0.03, 0.02), "holm")
    assert statistics.holm([0.01, 0.04, 0.03, 0.02]) == pytest.approx([0.04, 0.06, 0.06, 0.06])
    assert statistics.holm([0.01, math.nan])[0] == pytest.approx(0.01)


def test_the_number_of_pairs_is_that_of_r() -> None:
    # power.t.test(delta = 0.5, sd = 1, power = 0.8, type = "paired"): n = 33.36713; 9.93785 for 1, 198.1508 for 0.2.
    assert [statistics.pairs_for(effect) for effect in (0.5, -1.0, 0.2)] == [34, 10, 199]
    assert statistics.pairs_for(0.0) is None
    assert statistics.pairs_for(1e-9) is None
    assert statistics.pairs_for(0.5, tests=10) > 34  # type: ignore[operator]


@pytest.mark.parametrize("effect", [0.038, 0.116, 0.158, 0.377, 0.485, 0.806])
def test_more_tests_need_more_pairs_by_a_factor_that_the_effect_hardly_changes(effect: float) -> None:
    # By the normal distribution, (z(1 - 0.05 / 105 / 2) + z(0.8))^2 / effect^2 pairs; Student's t needs a few more.
    expected = (3.4941 + 0.8416) ** 2 / effect**2
    needed = statistics.pairs_for(effect, tests=105)
    assert needed is not None
    assert expected <= needed < expected + 10


def test_two_one_sided_tests_agree_with_the_interval_of_90_percent() -> None:
    # 1.58 + qt(0.95, 9) * 1.58 / 4.0621: at this margin, and at no smaller one, the difference is equivalent at 5 %.
    edge = 1.58 + 1.8331129 * 1.58 / 4.0621277
    assert statistics.equivalence(FIRST, SECOND, edge) == pytest.approx(0.05, abs=1e-5)
    assert statistics.equivalence(FIRST, SECOND, 1.0) > 0.5
    assert statistics.equivalence(FIRST, SECOND, 5.0) < 0.001


def test_bootstrap_intervals_are_near_those_of_the_normal_distribution_and_always_the_same() -> None:
    values = np.random.default_rng(7).normal(10, 2, 200)
    student, resampled = statistics.mean(values), statistics.bootstrap(values)
    assert (resampled.low, resampled.high) == pytest.approx((student.low, student.high), abs=0.06)
    assert statistics.bootstrap(values) == resampled
    # Of 200 values the 86th and the 115th enclose the median with 95 %, whatever the distribution (order statistics).
    median, ordered = statistics.median(values), np.sort(values)
    assert ordered[81] < median.low < ordered[89]
    assert ordered[110] < median.high < ordered[118]


def test_what_does_not_vary_and_what_is_too_few() -> None:
    assert statistics.mean(np.array([3.0, 3.0])) == statistics.Interval(3.0, 3.0, 3.0)
    assert math.isnan(statistics.mean(np.array([3.0])).half_width)
    assert statistics.mean(np.array([0.1 + 0.2, 0.3])).half_width == 0.0, "rounding is no variance"
    same = statistics.paired(FIRST, FIRST)
    assert (same.p_value, same.effect_size, same.mean.half_width) == (1.0, 0.0, 0.0)
    shifted = statistics.paired(FIRST + 1, FIRST)
    assert (shifted.p_value, shifted.effect_size) == (0.0, math.inf)


def test_quantiles_are_compared_in_pairs() -> None:
    noise = np.random.default_rng(3).normal(0, 100, 400)
    found = statistics.quantile_difference(noise + 5, noise, 0.9)
    assert found.estimate == pytest.approx(5)
    # Resampled together, the common noise cancels out.
    assert found.half_width < 1e-6
    values, shares = statistics.distribution(np.array([3.0, 1.0, 3.0, 2.0]))
    assert (values.tolist(), shares.tolist()) == ([1.0, 2.0, 3.0], [0.25, 0.5, 1.0])


# --- Comparisons ----------------------------------------------------------------------------------------------------


def table(values: dict[str, Any], networks: int = 1, **more: Any) -> pl.DataFrame:
    """A row per scheduler, network and seed."""
    found = [
        {"scheduler": name, "trace": network, "seed": seed, "error": None, "qoe": float(value(network, seed)), **more}
        for name, value in values.items()
        for network in range(networks)
        for seed in range(1, 11)
    ]
    return pl.DataFrame(found, infer_schema_length=None).with_columns(pl.col("error").cast(pl.String))


def noise(network: int, seed: int) -> float:
    """Common to all schedulers, and much larger than their differences."""
    return float(np.random.default_rng([network, seed]).normal(0, 1000))


def own(name: int, network: int, seed: int) -> float:
    """A scheduler's own."""
    return float(np.random.default_rng([name, network, seed]).normal(0, 1))


QOE = Contrast("qoe", higher_is_better=True, between=("scheduler",), units=("trace",), reference={"scheduler": "a"})


def verdicts(comparison: Comparison) -> dict[str, str]:
    return {entry.labels["scheduler"]: str(entry.verdict) for entry in comparison.entries}


def test_pairs_show_what_their_means_hide() -> None:
    values = {
        "a": lambda n, s: noise(n, s) + own(1, n, s),
        "b": lambda n, s: noise(n, s) + own(2, n, s) + 3,
        "c": lambda n, s: noise(n, s) + own(3, n, s) - 3,
        "d": lambda n, s: noise(n, s) + own(1, n, s),
    }
    (found,) = compare(table(values, networks=2), QOE, ("scheduler", "trace"))
    assert verdicts(found) == {"b": "better", "a": "reference", "d": "identical", "c": "worse"}
    assert (found.pairs, found.seeds, found.tests) == (20, 10, 3)
    # Beside their own intervals the difference is nothing.
    assert all(entry.mean.half_width > 100 for entry in found.entries)
    lower = compare(
        table(values, 2), Contrast("qoe", False, ("scheduler",), ("trace",), {"scheduler": "a"}), ("scheduler", "trace")
    )
    assert verdicts(lower[0])["b"] == "worse"


def test_the_best_is_tested_against_all_because_it_was_chosen_from_all() -> None:
    values = {str(k): lambda n, s, k=k: own(k, n, s) for k in range(5)}
    (found,) = compare(table(values), Contrast("qoe", True, ("scheduler",), ("trace",)), ("scheduler", "trace"))
    assert found.tests == 10
    assert found.entries[0].verdict is Verdict.REFERENCE
    for entry in found.entries[1:]:
        assert entry.difference is not None
        assert entry.p_value >= entry.difference.p_value


def test_an_undecided_difference_says_how_many_seeds_would_settle_it() -> None:
    values = {"a": lambda n, s: own(1, n, s), "b": lambda n, s: own(2, n, s) + 0.5}
    (found,) = compare(table(values, networks=2), QOE, ("scheduler", "trace"))
    (entry,) = [entry for entry in found.entries if entry.verdict is Verdict.UNDECIDED]
    assert entry.difference is not None
    needed = statistics.pairs_for(entry.difference.effect_size)
    assert needed is not None
    # A seed gives two pairs.
    assert entry.more_seeds == math.ceil(needed / 2) - 10


def test_a_margin_separates_equivalent_from_undecided() -> None:
    values = {"a": lambda n, s: 100 + own(1, n, s), "b": lambda n, s: 100 + own(2, n, s)}
    for margin, verdict in ((Margin(0.05, relative=True), "equivalent"), (Margin(0.1, relative=False), "undecided")):
        contrast = Contrast("qoe", True, ("scheduler",), ("trace",), {"scheduler": "a"}, margin)
        (found,) = compare(table(values, networks=2), contrast, ("scheduler", "trace"))
        assert verdicts(found)["b"] == verdict


def test_axes_that_are_not_compared_make_comparisons_of_their_own() -> None:
    values = {"a": lambda n, s: own(1, n, s), "b": lambda n, s: own(2, n, s) + (5 if n else -5)}
    found = compare(
        table(values, networks=2), Contrast("qoe", True, ("scheduler",), (), {"scheduler": "a"}), ("scheduler", "trace")
    )
    assert [dict(each.facet) for each in found] == [{"trace": 0}, {"trace": 1}]
    assert [verdicts(each)["b"] for each in found] == ["worse", "better"]
    assert found[0].tests == 2, "the correction counts all comparisons"


def test_a_seed_without_effect_is_one_value() -> None:
    values = {"a": lambda n, _: n, "b": lambda n, _: n + 1}
    (found,) = compare(table(values, 3, **{"run.seed_matters": False}), QOE, ("scheduler", "trace"))
    assert (found.pairs, found.seeds) == (3, 1)
    assert any("the seed changes nothing" in note for note in found.notes)


def test_pairs_that_lack_a_value_are_left_out_and_counted() -> None:
    values = {"a": lambda n, s: own(1, n, s), "b": lambda n, s: own(2, n, s) + 5}
    whole = table(values)
    missing = pl.when((pl.col("seed") == 2) & (pl.col("scheduler") == "b")).then(None).otherwise(pl.col("qoe"))
    (found,) = compare(whole.with_columns(missing.alias("qoe")), QOE, ("scheduler", "trace"))
    assert (found.pairs, found.dropped) == (9, 1)
    (absent,) = compare(whole.filter((pl.col("seed") != 2) | (pl.col("scheduler") == "a")), QOE, ("scheduler", "trace"))
    assert (absent.pairs, absent.dropped) == (9, 1)


def test_sessions_of_one_run_are_one_value() -> None:
    values = {"a": lambda n, s: own(1, n, s), "b": lambda n, s: own(2, n, s)}
    two = pl.concat([table(values), table(values).with_columns(pl.col("qoe") + 2)])
    (found,) = compare(two, QOE, ("scheduler", "trace"))
    assert found.pairs == 10
    assert found.reference.mean.estimate == pytest.approx(np.mean([own(1, 0, s) for s in range(1, 11)]) + 1)


def test_quantiles_are_compared_where_the_plan_wants_it() -> None:
    values = {"a": lambda n, s: noise(n, s), "b": lambda n, s: noise(n, s) * (2 if noise(n, s) > 0 else 1)}
    contrast = Contrast("qoe", True, ("scheduler",), ("trace",), {"scheduler": "a"}, quantiles=(0.1, 0.9))
    (found,) = compare(table(values, networks=5), contrast, ("scheduler", "trace"))
    (row,) = [row for row in rows(found) if row["verdict"] != "reference"]
    assert row["difference_q10"] == row["difference_q10_low"] == row["difference_q10_high"] == 0
    assert row["difference_q90_low"] > 0


def test_rows_are_json() -> None:
    import json

    values = {"a": lambda *_: 1, "b": lambda *_: 2}
    (found,) = compare(table(values), QOE, ("scheduler", "trace"))
    text = json.dumps(list(rows(found)), allow_nan=False)
    assert '"verdict": "better"' in text


def test_a_text_is_no_metric() -> None:
    values = {"a": lambda *_: 1, "b": lambda *_: 2}
    with pytest.raises(InputError, match="texts"):
        compare(table(values), Contrast("scheduler", True, ("trace",)), ("scheduler", "trace"))


@pytest.mark.parametrize("text", ["interval < 5", "interval<5 %x", "interval < 0 %", ""])
def test_goals_that_are_none(text: str) -> None:
    with pytest.raises(InputError, match="interval < 5 %"):
        Goal.of(text)


def test_a_goal_asks_for_more_seeds_by_the_width_of_intervals() -> None:
    values = {"a": lambda n, s: 100 + own(1, n, s), "b": lambda n, s: 100 + own(2, n, s)}
    found = compare(table(values), QOE, ("scheduler", "trace"))
    assert Goal.of("interval < 5 %").reached(found)
    narrow = Goal(found[0].width / 1.2)
    assert not narrow.reached(found)
    assert narrow.seeds(found, 10) == math.ceil(10 * 1.2**2)
    assert Goal(found[0].width / 100).seeds(found, 10) == 20, "no more than twice as many at once"
    assert more_seeds((3, 9), 4) == (3, 9, 10, 11)
