"""Runs side by side: what distinguishes them, and their metrics in columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from anabranch import summary
from anabranch.metrics import Metrics, Quality, Session, Subflow, Viewer, quality_of, viewer_of
from anabranch.runfolder import StoredRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# More differences than this say less than the folder's name does.
_MOST_DIFFERENCES = 3


def flatten(tree: Any, prefix: str = "") -> dict[str, Any]:
    """The leaves of nested tables and lists, by dotted key."""
    if isinstance(tree, dict):
        items = [(str(key), value) for key, value in tree.items()]
    elif isinstance(tree, list) and tree and all(isinstance(value, str) for value in tree):
        # Names, such as those of a session's paths, say more together.
        return {prefix: "+".join(tree)}
    elif isinstance(tree, list):
        items = [(str(position), value) for position, value in enumerate(tree)]
    else:
        return {prefix: tree}
    leaves: dict[str, Any] = {}
    for key, value in items:
        leaves |= flatten(value, f"{prefix}.{key}" if prefix else key)
    return leaves


def names(runs: Sequence[StoredRun]) -> list[str]:
    """A short name for each run: the values in which they differ, or else their folders' names."""
    leaves = [{**flatten(r.scenario), "seed": r.about["seed"], "scenario": r.metrics["scenario"]} for r in runs]
    keys = dict.fromkeys(key for each in leaves for key in each)
    # A question is prose about the scenario, no property of it.
    differing = [k for k in keys if k != "question" and len({repr(each.get(k)) for each in leaves}) > 1]
    if "scenario" in differing:
        differing = ["scenario", *(k for k in differing if k.startswith("transport.") or k == "seed")]
    if not differing or len(differing) > _MOST_DIFFERENCES:
        return [r.directory.resolve().name for r in runs]
    return [", ".join(_named(key, each.get(key)) for key in differing) for each in leaves]


def _named(key: str, value: Any) -> str:
    """Names speak for themselves; a number or a quantity needs its key."""
    last = key.rpartition(".")[2]
    speaks = isinstance(value, str) and not value[:1].isdigit()
    return str(value) if speaks else f"{last} {'-' if value is None else value}"


_Show = Callable[[Session], str]


def _viewer(show: Callable[[Viewer], str]) -> _Show:
    """A number of what the viewer saw; a dash where nobody observed it."""

    def text(session: Session) -> str:
        viewer = viewer_of(session)
        return "-" if viewer is None else show(viewer)

    return text


def _quality(show: Callable[[Quality], str | None]) -> _Show:
    """A number that only DASH sessions have, and they not always; a dash where there is none."""

    def text(session: Session) -> str:
        quality = quality_of(session)
        return "-" if quality is None else show(quality) or "-"

    return text


def _bitrate(quality: Quality) -> str | None:
    bitrate = quality["mean_bitrate_bps"]
    return None if bitrate is None else summary.megabits(bitrate)


def _high_quality(quality: Quality) -> str | None:
    share = quality["time_on_high_quality"]
    return None if share is None else f"{share:.1%}"


def _fairness(metrics: Metrics) -> str:
    fairness = metrics["fairness"]
    index = None if fairness is None else fairness["jain_mean_bitrate"]
    return "-" if index is None else f"{index:.3f}"


_PLAYBACK: list[tuple[str, _Show]] = [
    ("start-up", _viewer(lambda v: summary.seconds(v["startup_s"]))),
    ("stalls", _viewer(lambda v: summary.count(v["stalls"]))),
    ("frozen picture", _viewer(lambda v: summary.seconds(v["stall_s"]))),
    ("discarded pictures", _viewer(lambda v: summary.count(v["picture_discards"]))),
    ("buffer underflows", _viewer(lambda v: summary.count(v["buffer_underflows"]))),
]
_QUALITY: list[tuple[str, _Show]] = [
    ("mean bitrate", _quality(_bitrate)),
    ("switches", _quality(lambda q: summary.count(q["switches"]))),
    ("switches of the resolution", _quality(lambda q: summary.count(q["impactful_switches"]))),
    ("time on high quality", _quality(_high_quality)),
    ("mean buffer", _quality(lambda q: summary.seconds(q["mean_buffer_s"]))),
    ("linear QoE", _quality(lambda q: summary.count(q["qoe_linear"]))),
    ("log QoE", _quality(lambda q: f"{q['qoe_log']:.1f}")),
]
_TRANSFER: list[tuple[str, _Show]] = [
    ("goodput", lambda s: summary.megabits(s["goodput_bps"])),
    ("path switches", lambda s: summary.count(s["path_switches"])),
    ("reordering delay, mean", lambda s: summary.seconds(s["reorder_delay_s"]["mean"])),
    ("reordering delay, 95th percentile", lambda s: summary.seconds(s["reorder_delay_s"]["p95"])),
]


def table(runs: Sequence[StoredRun], session: int = 0) -> RenderableType:
    """The metrics of one session of each run, a column per run."""
    sessions = [r.metrics["sessions"][session] for r in runs]
    result = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    result.add_column("")
    for name in names(runs):
        result.add_column(name, justify="right")
    played = any(summary.playback(s) for s in sessions)
    streamed = any("mean_bitrate_bps" in s for s in sessions)
    for label, show in (_PLAYBACK if played else []) + (_QUALITY if streamed else []) + _TRANSFER:
        result.add_row(label, *(show(s) for s in sessions))
    if any(r.metrics["fairness"] is not None for r in runs):
        result.add_row("Jain's index of the mean bitrates", *(_fairness(r.metrics) for r in runs))
    for path in dict.fromkeys(f["path"] for s in sessions for f in s["subflows"]):
        for label, value, write in _PER_PATH:
            # A path that went down and came back has carried several subflows.
            sums = (summary.total(value(f) for f in s["subflows"] if f["path"] == path) for s in sessions)
            texts = ("-" if total is None else write(total) for total in sums)
            result.add_row(Text.assemble((path, "cyan"), f", {label}"), *texts)
    return result


_PER_PATH: list[tuple[str, Callable[[Subflow], float], Callable[[float], str]]] = [
    ("goodput", lambda f: f["goodput_bps"], summary.megabits),
    ("retransmissions", lambda f: f["retransmissions"], summary.count),
]


def figure(runs: Sequence[StoredRun], session: int = 0) -> Figure:
    """One session of each run side by side."""
    from anabranch.figures import ending
    from anabranch.figures.comparison import Column, compare

    scenarios = list(dict.fromkeys(str(r.metrics["scenario"]) for r in runs))
    columns = [
        Column(
            title=name,
            subtitle=summary.in_short(run.metrics["sessions"][session]),
            recording=run.recording.sessions[session],
            marks=run.recording.marks,
            ending=ending.of_session(run.metrics, run.scenario, session),
            paths=tuple(run.scenario["path"]),
        )
        for name, run in zip(names(runs), runs, strict=True)
    ]
    title = ", ".join(scenarios)
    if any(len(r.metrics["sessions"]) > 1 for r in runs):
        title += f", session {session}"
    return compare(columns, title=title)


def save_figure(runs: Sequence[StoredRun], directory: Path, session: int = 0) -> Path:
    """Writes the figure as ``comparison.png`` and ``comparison.svg`` and returns the former."""
    from anabranch.figures import style

    drawn = figure(runs, session)
    directory.mkdir(parents=True, exist_ok=True)
    png = directory / "comparison.png"
    for path in (png, png.with_suffix(".svg")):
        style.save(drawn, path)
    return png
