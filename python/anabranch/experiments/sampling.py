"""What was sampled, and what a sample says: networks where there are several, seeds where there is one.

Several runs of a network show how that network behaves, and nothing of other networks. So a network is one value, the
mean of its runs, in every interval and in every test. Quantiles are those of all runs, and their intervals come from a
bootstrap that draws whole networks (Davison and Hinkley, "Bootstrap Methods and their Application", 1997, section 3.8).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from anabranch.experiments import statistics
from anabranch.experiments.statistics import CONFIDENCE, Array, Interval

Indices = NDArray[np.int64]

# The ends of an interval are the 50th value from either side.
_RESAMPLES = 2000
# The same table has the same intervals.
_BOOTSTRAP_SEED = 1
# Weights of order statistics are read from a table with so many steps, or a few more.
_STEPS = 4096
# Numbers at a time: a few tens of megabytes.
_AT_ONCE = 2_000_000


class Unit(StrEnum):
    """What was sampled."""

    SEED = "seed"
    NETWORK = "network"


@dataclass(frozen=True)
class More:
    """How many more would decide, if the difference is as observed.

    Attributes:
        number: How many.
        of: Of what: whichever has the larger part in the variance of the mean.
    """

    number: int
    of: Unit


def unit_means(values: Array, units: Indices) -> Array:
    """The means of rows that belong to the same unit, a row per unit."""
    counts = np.bincount(units)
    sums = np.zeros((len(counts), *values.shape[1:]))
    np.add.at(sums, units, values)
    means: Array = sums / counts.reshape(-1, *[1] * (values.ndim - 1))
    return means


@dataclass(frozen=True, eq=False)
class Values:
    """The values of a condition.

    Attributes:
        values: A value per pair.
        units: The unit of each pair, numbered from 0.
    """

    values: Array
    units: Indices

    @cached_property
    def mean(self) -> Interval:
        """The mean over units, with the interval of Student's t."""
        return statistics.mean(unit_means(self.values, self.units))

    @cached_property
    def median(self) -> Interval:
        """The median of all values."""
        return quantile(self.values, self.units, 0.5)


@dataclass(frozen=True, eq=False)
class Differences:
    """Paired differences.

    Attributes:
        first: The first values, a value per pair.
        second: The second ones.
        units: The unit of each pair, numbered from 0.
    """

    first: Array
    second: Array
    units: Indices

    @staticmethod
    def of(first: Array, second: Array) -> Differences:
        """Of pairs that are a unit each."""
        return Differences(first, second, np.arange(len(first)))

    @cached_property
    def by_unit(self) -> Array:
        """The mean difference of each unit."""
        return unit_means(self.first - self.second, self.units)

    @property
    def pairs(self) -> int:
        """The number of pairs."""
        return len(self.first)

    @cached_property
    def mean(self) -> Interval:
        """The mean over units, with the interval of Student's t."""
        return statistics.mean(self.by_unit)

    @cached_property
    def bootstrap(self) -> Interval:
        """The same with a bootstrap interval (BCa), which assumes no distribution."""
        return statistics.bootstrap(self.by_unit)

    @cached_property
    def median(self) -> Interval:
        """The median of the pairs' differences."""
        return quantile(self.first - self.second, self.units, 0.5)

    @cached_property
    def p_value(self) -> float:
        """Of the paired t-test, that the mean over units is zero."""
        return float(statistics.p_values(self.by_unit[:, None])[0])

    @cached_property
    def wilcoxon_p_value(self) -> float:
        """Of Wilcoxon's signed-rank test of the units' differences; NaN where all are zero."""
        return float(statistics.wilcoxon_p_values(self.by_unit[:, None])[0])

    @cached_property
    def effect_size(self) -> float:
        """The mean over the standard deviation of the units' differences (Cohen's d of paired values)."""
        return effect_size(self.by_unit)

    @cached_property
    def scatter(self) -> tuple[float, float]:
        """The variance between units, and that between the pairs of a unit; both zero where there is one pair each."""
        pairs = self.pairs / len(self.by_unit)
        if len(self.by_unit) < 2:
            return math.nan, math.nan
        total = float(np.var(self.by_unit, ddof=1))
        if self.pairs == len(self.by_unit):
            return total, 0.0
        rest = (self.first - self.second) - self.by_unit[self.units]
        within = float(np.sum(rest**2)) / (self.pairs - len(self.by_unit))
        return max(0.0, total - within / pairs), within

    @property
    def least_half_width(self) -> float:
        """Half the interval's width with as many networks and any number of seeds: what more seeds cannot narrow."""
        if self.pairs == len(self.by_unit) or not self.mean.half_width > 0:
            return 0.0
        total = float(np.var(self.by_unit, ddof=1))
        return self.mean.half_width * math.sqrt(self.scatter[0] / total)

    def more(self, unit: Unit, seeds: int, tests: int) -> More | None:
        """How many more seeds or networks would make the difference certain; ``None``: no practical number would.

        Args:
            unit: What was sampled.
            seeds: How many seeds there are.
            tests: The number of tests that are corrected for.
        """
        count = len(self.by_unit)
        needed = statistics.units_for(self.effect_size, tests=tests)
        units = None if needed is None else max(1, needed - count)
        if unit is Unit.SEED:
            return None if units is None else More(units, unit)
        pairs = self.pairs / count
        between, within = self.scatter
        # The variance between networks with which as many of them would do.
        allowed = (self.mean.estimate / statistics.effect_for(count, tests=tests)) ** 2 - between
        if within > 0 and allowed > 0 and (within / pairs > between or units is None):
            return More(max(1, math.ceil((within / allowed / pairs - 1) * seeds)), Unit.SEED)
        return None if units is None else More(units, unit)


def effect_size(differences: Array) -> float:
    """The mean over the standard deviation; infinite where nothing varies, NaN for fewer than two values."""
    if len(differences) < 2:
        return math.nan
    spread = float(np.std(differences, ddof=1))
    centre = float(np.mean(differences))
    if not statistics.varies(differences):
        return math.copysign(math.inf, centre) if centre else 0.0
    return centre / spread


def quantile(values: Array, units: Indices, share: float) -> Interval:
    """A quantile of all values, with a bootstrap interval of units."""
    if not len(values):
        return Interval(math.nan, math.nan, math.nan)
    resampled = None if np.ptp(values) == 0 else _resampled(values, units, share)
    return _percentiles(_estimate(values, share), resampled, units)


def quantile_difference(first: Array, second: Array, units: Indices, share: float) -> Interval:
    """How much a quantile of the first differs from that of the second, with a bootstrap interval of units.

    Both are resampled together, so that what they have in common cancels out.
    """
    if not len(first):
        return Interval(math.nan, math.nan, math.nan)
    resampled = None
    if np.ptp(first) or np.ptp(second):
        resampled = _resampled(first, units, share) - _resampled(second, units, share)
    return _percentiles(_estimate(first, share) - _estimate(second, share), resampled, units)


def _estimate(values: Array, share: float) -> float:
    return float(_harrell_davis(values, np.zeros(len(values), dtype=np.int64), np.ones((1, 1)), share)[0])


def _resampled(values: Array, units: Indices, share: float) -> Array:
    parts = np.array_split(_drawn(int(units.max()) + 1), math.ceil(_RESAMPLES * len(values) / _AT_ONCE))
    return np.concatenate([_harrell_davis(values, units, part, share) for part in parts])


@lru_cache(maxsize=4)
def _drawn(count: int) -> Array:
    """How often each of so many units is in each resample."""
    random = np.random.default_rng(_BOOTSTRAP_SEED)
    return random.multinomial(count, np.full(count, 1 / count), size=_RESAMPLES).astype(np.float64)


def _harrell_davis(values: Array, units: Indices, drawn: Array, share: float) -> Array:
    """A quantile of resamples, as a weighted mean of order statistics (Harrell and Davis, Biometrika 69, 1982).

    A sample quantile jumps from value to value, and its bootstrap intervals are too wide for that reason; with these
    weights they cover what they should.

    Args:
        values: The values.
        units: The unit of each.
        drawn: How often each unit was drawn, a row per resample.
        share: The quantile.
    """
    from scipy import special

    order = np.argsort(values, kind="stable")
    ordered = values[order]
    # By columns, which lie apart in memory: as rows they are added up at once.
    below = np.cumsum(drawn.T[units[order]], axis=0)
    # Exact where each unit has as many values, which a multiple of their number has a step for.
    steps = len(values) * math.ceil(_STEPS / len(values))
    of_steps = np.linspace(0.0, 1.0, steps + 1)
    weights = special.betainc((len(values) + 1) * share, (len(values) + 1) * (1 - share), of_steps)
    # The weight of what is below each value; summed by parts, so that resamples with fewer values need no other sizes.
    shares = weights[np.rint(below[:-1] * (steps / below[-1])).astype(np.int64)]
    found: Array = ordered[-1] - np.diff(ordered) @ shares
    return found


def _percentiles(estimate: float, resampled: Array | None, units: Indices) -> Interval:
    """The percentiles of a bootstrap, as far out as Student's t is beyond the normal distribution.

    Without this, intervals of few values are too narrow (Hesterberg, "What Teachers Should Know About the Bootstrap",
    The American Statistician 69, 2015, section 5.3).
    """
    from scipy import stats

    count = int(units.max()) + 1
    if count < 2:
        return Interval(estimate, math.nan, math.nan)
    if resampled is None:
        return Interval(estimate, estimate, estimate)
    reach = math.sqrt(count / (count - 1)) * float(stats.t.ppf((1 + CONFIDENCE) / 2, count - 1))
    tail = float(stats.norm.cdf(-reach))
    low, high = np.quantile(resampled, [tail, 1 - tail])
    return Interval(estimate, float(low), float(high))
