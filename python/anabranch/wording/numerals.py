"""Numbers as text: plain digits and a decimal point, so that programs read what people read.

The numbers of a column have the same number of decimals: so many that the largest has three significant digits. What
rounds to nothing has no sign.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

ABSENT = "-"
"""What stands for an unknown number."""

_SIGNIFICANT = 3


def decimals(values: Iterable[float | None], significant: int = _SIGNIFICANT) -> int:
    """The decimals with which the largest of some values has so many significant digits; none for larger numbers."""
    known = [abs(value) for value in values if value is not None and math.isfinite(value)]
    largest = max(known, default=0.0)
    if largest == 0.0:
        return 0
    # As it is after rounding: 9.996 with three digits is 10.0.
    exponent = int(f"{largest:.{significant - 1}e}".partition("e")[2])
    return max(0, significant - 1 - exponent)


def column(values: Sequence[float | None], *, scale: float = 1.0, most: int = _SIGNIFICANT) -> list[str]:
    """The values, times a scale, with the same number of decimals, at most so many."""
    scaled = [None if value is None else value * scale for value in values]
    places = min(decimals(scaled), most)
    return [ABSENT if value is None else f"{value:z.{places}f}" for value in scaled]


def fixed(values: Sequence[float | None], places: int) -> list[str]:
    """The values with a given number of decimals."""
    return [ABSENT if value is None else f"{value:z.{places}f}" for value in values]


def plus_minus(mean: float, half_width: float | None) -> str:
    """A mean and half the width of its interval, both with the decimals that the interval deserves."""
    if half_width is None or not math.isfinite(half_width):
        return f"{column([mean])[0]} ± ?"
    # Two digits of the half-width, but no more than four of the mean.
    limits = [decimals([value], significant) for value, significant in ((half_width, 2), (mean, 4)) if value != 0.0]
    places = min(limits, default=0)
    return f"{mean:z.{places}f} ± {half_width:.{places}f}"


def known(value: float | None) -> float | None:
    """The number as JSON has it, which has neither NaN nor infinity."""
    return value if value is not None and math.isfinite(value) else None


def rounded(value: float | None, significant: int) -> float | None:
    """The number as JSON has it, with so many significant digits."""
    if (value := known(value)) is None:
        return None
    short = float(f"{value:.{significant}g}")
    # `3.0` takes more room than `3`.
    return int(short) if short.is_integer() else short
