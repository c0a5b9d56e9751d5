"""The goodput of simulation and kernel in bulk transfers, from the tables of docs/validation/kernel.md."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

TABLES = Path(__file__).resolve().parent.parent / "docs" / "validation" / "kernel.md"
PARTS = {
    "a": "one path, TCP, kernel's server",
    "b": "two paths, kernel's server",
    "c": "our server, kernel's client",
    "e": "two paths, one cut and restored",
}
"""The parts of that page whose transfers are compared in one figure, by letter, with what each has."""


@dataclass(frozen=True)
class Comparison:
    """The goodput of one test case; rates in Mb/s, the difference and its interval in per cent."""

    part: str
    simulated: float
    kernel: float
    difference: float
    low: float
    high: float

    @property
    def off_percent(self) -> float:
        """How far apart the two means are, in per cent of the kernel's."""
        return abs(self.simulated / self.kernel - 1.0) * 100.0


def read() -> list[Comparison]:
    """The comparisons of goodput in the tables.

    Raises:
        ValueError: A row is not of the expected form.
    """
    found = []
    part = ""
    for line in TABLES.read_text("utf-8").splitlines():
        if heading := re.match(r"### \((\w)\) ", line):
            part = heading[1]
        columns = [text.strip() for text in line.strip("|").split("|")]
        if len(columns) != 7 or columns[1] != "goodput, Mb/s" or part not in PARTS:
            continue
        ratio = re.fullmatch(r"([+-][\d.]+) %, ([+-][\d.]+) to ([+-][\d.]+)", columns[4])
        if ratio is None:
            raise ValueError(f"unexpected ratio: {line}")
        difference, low, high = map(float, ratio.groups())
        found.append(Comparison(part, float(columns[2]), float(columns[3]), difference, low, high))
    return found
