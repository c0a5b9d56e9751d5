"""Draws how long each chunk of 100 kB takes: today's Linux over two paths, our sender over them, and one path.

.venv/bin/python scripts/one-pipe-figure.py                       writes docs/images/one-pipe.png
.venv/bin/python scripts/one-pipe-figure.py --out runs/demo/one-pipe.png
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from anabranch import _core
from anabranch.figures import style

ROOT = Path(__file__).resolve().parent.parent
SEED = 1
SECONDS = 40
LENGTH = {"session.0.player.duration": f"{SECONDS} s", "duration": f"{SECONDS + 5} s"}
LINUX = {
    "transport.kernel": "upstream",
    "transport.scheduler": "linux",
    "transport.congestion_control": "cubic",
}
# What is drawn: the title, a line below it, the scenario, what differs from it, and the colour's place.
COLUMNS: tuple[tuple[str, str, str, Mapping[str, str], str], ...] = (
    ("Today's Linux", "two paths, 333 + 1667 kb/s", "chunks-1-5", LINUX, style.PATHS[1].colour),
    ("earliest + cbbr", "the same two paths", "chunks-1-5", {}, style.PATHS[0].colour),
    ("One path", "2000 kb/s, one TCP with BBR", "pipe", {}, style.INK),
)


def chunks(scenario: str, changes: Mapping[str, str]) -> list[tuple[float, float]]:
    """When each chunk was requested, and how long it took, in seconds."""
    text = (ROOT / "scenarios" / "one-pipe" / f"{scenario}.toml").read_text(encoding="utf-8")
    overrides = tuple({**LENGTH, **changes}.items())
    checked = _core.load(text, name=f"one-pipe/{scenario}", directory=None, overrides=overrides)
    session = json.loads(_core.measure(checked, seed=SEED, stop=_core.Stop()))["metrics"]["sessions"][0]
    finished = [chunk for chunk in session["downloads"] if chunk["finished_s"] is not None]
    return [(chunk["requested_s"], chunk["finished_s"] - chunk["requested_s"]) for chunk in finished]


def column(axes: Axes, title: str, subtitle: str, found: list[tuple[float, float]], colour: str) -> None:
    """One sender: a stem per chunk, and the median in large letters."""
    begins, times = zip(*found, strict=True)
    axes.vlines(begins, 0.0, times, color=colour, linewidth=2.2, alpha=0.75)
    median = statistics.median(times)
    axes.axhline(median, color=style.INK, linewidth=0.8, linestyle="--")
    axes.set_title(f"{title}\n", fontsize=11, fontweight="bold", loc="left")
    axes.text(0.0, 1.02, subtitle, transform=axes.transAxes, fontsize=8.5, color=style.MUTED)
    words: dict[str, Any] = {"fontsize": 16, "fontweight": "bold", "color": style.INK, "ha": "right", "va": "top"}
    axes.text(0.98, 0.97, f"{median:.2f} s", transform=axes.transAxes, **words)
    note = f"per chunk (median of {len(times)})"
    axes.text(0.98, 0.85, note, transform=axes.transAxes, fontsize=8, color=style.MUTED, ha="right", va="top")
    axes.set_xlabel("Requested at (s)")
    axes.set_xlim(0.0, SECONDS + 1)


def draw() -> Figure:
    """The figure."""
    with style.applied():
        figure = Figure(figsize=(9.0, 3.6), layout="constrained")
        figure.suptitle(
            "A video chunk of 100 kB a second, 0.5 % loss: how long does each take? (simulated)",
            x=0.01,
            ha="left",
            fontweight="bold",
        )
        first: Axes | None = None
        longest = 0.0
        for number, (title, subtitle, scenario, changes, colour) in enumerate(COLUMNS, start=1):
            axes = figure.add_subplot(1, len(COLUMNS), number, sharey=first)
            found = chunks(scenario, changes)
            longest = max(longest, *(time for _, time in found))
            column(axes, title, subtitle, found, colour)
            first = first or axes
        if first is not None:
            # Room above the stems for the medians.
            first.set_ylim(0.0, longest * 1.45)
            first.set_ylabel("Seconds until it is complete")
        return figure


def main() -> None:
    """Runs the three and writes the figure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", metavar="FILE", type=Path, default=ROOT / "docs" / "images" / "one-pipe.png")
    file = parser.parse_args().out
    file.parent.mkdir(parents=True, exist_ok=True)
    style.save(draw(), file)
    print(file)


if __name__ == "__main__":
    main()
