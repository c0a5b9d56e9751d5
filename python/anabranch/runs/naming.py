"""What distinguishes runs from each other, in a few words for each."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

from anabranch.runs.runfolder import StoredRun

# A longer name says less than a shorter one: what exceeds this is only counted.
_MOST_DIFFERENCES = 3
# Keys whose value an author writes alone: `scheduler = "min-rtt"` is `scheduler.name`.
_SHORT_FORMS = (
    *("scheduler.name", "congestion_control.name", "path_policy.name", "player.kind", "video.kind"),
    *("rate.rate", "rate.trace", "rate.synthetic", "loss.share", "queue.limit"),
)
# A key that names what its table is; of another one the options mean nothing.
_NAMES_A_PART = re.compile(r"\.(name|kind|trace|synthetic)$")
_DIRECTION = re.compile(r"^(link\.[^.]+)\.(?:up|down)\.")


def flatten(tree: Any, prefix: str = "") -> dict[str, Any]:
    """The leaves of nested tables and lists, by dotted key."""
    if isinstance(tree, dict):
        items = [(str(key), value) for key, value in tree.items()]
    elif isinstance(tree, list) and tree and all(isinstance(value, str) for value in tree):
        # Names, such as those of a session's paths, say more together.
        return {prefix: "+".join(tree)}
    elif isinstance(tree, list):
        items = [(str(position), value) for position, value in enumerate(tree)]
    else:
        return {prefix: tree}
    leaves: dict[str, Any] = {}
    for key, value in items:
        leaves |= flatten(value, f"{prefix}.{key}" if prefix else key)
    return leaves


def differences(runs: Sequence[StoredRun]) -> dict[str, list[str]]:
    """The keys in which the runs differ, such as ``scheduler``, and for each the values of the runs.

    Where the scenario differs, only the transport and the seed count beside it: everything else differs with it.
    """
    leaves = [_leaves(run) for run in runs]
    keys = dict.fromkeys(key for each in leaves for key in each)
    differing = [key for key in keys if len({repr(each.get(key)) for each in leaves}) > 1]
    if "scenario" in differing:
        differing = ["scenario", *(key for key in differing if key.startswith("transport.") or key == "seed")]
    differing = _without_options(differing)
    return {name: [_text(each.get(key)) for each in leaves] for key, name in _named(differing, leaves).items()}


def names(runs: Sequence[StoredRun]) -> list[str]:
    """A name for each run: the values in which they differ, or else their folders."""
    shown, more = shortened(differences(runs))
    if not shown:
        return _folders(runs)
    besides = [f"and {more} more"] if more else []
    return [
        ", ".join([*(f"{key}={values[position]}" for key, values in shown.items()), *besides])
        for position in range(len(runs))
    ]


def shortened(found: Mapping[str, list[str]]) -> tuple[dict[str, list[str]], int]:
    """The first of the differences, and how many there are besides."""
    shown = dict(itertools.islice(found.items(), _MOST_DIFFERENCES))
    return shown, len(found) - len(shown)


def _folders(runs: Sequence[StoredRun]) -> list[str]:
    """The folders' own names, or the whole ways to them where these are the same."""
    own = [run.directory.resolve().name for run in runs]
    return own if len(set(own)) == len(own) else [str(run.directory) for run in runs]


def _leaves(run: StoredRun) -> dict[str, Any]:
    leaves = {**flatten(run.scenario), "seed": run.about["seed"], "scenario": run.metrics["scenario"]}
    # A question is prose about the scenario, no property of it.
    leaves.pop("question", None)
    return leaves


def _without_options(keys: Sequence[str]) -> list[str]:
    """The keys without options of parts that differ as a whole."""
    parts = {key.rpartition(".")[0] for key in keys if _NAMES_A_PART.search(key)}
    return [key for key in keys if _NAMES_A_PART.search(key) or key.rpartition(".")[0] not in parts]


def _named(keys: Sequence[str], leaves: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Each key with the shortest name that is no other key's; both directions of a link are one where they agree."""
    several = any("session.1" in key for each in leaves for key in each)
    # The replaceable parts say more than the options.
    keys = sorted(keys, key=lambda key: key != "scenario" and not key.endswith(_SHORT_FORMS))
    named: dict[str, str] = {}
    seen: set[tuple[str, tuple[str, ...]]] = set()
    for key in keys:
        link = _DIRECTION.sub(r"\1.", key)
        values = tuple(repr(each.get(key)) for each in leaves)
        if (link, values) in seen:
            continue
        seen.add((link, values))
        name = _short(link if _agree(keys, link, leaves) else key).removeprefix("transport.")
        named[key] = name if several else name.removeprefix("session.0.")
    return named


def _short(key: str) -> str:
    """The key under which an author would write the value."""
    return key.rpartition(".")[0] if key.endswith(_SHORT_FORMS) else key


def _agree(keys: Sequence[str], link: str, leaves: Sequence[Mapping[str, Any]]) -> bool:
    """Whether both directions of a link differ between the runs, and have the same value in each."""
    own = [key for key in keys if _DIRECTION.sub(r"\1.", key) == link]
    return len(own) > 1 and all(len({repr(each.get(key)) for key in own}) == 1 for each in leaves)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "-" if value is None else str(value)
