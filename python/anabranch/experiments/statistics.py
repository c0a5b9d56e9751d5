"""Intervals and tests, all by scipy and statsmodels; here they get names, and answers for what has no variance.

Importing them takes a second, so it waits until something is computed.
"""

from __future__ import annotations

import bisect
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

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
# What would need more pairs is of no practical meaning.
_MOST_PAIRS = 1_000_000


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % interval; ends are NaN where there are too few values to know them."""

    estimate: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half of the interval's width."""
        return (self.high - self.low) / 2


@dataclass(frozen=True)
class Paired:
    """The differences of paired values.

    Attributes:
        pairs: Their number.
        mean: The mean difference, with the interval of Student's t.
        bootstrap: The same with a bootstrap interval (BCa), which assumes no distribution.
        median: The median difference, likewise.
        p_value: Of the paired t-test, that the mean is zero.
        wilcoxon_p_value: Of Wilcoxon's signed-rank test; NaN where all differences are zero.
        effect_size: The mean difference over the standard deviation of the differences (Cohen's d of paired values).
    """

    pairs: int
    mean: Interval
    bootstrap: Interval
    median: Interval
    p_value: float
    wilcoxon_p_value: float
    effect_size: float


def mean(values: Array) -> Interval:
    """The mean, with the interval of Student's t."""
    # Claims and tables of a paper ask for the same means, and scipy takes a third of a millisecond for each.
    return _mean(np.ascontiguousarray(values, dtype=np.float64).tobytes())


@lru_cache(maxsize=16384)
def _mean(content: bytes) -> Interval:
    from scipy import stats

    values = np.frombuffer(content, dtype=np.float64)
    centre = float(np.mean(values)) if len(values) else math.nan
    if len(values) < 2:
        return Interval(centre, math.nan, math.nan)
    if not _varies(values):
        return Interval(centre, centre, centre)
    found = stats.ttest_1samp(values, 0.0).confidence_interval(CONFIDENCE)
    return Interval(centre, float(found.low), float(found.high))


def bootstrap(values: Array, statistic: Callable[..., Any] = np.mean) -> Interval:
    """A statistic of values with its bootstrap interval (BCa)."""
    return _bootstrap((values,), statistic)


def median(values: Array) -> Interval:
    """The median, with a bootstrap interval (BCa)."""
    return bootstrap(values, np.median)


def paired_p_value(first: Array, second: Array) -> float:
    """Of the paired t-test, that the mean difference is zero."""
    return _p_value(first - second, "two-sided", 0.0)


def paired(first: Array, second: Array) -> Paired:
    """What the differences ``first - second`` say."""
    from scipy import stats

    differences = first - second
    wilcoxon = effect = math.nan
    if np.any(differences != 0):
        wilcoxon = float(stats.wilcoxon(differences).pvalue)
    if len(differences) > 1:
        spread = float(np.std(differences, ddof=1))
        centre = float(np.mean(differences))
        effect = centre / spread if _varies(differences) else math.copysign(math.inf, centre) if centre else 0.0
    return Paired(
        pairs=len(differences),
        mean=mean(differences),
        bootstrap=bootstrap(differences),
        median=median(differences),
        p_value=paired_p_value(first, second),
        wilcoxon_p_value=wilcoxon,
        effect_size=effect,
    )


@dataclass(frozen=True)
class Mean:
    """A mean difference with half the width of its 90 % interval, which is infinite where the variance is unknown.

    Two one-sided tests at 5 % (Schuirmann 1987) find the difference inside bounds if this interval is.
    """

    estimate: float
    half: float

    @property
    def low(self) -> float:
        """The lower end."""
        return self.estimate - self.half

    @property
    def high(self) -> float:
        """The upper end."""
        return self.estimate + self.half


def mean_difference(first: Array, second: Array, *, paired: bool) -> Mean:
    """The difference of two means: of paired values, or of independent ones whose variances may differ (Welch 1947)."""
    if paired:
        differences = first - second
        estimate = float(np.mean(differences))
        if len(differences) < 2:
            return Mean(estimate, math.inf)
        return Mean(
            estimate, _student(len(differences) - 1) * math.sqrt(np.var(differences, ddof=1) / len(differences))
        )
    estimate = float(np.mean(first)) - float(np.mean(second))
    if min(len(first), len(second)) < 2:
        return Mean(estimate, math.inf)
    of_first, of_second = (float(np.var(values, ddof=1)) / len(values) for values in (first, second))
    variance = of_first + of_second
    if variance == 0.0:
        return Mean(estimate, 0.0)
    degrees = variance**2 / (of_first**2 / (len(first) - 1) + of_second**2 / (len(second) - 1))
    return Mean(estimate, _student(degrees) * math.sqrt(variance))


@lru_cache
def _student(degrees: float) -> float:
    """Student's t at 95 %, as printed tables have it.

    Degrees of freedom are rounded down, because fewer make a wider interval; beyond thirty the normal distribution's
    value is taken. The tables of the comparison with the kernel were made so.
    """
    from scipy import stats

    whole = max(1, math.floor(degrees))
    value = stats.t.ppf(CONFIDENCE, whole) if whole <= _STUDENT_ROWS else stats.norm.ppf(CONFIDENCE)
    return round(float(value), _TABLE_DIGITS)


_STUDENT_ROWS = 30
_TABLE_DIGITS = 3


def equivalence(first: Array, second: Array, margin: float) -> float:
    """The p-value of two one-sided tests (TOST): that the mean difference of paired values is beyond ± the margin.

    It is below 5 % where the interval of `mean_difference` is inside the margin.
    """
    differences = first - second
    return max(_p_value(differences, "greater", -margin), _p_value(differences, "less", margin))


def quantile_difference(first: Array, second: Array, share: float) -> Interval:
    """How much a quantile of the first differs from that of the second, of paired values, with a bootstrap interval."""

    def difference(a: Array, b: Array, axis: int = -1) -> Any:
        return np.quantile(a, share, axis=axis) - np.quantile(b, share, axis=axis)

    # BCa of a quantile that many resamples share has no acceleration, so percentiles are taken.
    return _bootstrap((first, second), difference, paired=True, method="percentile")


def distribution(values: Array) -> tuple[Array, Array]:
    """The empirical distribution: values, and the share of values up to each."""
    from scipy import stats

    found = stats.ecdf(values).cdf
    return found.quantiles, found.probabilities


def correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Pearson's coefficient of correlation; zero where one of them does not vary."""
    from scipy import stats

    if not (_varies(np.asarray(first)) and _varies(np.asarray(second))):
        return 0.0
    return float(stats.pearsonr(first, second).statistic)


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values corrected for their number (Holm); what is NaN stays so, and does not count."""
    from statsmodels.stats.multitest import multipletests

    known = [position for position, p in enumerate(p_values) if not math.isnan(p)]
    corrected = [math.nan] * len(p_values)
    if known:
        adjusted = multipletests([p_values[position] for position in known], method="holm")[1]
        for position, p in zip(known, adjusted, strict=True):
            corrected[position] = float(p)
    return corrected


def pairs_for(effect_size: float, *, tests: int = 1) -> int | None:
    """How many pairs find a difference of this effect size with a probability of 80 %; ``None``: more than a million.

    Args:
        effect_size: The expected difference over the standard deviation of differences.
        tests: The number of tests that are corrected for.
    """
    if math.isnan(effect_size) or effect_size == 0:
        return None
    if math.isinf(effect_size):
        return 2

    def enough(pairs: int) -> bool:
        return _power(abs(effect_size), pairs, SIGNIFICANCE / tests) >= POWER

    high = 2
    while not enough(high):
        high *= 2
        if high > _MOST_PAIRS:
            return None
    return bisect.bisect_left(range(high + 1), True, lo=2, key=enough)


def _power(effect_size: float, pairs: int, level: float) -> float:
    """The probability that a two-sided paired t-test finds an effect.

    The square of a noncentral t is a noncentral F. Of that one scipy knows the distribution everywhere. Of the
    noncentral t, which statsmodels takes, it gives NaN here and there, which would count as too few pairs.
    """
    from scipy import stats

    critical = float(stats.t.isf(level / 2, pairs - 1))
    return float(stats.ncf.sf(critical**2, 1, pairs - 1, effect_size**2 * pairs))


def _p_value(differences: Array, alternative: str, expected: float) -> float:
    """Of a one-sample t-test; where nothing varies, 0 or 1."""
    from scipy import stats

    if len(differences) < 2:
        return math.nan
    if not _varies(differences):
        excess = float(differences[0]) - expected
        rejected = {"two-sided": excess != 0, "greater": excess > 0, "less": excess < 0}[alternative]
        return 0.0 if rejected else 1.0
    return float(stats.ttest_1samp(differences, expected, alternative=alternative).pvalue)


def _bootstrap(
    values: tuple[Array, ...], statistic: Callable[..., Any], *, paired: bool = False, method: str = "BCa"
) -> Interval:
    from scipy import stats

    estimate = float(statistic(*values)) if len(values[0]) else math.nan
    if len(values[0]) < 2:
        return Interval(estimate, math.nan, math.nan)
    if not any(map(_varies, values)):
        return Interval(estimate, estimate, estimate)
    random = np.random.default_rng(_BOOTSTRAP_SEED)
    with np.errstate(invalid="ignore", divide="ignore"), warnings.catch_warnings():
        # Its interval is NaN then, which says so.
        warnings.simplefilter("ignore", stats.DegenerateDataWarning)
        found = stats.bootstrap(
            values,
            statistic,
            n_resamples=_RESAMPLES,
            confidence_level=CONFIDENCE,
            method=method,
            paired=paired,
            rng=random,
            batch=_BATCH,
        ).confidence_interval
    return Interval(estimate, float(found.low), float(found.high))


def _varies(values: Array) -> bool:
    """Whether values differ by more than rounding does, which a test would take for a certain difference."""
    largest = float(np.max(np.abs(values)))
    return float(np.ptp(values)) > largest * _ROUNDING


_ROUNDING = 1e-12
