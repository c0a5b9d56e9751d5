#!/usr/bin/env python3
"""Changes every threshold of the bitrate rules in turn and says which changes no test notices.

A threshold is a number in a `const` of crates/media/src/abr. Each is made a quarter larger and a quarter smaller (a
whole number at least by one); then the tests of the rules and of the DASH players run. A change that they survive is
reported; the exit code is 1 if there is any.

In a copy of the sources every such constant becomes a function, whose numbers an environment variable can replace;
so one build serves all changes. A constant that the compiler needs as one stays: what is left out is listed.

    scripts/mutate-thresholds.py [PART-OF-A-FILE-NAME]
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RULES = Path("crates/media/src/abr")
CONSTANT = re.compile(r"^(\s*)((?:pub(?:\([a-z() ]*\))? )?)const ([A-Z0-9_]+): ([^=]+?) = ([^;\"]*);")
NUMBER = re.compile(r"(?<![\w.])\d[\d_]*(?:\.\d+)?(?:e-?\d+)?(?![\w.])")
USE = re.compile(r"^\s*(?:pub(?:\([a-z() ]*\))? )?use [^;]*;", re.MULTILINE)
# A value that the compiler needs while it compiles: of a constant function, or of another constant.
NEEDED = re.compile(r"\bconst fn\b.*?^\}", re.DOTALL | re.MULTILINE)
LEFT_OUT = shutil.ignore_patterns("target", ".venv", ".git", "runs", "__pycache__", "node_modules")
SWITCH = "ANABRANCH_MUTANT"
PICK = f"""
/// A number, or what a mutation puts in its place.
pub(crate) fn pick<T: Copy>(id: u32, plain: T, more: T, less: T) -> T {{
    static CHOSEN: std::sync::OnceLock<(u32, bool)> = std::sync::OnceLock::new();
    let chosen = CHOSEN.get_or_init(|| {{
        let text = std::env::var("{SWITCH}").unwrap_or_default();
        let (id, way) = text.split_once(':').unwrap_or(("4294967295", "more"));
        (id.parse().unwrap(), way == "more")
    }});
    if chosen.0 != id {{ plain }} else if chosen.1 {{ more }} else {{ less }}
}}
"""
# A change may keep a test from ever ending.
MOST_SECONDS = 300


@dataclass(frozen=True)
class Number:
    """A number of a constant, and what can take its place."""

    id: int
    place: str
    plain: str
    more: str
    less: str

    def changes(self) -> Iterator[tuple[str, str]]:
        """What the switch says for each change, and the change in words."""
        for way, new in (("more", self.more), ("less", self.less)):
            if new != self.plain:
                yield f"{self.id}:{way}", f"{self.place}: {self.plain} -> {new}"


def others(text: str) -> tuple[str, str]:
    """A quarter more and a quarter less, as literals of the same type."""
    plain = text.replace("_", "")
    if "." in plain or "e" in plain:
        return repr(round(float(plain) * 1.25, 9)), repr(round(float(plain) * 0.75, 9))
    value = int(plain)
    step = max(value // 4, 1)
    return str(value + step), str(max(value - step, 0))


def rewrite(copy: Path, part: str) -> tuple[list[Number], list[str]]:
    """Makes the constants of the copy replaceable; the numbers, and the places of constants that must stay."""
    numbers: list[Number] = []
    stays: list[str] = []
    defined: dict[str, set[str]] = {}
    files = [f for f in sorted((copy / RULES).rglob("*.rs")) if not f.stem.endswith("tests")]
    texts = {f: f.read_text(encoding="utf-8") for f in files}
    needed = "\n".join(match[0] for text in texts.values() for match in NEEDED.finditer(text))
    for file, text in texts.items():
        relative = str(file.relative_to(copy))
        lines = text.split("\n")
        for at, line in enumerate(lines):
            constant = CONSTANT.match(line)
            if line.startswith("#[cfg(test)]"):
                break
            if part not in relative or not constant or not NUMBER.search(constant[5]):
                continue
            indent, visibility, name, kind, value = constant.groups()
            place = f"{relative}:{at + 1}: {name}"
            if re.search(rf"\b{name}\b", needed):
                stays.append(place)
                continue

            def pick(number: re.Match[str], place: str = place) -> str:
                found = Number(len(numbers), place, number[0], *others(number[0]))
                numbers.append(found)
                return f"crate::abr::pick({found.id}, {found.plain}, {found.more}, {found.less})"

            body = NUMBER.sub(pick, value)
            lines[at] = f"{indent}#[allow(non_snake_case)] {visibility}fn {name}() -> {kind} {{ {body} }}"
            defined.setdefault(name, set()).add(relative)
        texts[file] = "\n".join(lines)
    for file in sorted((copy / RULES).rglob("*.rs")):
        text = texts.get(file, file.read_text(encoding="utf-8"))
        file.write_text(call(text, str(file.relative_to(copy)), defined), encoding="utf-8")
    root = copy / RULES / "mod.rs"
    root.write_text(root.read_text(encoding="utf-8") + PICK, encoding="utf-8")
    return numbers, stays


def call(text: str, file: str, defined: dict[str, set[str]]) -> str:
    """Calls the functions where their constants were named: in their own files, and where they are imported."""
    imports = " ".join(match[0] for match in USE.finditer(text))
    glob = "super::*" in imports
    for name, homes in defined.items():
        own = file in homes or (glob and any(home.replace(".rs", "_tests.rs") == file for home in homes))
        imported = re.search(rf"\b{name}\b", imports) is not None
        if own or imported:
            text = re.sub(rf"(?<!fn )(?<!:: )\b{name}\b(?!\()", f"{name}()", text)
        text = re.sub(rf"(?<=[a-z_]::){name}\b(?!\()", f"{name}()", text)
    return USE.sub(lambda match: match[0].replace("()", ""), text)


def build(copy: Path) -> Path | None:
    """The program of the tests."""
    command = ["cargo", "test", "--locked", "--package", "anabranch-media", "--lib", "--no-run"]
    done = subprocess.run(
        [*command, "--message-format=json-render-diagnostics"], cwd=copy, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode != 0:
        return None
    messages = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
    programs = [message["executable"] for message in messages if message.get("executable")]
    return Path(programs[-1])


def passes(program: Path, copy: Path, switch: str) -> bool:
    """Whether all tests pass with this change."""
    command = [str(program), "abr::", "players::dash::", "--quiet"]
    environment = {**os.environ, SWITCH: switch}
    try:
        done = subprocess.run(
            command, cwd=copy / "crates/media", env=environment, capture_output=True, timeout=MOST_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def main() -> int:
    """Tries every change and reports."""
    with tempfile.TemporaryDirectory(prefix="anabranch-mutation-") as directory:
        copy = Path(directory) / "copy"
        shutil.copytree(ROOT, copy, ignore=LEFT_OUT)
        numbers, stays = rewrite(copy, sys.argv[1] if len(sys.argv) > 1 else "")
        program = build(copy)
        if program is None or not passes(program, copy, ""):
            print("the tests fail without any change", file=sys.stderr)
            return 1
        missed = []
        tried = 0
        for switch, change in (pair for number in numbers for pair in number.changes()):
            tried += 1
            noticed = not passes(program, copy, switch)
            print(f"{tried} {'caught' if noticed else 'MISSED'} {change}", flush=True)
            if not noticed:
                missed.append(change)
    print(f"{tried} changes, {tried - len(missed)} caught, {len(missed)} missed")
    for change in missed:
        print(f"  {change}")
    for place in stays:
        print(f"not tried: {place}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
