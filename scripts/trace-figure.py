#!/usr/bin/env python3
"""Draws recorded traces and synthetic ones of the same lengths and means: course, distribution, autocorrelation.

    .venv/bin/python scripts/trace-figure.py --kind lte --out lte.png report_car_000*.json
    .venv/bin/python scripts/trace-figure.py --kind wifi-walk --unit B/s --out walk.png *_wifi.csv

The picture contains recorded data, which may not be free to be passed on.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray

mpl.use("Agg")
import matplotlib.pyplot as plt

from anabranch import _core, traces

MOST_LAG_S = 40
SHOWN_COURSES = 3
RECORDED, MADE_UP = "tab:blue", "tab:orange"

Samples = NDArray[np.float64]


def read(content: bytes, name: str, unit: str | None, column: str | None) -> Samples:
    """The mean rates of a trace's seconds in Mb/s."""
    known = traces.read_as(unit=unit, rate_column=column)
    return _core.trace_info(content, name=name, read_as=known)[1] / 1e6


def make_up(kind: str, like: Samples, seed: int) -> Samples:
    """The same of a synthetic trace of this length and mean."""
    text = _core.trace_synthesize(
        kind,
        mean=f"{like.mean():.6f} Mb/s",
        duration=f"{len(like)} s",
        seed=seed,
        target="-",
        target_format="columns",
        step="1 s",
    )
    return read(text.encode(), "made up", None, None)


def autocorrelation(samples: Samples) -> Samples:
    """From lag 0 on, up to a third of the trace."""
    centred = samples - samples.mean()
    lags = range(min(MOST_LAG_S, len(samples) // 3) + 1)
    products = [np.dot(centred[: len(centred) - lag], centred[lag:]) for lag in lags]
    return np.array(products, dtype=np.float64) / float(np.dot(centred, centred))


def main() -> None:
    """Reads, makes up, draws."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--kind", required=True)
    parser.add_argument("--unit")
    parser.add_argument("--column")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    recorded = [read(file.read_bytes(), str(file), arguments.unit, arguments.column) for file in arguments.files]
    recorded = [samples for samples in recorded if samples.mean() > 0 and samples.std() > 0]
    made = [make_up(arguments.kind, samples, seed) for seed, samples in enumerate(recorded)]

    figure = plt.figure(figsize=(11, 8), layout="constrained")
    grid = figure.add_gridspec(3, 2)
    groups = (("recorded", recorded, RECORDED), ("made up", made, MADE_UP))
    for row, (name, of_group, colour) in enumerate(groups):
        axes = figure.add_subplot(grid[row, :])
        for samples, style in zip(of_group[:SHOWN_COURSES], ("-", "--", ":"), strict=False):
            axes.plot(samples, style, color=colour, linewidth=1)
        axes.set(
            title=f"{name}: the first {min(SHOWN_COURSES, len(of_group))}",
            xlabel="time (s)",
            ylabel="rate (Mb/s)",
            ylim=(0, None),
        )
    distribution, correlation = figure.add_subplot(grid[2, 0]), figure.add_subplot(grid[2, 1])
    for name, of_group, colour in groups:
        pooled = np.sort(np.concatenate([samples / samples.mean() for samples in of_group]))
        distribution.plot(pooled, np.linspace(0, 1, len(pooled)), color=colour, label=name)
        curves = [autocorrelation(samples) for samples in of_group]
        shortest = min(len(curve) for curve in curves)
        correlation.plot(np.mean([curve[:shortest] for curve in curves], axis=0), color=colour, label=name)
    distribution.set(xlabel="rate / mean of the trace", ylabel="share of seconds", xlim=(0, 4), ylim=(0, 1))
    correlation.set(xlabel="lag (s)", ylabel="autocorrelation", ylim=(-0.3, 1))
    distribution.legend()
    figure.savefig(arguments.out, dpi=110)
    print(f"picture: {arguments.out}, {len(recorded)} traces")


if __name__ == "__main__":
    main()
