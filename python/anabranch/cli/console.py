"""What the commands share: where text goes, and how a command ends."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any, NoReturn, TextIO

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.segment import Segment
from rich.text import Text

# In files and pipes: what fits on a page with a margin, and into a window with a log.
_WIDTH_WITHOUT_TERMINAL = 100
# More columns than any table has.
ANY_WIDTH = 10_000
# A run shorter than this is over before a bar could be read.
_BAR_AFTER_S = 0.7


class Exit(IntEnum):
    """The exit codes, which scripts depend on."""

    DONE = 0
    RUN_FAILED = 1
    WRONG_INPUT = 2
    INTERRUPTED = 130


def visible(text: str) -> str:
    """A text of which a terminal shows every character and acts on none: names of files and runs may have such.

    Control characters of ASCII and of its extension (C1), those that change the direction of text (UAX 9), separators
    of lines and halves of pairs become escapes; line feeds and tabs stay.
    """
    return _ACTING.sub(lambda found: found.group().encode("unicode_escape", "surrogatepass").decode("ascii"), text)


_ACTING = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ud800-\\udfff]"
)


class _Console(Console):
    """A console whose own sequences are all that a terminal acts on."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


def echo(text: str, *, error: bool = False) -> None:
    """Prints a line without looking for markup in it, and never wraps it."""
    typer.echo(visible(text), err=error)


def echo_json(content: Any, *, indent: int | None = 2) -> None:
    """Prints a value as JSON, in one line without `indent`. What a terminal would act on is escaped there, too."""
    text = json.dumps(content, indent=indent, ensure_ascii=False, default=str)
    echo(_ACTING.sub(lambda found: f"\\u{ord(found.group()):04x}", text))


def _console(stream: TextIO) -> Console:
    # Texts with brackets, such as `[set]` or a heading `Time [s]`, are no markup.
    width = None if stream.isatty() else _WIDTH_WITHOUT_TERMINAL
    return _Console(file=stream, width=width, highlight=False, markup=False)


def out() -> Console:
    """What a command answers."""
    return _console(sys.stdout)


def err() -> Console:
    """Messages of a command besides its answer."""
    return _console(sys.stderr)


def answer(content: RenderableType, *, records: bool = False) -> None:
    """Prints on standard output; where that is no terminal, without the blanks that fill up a table's lines.

    Args:
        content: A text or a table.
        records: Where that is no terminal, each row of the table stays one line, however long: programs read it.
    """
    console = out()
    if console.is_terminal:
        console.print(content)
        return
    if records:
        console.width = ANY_WIDTH
    with console.capture() as captured:
        console.print(content)
    sys.stdout.writelines(line.rstrip() + "\n" for line in captured.get().splitlines())


def say(line: str) -> None:
    """One line on standard error, never wrapped."""
    err().print(Text(line), soft_wrap=True)


def say_error(message: str) -> None:
    """One line on standard error, never wrapped, so that a file name and its line stay together."""
    err().print(Text.assemble(("error: ", "bold red"), message), soft_wrap=True)


def say_warning(message: str) -> None:
    """The same for a warning."""
    err().print(Text.assemble(("warning: ", "bold yellow"), message), soft_wrap=True)


def say_note(message: str) -> None:
    """The same for what is good to know."""
    err().print(Text(f"note: {message}", style="dim"), soft_wrap=True)


class _Notes(logging.Handler):
    """What modules log, as notes."""

    def emit(self, record: logging.LogRecord) -> None:
        say_note(record.getMessage())


def show_log() -> None:
    """Prints what the package logs, which commands do not know of, on standard error."""
    logging.getLogger("anabranch").addHandler(_Notes())


def fail(message: str, code: Exit) -> NoReturn:
    """Ends the command with a message on standard error."""
    say_error(message)
    raise typer.Exit(code)


@contextmanager
def progress_bar(description: str) -> Iterator[Callable[[float], None]]:
    """A bar on standard error, shown on a terminal only and only once the work has lasted a moment.

    Yields:
        What to call with the fraction that is done, between 0 and 1.
    """
    console = err()
    if not console.is_terminal:
        yield lambda _fraction: None
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(compact=True),
    )
    bar = Progress(*columns, console=console, transient=True)
    task = bar.add_task(description, total=1.0)

    def report(fraction: float) -> None:
        bar.update(task, completed=fraction)
        if not bar.live.is_started and (bar.tasks[task].elapsed or 0.0) > _BAR_AFTER_S:
            bar.start()

    try:
        yield report
    finally:
        bar.stop()
