"""A finished run as its folder and figures need it: a leaf, so that `anabranch.Run` may write them itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from anabranch.results.metrics import Metrics
from anabranch.runs.warning import RunWarning

if TYPE_CHECKING:
    import polars as pl

    from anabranch.results.recording import Recording


class FinishedRun(Protocol):
    """What `anabranch.Run` has for those who keep it; its attributes say what each is."""

    # ruff: noqa: D102 (`Run` documents them.)
    @property
    def scenario(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def metrics(self) -> Metrics: ...
    @property
    def cpu_seconds(self) -> float: ...
    @property
    def wall_seconds(self) -> float: ...
    @property
    def overrides(self) -> Sequence[str]: ...
    @property
    def warnings(self) -> Sequence[RunWarning]: ...
    @property
    def portable(self) -> tuple[str, list[tuple[str, bytes]]]: ...
    @property
    def recording(self) -> Recording: ...
    @property
    def has_events(self) -> bool: ...
    @property
    def events(self) -> pl.DataFrame: ...
