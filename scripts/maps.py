#!/usr/bin/env python3
"""Sweeps the plans `stickiness` and `pud`, draws their maps, and writes what they say into docs/validation/maps.md.

    .venv/bin/python scripts/maps.py --write docs/validation/maps.md

Runs are kept in runs/maps (`--store`), so a second start makes what is missing. The same build gives the same page
and figures.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from page_tables import replaced
from rich.console import Console

from anabranch.cli.plan import cores
from anabranch.experiments import plan as plans
from anabranch.experiments import summary
from anabranch.experiments.contrast import Comparison, Entry, Verdict
from anabranch.experiments.executor import Threads
from anabranch.experiments.plan import Plan
from anabranch.experiments.progress import Bar
from anabranch.experiments.store import Store
from anabranch.experiments.sweep import Experiment, sweep
from anabranch.figures import style
from anabranch.report import charts, paper
from anabranch.system import provenance
from anabranch.wording import numerals, quantities

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
PLANS = ("stickiness", "pud")
# In the order of the table.
KINDS = (
    ("better", (Verdict.BETTER,)),
    ("worse", (Verdict.WORSE,)),
    ("the same", (Verdict.EQUIVALENT, Verdict.IDENTICAL)),
    ("undecided", (Verdict.UNDECIDED,)),
)


@dataclass(frozen=True)
class Place:
    """One of the compared at a place of the map."""

    comparison: Comparison
    entry: Entry

    @property
    def difference(self) -> float:
        """The mean of the paired differences."""
        assert self.entry.difference is not None
        return self.entry.difference.mean.estimate

    @property
    def name(self) -> str:
        """The values of the axes."""
        return charts.facet(self.comparison.facet)

    def said(self) -> str:
        """The difference with its interval and unit, and the mean of the reference."""
        assert self.entry.difference is not None
        quantity = quantities.of_metric(self.comparison.contrast.metric)
        unit, scale = quantity.unit, quantity.scale
        mean, reference = self.entry.difference.mean, self.comparison.reference.mean
        found = numerals.plus_minus(mean.estimate * scale, mean.half_width * scale)
        base = numerals.plus_minus(reference.estimate * scale, reference.half_width * scale)
        return f"{'' if mean.estimate < 0 else '+'}{found}{f' {unit}' if unit else ''}, from {base}, at {self.name}"


def main() -> None:
    """Writes the page's part between the markers, and the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, default=Path("runs") / "maps", help="where runs are kept")
    parser.add_argument("--jobs", type=int, default=cores(), help="threads")
    parser.add_argument("--write", type=Path, metavar="FILE", help="the page")
    options = parser.parse_args()
    for name in PLANS:
        read = plans.load(name)
        found = _swept(read, options.store / name, options.jobs)
        text = "\n".join(_text(read, found))
        if options.write is None:
            print(text)
            continue
        _draw(read, found)
        _put(options.write, name, text)


def _swept(plan: Plan, folder: Path, jobs: int) -> list[Comparison]:
    with Store(folder, provenance.build()) as store, Bar(Console(stderr=True)) as bar:
        result = sweep(Experiment.of(plan), store, execute=Threads(jobs), progress=bar)
    if result.failed:
        raise SystemExit(f"{folder}: {result.failed} runs failed")
    return result.comparisons


def _draw(plan: Plan, found: Sequence[Comparison]) -> None:
    (figure,) = plan.figures
    panels = list(charts.maps(figure, found, plan.name))
    drawn = paper.maps(panels, columns=2)
    for ending in ("svg", "png"):
        style.save(drawn, IMAGES / f"map-{plan.name}.{ending}")


def _text(plan: Plan, found: Sequence[Comparison]) -> Iterator[str]:
    """What the comparisons say: every number is theirs."""
    places = [Place(each, entry) for each in found for entry in each.entries if entry.difference is not None]
    tests, contrast = found[0].tests, found[0].contrast
    reference = summary.named(found[0].reference.labels)
    yield f"![{quantities.of_metric(contrast.metric).name} over two axes](../images/map-{plan.name}.png)"
    yield ""
    better = "higher" if contrast.higher_is_better else "lower"
    quantity = quantities.of_metric(contrast.metric)
    yield (
        f"*Difference of {quantity.labelled} from {reference}, where {better} is better: mean of "
        f"{found[0].pairs} paired seeds at {len(found)} places. Green: certainly better; brown: certainly worse "
        f"(p < 0.05 after Holm's correction for {tests} tests); ?: undecided; the rest is the same.*"
    )
    yield ""
    heads = ("compared", *(name for name, _ in KINDS), "largest certain gain", "largest certain loss")
    yield f"| {' | '.join(heads)} |"
    yield f"| --- |{' ---: |' * len(KINDS)} --- | --- |"
    for name in sorted({summary.named(place.entry.labels) for place in places}):
        own = [place for place in places if summary.named(place.entry.labels) == name]
        counts = Counter(place.entry.verdict for place in own)
        numbers = [str(sum(counts[verdict] for verdict in verdicts)) for _, verdicts in KINDS]
        yield f"| {' | '.join((name, *numbers, _largest(own, Verdict.BETTER), _largest(own, Verdict.WORSE)))} |"
    yield ""
    yield from _where(places, len(found))


def _largest(places: Sequence[Place], verdict: Verdict) -> str:
    certain = [place for place in places if place.entry.verdict is verdict]
    return max(certain, key=lambda place: abs(place.difference)).said() if certain else "none"


def _where(places: Sequence[Place], number: int) -> Iterator[str]:
    """At which values of each axis something is certain."""
    certain = [place for place in places if place.entry.verdict in (Verdict.BETTER, Verdict.WORSE)]
    there = {place.name for place in certain}
    quantity = quantities.of_metric(places[0].comparison.contrast.metric)
    unit, scale = quantity.unit, quantity.scale
    ends = [
        end * scale
        for place in places
        if (found := place.entry.difference)
        for end in (found.mean.low, found.mean.high)
    ]
    reach = [numerals.column([end], most=2)[0] for end in (min(ends), max(ends))]
    yield (
        f"Something differs for certain at {len(there)} of {number} places. All 95 % intervals of differences, certain "
        f"or not, are between {reach[0]} and +{reach[1]}{f' {unit}' if unit else ''}. By axis, better and worse of all "
        "that was compared there:"
    )
    yield ""
    facet = places[0].comparison.facet
    names = quantities.of_keys(list(facet))
    for axis in facet:
        parts = []
        for value in dict.fromkeys(place.comparison.facet[axis] for place in places):
            own = Counter(place.entry.verdict for place in places if place.comparison.facet[axis] == value)
            parts.append(f"{value}: {own[Verdict.BETTER]} and {own[Verdict.WORSE]} of {sum(own.values())}")
        yield f"- **{names[axis]}** {'; '.join(parts)}"


def _put(page: Path, name: str, text: str) -> None:
    page.write_text(replaced(page.read_text(encoding="utf-8"), name, text), encoding="utf-8")


if __name__ == "__main__":
    main()
