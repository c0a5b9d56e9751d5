#!/usr/bin/env python3
"""Draws the goodput of simulation and kernel, from the tables of docs/validation/kernel.md.

    .venv/bin/python scripts/kernel-figure.py [--out docs/images/kernel-agreement.png]

Left: simulated over measured goodput of every test case that compares goodput. Right: the difference of the two means
in per cent, with its 90 % interval.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullLocator

mpl.use("Agg")
import matplotlib.pyplot as plt
from goodput import PARTS, Comparison, read

from anabranch.figures import style

ROOT = Path(__file__).parents[1]
FIGURE = ROOT / "docs" / "images" / "kernel-agreement.png"

# Of each part.
MARKERS = ("o", "s", "^", "D")
TICKS_MBPS = (0.5, 1, 2, 5, 10, 20)
# A third of the tolerance of part (a), and half of that of the other parts.
BAND_PERCENT = 5.0


def draw(comparisons: list[Comparison], out: Path) -> None:
    """Draws both panels into a file."""
    with style.applied():
        figure, (goodput, difference) = plt.subplots(1, 2, figsize=(9.0, 4.1), layout="constrained")
        goodput.plot((0.4, 25), (0.4, 25), color=style.MUTED, linewidth=0.8, zorder=1)
        difference.axhspan(-BAND_PERCENT, BAND_PERCENT, color=style.GRID, alpha=0.6, linewidth=0)
        difference.axhline(0, color=style.MUTED, linewidth=0.8)
        for (part, label), marker, of_path in zip(PARTS.items(), MARKERS, style.PATHS, strict=False):
            of_part = [comparison for comparison in comparisons if comparison.part == part]
            kernel = [comparison.kernel for comparison in of_part]
            look = {"color": of_path.colour, "marker": marker, "markersize": 4.5, "alpha": 0.85, "markeredgewidth": 0}
            goodput.plot(
                kernel, [c.simulated for c in of_part], linestyle="", label=f"{label} ({len(of_part)})", **look
            )
            bars = [[c.difference - c.low for c in of_part], [c.high - c.difference for c in of_part]]
            difference.errorbar(
                kernel, [c.difference for c in of_part], bars, linestyle="", elinewidth=0.8, capsize=0, **look
            )
        logarithmic(goodput, both=True)
        logarithmic(difference, both=False)
        goodput.set(title="Goodput (Mb/s)", xlabel="Linux kernel", ylabel="simulated", aspect="equal")
        goodput.legend(loc="upper left", handletextpad=0.2, borderpad=0.1)
        difference.set(title="Simulated minus kernel (%), 90 % interval", xlabel="goodput of the Linux kernel (Mb/s)")
        difference.set_ylim(-10, 10)
        style.few_ticks(difference, 4)
        style.save(figure, out)
        plt.close(figure)


def logarithmic(axes: Axes, *, both: bool) -> None:
    """Gives the axes of goodput a logarithmic scale with round numbers."""
    limits = (TICKS_MBPS[0] * 0.8, TICKS_MBPS[-1] * 1.25)
    axes.set(xscale="log", xlim=limits)
    if both:
        axes.set(yscale="log", ylim=limits)
    for axis in (axes.xaxis, axes.yaxis) if both else (axes.xaxis,):
        axis.set_major_locator(FixedLocator(TICKS_MBPS))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(lambda value, _position: f"{value:g}")


def main() -> None:
    """Reads the tables and draws the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=FIGURE)
    arguments = parser.parse_args()
    draw(read(), arguments.out)
    print(arguments.out)


if __name__ == "__main__":
    main()
