"""Shares of a whole as the page's program reads them, and bars of link time by cause."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from anabranch.report.document import Bar, Filling, Piece
from anabranch.wording import causes
from anabranch.wording.summary import plural

LEAST_SHARE = 0.01
"""A part with less than this share of what was possible is summed with the others that are as small."""

_DIGITS = 4


class Causes:
    """Bars of link time, and the fillings of their causes in the order in which they appear."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def pieces(self, useful: float, parts: Iterable[tuple[str, float, str]]) -> list[Piece]:
        """The pieces of a bar.

        Args:
            useful: The share of new data.
            parts: The other parts: the key of the cause, the share, and what it is in words.
        """
        from anabranch.figures import causes as figures
        from anabranch.results import linktime

        parts = list(parts)
        sums: dict[str, float] = {}
        for cause, share, _ in parts:
            sums[cause] = sums.get(cause, 0.0) + share
        # Parts of one cause stand together.
        listed = sorted(
            (part for part in parts if part[1] >= LEAST_SHARE), key=lambda part: (-sums[part[0]], part[0], -part[1])
        )
        rest = [share for _, share, _ in parts if 0.0 < share < LEAST_SHARE]
        all_parts = [(linktime.USEFUL, useful, "new data"), *listed]
        if rest:
            all_parts.append((figures.OTHERS, sum(rest), plural(len(rest), "smaller part")))
        return [Piece(self._places.setdefault(key, len(self._places)), share, text) for key, share, text in all_parts]

    def fillings(self) -> list[Filling]:
        """What the pieces of all bars so far point to."""
        from anabranch.figures import causes as figures

        names = {key: causes.SHORT.get(key, "smaller parts") for key in self._places}
        return [Filling(name, *figures.FILLINGS[key], sum=key == figures.OTHERS) for key, name in names.items()]


def packed(bars: Sequence[Bar], fillings: Sequence[Filling]) -> dict[str, Any]:
    """What the page's program reads: ``causes`` with name, colour, hatches, and whether it is a sum; and ``rows``."""
    return {
        "causes": [[each.name, each.colour, each.hatch, each.sum] for each in fillings],
        "rows": [
            {
                "label": bar.label,
                "said": bar.note,
                "span": None if bar.span is None else [round(at, 3) for at in bar.span],
                "parts": [[piece.filling, round(piece.share, _DIGITS), piece.text] for piece in bar.pieces],
            }
            for bar in bars
        ],
    }
