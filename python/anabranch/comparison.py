"""Runs side by side: what distinguishes them, and their metrics in columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from anabranch import summary
from anabranch.runfolder import StoredRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# More differences than this say less than the folder's name does.
_MOST_DIFFERENCES = 3


def flatten(tree: Any, prefix: str = "") -> dict[str, Any]:
    """The leaves of nested tables and lists, by dotted key."""
    if isinstance(tree, dict):
        items = [(str(key), value) for key, value in tree.items()]
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


_Cell = Callable[[dict[str, Any]], str]

_PLAYBACK: list[tuple[str, _Cell]] = [
    ("start-up", lambda s: summary.seconds(s["startup_s"])),
    ("stalls", lambda s: summary.count(s["stalls"])),
    ("frozen picture", lambda s: summary.seconds(s["stall_s"])),
    ("discarded pictures", lambda s: summary.count(s["picture_discards"])),
    ("buffer underflows", lambda s: summary.count(s["buffer_underflows"])),
]
_TRANSFER: list[tuple[str, _Cell]] = [
    ("goodput", lambda s: summary.megabits(s["goodput_bps"])),
    ("path switches", lambda s: summary.count(s["path_switches"])),
    ("reordering delay, mean", lambda s: summary.seconds(s["reorder_delay_s"]["mean"])),
    ("reordering delay, 95th percentile", lambda s: summary.seconds(s["reorder_delay_s"]["p95"])),
]


def table(runs: Sequence[StoredRun]) -> RenderableType:
    """The metrics of the runs' first sessions, a column per run."""
    sessions = [r.metrics["sessions"][0] for r in runs]
    result = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    result.add_column("")
    for name in names(runs):
        result.add_column(name, justify="right")
    played = any(summary.playback(s) for s in sessions)
    for label, cell in (_PLAYBACK if played else []) + _TRANSFER:
        result.add_row(label, *(cell(s) for s in sessions))
    for path in dict.fromkeys(f["path"] for s in sessions for f in s["subflows"]):
        for label, key, show in _PER_PATH:
            # A path that went down and came back has carried several subflows.
            sums = (_sum(f[key] for f in s["subflows"] if f["path"] == path) for s in sessions)
            result.add_row(Text.assemble((path, "cyan"), f", {label}"), *(show(total) for total in sums))
    return result


def _sum(values: Iterable[float | None]) -> float:
    """The sum of what is known: of a subflow that a kernel serves not everything is."""
    return sum(value for value in values if value is not None)


_PER_PATH: list[tuple[str, str, Callable[[float], str]]] = [
    ("goodput", "goodput_bps", summary.megabits),
    ("retransmissions", "retransmissions", summary.count),
]


def picture(runs: Sequence[StoredRun]) -> Figure:
    """The runs' first sessions side by side."""
    from anabranch.figures.comparison import Column, compare

    scenarios = list(dict.fromkeys(str(r.metrics["scenario"]) for r in runs))
    columns = [
        Column(
            title=name,
            subtitle=summary.in_short(run.metrics["sessions"][0]),
            recording=run.recording.sessions[0],
            marks=run.recording.marks,
        )
        for name, run in zip(names(runs), runs, strict=True)
    ]
    return compare(columns, title=", ".join(scenarios))


def save_picture(runs: Sequence[StoredRun], directory: Path) -> Path:
    """Writes the picture as ``comparison.png`` and ``comparison.svg`` and returns the former."""
    from anabranch.figures import style

    figure = picture(runs)
    directory.mkdir(parents=True, exist_ok=True)
    png = directory / "comparison.png"
    for path in (png, png.with_suffix(".svg")):
        style.save(figure, path)
    return png
