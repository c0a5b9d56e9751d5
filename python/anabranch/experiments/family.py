"""Families of tests: what a correction counts, in words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from anabranch.experiments.blocks import Block
from anabranch.wording import quantities


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
        counts: dict[str, int] = {}
        name, effects = "", 0
        for block, pairs, of_effects in found:
            contrast = block.contrast
            name, effects = contrast.family, effects + of_effects
            axes = " and ".join(quantities.of_keys(contrast.between).values())
            what = f"pairs of {axes}" if contrast.reference is None else f"of {axes} with the reference"
            # Several comparisons of a metric differ in the values of the axes that are not compared.
            text = f"{what} in {quantities.of_metric(contrast.metric).name}"
            counts[text] = counts.get(text, 0) + pairs
        parts = [f"{number} {text}" for text, number in counts.items()]
        parts += [f"{effects} of main effects and interactions"] if effects else []
        return Family(name, sum(counts.values()) + effects, ", ".join(parts))
