#!/usr/bin/env python3
"""Finds the words that scripts/words.toml denies in the tracked sources, and names the standard term for each.

Usage: scripts/check-words.py [FILE...]

Without a file it reads every tracked source. The exit code is 1 if there is a finding.

words.toml has two kinds of tables. A `[[deny]]` lists `words` (a phrase is words with blanks), the standard term to
`use`, and perhaps a `note`. An `[[allow]]` has the `reason` for an exception, the denied `words` that it is for (all of
them if absent), and at least one of `files` (patterns of paths) and `near` (a regular expression: the exception holds
where a match in the same line covers the beginning of the word).

A word is a sequence of letters: `cell_of` and "test-cell" contain the word "cell", `RefCell` and "cellular" do not. A
phrase is found across the end of a line, too, because paragraphs are wrapped.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LIST = Path(__file__).resolve().with_name("words.toml")
# What is scanned. `LIST` is not: it has to name every denied word.
SOURCES = ("*.rs", "*.py", "*.pyi", "*.md", "*.toml", "Makefile")


@dataclass(frozen=True)
class Denied:
    """A word or phrase, and what this project says in its place."""

    word: str
    use: str
    note: str

    @property
    def pattern(self) -> str:
        """Matches the phrase with any blank space between its words, or with the margin of a wrapped comment."""
        between = r"(?:[ \t]+|[ \t]*\n[ \t]*(?://[/!]?|#|>)?[ \t]*)"
        return between.join(re.escape(part) for part in self.word.split(" "))


@dataclass(frozen=True)
class Allowed:
    """An exception; absent parts match everything."""

    reason: str
    files: tuple[str, ...]
    words: frozenset[str]
    near: re.Pattern[str] | None

    def covers(self, path: str, word: str, line: str, column: int) -> bool:
        """Whether the exception holds for a word in a column of a line."""
        if self.files and not any(fnmatch(path, pattern) for pattern in self.files):
            return False
        if self.words and word not in self.words:
            return False
        return self.near is None or any(m.start() <= column < m.end() for m in self.near.finditer(line))


@dataclass(frozen=True)
class Occurrence:
    """A denied word where no exception holds."""

    path: str
    line: int
    found: str
    denied: Denied

    def __str__(self) -> str:
        note = f" ({self.denied.note})" if self.denied.note else ""
        return f"{self.path}:{self.line}: `{self.found}`: use {self.denied.use}{note}"


class Rules:
    """The list of denied words and its exceptions."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.denied = {
            word: Denied(word, entry["use"], entry.get("note", ""))
            for entry in document["deny"]
            for word in entry["words"]
        }
        self.allowed = [_allowed(entry, self.denied) for entry in document.get("allow", [])]
        # Longer phrases first: "head of the line" before a word of it.
        ordered = sorted(self.denied, key=len, reverse=True)
        self._names = {f"w{number}": word for number, word in enumerate(ordered)}
        alternatives = "|".join(f"(?P<{name}>{self.denied[word].pattern})" for name, word in self._names.items())
        self._pattern = re.compile(f"(?<![A-Za-z])(?:{alternatives})(?![A-Za-z])", re.IGNORECASE)
        self.used: set[int] = set()

    def findings(self, path: str, text: str) -> Iterator[Occurrence]:
        """Every denied word of a file for which there is no exception."""
        for match in self._pattern.finditer(text):
            assert match.lastgroup is not None
            denied = self.denied[self._names[match.lastgroup]]
            begin = text.rfind("\n", 0, match.start()) + 1
            end = text.find("\n", match.end())
            line, column = text[begin : None if end < 0 else end], match.start() - begin
            holding = [n for n, one in enumerate(self.allowed) if one.covers(path, denied.word, line, column)]
            self.used.update(holding)
            if not holding:
                yield Occurrence(path, text.count("\n", 0, begin) + 1, " ".join(match[0].split()), denied)


def _allowed(entry: dict[str, Any], denied: dict[str, Denied]) -> Allowed:
    words = frozenset(entry.get("words", ()))
    if unknown := words - denied.keys():
        raise ValueError(f"the exception {entry} is for {sorted(unknown)}, which are not denied")
    if not entry.keys() & {"files", "near"}:
        raise ValueError(f"the exception {entry} would allow its words everywhere: expected `files` or `near`")
    near = re.compile(entry["near"]) if "near" in entry else None
    return Allowed(entry["reason"], tuple(entry.get("files", ())), words, near)


def sources() -> list[Path]:
    """The tracked files whose words are checked."""
    listed = subprocess.run(["git", "ls-files", "-z", *SOURCES], cwd=ROOT, capture_output=True, text=True, check=True)
    files = [ROOT / name for name in listed.stdout.split("\0") if name]
    return [file for file in files if file != LIST and file.is_file()]


def main() -> int:
    """Prints every finding, and every exception that nothing needs any more."""
    rules = Rules(tomllib.loads(LIST.read_text(encoding="utf-8")))
    named = [Path(name).resolve() for name in sys.argv[1:]]
    count = 0
    for file in named or sources():
        for finding in rules.findings(str(file.relative_to(ROOT)), file.read_text(encoding="utf-8")):
            print(finding)
            count += 1
    unused = [] if named else [one for n, one in enumerate(rules.allowed) if n not in rules.used]
    for one in unused:
        print(f"{LIST.relative_to(ROOT)}: nothing needs this exception any more: {one.reason}")
    if count or unused:
        print(f"{count} denied words, {len(unused)} needless exceptions (the list is scripts/words.toml).")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
