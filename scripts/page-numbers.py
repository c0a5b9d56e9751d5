"""Fills in the numbers that texts quote from tables of the validation.

    .venv/bin/python scripts/page-numbers.py           writes the pages
    .venv/bin/python scripts/page-numbers.py --check   ends with exit code 1 if a page is out of date, and says where

A number that is filled in stands before a comment with its name, as in `94<!-- laws checks -->`. Run this last: what it
quotes is written by other programs.
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import goodput

from anabranch.errors import InputError, nearest

ROOT = Path(__file__).resolve().parent.parent
VALIDATION = ROOT / "docs" / "validation"
PAGES = (ROOT / "README.md", ROOT / "docs" / "faq.md", ROOT / "docs" / "validation.md", VALIDATION / "claims.md")

QUOTED = re.compile(r"(?P<number>\d[\d.]*)<!-- (?P<name>[^>]+) -->")

PAPERS = ("sticky", "handoff", "dash", "mptcp-plus")
VERDICTS = ("reproduced", "partly", "not reproduced", "undecided", "not testable")
# Rows of tables in one-pipe.md, by the name that texts give them: the paths, and the sender.
_CHUNKS = {
    "today's Linux": ("333 + 1667", "today's Linux, CUBIC"),
    "ours": ("333 + 1667", "cbbr, earliest"),
    "one path": ("one path of 2000", "TCP, bbr of the reference"),
    "today's Linux, live": ("333 + 1667", "the kernel, CUBIC"),
    "ours, live": ("333 + 1667", "earliest, cbbr"),
    "one path, live": ("one path", "one TCP of 2000 kb/s, bbr"),
}
_SESSIONS = {
    "today's Linux": ("333 + 1667 kb/s", "the kernel, CUBIC"),
    "ours": ("333 + 1667 kb/s", "`earliest`, `cbbr`"),
    "one path": ("2000 kb/s", "TCP, `bbr` of the reference"),
}


def rows(page: str, *heads: str) -> Iterator[dict[str, str]]:
    """The rows, by their headings, of the tables of a page that begin with these headings."""
    lines = (VALIDATION / page).read_text("utf-8").splitlines()
    for start, line in enumerate(lines):
        columns = [head.strip() for head in line.strip("|").split("|")]
        if line.startswith("|") and columns[: len(heads)] == list(heads):
            for row in itertools.takewhile(lambda line: line.startswith("|"), lines[start + 2 :]):
                yield dict(zip(columns, (field.strip() for field in row.strip("|").split("|")), strict=True))


def of_laws() -> dict[str, str]:
    """How many checks the page on laws has, and how many of them are within their tolerance."""
    verdicts = [row["verdict"] for row in rows("laws.md", "row")]
    deviating = sum(verdict.startswith("deviates") for verdict in verdicts)
    counts = {"checks": len(verdicts), "agree": len(verdicts) - deviating, "deviate": deviating}
    return {f"laws {name}": str(count) for name, count in counts.items()}


def of_kernel() -> dict[str, str]:
    """The comparisons with the kernel but for drawn test cases, and the agreement of goodput that the figure shows."""
    verdicts = [row["verdict"] for row in rows("kernel.md", "test case") if not row["test case"].startswith("drawn ")]
    off = [comparison.off_percent for comparison in goodput.read()]
    return {
        "kernel comparisons": str(len(verdicts)),
        "kernel pass": str(verdicts.count("pass")),
        "goodput test cases": str(len(off)),
        "goodput within 2 %": str(sum(each <= 2.0 for each in off)),
        "goodput largest": f"{max(off):.1f}",
    }


def of_claims() -> dict[str, str]:
    """The verdicts on claims, by paper and in all."""
    counts = {paper: Counter(row.get("verdict", "") for row in rows(f"claims-{paper}.md", "id")) for paper in PAPERS}
    counts["all"] = sum(counts.values(), Counter[str]())
    return {f"claims {of} {verdict}": str(count[verdict]) for of, count in counts.items() for verdict in VERDICTS}


def of_one_pipe() -> dict[str, str]:
    """The median of chunks of 100 kB in ms, and the mean bitrate of dash.js in Chromium in Mb/s."""
    simulated = rows("one-pipe.md", "rates, kb/s", "sender (20 seeds)")
    medians = {(row["rates, kb/s"], row["sender (20 seeds)"]): row["100 kB: p50 / p90 / p99, ms"] for row in simulated}
    for row in rows("one-pipe.md", "rates, kb/s; 3 seeds of 60 s", "sender"):
        sender = row["rates, kb/s; 3 seeds of 60 s"], row["sender"]
        medians[sender] = row["100 kB, on the wire: p50 / p90 / p99, ms"]
    bitrates = {
        (row["network"], row["sender"]): row["wire: bitrate, Mb/s"]
        for row in rows("one-pipe.md", "network", "sender", "runs", "wire: bitrate, Mb/s")
    }
    return {
        **{f"chunk {name}": medians[row].partition(" ")[0] for name, row in _CHUNKS.items()},
        **{f"dash.js {name}": bitrates[row].partition(" ")[0] for name, row in _SESSIONS.items()},
    }


@cache
def numbers() -> dict[str, str]:
    """Every number that a text may quote, by its name."""
    return {**of_laws(), **of_kernel(), **of_claims(), **of_one_pipe()}


def filled(page: str) -> str:
    """A page with its quoted numbers as they are in the tables.

    Raises:
        InputError: A name is unknown.
    """

    def number(found: re.Match[str]) -> str:
        name = found["name"]
        if name not in numbers():
            raise InputError(f"<!-- {name} -->: there is no such number{nearest(name, numbers())}")
        return f"{numbers()[name]}<!-- {name} -->"

    return QUOTED.sub(number, page)


def main() -> int:
    """Writes or checks the pages."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, and fail if a page is out of date")
    check = parser.parse_args().check
    outdated = False
    for path in PAGES:
        page = path.read_text("utf-8")
        if (new := filled(page)) != page:
            outdated = True
            print(f"{path.relative_to(ROOT)}: {'numbers are out of date' if check else 'written'}")
            if not check:
                path.write_text(new, "utf-8")
    return int(check and outdated)


if __name__ == "__main__":
    sys.exit(main())
