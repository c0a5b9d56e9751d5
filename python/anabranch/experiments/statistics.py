"""Intervals and tests, nearly all by scipy; here they get names, and answers for what has no variance.

Importing them takes a second, so it waits until something is computed.
"""

from __future__ import annotations

import bisect
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

CONFIDENCE = 0.95
"""The level of every interval."""

SIGNIFICANCE = 0.05
"""The level of every test, after the correction for the number of tests."""

POWER = 0.8
"""The probability with which a difference is to be found, where seeds are counted that would find it."""

_RESAMPLES = 2000
# Resamples at a time: the memory of a thousand values is megabytes.
_BATCH = 250
# The same table has the same intervals.
_BOOTSTRAP_SEED = 1
# What would need more is of no practical meaning.
_MOST_UNITS = 1_000_000


@dataclass(frozen=True)
class Interval:
    """An estimate with its interval, of 95 % where nothing else is said.

    Attributes:
        estimate: The estimate.
        low: The lower end; NaN where there are too few values to know it.
        high: The upper end, likewise.
        count: Of how many values it is, where that is known.
    """

    estimate: float
    low: float
    high: float
    count: int = field(default=0, compare=False)

    @staticmethod
    def around(estimate: float, half_width: float, count: int = 0) -> Interval:
        """A symmetric one; with a half-width that is infinite, nothing is known but the estimate."""
        return Interval(estimate, estimate - half_width, estimate + half_width, count)

    @property
    def half_width(self) -> float:
        """Half of the interval's width."""
        return (self.high - self.low) / 2


def mean(values: Array, confidence: float = CONFIDENCE) -> Interval:
    """The mean, with the interval of Student's t."""
    # Claims and tables of a paper ask for the same means, and scipy takes a third of a millisecond for each.
    return _mean(np.ascontiguousarray(values, dtype=np.float64).tobytes(), confidence)


@lru_cache(maxsize=16384)
def _mean(content: bytes, confidence: float) -> Interval:
    from scipy import stats

    values = np.frombuffer(content, dtype=np.float64)
    centre = float(np.mean(values)) if len(values) else math.nan
    if len(values) < 2:
        return Interval(centre, math.nan, math.nan, len(values))
    if not varies(values):
        return Interval(centre, centre, centre, len(values))
    found = stats.ttest_1samp(values, 0.0).confidence_interval(confidence)
    return Interval(centre, float(found.low), float(found.high), len(values))


def bootstrap(values: Array) -> Interval:
    """The mean with its bootstrap interval (BCa), which assumes no distribution."""
    from scipy import stats

    centre = float(np.mean(values)) if len(values) else math.nan
    if len(values) < 2:
        return Interval(centre, math.nan, math.nan)
    if not varies(values):
        return Interval(centre, centre, centre)
    random = np.random.default_rng(_BOOTSTRAP_SEED)
    with np.errstate(invalid="ignore", divide="ignore"), warnings.catch_warnings():
        # Its interval is NaN then, which says so.
        warnings.simplefilter("ignore", stats.DegenerateDataWarning)
        found = stats.bootstrap(
            (values,), np.mean, n_resamples=_RESAMPLES, confidence_level=CONFIDENCE, rng=random, batch=_BATCH
        ).confidence_interval
    return Interval(centre, float(found.low), float(found.high))


def mean_difference(first: Array, second: Array, *, paired: bool) -> Interval:
    """The difference of two means: of paired values, or of independent ones whose variances may differ (Welch 1947).

    The interval is of 90 %: two one-sided tests at 5 % (Schuirmann 1987) find the difference inside bounds if it is. It
    is infinite where the variance is unknown.
    """
    from scipy import stats

    def around(estimate: float, degrees: float, variance: float) -> Interval:
        return Interval.around(estimate, float(stats.t.ppf(CONFIDENCE, degrees)) * math.sqrt(variance))

    if paired:
        differences = first - second
        estimate = float(np.mean(differences))
        if len(differences) < 2:
            return Interval.around(estimate, math.inf)
        return around(estimate, len(differences) - 1, float(np.var(differences, ddof=1)) / len(differences))
    estimate = float(np.mean(first)) - float(np.mean(second))
    if min(len(first), len(second)) < 2:
        return Interval.around(estimate, math.inf)
    of_first, of_second = (float(np.var(values, ddof=1)) / len(values) for values in (first, second))
    variance = of_first + of_second
    if variance == 0.0:
        return Interval.around(estimate, 0.0)
    degrees = variance**2 / (of_first**2 / (len(first) - 1) + of_second**2 / (len(second) - 1))
    return around(estimate, degrees, variance)


def p_values(differences: Array, expected: float | Array = 0.0, alternative: str = "two-sided") -> Array:
    """Of one-sample t-tests, one for each column: that the mean is as expected. Where nothing varies, 0 or 1.

    Args:
        differences: A row per value and a column per test.
        expected: The mean that is tested, one or one for each column.
        alternative: ``two-sided``, ``greater`` or ``less``.
    """
    from scipy import special

    count = len(differences)
    if count < 2:
        return np.full(differences.shape[1], math.nan)
    excess = np.mean(differences, axis=0) - expected
    rejected = {"two-sided": excess != 0, "greater": excess > 0, "less": excess < 0}[alternative]
    varying = np.ptp(differences, axis=0) > np.max(np.abs(differences), axis=0) * _ROUNDING
    with np.errstate(invalid="ignore", divide="ignore"):
        t = excess / (np.std(differences, axis=0, ddof=1) / math.sqrt(count))
    tails = {"two-sided": (2.0, -np.abs(t)), "greater": (1.0, -t), "less": (1.0, t)}
    factor, tail = tails[alternative]
    return np.where(varying, factor * special.stdtr(count - 1, tail), np.where(rejected, 0.0, 1.0))


def wilcoxon_p_values(differences: Array) -> Array:
    """Of Wilcoxon's signed-rank tests, one for each column; NaN where all differences are zero."""
    from scipy import stats

    found = np.full(differences.shape[1], math.nan)
    some = np.any(differences != 0, axis=0)
    if len(differences) and np.any(some):
        with warnings.catch_warnings():
            # With ties it takes the normal distribution, and says so each time.
            warnings.simplefilter("ignore", UserWarning)
            found[some] = stats.wilcoxon(differences[:, some], axis=0).pvalue
    return found


def equivalence(differences: Array, margins: float | Array) -> Array:
    """The p-values of two one-sided tests (TOST), one for each column: that the mean is beyond ± the margin.

    One is below 5 % where the interval of `mean_difference` is inside the margin.
    """
    margins = np.asarray(margins)
    return np.maximum(p_values(differences, -margins, "greater"), p_values(differences, margins, "less"))


def distribution(values: Array) -> tuple[Array, Array]:
    """The empirical distribution: values, and the share of values up to each."""
    from scipy import stats

    found = stats.ecdf(values).cdf
    return found.quantiles, found.probabilities


def correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Pearson's coefficient of correlation; zero where one of them does not vary."""
    from scipy import stats

    if not (varies(np.asarray(first)) and varies(np.asarray(second))):
        return 0.0
    return float(stats.pearsonr(first, second).statistic)


def jain(values: Sequence[float]) -> float:
    """Jain's index of fairness: one if all are equal, and one over their number if one has everything."""
    return sum(values) ** 2 / (len(values) * sum(value * value for value in values))


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values corrected for their number (Holm 1979); what is NaN stays so, and does not count.

    statsmodels has this, too, and collects garbage with each call, which takes longer than all else of a comparison.
    """
    given = np.asarray(p_values, dtype=np.float64)
    known = np.flatnonzero(~np.isnan(given))
    ascending = known[np.argsort(given[known], kind="stable")]
    steps = given[ascending] * np.arange(len(known), 0, -1)
    corrected = np.full(len(given), math.nan)
    corrected[ascending] = np.minimum(1.0, np.maximum.accumulate(steps))
    found: list[float] = corrected.tolist()
    return found


def units_for(effect_size: float, *, tests: int = 1) -> int | None:
    """How many values find a difference of this effect size with a probability of 80 %; ``None``: more than a million.

    Args:
        effect_size: The expected difference over the standard deviation of differences.
        tests: The number of tests that are corrected for.
    """
    if math.isnan(effect_size) or effect_size == 0:
        return None
    if math.isinf(effect_size):
        return 2

    def enough(units: int) -> bool:
        return power(effect_size, units, tests=tests) >= POWER

    high = 2
    while not enough(high):
        high *= 2
        if high > _MOST_UNITS:
            return None
    return bisect.bisect_left(range(high + 1), True, lo=2, key=enough)


@lru_cache
def effect_for(units: int, *, tests: int = 1) -> float:
    """The effect size that so many values find with a probability of 80 %; infinite for fewer than two."""
    from scipy import optimize

    if units < 2:
        return math.inf
    high = 1.0
    while power(high, units, tests=tests) < POWER:
        high *= 2
    return float(optimize.brentq(lambda effect: power(effect, units, tests=tests) - POWER, 0.0, high))


def power(effect_size: float, units: int, *, tests: int = 1) -> float:
    """The probability that a two-sided paired t-test finds an effect.

    The square of a noncentral t is a noncentral F. Of that one scipy knows the distribution everywhere. Of the
    noncentral t, which statsmodels takes, it gives NaN here and there, which would count as too few pairs.

    Args:
        effect_size: The difference over the standard deviation of differences.
        units: The number of values.
        tests: The number of tests that are corrected for (Bonferroni, which Holm never falls below).
    """
    from scipy import special

    critical = float(special.stdtrit(units - 1, 1 - SIGNIFICANCE / tests / 2))
    return 1.0 - float(special.ncfdtr(1, units - 1, effect_size**2 * units, critical**2))


def varies(values: Array) -> bool:
    """Whether values differ by more than rounding does, which a test would take for a certain difference."""
    largest = float(np.max(np.abs(values)))
    return float(np.ptp(values)) > largest * _ROUNDING


_ROUNDING = 1e-12
