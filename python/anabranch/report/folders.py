"""The report of run folders: what each viewer saw, a comparison of the runs, and every session's timeline."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from anabranch import _core
from anabranch.errors import InputError
from anabranch.experiments import store
from anabranch.report import why
from anabranch.report.document import Block, Column, Grid, Report, Section, Sessions, Statement, Statements, Text
from anabranch.report.stored import DEFAULT_METRICS, of_metric
from anabranch.report.timelines import Timeline, of_session
from anabranch.results import columns
from anabranch.runs import comparison, naming, runfolder
from anabranch.runs.runfolder import StoredRun
from anabranch.wording import ending, quantities, summary
from anabranch.wording.summary import plural

MOST_TIMELINES = 60
"""More sessions than this have no timeline in the page."""

# A table of more columns is wider than a page.
_MOST_COMPARED = 8


def of_folders(places: Sequence[Path], *, progress: Callable[[float], object] = lambda _: None) -> Report:
    """The report of one or several run folders.

    Simulated runs are made again, to say why they stalled.

    Args:
        places: The folders.
        progress: Called with the fraction of the runs that are made again.

    Raises:
        InputError: One of them is none; the message names it.
    """
    runs = [_read(place) for place in places]
    names = naming.names(runs) if len(runs) > 1 else [str(runs[0].metrics["scenario"])]
    timelines, places_of = _timelines(runs, names, progress)
    first = runs[0].metrics
    alone = len(runs) == 1
    name = f"{first['scenario']}, seed {first['seed']}" if alone else plural(len(runs), "run")
    sections = [_summaries(runs, names)]
    if not alone:
        sections.insert(0, _compared(runs, names))
    return Report(
        name=name,
        question=_question(runs),
        lead=_lead(runs),
        sections=sections,
        sessions=_sessions(runs, names, places_of),
        timelines=timelines,
        provenance=_provenance(runs, names),
    )


def _read(place: Path) -> StoredRun:
    try:
        return runfolder.read(place)
    except InputError as error:
        if place.is_dir() and not (place / "run.json").is_file() and not store.is_store(place):
            raise InputError(f"{error}, or a store that `anabranch sweep` wrote") from error
        raise


def _question(runs: Sequence[StoredRun]) -> str:
    """That of the scenario, if all have the same."""
    questions = dict.fromkeys(str(run.scenario.get("question") or "") for run in runs)
    if len(questions) == 1 and (only := next(iter(questions))):
        return only
    scenarios = ", ".join(dict.fromkeys(str(run.metrics["scenario"]) for run in runs))
    return f"What happened in {scenarios}?"


def _lead(runs: Sequence[StoredRun]) -> str:
    sessions = sum(len(run.metrics["sessions"]) for run in runs)
    live = sum("live" in run.metrics for run in runs)
    engine = "in real time" if live == len(runs) else "simulated" if not live else f"{live} of them in real time"
    of = f"{plural(len(runs), 'run')} with {plural(sessions, 'session')}"
    return f"{of}, {engine}."


def _compared(runs: Sequence[StoredRun], names: Sequence[str]) -> Section:
    """The first session of each run, a column per run."""
    with_sessions = [(run, name) for run, name in zip(runs, names, strict=True) if run.metrics["sessions"]]
    blocks: list[Block] = []
    for begin in range(0, len(with_sessions), _MOST_COMPARED):
        part = with_sessions[begin : begin + _MOST_COMPARED]
        own = [run for run, _ in part]
        heads = [Column(""), *(Column(name, number=True) for _, name in part)]
        rows = [["ended", *(run.metrics["sessions"][0]["ended"] for run in own)]]
        rows += [[f"{path} {label}".strip(), *texts] for path, label, texts in comparison.rows(own)]
        number = begin // _MOST_COMPARED + 1
        blocks.append(Grid(heads, rows, caption="The first session of each run", name=f"runs-{number}"))
        blocks += [Text([note.strip()], quiet=True) for note in comparison.notes(own, 0)]
    return Section("Comparison", blocks)


def _summaries(runs: Sequence[StoredRun], names: Sequence[str]) -> Section:
    """What the viewers of each run saw."""
    parts = []
    for run, name in zip(runs, names, strict=True):
        blocks: list[Block] = []
        if warnings := ending.warnings(run.metrics):
            blocks.append(Statements([Statement("note", f"{each}.", "open") for each in warnings]))
        sessions = run.metrics["sessions"]
        for session in sessions[:_MOST_COMPARED]:
            lines = [part(session) for part in (summary.playback, summary.quality, summary.transfer, summary.chunks)]
            text = "; ".join(filter(None, lines))
            blocks.append(Text([f"{session['name']}: {text}." if len(sessions) > 1 else f"{text}."]))
        if len(sessions) > _MOST_COMPARED:
            blocks.append(Text([f"{len(sessions) - _MOST_COMPARED} sessions more are in the table below."], quiet=True))
        if sessions:
            blocks.append(_paths(run))
        parts.append(Section(name, blocks))
    return Section("Summary", parts[0].blocks) if len(parts) == 1 else Section("Summary", parts=parts)


_PATH_HEADS = (
    Column("path"),
    Column("goodput", "Mb/s", number=True),
    *(Column(name, number=True) for name in ("segments", "retransmitted", "reinjected", "timeouts")),
    Column("mean window", "packets", number=True),
    Column("mean round trip", "ms", number=True),
)


def _paths(run: StoredRun) -> Grid:
    """What each path of each session carried."""
    sessions = run.metrics["sessions"][:_MOST_COMPARED]
    several = len(run.metrics["sessions"]) > 1
    heads = [*([Column("session")] if several else []), *_PATH_HEADS]
    rows = [
        [*([session["name"]] if several else []), *texts]
        for session in sessions
        for texts in summary.path_rows(session["subflows"])
    ]
    return Grid(heads, rows, caption="Paths", folded=several)


def _timelines(
    runs: Sequence[StoredRun], names: Sequence[str], progress: Callable[[float], object]
) -> tuple[list[Timeline], list[list[int | None]]]:
    """The timelines, and for each run where those of its sessions are."""
    made: list[Timeline] = []
    places: list[list[int | None]] = []
    for position, (run, name) in enumerate(zip(runs, names, strict=True)):
        own: list[int | None] = []
        account = why.of_run(run) if len(made) < MOST_TIMELINES else ""
        progress((position + 1) / len(runs))
        for number, session in enumerate(run.metrics["sessions"]):
            if number >= len(run.recording.sessions) or len(made) >= MOST_TIMELINES:
                own.append(None)
                continue
            of = f", {session['name']}" if len(run.metrics["sessions"]) > 1 else ""
            own.append(len(made))
            paths = tuple(run.scenario["path"])
            title, packets = f"{name}{of}", run.sequences
            said = why.of_session(account, number)
            made.append(
                of_session(run.recording, run.metrics, number, title=title, paths=paths, packets=packets, why=said)
            )
        places.append(own)
    return made, places


def _sessions(runs: Sequence[StoredRun], names: Sequence[str], places: Sequence[list[int | None]]) -> Sessions:
    rows = [(i, n, row) for i, run in enumerate(runs) for n, row in enumerate(columns.sessions(run.metrics))]
    several = any(len(run.metrics["sessions"]) > 1 for run in runs)
    labels: list[tuple[Column, list[Any]]] = [
        (Column("run"), [names[i] for i, _, _ in rows]),
        (Column("seed", number=True), [runs[i].about["seed"] for i, _, _ in rows]),
    ]
    if several:
        labels.append((Column("session"), [row["session_name"] for _, _, row in rows]))
    numbers = []
    for metric in DEFAULT_METRICS:
        values = [_number(row.get(metric), quantities.of_metric(metric).scale) for _, _, row in rows]
        if any(value is not None for value in values):
            numbers.append((of_metric(metric), values))
    timelines = [places[i][n] for i, n, _ in rows]
    there = sum(place is not None for place in timelines)
    note = "" if there == len(rows) else f"{there} of {len(rows)} sessions open their timeline."
    return Sessions(
        labels=labels,
        numbers=numbers,
        commands=[_command(runs[i]) for i, _, _ in rows],
        timelines=timelines,
        errors=[None] * len(rows),
        opened=[0] if rows else [],
        note=note,
    )


def _number(value: object, scale: float) -> float | None:
    return value * scale if isinstance(value, int | float) and not isinstance(value, bool) else None


def _command(run: StoredRun) -> list[str]:
    """A shipped scenario with its overrides, or the resolved scenario of the folder, which has them."""
    name = str(run.metrics["scenario"])
    shipped = _core.shipped(name) is not None
    parts = [f"anabranch run {shlex.quote(name if shipped else str(run.directory / 'scenario.toml'))}"]
    parts.append(f"--seed {run.about['seed']}")
    parts += [f"--set {shlex.quote(each)}" for each in run.about["set"]] if shipped else []
    if (live := run.metrics.get("live")) is not None:
        parts += ["--live", f"--server {shlex.quote(live['server'])}", f"--client {shlex.quote(live['client'])}"]
    return parts


def _provenance(runs: Sequence[StoredRun], names: Sequence[str]) -> list[tuple[str, str]]:
    found = []
    for title, key in (
        ("Anabranch", "version"),
        ("Engine", "engine"),
        ("Source", "source_revision"),
        ("Compiled part (SHA-256)", "library_sha256"),
        ("Finished", "finished"),
    ):
        values = [str(run.about.get(key)) for run in runs if run.about.get(key)]
        if len(set(values)) == 1:
            found.append((title, values[0]))
        else:
            found += [(f"{title} of {name}", value) for name, value in zip(names, values, strict=False)]
    folders = ", ".join(run.directory.resolve().name for run in runs)
    return [*found, ("Run folders" if len(runs) > 1 else "Run folder", folders)]
