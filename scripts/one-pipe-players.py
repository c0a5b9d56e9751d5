"""Measures viewers over two paths: beside one TCP, over blocked and cut links, and without each term of `joined`.

    .venv/bin/python scripts/one-pipe-players.py                             prints the tables
    .venv/bin/python scripts/one-pipe-players.py --only dash --seeds 5       one table, with fewer seeds
    .venv/bin/python scripts/one-pipe-players.py --write docs/validation     replaces the tables in their pages

All comparisons are paired: the same seed on both sides. Intervals are those of Student's t, 95 %.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from page_tables import markdown, replaced
from scipy import stats
from wire_runs import in_simulation

Overrides = Mapping[str, str]
Session = Mapping[str, Any]

QOE = "qoe_linear_per_segment"
# The bar of the lower end of the mean ratio's interval.
LEAST_RATIO = 0.97
LIMIT = 'max_resolution = "1280x720"'
# Players, and whether the bar is theirs: the others are the players' defaults. Each names its strategy, because a key
# that an override leaves out keeps the scenario's value.
PLAYERS: dict[str, tuple[str, bool]] = {
    "dash.js 2.9, BOLA": (f'{{ kind = "dash.js-2.9", strategy = "bola", {LIMIT} }}', True),
    "dash.js 5, fast_switch = false": (
        f'{{ kind = "dash.js-5", strategy = "dynamic", fast_switch = false, {LIMIT} }}',
        True,
    ),
    "dash.js 2.9": (f'{{ kind = "dash.js-2.9", strategy = "dynamic", {LIMIT} }}', False),
    "dash.js 5": (f'{{ kind = "dash.js-5", strategy = "dynamic", {LIMIT} }}', False),
}
SEGMENTS_S = (1, 6, 10)
# A path that is slow is not one that is at fault.
PLAIN = {"transport.opportunistic_retransmission": "false", "transport.penalisation": "false"}
OURS = {**PLAIN, "transport.scheduler": "earliest", "transport.congestion_control": "cbbr"}

# The papers' scenarios, the metric in which the paper's trouble shows, and whether more of it is better.
TERMS_ON: tuple[tuple[str, str, bool], ...] = (
    ("sticky/base", "stall_s", False),
    ("sticky/3p-150", "stall_s", False),
    ("dash/ratio-1-2", QOE, True),
    ("dash/ratio-1-5", QOE, True),
    ("mptcp-plus/ratio-0.49", QOE, True),
)
CONTROLS = ("lia", "cbbr")
# The reference's control, as in one-pipe/pipe.
REFERENCE = '{ name = "bbr", pace = "packets", startup_losses = "always" }'
TERMS = ("arrival", "rate", "waiting", "copies", "failover", "recovery", "window", "stickiness")
BESIDE = ("min-rtt", "earliest", "sttf", "redundant-idle", "reinject-deadline", "peekaboo")

# Blocked links: one download without a pause in place of the segments, and the senders.
BLOCKAGE = "one-pipe/5g-blockage"
ONE_DOWNLOAD = {
    "session.0.video": '{ kind = "bulk", size = "400 MB" }',
    "session.0.player": '"bulk"',
    "duration": "60 s",
}
FAIR = {"transport.opportunistic_retransmission": "true", "transport.penalisation": "true"}
LINUX = {"transport.kernel": "upstream", "transport.congestion_control": "cubic", "transport.scheduler": "linux"}
BLOCKED: dict[str, Overrides] = {
    "`earliest`, `cbbr`": {},
    "the same with `failover = false`": {"transport.scheduler": '{ name = "earliest", failover = false }'},
    "`ecf`, `bbr`": {"transport.scheduler": "ecf", "transport.congestion_control": "bbr"},
    "`min-rtt`, `lia`": {**FAIR, "transport.scheduler": "min-rtt", "transport.congestion_control": "lia"},
    "today's Linux, CUBIC": LINUX,
    "millimetre waves alone": {"session.0.paths": '["mmwave"]'},
    "LTE alone": {"session.0.paths": '["lte"]'},
}

# A download without pauses over two paths of 4 Mb/s, of which the first fails silently. Round trips of both, and their
# queues in bandwidth-delay products, at least two packets.
CUT = "one-pipe/silent-cut"
ENDLESS = {"session.0.video": '{ kind = "bulk" }', "session.0.player": '"bulk"', "duration": "40 s"}
CUT_BPS = 4e6
CUT_ROUND_TRIPS_MS = ((20, 20), (20, 100), (100, 20), (40, 60), (60, 60), (100, 100), (200, 200))
CUT_QUEUES_BDP = (0.5, 1.0, 2.0)
LEAST_QUEUE_BYTES = 3_000
# Exponential: a gamma distribution of shape 1. The cut comes at the end, so that what is copied is a false alarm.
JITTER = '{ kind = "gamma", mean = "10 ms", shape = 1.0 }'
JITTERED = {"link.path1.jitter": JITTER, "link.path2.jitter": JITTER, "event.0.at": "39.9 s"}


def viewer(scenario: str, overrides: Overrides, seed: int) -> Session:
    """The first session of a run."""
    session: Session = in_simulation(scenario, overrides, seed)["sessions"][0]
    return session


def viewers(scenario: str, overrides: Overrides, seeds: int) -> list[Session]:
    """The same with the seeds from 1; a run needs no lock of the interpreter."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(lambda seed: viewer(scenario, overrides, seed), range(1, seeds + 1)))


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The mean, and half of its 95 % interval."""
    if len(values) < 2:
        return values[0], math.inf
    spread = statistics.stdev(values) / math.sqrt(len(values))
    return statistics.mean(values), float(stats.t.ppf(0.975, len(values) - 1)) * spread


def mean_of(sessions: Sequence[Session], name: str) -> float:
    """The mean of a metric."""
    return statistics.mean(session[name] for session in sessions)


def signed(value: float, half: float, digits: int) -> str:
    """A difference with its interval; in bold where that excludes zero."""
    text = f"{value:+.{digits}f} ± {half:.{digits}f}"
    return f"**{text}**" if abs(value) > half else text


def dash_table(seeds: int) -> str:
    """DASH over 333 + 1667 kb/s beside one TCP over 2000 kb/s."""
    rows = []
    for player, (spec, has_bar) in PLAYERS.items():
        for seconds in SEGMENTS_S:
            same = {"session.0.player": spec, "session.0.video.ladder": f"bbb-{seconds}s"}
            ours = viewers("dash/ratio-1-5", {**same, **OURS}, seeds)
            pipe = viewers("dash/tcp-2000", {**same, "transport.congestion_control": REFERENCE}, seeds)
            pairs = list(zip(ours, pipe, strict=True))
            ratio, half = interval([a[QOE] / b[QOE] for a, b in pairs])
            frozen = interval([a["stall_s"] - b["stall_s"] for a, b in pairs])
            verdict = ("yes" if ratio - half >= LEAST_RATIO else "**no**") if has_bar else ""
            means = [f"{mean_of(sessions, QOE):.0f}" for sessions in (ours, pipe)]
            stalls = [f"{mean_of(sessions, 'stall_s'):.2f}" for sessions in (ours, pipe)]
            numbers = [f"{ratio:.3f} ± {half:.3f}", verdict, *stalls, signed(*frozen, 2)]
            rows.append([player, f"{seconds} s", *means, *numbers])
    head = (
        f"player ({seeds} seeds)",
        "media segments",
        "QoE, two paths",
        "one TCP",
        "ratio",
        f"lower end >= {LEAST_RATIO}",
        "frozen, s",
        "one TCP",
        "difference",
    )
    return markdown(head, rows, texts=2)


def times_ms(sessions: Sequence[Session]) -> list[float]:
    """The times of all chunks that arrived, ascending."""
    chunks = [chunk for session in sessions for chunk in session["downloads"] if chunk["finished_s"] is not None]
    return sorted(1000 * (chunk["finished_s"] - chunk["requested_s"]) for chunk in chunks)


def blockage_table(seeds: int) -> str:
    """Senders over a link that is blocked every few seconds: the longest gap of a download, and segments' times."""
    rows = []
    for name, sender in BLOCKED.items():
        gaps = [session["longest_delivery_gap_s"] for session in viewers(BLOCKAGE, {**sender, **ONE_DOWNLOAD}, seeds)]
        chunks = viewers(BLOCKAGE, sender, seeds)
        times = times_ms(chunks)
        quantiles = [times[max(math.ceil(share * len(times)), 1) - 1] for share in (0.5, 0.9, 0.99)]
        mean, half = interval(gaps)
        copied = sum(session["copied_bytes"] or 0 for session in chunks) / sum(session["bytes"] for session in chunks)
        texts = [f"{mean:.2f} ± {half:.2f}", f"{max(gaps):.2f}", " / ".join(f"{q:.0f}" for q in quantiles)]
        rows.append([name, *texts, f"{copied:.1%}"])
    head = (
        f"sender ({seeds} seeds)",
        "one download: longest gap, s",
        "largest",
        "segments of 1 MB: p50 / p90 / p99, ms",
        "copies",
    )
    return markdown(head, rows, texts=1)


def cut_network(round_trips_ms: tuple[int, int], queue_bdp: float) -> dict[str, str]:
    """What makes the scenario one with these round trips and queues."""
    network = dict(ENDLESS)
    for path, milliseconds in zip(("path1", "path2"), round_trips_ms, strict=True):
        queue = max(queue_bdp * CUT_BPS / 8 * milliseconds / 1000, LEAST_QUEUE_BYTES)
        network |= {f"link.{path}.rtt": f"{milliseconds} ms", f"link.{path}.queue": f"{queue:.0f} B"}
    return network


def cuts_table(seeds: int) -> str:
    """The longest gap after a silent cut over other networks, and copies by false alarms where delays jitter."""
    rows = []
    for round_trips in CUT_ROUND_TRIPS_MS:
        row = ["{} / {} ms".format(*round_trips)]
        for queue in CUT_QUEUES_BDP:
            sessions = viewers(CUT, cut_network(round_trips, queue), seeds)
            gaps = [session["longest_delivery_gap_s"] for session in sessions]
            mean, half = interval(gaps)
            row.append(f"{mean:.2f} ± {half:.2f} ({max(gaps):.2f})")
        sessions = viewers(CUT, {**cut_network(round_trips, 1.0), **JITTERED}, seeds)
        sent = sum(subflow["bytes"] for session in sessions for subflow in session["subflows"])
        row.append(f"{sum(session['copied_bytes'] for session in sessions) / sent:.2%}")
        rows.append(row)
    gaps = [f"queues of {queue:g} BDP: longest gap, s (largest)" for queue in CUT_QUEUES_BDP]
    return markdown((f"round trips ({seeds} seeds)", *gaps, "copies by false alarms, jitter of 10 ms"), rows, texts=1)


def scheduler(name: str, options: Overrides) -> str:
    """A scheduler as a scenario writes it."""
    entries = [f'name = "{name}"', *(f"{key} = {value}" for key, value in options.items())]
    return "{ " + ", ".join(entries) + " }"


def variants() -> dict[str, str]:
    """Names of the rows and their schedulers; the first one is what all others are compared with."""
    found = {"joined": scheduler("joined", {})}
    found |= {f"without `{term}`": scheduler("joined", {term: "false"}) for term in TERMS}
    found |= {f"`{name}`": scheduler(name, {}) for name in BESIDE}
    return found


def terms_table(seeds: int) -> str:
    """What each term of `joined` is worth: the difference that it makes to leave it out."""
    blocks = []
    for control in CONTROLS:
        common = {**PLAIN, "transport.congestion_control": control}
        whole = {
            name: viewers(name, {**common, "transport.scheduler": variants()["joined"]}, seeds) for name, *_ in TERMS_ON
        }
        rows = [["joined", *(f"{mean_of(whole[name], metric):.{digits(metric)}f}" for name, metric, _ in TERMS_ON)]]
        for variant, spec in list(variants().items())[1:]:
            row = [variant]
            for name, metric, _ in TERMS_ON:
                other = viewers(name, {**common, "transport.scheduler": spec}, seeds)
                pairs = zip(other, whole[name], strict=True)
                row.append(signed(*interval([a[metric] - b[metric] for a, b in pairs]), digits(metric)))
            rows.append(row)
        columns = [
            f"{name}: {'frozen, s' if metric == 'stall_s' else 'QoE'} ({'more' if better else 'less'} is better)"
            for name, metric, better in TERMS_ON
        ]
        blocks.append(markdown((f"with `{control}` ({seeds} seeds)", *columns), rows, texts=1))
    return "\n\n".join(blocks)


def digits(metric: str) -> int:
    """Decimals of a metric."""
    return 2 if metric == "stall_s" else 0


# Tables, and their pages in the folder.
TABLES: dict[str, tuple[Callable[[int], str], str]] = {
    "dash": (dash_table, "one-pipe.md"),
    "blockage": (blockage_table, "one-pipe.md"),
    "cuts": (cuts_table, "one-pipe.md"),
    "terms": (terms_table, "one-pipe.md"),
}


def main() -> None:
    """Measures, and prints or writes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", metavar="FOLDER", type=Path, help="replace the tables in the pages of this folder")
    parser.add_argument("--only", choices=tuple(TABLES), action="append", help="these tables (all)")
    parser.add_argument("--seeds", type=int, default=20, help="seeds of every row (20)")
    arguments = parser.parse_args()
    for name in arguments.only or TABLES:
        make, page = TABLES[name]
        text = make(arguments.seeds)
        if arguments.write is None:
            print(f"{name}\n\n{text}\n")
        else:
            file = arguments.write / page
            file.write_text(replaced(file.read_text(encoding="utf-8"), name, text), encoding="utf-8")


if __name__ == "__main__":
    main()
