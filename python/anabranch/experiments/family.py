"""Families of tests: what a correction counts, in words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from anabranch.experiments.blocks import Block
from anabranch.wording import quantities
from anabranch.wording.summary import plural


@dataclass(frozen=True)
class Family:
    """The tests that are corrected together.

    Attributes:
        name: Its name in the plan; empty where the plan has one family.
        tests: How many there are.
        counted: Which they are, in words.
    """

    name: str
    tests: int
    counted: str

    @staticmethod
    def of(found: Iterable[tuple[Block, int, int]]) -> Family:
        """Of comparisons, each with its number of pairs, and of effects."""
        counts: dict[tuple[bool, str], int] = {}
        name, effects = "", 0
        for block, pairs, of_effects in found:
            contrast = block.contrast
            name, effects = contrast.family, effects + of_effects
            axes = " and ".join(quantities.of_keys(contrast.between).values())
            paired = contrast.reference is None
            what = axes if paired else f"{axes} with the reference"
            # Several comparisons of a metric differ in the values of the axes that are not compared.
            text = f"{what} in {quantities.of_metric(contrast.metric).name}"
            counts[paired, text] = counts.get((paired, text), 0) + pairs
        parts = [
            f"{plural(number, 'pair') if paired else number} of {text}" for (paired, text), number in counts.items()
        ]
        parts += [f"{effects} of main effects and interactions"] if effects else []
        return Family(name, sum(counts.values()) + effects, ", ".join(parts))
