"""Measures what `cbbr` takes from others at a common bottleneck, and how long a silent cut is felt.

    .venv/bin/python scripts/one-pipe-shares.py                                         prints the tables
    .venv/bin/python scripts/one-pipe-shares.py --write docs/validation/one-pipe.md     replaces them in the page

Intervals are those of Student's t, 95 %.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from page_tables import markdown, replaced

from anabranch import _core

# Its tables are of the same page.
players = importlib.import_module("one-pipe-players")

# Bytes of payload in a full packet of 1500 bytes: the same part of a link is less goodput over Multipath TCP.
PAYLOADS = {"tcp": 1448, "mptcp": 1428}

# Both subflows go through one bottleneck of 10 Mb/s and 40 ms, which the competitors use, too.
SHARED = """
schema = 1
duration = "120 s"
warm_up = "20 s"
[transport]
opportunistic_retransmission = false
penalisation = false
receive_buffer = "8 MB"
[link.bottleneck]
rtt = "40 ms"
rate = "10 Mb/s"
[link.a]
rate = "unlimited"
[link.b]
rate = "unlimited"
[path.a]
links = ["a", "bottleneck"]
[path.b]
links = ["b", "bottleneck"]
[[session]]
paths = ["a", "b"]
[[traffic]]
path = "a"
stagger = "0.3 s"
"""
QUEUES = {
    "1 BDP": '"50 kB"',
    "2 BDP": '"100 kB"',
    # The thresholds of the CoNEXT'12 scenarios.
    "RED": '{ kind = "red", limit = "100 packets", min = "25 packets", max = "50 packets", max_probability = "10 %" }',
}
# The BBR of the reference is as fast as `cbbr`; Linux's is faster.
COMPETITORS = ((players.REFERENCE, 1), ("bbr", 1), ("cubic", 1), ("newreno", 1), ("cubic", 5))
# Which control, over which protocol and paths.
SENDERS = {
    "`cbbr` over two subflows": ("cbbr", "earliest", "mptcp"),
    "one `bbr`": ("bbr", "min-rtt", "tcp"),
    "`lia` over two subflows": ("lia", "min-rtt", "mptcp"),
}
# Beside the same and beside itself.
VERSION_3 = {"one `bbr3`": ("bbr3", "min-rtt", "tcp")}
# What the rules of `cbbr` cost others and itself.
VARIANTS = {
    "`cbbr`": SENDERS["`cbbr` over two subflows"],
    "`competition = false`": ('{ name = "cbbr", competition = false }', "earliest", "mptcp"),
    "`ceiling = false`": ('{ name = "cbbr", ceiling = false }', "earliest", "mptcp"),
    '`pace = "full"`': ('{ name = "cbbr", pace = "full" }', "earliest", "mptcp"),
    "the last two": ('{ name = "cbbr", pace = "full", ceiling = false }', "earliest", "mptcp"),
}
# The same bottleneck with ten times the rate, and its queues.
FAST = {"link.bottleneck.rate": "100 Mb/s"}
FAST_QUEUES = {"1 BDP": '"500 kB"', "2 BDP": '"1 MB"'}
# Two links that nobody shares, with random loss.
SEPARATE = """
schema = 1
duration = "120 s"
warm_up = "20 s"
[transport]
scheduler = "earliest"
congestion_control = "cbbr"
opportunistic_retransmission = false
penalisation = false
receive_buffer = "8 MB"
[link.fast]
rtt = "40 ms"
rate = "8 Mb/s"
queue = "40 kB"
[link.slow]
rtt = "80 ms"
rate = "4 Mb/s"
queue = "40 kB"
[[session]]
start_spread = "1 s"
"""
RANDOM_LOSSES = ("0 %", "0.5 %", "1 %", "2 %", "5 %")
# From seed to seed the competitors start this much later: no multiple of the round trip or of a packet's time.
PHASE_S = 0.137

SILENT: dict[str, Mapping[str, str]] = {
    "`earliest`, `cbbr`": {},
    "the same with `failover = false`": {"transport.scheduler": '{ name = "earliest", failover = false }'},
    "`ecf`, `bbr`": {"transport.scheduler": "ecf", "transport.congestion_control": "bbr"},
    "today's Linux, CUBIC": players.LINUX,
}


def goodput(flow: Mapping[str, Any], protocol: str) -> float:
    """A flow's part of the link, in bit/s on the wire."""
    return float(flow["goodput_bps"]) * 1500 / PAYLOADS[protocol]


def share(
    network: Mapping[str, str], competitor: tuple[str, int], sender: tuple[str, str, str], seed: int
) -> tuple[float, float]:
    """The sender's rate over the competitors' mean, and the least competitor's over a fair share."""
    control, scheduler, protocol = sender
    others, count = competitor
    overrides = {
        **network,
        "transport.congestion_control": control,
        "transport.scheduler": scheduler,
        "transport.protocol": protocol,
        "traffic.0.congestion_control": others,
        "traffic.0.count": str(count),
        "traffic.0.start": f"{1.0 + PHASE_S * seed} s",
    }
    if protocol == "tcp":
        overrides["session.0.paths"] = '["a"]'
    checked = _core.load(SHARED, name="shared", directory=None, overrides=tuple(overrides.items()))
    metrics = json.loads(_core.measure(checked, seed=seed, stop=_core.Stop()))["metrics"]
    ours = goodput(metrics["sessions"][0], protocol)
    theirs = [goodput(flow, "tcp") for flow in metrics["traffic"]]
    return ours / statistics.mean(theirs), min(theirs) * (count + 1) / (ours + sum(theirs))


def shares_table(
    seeds: int,
    senders: Mapping[str, tuple[str, str, str]] = SENDERS,
    competitors: Sequence[tuple[str, int]] = COMPETITORS,
    queues: Mapping[str, str] = QUEUES,
    link: Mapping[str, str] | None = None,
) -> str:
    """Shares at a common bottleneck with these queues, and with what else its link has."""
    rows = []
    for queue, size in queues.items():
        network = {**(link or {}), "link.bottleneck.queue": size}
        for competitor in competitors:
            row = [
                queue,
                f"{competitor[1]} {'bbr of the reference' if competitor[0] == players.REFERENCE else competitor[0]}",
            ]
            for sender in senders.values():
                with ThreadPoolExecutor() as pool:
                    found = list(
                        pool.map(lambda seed, of=(network, competitor, sender): share(*of, seed), range(1, seeds + 1))
                    )
                mean, half = players.interval([ratio for ratio, _ in found])
                least = statistics.mean(least for _, least in found)
                row.append(f"{mean:.2f} ± {half:.2f}" + (f" (least {least:.2f})" if competitor[1] > 1 else ""))
            rows.append(row)
    return markdown((f"queue ({seeds} seeds)", "beside", *senders), rows, texts=2)


def version_3_table(seeds: int) -> str:
    """The same for one flow of BBR version 3."""
    return shares_table(seeds, VERSION_3, (*COMPETITORS, ("bbr3", 1)))


def fast_table(seeds: int) -> str:
    """The same at ten times the rate."""
    return shares_table(seeds, queues=FAST_QUEUES, link=FAST)


def goodput_alone(overrides: Mapping[str, str], protocol: str, seed: int) -> float:
    """The goodput over the separate links, of which plain TCP uses one."""
    changes = {**overrides, "transport.protocol": protocol}
    checked = _core.load(SEPARATE, name="separate", directory=None, overrides=tuple(changes.items()))
    metrics = json.loads(_core.measure(checked, seed=seed, stop=_core.Stop()))["metrics"]
    return goodput(metrics["sessions"][0], protocol)


def losses_table(seeds: int) -> str:
    """Over separate links with random loss, relative to a TCP on each."""
    rows = []
    for loss in RANDOM_LOSSES:
        lossy = {
            f"link.{name}.down.loss": f'{{ kind = "bernoulli", share = "{loss}", at = "entry" }}'
            for name in ("fast", "slow")
        }
        row = [loss]
        for control in ("bbr", "cubic"):
            ratios = []
            for seed in range(1, seeds + 1):
                plain = {**lossy, "transport.congestion_control": control}
                alone = [
                    goodput_alone({**plain, "session.0.paths": f'["{name}"]'}, "tcp", seed) for name in ("fast", "slow")
                ]
                ratios.append(goodput_alone(lossy, "mptcp", seed) / sum(alone))
            mean, half = players.interval(ratios)
            row.append(f"{mean:.2f} ± {half:.2f}")
        rows.append(row)
    return markdown((f"random loss ({seeds} seeds)", "over two `bbr`", "over two `cubic`"), rows)


def variants_table(seeds: int) -> str:
    """The same for `cbbr` without some of its rules."""
    return shares_table(seeds, VARIANTS)


def silence_table(seeds: int) -> str:
    """The longest gap after a silent cut."""
    rows = []
    for name, sender in SILENT.items():
        gaps = [found["longest_delivery_gap_s"] for found in players.viewers("one-pipe/silent-cut", sender, seeds)]
        mean, half = players.interval(gaps)
        rows.append([name, f"{mean:.2f} ± {half:.2f}", f"{max(gaps):.2f}"])
    return markdown((f"sender ({seeds} seeds)", "longest gap, s", "largest"), rows, texts=1)


TABLES: dict[str, Callable[[int], str]] = {
    "shares": shares_table,
    "shares-fast": fast_table,
    "losses": losses_table,
    "bbr3": version_3_table,
    "variants": variants_table,
    "silence": silence_table,
}


def main() -> None:
    """Measures, and prints or writes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", metavar="PAGE", type=Path, help="replace the tables in this page")
    parser.add_argument("--only", choices=tuple(TABLES), action="append", help="these tables (all)")
    parser.add_argument("--seeds", type=int, default=10, help="seeds of every row (10)")
    arguments = parser.parse_args()
    for name in arguments.only or TABLES:
        text = TABLES[name](arguments.seeds)
        if arguments.write is None:
            print(f"{name}\n\n{text}\n")
        else:
            page = arguments.write.read_text(encoding="utf-8")
            arguments.write.write_text(replaced(page, name, text), encoding="utf-8")


if __name__ == "__main__":
    main()
