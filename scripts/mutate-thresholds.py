#!/usr/bin/env python3
"""Changes every threshold of the bitrate rules in turn and says which changes no test notices.

A threshold is a number in a `const` of crates/media/src/abr. Each is made a quarter larger and a quarter smaller (a
whole number at least by one), in a copy of the sources; then the tests of the rules and of the DASH players run. A
change that they survive is reported; the exit code is 1 if there is any.

    scripts/mutate-thresholds.py [PART-OF-A-FILE-NAME]

It takes a build of one crate per change, some ten minutes in all.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RULES = Path("crates/media/src/abr")
CONSTANT = re.compile(r"^\s*(?:pub(?:\([a-z() ]*\))? )?const ([A-Z0-9_]+): [^=]+= (.*);\s*(?://.*)?$")
NUMBER = re.compile(r"(?<![\w.])\d[\d_]*(?:\.\d+)?(?![\w.])")
CARGO_TEST = ["cargo", "test", "--quiet", "--locked", "--package", "anabranch-media", "--lib"]
TESTS = [*CARGO_TEST, "--", "abr::", "players::dash::"]
# What is copied: the workspace without what was built.
LEFT_OUT = shutil.ignore_patterns("target", ".venv", ".git", "runs", "__pycache__", "node_modules")
# A change may keep a test from ever ending.
MOST_SECONDS = 600


@dataclass(frozen=True)
class Change:
    """One number of one constant, and what takes its place."""

    file: Path
    line: int
    name: str
    begin: int
    end: int
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line + 1}: {self.name}: {self.old} -> {self.new}"


def changes(part: str) -> list[Change]:
    """Every change of every constant in files whose path contains this."""
    found = []
    for file in sorted((ROOT / RULES).rglob("*.rs")):
        relative = file.relative_to(ROOT)
        if part not in str(relative) or file.stem.endswith("tests"):
            continue
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines()):
            if line.startswith("#[cfg(test)]"):
                break
            constant = CONSTANT.match(line)
            if not constant or '"' in constant[2]:
                continue
            for value in NUMBER.finditer(line, constant.start(2), constant.end(2)):
                place = (relative, number, constant[1], value.start(), value.end(), value[0])
                found += [Change(*place, new) for new in others(value[0])]
    return found


def others(text: str) -> list[str]:
    """A quarter more and a quarter less, as literals of the same type."""
    plain = text.replace("_", "")
    if "." in plain:
        return [repr(float(plain) * factor) for factor in (1.25, 0.75)]
    value = int(plain)
    step = max(value // 4, 1)
    return [str(value + step), str(value - step)] if value else ["1"]


def caught(copy: Path, change: Change) -> bool:
    """Whether a test fails with this change."""
    file = copy / change.file
    original = file.read_text(encoding="utf-8")
    lines = original.splitlines(keepends=True)
    line = lines[change.line]
    lines[change.line] = line[: change.begin] + change.new + line[change.end :]
    file.write_text("".join(lines), encoding="utf-8")
    try:
        done = subprocess.run(TESTS, cwd=copy, capture_output=True, timeout=MOST_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return True
    finally:
        file.write_text(original, encoding="utf-8")
    return done.returncode != 0


def main() -> int:
    """Tries every change and reports."""
    wanted = changes(sys.argv[1] if len(sys.argv) > 1 else "")
    with tempfile.TemporaryDirectory(prefix="anabranch-mutation-") as directory:
        copy = Path(directory) / "copy"
        shutil.copytree(ROOT, copy, ignore=LEFT_OUT)
        if subprocess.run(TESTS, cwd=copy, check=False).returncode != 0:
            print("the tests fail without any change", file=sys.stderr)
            return 1
        missed = []
        for number, change in enumerate(wanted, 1):
            noticed = caught(copy, change)
            print(f"{number}/{len(wanted)} {'caught' if noticed else 'MISSED'} {change}", flush=True)
            if not noticed:
                missed.append(change)
    print(f"{len(wanted)} changes, {len(wanted) - len(missed)} caught, {len(missed)} missed")
    for change in missed:
        print(f"  {change}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
