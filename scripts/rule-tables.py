"""Writes the tables of docs/validation/bitrate-rules.md.

dash.js 5 with and without fast switch, and the domains of BOLA and RobustMPC, on shipped scenarios:

    .venv/bin/python scripts/rule-tables.py                                           prints them
    .venv/bin/python scripts/rule-tables.py --write docs/validation/bitrate-rules.md  replaces them in the page
"""

from __future__ import annotations

import argparse
import statistics
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from page_tables import replaced

import anabranch

SEEDS = range(1, 6)

Player = dict[str, Any]

FAST_SWITCH = [
    (scenario, f"{'with' if fast else 'without'} fast switch", {"kind": "dash.js-5", "fast_switch": fast})
    for scenario in ("dash/tcp-1667", "dash/tcp-2000", "dash/ratio-1-1", "dash/ratio-1-5", "dash/four-viewers")
    for fast in (True, False)
]

BOLA = [
    ("dash/tcp-2000", name, {"kind": "bola", **options})
    for name, options in (
        ("BOLA-FINITE without its abandonment, 25 s", {"cap": "none", "abandon": False}),
        ("BOLA-U without abandonment, 25 s", {"abandon": False}),
        ("BOLA-U (the default), 25 s", {}),
        ("BOLA-U, 30 s", {"buffer": "30 s"}),
        ("BOLA-U, 60 s", {"buffer": "60 s"}),
        ("BOLA-O, 60 s", {"cap": "bola-o", "buffer": "60 s"}),
    )
]

MPC = [
    ("dash/four-viewers", name, {"kind": "robust-mpc", **options})
    for name, options in (
        ("5 media segments (10 s) ahead", {}),
        ("10 media segments (20 s) ahead", {"horizon": 10}),
        ("5 ahead, a stall's second costs 10 000", {"stall_penalty": 10_000}),
    )
]

TABLES: dict[str, list[tuple[str, str, Player]]] = {"fast-switch": FAST_SWITCH, "bola": BOLA, "robust-mpc": MPC}


def values(scenario: str, player: Player) -> Iterable[str]:
    """The means over the viewers of all runs."""
    sessions = [
        session
        for seed in SEEDS
        for session in anabranch.run(scenario, seed=seed, set={"session.0.player": player}).metrics["sessions"]
    ]

    def mean(key: str, unit: float = 1.0) -> float:
        return statistics.mean((session[key] or 0.0) / unit for session in sessions)

    wasted = statistics.mean(session["wasted_bytes"] / session["bytes"] for session in sessions)
    yield f"{mean('mean_bitrate_bps', 1e6):.2f}"
    yield f"{mean('switches'):.1f}"
    yield f"{mean('stalls'):.1f}"
    yield f"{mean('stall_s'):.1f}"
    yield f"{100 * wasted:.0f} %"


def table(rows: list[tuple[str, str, Player]]) -> str:
    """A table in Markdown."""
    head = ["scenario", "player", "mean bitrate, Mb/s", "switches", "stalls", "stalled, s", "wasted bytes"]
    lines = [head, ["---"] * 2 + ["---:"] * 5]
    lines += [[f"`{scenario}`", name, *values(scenario, player)] for scenario, name, player in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    """Measures, and prints or writes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", metavar="PAGE", type=Path, help="replace the tables in this page")
    page: Path | None = parser.parse_args().write
    # Rows outside of a rule's domain are meant to be there.
    warnings.simplefilter("ignore")
    text = page.read_text(encoding="utf-8") if page else ""
    for name, rows in TABLES.items():
        made = table(rows)
        if page:
            text = replaced(text, name, made)
        else:
            print(f"{name}\n\n{made}\n")
    if page:
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
