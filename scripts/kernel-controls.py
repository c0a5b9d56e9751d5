"""Measures coupled controls in the kernel with nginx, curl and Chromium, for docs/validation/kernel-controls.md.

    .venv/bin/python scripts/kernel-controls.py                                              measures, prints the tables
    .venv/bin/python scripts/kernel-controls.py --write docs/validation/kernel-controls.md   replaces them in the page
    .venv/bin/python scripts/kernel-controls.py --only chunks --runs 2                       one of them
    .venv/bin/python scripts/kernel-controls.py --again --write PAGE                         of the runs that are kept

nginx serves on the kernel's Multipath TCP, without and with the controls of `anabranch kernel attach`, and with PUD.
The links are those of the shipped scenarios, and recorded pairs where `--recordings` names their folder. It needs root
and what `scripts/setup-live.sh` installs. The command attaches the controls to ports of its own and detaches them at
the end. Runs are kept in a file as each of them ends; those that it has already are not made again.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel_clients import (
    FILE_SYSTEM,
    NETWORKS,
    PIPE,
    RECORDED,
    SENDERS,
    SHARED,
    Sender,
    Spec,
    expected,
    together,
)
from kernel_cost import CONNECTIONS, COST_SENDERS, cost
from page_tables import interval, markdown, quantiles, replaced

from anabranch import _core

KEPT = Path(__file__).resolve().parent.parent / "docs" / "validation" / "kernel-controls-nginx.json"

Record = Mapping[str, Any]
_NAMED_BY = ("table", "network", "sender", "seed", "size_kb", "writes")


def key(record: Record) -> tuple[Any, ...]:
    """What names a run."""
    return tuple(record[name] for name in _NAMED_BY)


class Kept:
    """The runs of a file, which is written again after each of them."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.records: list[Record] = json.loads(file.read_text("utf-8")) if file.exists() else []

    def add(self, record: Record) -> None:
        """Keeps a run."""
        self.records.append(record)
        lines = ",\n".join(json.dumps(one) for one in sorted(self.records, key=key))
        partial = self._file.with_suffix(".new")
        partial.write_text(f"[\n{lines}\n]\n", "utf-8")
        partial.replace(self._file)

    def missing(self, specs: Sequence[Spec]) -> list[Spec]:
        """Those that it does not have."""
        have = {key(one) for one in self.records}
        return [spec for spec in specs if key(spec.record()) not in have]


def check(record: Record) -> None:
    """The connection had the control that its row names, and both subflows."""
    (sender,) = [one for one in SENDERS if one.name == record["sender"]]
    assert record.get("controls", [expected(sender)]) == [expected(sender)], record
    assert record["joins"] >= 1, record


def first_share(one: Record) -> float:
    """The part of the bytes that came on the first path, in per cent."""
    received = one["received"]
    return float(100 * received["ct1"] / sum(received.values()))


def rows_of(records: Sequence[Record], networks: Sequence[str]) -> Iterator[tuple[str, str, list[Record]]]:
    """The runs of each network and sender, in the order of a table; what was not measured has no row."""
    for network in networks:
        for sender in SENDERS:
            own = [one for one in records if (one["network"], one["sender"]) == (network, sender.name)]
            if own:
                yield network, sender.name, own


# A download takes about half a minute over 2 Mb/s.
FILE_KB = 6000


def downloads(runs: int, recordings: Path | None) -> list[Spec]:
    """A file of 6 MB over each network."""
    return [
        Spec("downloads", network, sender, seed, "curl", size_kb=FILE_KB, recordings=recordings)
        for seed in range(1, runs + 1)
        for network in (*NETWORKS, *(RECORDED if recordings else ()))
        for sender in SENDERS
    ]


def downloads_table(records: Sequence[Record]) -> str:
    """The time of a file."""
    rows = []
    for network, sender, own in rows_of(records, (*NETWORKS, *RECORDED)):
        times, shares = interval([one["times_s"][0] for one in own]), interval([first_share(one) for one in own], 0)
        rows.append([network, sender, str(len(own)), times, shares])
    return markdown(("network", "sender", "runs", f"{FILE_KB / 1000:g} MB, s", "on path 1, %"), rows, texts=2)


CHUNKS_KB = (100, 250)
CHUNKS = 60
# Which senders get each size of writes.
_WRITTEN_BY = {"pages": SENDERS, "32 kB": SENDERS[:3], "whole chunks": SENDERS[:3]}


def chunks(runs: int, _recordings: Path | None) -> list[Spec]:
    """A chunk a second on one connection."""
    return [
        Spec("chunks", PIPE, sender, seed, "curl", size_kb=size, count=CHUNKS, writes=writes)
        for seed in range(1, runs + 1)
        for writes, senders in _WRITTEN_BY.items()
        for sender in senders
        for size in CHUNKS_KB
    ]


def chunks_table(records: Sequence[Record]) -> str:
    """The times of chunks."""
    rows = []
    for writes, senders in _WRITTEN_BY.items():
        for sender in senders:
            row = [writes, sender.name]
            for size in CHUNKS_KB:
                named = (writes, sender.name, size)
                own = [one for one in records if (one["writes"], one["sender"], one["size_kb"]) == named]
                # The first chunk waits for the second subflow and for slow start: a viewer's manifest.
                times_ms = [[1000 * time_s for time_s in one["times_s"][1:]] for one in own]
                row.append(quantiles([time_ms for run in times_ms for time_ms in run]))
                row.append(interval([statistics.median(run) for run in times_ms], 0))
            rows.append(row)
    runs = max(one["seed"] for one in records)
    sizes = [f"{size} kB: {number}" for size in CHUNKS_KB for number in ("p50 / p90 / p99, ms", "p50 of a run, ms")]
    return markdown(("nginx writes", f"sender ({runs} runs of {CHUNKS} chunks)", *sizes), rows, texts=2)


def players(runs: int, recordings: Path | None) -> list[Spec]:
    """A minute of video in the real dash.js."""
    from anabranch.live import browsing
    from anabranch.live.clients.watch import CLIENTS

    ladder = browsing.video(lambda _fraction: None)
    CLIENTS["dash.js"].prepare()
    return [
        Spec("players", network, sender, seed, "dash.js", ladder=ladder, recordings=recordings)
        for seed in range(1, runs + 1)
        for network in (*NETWORKS, *(tuple(RECORDED)[:1] if recordings else ()))
        for sender in SENDERS
    ]


def players_table(records: Sequence[Record]) -> str:
    """What a viewer of the real dash.js sees."""
    rows = []
    for network, sender, own in rows_of(records, (*NETWORKS, *RECORDED)):
        seen = [one["session"] for one in own]
        rows.append(
            [
                network,
                sender,
                str(len(own)),
                interval([one["mean_bitrate_bps"] / 1e6 for one in seen]),
                interval([one["switches"] for one in seen], 1),
                interval([one["stalls"] for one in seen], 1),
                interval([one["stall_s"] for one in seen], 1),
                interval([one["qoe_linear_per_segment"] for one in seen], 0),
                interval([first_share(one) for one in own], 0),
            ]
        )
    numbers = ("bitrate, Mb/s", "switches", "stalls", "stalls, s", "QoE per segment", "on path 1, %")
    return markdown(("network", "sender", "runs", *numbers), rows, texts=2)


def sharing(runs: int, _recordings: Path | None) -> list[Spec]:
    """An endless download beside a kernel TCP."""
    return [
        # A file that lasts for minutes over the whole bottleneck.
        Spec("sharing", SHARED, sender, seed, "curl beside a TCP", size_kb=100_000)
        for seed in range(1, runs + 1)
        for sender in SENDERS
    ]


def sharing_table(records: Sequence[Record]) -> str:
    """What is left for a TCP."""
    rows = []
    for _, sender, own in rows_of(records, (SHARED,)):
        connection = interval([one["own_bps"] / 1e6 for one in own])
        tcp = interval([one["tcp_bps"] / 1e6 for one in own])
        rows.append(
            [sender, str(len(own)), connection, tcp, interval([one["own_bps"] / one["tcp_bps"] for one in own])]
        )
    return markdown(("sender", "runs", "connection, Mb/s", "the TCP, Mb/s", "ratio"), rows)


def costs(runs: int, kept: Kept) -> None:
    """What the programs cost beside the built-in CUBIC; one run at a time, in turn."""
    for seed in range(1, runs + 1):
        for connections in CONNECTIONS:
            for sender in COST_SENDERS:
                cpu_s, rate = cost(sender, connections)
                named = {"table": "cost", "network": "", "sender": sender.name, "seed": seed}
                found = {"cpu_s_per_gbit": cpu_s, "goodput_mbps": rate, "load": round(os.getloadavg()[0], 1)}
                kept.add({**named, "size_kb": 0, "writes": f"{connections} connections", **found})


def cost_table(records: Sequence[Record]) -> str:
    """Beside CUBIC; the ratios are of neighbours."""
    found = {(one["writes"], one["sender"], one["seed"]): one for one in records}
    runs = max(one["seed"] for one in records)
    rows = []
    for connections in CONNECTIONS:

        def of(sender: Sender, what: str, name: str = f"{connections} connections") -> list[float]:
            return [found[name, sender.name, seed][what] for seed in range(1, runs + 1)]

        base = of(COST_SENDERS[0], "cpu_s_per_gbit")
        for sender in COST_SENDERS:
            own = of(sender, "cpu_s_per_gbit")
            ratios = [cpu / other for cpu, other in zip(own, base, strict=True)]
            rates = interval(of(sender, "goodput_mbps"), 0)
            rows.append([str(connections), sender.name, interval(own), interval(ratios), rates])
    counted = "1 run" if runs == 1 else f"{runs} runs"
    head = ("connections", f"sender ({counted})", "CPU s per Gbit", "over CUBIC's", "goodput, Mb/s")
    return markdown(head, rows, texts=2)


# Browsers decode and draw: more of them would slow each other down on two processors.
BROWSERS_AT_ONCE = 3


@dataclass(frozen=True)
class Table:
    """A table: the runs that it needs, and what it makes of them. The cost is measured on its own."""

    specs: Callable[[int, Path | None], list[Spec]] | None
    of: Callable[[Sequence[Record]], str]


TABLES: Mapping[str, Table] = {
    "downloads": Table(downloads, downloads_table),
    "chunks": Table(chunks, chunks_table),
    "players": Table(players, players_table),
    "sharing": Table(sharing, sharing_table),
    "cost": Table(None, cost_table),
}


def measure(name: str, options: argparse.Namespace, kept: Kept) -> None:
    """Makes the runs of a table that are not kept yet."""
    specs = TABLES[name].specs
    if specs is None:
        costs(options.runs, kept)
        return
    wanted = kept.missing(specs(options.runs, options.recordings))
    at_once = min(options.at_once, BROWSERS_AT_ONCE) if name == "players" else options.at_once
    for record in together(wanted, at_once):
        if "reasons" in record:
            print(f"no run of {key(record)} counts: {record['reasons']}", flush=True)
            continue
        check(record)
        kept.add(record)


@contextmanager
def attached() -> Iterator[None]:
    """All controls, each on its port, while it lasts."""
    FILE_SYSTEM.mkdir(exist_ok=True)
    try:
        for sender in SENDERS[2:6]:
            _core.kernel_attach(sender.control, port=sender.port, file_system=FILE_SYSTEM)
        yield
    finally:
        _core.kernel_detach(file_system=FILE_SYSTEM)
        subprocess.run(["umount", FILE_SYSTEM], check=True)
        FILE_SYSTEM.rmdir()


def main() -> None:
    """Measures, and prints or writes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", metavar="PAGE", type=Path, help="replace the tables in this page")
    parser.add_argument("--only", choices=tuple(TABLES), action="append", help="these tables (all)")
    parser.add_argument("--runs", type=int, default=3, help="of each row (3)")
    parser.add_argument("--at-once", type=int, default=6, help="live runs at a time (6)")
    parser.add_argument(
        "--recordings", metavar="FOLDER", type=Path, help="recorded pairs, as *_wifi.csv, *_cellular.csv"
    )
    parser.add_argument("--keep", metavar="FILE", type=Path, default=KEPT, help=f"where runs are kept ({KEPT.name})")
    parser.add_argument("--again", action="store_true", help="only make the tables of the runs that are kept")
    parser.add_argument("--attached", action="store_true", help="the controls are attached to these ports already")
    options = parser.parse_args()
    kept = Kept(options.keep)
    with ExitStack() as stack:
        if not options.attached and not options.again:
            stack.enter_context(attached())
        for name in options.only or TABLES:
            if not options.again:
                measure(name, options, kept)
            own = [one for one in kept.records if one["table"] == name]
            table = TABLES[name].of(own) if own else ""
            print(f"{name}\n\n{table}\n", flush=True)
            if options.write is not None and own:
                page = options.write.read_text(encoding="utf-8")
                options.write.write_text(replaced(page, name, table), encoding="utf-8")


if __name__ == "__main__":
    main()
