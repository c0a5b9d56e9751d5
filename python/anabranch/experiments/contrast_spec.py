"""What a plan wants compared. How it is compared stands in `anabranch.experiments.contrast`.

Reading a plan, as the command line does for its lists, needs no library of tables or numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from anabranch.experiments.document import Way

Labels = Mapping[str, Any]
"""The values of axes, by column."""


@dataclass(frozen=True)
class Margin:
    """The largest difference without practical meaning.

    Attributes:
        size: How large.
        relative: Whether that is a share of the reference's mean.
    """

    size: float
    relative: bool

    def of(self, reference: float) -> float:
        """The margin in the metric's unit."""
        return self.size * abs(reference) if self.relative else self.size


class Unfinished(StrEnum):
    """What sessions count for that never started or were cut off."""

    TO_THE_END = "to the end"
    WORST = "worst"
    EXCLUDE = "exclude"
    ERROR = "error"


@dataclass(frozen=True)
class Contrast:
    """What is compared.

    Attributes:
        metric: The column.
        higher_is_better: Whether more of it is better.
        between: The axes whose values are compared.
        units: The axes whose values are pairs, as seeds are. The rest of the axes make a comparison each.
        reference: What all others are compared with; the best where absent.
        margin: What counts as equivalent.
        quantiles: Quantiles that are compared, too.
        networks: Those of the units whose values were sampled: a network each, if there are several.
        unfinished: What sessions count for that never started or were cut off.
        family: The tests that are corrected together are those of all comparisons of the same family.
        way: Where in the plan it is written.
    """

    metric: str
    higher_is_better: bool
    between: tuple[str, ...]
    units: tuple[str, ...] = ()
    reference: Labels | None = None
    margin: Margin | None = None
    quantiles: tuple[float, ...] = ()
    networks: tuple[str, ...] = ()
    unfinished: Unfinished = Unfinished.TO_THE_END
    family: str = ""
    way: Way = ()
