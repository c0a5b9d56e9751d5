"""How many seeds are enough: ``--until "interval < 5 %"`` of sweeps, and ``--until decided`` of papers."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from anabranch.errors import InputError
from anabranch.experiments.contrast import Comparison
from anabranch.experiments.statistics import CONFIDENCE

_TEXT = re.compile(r"interval\s*<\s*(\d+(?:\.\d*)?)\s*%")
# An interval shrinks with the root of the number of seeds. More at once would trust the spread of few seeds.
_MOST_GROWTH = 2.0
_FEWEST = 2


@dataclass(frozen=True)
class Goal:
    """Half the interval of every paired difference is below a share of the reference's mean.

    The goal is a width and not a verdict: to add seeds until a difference is significant would find one everywhere.
    """

    share: float

    @staticmethod
    def of(text: str) -> Goal:
        """Reads what ``--until`` takes.

        Raises:
            InputError: It is something else.
        """
        found = _TEXT.fullmatch(text.strip())
        if found is None:
            raise InputError(f'--until {text}: expected the width of intervals as "interval < 5 %"')
        if float(found[1]) <= 0:
            raise InputError(f'--until {text}: expected a width above zero, such as "interval < 5 %"')
        return Goal(float(found[1]) / 100)

    def reached(self, comparisons: Sequence[Comparison]) -> bool:
        """Whether all intervals are narrow."""
        return all(comparison.width < self.share for comparison in comparisons)

    def needs_networks(self, comparisons: Sequence[Comparison]) -> bool:
        """Whether no number of seeds on the same networks reaches it, as far as can be known."""
        return any(comparison.least_width >= self.share for comparison in comparisons)

    def seeds(self, comparisons: Sequence[Comparison], now: int) -> int:
        """How many seeds to have next, more than now."""
        width = max((comparison.width for comparison in comparisons), default=math.inf)
        if now < _FEWEST:
            return _FEWEST
        growth = min((width / self.share) ** 2, _MOST_GROWTH) if math.isfinite(width) else _MOST_GROWTH
        return max(now + 1, math.ceil(now * growth))


LOOKS = (10, 30, 100, 300)
"""With how many seeds ``--until decided`` tests what is undecided: fixed, so that no result decides when to stop."""

CONFIDENCE_OF_LOOKS = 1 - (1 - CONFIDENCE) / len(LOOKS)
"""The level of intervals at each of these looks.

Several looks find more by chance. Each look gets an equal part of the 5 %, so that all intervals of a
mean together cover it with 95 % (Bonferroni), however the looks depend on each other. They are repeated confidence
intervals in the sense of Jennison and Turnbull ("Interim analyses: the repeated confidence interval approach", Journal
of the Royal Statistical Society B 51, 1989), who have narrower ones where values are normal.
"""


def more_seeds(seeds: Sequence[int], number: int) -> tuple[int, ...]:
    """Seeds, and so many in all: those that follow the highest."""
    following = range(max(seeds) + 1, max(seeds) + 1 + max(0, number - len(seeds)))
    return (*seeds, *following)
