"""What is legal in a run and probably not meant: shown, and kept with the run, but no error.

A module that notices such a thing appends a `RunWarning` to `anabranch.Run.warnings`. The command line
prints them on standard error, `anabranch.run` gives them to Python's `warnings`, and ``run.json`` keeps
them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from anabranch import _core
from anabranch.results.metrics import Metrics
from anabranch.wording import ending

_CUT_OFF = "cut-off"


class RunWarning(UserWarning):
    """Something in a run that is legal but probably not meant.

    Attributes:
        kind: A stable word for its kind, such as ``event-after-end``, for programs.
        message: A sentence with its place.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(kind, message)
        self.kind = kind
        self.message = message

    def __str__(self) -> str:
        return self.message


def of_run(scenario: _core.Scenario, metrics: Metrics) -> tuple[RunWarning, ...]:
    """The warnings of a scenario, and what makes the metrics of its run doubtful."""
    warnings = (RunWarning(kind, message) for kind, message in scenario.warnings)
    doubts = (RunWarning(_CUT_OFF, message) for message in ending.warnings(metrics))
    return (*warnings, *doubts)


def give(given: Iterable[RunWarning], *, stacklevel: int) -> None:
    """Hands warnings to Python's own; ``stacklevel`` counts from the caller of this function."""
    for each in given:
        warnings.warn(each, stacklevel=stacklevel + 1)
