"""How often `anabranch explain` names faults that were planted at random: the runs, and the tables."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from anabranch.experiments.claims import Filled, table
from anabranch.experiments.study import Row, Study

KINDS, PAIRS, KERNEL_KINDS = 38, 10, 12
"""How many kinds of faults and pairs of them `faults.py` has, and kinds `kernel.py` has."""

# Chosen after the last change of a rule of the account.
SEED, KERNEL_SEED = 491275, 651931
NUMBER = 3
HEALTHY = 50


def simulated() -> Iterator[Mapping[str, Any]]:
    """Every kind, every pair, and runs without a fault."""
    for faults, kinds, number in (("one", KINDS, NUMBER), ("two", PAIRS, NUMBER), ("none", 1, HEALTHY)):
        for kind in range(kinds):
            yield from ({"faults": faults, "kind": kind, "number": n, "seed": SEED} for n in range(number))


def kernel() -> Iterator[Mapping[str, Any]]:
    """Every kind once."""
    yield from ({"kind": kind, "seed": KERNEL_SEED} for kind in range(KERNEL_KINDS))


def of(rows: Sequence[Row], key: str) -> str:
    """In how many of these something is right."""
    return f"{sum(bool(row[key]) for row in rows)} of {len(rows)}"


def planted(study: Study, faults: str) -> list[Row]:
    """The runs with so many faults, each of which costs enough."""
    return [row for row in study.sessions(["simulated"]) if row["faults"] == faults and row["planted"]]


@table("summary", "Simulated runs", plans=("simulated",))
def summary(study: Study) -> Filled:
    """All kinds together."""
    one, two = planted(study, "one"), planted(study, "two")
    none = [row for row in study.sessions(["simulated"]) if row["faults"] == "none"]
    on_one = [row for row in one if row["path"]]
    unexplained = max(row["unexplained"] for row in [*one, *none])
    alarms = {key: f"{sum(row[key] != 'none' for row in none)} of {len(none)}" for key in ("account", "capture")}
    return ("", "of the run", "of its capture"), [
        ["the first cause is the fault", of(one, "account_is_right"), of(one, "capture_is_right")],
        ["the same with `--what-if`", of(one, "what_if_is_right"), ""],
        [
            "the first path is that of the fault, if on one path",
            of(on_one, "path_is_right"),
            of(on_one, "capture_path_is_right"),
        ],
        ["of two faults, both are among the first three causes", of(two, "account_is_right"), ""],
        ["runs without a fault that have a first cause", alarms["account"], alarms["capture"]],
        ["the largest share without an explanation", f"{100 * unexplained:.1f} %", ""],
    ]


@table("kinds", "Kinds of faults", plans=("simulated",))
def kinds(study: Study) -> Filled:
    """Each kind by itself, with what was named in place of it."""
    found: dict[str, list[Row]] = {}
    for row in sorted(planted(study, "one"), key=lambda row: (row["kind"], row["number"])):
        found.setdefault(row["name"], []).append(row)
    rows = []
    for name, ones in found.items():
        wrong = [row["account"] for row in ones if not row["account_is_right"]]
        wrong += [f"{row['what_if']} (what-if)" for row in ones if not row["what_if_is_right"]]
        wrong += [f"{row['capture']} (capture)" for row in ones if not row["capture_is_right"]]
        wrong += [f"{row['first_path'] or 'no path'} (path)" for row in ones if not row["path_is_right"]]
        of_captures = [row["capture_path"] or "no path" for row in ones if not row["capture_path_is_right"]]
        wrong += [f"{path} (path, capture)" for path in of_captures]
        keys = ("account_is_right", "what_if_is_right", "capture_is_right")
        rows.append([name, *(of(ones, key) for key in keys), ", ".join(wrong)])
    return ("planted", "account", "with `--what-if`", "capture", "named in place of it"), rows


@table("kernel", "The kernel on both ends", plans=("kernel",))
def kernel_runs(study: Study) -> Filled:
    """Each kind that cost enough."""
    rows = [row for row in study.sessions(["kernel"]) if row["planted"]]
    told = {True: "yes", False: "no"}
    return ("planted", "named", "path", "first three causes"), [
        [row["name"], told[row["capture_is_right"]], told[row["capture_path_is_right"]], ", ".join(row["causes"])]
        for row in sorted(rows, key=lambda row: row["kind"])
    ]
