"""Measures cuts, recorded paths and DASH to a kernel's client, for docs/validation/one-pipe.md.

    .venv/bin/python scripts/one-pipe-viewers.py --recordings FOLDER        measures what is not kept (root, Linux)
    .venv/bin/python scripts/one-pipe-viewers.py --again                    prints the tables of kept runs
    .venv/bin/python scripts/one-pipe-viewers.py --again --write docs/validation/one-pipe.md

Beside each run on the wire stands the simulation with the same seed; today's Linux is `transport.kernel = "upstream"`
there.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from page_tables import interval, markdown, quantiles, replaced
from wire_runs import UPSTREAM, Metrics, chunk_times_ms, complete, in_simulation, load_kept, on_the_wire

from anabranch import _core

KEPT = Path(__file__).parent.parent / "docs" / "validation" / "one-pipe-viewers.json"

OURS, KERNEL = "anabranch", "kernel"
# In the order of the tables.
SENDERS = (
    "`earliest`, `cbbr`",
    "the same with `failover = false`",
    "the kernel, CUBIC",
    "TCP, `bbr` of the reference",
    "TCP, the kernel, CUBIC",
)
CUBIC = {"transport.congestion_control": "cubic"}
# A path that is slow is not one that is at fault.
PLAIN = {"transport.opportunistic_retransmission": "false", "transport.penalisation": "false"}
EARLIEST = {**PLAIN, "transport.scheduler": "earliest", "transport.congestion_control": "cbbr"}
NO_FAILOVER = {"transport.scheduler": '{ name = "earliest", failover = false }'}
# The reference's control, as in one-pipe/pipe.
REFERENCE = {"transport.congestion_control": '{ name = "bbr", pace = "packets", startup_losses = "always" }'}

# The cut is at 20 s, and the longest gap follows it.
CUT_DURATION_S = 40
BULK = {"session.0.video": '{ kind = "bulk" }', "session.0.player": '"bulk"'}

CHUNKS_KB = (100, 250)
CHUNKS_S = 60
# Pairs of Aydin, Fund and Panwar (github.com/aydini/Multipath-Wireless-Link-Traces), with the factor of their rates, as
# in scripts/kernel_clients.py. Round trips and queues are assumptions, because nothing was recorded about them.
PAIRS = {"13_1 x 0.1": ("13_1", 0.1), "21_1": ("21_1", 1.0)}
PAIR_LINKS = {"slow": ("wifi", "30 ms"), "fast": ("cellular", "60 ms")}
PAIR_QUEUE = "64 kB"
PAIR_OFFSET = "10 s"

# A minute of video in media segments of 2 s, as the kernel's page has it.
DASH_DURATION_S = 90
DASH_PLAYER = '{ kind = "dash.js-5", fast_switch = false }'
# Browsers decode and draw: more of them would slow each other down on two processors.
BROWSERS_AT_ONCE = 2


@dataclass(frozen=True)
class Row:
    """A sender on a network. `simulated` is what stands for it in simulation beside `changes`."""

    table: str
    network: str
    sender: str
    server: str
    scenario: str
    changes: Mapping[str, str]
    simulated: Mapping[str, str]

    @property
    def key(self) -> tuple[str, str, str]:
        """What identifies it among kept runs."""
        return self.table, self.network, self.sender


def senders(table: str, network: str, scenario: str, changes: Mapping[str, str]) -> list[Row]:
    """Ours and the kernel's."""
    return [
        Row(table, network, SENDERS[0], OURS, scenario, {**changes, **EARLIEST}, {}),
        Row(table, network, SENDERS[2], KERNEL, scenario, {**changes, **CUBIC}, UPSTREAM),
    ]


def cuts() -> list[Row]:
    """One of two paths fails silently during a video or a download."""
    rows = []
    for network, changes in (("a video", {}), ("a download", BULK)):
        same = {"duration": f"{CUT_DURATION_S} s", **changes}
        ours, kernel = senders("wire-cuts", network, "one-pipe/silent-cut", same)
        without = {**ours.changes, **NO_FAILOVER}
        rows += [ours, Row(ours.table, network, SENDERS[1], OURS, ours.scenario, without, {})]
        rows.append(kernel)
    return rows


def recorded(folder: Path) -> list[Row]:
    """A chunk a second over recorded paths."""
    rows = []
    for name, (pair, scale) in PAIRS.items():
        for chunk_kb in CHUNKS_KB:
            changes = {
                "trace_offset": PAIR_OFFSET,
                "session.0.video.size": f"{chunk_kb} kB",
                "session.0.player.duration": f"{CHUNKS_S} s",
                "duration": f"{CHUNKS_S + 5} s",
            }
            for link, (kind, rtt) in PAIR_LINKS.items():
                trace = (folder / f"{pair}_{kind}.csv").resolve()
                changes[f"link.{link}.rate"] = f'{{ trace = "{trace}", unit = "B/s", scale = {scale} }}'
                changes[f"link.{link}.rtt"] = rtt
                changes[f"link.{link}.queue"] = PAIR_QUEUE
                changes[f"link.{link}.down.loss"] = "0 %"
            rows += senders("wire-recorded", f"{name}, {chunk_kb} kB", "one-pipe/chunks", changes)
    return rows


def with_video(name: str, video: Path, folder: Path) -> str:
    """A shipped scenario of DASH with another video and player, as a file."""
    text = _core.shipped(name)
    assert text is not None, f"{name} is shipped"
    lines = [line for line in text.splitlines() if not line.startswith(("video =", "player =", "statistics ="))]
    lines.insert(lines.index("[[session]]") + 1, f'video = {{ kind = "dash", mpd = "{video / "manifest.mpd"}" }}')
    lines.insert(lines.index("[[session]]") + 1, f"player = {DASH_PLAYER}")
    file = folder / f"{name.replace('/', '-')}.toml"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(file)


def dash(video: Path, folder: Path) -> list[Row]:
    """The real dash.js in Chromium over 333 + 1667 kb/s, and beside it one TCP over 2000 kb/s."""
    same = {"duration": f"{DASH_DURATION_S} s"}
    pair, pipe = (with_video(name, video, folder) for name in ("dash/ratio-1-5", "dash/tcp-2000"))
    one_path = "2000 kb/s"
    return [
        *senders("wire-dash", "333 + 1667 kb/s", pair, same),
        Row("wire-dash", one_path, SENDERS[3], OURS, pipe, {**same, **REFERENCE}, {}),
        Row("wire-dash", one_path, SENDERS[4], KERNEL, pipe, {**same, **CUBIC}, UPSTREAM),
    ]


VALUES = ("longest_delivery_gap_s", "qoe_linear_per_segment", "mean_bitrate_bps", "stall_s")


def found(metrics: Metrics) -> dict[str, Any]:
    """What is kept of a run."""
    session = metrics["sessions"][0]
    kept = {name: session[name] for name in VALUES if session.get(name) is not None}
    return {**kept, "times_ms": chunk_times_ms(session) if session.get("downloads") else []}


def measure(row: Row, seed: int, video: Path | None) -> dict[str, Any]:
    """A record: a run in real time, and the simulated one of its seed."""
    browser = {"client": "dash.js", "content": video} if row.table == "wire-dash" else {}
    metrics = on_the_wire(row.scenario, row.changes, seed, server=row.server, **browser)  # type: ignore[arg-type]
    print(f"{', '.join(row.key)}, seed {seed}: done", file=sys.stderr, flush=True)
    simulated = in_simulation(row.scenario, {**row.changes, **row.simulated}, seed)
    named = {"table": row.table, "network": row.network, "sender": row.sender, "seed": seed}
    lateness = {"void": metrics["live"]["void"], "lateness_s": metrics["live"]["lateness_s"]["p99"]}
    return {**named, **lateness, "wire": found(metrics), "simulated": found(simulated)}


Runs = Sequence[Mapping[str, Any]]


def gaps(own: Runs, where: str) -> list[str]:
    """The longest gap of each run."""
    values = [run[where]["longest_delivery_gap_s"] for run in own]
    return [interval(values, 2), f"{max(values):.2f}"]


def chunks(own: Runs, where: str) -> list[str]:
    """The times of all chunks."""
    return [quantiles([time for run in own for time in run[where]["times_ms"]])]


def watched(own: Runs, where: str) -> list[str]:
    """What the viewer saw."""
    bitrate = interval([run[where]["mean_bitrate_bps"] / 1e6 for run in own], 2)
    stalls = interval([run[where]["stall_s"] for run in own], 1)
    return [bitrate, stalls, interval([run[where]["qoe_linear_per_segment"] for run in own], 0)]


@dataclass(frozen=True)
class Table:
    """Its columns, of which each stands once for the wire and once for simulation, and what fills them."""

    network: str
    columns: tuple[str, ...]
    of: Callable[[Runs, str], list[str]]


TABLES = {
    "wire-cuts": Table("one path fails during", ("longest gap, s", "largest"), gaps),
    "wire-recorded": Table("recorded pair", ("p50 / p90 / p99, ms",), chunks),
    "wire-dash": Table("network", ("bitrate, Mb/s", "stalls, s", "QoE per segment"), watched),
}


def place(row: tuple[str, str]) -> tuple[str, int]:
    """Where a row stands: by network, and by the order of senders."""
    return row[0], SENDERS.index(row[1])


def markdown_of(name: str, runs: Runs) -> str:
    """A table of the valid runs."""
    table = TABLES[name]
    own = [run for run in runs if run["table"] == name]
    valid = [run for run in own if not run["void"]]
    rows = []
    for network, sender in sorted({(run["network"], run["sender"]) for run in own}, key=place):
        same = [run for run in valid if (run["network"], run["sender"]) == (network, sender)]
        if same:
            numbers = [number for where in ("wire", "simulated") for number in table.of(same, where)]
            rows.append([network, sender, str(len(same)), *numbers])
    heads = [f"{where}: {column}" for where in ("wire", "simulated") for column in table.columns]
    worst = max(run["lateness_s"] for run in valid)
    late = f"their links were at most {1000 * worst:.2f} ms late (99th percentile)"
    note = f"{len(valid)} of {len(own)} runs are valid; {late}."
    return markdown((table.network, "sender", "runs", *heads), rows, texts=2) + f"\n\n{note}"


def rows_of(name: str, recordings: Path | None, folder: Path) -> tuple[list[Row], Path | None]:
    """The rows of a table, and the video of its players. Scenarios that are written for them are in the folder."""
    if name == "wire-cuts":
        return cuts(), None
    if name == "wire-recorded":
        return (recorded(recordings) if recordings else []), None
    from anabranch.live import browsing

    browsing.prepare()
    video = browsing.video(lambda _fraction: None)
    return dash(video, folder), video


def complete_table(name: str, kept: dict[str, Any], arguments: argparse.Namespace, folder: Path) -> None:
    """Makes the runs of a table that are not kept."""
    rows, video = rows_of(name, arguments.recordings, folder)
    have = {(run["table"], run["network"], run["sender"], run["seed"]) for run in kept["runs"] if not run["void"]}
    wanted = [(row, seed) for seed in range(1, arguments.seeds + 1) for row in rows if (*row.key, seed) not in have]
    complete(
        kept,
        wanted,
        lambda job: measure(*job, video),
        at_once=min(arguments.at_once, BROWSERS_AT_ONCE) if video else arguments.at_once,
        order=lambda run: (run["table"], *place((run["network"], run["sender"])), run["seed"]),
        file=arguments.keep,
    )


def main() -> None:
    """Measures or reads, and prints or writes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", choices=tuple(TABLES), action="append", help="these tables (all)")
    parser.add_argument("--seeds", type=int, default=5, help="seeds of every row (5)")
    parser.add_argument("--at-once", type=int, default=4, help="runs at the same time (4)")
    parser.add_argument("--recordings", metavar="FOLDER", type=Path, help="recorded pairs: *_wifi.csv, *_cellular.csv")
    parser.add_argument("--keep", metavar="FILE", type=Path, default=KEPT, help=f"where runs are kept ({KEPT.name})")
    parser.add_argument("--again", action="store_true", help="only make the tables of the runs that are kept")
    parser.add_argument("--write", metavar="PAGE", type=Path, help="replace the tables in this page")
    arguments = parser.parse_args()
    kept = load_kept(arguments.keep)
    names = arguments.only or list(TABLES)
    with tempfile.TemporaryDirectory(prefix="anabranch-") as folder:
        for name in [] if arguments.again else names:
            complete_table(name, kept, arguments, Path(folder))
    for name in names:
        text = markdown_of(name, kept["runs"])
        print(f"{name}\n\n{text}\n")
        if arguments.write:
            page = arguments.write.read_text(encoding="utf-8")
            arguments.write.write_text(replaced(page, name, text), encoding="utf-8")


if __name__ == "__main__":
    main()
