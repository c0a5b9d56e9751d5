"""Writes what the registries know into the pages of docs/algorithms: names, sources, options, and the list of all.

.venv/bin/python scripts/algorithm-pages.py                   writes the parts between marks
.venv/bin/python scripts/algorithm-pages.py --check           says which pages would change, or lack an algorithm
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anabranch
from anabranch.library.catalogue import Catalogue, Entry
from anabranch.wording import markdown

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES = DOCS / "algorithms"
# No algorithm has an option of this name, so that each refuses it.
_NONE_SUCH = "none_such"
# Every scheduler has it, so that no scheduler names it.
COMMON = ("avoid_recovery",)
# The options of bitrate rules are keys of players, of which each rule takes some. A rule refuses the others.
RULE_OPTIONS = (
    *("strategy", "dropped_frames", "progress_timing", "representation", "finite", "cap", "abandon", "samples"),
    *("safety", "horizon", "stall_penalty", "switch_penalty"),
)
_VALUES: Mapping[str, Any] = {"strategy": "bola", "cap": "none", "representation": 1, "samples": 3, "horizon": 3}
_FLAGS = ("dropped_frames", "progress_timing", "finite", "abandon")


@dataclass(frozen=True)
class Option:
    """An option of an algorithm, as its messages describe it.

    Attributes:
        name: Its name in scenarios.
        default: Its default; empty where it is said on the page.
        valid: What it may be.
    """

    name: str
    default: str
    valid: str


@dataclass(frozen=True)
class Kind:
    """A kind of algorithms.

    Attributes:
        name: The registry's name of it, and that of the folder of its pages.
        title: The heading of its list.
        key: Where a scenario names one.
        entries: All of them.
    """

    name: str
    title: str
    key: str
    entries: Catalogue


def kinds() -> tuple[Kind, ...]:
    """The kinds whose algorithms have a page each."""
    return (
        Kind("schedulers", "Schedulers", "transport.scheduler", anabranch.schedulers()),
        Kind(
            "congestion-controls",
            "Congestion controls",
            "transport.congestion_control",
            anabranch.congestion_controls(),
        ),
        Kind("path-policies", "Path policies", "transport.path_policy", anabranch.path_policies()),
        Kind("response-pacings", "Pacing of responses", "server.response_pacing", anabranch.response_pacings()),
        Kind("abr-rules", "Bitrate rules", "session.player", anabranch.abr_rules()),
    )


def _refusal(scenario: dict[str, Any]) -> str:
    """Why a scenario is refused; empty if it is not."""
    try:
        anabranch.Scenario(duration="1 s", link={"a": {"rate": "1 Mb/s"}}, **scenario).check()
    except anabranch.InputError as error:
        return str(error)
    return ""


def options(kind: Kind, name: str) -> list[Option]:
    """The options of an algorithm, found out by giving it wrong ones: messages name valid values and defaults."""
    if kind.name == "abr-rules":
        return list(_rule_options(name))
    table, _, where = kind.key.partition(".")

    def refused(option: str, value: Any) -> str:
        chosen = {where: {"name": name, option: value}}
        return _refusal({table: chosen, "session": [{"video": {"kind": "bulk"}}]})

    known = re.search(r"known are ([\w, ]+)", refused(_NONE_SUCH, 1))
    names = known[1].split(", ") if known else []
    return [_described(option, refused(option, "?"), refused(option, [])) for option in names]


def _described(option: str, as_text: str, as_list: str) -> Option:
    """An option, by what is said about a word and a list in its place."""
    for message in (as_text, as_list):
        if found := re.search(r"expected a number from (\S+) to (\S+); the default is ([\d.]+)", message):
            return Option(option, f"`{found[3]}`", f"{found[1]} to {found[2]}")
        if found := re.search(r"expected true or false; the default is (\w+)", message):
            return Option(option, f"`{found[1]}`", "`true`, `false`")
        if found := re.search(r"`\?` is none of ([\w., -]+)", message):
            words = [word.strip() for word in found[1].split(",")]
            return Option(option, f"`{words[0]}`", ", ".join(f"`{word}`" for word in words))
    raise SystemExit(f"error: no message describes the option `{option}`: {as_text}")


def _rule_options(name: str) -> Iterator[Option]:
    session = {"video": {"kind": "dash", "ladder": "bbb-2s"}}
    for option in RULE_OPTIONS:
        value = _VALUES.get(option, option not in _FLAGS or True)
        value = value if option in _VALUES or option in _FLAGS else 1.0
        if not _refusal({"session": [{**session, "player": {"kind": name, option: value}}]}):
            yield Option(option, "", "")


def facts(kind: Kind, entry: Entry) -> str:
    """What the registry knows about an algorithm, as Markdown."""
    lines = [f"{entry.summary}", "", "| | |", "|---|---|", f"| Name | `{entry.name}`, in `{kind.key}` |"]
    source = re.sub(
        r"\b(docs/validation/[\w-]+\.md)", lambda found: f"[{found[1]}](../../{found[1][5:]})", entry.source
    )
    lines.append(f"| Source | {source} |")
    found = options(kind, entry.name)
    if found and kind.name == "abr-rules":
        named = ", ".join(f"`{option.name}`" for option in found)
        lines.append(f"| Options | {named}, and those of every [DASH player](../../reference/scenario.md) |")
    elif found:
        rows = [(f"`{option.name}`", option.default, option.valid) for option in found]
        lines += ["", markdown.table(("option", "default", "valid"), rows, texts=3)]
    elif kind.name != "abr-rules":
        lines.append("| Options | none of its own |")
    return "\n".join(lines)


def pages() -> dict[str, Path]:
    """Which page has the marks of each algorithm, as `kind/name`."""
    marks = re.compile(r"<!-- begin ([\w-]+/[\w.-]+) -->")
    return {
        mark: page for page in sorted(PAGES.rglob("*/*.md")) for mark in marks.findall(page.read_text(encoding="utf-8"))
    }


def written() -> dict[Path, str]:
    """Every page as it should be.

    Raises:
        SystemExit: An algorithm has no page, or a page is about one that does not exist.
    """
    where, texts = pages(), dict[Path, str]()
    existing = {f"{kind.name}/{name}" for kind in kinds() for name in kind.entries}
    if absent := sorted(existing - set(where)):
        raise SystemExit(
            f"error: docs/algorithms has no page with <!-- begin {absent[0]} --> and <!-- end {absent[0]} -->"
        )
    if unknown := sorted(set(where) - existing):
        raise SystemExit(f"error: {where[unknown[0]]}: no algorithm is called {unknown[0]}")
    for kind in kinds():
        for name, entry in kind.entries.items():
            page = where[f"{kind.name}/{name}"]
            text = texts.get(page) or page.read_text(encoding="utf-8")
            texts[page] = markdown.replaced(text, f"{kind.name}/{name}", facts(kind, entry))
    index = PAGES / "index.md"
    texts[index] = markdown.replaced(index.read_text(encoding="utf-8"), "list", _list(where))
    return texts


def _list(where: Mapping[str, Path]) -> str:
    parts = []
    for kind in kinds():
        rows = []
        for name, entry in kind.entries.items():
            link = where[f"{kind.name}/{name}"].relative_to(PAGES).as_posix()
            rows.append((f"[`{name}`]({link})", entry.summary))
        parts += [f"## {kind.title}", "", f"`{kind.key}` in a scenario.", ""]
        parts += [markdown.table(("name", "what it does"), rows, texts=2), ""]
    return "\n".join(parts).strip()


def main() -> None:
    """Writes the pages, or compares them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    changed = {page: text for page, text in written().items() if page.read_text(encoding="utf-8") != text}
    for page, text in changed.items():
        print(page.relative_to(DOCS.parent))
        if not check:
            page.write_text(text, encoding="utf-8")
    sys.exit(check and bool(changed))


if __name__ == "__main__":
    main()
