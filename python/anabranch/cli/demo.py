"""`anabranch demo`: a video on a walk out of the WiFi's reach, in three ways, and what the second path is worth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from anabranch.cli import compare, run
from anabranch.cli.console import answer, err

EXAMPLES = "Example: anabranch demo; then: anabranch run mobile/walk --set transport.scheduler=blest"

_SCENARIO = "mobile/walk"
# A walk on which WiFi alone stalls; the README's figure is of this seed.
_SEED = 2
# The run folder, what the run shows, and what is set for it.
_RUNS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("wifi-alone", "over WiFi alone", ('session.0.paths=["wifi"]',)),
    ("wifi-and-lte", "over WiFi and LTE", ()),
    ("redundant", "over WiFi and LTE, every byte on both", ("transport.scheduler=redundant",)),
)


def demonstrate(
    directory: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where the run folders and the figure are written.")
    ] = Path("runs/demo"),
) -> None:
    """Simulate a video on a walk out of the WiFi's reach: on WiFi alone, on WiFi and LTE, and redundantly on both."""
    for number, (name, shows, overrides) in enumerate(_RUNS):
        answer(Text(f"{'' if number == 0 else chr(10)}A video on a walk, {shows}", style="bold"))
        shown = "".join(f" --set {text!r}" for text in overrides)
        err().print(Text(f"anabranch run {_SCENARIO} --seed {_SEED}{shown}", style="dim"), soft_wrap=True)
        run.run(_SCENARIO, seed=_SEED, given=list(overrides), directory=directory / name, strict=True)
    answer(Text("\nThe three side by side", style="bold"))
    compare.compare([directory / name for name, _, _ in _RUNS], directory=directory)
