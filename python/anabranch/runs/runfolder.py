"""The run folder: what a run leaves on disk, and how it is read back.

=====================  ====================================================================================
``scenario.toml``      the resolved scenario: every key, with its default where the author left it out
``files/``             the traces and descriptions of videos that it names, if it does
``metrics.json``       what the run found; the same for the same scenario, seed and version
``samples.parquet``    each session over time, sampled
``incidents.parquet``  stalls, buffer underflows and the scenario's events: when they were
``events.parquet``     every event, with ``--events``
``session.png``        the figure of the session or, of several, all side by side, and ``session.svg``
``subflows.parquet``   with ``--plots``, what the packets say of each subflow; its figures are ``sequence.png``,
                       ``rtt.png``, and the same as SVG
``run.json``           seed, overrides, program, machine, times; written last: without it a folder is unfinished
=====================  ====================================================================================
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from anabranch import arguments
from anabranch.errors import InputError
from anabranch.results import metrics, recording
from anabranch.results.metrics import Metrics
from anabranch.results.recording import Recording
from anabranch.results.sequence import Sequences
from anabranch.runs import plots
from anabranch.runs.finished import FinishedRun
from anabranch.system import outputs, provenance, regular

SCHEMA = 1
"""The version of ``run.json``."""

_DEFAULT_PARENT = Path("runs")


def check_target(directory: Path | None) -> None:
    """Refuses a place for a run folder, the default one where absent, that could not be written.

    Raises:
        OSError: It cannot; the message says why.
    """
    outputs.check_folder(directory or _DEFAULT_PARENT)


_SCENARIO = "scenario.toml"
_METRICS = "metrics.json"
_SAMPLES = "samples.parquet"
_INCIDENTS = "incidents.parquet"
_NOTES = "notes.parquet"
_EVENTS = "events.parquet"
_PICTURES = ("session.png", "session.svg")
_RUN = "run.json"
_FILES = "files"


@dataclass(frozen=True)
class StoredRun:
    """A run folder, read back.

    Attributes:
        directory: Where it is.
        scenario: The resolved scenario.
        metrics: What the run found.
        about: Seed, overrides, version, program, machine and times.
        recording: The run over time.
        sequences: What its packets say of each subflow, if that was asked for.
    """

    directory: Path
    scenario: dict[str, Any]
    metrics: Metrics
    about: dict[str, Any]
    recording: Recording
    sequences: Sequences | None = None


def write(run: FinishedRun, directory: Path | None = None, *, session: int | None = None, figure: bool = True) -> Path:
    """Writes a run folder.

    Args:
        run: What to write.
        directory: The folder, made if need be; the files of an earlier run in it are replaced. Where absent, the next
            free ``runs/<scenario>-<seed>-<n>`` below the current directory.
        session: Which session to draw in detail, counted from 0; several side by side where absent.
        figure: Whether to draw it at all: that takes longer than the simulation of most scenarios.

    Returns:
        The folder.

    Raises:
        InputError: There is no such session.
        OSError: It cannot be written.
    """
    if session is not None and session != 0:
        check_session(session, run.metrics["scenario"], len(run.recording.sessions))
    folder = directory or _DEFAULT_PARENT
    with outputs.writing(folder):
        if directory is None:
            folder = _next_free(run)
        folder.mkdir(parents=True, exist_ok=True)
    with outputs.writing(folder):
        _write_files(run, folder, session, figure)
    return folder


def _write_files(run: FinishedRun, folder: Path, session: int | None, figure: bool) -> None:
    """Writes all files, the small ones that say most first: a disk may become full."""
    _remove_files(folder)
    for name in (
        _RUN,
        _METRICS,
        _SCENARIO,
        _SAMPLES,
        _INCIDENTS,
        _NOTES,
        _EVENTS,
        *_PICTURES,
        plots.TABLE,
        *plots.FIGURES,
    ):
        (folder / name).unlink(missing_ok=True)
    scenario, files = run.portable
    (folder / _SCENARIO).write_text(scenario, encoding="utf-8")
    for name, content in files:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    _write_json(folder / _METRICS, run.metrics)
    recording.samples_frame(run.recording).write_parquet(folder / _SAMPLES)
    recording.incidents_frame(run.recording).write_parquet(folder / _INCIDENTS)
    notes = recording.notes_frame(run.recording)
    if not notes.is_empty():
        notes.write_parquet(folder / _NOTES)
    if run.has_events:
        run.events.write_parquet(folder / _EVENTS)
    if figure:
        _draw(run, folder, session)
    _write_json(folder / _RUN, _about(run))


def _remove_files(folder: Path) -> None:
    """Removes the files that an earlier run in this folder lists, and nothing else."""
    try:
        listed = regular.read_json(folder / _RUN)["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return
    for name in (Path(name).name for name in listed):
        (folder / _FILES / name).unlink(missing_ok=True)


def read(directory: Path) -> StoredRun:
    """Reads a run folder.

    Raises:
        InputError: There is no finished run in it, it was written by another version of the format, or its metrics lack
            something: the message names the file and the key.
    """
    missing = [n for n in (_RUN, _METRICS, _SCENARIO, _SAMPLES, _INCIDENTS) if not (directory / n).exists()]
    if missing:
        what = (
            "no such folder" if not directory.is_dir() else f"not a finished run folder: it lacks {', '.join(missing)}"
        )
        raise InputError(f"{directory}: {what}; expected a folder that `anabranch run` wrote")
    import polars as pl

    try:
        about = regular.read_json(directory / _RUN)
        scenario = tomllib.loads(regular.read_text(directory / _SCENARIO))
        notes = regular.read_parquet(directory / _NOTES) if (directory / _NOTES).exists() else None
        samples, incidents = (regular.read_parquet(directory / name) for name in (_SAMPLES, _INCIDENTS))
        recorded = recording.of_frames(samples, incidents, notes)
        sequences = plots.read(directory)
    except InputError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, pl.exceptions.PolarsError) as error:
        raise InputError(f"{directory}: a damaged run folder: {error}") from error
    schema = about.get("schema") if isinstance(about, dict) else None
    if schema != SCHEMA:
        raise InputError(f"{directory / _RUN}: schema {schema}; expected {SCHEMA}")
    return StoredRun(directory, scenario, metrics.read(directory / _METRICS), about, recorded, sequences)


def _next_free(run: FinishedRun) -> Path:
    """Makes the first numbered folder that does not exist; two runs that start together get two."""
    name = str(run.metrics["scenario"])
    # A shipped scenario's name is used whole (`sticky/base`), of a file only its own name.
    name = Path(name).stem if name.endswith(".toml") else name
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "scenario"
    _DEFAULT_PARENT.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        folder = _DEFAULT_PARENT / f"{stem}-{run.seed}-{number}"
        try:
            folder.mkdir()
        except FileExistsError:
            number += 1
        else:
            return folder


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def check_session(session: int, where: object, recorded: int) -> None:
    """Refuses a session that was not recorded.

    Raises:
        InputError: There are only ``recorded`` sessions.
    """
    arguments.whole("session", session, "the number of a session, counted from 0, such as session=1", least=None)
    if not 0 <= session < recorded:
        known = "none" if not recorded else "only session 0" if recorded == 1 else f"sessions 0 to {recorded - 1}"
        raise InputError(f"{where}: there is no recording of session {session}; expected {known}")


def _draw(run: FinishedRun, folder: Path, session: int | None) -> None:
    """Draws the run, or one session; a run of cross traffic alone has none."""
    if not run.recording.sessions:
        return
    from anabranch.figures import draw_run, style

    figure = draw_run(run.recording, run.metrics, tomllib.loads(run.scenario), run.seed, session)
    for name in _PICTURES:
        style.save(figure, folder / name)


def _about(run: FinishedRun) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "scenario": run.metrics["scenario"],
        "seed": run.seed,
        "set": list(run.overrides),
        "files": {name: hashlib.sha256(content).hexdigest() for name, content in run.portable[1]},
        "source_revision": provenance.source_revision(),
        "library_sha256": provenance.library_sha256(),
        "version": run.metrics["version"],
        "engine": run.metrics["engine"],
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu_seconds": round(run.cpu_seconds, 6),
        "wall_seconds": round(run.wall_seconds, 6),
        "warnings": [{"kind": each.kind, "message": each.message} for each in run.warnings],
        "machine": {
            "system": f"{platform.system()} {platform.release()}",
            "architecture": platform.machine(),
            "processor": _processor(),
            "processors": os.cpu_count(),
            "python": platform.python_version(),
        },
    }


def _processor() -> str | None:
    """The processor's name where the system reports it (Linux)."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor() or None
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1].strip() if found else None
