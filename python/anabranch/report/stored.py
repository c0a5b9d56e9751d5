"""The report of a store: what the comparisons of its plan say, its figures, and its sessions."""

from __future__ import annotations

import math
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import polars as pl

from anabranch import _core
from anabranch.errors import InputError
from anabranch.experiments import origin, store, summary, sweep, table, unfinished, versions
from anabranch.experiments.conditions import Run
from anabranch.experiments.contrast import Alternative, Comparison, ContrastVerdict
from anabranch.experiments.contrast_spec import Contrast
from anabranch.experiments.origin import Origin
from anabranch.experiments.plan import Figure, Plan
from anabranch.report import charts, link_time, selection, why
from anabranch.report.document import (
    Block,
    Code,
    Column,
    Grid,
    Mark,
    Report,
    Section,
    Sessions,
    Statement,
    Statements,
    Text,
)
from anabranch.report.timelines import Timeline, of_session
from anabranch.results import columns
from anabranch.runs import explanation
from anabranch.system import provenance, regular
from anabranch.wording import numerals, quantities
from anabranch.wording.summary import plural, seeds_in_words

DEFAULT_METRICS = (
    "startup_s",
    "stalls",
    "stall_s",
    "mean_bitrate_bps",
    "switches",
    "qoe_linear_per_segment",
    "picture_discards",
    "goodput_bps",
    "path_switches",
)
"""Columns of the table of sessions besides those of the plan, as far as there are any."""

_MOST_NUMBERS = 12
# More comparisons are read in the table of all and in the store's file.
_MOST_COMPARISONS = 24
_MOST_DETAILS = 4
_KEY_DIGITS = 16
_WHERE = "Commands are for a shell in the plan's folder."
_TIMES = " \N{MULTIPLICATION SIGN} "
_LIBRARIES = ("numpy", "polars", "scipy")

Progress = Callable[[float], object]


@dataclass(frozen=True)
class _Swept:
    """A store's table with the plan that it is of.

    Attributes:
        folder: The store.
        origin: The plan's text, and where it was.
        plan: The plan.
        sessions: A row per session.
        comparisons: What its comparisons say.
        runs: The runs by the beginning of their keys, as the table has them.
    """

    folder: Path
    origin: Origin
    plan: Plan
    sessions: pl.DataFrame
    comparisons: list[Comparison]
    runs: Mapping[str, Run]

    @property
    def conditions(self) -> list[str]:
        """The axes that make conditions."""
        return list(self.plan.policies)


def of_store(path: Path, *, timelines: int, progress: Progress = lambda _: None) -> Report:
    """The report of a store, or of one of its tables where it has several.

    Args:
        path: The store, or a table in it.
        timelines: How many sessions get their timeline at most; their runs are made again.
        progress: Called with the fraction of these that is made.

    Raises:
        InputError: It is of another build, has no table, or what its plan names is no longer there.
    """
    swept = _read(path)
    chosen = selection.choose(
        swept.sessions.with_columns(pl.col("run").is_in(_simulated(swept)).alias(selection.KNOWN)),
        _compared(swept) or swept.conditions,
        _first_metric(swept),
        timelines,
    )
    made = _timelines(swept, chosen, progress)
    return Report(
        name=swept.plan.name,
        question=swept.plan.question,
        lead=_lead(swept),
        sections=[section for section in _sections(swept) if section.blocks or section.parts],
        sessions=_sessions(swept, chosen),
        timelines=made,
        appendix=[Section("Plan", [Code(f"{swept.plan.name}.toml", swept.origin.text)])],
        provenance=_provenance(swept),
    )


def _sections(swept: _Swept) -> Iterator[Section]:
    yield _findings(swept)
    yield _figures(swept)
    yield link_time.section(swept.sessions, swept.conditions)
    yield _conditions(swept)


def _simulated(swept: _Swept) -> list[str]:
    """The runs that can be made again exactly."""
    return [key for key, run in swept.runs.items() if not run.engine.is_live]


def _read(path: Path) -> _Swept:
    folder, file = table_of(path)
    store.check_build(folder, provenance.build())
    sessions, about = table.read(file)
    if about.library_sha256 != provenance.library_sha256():
        raise InputError(
            f"{file}: this table is of another build of anabranch ({about.version}); "
            f"`anabranch sweep PLAN --store {folder}` writes it again"
        )
    if not sessions.height:
        raise InputError(f"{file}: this table has no row; `anabranch sweep PLAN --store {folder}` makes the runs")
    found = origin.read(folder, file.stem)
    plan = found.plan()
    experiment = sweep.Experiment.of(plan)
    comparisons = sweep.compare(sessions, plan.contrasts, plan.columns)
    runs = {run.key.hex()[:_KEY_DIGITS]: run for run in experiment.runs(found.seeds)}
    missing = set(sessions["run"].unique()) - set(runs)
    if missing:
        raise InputError(
            f"{file}: the scenario of {found.path.name}, or a recording, is another one than that of this table; "
            f"`anabranch sweep {found.path} --store {folder}` makes the table of what is there now"
        )
    return _Swept(folder, found, plan, sessions, comparisons, runs)


def table_of(path: Path) -> tuple[Path, Path]:
    """The store, and the table that is meant."""
    if path.suffix == ".parquet":
        if not path.exists():
            raise InputError(f"{path}: there is no such table; expected a store, or a table of one")
        regular.check(path)
        return path.parent, path
    files = [file for file in sorted(path.glob("*.parquet")) if not file.stem.endswith(versions.DERIVED)]
    if not files:
        raise InputError(f"{path}: this store has no table yet; `anabranch sweep PLAN --store {path}` writes it")
    if len(files) > 1:
        raise InputError(f"{path}: this store has several tables; expected one of {', '.join(map(str, files))}")
    return path, files[0]


def _lead(swept: _Swept) -> str:
    plan, rows = swept.plan, swept.sessions
    runs = rows["run"].n_unique()
    conditions = math.prod(len(axis.points) for axis in plan.axes if not axis.drawn)
    networks = math.prod(len(axis.points) for axis in plan.axes if axis.drawn)
    factors = [plural(conditions, "condition"), plural(networks, "network") if networks > 1 else ""]
    factors.append(plural(len(swept.origin.seeds), "seed"))
    sessions = f" with {plural(rows.height, 'session')}" if rows.height != runs else ""
    live = rows.filter(pl.col("run").is_in(_simulated(swept)).not_())["run"].n_unique()
    kinds = [plural(runs - live, "simulated run") if runs > live else "", f"{live} in real time" if live else ""]
    text = f"{' and '.join(filter(None, kinds))}{sessions}: {_TIMES.join(filter(None, factors))}."
    failed = rows.filter(pl.col("error").is_not_null()).height
    return f"{text} {plural(failed, 'run')} failed." if failed else text


# --- What comparisons say -------------------------------------------------------------------------------------------


def _findings(swept: _Swept) -> Section:
    blocks: list[Block] = []
    if swept.comparisons:
        blocks.append(Text([f"{summary.method(swept.comparisons)} {_UNCORRECTED}"], quiet=True))
    if notes := list(dict.fromkeys(note for each in swept.comparisons for note in each.notes)):
        blocks.append(Statements([Statement("note", f"{note[0].upper()}{note[1:]}.", "open") for note in notes]))
    for number, each in enumerate(swept.plan.contrasts):
        own = [comparison for comparison in swept.comparisons if comparison.contrast is each]
        if len(own) > 1:
            blocks.append(_overview(each, own, f"overview-{number + 1}"))
    shown = swept.comparisons[:_MOST_COMPARISONS]
    parts = [_comparison(each, number + 1) for number, each in enumerate(shown)]
    if (more := len(swept.comparisons) - len(shown)) > 0:
        blocks.append(Text([f"{plural(more, 'comparison')} more are in the store's file of comparisons."], quiet=True))
    if len(parts) == 1:
        return Section("Findings", [*parts[0].blocks, *blocks])
    return Section("Findings", blocks, parts)


def _comparison(comparison: Comparison, number: int) -> Section:
    found = [
        Statement(_word(comparison, verdict), sentence, charts.TONES[verdict], _detail(comparison, verdict))
        for verdict, sentence in summary.said(comparison)
    ]
    quantity, where = quantities.of_metric(comparison.contrast.metric), charts.facet(comparison.facet)
    title = charts.capitalized(f"{quantity.name}{f' at {where}' if where else ''}")
    name = f"comparison-{number}"
    blocks: list[Block] = [Statements(found), charts.differences(comparison, name), _entries(comparison, name)]
    if comparison.effects:
        if said := " ".join(summary.effect_sentences(comparison)):
            blocks.append(Text([said]))
        blocks.append(_effects(comparison, f"effects-{number}"))
    return Section(title, blocks)


def _effects(comparison: Comparison, name: str) -> Grid:
    """The main effects of two factors, and their interaction."""
    quantity = quantities.of_metric(comparison.contrast.metric)
    scale = quantity.scale
    heads = [Column("factor"), Column("value")]
    heads += [Column(head, quantity.unit, number=True) for head in ("mean ± 95 %", "difference ± 95 %")]
    heads.append(Column("p (Holm)", number=True))
    rows: list[list[str | Mark]] = []
    names = quantities.of_keys(comparison.contrast.between)
    for effect in comparison.effects:
        p, factors = summary.p_value(effect.p_value), _TIMES.join(names[factor] for factor in effect.factors)
        if not effect.levels:
            rows.append([factors, "", "", "", p])
        for level in effect.levels:
            mean, difference = (
                "" if each is None else numerals.plus_minus(each.estimate * scale, each.half_width * scale)
                for each in (level.mean, level.difference)
            )
            rows.append([factors, str(level.label), mean, difference, p])
    return Grid(heads, rows, caption=_EFFECTS, name=name)


def _detail(comparison: Comparison, verdict: ContrastVerdict) -> str:
    """The differences of those that have a verdict, with their intervals."""
    quantity = quantities.of_metric(comparison.contrast.metric)
    unit, scale = quantity.unit, quantity.scale
    if verdict is ContrastVerdict.IDENTICAL:
        return ""
    own = [e for e in comparison.entries if e.verdict is verdict and e.difference is not None]
    texts = []
    for entry in own[:_MOST_DETAILS]:
        assert entry.difference is not None
        mean = entry.difference.mean
        texts.append(f"{summary.named(entry.labels)} {_signed(mean.estimate * scale, mean.half_width * scale)}")
    if not texts:
        return ""
    more = f", and {len(own) - len(texts)} more below" if len(own) > len(texts) else ""
    return f"Differences{f' in {unit}' if unit else ''}: {', '.join(texts)}{more}."


def _signed(value: float, half_width: float) -> str:
    if value == half_width == 0:
        return "0"
    text = numerals.plus_minus(value, half_width)
    # What rounds to nothing has no sign.
    return f"+{text}" if value > 0 and text.partition(" ")[0].strip("0.") else text


def _word(comparison: Comparison, verdict: ContrastVerdict) -> str:
    if verdict is ContrastVerdict.REFERENCE and comparison.contrast.reference is None:
        return "best mean"
    return str(verdict)


_UNCORRECTED = "Wilcoxon's p is not corrected."
_EFFECTS = "Means over the other factor, as differences from the best, or from the reference where there is one"

_SIGNS = {"good": "▲ ", "bad": "▼ ", "same": "= ", "open": "? ", "plain": ""}


def _mark(entry: Alternative, text: str) -> Mark:
    tone = charts.TONES[entry.verdict]
    # Colour alone tells nothing to some readers, and nothing in a print without colour.
    return Mark(f"{_SIGNS[tone]}{text}", tone)


def _entries(comparison: Comparison, name: str) -> Grid:
    """The compared with means, differences and tests."""
    contrast = comparison.contrast
    quantity = quantities.of_metric(contrast.metric)
    heads = [
        *_axes(contrast.between),
        *(Column(head, quantity.unit, number=True) for head in ("mean ± 95 %", "median", "difference ± 95 %")),
        *(Column(head, number=True) for head in ("p (Holm)", "p (Wilcoxon)", "effect size")),
        Column("verdict"),
    ]
    entries = comparison.entries
    means = summary.intervals([entry.mean for entry in entries], contrast.metric)
    medians = numerals.column([entry.median.estimate for entry in entries], scale=quantity.scale)
    others = [e.difference.mean for e in entries if e.difference is not None]
    differences = iter(summary.intervals(others, contrast.metric))
    rows: list[list[str | Mark]] = []
    for entry, mean, median in zip(entries, means, medians, strict=True):
        tests = ["", "", "", ""]
        if entry.difference is not None:
            effect = entry.difference.effect_size
            tests = [
                next(differences),
                summary.p_value(entry.p_value),
                summary.p_value(entry.difference.wilcoxon_p_value),
                f"{effect:z.2f}" if math.isfinite(effect) else numerals.ABSENT,
            ]
        texts = [str(value) for value in entry.labels.values()]
        rows.append([*texts, mean, median, *tests, _mark(entry, summary.verdict(entry))])
    return Grid(heads, rows, caption=charts.capitalized(summary.sampled(comparison)), name=name)


def _overview(each: Contrast, found: Sequence[Comparison], name: str) -> Grid:
    """A row per combination of the axes that are not compared: where which condition differs."""
    quantity = quantities.of_metric(each.metric)
    scale = quantity.scale
    compared = list(dict.fromkeys(summary.named(entry.labels) for one in found for entry in one.entries))
    heads = [*_axes(list(found[0].facet)), *(Column(label, quantity.unit, number=True) for label in compared)]
    rows: list[list[str | Mark]] = []
    for one in found:
        texts: dict[str, str | Mark] = {}
        for entry in one.entries:
            if entry.difference is None:
                shown = numerals.plus_minus(entry.mean.estimate * scale, entry.mean.half_width * scale)
                texts[summary.named(entry.labels)] = f"mean {shown}"
                continue
            mean = entry.difference.mean
            texts[summary.named(entry.labels)] = _mark(entry, _signed(mean.estimate * scale, mean.half_width * scale))
        rows.append([*map(str, one.facet.values()), *(texts.get(label, numerals.ABSENT) for label in compared)])
    better = "higher" if each.higher_is_better else "lower"
    caption = (
        f"Difference of {quantity.name} from the reference, whose mean is shown ({better} is better). "
        "▲ certainly better, ▼ certainly worse, = equivalent, ? undecided"
    )
    return Grid(heads, rows, caption=caption, name=name)


# --- Figures and means ----------------------------------------------------------------------------------------------


def _figures(swept: _Swept) -> Section:
    figures = swept.plan.figures or tuple(_usual(swept))
    blocks: list[Block] = []
    for number, figure in enumerate(figures):
        name = f"figure-{number + 1}"
        if figure.rows is not None:
            blocks += charts.maps(figure, swept.comparisons, name)
        else:
            blocks += charts.of_figure(figure, swept.sessions, swept.conditions, name)
    return Section("Figures", blocks)


def _usual(swept: _Swept) -> Iterator[Figure]:
    """What is drawn where the plan says nothing: distributions of what is compared, and means over the other axes."""
    for each in swept.plan.contrasts:
        yield Figure(each.metric, by=tuple(axis for axis in each.between if axis in swept.conditions))
        for axis in swept.conditions:
            if axis not in each.between and swept.sessions[axis].n_unique() > 1:
                yield Figure(each.metric, x=axis, by=each.between)
    if not swept.plan.contrasts and (metric := _first_metric(swept)) is not None:
        yield Figure(metric, by=tuple(swept.conditions))


def _conditions(swept: _Swept) -> Section:
    """Means of the plan's metrics by condition."""
    axes = swept.conditions
    wanted = [metric for metric in _numbers(swept) if metric in swept.sessions.columns]
    rows = swept.sessions.filter(pl.col("error").is_null())
    if not axes or not rows.height or not wanted:
        return Section("Conditions")
    heads = [*_axes(axes), *map(of_metric, wanted)]
    conditions = rows.select(axes).unique(maintain_order=True).rows()
    compared = {each.metric: each for each in reversed(swept.plan.contrasts)}
    texts = []
    for metric in wanted:
        # A mean of what is compared is that of the comparison, where sessions that were cut off count otherwise.
        counted, _ = unfinished.counted(rows, compared[metric]) if metric in compared else (rows, ())
        texts.append(summary.means(counted.partition_by(axes, maintain_order=True), metric))
    body = [[*map(str, labels), *own] for labels, *own in zip(conditions, *texts, strict=True)]
    caption = "Mean of each condition with its 95 % interval (Student's t over networks, or over seeds of one network)"
    return Section("Conditions", [Grid(heads, body, caption=caption, name="conditions")])


def _numbers(swept: _Swept) -> list[str]:
    """The metrics that the page shows of each session."""
    plan, rows = swept.plan, swept.sessions
    named = [*(c.metric for c in plan.contrasts), *plan.metrics, *(f.y for f in plan.figures)]
    known = [m for m in dict.fromkeys([*named, *DEFAULT_METRICS]) if m in rows.columns]
    # A column in which nothing differs says nothing, unless the plan asks for it.
    shown = [m for m in known if rows[m].dtype.is_numeric() and (m in named or rows[m].drop_nulls().n_unique() > 1)]
    return shown[: max(_MOST_NUMBERS, len(set(named)))]


def of_metric(metric: str) -> Column:
    """The head of a column of a metric."""
    quantity = quantities.of_metric(metric)
    return Column(quantity.name, quantity.unit, number=True, key=metric)


def _axes(axes: Sequence[str]) -> list[Column]:
    """The heads of columns of axes."""
    return [Column(name, key=axis) for axis, name in quantities.of_keys(axes).items()]


def _first_metric(swept: _Swept) -> str | None:
    return next(iter(_numbers(swept)), None)


def _compared(swept: _Swept) -> list[str]:
    return list(swept.plan.contrasts[0].between) if swept.plan.contrasts else []


# --- Sessions -------------------------------------------------------------------------------------------------------


def _sessions(swept: _Swept, chosen: Sequence[int]) -> Sessions:
    rows = swept.sessions
    several = "session" in rows.columns and rows["session"].n_unique() > 1
    labels = [*swept.plan.columns, *(draw.key for draw in swept.plan.draws), "seed", *(["session"] if several else [])]
    places = {row: position for position, row in enumerate(chosen)}
    numbers = []
    for metric in _numbers(swept):
        values = rows[metric].cast(pl.Float64) * quantities.of_metric(metric).scale
        numbers.append((of_metric(metric), values.to_list()))
    heads = [replace(head, number=rows[head.key].dtype.is_numeric()) for head in _axes(labels)]
    return Sessions(
        labels=[(head, rows[head.key].to_list()) for head in heads],
        numbers=numbers,
        commands=[_command(swept.runs[key], swept.origin.path.parent) for key in rows["run"]],
        timelines=[places.get(row) for row in range(rows.height)],
        errors=rows["error"].to_list(),
        note=f"{_selected(swept, len(chosen))} {_WHERE}",
    )


def _selected(swept: _Swept, chosen: int) -> str:
    """Which sessions open a timeline, in words."""
    metric = _first_metric(swept)
    name = None if metric is None else quantities.of_metric(metric).name
    return selection.note(chosen, swept.sessions.height, list(quantities.of_keys(_compared(swept)).values()), name)


def _command(run: Run, folder: Path) -> list[str]:
    """The arguments, with an option and its value as one, for a shell in the plan's folder.

    Files are named as seen from there, so that the command is right wherever that folder is copied to. That needs a
    scenario in this very folder, or a shipped one: a scenario elsewhere has its files in its own folder.
    """
    live = run.engine.options
    program, verb, scenario, option, seed, *rest = run.command[: len(run.command) - len(live)]
    moved = not Path(scenario).is_file() or Path(scenario).resolve().parent == folder
    sets = zip(rest[::2], rest[1::2], strict=True)
    parts = [(f"{program} {verb} ", scenario), (f"{option} ", seed), *((f"{name} ", value) for name, value in sets)]
    prefix = f"{folder}/"
    quoted = [before + shlex.quote(value.replace(prefix, "") if moved else value) for before, value in parts]
    return [*quoted, *live[:1], *(f"{name} {value}" for name, value in zip(live[1::2], live[2::2], strict=True))]


def _timelines(swept: _Swept, chosen: Sequence[int], progress: Progress) -> list[Timeline]:
    """Makes the runs of some sessions again."""
    made: list[Timeline] = []
    for number, row in enumerate(chosen):
        made.append(_timeline(swept, swept.sessions.row(row, named=True)))
        progress((number + 1) / len(chosen))
    return made


def _timeline(swept: _Swept, row: Mapping[str, Any]) -> Timeline:
    run = swept.runs[row["run"]]
    scenario = run.scenario()
    outcome = _core.run(scenario, seed=run.seed, record_events=False, progress=None, account=True)
    made = explanation.Made.of(outcome)
    found = made.metrics
    session = int(row.get("session") or 0)
    again = list(columns.sessions(found))[session]
    changed = [key for key, value in again.items() if key in row and not _same(row[key], value)]
    if changed:
        raise InputError(
            f"{swept.folder / swept.plan.name}.parquet: `{changed[0]}` of a row is not what its run gives; "
            f"`anabranch sweep {swept.origin.path} --store {swept.folder}` writes the table again"
        )
    title = charts.facet({axis: row[axis] for axis in swept.plan.columns})
    title = ", ".join(filter(None, (title, f"seed {run.seed}", f"session {session}" if session else "")))
    paths = list(tomllib.loads(scenario.resolved).get("path", {}))
    said = why.of_session(made, session)
    return of_session(made.recording, found, session, title=title, paths=paths, why=said)


def _same(kept: Any, again: Any) -> bool:
    # A column with values of several types has texts.
    return bool(kept == again) or (isinstance(kept, str) and kept == str(again))


# --- Provenance -----------------------------------------------------------------------------------------------------


def _provenance(swept: _Swept) -> list[tuple[str, str]]:
    plan = swept.plan
    revision = provenance.source_revision()
    return [
        ("Plan", swept.origin.path.name),
        *([("Changed", shlex.join(swept.origin.changes.options))] if swept.origin.changes else []),
        ("Scenario", ", ".join(plan.scenarios)),
        ("Seeds", seeds_in_words(swept.origin.seeds)),
        ("Engine", "simulation" if not plan.is_live else ", ".join(engine.name for engine in plan.engines)),
        ("Anabranch", provenance.build()["version"]),
        *([("Source", revision)] if revision else []),
        ("Compiled part (SHA-256)", provenance.library_sha256()),
        ("Libraries", ", ".join(f"{name} {metadata.version(name)}" for name in _LIBRARIES)),
        ("Tables", f"{plan.name}.parquet, {plan.name}-segments.parquet, {plan.name}-comparisons.parquet"),
        ("All runs again", shlex.join(["anabranch", "sweep", swept.origin.path.name, *swept.origin.changes.options])),
    ]
