"""Recorded and synthetic rates of links: read, look at, convert, synthesise.

>>> from anabranch import traces
>>> lte = traces.synthesize("lte", mean="12 Mb/s", duration="60 s", seed=1)
>>> round(lte.mean_bps / 1e6), len(lte.rates)
(13, 60)
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch import _core, arguments
from anabranch.errors import InputError
from anabranch.runs import warning
from anabranch.system import outputs, regular

if TYPE_CHECKING:
    import polars as pl

# A format that keeps what every other one has.
_NAME = "trace.json"


@dataclass(frozen=True)
class Trace:
    """The rate of a link over time.

    Attributes:
        name: The file that it is from, or the kind that it was synthesised as.
        about: What characterises it, as ``anabranch trace info --json`` prints it.
    """

    name: str
    about: dict[str, Any] = field(repr=False)
    _content: bytes = field(repr=False)
    _seconds: tuple[float, ...] = field(repr=False)
    _read_as: _core._ReadAs = field(repr=False)

    @property
    def duration_s(self) -> float:
        """Its length in seconds, after which it begins again."""
        return float(self.about["duration_s"])

    @property
    def mean_bps(self) -> float:
        """Its mean rate in bit/s."""
        return float(self.about["mean_bps"])

    @property
    def rates(self) -> pl.DataFrame:
        """The mean rate of each whole second: ``time_s`` (its beginning) and ``rate_bps``."""
        import polars as pl

        return pl.DataFrame({"time_s": [float(at) for at in range(len(self._seconds))], "rate_bps": self._seconds})

    def save(
        self,
        file: str | Path,
        *,
        format: str | None = None,  # noqa: A002 (the command line's word)
        scale: float = 1.0,
        offset: str = "0 s",
        duration: str | None = None,
        step: str = "1 s",
    ) -> Path:
        """Writes it as a file that a scenario can name: ``rate = { trace = "FILE" }``.

        Args:
            file: The file. Its ending decides the format if none is given.
            format: ``mahimahi``, ``columns`` or ``json``.
            scale: The factor by which the rates are multiplied.
            offset: Where to begin, with its unit; the part before it follows after the end.
            duration: How much to write, with its unit; all of it where absent. A trace that is shorter repeats.
            step: The interval of the rates in tables and JSON, with its unit.

        Raises:
            InputError: A value is wrong.
            OSError: The file cannot be written.
        """
        path = Path(arguments.place("file", file, "the name of a file"))
        arguments.number("scale", scale, "a number, such as scale=0.5")
        arguments.texts(format=format, offset=offset, duration=duration, step=step)
        text, _ = _core.trace_convert(
            self._content,
            name=self.name,
            read_as=self._read_as,
            scale=scale,
            offset=offset,
            duration=duration,
            target=str(path),
            target_format=format,
            step=step,
        )
        with outputs.writing(path):
            path.write_text(text, encoding="utf-8", newline="\n")
        return path


def read_as(
    *,
    format: str | None = None,  # noqa: A002 (the command line's word)
    unit: str | None = None,
    rate_column: str | int | None = None,
    time_column: str | int | None = None,
    time_unit: str | None = None,
    interval: str | None = None,
    gap: str | None = None,
) -> _core._ReadAs:
    """What is known about a trace's file, as the compiled part takes it; see `read`."""
    return {
        "format": format,
        "unit": unit,
        "rate_column": None if rate_column is None else str(rate_column),
        "time_column": None if time_column is None else str(time_column),
        "time_unit": time_unit,
        "interval": interval,
        "gap": gap,
    }


def read(
    file: str | Path,
    *,
    format: str | None = None,  # noqa: A002 (the command line's word)
    unit: str | None = None,
    column: int | None = None,
    rate_column: str | int | None = None,
    time_column: str | int | None = None,
    time_unit: str | None = None,
    interval: str | None = None,
    gap: str | None = None,
) -> Trace:
    """Reads a recorded rate. What is probably not meant is a Python warning.

    Args:
        file: The file.
        format: ``mahimahi``, ``columns`` or ``json``; recognised where absent.
        unit: The unit of a table's rates, such as ``Mb/s`` or ``MB/s``, if its heading does not say it.
        column: The former name of ``rate_column``.
        rate_column: Which column of a table holds the rates: its heading, or its number counted from 0.
        time_column: Which column of a table holds the times, likewise.
        time_unit: The unit of a table's times, if its heading does not say it: ``s``, ``ms``, ``us`` or ``ns``.
        interval: The length of each row of a table without times, such as ``"1 s"``.
        gap: What happens in gaps: ``hold``, ``zero`` or ``error``.

    Raises:
        InputError: The file cannot be read or is no trace.
    """
    path = Path(arguments.place("file", file, "the name of a file"))
    arguments.texts(format=format, unit=unit, time_unit=time_unit, interval=interval, gap=gap)
    try:
        content = regular.read(path)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    known = read_as(
        format=format,
        unit=unit,
        rate_column=column if rate_column is None else rate_column,
        time_column=time_column,
        time_unit=time_unit,
        interval=interval,
        gap=gap,
    )
    found = _trace(content, str(path), known)
    warnings = found.about["understood"]["warnings"]
    warning.give((warning.RunWarning("trace", f"{path}: {each}") for each in warnings), stacklevel=2)
    return found


def synthesize(kind: str, *, mean: str, duration: str = "600 s", seed: int = 1, step: str = "1 s") -> Trace:
    """Synthesises a rate that has the statistics of recorded ones.

    Args:
        kind: A name of `anabranch.synthetic_rates`.
        mean: The mean rate in the long run, such as ``"12 Mb/s"``.
        duration: Its length, such as ``"600 s"``.
        seed: Which of the possible ones.
        step: The interval of its rates.

    Raises:
        InputError: There is no such kind, or a value is wrong.
    """
    arguments.texts(kind=kind, mean=mean, duration=duration, step=step)
    seed = arguments.seed("seed", seed)
    text = _core.trace_synthesize(
        kind, mean=mean, duration=duration, seed=seed, target=_NAME, target_format="json", step=step
    )
    return _trace(text.encode(), kind, read_as(format="json"))


def _trace(content: bytes, name: str, known: _core._ReadAs) -> Trace:
    text, seconds = _core.trace_info(content, name=name, read_as=known)
    return Trace(name, json.loads(text), content, tuple(seconds.tolist()), known)
