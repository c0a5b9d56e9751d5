"""The texts of numbers in tables of papers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from anabranch.experiments import statistics
from anabranch.experiments.statistics import Array
from anabranch.results.downloads import quantile

__all__ = ["Values", "difference", "interval", "quantile", "quantiles"]

Values = Sequence[float] | Array


def interval(values: Values, digits: int = 2) -> str:
    """The mean with its 95 % interval (Student's t); the mean alone of one value."""
    mean = statistics.mean(np.asarray(values, dtype=np.float64))
    if math.isnan(mean.half_width):
        return f"{mean.estimate:.{digits}f}"
    return f"{mean.estimate:.{digits}f} ± {mean.half_width:.{digits}f}"


def difference(values: Values, digits: int = 2) -> str:
    """The mean of differences with its interval; in bold where that excludes zero."""
    mean = statistics.mean(np.asarray(values, dtype=np.float64))
    text = f"{mean.estimate:+.{digits}f} ± {mean.half_width:.{digits}f}"
    return f"**{text}**" if abs(mean.estimate) > mean.half_width else text


def quantiles(ordered: Values, shares: Sequence[float] = (0.5, 0.9, 0.99)) -> str:
    """Quantiles of ascending values; median, 90th and 99th percentile where nothing is said."""
    return " / ".join(f"{quantile(ordered, share):.0f}" for share in shares)
