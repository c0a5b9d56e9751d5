#!/usr/bin/env python3
"""Draws the goodput of simulation and kernel, from the tables of docs/validation/kernel.md.

    .venv/bin/python scripts/kernel-figure.py [--out docs/images/kernel-agreement.png]

Left: simulated over measured goodput of every test case that compares goodput. Right: the difference of the two means
in per cent, with its 90 % interval.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullLocator

mpl.use("Agg")
import matplotlib.pyplot as plt

from anabranch.figures import style

ROOT = Path(__file__).parents[1]
TABLES = ROOT / "docs" / "validation" / "kernel.md"
FIGURE = ROOT / "docs" / "images" / "kernel-agreement.png"

# Part, label of the legend, marker.
PARTS = (
    ("a", "one path, TCP, kernel's server", "o"),
    ("b", "two paths, kernel's server", "s"),
    ("c", "our server, kernel's client", "^"),
    ("e", "two paths, one cut and restored", "D"),
)
TICKS_MBPS = (0.5, 1, 2, 5, 10, 20)
# A third of the tolerance of part (a), and half of that of the other parts.
BAND_PERCENT = 5.0


@dataclass(frozen=True)
class Comparison:
    """The goodput of one test case; rates in Mb/s, the difference and its interval in per cent."""

    part: str
    simulated: float
    kernel: float
    difference: float
    low: float
    high: float


def read(page: str) -> list[Comparison]:
    """The comparisons of goodput in the tables of the page.

    Raises:
        ValueError: A row is not of the expected form.
    """
    found = []
    part, drawn = "", {letter for letter, _, _ in PARTS}
    for line in page.splitlines():
        if heading := re.match(r"### \((\w)\) ", line):
            part = heading[1]
        columns = [text.strip() for text in line.strip("|").split("|")]
        if len(columns) != 7 or columns[1] != "goodput, Mb/s" or part not in drawn:
            continue
        ratio = re.fullmatch(r"([+-][\d.]+) %, ([+-][\d.]+) to ([+-][\d.]+)", columns[4])
        if ratio is None:
            raise ValueError(f"unexpected ratio: {line}")
        difference, low, high = map(float, ratio.groups())
        found.append(Comparison(part, float(columns[2]), float(columns[3]), difference, low, high))
    return found


def draw(comparisons: list[Comparison], out: Path) -> None:
    """Draws both panels into a file."""
    with style.applied():
        figure, (goodput, difference) = plt.subplots(1, 2, figsize=(9.0, 4.1), layout="constrained")
        goodput.plot((0.4, 25), (0.4, 25), color=style.MUTED, linewidth=0.8, zorder=1)
        difference.axhspan(-BAND_PERCENT, BAND_PERCENT, color=style.GRID, alpha=0.6, linewidth=0)
        difference.axhline(0, color=style.MUTED, linewidth=0.8)
        for (part, label, marker), of_path in zip(PARTS, style.PATHS, strict=False):
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
    comparisons = read(TABLES.read_text("utf-8"))
    draw(comparisons, arguments.out)
    differences = [abs(comparison.simulated / comparison.kernel - 1) * 100 for comparison in comparisons]
    within = sum(difference <= 2 for difference in differences)
    print(f"{arguments.out}: {len(differences)} comparisons, {within} within 2 %, the largest {max(differences):.1f} %")


if __name__ == "__main__":
    main()
