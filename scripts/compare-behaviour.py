#!/usr/bin/env python3
"""Compares what runs give with what they gave before: metrics.json and the table of events, byte by byte.

A change of structure must not change behaviour. `scripts/behaviour.json` holds, for every shipped scenario with the
seeds 1 to 3 and for 40 combinations of scenario, congestion control and scheduler, a digest of the metrics and one of
the table of events. A change of behaviour that is meant records new digests, so that it is seen in the diff.

    python scripts/compare-behaviour.py              # everything, some minutes
    python scripts/compare-behaviour.py --sample     # what CI compares
    python scripts/compare-behaviour.py --record     # after a change of behaviour that is meant
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import sys
from dataclasses import dataclass
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import numpy as np

from anabranch import _core

DIGESTS = Path(__file__).with_name("behaviour.json")

# Columns of the table of events had other names when the digests were recorded, and some of them stood for several
# things: the name of each then, and for each event the column that has it now.
RENAMED: dict[str, dict[str, str]] = json.loads(Path(__file__).with_name("event-columns.json").read_text("utf-8"))

# The table's columns as they were.
RECORDED_COLUMNS = (
    *("time_s", "source", "event", "detail", "subflow", "to_subflow", "path", "bytes", "offset", "number"),
    *("representation", "seconds", "across_s", "rtt_from_s", "rtt_to_s", "rate_from_bps", "rate_to_bps"),
    *("cwnd_packets", "ssthresh_packets", "flag", "any_data", "new_data", "frame", "frame_packets", "packets_before"),
    *("underflow_ratio", "discard_margin", "underflow_expected", "discard_expected", "value"),
)

# Kinds of events that did not exist then, and columns with positions in a list of words, which these kinds extend.
ADDED = (
    *("path-limited", "written", "read", "link-changed", "window-advertised", "copied", "considered"),
    "window-decayed",
)
WORDS = ("event", "detail")

# A time that was recorded in whole milliseconds, at most this many.
MILLISECONDS, MOST_MILLISECONDS = "finish_s", 2**32 - 1

SEEDS = (1, 2, 3)

# Scenarios that differ in what they ask of the endpoint: full windows, a handoff, three paths, DASH, unlike paths.
COMBINED_SCENARIOS = (
    "sticky/3p-50",
    "handoff/limited-handoff",
    "bulk/three-paths",
    "dash/ratio-1-3",
    "mobile/wifi-lte",
)

# Every congestion control and every scheduler occurs.
COMBINATIONS = (
    ("newreno", "min-rtt"),
    ("cubic", "linux"),
    ("compound", "round-robin"),
    ("lia", "redundant"),
    ("olia", "blest"),
    ("balia", "ecf"),
    ("wvegas", "gr-sty"),
    ("bbr", "tp-sty"),
    ("mcc", "tr-sty"),
    ("cubic", "largest-window"),
    ("lia", "highest-rate"),
    ("bbr", "min-rtt"),
)

# Eight of the combinations for each of the five scenarios: forty runs in all.
COMBINATIONS_PER_SCENARIO = 8

# The version in metrics, and the one that metrics had when the digests were recorded.
VERSION = re.compile(r'"version": "[^"]*"')
RECORDED_VERSION = '"version": "0.1.0"'

# Every how many-th run is in the sample.
SAMPLE_STEP = 4


@dataclass(frozen=True)
class Case:
    """One run: a scenario with overrides and a seed."""

    scenario: str
    seed: int
    overrides: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """The run's name in the file of digests."""
        changed = "".join(f" {key}={value}" for key, value in self.overrides)
        return f"{self.scenario} seed {self.seed}{changed}"


def cases() -> list[Case]:
    """Every run that is compared, always in the same order."""
    shipped = [entry[1] for entry in _core.registry() if entry[0] == "scenarios"]
    plain = [Case(scenario, seed) for scenario in shipped for seed in SEEDS]
    combined = []
    for position, scenario in enumerate(COMBINED_SCENARIOS):
        for step in range(COMBINATIONS_PER_SCENARIO):
            # The start differs by scenario, so that every pair is run in several of them.
            control, scheduler = COMBINATIONS[(position * 5 + step) % len(COMBINATIONS)]
            overrides = (("transport.congestion_control", control), ("transport.scheduler", scheduler))
            combined.append(Case(scenario, 1, overrides))
    return plain + combined


def digest(case: Case) -> dict[str, str]:
    """Runs a case; the digests of its metrics and of its events."""
    text = _core.shipped(case.scenario)
    if text is None:
        raise SystemExit(f"error: no shipped scenario is called {case.scenario}")
    scenario = _core.load(text, name=case.scenario, directory=None, overrides=case.overrides)
    outcome = _core.run(scenario, seed=case.seed, record_events=True, progress=None)
    # The number of the version is no behaviour: a release changes it and nothing else.
    metrics = VERSION.sub(RECORDED_VERSION, outcome.metrics_json, count=1)
    events = outcome.events()
    # It has the same columns.
    del outcome
    return {"metrics": hashlib.sha256(metrics.encode()).hexdigest()[:32], "events": digest_of_events(events)}


def as_recorded(events: dict[str, Any]) -> dict[str, Any]:
    """The table with the rows and columns that it had when the digests were recorded."""
    events = _without_added(events)
    _, codes, words = events["event"]
    names = [words[code] for code in codes]
    return {
        column: _joined(events, names, RENAMED[column]) if column in RENAMED else events[column]
        for column in RECORDED_COLUMNS
        if column in RENAMED or column in events
    }


def _without_added(events: dict[str, Any]) -> dict[str, Any]:
    """The table without the kinds of events that are new."""
    _, codes, words = events["event"]
    kept = ~np.isin(codes, [at for at, word in enumerate(words) if word in ADDED])
    # The last entry of a column is what stands for no value, or the list of its words.
    # Each column goes as soon as its part is there: a table has gigabytes.
    table = {}
    for name in list(events):
        kind, values, last = events.pop(name)
        table[name] = (kind, values[kept], last)
    for name in WORDS:
        kind, codes, words = table[name]
        # Words are listed in the order of their first appearance.
        used, first = np.unique(codes[codes >= 0], return_index=True)
        order = used[np.argsort(first)]
        position = np.full(len(words) + 1, -1, codes.dtype)
        position[order] = np.arange(len(order))
        table[name] = (kind, position[codes], [words[at] for at in order])
    return table


def _joined(events: dict[str, Any], names: list[str], now: dict[str, str]) -> tuple[str, Any, Any]:
    """One column of several, each for its own events."""
    kind, like, absent = next(events[column] for column in now.values() if column != MILLISECONDS)
    # The values of a text are positions in its words.
    nothing = -1 if kind == "text" else absent
    values = np.full_like(like, nothing)
    for event, column in now.items():
        rows = np.fromiter((name == event for name in names), bool, len(names))
        found = events[column][1][rows]
        values[rows] = _in_milliseconds(found, absent) if column == MILLISECONDS else found
    return kind, values, absent


def _in_milliseconds(seconds: Any, absent: int) -> Any:
    whole = np.rint(np.nan_to_num(seconds) * 1e9).astype(np.int64) // 1_000_000
    return np.where(np.isnan(seconds), absent, np.minimum(whole, MOST_MILLISECONDS))


def digest_of_events(events: dict[str, Any] | None) -> str:
    """The digest of every column's name, kind and values."""
    if events is None:
        raise SystemExit("error: the run recorded no events")
    whole = hashlib.sha256()
    for name, (kind, values, absent) in as_recorded(events).items():
        whole.update(f"{name}|{kind}|{values.dtype.str}|{absent!r}|".encode())
        whole.update(np.ascontiguousarray(values).tobytes())
    return whole.hexdigest()[:32]


def differences(expected: dict[str, dict[str, str]], found: dict[str, dict[str, str]]) -> list[str]:
    """What differs, one line for each run that was not recorded or does not give what it gave."""
    lines = []
    for name, digests in found.items():
        if name not in expected:
            lines.append(f"{name}: not recorded; run with --record")
            continue
        changed = [part for part, value in digests.items() if expected[name].get(part) != value]
        if changed:
            lines.append(f"{name}: {' and '.join(changed)} changed")
    return lines


def main() -> int:
    """Runs what was asked for; 0 if nothing differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", action="store_true", help=f"compare every {SAMPLE_STEP}th run only")
    parser.add_argument("--record", action="store_true", help="write the digests of this version instead of comparing")
    parser.add_argument("--only", metavar="TEXT", default="", help="compare only runs with this in their names")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes (all processors)")
    arguments = parser.parse_args()
    if arguments.record and (arguments.sample or arguments.only):
        parser.error("--record writes all digests: it goes without --sample and --only")
    chosen = [case for case in cases() if arguments.only in case.name]
    if arguments.sample:
        chosen = chosen[::SAMPLE_STEP]
    if not chosen:
        parser.error(f"no run has `{arguments.only}` in its name")
    # A process keeps the memory of its largest table, so each makes one run.
    with Pool(arguments.jobs, maxtasksperchild=1) as pool:
        found = {case.name: digests for case, digests in zip(chosen, pool.imap(digest, chosen), strict=True)}
    if arguments.record:
        DIGESTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        print(f"{len(found)} runs recorded")
        return 0
    lines = differences(json.loads(DIGESTS.read_text(encoding="utf-8")), found)
    print("\n".join([*lines, f"{len(found) - len(lines)} of {len(found)} runs give what they gave before"]))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
