"""What a run found, in the few lines that a person reads first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

# Of many like sessions so many are shown in full; the rest is counted.
_MOST_SESSIONS = 4

Metrics = Mapping[str, Any]


def megabits(bps: float) -> str:
    """A rate in Mb/s, three digits."""
    return f"{bps / 1e6:.3g} Mb/s" if bps < 1e9 else f"{bps / 1e9:.3g} Gb/s"


def seconds(value: float | None) -> str:
    """A time, in the unit that suits its size; a dash where there is none."""
    if value is None:
        return "-"
    if 0.0 < abs(value) < 1.0:
        return f"{value * 1e3:.3g} ms"
    return f"{value:.1f} s" if abs(value) < 100.0 else f"{value:.0f} s"


def count(value: float | None) -> str:
    """A whole number with thin groups of three; a dash where there is none."""
    return "-" if value is None else f"{value:,.0f}".replace(",", "\u202f")


def total(values: Iterable[float | None]) -> float | None:
    """The sum of what is known, of a subflow that a kernel serves not everything is; ``None`` if nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def plural(number: int, one: str, many: str | None = None) -> str:
    """A number and its noun."""
    return f"{count(number)} {one if number == 1 else many or one + 's'}"


def playback(session: Metrics) -> str:
    """What the viewer saw, in one line; empty where no picture was shown."""
    if session["startup_s"] is None:
        return ""
    stalls = plural(session["stalls"], "stall")
    frozen = f" ({seconds(session['stall_s'])})" if session["stalls"] else ""
    line = f"start-up {seconds(session['startup_s'])}, {stalls}{frozen}"
    # The DASH players decode nothing, so they have neither.
    if "mean_bitrate_bps" in session:
        return line
    discards, underflows = session["picture_discards"], session["buffer_underflows"]
    return f"{line}, {plural(discards, 'discard')}, {plural(underflows, 'underflow')}"


def quality(session: Metrics) -> str:
    """Which representations of a DASH video the viewer saw, in one line; empty for any other session."""
    bitrate = session.get("mean_bitrate_bps")
    if bitrate is None:
        return ""
    window = session.get("statistics_window_s")
    when = "" if window is None else f"from {window[0]:g} to {window[1]:g} s: "
    text = f"{when}mean bitrate {megabits(bitrate)}, {plural(session['switches'], 'switch', 'switches')}"
    if session["impactful_switches"]:
        text += f", {count(session['impactful_switches'])} of them of the resolution"
    if session["time_on_high_quality"] is not None:
        text += f", {session['time_on_high_quality']:.0%} of the time on high quality"
    return text


def transfer(session: Metrics) -> str:
    """How the data came, in one line."""
    text = f"goodput {megabits(session['goodput_bps'])}"
    if len(session["subflows"]) > 1 and session["path_switches"] is not None:
        text += f", {plural(session['path_switches'], 'path switch', 'path switches')}"
    reorder = session["reorder_delay_s"]
    if reorder["max"]:
        text += f", reordering delay {seconds(reorder['mean'])} (95 %: {seconds(reorder['p95'])})"
    return text


def in_short(session: Metrics) -> str:
    """The most informative line: what the viewer saw, or the transfer where there is no viewer."""
    return "; ".join(filter(None, (playback(session), quality(session)))) or transfer(session)


def of_run(metrics: Metrics) -> RenderableType:
    """The summary of a whole run."""
    sessions = metrics["sessions"]
    parts: list[RenderableType] = []
    for number, session in enumerate(sessions[:_MOST_SESSIONS]):
        if number:
            parts.append(Text())
        if len(sessions) > 1:
            parts.append(Text(str(session["name"]), style="bold"))
        lines = (playback(session), quality(session), transfer(session))
        parts.extend(Text(line) for line in lines if line)
        parts.append(_subflows(session["subflows"]))
    if len(sessions) > _MOST_SESSIONS:
        parts.append(Text(f"\nand {len(sessions) - _MOST_SESSIONS} sessions more, in metrics.json", style="dim"))
    fairness = metrics.get("fairness")
    if fairness and fairness["jain_mean_bitrate"] is not None:
        parts.append(Text(f"\nJain's index of the mean bitrates: {fairness['jain_mean_bitrate']:.3f}"))
    traffic = metrics["traffic"]
    if traffic:
        rates = ", ".join(megabits(t["goodput_bps"]) for t in traffic[:_MOST_SESSIONS])
        more = ", ..." if len(traffic) > _MOST_SESSIONS else ""
        parts.append(Text(f"cross traffic: {plural(len(traffic), 'download')} at {rates}{more}"))
    return Group(*parts)


def _subflows(subflows: list[Metrics]) -> Table:
    # Narrow enough for a terminal of 80 columns.
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("\npath", style="cyan", no_wrap=True)
    for heading in (
        "goodput",
        "segments",
        "retrans-\nmitted",
        "rein-\njected",
        "time-\nouts",
        "mean\nwindow",
        "mean\nRTT",
    ):
        table.add_column(heading, justify="right", vertical="bottom", no_wrap=True)
    # A path that came back, or a connection that was opened anew, makes several subflows of one path.
    for path in dict.fromkeys(subflow["path"] for subflow in subflows):
        own = [subflow for subflow in subflows if subflow["path"] == path]
        window = _mean(own, "mean_cwnd_packets")
        table.add_row(
            str(path),
            megabits(sum(subflow["goodput_bps"] for subflow in own)),
            *(count(total(subflow[key] for subflow in own)) for key in _COUNTS),
            "-" if window is None else f"{window:.1f}",
            seconds(_mean(own, "mean_srtt_s")),
        )
    return table


_COUNTS = ("segments_sent", "retransmissions", "reinjections", "rto_count")


def _mean(subflows: list[Metrics], key: str) -> float | None:
    """The mean over subflows that have the number, weighted by what they sent."""
    known = [(subflow[key], subflow["segments_sent"]) for subflow in subflows if subflow[key] is not None]
    sent = sum(weight for _, weight in known)
    return sum(value * weight for value, weight in known) / sent if sent else None
