"""What a run found, in the few lines that a person reads first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from anabranch.results import downloads
from anabranch.results.metrics import Metrics, SessionMetrics, SubflowReport, quality_of, viewer_of
from anabranch.wording import ending, numerals

# What is said of many like sessions in full; the rest is counted.
_MOST_SESSIONS = 4


def megabits(bps: float) -> str:
    """A rate with three digits."""
    return f"{numerals.column([bps / 1e6])[0]} Mb/s" if bps < 1e9 else f"{numerals.column([bps / 1e9])[0]} Gb/s"


def seconds(value: float | None) -> str:
    """A time, in the unit that suits its size; a dash where there is none."""
    if value is None:
        return numerals.ABSENT
    if value == 0.0:
        return "0 s"
    if abs(value) < 1.0:
        return f"{numerals.column([value * 1e3], most=1)[0]} ms"
    return f"{value:.1f} s" if abs(value) < 100.0 else f"{value:.0f} s"


def count(value: float | None) -> str:
    """A whole number; a dash where there is none."""
    return numerals.fixed([value], 0)[0]


def total(values: Iterable[float | None]) -> float | None:
    """The sum of what is known, of a subflow that a kernel serves not everything is; ``None`` if nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def plural(number: int | None, one: str, many: str | None = None) -> str:
    """A number and its noun; a dash where there is no number."""
    return f"{count(number)} {one if number == 1 else many or one + 's'}"


def seeds_in_words(seeds: Sequence[int]) -> str:
    """Seeds in their order: ``1 to 20`` where none between is missing, or each of them."""
    if len(seeds) > 1 and list(seeds) == list(range(seeds[0], seeds[0] + len(seeds))):
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(map(str, seeds))


def playback(session: SessionMetrics) -> str:
    """What the viewer saw, in one line; empty where no picture was shown or it was not observed."""
    viewer = viewer_of(session)
    if viewer is None or viewer["startup_s"] is None:
        return ""
    stalls = plural(viewer["stalls"], "stall")
    frozen = f" ({seconds(viewer['stall_s'])})" if viewer["stalls"] else ""
    line = f"start-up {seconds(viewer['startup_s'])}, {stalls}{frozen}"
    # The DASH players decode nothing, so they have neither.
    if "mean_bitrate_bps" in session:
        return line
    discards, underflows = viewer["picture_discards"], viewer["buffer_underflows"]
    return f"{line}, {plural(discards, 'discard')}, {plural(underflows, 'underflow')}"


def quality(session: SessionMetrics) -> str:
    """Which representations of a DASH video the viewer saw, in one line; empty where there is nothing to say."""
    seen = quality_of(session)
    if seen is None or seen["mean_bitrate_bps"] is None:
        return ""
    window = seen["statistics_window_s"]
    when = "" if window is None else f"from {window[0]:g} to {window[1]:g} s: "
    text = f"{when}mean bitrate {megabits(seen['mean_bitrate_bps'])}, {plural(seen['switches'], 'switch', 'switches')}"
    if seen["impactful_switches"]:
        text += f", {count(seen['impactful_switches'])} of them of the resolution"
    if seen["time_on_high_quality"] is not None:
        text += f", {seen['time_on_high_quality']:.0%} of the time on high quality"
    return text


def transfer(session: SessionMetrics) -> str:
    """How fast the data came and how often the path changed, in one line."""
    text = f"goodput {megabits(session['goodput_bps'])}"
    if len(session["subflows"]) > 1 and session["path_switches"] is not None:
        text += f", {plural(session['path_switches'], 'path switch', 'path switches')}"
    return text


def reordering(session: SessionMetrics) -> str:
    """How long bytes waited for earlier ones, in one line; empty where none waited or it was not observed."""
    delay = session["reorder_delay_s"]
    if not delay["max"]:
        return ""
    mean, p95, longest = (seconds(delay[key]) for key in ("mean", "p95", "max"))
    most = f"up to {p95}" if delay["p95"] else "none"
    return f"reordering delay: mean {mean}, {most} for 95 % of the bytes, longest {longest}"


def chunks(session: SessionMetrics) -> str:
    """How long downloads took, in one line; empty where there are fewer than two."""
    every = session["downloads"] or ()
    if len(every) < 2:
        return ""
    times = downloads.times_s(every)
    came = plural(len(times), "chunk") if len(times) == len(every) else f"{len(times)} of {len(every)} chunks"
    if not times:
        return came
    median, p90 = (seconds(downloads.quantile(times, share)) for share in (0.5, 0.9))
    return f"{came}: median {median}, up to {p90} for 90 % of them, longest {seconds(times[-1])}"


def in_short(session: SessionMetrics) -> str:
    """The line that says most: what the viewer saw, or how the data came without a viewer."""
    seen = "; ".join(filter(None, (playback(session), quality(session)))) or transfer(session)
    return "; ".join(filter(None, (ending.cut_off(session), seen)))


def of_run(metrics: Metrics) -> RenderableType:
    """The summary of a whole run."""
    sessions = metrics["sessions"]
    parts: list[RenderableType] = []
    for number, session in enumerate(sessions[:_MOST_SESSIONS]):
        if number:
            parts.append(Text())
        if len(sessions) > 1:
            parts.append(Text(str(session["name"]), style="bold"))
        if cut_off := ending.cut_off(session):
            parts.append(Text(cut_off, style="bold yellow"))
        lines = (playback(session), quality(session), transfer(session), chunks(session), reordering(session))
        parts.extend(Text(line) for line in lines if line)
        parts.append(_subflows(session["subflows"]))
    if len(sessions) > _MOST_SESSIONS:
        parts.append(Text(f"\nand {len(sessions) - _MOST_SESSIONS} sessions more, in metrics.json", style="dim"))
    fairness = metrics["fairness"]
    if fairness is not None and fairness["jain_mean_bitrate"] is not None:
        parts.append(Text(f"\nJain's index of the mean bitrates: {fairness['jain_mean_bitrate']:.3f}"))
    traffic = metrics["traffic"]
    if traffic:
        rates = ", ".join(numerals.column([t["goodput_bps"] for t in traffic[:_MOST_SESSIONS]], scale=1e-6))
        more = ", ..." if len(traffic) > _MOST_SESSIONS else ""
        parts.append(Text(f"cross traffic: {plural(len(traffic), 'download')} at {rates}{more} Mb/s"))
    return Group(*parts)


def _subflows(subflows: Sequence[SubflowReport]) -> Table:
    # Narrow enough for a terminal of 80 columns; a long name is folded.
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("\npath", style="cyan", overflow="fold")
    for heading in (
        "goodput\nMb/s",
        "segments",
        "retrans-\nmitted",
        "rein-\njected",
        "time-\nouts",
        "mean\nwindow",
        "mean RTT\nms",
    ):
        table.add_column(heading, justify="right", vertical="bottom", no_wrap=True)
    for row in path_rows(subflows):
        table.add_row(*row)
    return table


def path_rows(subflows: Sequence[SubflowReport]) -> list[list[str]]:
    """A row per path: its name, goodput in Mb/s, the counts of segments, the mean window, the mean round trip in ms."""
    # A path that came back, or a connection that was opened anew, makes several subflows of one path.
    paths = list(dict.fromkeys(subflow["path"] for subflow in subflows))
    groups = [[subflow for subflow in subflows if subflow["path"] == path] for path in paths]
    columns = [
        numerals.column([sum(subflow["goodput_bps"] for subflow in own) for own in groups], scale=1e-6),
        *(numerals.fixed([total(subflow[key] for subflow in own) for own in groups], 0) for key in _COUNTS),
        numerals.fixed([_mean(own, "mean_cwnd_packets") for own in groups], 1),
        numerals.column([_mean(own, "mean_srtt_s") for own in groups], scale=1e3, most=1),
    ]
    return [[path, *texts] for path, *texts in zip(paths, *columns, strict=True)]


_COUNTS: tuple[Literal["segments_sent", "retransmissions", "reinjections", "rto_count"], ...] = (
    "segments_sent",
    "retransmissions",
    "reinjections",
    "rto_count",
)


def _mean(subflows: Sequence[SubflowReport], key: Literal["mean_cwnd_packets", "mean_srtt_s"]) -> float | None:
    """The mean over subflows that have the number, weighted by what they sent."""
    known = [(value, subflow["segments_sent"]) for subflow in subflows if (value := subflow[key]) is not None]
    sent = sum(weight for _, weight in known)
    return sum(value * weight for value, weight in known) / sent if sent else None
