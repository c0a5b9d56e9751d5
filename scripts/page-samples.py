"""Replaces what the README and the tutorial show as output by what their commands and programs print today.

    .venv/bin/python scripts/page-samples.py           writes the pages
    .venv/bin/python scripts/page-samples.py --check   ends with exit code 1 if a page is out of date, and says where

A sample is a fence without a language. It keeps its number of lines and the words of its first line.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
import warnings
from pathlib import Path

from typer.testing import CliRunner

from anabranch.cli import app

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
TUTORIAL = ROOT / "docs" / "tutorial" / "first-steps.md"

FENCE = re.compile(r"(?:`([\w.-]+)`:\n\n)?^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# The command of the README's second sample; the first one is of `make demo`, the third of the program before it.
QUICK_TOUR = ["run", "mobile/walk", "--seed", "2", "--out", "runs/quick-tour"]
# A line of a summary in the README's prose, and the command that prints it.
CHUNKS = re.compile(r"`(\d+ chunks: [^`]*)`")
COMMAND_OF_CHUNKS = re.compile(r"^    anabranch (run one-pipe/.*)$", re.MULTILINE)
CHUNKS_PRINTED = re.compile(r"^\d+ chunks: .*$", re.MULTILINE)


def printed_by(arguments: list[str]) -> str:
    """What a command prints on standard output."""
    done = CliRunner().invoke(app, arguments)
    if done.exit_code != 0:
        sys.exit(f"anabranch {shlex.join(arguments)}: exit code {done.exit_code}\n{done.output}")
    return done.stdout


def printed_by_program(program: str) -> str:
    """What a Python program prints."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(program, {})
    return output.getvalue()


def demo_commands() -> list[list[str]]:
    """The commands of `make demo`."""
    text = (ROOT / "Makefile").read_text("utf-8").replace("\\\n", " ")
    (recipe,) = re.findall(r"^demo:.*\n((?:\t.*\n)+)", text, re.MULTILINE)
    lines = [line.replace("runs/demo", "demo") for line in recipe.splitlines() if "$(BIN)/anabranch" in line]
    return [shlex.split(line.partition("$(BIN)/anabranch")[2]) for line in lines]


def part_like(sample: str, printed: str) -> str:
    """The part of an output that begins with the words of the sample's first line, and has as many lines."""
    shown, lines = sample.splitlines(), printed.splitlines()
    starts = [at for at, line in enumerate(lines) if line.split() == shown[0].split()]
    if not starts:
        sys.exit(f"nothing printed begins with {shown[0].strip()!r}:\n{printed}")
    return "".join(f"{line}\n" for line in lines[starts[-1] : starts[-1] + len(shown)])


def readme(page: str) -> str:
    """The README with its samples of today."""
    fences = [(language, content) for _, language, content in FENCE.findall(page)]
    table, summary, means = [content for language, content in fences if not language]
    (program,) = [content for language, content in fences if language == "python"]
    demo = "".join(printed_by(arguments) for arguments in demo_commands())
    page = page.replace(table, part_like(table, demo))
    page = page.replace(summary, part_like(summary, printed_by(QUICK_TOUR)))
    page = page.replace(means, printed_by_program(program))
    shown, command = CHUNKS.findall(page)[0], COMMAND_OF_CHUNKS.findall(page)[0]
    return page.replace(shown, chunks(command))


def chunks(command: str) -> str:
    """The line on the times of chunks that a command prints."""
    (line,) = CHUNKS_PRINTED.findall(printed_by([*shlex.split(command), "--out", "runs/chunks"]))
    return str(line)


def tutorial(page: str) -> str:
    """The tutorial with its samples of today: each is of the commands before it."""
    printed, new = "", page
    for match in FENCE.finditer(page):
        file, language, content = match.groups()
        if language == "toml":
            Path(file).write_text(content, "utf-8")
        elif language == "sh":
            printed = "".join(printed_by(shlex.split(line)[1:]) for line in content.splitlines())
        elif language == "python":
            printed = printed_by_program(content)
        else:
            new = new.replace(content, part_like(content, printed))
    return new


def main() -> int:
    """Writes or checks the pages."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, and fail if a page is out of date")
    check = parser.parse_args().check
    warnings.simplefilter("ignore")
    outdated = []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for path, renewed in ((README, readme), (TUTORIAL, tutorial)):
            page = path.read_text("utf-8")
            if (new := renewed(page)) != page:
                outdated.append(path)
                if not check:
                    path.write_text(new, "utf-8")
        os.chdir(ROOT)
    for path in outdated:
        print(f"{path.relative_to(ROOT)}: {'samples are out of date' if check else 'written'}")
    return int(check and bool(outdated))


if __name__ == "__main__":
    sys.exit(main())
