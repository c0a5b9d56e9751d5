"""How results show themselves in notebooks: a line of summary, a table, a figure."""

from __future__ import annotations

import base64
import html
import io
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# A figure of a page is drawn for print; on a screen this is as wide as a notebook.
_DPI = 100
# A run shorter than this is over before a bar could be read.
_BAR_AFTER_S = 0.7
_BAR_EVERY_S = 0.2
_BAR_CHARACTERS = 30


def figure(drawn: Figure) -> str:
    """A figure as an image that is part of the page."""
    # Needs matplotlib, for which notebooks without a figure do not wait.
    from anabranch.figures import fonts

    content = io.BytesIO()
    with fonts.one_notice():
        drawn.savefig(content, format="png", dpi=_DPI)
    return f'<img alt="figure" src="data:image/png;base64,{base64.b64encode(content.getvalue()).decode()}">'


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of texts, the first column to the left and numbers to the right."""

    def row(texts: Sequence[str], tag: str) -> str:
        sides = ["left"] + ["right"] * (len(texts) - 1)
        pairs = zip(texts, sides, strict=True)
        return "".join(f'<{tag} style="text-align:{side}">{html.escape(text)}</{tag}>' for text, side in pairs)

    body = "".join(f"<tr>{row(each, 'td')}</tr>" for each in rows)
    return f"<table><tr>{row(head, 'th')}</tr>{body}</table>"


def paragraph(text: str, *, bold: bool = False) -> str:
    """A line of text."""
    content = html.escape(text)
    return f"<p>{f'<b>{content}</b>' if bold else content}</p>"


def in_notebook() -> bool:
    """Whether the interpreter is the kernel of a notebook."""
    shell = sys.modules.get("IPython")
    return shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell"


class NotebookBar:
    """Progress as a line of text on standard error, which notebooks show below the input."""

    def __init__(self, description: str) -> None:
        self._description = description
        self._began = self._said = time.monotonic()
        self._shown = False

    def __call__(self, fraction: float) -> None:
        """So much is done, between 0 and 1."""
        now = time.monotonic()
        if now - self._began < _BAR_AFTER_S or now - self._said < _BAR_EVERY_S:
            return
        self._said, self._shown = now, True
        full = round(fraction * _BAR_CHARACTERS)
        left = (now - self._began) * (1 - fraction) / fraction if fraction > 0 else float("nan")
        bar = "#" * full + "." * (_BAR_CHARACTERS - full)
        print(f"\r{self._description} [{bar}] {fraction:4.0%}, {left:.0f} s left ", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        """The work is over: the line goes away."""
        if self._shown:
            print("\r" + " " * 100 + "\r", end="", file=sys.stderr, flush=True)


def bar(description: str) -> tuple[Callable[[float], object] | None, Callable[[], None]]:
    """What shows progress by default: a bar in notebooks; and what ends it."""
    if not in_notebook():
        return None, lambda: None
    shown = NotebookBar(description)
    return shown, shown.close
