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
    """What distinguishes the runs in few words: keys such as ``scheduler``, and for each the values of the runs.

    Where the scenario differs, only the transport, and what is no part of a scenario, count as well: everything else
    differs with it. Of a part that is another one, such as a scheduler, its options say nothing.
    """
    leaves = [_leaves(run) for run in runs]
    differing = _differing(leaves)
    if "scenario" in differing:
        counting = (*_OF_RUN, "scenario")
        differing = [key for key in differing if key.startswith("transport.") or key in counting]
    # Builds have long names that mean nothing, so they count where nothing else differs.
    differing = [key for key in differing if key not in _OF_BUILD] or differing
    return _texts(_without_options(differing), leaves)


def every_difference(runs: Sequence[StoredRun]) -> dict[str, list[str]]:
    """All keys in which the runs differ, and for each the values of the runs; a dash where a run has no such key.

    The seed comes first, then how the runs were made, the scenario's name, its parts, their options, and the build.
    """
    leaves = [_leaves(run) for run in runs]
    return _texts(_differing(leaves), leaves)


def _differing(leaves: Sequence[Mapping[str, Any]]) -> list[str]:
    keys = dict.fromkeys(key for each in leaves for key in each)
    return [key for key in keys if len({repr(each.get(key)) for each in leaves}) > 1]


def _texts(keys: Sequence[str], leaves: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    return {name: [_text(each.get(key)) for each in leaves] for key, name in _named(keys, leaves).items()}


def names(runs: Sequence[StoredRun]) -> list[str]:
    """A name for each run: the values in which they differ, or else their folders."""
    shown, more = shortened(differences(runs))
    if not shown:
        return folders(runs)
    besides = [f"and {more} more"] if more else []
    return [
        ", ".join([*(f"{key}={values[position]}" for key, values in shown.items()), *besides])
        for position in range(len(runs))
    ]


def shortened(found: Mapping[str, list[str]]) -> tuple[dict[str, list[str]], int]:
    """The first of the differences, and how many there are besides."""
    shown = dict(itertools.islice(found.items(), _MOST_DIFFERENCES))
    return shown, len(found) - len(shown)


def folders(runs: Sequence[StoredRun]) -> list[str]:
    """The folders' own names, or the whole ways to them where these are the same."""
    own = [run.directory.resolve().name for run in runs]
    return own if len(set(own)) == len(own) else [str(run.directory) for run in runs]


# What is no part of a scenario, in the order of messages, with where a run folder has it.
_OF_RUN = ("seed", "version", "engine", "server", "client", "kernel")
_OF_BUILD = ("build", "source revision")
# So many digits distinguish digests.
_DIGITS = 12


def _leaves(run: StoredRun) -> dict[str, Any]:
    about, live = run.about, run.metrics.get("live") or {}
    made: dict[str, Any] = {key: about.get(key) for key in _OF_RUN[:3]}
    made |= {key: live.get(key) for key in _OF_RUN[3:]}
    leaves = {**made, "scenario": run.metrics["scenario"], **flatten(run.scenario)}
    leaves |= {f"file {name}": _digest(digest) for name, digest in about.get("files", {}).items()}
    leaves |= {"build": _digest(about.get("library_sha256")), "source revision": about.get("source_revision")}
    # A question is prose about the scenario, no property of it.
    leaves.pop("question", None)
    return leaves


def _digest(text: str | None) -> str | None:
    return None if text is None else text[:_DIGITS]


def _without_options(keys: Sequence[str]) -> list[str]:
    """The keys without options of parts that differ as a whole."""
    parts = {key.rpartition(".")[0] for key in keys if _NAMES_A_PART.search(key)}
    return [key for key in keys if _NAMES_A_PART.search(key) or key.rpartition(".")[0] not in parts]


def _named(keys: Sequence[str], leaves: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Each key with the shortest name that is no other key's; both directions of a link are one where they agree."""
    several = any("session.1" in key for each in leaves for key in each)
    # The replaceable parts say more than the options.
    keys = sorted(keys, key=_rank)
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


def _rank(key: str) -> int:
    """The order in which differences are named."""
    if key in _OF_RUN:
        return _OF_RUN.index(key)
    if key == "scenario":
        return len(_OF_RUN)
    return len(_OF_RUN) + (1 if key.endswith(_SHORT_FORMS) else 3 if key in _OF_BUILD else 2)


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
