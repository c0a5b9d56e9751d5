"""How far a sweep is: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from anabranch.experiments.executor import Finished

# A log of a cluster is read afterwards.
_LINE_EVERY_S = 60.0
_MOST_ERROR = 60


class Bar:
    """The progress of a sweep on a console: runs, rate, time left, and the last failure."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._failed = 0
        self._last = ""
        self._done = self._of = 0
        self._began = self._said = time.monotonic()
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(compact=True),
            TextColumn("{task.fields[failure]}", style="bold red"),
            console=console,
            transient=True,
        )
        self._task = self._bar.add_task("running", total=None, rate="", failure="")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar.live.is_started:
            self._bar.stop()

    def begin(self, runs: int, *, kept: int) -> None:
        """So many runs are to be made, and so many are there."""
        self._began = self._said = time.monotonic()
        self._done, self._of = 0, runs
        if kept and self._console.is_terminal:
            self._console.print(Text(f"{kept} of {kept + runs} runs are there already", style="dim"))
        if runs and self._console.is_terminal:
            self._bar.reset(self._task, total=runs)
            self._bar.start()

    def advance(self, finished: Finished) -> None:
        """A run is over."""
        self._done += 1
        if finished.error is not None:
            self._failed += 1
            self._last = finished.error.splitlines()[0][:_MOST_ERROR]
        failure = f"{self._failed} failed: {self._last}" if self._failed else ""
        if self._console.is_terminal:
            self._bar.update(self._task, completed=self._done, rate=f"{self.rate:.1f}/s", failure=failure)
        elif time.monotonic() - self._said > _LINE_EVERY_S:
            self._said = time.monotonic()
            left = (self._of - self._done) / self.rate
            said = [f"{self._done} of {self._of} runs", f"{self.rate:.1f}/s", f"{left:.0f} s left", failure]
            self._console.print(", ".join(filter(None, said)), soft_wrap=True)

    @property
    def rate(self) -> float:
        """Runs per second, so far."""
        return self._done / max(time.monotonic() - self._began, 1e-3)
