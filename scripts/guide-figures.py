"""Draws the figures of the guide's pages on algorithms and concepts, all of small simulated runs.

.venv/bin/python scripts/guide-figures.py                     writes docs/images/{algorithms,concepts}/*.png
.venv/bin/python scripts/guide-figures.py ecf blocking        only these
.venv/bin/python scripts/guide-figures.py --out DIR           into another folder
"""

from __future__ import annotations

import argparse
import io
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import guide as runs
import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

import anabranch
from anabranch.figures import style
from anabranch.library.catalogue import Catalogue

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
WIDTH_IN = 6.6
# Enough for a phone's screen; figures are shown at most at this width on a page.
DPI = 140
# Lines and letters have few colours, so a palette makes the files a third of the size.
COLOURS = 64

_COLOUR = {path: found.colour for path, found in style.path_styles([runs.FAST, runs.SLOW]).items()}


def _axes(rows: int = 1, columns: int = 1, height: float = 2.7, **keys: Any) -> tuple[Figure, Any]:
    figure = Figure(figsize=(WIDTH_IN, height), layout="constrained")
    return figure, figure.subplots(rows, columns, **keys)


# --- Schedulers -----------------------------------------------------------------------------------------------------


# The marks of `viewer-buffer`.
_MARKS = {"low_s": 4.0, "high_s": 9.6}


@cache
def _delivered(scheduler: str) -> runs.Delivery:
    """The chunk with a scheduler; upstream's takes data ahead of the windows, as it does in the kernel."""
    ahead = {"commit": "into-buffer", "failover": "upstream"} if scheduler == "linux" else {}
    return runs.delivery(runs.chunks({"scheduler": scheduler, **ahead}))


def _chunk(axes: Axes, found: runs.Delivery) -> None:
    """When each segment of a chunk left, on which path, and when the application could read it."""
    for path, colour in _COLOUR.items():
        of = found.sent.filter(pl.col("path") == path)
        new, again = of.filter(~pl.col("again")), of.filter(pl.col("again"))
        axes.plot(new["ms"], new["kB"], ".", color=colour, markersize=3.2, label=f"sent on {path}")
        if len(again):
            label = f"sent again on {path}"
            axes.plot(again["ms"], again["kB"], "x", color=colour, markersize=4.2, markeredgewidth=0.9, label=label)
    ms, kilobytes = ([0.0, *found.readable[name].to_list()] for name in ("ms", "kB"))
    axes.step(ms, kilobytes, where="post", color=style.INK, linewidth=1.1, label="readable")
    axes.set_ylim(0.0, runs.CHUNK_BYTES / 1e3 * 1.04)
    axes.set_xlim(left=0.0)
    axes.set_xlabel("ms since the request")


def _complete(axes: Axes, found: runs.Delivery, name: str, colour: str = style.INK) -> None:
    axes.axvline(found.complete_ms, color=colour, linewidth=0.8, linestyle=":")
    text = f"{name} {found.complete_ms:.0f} ms"
    axes.set_title(text, color=colour)


def scheduler(name: str) -> Figure:
    """One chunk with this scheduler, and with min-rtt when that was complete."""
    if name == "viewer-buffer":
        return viewer_buffer(name)
    with style.applied():
        figure, axes = _axes()
        found, usual = _delivered(name), _delivered("min-rtt")
        _chunk(axes, found)
        _complete(axes, found, f"{name}: 400 kB complete after")
        if name != "min-rtt":
            axes.axvline(usual.complete_ms, color=style.STALL, linewidth=0.9, linestyle="--")
            at = {"xy": (usual.complete_ms, 0.02), "xycoords": ("data", "axes fraction")}
            axes.annotate("min-rtt", **at, color=style.MUTED, fontsize=7.5, rotation=90, ha="right", va="bottom")
        axes.set_xlim(0.0, max(found.complete_ms, usual.complete_ms) * 1.06)
        axes.set_ylabel("place in the response (kB)")
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), markerscale=1.6)
        return figure


def viewer_buffer(name: str) -> Figure:
    """What comes over a metered path, and the viewer's buffer: a chunk has no viewer."""
    with style.applied():
        figure, (above, below) = _axes(2, 1, height=3.2, sharex=True)
        for each, colour in (("min-rtt", style.STALL), (name, _COLOUR[runs.SLOW])):
            change = {"transport.scheduler": each}
            run = anabranch.run("viewers/metered", seed=runs.SEED, set=change, events=True)
            sent = run.events.filter(event="segment-sent", source="session 0/server", path="lte")
            above.plot(sent["time_s"], np.cumsum(sent["bytes"]) / 1e6, color=colour, label=each)
            recorded = run.recording.sessions[0]
            below.plot(recorded.times_s, recorded.buffer_s, color=colour, linewidth=0.9, label=each)
        for mark in ("low_s", "high_s"):
            below.axhline(_MARKS[mark], color=style.MUTED, linewidth=0.8, linestyle="--")
        above.set_title("what comes over the metered path")
        above.set_ylabel("MB")
        above.legend(loc="upper left")
        below.set_ylabel("buffer (s)")
        below.set_xlabel("seconds")
        below.set_xlim(left=0.0)
        below.set_ylim(bottom=0.0)
        return figure


# --- Congestion controls --------------------------------------------------------------------------------------------


@cache
def _windows(control: str) -> anabranch.Run:
    return runs.download({"congestion_control": control}, runs.ALIKE, "30 s")


def congestion_control(name: str) -> Figure:
    """The windows of two subflows, with NewReno's in the background."""
    with style.applied():
        figure, both = _axes(1, 2, height=2.4, sharey=True)
        for position, path in enumerate((runs.FAST, runs.SLOW)):
            axes = both[position]
            if name != "newreno":
                _window(axes, _windows("newreno"), position, "#c4c4c4", "newreno")
            _window(axes, _windows(name), position, _COLOUR[path], name)
            axes.set_title(f"{path}: {runs.ALIKE[path]['rtt']}" + (", 0.1 % loss" if position else ", no random loss"))
            axes.set_xlabel("seconds")
            axes.set_xlim(0.0, 30.0)
            axes.legend(loc="upper right", ncols=2)
        top = 1.3 * max(float(np.nanmax(_cwnd(_windows(each), p)[10:])) for each in {name, "newreno"} for p in (0, 1))
        both[0].set_ylim(0.0, top)
        both[0].set_ylabel("window (packets)")
        return figure


def _cwnd(run: anabranch.Run, position: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    return run.recording.sessions[0].paths[position].cwnd_packets


def _window(axes: Axes, run: anabranch.Run, position: int, colour: str, label: str) -> None:
    axes.plot(run.recording.sessions[0].times_s, _cwnd(run, position), color=colour, label=label)


# --- Path policies --------------------------------------------------------------------------------------------------


def path_policy(name: str) -> Figure:
    """The throughput of two paths, one of which has a quarter of the other's rate."""
    run = runs.download({"congestion_control": "lia", "path_policy": name}, runs.UNLIKE, "40 s")
    with style.applied():
        figure, axes = _axes(height=2.2)
        recorded = run.recording.sessions[0]
        for path in recorded.paths:
            axes.plot(recorded.times_s, _smooth(path.throughput_bps) / 1e6, color=_COLOUR[path.path], label=path.path)
            for begin, end in path.disabled_s.tolist():
                axes.axvspan(begin, min(end, 40.0), color=_COLOUR[path.path], alpha=0.08, linewidth=0)
                middle = (begin + min(end, 40.0)) / 2
                axes.text(middle, 4.0, f"{path.path} is not used", ha="center", color=style.MUTED, fontsize=8)
        axes.set_xlim(0.0, 40.0)
        axes.set_ylim(bottom=0.0)
        axes.set_xlabel("seconds")
        axes.set_ylabel("Mb/s")
        axes.set_title(f"{name}: a download over 8 and 2 Mb/s")
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
        return figure


def _smooth(values: np.ndarray[Any, np.dtype[np.float64]], samples: int = 10) -> Any:
    """The mean of the last second."""
    return pl.Series(values).fill_nan(0.0).rolling_mean(samples, min_samples=1).to_numpy()


# --- Bitrate rules --------------------------------------------------------------------------------------------------


def abr_rule(name: str) -> Figure:
    """What is chosen and what is buffered, over a rate that falls to a fifth."""
    run = runs.viewer({"kind": name, "fast_switch": False} if name == "dash.js-5" else name)
    with style.applied():
        figure, (above, below) = _axes(2, 1, height=3.2, sharex=True, height_ratios=[3, 2])
        _chosen(above, run)
        above.set_title(f"{name}: {_seen(run)}")
        recorded = run.recording.sessions[0]
        below.fill_between(
            recorded.times_s, np.nan_to_num(recorded.buffer_s), color=style.STALL, alpha=0.45, linewidth=0
        )
        for begin, end in recorded.stalls_s.tolist():
            below.axvspan(begin, end, color=_COLOUR[runs.SLOW], alpha=0.35, linewidth=0)
        below.set_ylabel("buffer (s)")
        below.set_xlabel("seconds")
        below.set_xlim(0.0, float(recorded.times_s[-1]))
        below.set_ylim(bottom=0.0)
        return figure


def response_pacing(name: str) -> Figure:
    """What four viewers of two shared links choose."""
    run = anabranch.run("viewers/four", seed=runs.SEED, set={"server.response_pacing": name}, events=True)
    shares = [session["mean_bitrate_bps"] or 0.0 for session in run.metrics["sessions"]]
    switches = sum(session["switches"] or 0 for session in run.metrics["sessions"]) / len(shares)
    with style.applied():
        figure, axes = _axes(height=2.7)
        for number, recorded in enumerate(run.recording.sessions):
            edges = [recorded.shown[0].begin_s, *(each.end_s for each in recorded.shown)]
            rates = [each.bitrate_bps / 1e6 for each in recorded.shown]
            axes.stairs(rates, edges, baseline=None, linewidth=1.1, label=f"viewer {number + 1}")
        axes.set_title(f"{name}: mean {sum(shares) / len(shares) / 1e6:.2f} Mb/s, {switches:.0f} switches of each")
        axes.set_ylim(bottom=0.0)
        axes.set_xlabel("seconds")
        axes.set_ylabel("bitrate (Mb/s)")
        axes.legend(loc="lower right", ncols=4)
        return figure


def _seen(run: anabranch.Run) -> str:
    session = run.metrics["sessions"][0]
    stalls = f"{session['stall_s']:.1f} s frozen" if session["stalls"] else "no stall"
    bitrate = session["mean_bitrate_bps"]
    assert bitrate is not None, "a DASH session has one"
    return f"mean {bitrate / 1e6:.2f} Mb/s, {session['switches']} switches, {stalls}"


def _chosen(axes: Axes, run: anabranch.Run) -> None:
    shown = run.recording.sessions[0].shown
    axes.plot([0, 40, 40, 80, 80, 200], [5, 5, 1, 1, 5, 5], color="#c4c4c4", linewidth=1.0, label="rate of the path")
    edges = [shown[0].begin_s, *(each.end_s for each in shown)]
    axes.stairs(
        [each.bitrate_bps / 1e6 for each in shown], edges, color=_COLOUR[runs.FAST], linewidth=1.5, baseline=None
    )
    axes.plot([], [], color=_COLOUR[runs.FAST], label="on screen")
    axes.set_ylim(0.0, 6.4)
    axes.set_ylabel("Mb/s")
    axes.legend(loc="upper right", ncols=2)


# --- Concepts -------------------------------------------------------------------------------------------------------


def subflows() -> Figure:
    """A download over two paths: each subflow's throughput, and the connection's."""
    run = runs.download({"congestion_control": "cubic"}, runs.UNLIKE, "20 s")
    with style.applied():
        figure, axes = _axes(height=2.3)
        recorded = run.recording.sessions[0]
        parts = [_smooth(path.throughput_bps, 5) / 1e6 for path in recorded.paths]
        colours = [_COLOUR[path.path] for path in recorded.paths]
        labels = [f"subflow on {path.path}" for path in recorded.paths]
        axes.stackplot(recorded.times_s, parts, colors=colours, labels=labels, alpha=0.85, linewidth=0)
        axes.plot(recorded.times_s, sum(parts), color=style.INK, linewidth=1.0, label="the connection")
        axes.set_xlim(0.0, 20.0)
        axes.set_xlabel("seconds")
        axes.set_ylabel("Mb/s")
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
        return figure


def schedulers() -> Figure:
    """The same chunk with three schedulers."""
    with style.applied():
        names = ("min-rtt", "blest", "earliest")
        figure, all_axes = _axes(1, 3, height=2.5, sharey=True, sharex=True)
        for axes, name in zip(all_axes, names, strict=True):
            _chunk(axes, _delivered(name))
            _complete(axes, _delivered(name), f"{name}:")
        all_axes[0].set_ylabel("place in the response (kB)")
        all_axes[0].legend(loc="upper left", fontsize=7, markerscale=1.6)
        return figure


def blocking() -> Figure:
    """One chunk over both paths and over the fast one alone: arrived is not readable."""
    alone = {runs.FAST: runs.UNLIKE[runs.FAST]}
    both = _delivered("round-robin")
    one = runs.delivery(runs.chunks({"scheduler": "min-rtt"}, alone))
    with style.applied():
        figure, (left, right) = _axes(1, 2, height=2.6, sharey=True, sharex=True)
        for axes, found, name in ((left, one, "wifi alone"), (right, both, "wifi and lte, in turn")):
            _chunk(axes, found)
            _complete(axes, found, f"{name}:")
        right.set_xlim(0.0, max(one.complete_ms, both.complete_ms) * 1.06)
        left.set_ylabel("place in the response (kB)")
        right.legend(loc="upper left", fontsize=7, markerscale=1.6)
        return figure


def coupling() -> Figure:
    """What one TCP keeps at a bottleneck with a connection of two subflows."""
    names = ("newreno", "lia", "olia", "balia")
    shares = []
    for name in names:
        changes = {"transport.congestion_control": name, "duration": "120 s"}
        run = anabranch.run("fairness/shared-bottleneck", seed=runs.SEED, set=changes)
        own = run.metrics["sessions"][0]["goodput_bps"] / 1e6
        other = run.metrics["traffic"][0]["goodput_bps"] / 1e6
        shares.append((own, other))
    with style.applied():
        figure, axes = _axes(height=2.2)
        connections, tcps = zip(*shares, strict=True)
        axes.barh(names, connections, color=_COLOUR[runs.FAST], height=0.6, label="two subflows")
        axes.barh(names, tcps, left=connections, color=style.STALL, height=0.6, label="one TCP")
        for row, (mine, yours) in enumerate(shares):
            axes.text(mine / 2, row, f"{mine:.1f}", ha="center", va="center", color="white")
            axes.text(mine + yours / 2, row, f"{yours:.1f}", ha="center", va="center", color="white")
        axes.invert_yaxis()
        axes.grid(visible=False)
        axes.set_xlabel("Mb/s at a bottleneck of 10 Mb/s")
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
        return figure


def playout() -> Figure:
    """A player through an outage: the buffer drains, the picture freezes, the buffer fills."""
    wanted = runs.scenario(
        duration="90 s",
        link={runs.FAST: {"rtt": "30 ms", "rate": "6 Mb/s"}},
        session=[
            {
                "video": {"kind": "dash", "ladder": "bbb-2s", "duration": "60 s"},
                "player": {"kind": "rate", "buffer": "10 s"},
            }
        ],
        event=[{"at": "25 s", "link": runs.FAST, "down": True}, {"at": "38 s", "link": runs.FAST, "down": False}],
    )
    recorded = anabranch.run(wanted, seed=runs.SEED).recording.sessions[0]
    with style.applied():
        figure, axes = _axes(height=2.2)
        axes.plot(recorded.times_s, recorded.buffer_s, color=_COLOUR[runs.FAST])
        axes.axvspan(25.0, 38.0, color=style.STALL, alpha=0.25, linewidth=0)
        axes.text(
            25.3, 0.96, "no network", transform=axes.get_xaxis_transform(), va="top", color=style.MUTED, fontsize=8
        )
        for begin, end in recorded.stalls_s.tolist():
            axes.axvspan(begin, end, ymax=0.12, color=_COLOUR[runs.SLOW], linewidth=0)
            axes.text(
                end + 0.5, 0.06, "stall", transform=axes.get_xaxis_transform(), va="center", color=_COLOUR[runs.SLOW]
            )
        axes.set_xlim(0.0, float(recorded.times_s[-1]))
        axes.set_ylim(bottom=0.0)
        axes.set_xlabel("seconds")
        axes.set_ylabel("buffered (s)")
        return figure


CONCEPTS: Mapping[str, Callable[[], Figure]] = {
    "subflows": subflows,
    "schedulers": schedulers,
    "coupling": coupling,
    "blocking": blocking,
    "playout": playout,
}


def figures() -> dict[str, Callable[[], Figure]]:
    """How each figure is drawn, by its path below the folder of images: one per algorithm, and the concepts'."""
    kinds: dict[Callable[[str], Figure], Catalogue] = {
        scheduler: anabranch.schedulers(),
        congestion_control: anabranch.congestion_controls(),
        path_policy: anabranch.path_policies(),
        response_pacing: anabranch.response_pacings(),
        abr_rule: anabranch.abr_rules(),
    }
    drawn = {f"algorithms/{name}": _bound(draw, name) for draw, names in kinds.items() for name in names}
    return {**drawn, **{f"concepts/{name}": draw for name, draw in CONCEPTS.items()}}


def _bound(draw: Callable[[str], Figure], name: str) -> Callable[[], Figure]:
    return lambda: draw(name)


def save(figure: Figure, file: Path) -> None:
    """Writes a figure as a PNG with a palette."""
    drawn = io.BytesIO()
    with style.applied():
        figure.savefig(drawn, format="png", dpi=DPI)
    picture = Image.open(drawn).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    picture.save(file, optimize=True)


def main() -> None:
    """Draws what was asked for, or everything."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="algorithms or concepts; all where absent")
    parser.add_argument("--out", metavar="DIR", type=Path, default=IMAGES)
    arguments = parser.parse_args()
    known = figures()
    if unknown := set(arguments.names) - {Path(name).name for name in known}:
        parser.error(f"no figure is called {', '.join(sorted(unknown))}")
    for name, draw in known.items():
        # The path of a name with a dot is more than its stem.
        if arguments.names and name.rpartition("/")[2] not in arguments.names:
            continue
        file = arguments.out / f"{name}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        save(draw(), file)
        print(file)


if __name__ == "__main__":
    main()
