"""What a sweep found, for people: sentences with verdicts, and tables that fit a terminal of 80 columns."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl
from rich.table import Table
from rich.text import Text

from anabranch.experiments import versions
from anabranch.experiments.blocks import mean_of_condition
from anabranch.experiments.contrast import Alternative, Comparison, ContrastVerdict
from anabranch.experiments.effects import Effect
from anabranch.experiments.sampling import Unit
from anabranch.experiments.statistics import SIGNIFICANCE, Interval
from anabranch.wording import numerals, quantities
from anabranch.wording.summary import plural

_STYLES = {
    ContrastVerdict.REFERENCE: "bold",
    ContrastVerdict.BETTER: "green",
    ContrastVerdict.WORSE: "red",
    ContrastVerdict.EQUIVALENT: "cyan",
    ContrastVerdict.IDENTICAL: "cyan",
    ContrastVerdict.UNDECIDED: "yellow",
}
# More conditions than this are read in the table's file.
_MOST_ROWS = 24


def named(labels: Mapping[str, Any]) -> str:
    """A condition in a sentence."""
    return " + ".join(str(value) for value in labels.values())


def sentences(comparison: Comparison) -> Iterator[str]:
    """What a comparison says."""
    where = f"{_facet(comparison)}: " if comparison.facet else ""
    yield from (
        f"{where if verdict is ContrastVerdict.REFERENCE else ''}{sentence}" for verdict, sentence in said(comparison)
    )
    yield from effect_sentences(comparison)
    yield from (f"Note: {note}." for note in comparison.notes)


def said(comparison: Comparison) -> Iterator[tuple[ContrastVerdict, str]]:
    """What a comparison says, a sentence for each verdict that occurs."""
    contrast, reference = comparison.contrast, comparison.reference
    quantity = quantities.of_metric(contrast.metric)
    (mean,) = intervals([reference.mean], contrast.metric)
    value = f"{quantity.name}, {mean}{f' {quantity.unit}' if quantity.unit else ''}"
    chosen = "has the best mean of" if contrast.reference is None else "is the reference of"
    yield ContrastVerdict.REFERENCE, f"{named(reference.labels)} {chosen} {value} ({sampled(comparison)})."
    counts = {verdict: [e for e in comparison.entries if e.verdict is verdict] for verdict in ContrastVerdict}
    for word, entries in counts.items():
        if entries and word in _PHRASES:
            yield word, f"{_listed(entries)} {_is(entries)} {_PHRASES[word]}."
    if undecided := counts[ContrastVerdict.UNDECIDED]:
        yield ContrastVerdict.UNDECIDED, _undecided(undecided)


def sampled(comparison: Comparison) -> str:
    """From what a comparison is: pairs, networks, seeds."""
    seeds = plural(comparison.seeds, "seed")
    networks = f"{plural(comparison.units, 'network')} with " if comparison.unit is Unit.NETWORK else ""
    return f"{plural(comparison.pairs, 'pair')} from {networks}{seeds}"


def effect_sentences(comparison: Comparison) -> Iterator[str]:
    """What two factors change on average, and whether one changes what the other does, as far as it can be tested."""
    names = quantities.of_keys(comparison.contrast.between)
    for effect in comparison.effects:
        if math.isnan(effect.p_value):
            continue
        first, *others = (f"the {names[factor]}" for factor in effect.factors)
        p = f"p {_p_phrase(effect)}"
        if others:
            depends = "depends" if effect.is_certain else "does not certainly depend"
            name = quantities.of_metric(comparison.contrast.metric).name
            yield f"What {first} changes in {name} {depends} on {others[0]} ({p})."
        else:
            matters = "matters" if effect.is_certain else "makes no certain difference"
            yield f"On average over the other factor, {first} {matters} ({p})."


def _p_phrase(effect: Effect) -> str:
    text = p_value(effect.p_value)
    return text if text.startswith("<") else f"= {text}"


def effects_table(comparison: Comparison) -> Table:
    """The main effects: a row per value of a factor, with its mean over the other factor."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("on average", overflow="fold")
    metric = comparison.contrast.metric
    for head in ("mean ± 95 %", "difference ± 95 %"):
        table.add_column(_with_unit(head, metric), justify="right", no_wrap=True)
    for effect in comparison.effects:
        means = intervals([level.mean for level in effect.levels], metric)
        others = [level.difference for level in effect.levels if level.difference is not None]
        differences = iter(intervals(others, metric))
        for level, mean in zip(effect.levels, means, strict=True):
            table.add_row(str(level.label), mean, "" if level.difference is None else next(differences))
    return table


_PHRASES = {
    ContrastVerdict.BETTER: "certainly better",
    ContrastVerdict.WORSE: "certainly worse",
    ContrastVerdict.EQUIVALENT: "equivalent",
    ContrastVerdict.IDENTICAL: "identical in every pair",
}
_MOST_LISTED = 3


def _is(entries: Sequence[Alternative]) -> str:
    return "is" if len(entries) == 1 else "are"


def _listed(entries: Sequence[Alternative]) -> str:
    if len(entries) > _MOST_LISTED:
        return f"{len(entries)} others"
    return ", ".join(named(entry.labels) for entry in entries)


def _undecided(entries: Sequence[Alternative]) -> str:
    one = len(entries) == 1
    undecided = f"{_listed(entries)} {_is(entries)} undecided"
    if all(entry.difference is not None and len(entry.difference.by_unit) == 1 for entry in entries):
        return f"{undecided}: with a single {entries[0].unit} there is no interval."
    verdict = f"{undecided}: {'the difference is' if one else 'the differences are'} not certain"
    known = [(entry.more, named(entry.labels)) for entry in entries if entry.more is not None]
    if not known:
        return f"{verdict}, and too small to be shown by a practical number of runs."
    more, first = min(known, key=lambda each: each[0].number)
    needed = f"about {plural(more.number, f'more {more.of}')}"
    return f"{verdict}. To show {'one' if one else f'that of {first}'} as large as measured, {needed} are needed."


def comparison_table(comparison: Comparison) -> Table:
    """The compared with their means, differences from the reference, and verdicts."""
    contrast = comparison.contrast
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    names = quantities.of_keys(list(contrast.between))
    for column in contrast.between:
        table.add_column(names[column], overflow="fold")
    for head in ("mean ± 95 %", "difference ± 95 %"):
        table.add_column(_with_unit(head, contrast.metric), justify="right", no_wrap=True)
    table.add_column("p (Holm)", justify="right", no_wrap=True)
    wanted = {entry.more.of for entry in comparison.entries if entry.more is not None}
    (unit,) = wanted if len(wanted) == 1 else (None,)
    table.add_column(f"verdict, + {unit}s" if unit else "verdict", no_wrap=True)
    means = intervals([entry.mean for entry in comparison.entries], contrast.metric)
    others = [entry.difference.mean for entry in comparison.entries if entry.difference is not None]
    differences = iter(intervals(others, contrast.metric))
    for entry, mean in zip(comparison.entries, means, strict=True):
        difference = next(differences) if entry.difference is not None else ""
        shown_p = p_value(entry.p_value) if entry.difference is not None else ""
        texts = [str(value) for value in entry.labels.values()]
        found = Text(verdict(entry, named_unit=unit is None), style=_STYLES[entry.verdict])
        table.add_row(*texts, mean, difference, shown_p, found)
    return table


def versions_table(comparisons: Sequence[Comparison]) -> Table:
    """Tables compared with the first of them: a row per metric and table."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("metric", overflow="fold")
    table.add_column("table", overflow="fold")
    for head in ("mean ± 95 %", "difference ± 95 %", "p (Holm)"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for comparison in comparisons:
        entries = sorted(comparison.entries, key=lambda entry: entry.difference is not None)
        metric = versions.metric_of(comparison)
        means = intervals([entry.mean for entry in entries], metric)
        for entry, mean in zip(entries, means, strict=True):
            own = next(iter(entry.labels.values()))
            if entry.difference is None:
                table.add_row(quantities.of_metric(metric).labelled, str(own), mean, "", "", "")
                continue
            (difference,) = intervals([entry.difference.mean], metric)
            found = Text(_HIGHER.get(entry.verdict, verdict(entry)), style=_STYLES[entry.verdict])
            table.add_row("", str(own), mean, difference, p_value(entry.p_value), found)
    return table


# Which direction is better is not known here.
_HIGHER = {ContrastVerdict.BETTER: "higher", ContrastVerdict.WORSE: "lower"}


def verdict(entry: Alternative, *, named_unit: bool = True) -> str:
    """The verdict, and how many more seeds or networks would decide it."""
    if entry.more is None:
        return str(entry.verdict)
    unit = f" {entry.more.of}{'' if entry.more.number == 1 else 's'}" if named_unit else ""
    return f"undecided, +{entry.more.number}{unit}"


def p_value(value: float) -> str:
    """A p-value; a dash where there is none."""
    if math.isnan(value):
        return numerals.ABSENT
    return "< 0.001" if value < _SMALLEST_P else f"{value:.3f}"


_SMALLEST_P = 0.001


def intervals(found: Sequence[Interval], metric: str) -> list[str]:
    """Means or differences of a metric with half their intervals, in the unit in which people read it.

    All have the same number of decimals, so many as the narrowest interval deserves.
    """
    scale = quantities.of_metric(metric).scale
    values = [(each.estimate * scale, each.half_width * scale) for each in found]
    widths = [width for _, width in values if math.isfinite(width) and width > 0]
    places = numerals.decimals([min(widths)], 2) if widths else numerals.decimals([value for value, _ in values])
    # No more than five digits of the largest: a narrow interval next to a wide one deserves no more.
    places = min(places, numerals.decimals([value for value, _ in values], 5))
    return [_plus_minus(value, width, places) for value, width in values]


def _plus_minus(value: float, width: float, places: int) -> str:
    if math.isnan(value):
        return numerals.ABSENT
    return f"{value:z.{places}f} ± {width:.{places}f}" if math.isfinite(width) else f"{value:z.{places}f} ± ?"


def _with_unit(head: str, metric: str) -> str:
    """The head of a column, with the unit below it."""
    unit = quantities.of_metric(metric).unit
    return f"{head}\n{unit}" if unit else head


def method(comparisons: Sequence[Comparison]) -> str:
    """How the verdicts came about, and which tests were counted."""
    units = {comparison.unit for comparison in comparisons}
    if units == {Unit.SEED}:
        one = "a seed"
    else:
        one = "a network" if units == {Unit.NETWORK} else "a network, or a seed where there is one network,"
    families = list({comparison.family: None for comparison in comparisons})
    parts = [
        f"{f'family {family.name}: ' if family.name else ''}{plural(family.tests, 'test')} ({family.counted})"
        for family in families
    ]
    return (
        f"Differences are paired, and {one} is one value. Each interval is a 95 % interval by Student's t, not "
        "corrected for the number of comparisons. P-values are of paired t-tests, corrected by Holm for "
        f"{'; '.join(parts)}; certain: p < {SIGNIFICANCE}."
    )


def _facet(comparison: Comparison) -> str:
    names = quantities.endings(list(comparison.facet))
    return ", ".join(f"{names[key]}={value}" for key, value in comparison.facet.items())


def means_table(
    sessions: pl.DataFrame, axes: Sequence[str], metrics: Sequence[str], *, whole: bool = False
) -> Table | None:
    """Means with intervals of some columns, a row for each combination of the axes' values; ``None`` without values.

    Args:
        sessions: A row per session.
        axes: Columns whose values make a row each. What else was varied is pooled: a network is one value.
        metrics: The columns.
        whole: Whether all rows are shown, and not only the first.
    """
    metrics = [metric for metric in metrics if metric in sessions.columns]
    rows = sessions.filter(pl.col("error").is_null())
    if not metrics or not rows.height:
        return None
    names = quantities.of_keys(list(axes))
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for axis in axes:
        table.add_column(names[axis], overflow="fold")
    for metric in metrics:
        name = quantities.of_metric(metric).name
        table.add_column(_with_unit(name, metric), justify="right", overflow="fold")
    groups = rows.partition_by(list(axes), maintain_order=True, as_dict=True) if axes else {(): rows}
    shown = list(groups.items())[: None if whole else _MOST_ROWS]
    columns = [means([part for _, part in shown], metric) for metric in metrics]
    for (labels, _), *texts in zip(shown, *columns, strict=True):
        table.add_row(*map(str, labels), *texts)
    if len(groups) > len(shown):
        table.caption = f"and {plural(len(groups) - len(shown), 'condition')} more, in the file"
    return table


def means(parts: Sequence[pl.DataFrame], metric: str) -> list[str]:
    """The means of conditions, each with the interval of its networks, or of its seeds where there is one network."""
    return intervals([mean_of_condition(part, metric) for part in parts], metric)


def pooled(sessions: pl.DataFrame, axes: Sequence[str]) -> str:
    """Of what a mean over these axes is, in a sentence; empty where none of them has several values."""
    counts = {axis: sessions[axis].n_unique() for axis in axes if axis in sessions.columns}
    several = [f"{number} values of {axis}" for axis, number in counts.items() if number > 1]
    if not several:
        return ""
    options = " or ".join(f"--by {axis}" for axis in axes)
    seeds = plural(sessions["seed"].n_unique(), "seed")
    over = f"A mean is over {' and '.join(several)} with {seeds}; a network is one value."
    return f"{over} {options} shows a row for each."
