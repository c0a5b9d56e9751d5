"""At how many places of each map a difference is certain, and how large it is: every number is of the comparisons."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from anabranch.experiments import summary
from anabranch.experiments.claims import Filled, table
from anabranch.experiments.contrast import Alternative, Comparison, ContrastVerdict
from anabranch.experiments.statistics import Interval
from anabranch.experiments.study import Study
from anabranch.wording import numerals, quantities
from anabranch.wording.quantities import Quantity

# In the order of the tables.
KINDS = (
    ("better", (ContrastVerdict.BETTER,)),
    ("worse", (ContrastVerdict.WORSE,)),
    ("the same", (ContrastVerdict.EQUIVALENT, ContrastVerdict.IDENTICAL)),
    ("undecided", (ContrastVerdict.UNDECIDED,)),
)
CERTAIN = (ContrastVerdict.BETTER, ContrastVerdict.WORSE)


@dataclass(frozen=True)
class Place:
    """One of the compared at a place of the map."""

    comparison: Comparison
    entry: Alternative
    difference: Interval

    @property
    def compared(self) -> str:
        """What is compared there."""
        return summary.named(self.entry.labels)

    @property
    def quantity(self) -> Quantity:
        """What differs."""
        return quantities.of_metric(self.comparison.contrast.metric)

    @property
    def name(self) -> str:
        """The values of the axes."""
        facet = self.comparison.facet
        names = quantities.of_keys(list(facet))
        return ", ".join(f"{names[key]} = {value}" for key, value in facet.items())

    @property
    def text(self) -> str:
        """The difference with its interval and unit, and the mean of the reference."""
        unit, scale = self.quantity.unit, self.quantity.scale
        found, reference = self.difference, self.comparison.reference.mean
        difference = numerals.plus_minus(found.estimate * scale, found.half_width * scale)
        base = numerals.plus_minus(reference.estimate * scale, reference.half_width * scale)
        sign = "" if found.estimate < 0 else "+"
        return f"{sign}{difference}{f' {unit}' if unit else ''}, from {base}, at {self.name}"


def places(study: Study, plan: str) -> list[Place]:
    """Each of the compared at each place."""
    return [
        Place(comparison, entry, entry.difference.mean)
        for comparison in study.comparisons(plan)
        for entry in comparison.entries
        if entry.difference is not None
    ]


def verdicts(study: Study, plan: str) -> Filled:
    """How often each of the compared has which verdict, and its largest certain differences."""
    every = places(study, plan)
    rows = []
    for name in sorted({place.compared for place in every}):
        own = [place for place in every if place.compared == name]
        counts = Counter(place.entry.verdict for place in own)
        numbers = [str(sum(counts[verdict] for verdict in kind)) for _, kind in KINDS]
        rows.append([name, *(largest(own, verdict) for verdict in CERTAIN), *numbers])
    head = ("compared", "largest certain gain", "largest certain loss", *(name for name, _ in KINDS))
    return head, rows, note(every, len(study.comparisons(plan)))


def largest(own: Sequence[Place], verdict: ContrastVerdict) -> str:
    """The largest difference with a verdict."""
    certain = [place for place in own if place.entry.verdict is verdict]
    return max(certain, key=lambda place: abs(place.difference.estimate)).text if certain else "none"


def note(every: Sequence[Place], number: int) -> str:
    """At how many places something differs, and how far the intervals reach."""
    certain = {place.name for place in every if place.entry.verdict in CERTAIN}
    unit, scale = every[0].quantity.unit, every[0].quantity.scale
    ends = [end * scale for place in every for end in (place.difference.low, place.difference.high)]
    low, high = (numerals.column([end], most=2)[0] for end in (min(ends), max(ends)))
    return (
        f"Something differs for certain at {len(certain)} of {number} places. All 95 % intervals of differences, "
        f"certain or not, are between {low} and +{high}{f' {unit}' if unit else ''}."
    )


def axes(study: Study, plan: str) -> Filled:
    """At which values of each axis something is certain, of all that was compared there."""
    return ("axis", "value", "better", "worse", "of"), list(by_axis(places(study, plan)))


def by_axis(every: Sequence[Place]) -> Iterator[list[str]]:
    """A row per value of an axis."""
    facet = every[0].comparison.facet
    names = quantities.of_keys(list(facet))
    for axis in facet:
        for value in dict.fromkeys(place.comparison.facet[axis] for place in every):
            own = Counter(place.entry.verdict for place in every if place.comparison.facet[axis] == value)
            yield [names[axis], str(value), *(str(own[verdict]) for verdict in CERTAIN), str(own.total())]


@table("stickiness", "Stickiness: verdicts", texts=3, plans=("stickiness",))
def stickiness(study: Study) -> Filled:
    """Sticky schedulers, `blest` and `ecf` compared with `min-rtt`."""
    return verdicts(study, "stickiness")


@table("stickiness-axes", "Stickiness: where a difference is certain", texts=2, plans=("stickiness",))
def stickiness_axes(study: Study) -> Filled:
    """By load, round trip and reserve."""
    return axes(study, "stickiness")


@table("pud", "PUD: verdicts", texts=3, plans=("pud",))
def pud(study: Study) -> Filled:
    """PUD compared with a full mesh."""
    return verdicts(study, "pud")


@table("pud-axes", "PUD: where a difference is certain", texts=2, plans=("pud",))
def pud_axes(study: Study) -> Filled:
    """By media segments, queue and ratio of the rates."""
    return axes(study, "pud")
