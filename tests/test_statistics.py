"""Statistics compared with published values, and what comparisons make of them."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from anabranch import InputError
from anabranch.experiments import effects, sampling, statistics, summary
from anabranch.experiments.contrast import Comparison, ContrastVerdict, compare, compare_all, effect_rows, rows
from anabranch.experiments.contrast_spec import Contrast, Margin, Unfinished
from anabranch.experiments.sampling import Differences, More, Unit
from anabranch.experiments.stopping import Goal, more_seeds

# Student's sleep data (Biometrika 6, 1908), as R has it: t.test(extra ~ group, data = sleep, paired = TRUE).
FIRST = np.array([0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0])
SECOND = np.array([1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4])


def test_paired_differences_are_those_of_r() -> None:
    found = Differences.of(FIRST, SECOND)
    assert found.mean.estimate == pytest.approx(-1.58)
    assert (found.mean.low, found.mean.high) == pytest.approx((-2.4598858, -0.7001142), abs=1e-7)
    assert found.p_value == pytest.approx(0.002833, abs=5e-7)
    # t over the root of the number of pairs.
    assert found.effect_size == pytest.approx(-4.0621 / math.sqrt(10), abs=1e-4)


def test_wilcoxon_is_that_of_the_documentation_of_scipy() -> None:
    # Heights of corn, cross- and self-fertilised (Darwin): statistic 24, p-value 0.041259765625.
    differences = np.array([6, 8, 14, 16, 23, 24, 28, 29, 41, -48, 49, 56, 60, -67, 75], dtype=float)
    found = Differences.of(differences, np.zeros(15))
    assert found.wilcoxon_p_value == pytest.approx(0.041259765625)


def test_holm_is_that_of_r() -> None:
    # p.adjust(c(0.01, 0.04, 0.03, 0.02), "holm")
    assert statistics.holm([0.01, 0.04, 0.03, 0.02]) == pytest.approx([0.04, 0.06, 0.06, 0.06])
    assert statistics.holm([0.01, math.nan])[0] == pytest.approx(0.01)


def test_the_number_of_pairs_is_that_of_r() -> None:
    # power.t.test(delta = 0.5, sd = 1, power = 0.8, type = "paired"): n = 33.36713; 9.93785 for 1, 198.1508 for 0.2.
    assert [statistics.units_for(effect) for effect in (0.5, -1.0, 0.2)] == [34, 10, 199]
    assert statistics.units_for(0.0) is None
    assert statistics.units_for(1e-9) is None
    assert (statistics.units_for(0.5, tests=10) or 0) > 34
    # power.t.test(n = 34, power = 0.8, sd = 1, type = "paired"): delta = 0.4948.
    assert statistics.effect_for(34) == pytest.approx(0.4951, abs=5e-4)
    assert statistics.effect_for(1) == math.inf


@pytest.mark.parametrize("effect", [0.038, 0.116, 0.158, 0.377, 0.485, 0.806])
def test_more_tests_need_more_pairs_by_a_factor_that_the_effect_hardly_changes(effect: float) -> None:
    # By the normal distribution, (z(1 - 0.05 / 105 / 2) + z(0.8))^2 / effect^2 pairs; Student's t needs a few more.
    expected = (3.4941 + 0.8416) ** 2 / effect**2
    needed = statistics.units_for(effect, tests=105)
    assert needed is not None
    assert expected <= needed < expected + 10


def test_two_one_sided_tests_agree_with_the_interval_of_90_percent() -> None:
    # 1.58 + qt(0.95, 9) * 1.58 / 4.0621: at this margin, and at no smaller one, the difference is equivalent at 5 %.
    edge = 1.58 + 1.8331129 * 1.58 / 4.0621277
    differences = np.column_stack([FIRST - SECOND] * 3)
    at_edge, narrow, wide = statistics.equivalence(differences, np.array([edge, 1.0, 5.0]))
    assert at_edge == pytest.approx(0.05, abs=1e-5)
    assert narrow > 0.5
    assert wide < 0.001


def test_bootstrap_intervals_are_near_those_of_the_normal_distribution_and_always_the_same() -> None:
    values = np.random.default_rng(7).normal(10, 2, 200)
    student, resampled = statistics.mean(values), statistics.bootstrap(values)
    assert (resampled.low, resampled.high) == pytest.approx((student.low, student.high), abs=0.06)
    assert statistics.bootstrap(values) == resampled
    # Of 200 values the 86th and the 115th enclose the median with 95 %, whatever the distribution (order statistics).
    median, ordered = sampling.quantile(values, np.arange(200), 0.5), np.sort(values)
    assert ordered[81] < median.low < ordered[89]
    assert ordered[110] < median.high < ordered[118]


def test_what_does_not_vary_and_what_is_too_few() -> None:
    assert statistics.mean(np.array([3.0, 3.0])) == statistics.Interval(3.0, 3.0, 3.0)
    assert math.isnan(statistics.mean(np.array([3.0])).half_width)
    assert statistics.mean(np.array([0.1 + 0.2, 0.3])).half_width == 0.0, "rounding is no variance"
    same = Differences.of(FIRST, FIRST)
    assert (same.p_value, same.effect_size, same.mean.half_width) == (1.0, 0.0, 0.0)
    shifted = Differences.of(FIRST + 1, FIRST)
    assert (shifted.p_value, shifted.effect_size) == (0.0, math.inf)


def test_quantiles_are_compared_in_pairs() -> None:
    noise = np.random.default_rng(3).normal(0, 100, 400)
    found = sampling.quantile_difference(noise + 5, noise, np.arange(400), 0.9)
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


QOE = Contrast("qoe", True, ("scheduler",), ("trace",), {"scheduler": "a"}, networks=("trace",))


def verdicts(comparison: Comparison) -> dict[str, str]:
    return {entry.labels["scheduler"]: str(entry.verdict) for entry in comparison.entries}


def test_pairs_show_what_their_means_hide() -> None:
    values = {
        "a": lambda n, s: noise(n, s) + own(1, n, s),
        "b": lambda n, s: noise(n, s) + own(2, n, s) + 3,
        "c": lambda n, s: noise(n, s) + own(3, n, s) - 3,
        "d": lambda n, s: noise(n, s) + own(1, n, s),
    }
    (found,) = compare(table(values, networks=9), QOE, ("scheduler", "trace"))
    assert verdicts(found) == {"b": "better", "a": "reference", "d": "identical", "c": "worse"}
    assert (found.pairs, found.seeds, found.units, found.unit, found.tests) == (90, 10, 9, Unit.NETWORK, 3)
    # Compared with their own intervals the difference is nothing.
    assert all(entry.mean.half_width > 50 for entry in found.entries)
    lower = compare(
        table(values, 9), Contrast("qoe", False, ("scheduler",), ("trace",), {"scheduler": "a"}), ("scheduler", "trace")
    )
    assert verdicts(lower[0])["b"] == "worse"


def test_the_best_is_tested_against_all_because_it_was_chosen_from_all() -> None:
    values = {str(k): lambda n, s, k=k: own(k, n, s) for k in range(5)}
    (found,) = compare(table(values), Contrast("qoe", True, ("scheduler",), ("trace",)), ("scheduler", "trace"))
    assert found.tests == 10
    assert found.entries[0].verdict is ContrastVerdict.REFERENCE
    for entry in found.entries[1:]:
        assert entry.difference is not None
        assert entry.p_value >= entry.difference.p_value


def test_an_undecided_difference_says_how_many_seeds_would_settle_it() -> None:
    values = {"a": lambda n, s: own(1, n, s), "b": lambda n, s: own(2, n, s) + 0.5}
    (found,) = compare(table(values), QOE, ("scheduler", "trace"))
    (entry,) = [entry for entry in found.entries if entry.verdict is ContrastVerdict.UNDECIDED]
    assert entry.difference is not None
    needed = statistics.units_for(entry.difference.effect_size)
    assert needed is not None
    assert entry.more == More(needed - 10, Unit.SEED)
    needs = f"To show one as large as measured, about {needed - 10} more seeds are needed."
    assert f"b is undecided: the difference is not certain. {needs}" in list(summary.sentences(found))
    assert "not corrected for the number of comparisons" in summary.method([found])


def test_a_single_seed_decides_nothing_and_is_not_called_too_small_a_difference() -> None:
    values = {(s, c): float(i) for i, (s, c) in enumerate((s, c) for s in "ab" for c in "xy")}
    rows = [{"scheduler": s, "control": c, "seed": 1, "error": None, "qoe": value} for (s, c), value in values.items()]
    single = pl.DataFrame(rows).with_columns(pl.col("error").cast(pl.String))
    both = Contrast("qoe", True, ("scheduler", "control"))
    (found,) = compare(single, both, ("scheduler", "control"))
    _, *said = summary.sentences(found)
    assert said == ["b + x, a + y, a + x are undecided: with a single seed there is no interval."]


def test_several_undecided_differences_say_whose_needs_how_many_seeds() -> None:
    values: dict[str, Any] = {
        "a": lambda n, s: own(1, n, s),
        "b": lambda n, s: own(2, n, s) + 0.5,
        "c": lambda n, s: own(3, n, s) + 0.4,
    }
    (found,) = compare(table(values), QOE, ("scheduler", "trace"))
    undecided = [entry for entry in found.entries if entry.verdict is ContrastVerdict.UNDECIDED]
    assert len(undecided) == 2
    (said,) = [sentence for sentence in summary.sentences(found) if "undecided" in sentence]
    seeds, name = min((entry.more.number, entry.labels["scheduler"]) for entry in undecided if entry.more is not None)
    assert said.endswith(f"To show that of {name} as large as measured, about {seeds} more seeds are needed.")
    assert "the differences are not certain" in said


@pytest.mark.parametrize(("apart", "scatter", "of"), [(0.6, 3.0, Unit.SEED), (3.0, 0.1, Unit.NETWORK)])
def test_what_limits_is_what_more_are_wanted_of(apart: float, scatter: float, of: Unit) -> None:
    """Where networks differ in the difference, more seeds on the same ones say little."""
    networks, seeds = 8, 3
    units = np.repeat(np.arange(networks), seeds)
    first = 0.4 + np.tile([-apart, apart], 4)[units] + np.tile([-scatter, 0.0, scatter], networks)
    found = Differences(first, np.zeros(networks * seeds), units)
    assert found.p_value > 0.05
    more = found.more(Unit.NETWORK, seeds, tests=1)
    assert more is not None
    assert more.of is of
    if of is Unit.NETWORK:
        assert more.number == (statistics.units_for(found.effect_size) or 0) - networks
        assert found.least_half_width == pytest.approx(found.mean.half_width, rel=0.1)
    else:
        # With so many seeds for each of the eight networks the standard deviation of their means is small enough.
        between, within = found.scatter
        spread = math.sqrt(between + within / (seeds + more.number))
        assert statistics.power(found.mean.estimate / spread, networks) == pytest.approx(0.8, abs=0.05)


def test_a_margin_separates_equivalent_from_undecided() -> None:
    values = {"a": lambda n, s: 100 + own(1, n, s), "b": lambda n, s: 100 + own(2, n, s)}
    for margin, verdict in ((Margin(0.05, relative=True), "equivalent"), (Margin(0.1, relative=False), "undecided")):
        contrast = Contrast("qoe", True, ("scheduler",), (), {"scheduler": "a"}, margin)
        (found,) = compare(table(values), contrast, ("scheduler",))
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
    assert (found.pairs, found.seeds, found.units) == (3, 1, 3)
    assert any("the seed changes nothing" in note for note in found.notes)


def test_a_seed_that_the_plan_writes_into_a_key_has_an_effect_although_nothing_is_drawn() -> None:
    values = {"a": lambda n, s: own(1, n, s), "b": lambda n, s: own(2, n, s)}
    (found,) = compare(table(values, **{"run.seed_matters": False}), QOE, ("scheduler", "trace"))
    assert (found.pairs, found.notes) == (10, ())
    # One of several networks is random.
    mixed = {"a": lambda n, s: n and own(1, n, s), "b": lambda n, s: n and own(2, n, s)}
    (found,) = compare(table(mixed, 3, **{"run.seed_matters": False}), QOE, ("scheduler", "trace"))
    assert (found.pairs, found.units, found.notes) == (30, 3, ())


def test_a_network_is_one_value_however_many_seeds_it_has() -> None:
    """Every network has its own difference, and forty seeds of three networks are three networks."""
    shifts = (1.0, 4.0, -2.0)
    values = {"a": lambda *_: 0.0, "b": lambda n, s: shifts[n] + 0.01 * own(1, n, s)}
    (found,) = compare(table(values, 3), QOE, ("scheduler", "trace"))
    (entry,) = [entry for entry in found.entries if entry.difference is not None]
    assert entry.difference is not None
    assert entry.verdict is ContrastVerdict.UNDECIDED
    # 1, 4, -2: mean 1, deviation 3, t(2) = 4.303.
    assert entry.difference.mean.half_width == pytest.approx(4.3027 * 3 / math.sqrt(3), rel=0.01)


def test_all_comparisons_of_a_plan_are_one_family_unless_it_names_several() -> None:
    values: dict[str, Any] = {
        "a": lambda n, s: own(1, n, s),
        "b": lambda n, s: own(2, n, s) + 1,
        "c": lambda n, s: own(3, n, s),
    }
    both = table(values).with_columns((pl.col("qoe") * -1).alias("cost"))
    cost = replace(QOE, metric="cost")
    first, second = compare_all(both, [QOE, replace(cost, reference=None)], ("scheduler", "trace"))
    assert first.family == second.family
    assert first.tests == 5
    assert first.family.counted == "2 of scheduler with the reference in qoe, 3 pairs of scheduler in cost"
    by_name = {name: np.array([value(0, seed) for seed in range(1, 11)]) for name, value in values.items()}
    # The same pairs again in the second comparison.
    pairs = [("a", "b"), ("a", "c"), ("a", "b"), ("a", "c"), ("b", "c")]
    corrected = statistics.holm([Differences.of(by_name[x], by_name[y]).p_value for x, y in pairs])
    (better,) = [entry for entry in first.entries if entry.labels["scheduler"] == "b"]
    assert better.p_value == pytest.approx(corrected[0])
    apart, _ = compare_all(both, [QOE, replace(cost, family="costs")], ("scheduler", "trace"))
    assert (apart.tests, apart.family.name) == (2, "")
    two, _ = compare_all(
        both.filter(pl.col("scheduler") != "c"), [replace(QOE, reference=None), cost], ("scheduler", "trace")
    )
    assert two.family.counted == "1 pair of scheduler in qoe, 1 of scheduler with the reference in cost"


def test_where_t_test_and_wilcoxon_disagree_the_notes_say_so() -> None:
    outlier = {"a": lambda *_: 0.0, "b": lambda _, s: 100.0 if s == 1 else 1.0 + s / 10}
    (found,) = compare(table(outlier), QOE, ("scheduler", "trace"))
    (entry,) = [entry for entry in found.entries if entry.difference is not None]
    assert entry.difference is not None
    assert entry.difference.p_value > 0.05 > entry.difference.wilcoxon_p_value
    assert entry.tests_disagree
    assert any("t-test and Wilcoxon's test disagree" in note and "b (p 0." in note for note in found.notes)
    values = {"a": lambda n, s: own(1, n, s), "b": lambda n, s: own(2, n, s) + 5}
    assert compare(table(values), QOE, ("scheduler", "trace"))[0].notes == ()


# --- Two factors ----------------------------------------------------------------------------------------------------


def test_effects_of_two_factors_are_those_of_repeated_measures() -> None:
    pandas = pytest.importorskip("pandas")
    from statsmodels.stats.anova import AnovaRM

    random = np.random.default_rng(2)
    grid = random.normal(0, 1, (12, 3, 2)) + random.normal(0, 3, (12, 1, 1)) + np.array([0.0, 0.5, 1.5])[:, None]
    rows = [
        {"unit": u, "a": a, "b": b, "y": float(grid[u, a, b])} for u in range(12) for a in range(3) for b in range(2)
    ]
    expected = AnovaRM(pandas.DataFrame(rows), "y", "unit", within=["a", "b"]).fit().anova_table["Pr > F"]
    found = effects.p_values(grid)
    # With two values there is nothing to correct for.
    assert found[1] == pytest.approx(expected["b"])
    # The correction takes degrees of freedom, so it makes p-values larger.
    assert expected["a"] < found[0] < 0.01
    assert expected["a:b"] < found[2] < 2 * expected["a:b"]


def test_an_interaction_is_found_where_one_factor_decides_what_the_other_does() -> None:
    schedulers, controls = ("x", "y", "z"), ("lia", "bbr")
    rows = [
        {"s": s, "c": c, "seed": seed, "error": None, "qoe": qoe_of(s, c, seed)}
        for s in schedulers
        for c in controls
        for seed in range(1, 21)
    ]
    frame = pl.DataFrame(rows, infer_schema_length=None).with_columns(pl.col("error").cast(pl.String))
    (found,) = compare(frame, Contrast("qoe", True, ("s", "c")), ("s", "c"))
    *main, interaction = found.effects
    assert [effect.factors for effect in found.effects] == [("s",), ("c",), ("s", "c")]
    assert interaction.is_certain
    assert found.tests == 15 + 3
    assert "3 of main effects and interactions" in found.family.counted
    means = {level.label: level.mean.estimate for level in main[0].levels}
    assert means["x"] == pytest.approx(frame.filter(pl.col("s") == "x")["qoe"].mean())
    assert [level.difference is None for level in main[0].levels] == [True, False, False]
    assert len(list(effect_rows(found))) == 3 + 2 + 1
    # A gap in the table leaves no effects, and the comparisons stay.
    (gap,) = compare(frame.filter((pl.col("s") != "x") | (pl.col("c") != "bbr")), found.contrast, ("s", "c"))
    assert (gap.effects, gap.tests) == ((), 10)


def qoe_of(scheduler: str, control: str, seed: int) -> float:
    """One pair of scheduler and control is better than both are elsewhere."""
    name = int.from_bytes(f"{scheduler}{control}".encode())
    return own(name, 0, seed) + (3 if (scheduler, control) == ("x", "bbr") else 0)


# --- Sessions that are not finished -----------------------------------------------------------------------------------


def videos(played: dict[str, float], *, metric: str = "stall_s", value: float = 2.0) -> pl.DataFrame:
    """A row per scheduler and seed: how much of a video of 100 s each has played."""
    rows = [
        {
            "scheduler": name,
            "seed": seed,
            "error": None,
            "cut_off": seconds < 100 and seed <= 3,
            "video_s": 100.0,
            "played_s": seconds if seed <= 3 else 100.0,
            metric: value + seed if seconds else (0.0 if seed <= 3 else value + seed),
        }
        for name, seconds in played.items()
        for seed in range(1, 7)
    ]
    return pl.DataFrame(rows, infer_schema_length=None).with_columns(pl.col("error").cast(pl.String))


STALLS = Contrast("stall_s", False, ("scheduler",), (), {"scheduler": "good"})


def means_of(table: pl.DataFrame, contrast: Contrast) -> tuple[dict[str, float], tuple[str, ...]]:
    (found,) = compare(table, contrast, ("scheduler",))
    return {entry.labels["scheduler"]: entry.mean.estimate for entry in found.entries}, found.notes


def test_a_video_that_never_starts_counts_as_frozen_to_its_end() -> None:
    found, notes = means_of(videos({"good": 100.0, "dead": 0.0, "late": 60.0}), STALLS)
    assert found["good"] == pytest.approx(5.5)
    # Three of six froze for all of 100 s; the others stalled 6, 7 and 8 s.
    assert found["dead"] == pytest.approx((300 + 6 + 7 + 8) / 6)
    assert found["late"] == pytest.approx(5.5 + 3 * 40 / 6)
    assert any("6 of 18 sessions were cut off (3 of them never started)" in note for note in notes)


def test_a_plan_may_say_otherwise_what_unfinished_sessions_count_for() -> None:
    table = videos({"good": 100.0, "dead": 0.0})
    worst, _ = means_of(table, replace(STALLS, unfinished=Unfinished.WORST))
    assert worst["dead"] == pytest.approx((3 * 8 + 6 + 7 + 8) / 6)
    excluded, notes = means_of(table, replace(STALLS, unfinished=Unfinished.EXCLUDE))
    assert excluded["good"] == excluded["dead"] == pytest.approx(7)
    assert "3 pairs lack a value and are left out" in notes
    with pytest.raises(InputError, match=r"3 of 12 sessions were cut off.*longer `duration`"):
        means_of(table, replace(STALLS, unfinished=Unfinished.ERROR))


def test_of_what_is_not_known_to_the_end_the_worst_session_counts() -> None:
    qoe = Contrast("qoe", True, ("scheduler",), (), {"scheduler": "good"})
    found, notes = means_of(videos({"good": 100.0, "late": 60.0}, metric="qoe"), qoe)
    assert found["late"] == pytest.approx((3 * 3 + 6 + 7 + 8) / 6)
    assert any("as the worst session in qoe" in note for note in notes)
    # A run that is too short for every video says nothing of one of them.
    short = videos({"good": 90.0, "late": 60.0}, metric="qoe").filter(pl.col("seed") <= 3)
    found, notes = means_of(short, qoe)
    assert found["late"] == found["good"] == pytest.approx(4)
    assert any("no video was played to its end" in note for note in notes)


# --- Pairs ------------------------------------------------------------------------------------------------------------


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
    contrast = replace(QOE, quantiles=(0.1, 0.9))
    (found,) = compare(table(values, networks=9), contrast, ("scheduler", "trace"))
    (row,) = [row for row in rows(found) if row["verdict"] != "reference"]
    assert [row[f"difference_q10{end}"] for end in ("", "_low", "_high")] == pytest.approx([0, 0, 0], abs=1e-6)
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


def test_a_goal_that_needs_more_networks_is_given_up() -> None:
    """Where networks differ, the interval does not get narrower than they make it, however many seeds they have."""
    values = {"a": lambda n, s: 100 + own(1, n, s), "b": lambda n, s: 100 + (20 if n else -20) + own(2, n, s)}
    found = compare(table(values, networks=3), QOE, ("scheduler", "trace"))
    assert found[0].least_width == pytest.approx(found[0].width, rel=0.01)
    assert Goal.of("interval < 5 %").needs_networks(found)
    assert not Goal(found[0].width * 2).needs_networks(found)
    assert not Goal.of("interval < 5 %").needs_networks(compare(table(values), QOE, ("scheduler", "trace")))


# --- Networks as the sample, on synthetic data whose truth is known ---------------------------------------------------


class Truth:
    """Plans whose networks differ, in level and in what a scheduler changes.

    Attributes:
        mean: The true mean difference over all networks there are.
        between: The standard deviation of the differences of networks.
        within: That of the pairs of a network.
    """

    def __init__(self, mean: float, between: float, within: float) -> None:
        self.mean, self.between, self.within = mean, between, within

    def differences(self, random: np.random.Generator, networks: int, seeds: int) -> Differences:
        """The differences of two schedulers on so many networks."""
        units = np.repeat(np.arange(networks), seeds)
        level = random.normal(50, 20, networks)[units]
        own = random.normal(0, self.within / math.sqrt(2), (2, networks * seeds))
        shift = random.normal(self.mean, self.between, networks)[units]
        return Differences(level + shift + own[0], level + own[1], units)

    def quantiles(self, share: float) -> float:
        """The true difference of a quantile of all runs on all networks."""
        from scipy import stats

        level, own = 20.0**2, self.within**2 / 2
        spread = math.sqrt(level + self.between**2 + own) - math.sqrt(level + own)
        return self.mean + float(stats.norm.ppf(share)) * spread

    def power(self, networks: int, seeds: int, tests: int = 1) -> float:
        """The predicted probability that the difference is found."""
        spread = math.sqrt(self.between**2 + self.within**2 / seeds)
        return statistics.power(self.mean / spread, networks, tests=tests)


def covered(intervals: list[statistics.Interval], truth: float) -> float:
    return sum(interval.low <= truth <= interval.high for interval in intervals) / len(intervals)


@pytest.mark.parametrize("networks", [5, 30, 100])
def test_intervals_of_means_cover_what_they_should(networks: int) -> None:
    random, truth = np.random.default_rng(1), Truth(2.0, between=10.0, within=8.0)
    found = [truth.differences(random, networks, 4).mean for _ in range(2000)]
    assert 0.93 <= covered(found, 2.0) <= 0.97
    # The same runs as independent pairs would be a false certainty, which this test exists to find.
    naive = [statistics.mean(d.first - d.second) for d in (truth.differences(random, networks, 4) for _ in range(500))]
    assert covered(naive, 2.0) < 0.85


@pytest.mark.parametrize(("networks", "share"), [(30, 0.1), (30, 0.5), (30, 0.9), (100, 0.9)])
def test_intervals_of_quantiles_cover_what_they_should(networks: int, share: float) -> None:
    random, truth = np.random.default_rng(2), Truth(2.0, between=15.0, within=8.0)
    found = [
        sampling.quantile_difference(d.first, d.second, d.units, share)
        for d in (truth.differences(random, networks, 2) for _ in range(300))
    ]
    assert 0.93 <= covered(found, truth.quantiles(share)) <= 0.97


def plan_of(random: np.random.Generator, shifts: dict[str, float], networks: int, seeds: int) -> pl.DataFrame:
    """The table of a plan: schedulers on networks with effects of their own."""
    level = random.normal(50, 20, (networks, 1))
    parts = []
    for name, shift in shifts.items():
        values = level + random.normal(shift, 10, (networks, 1)) + random.normal(0, 6, (networks, seeds))
        parts.append(
            pl.DataFrame(
                {
                    "scheduler": [name] * networks * seeds,
                    "trace": np.repeat(np.arange(networks), seeds),
                    "seed": np.tile(np.arange(1, seeds + 1), networks),
                    "error": pl.Series([None] * networks * seeds, dtype=pl.String),
                    "qoe": values.ravel(),
                }
            )
        )
    return pl.concat(parts)


def test_equal_policies_are_certainly_different_in_few_plans() -> None:
    random, best = np.random.default_rng(3), replace(QOE, reference=None)
    false = sum(
        any(entry.verdict in (ContrastVerdict.BETTER, ContrastVerdict.WORSE) for entry in found.entries)
        for _ in range(2000)
        for found in compare(plan_of(random, {"a": 0, "b": 0, "c": 0}, 10, 3), best, ("scheduler", "trace"))
    )
    assert false <= 0.05 * 2000


@pytest.mark.parametrize(("networks", "seeds", "shift"), [(10, 2, 13.0), (30, 4, 8.0)])
def test_a_difference_is_found_with_the_predicted_power(networks: int, seeds: int, shift: float) -> None:
    random, plans = np.random.default_rng(4), 600
    found = sum(
        entry.verdict is ContrastVerdict.BETTER
        for _ in range(plans)
        for (comparison,) in [
            compare(plan_of(random, {"a": 0.0, "b": shift}, networks, seeds), QOE, ("scheduler", "trace"))
        ]
        for entry in comparison.entries
    )
    # Each scheduler has effects of networks and runs of its own.
    predicted = Truth(shift, between=10 * math.sqrt(2), within=6 * math.sqrt(2)).power(networks, seeds)
    assert 0.5 < predicted < 0.95
    assert found / plans == pytest.approx(predicted, abs=0.05)
