"""Runs side by side: their metrics in columns, and a figure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from anabranch.results import downloads
from anabranch.results.metrics import Metrics, Quality, SessionMetrics, SubflowReport, Viewer, quality_of, viewer_of
from anabranch.runs import naming
from anabranch.runs.runfolder import StoredRun
from anabranch.system import outputs
from anabranch.wording import ending, numerals, summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_Values = Callable[[Sequence[SessionMetrics]], list[str]]
"""The texts of a row: the numbers of all runs at once, because they have the same number of decimals."""


def _of_sessions(
    value: Callable[[SessionMetrics], float | None], write: Callable[[list[float | None]], list[str]]
) -> _Values:
    return lambda sessions: write([value(session) for session in sessions])


def _viewer(key: Callable[[Viewer], float | None], write: Callable[[list[float | None]], list[str]]) -> _Values:
    """A number of what the viewer saw; absent where it was not observed."""

    def value(session: SessionMetrics) -> float | None:
        viewer = viewer_of(session)
        return None if viewer is None else key(viewer)

    return _of_sessions(value, write)


def _quality(key: Callable[[Quality], float | None], write: Callable[[list[float | None]], list[str]]) -> _Values:
    """A number that only DASH sessions have, and they not always; absent where there is none."""

    def value(session: SessionMetrics) -> float | None:
        quality = quality_of(session)
        return None if quality is None else key(quality)

    return _of_sessions(value, write)


def _decodes(session: SessionMetrics) -> bool:
    return "mean_bitrate_bps" not in session


def _counts(values: list[float | None]) -> list[str]:
    return numerals.fixed(values, 0)


def _tenths(values: list[float | None]) -> list[str]:
    return numerals.fixed(values, 1)


def _thousandths(values: list[float | None]) -> list[str]:
    return numerals.fixed(values, 3)


def _megabits(values: list[float | None]) -> list[str]:
    return numerals.column(values, scale=1e-6)


def _seconds(values: list[float | None]) -> list[str]:
    return numerals.column(values)


def _milliseconds(values: list[float | None]) -> list[str]:
    return numerals.column(values, scale=1e3, most=1)


def _percent(values: list[float | None]) -> list[str]:
    return numerals.column(values, scale=1e2, most=1)


def _download(share: float) -> _Values:
    """A quantile of the times of downloads; absent where there is at most one."""

    def value(session: SessionMetrics) -> float | None:
        times = downloads.times_s(session["downloads"])
        return downloads.quantile(times, share) if len(times) > 1 else None

    return _of_sessions(value, _milliseconds)


# Stands behind what was counted of a session that was cut off.
_MARK = " \u2020"

_PLAYBACK: list[tuple[str, _Values]] = [
    ("start-up, s", _viewer(lambda v: v["startup_s"], _seconds)),
    ("stalls", _viewer(lambda v: v["stalls"], _counts)),
    ("frozen picture, s", _viewer(lambda v: v["stall_s"], _seconds)),
    ("longest stall, s", _viewer(lambda v: v["longest_stall_s"], _seconds)),
]
# Only players that decode count these: the DASH players have none.
_DECODED: list[tuple[str, _Values]] = [
    ("discarded pictures", _of_sessions(lambda s: s["picture_discards"] if _decodes(s) else None, _counts)),
    ("buffer underflows", _of_sessions(lambda s: s["buffer_underflows"] if _decodes(s) else None, _counts)),
]
_QUALITY: list[tuple[str, _Values]] = [
    ("mean bitrate, Mb/s", _quality(lambda q: q["mean_bitrate_bps"], _megabits)),
    ("switches", _quality(lambda q: q["switches"], _counts)),
    ("resolution switches", _quality(lambda q: q["impactful_switches"], _counts)),
    ("high quality, %", _quality(lambda q: q["time_on_high_quality"], _percent)),
    ("mean buffer, s", _quality(lambda q: q["mean_buffer_s"], _seconds)),
    ("linear QoE", _quality(lambda q: q["qoe_linear"], _counts)),
    ("log QoE", _quality(lambda q: q["qoe_log"], _tenths)),
]
# Only players that download one chunk after the other have these.
_CHUNKS: list[tuple[str, _Values]] = [
    ("chunk median, ms", _download(0.5)),
    ("chunk p90, ms", _download(0.9)),
]
_TRANSFER: list[tuple[str, _Values]] = [
    ("goodput, Mb/s", _of_sessions(lambda s: s["goodput_bps"], _megabits)),
    ("path switches", _of_sessions(lambda s: s["path_switches"], _counts)),
    ("reordering mean, ms", _of_sessions(lambda s: s["reorder_delay_s"]["mean"], _milliseconds)),
    ("reordering p95, ms", _of_sessions(lambda s: s["reorder_delay_s"]["p95"], _milliseconds)),
]


def table(runs: Sequence[StoredRun], session: int = 0, *, stacked: bool = False) -> Group:
    """The metrics of one session of each run, a column per run, with numbers alone: the units are at the rows' names.

    Args:
        runs: The runs.
        session: Which session of each, counted from 0.
        stacked: Whether what distinguishes the runs stands in rows of its own instead of the columns' heads, which
            saves width.

    Returns:
        The table, and the sentences below it.
    """
    result = Table(box=None, pad_edge=False, padding=(0, 1 if stacked else 2, 0, 0), show_header=not stacked)
    result.add_column("", no_wrap=True)
    for name in naming.names(runs):
        result.add_column(name, justify="right", overflow="fold")
    if stacked:
        _add_differences(result, runs)
    result.add_row("ended", *(_ended(run.metrics["sessions"][session]) for run in runs))
    for path, label, texts in rows(runs, session):
        result.add_row(Text.assemble((path, "cyan"), f" {label}") if path else label, *texts)
    return Group(result, *(Text(note, style="bold yellow") for note in notes(runs, session)))


def rows(runs: Sequence[StoredRun], session: int = 0) -> Iterator[tuple[str, str, list[str]]]:
    """The rows of the table: the path that a row is about, if it is of one, its name with the unit, and its texts."""
    sessions = [r.metrics["sessions"][session] for r in runs]
    marks = [_MARK if s["cut_off"] else "" for s in sessions]
    for label, texts in _rows(sessions):
        yield "", label, [text + mark for text, mark in zip(texts(sessions), marks, strict=True)]
    if any(r.metrics["fairness"] is not None for r in runs):
        yield "", "Jain's bitrate index", _thousandths([_fairness(r.metrics) for r in runs])
    for path in dict.fromkeys(f["path"] for s in sessions for f in s["subflows"]):
        for label, value, write in _PER_PATH:
            # A path that went down and came back has carried several subflows.
            sums = [summary.total(value(f) for f in s["subflows"] if f["path"] == path) for s in sessions]
            yield path, label, write(sums)


def every_difference(runs: Sequence[StoredRun]) -> Table | None:
    """The keys in which the runs differ with their values, if the heads of `table` have not room for all of them."""
    found = naming.every_difference(runs)
    heads, _ = naming.shortened(naming.differences(runs))
    if len(found) <= len(heads):
        return None
    return differences_table(found, naming.folders(runs))


def differences_table(found: Mapping[str, Sequence[str]], names: Sequence[str]) -> Table:
    """Keys with their values, a column for each of what is compared."""
    result = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    result.add_column("differs", overflow="fold")
    for name in names:
        result.add_column(name, overflow="fold")
    for key, values in found.items():
        result.add_row(key, *values)
    return result


def of_seeds(runs: Sequence[StoredRun]) -> str | None:
    """What to know of the runs' seeds before they are compared; ``None`` where they are the same, or no matter."""
    seeds = [run.about["seed"] for run in runs]
    if len(set(seeds)) == 1 or not any(run.metrics["seed_matters"] for run in runs):
        return None
    return (
        f"the seeds differ ({', '.join(map(str, seeds))}), so a part of what is different below may be chance; "
        "run the same seed, or compare many seeds with a plan"
    )


def _ended(session: SessionMetrics) -> Text:
    """How a session ended; that it was cut off is not to be overlooked."""
    parts = ending.cut_off_parts(session)
    # Columns are as narrow as the longest of these lines.
    return Text("\n".join(parts).replace(" (", "\n("), style="bold yellow") if parts else Text(session["ended"])


def notes(runs: Sequence[StoredRun], session: int) -> list[str]:
    """What must be known before the runs are compared."""
    found = []
    if any(run.metrics["sessions"][session]["cut_off"] for run in runs):
        found.append(f"\n{_MARK.strip()} cut off: counted until then only, so it may seem better than it was")
    same = len({repr(run.scenario) for run in runs}) == 1
    if same and len({run.about["seed"] for run in runs}) > 1 and not any(r.metrics["seed_matters"] for r in runs):
        found.append(f"\n{ending.SEED_WITHOUT_EFFECT}")
    return found


def _add_differences(table: Table, runs: Sequence[StoredRun]) -> None:
    shown, more = naming.shortened(naming.differences(runs))
    for key, values in (shown or {"": naming.names(runs)}).items():
        table.add_row(Text(key, style="bold"), *(Text(value, style="bold") for value in values))
    if more:
        table.add_row(f"and {summary.plural(more, 'key')} more")


def _rows(sessions: Sequence[SessionMetrics]) -> list[tuple[str, _Values]]:
    """The rows that apply to some of the sessions."""
    played = any(summary.playback(s) for s in sessions)
    streamed = any("mean_bitrate_bps" in s for s in sessions)
    decoded = any(_decodes(s) for s in sessions)
    return [
        *(_PLAYBACK if played else ()),
        *(_DECODED if played and decoded else ()),
        *(_QUALITY if streamed else ()),
        *(_CHUNKS if any(len(session["downloads"] or ()) > 1 for session in sessions) else ()),
        *_TRANSFER,
    ]


def _fairness(metrics: Metrics) -> float | None:
    fairness = metrics["fairness"]
    return None if fairness is None else fairness["jain_mean_bitrate"]


_PER_PATH: list[tuple[str, Callable[[SubflowReport], float], Callable[[list[float | None]], list[str]]]] = [
    ("goodput, Mb/s", lambda f: f["goodput_bps"], _megabits),
    ("retransmissions", lambda f: f["retransmissions"], _counts),
]


def figure(runs: Sequence[StoredRun], session: int = 0) -> Figure:
    """One session of each run side by side."""
    from anabranch.figures.comparison import Column, compare
    from anabranch.figures.ending import of_session

    scenarios = list(dict.fromkeys(str(r.metrics["scenario"]) for r in runs))
    columns = [
        Column(
            title=name,
            subtitle=summary.in_short(run.metrics["sessions"][session]),
            recording=run.recording.sessions[session],
            marks=run.recording.marks,
            ending=of_session(run.metrics, session),
            paths=tuple(run.scenario["path"]),
        )
        for name, run in zip(naming.names(runs), runs, strict=True)
    ]
    title = ", ".join(scenarios)
    if any(len(r.metrics["sessions"]) > 1 for r in runs):
        title += f", session {session}"
    return compare(columns, title=title)


def save_figure(runs: Sequence[StoredRun], directory: Path, session: int = 0) -> Path:
    """Writes the figure as ``comparison.png`` and ``comparison.svg`` and returns the former."""
    from anabranch.figures import style

    drawn = figure(runs, session)
    png = directory / "comparison.png"
    with outputs.writing(directory):
        directory.mkdir(parents=True, exist_ok=True)
        for path in (png, png.with_suffix(".svg")):
            style.save(drawn, path)
    return png
