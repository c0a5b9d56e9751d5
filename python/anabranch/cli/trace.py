"""`anabranch trace`: what characterises a recorded rate, its other formats, and synthetic ones."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from anabranch import _core, traces
from anabranch.cli.console import answer, echo_json, err, out, say_warning
from anabranch.errors import InputError
from anabranch.system import outputs, regular

app = typer.Typer(
    help="Look at recorded rates, convert them, and synthesise new ones.",
    epilog="Example: anabranch trace info lte.csv --unit Mb/s",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_BLOCKS = "▁▂▃▄▅▆▇█"
_MOST_BLOCKS = 72
_STDOUT = Path("-")

_File = Annotated[Path, typer.Argument(metavar="FILE", help="The trace.", show_default=False)]
_Format = Annotated[
    str | None, typer.Option("--from", metavar="FORMAT", help="mahimahi, columns or json; recognised where absent.")
]
_Rate = Annotated[
    str | None,
    typer.Option(
        "--rate",
        metavar="COLUMN",
        help="Of a table, the column of the rates: its heading, or its number counted from 0.",
    ),
]
_Column = Annotated[str | None, typer.Option("--column", hidden=True, help="The former name of --rate.")]
_Time = Annotated[
    str | None,
    typer.Option("--time", metavar="COLUMN", help="Of a table, the column of the times, likewise."),
]
_Unit = Annotated[
    str | None,
    typer.Option("--unit", metavar="UNIT", help="Of a table's rates, such as Mb/s, MB/s or 'B per interval'."),
]
_TimeUnit = Annotated[
    str | None, typer.Option("--time-unit", metavar="UNIT", help="Of a table's times: s, ms, us or ns.")
]
_Interval = Annotated[
    str | None, typer.Option("--interval", metavar="TIME", help="The length of each row of a table without times.")
]
_Gap = Annotated[
    str | None,
    typer.Option("--gap", metavar="WHAT", help="In gaps of a table: hold the rate, zero, or error; hold where absent."),
]
_Target = Annotated[
    str | None,
    typer.Option("--format", metavar="FORMAT", help="mahimahi, columns or json; that of the file's ending."),
]
_Step = Annotated[
    str, typer.Option("--step", metavar="TIME", help="The length of steps where packets of Mahimahi's become a table.")
]
_Out = Annotated[
    Path, typer.Argument(metavar="OUT", help="The file to write; - is standard output.", show_default=False)
]


@app.command("info", epilog="Example: anabranch trace info wifi.csv --unit B/s --json")
def info(
    file: _File,
    form: _Format = None,
    rate_column: _Rate = None,
    column: _Column = None,
    time_column: _Time = None,
    unit: _Unit = None,
    time_unit: _TimeUnit = None,
    interval: _Interval = None,
    gap: _Gap = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")] = False,
) -> None:
    """Print how a trace was understood, and what characterises it: mean, variation and autocorrelation, outages.

    What follows the share of zero is computed from the mean rates of whole seconds. In an outage the rate is below 5 %
    of the mean.
    """
    known = traces.read_as(
        format=form,
        unit=unit,
        rate_column=rate_column or column,
        time_column=time_column,
        time_unit=time_unit,
        interval=interval,
        gap=gap,
    )
    text, samples = _core.trace_info(_read(file), name=str(file), read_as=known)
    found = json.loads(text)
    _warn(file, found["understood"])
    if as_json:
        echo_json(found)
        return
    answer(_table(found))
    if out().is_terminal:
        answer(f"\n{sparkline(samples.tolist())}")


@app.command("convert", epilog="Example: anabranch trace convert lte.down lte.csv --step '100 ms' --offset '30 s'")
def convert(
    file: _File,
    target: _Out,
    form: _Format = None,
    rate_column: _Rate = None,
    column: _Column = None,
    time_column: _Time = None,
    unit: _Unit = None,
    time_unit: _TimeUnit = None,
    interval: _Interval = None,
    gap: _Gap = None,
    target_format: _Target = None,
    scale: Annotated[float, typer.Option("--scale", metavar="X", help="The factor of the rate.")] = 1.0,
    offset: Annotated[
        str, typer.Option("--offset", metavar="TIME", help="Where to begin; what is before comes after the end.")
    ] = "0 s",
    duration: Annotated[
        str | None, typer.Option("--duration", metavar="TIME", help="How much to write; longer traces repeat.")
    ] = None,
    step: _Step = "1 s",
) -> None:
    """Write a trace in another format, or a part of it. Only JSON keeps a recorded latency."""
    known = traces.read_as(
        format=form,
        unit=unit,
        rate_column=rate_column or column,
        time_column=time_column,
        time_unit=time_unit,
        interval=interval,
        gap=gap,
    )
    text, understood = _core.trace_convert(
        _read(file),
        name=str(file),
        read_as=known,
        scale=scale,
        offset=offset,
        duration=duration,
        target=str(target),
        target_format=target_format,
        step=step,
    )
    _warn(file, json.loads(understood))
    err().print(f"read as {_understood(json.loads(understood))}", soft_wrap=True)
    _write(target, text)


@app.command(
    "synthesize", epilog="Example: anabranch trace synthesize lte lte.csv --mean '12 Mb/s' --duration '600 s' --seed 1"
)
def synthesize(
    kind: Annotated[
        str, typer.Argument(metavar="KIND", help="A name of `anabranch list synthetic-rates`.", show_default=False)
    ],
    target: _Out,
    mean: Annotated[str, typer.Option("--mean", metavar="RATE", help="The mean rate in the long run.")],
    duration: Annotated[str, typer.Option("--duration", metavar="TIME", help="How much to write.")] = "600 s",
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Which of the possible ones.")] = 1,
    target_format: _Target = None,
    step: _Step = "1 s",
) -> None:
    """Synthesise a trace that has the statistics of recorded ones."""
    text = _core.trace_synthesize(
        kind,
        mean=mean,
        duration=duration,
        seed=seed,
        target=str(target),
        target_format=target_format,
        step=step,
    )
    _write(target, text)


def _read(file: Path) -> bytes:
    try:
        return regular.read(file)
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}") from error


def _write(target: Path, text: str) -> None:
    if target == _STDOUT:
        sys.stdout.write(text)
        return
    with outputs.writing(target):
        target.write_text(text, encoding="utf-8", newline="\n")
    err().print(f"trace: {target}", soft_wrap=True)


def _warn(file: Path, understood: dict[str, Any]) -> None:
    for each in understood["warnings"]:
        say_warning(f"{file}: {each}")


def _column(found: dict[str, Any] | None) -> str:
    if found is None:
        return "none"
    return f"column {found['number']}" + (f" ({found['heading']})" if found["heading"] else "")


def _times(understood: dict[str, Any]) -> str:
    if understood["time_column"] is None:
        return f"every {understood['times']}"
    return f"{_column(understood['time_column'])} in {understood['times']}"


def _understood(found: dict[str, Any]) -> str:
    """How a file was understood, in a line."""
    kind = f"{found['format']}, {found['encoding']}"
    if found["separator"] is None:
        return kind
    rates = f"{_column(found['rate_column'])} in {found['unit']}"
    return f"{kind}, separator {found['separator']}; times: {_times(found)}; rates: {rates}"


def _first_rows(rows: list[dict[str, Any]]) -> str:
    def row(found: dict[str, Any]) -> str:
        rate = "a packet" if found["rate_bps"] is None else _rate(found["rate_bps"])
        read = f"{found['time_s']:g} s: {rate}"
        written = " ".join(text for text in (found["time"], found["rate"]) if text)
        return f"{read} (from {written})" if written else read

    return "; ".join(row(found) for found in rows)


def _rate(bps: float) -> str:
    for unit, size in (("Gb/s", 1e9), ("Mb/s", 1e6), ("kb/s", 1e3)):
        if bps >= size:
            return f"{bps / size:.4g} {unit}"
    return f"{bps:.4g} b/s"


def _table(found: dict[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    table.add_column("what", style="cyan", no_wrap=True)
    table.add_column("value", overflow="fold")

    understood = found["understood"]
    table.add_row("format", f"{understood['format']}, {understood['encoding']}")
    if understood["separator"] is not None:
        decimal = ", decimal comma" if understood["decimal"] == "," else ""
        heading = f", heading in line {understood['heading_line']}" if understood["heading_line"] else ", no heading"
        table.add_row("separator", understood["separator"] + decimal + heading)
        table.add_row("times", _times(understood))
        table.add_row("rates", f"{_column(understood['rate_column'])} in {understood['unit']}")
    table.add_row("first rows", _first_rows(understood["first_rows"]))
    table.add_row("span", f"{found['duration_s']:.12g} s")
    if understood["separator"] is not None:
        table.add_row("step", f"{understood['step_s']:.12g} s (median), {understood['rows']} rows")
        table.add_row("gaps", _gaps(understood["gaps"]))
    table.add_row("mean", _rate(found["mean_bps"]))
    table.add_row("zero", f"{100 * found['zero_share']:.2f} % of the time")
    table.add_row("median", _rate(found["median_bps"]))
    quantiles = (f"{int(name[1:])} %: {_rate(bps)}" for name, bps in found["percentiles_bps"].items())
    table.add_row("percentiles", ", ".join(quantiles))
    table.add_row("coefficient of variation", f"{found['coefficient_of_variation']:.3f}")
    lags = (f"{r:.3f} at {lag} s" for lag, r in sorted(found["autocorrelation"].items(), key=lambda item: int(item[0])))
    table.add_row("autocorrelation", ", ".join(lags) or "unknown: too short, or it never varies")
    share = f"{100 * found['outage_share']:.2f} % of the time below {_rate(found['outage_threshold_bps'])}"
    lengths = (
        f", {found['outages']} of them, {found['mean_outage_s']:.3g} s on average, "
        f"{found['longest_outage_s']} s the longest"
    )
    table.add_row("outages", share + (lengths if found["outages"] else ""))
    if latency := found["latency_s"]:
        low, high = (1e3 * latency[key] for key in ("min", "max"))
        table.add_row("latency", f"{1e3 * latency['mean']:.4g} ms on average, {low:.4g} to {high:.4g} ms")
    return table


def _gaps(found: dict[str, Any] | None) -> str:
    if found is None:
        return "none"
    return f"{found['count']}, the longest of {found['longest_s']:.12g} s after line {found['after_line']}"


def sparkline(samples: Sequence[float], most: int = _MOST_BLOCKS) -> str:
    """Samples as a line of blocks, from zero to the highest; neighbours are averaged where there are more than fit."""
    bins = min(most, len(samples))
    edges = [round(i * len(samples) / bins) for i in range(bins + 1)]
    means = [sum(samples[a:b]) / (b - a) for a, b in itertools.pairwise(edges)]
    top = max(means) or 1.0
    return "".join(_BLOCKS[min(int(mean / top * len(_BLOCKS)), len(_BLOCKS) - 1)] for mean in means)
