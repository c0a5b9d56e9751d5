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

from anabranch import _core
from anabranch.cli.console import answer, err, out
from anabranch.errors import InputError
from anabranch.system import outputs

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
_Unit = Annotated[
    str | None,
    typer.Option("--unit", metavar="UNIT", help="Of a table's rates: b/s, kb/s, Mb/s or B/s; that of its heading."),
]
_Column = Annotated[
    int | None, typer.Option("--column", metavar="N", min=1, help="Of a table's rates, counted from 0; 1 where absent.")
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
    unit: _Unit = None,
    column: _Column = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")] = False,
) -> None:
    """Print what characterises a trace: its mean rate, its variation and autocorrelation, its outages.

    All but the mean is computed from the mean rates of whole seconds. In an outage the rate is below 5 % of the mean.
    """
    text, samples = _core.trace_info(_read(file), name=str(file), file_format=form, unit=unit, column=column)
    if as_json:
        print(text)
        return
    answer(_table(json.loads(text)))
    if out().is_terminal:
        answer(f"\n{sparkline(samples.tolist())}")


@app.command("convert", epilog="Example: anabranch trace convert lte.down lte.csv --step '100 ms' --offset '30 s'")
def convert(
    file: _File,
    target: _Out,
    form: _Format = None,
    unit: _Unit = None,
    column: _Column = None,
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
    text = _core.trace_convert(
        _read(file),
        name=str(file),
        file_format=form,
        unit=unit,
        column=column,
        scale=scale,
        offset=offset,
        duration=duration,
        target=str(target),
        target_format=target_format,
        step=step,
    )
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
        return file.read_bytes()
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}") from error


def _write(target: Path, text: str) -> None:
    if target == _STDOUT:
        sys.stdout.write(text)
        return
    with outputs.writing(target):
        target.write_text(text, encoding="utf-8", newline="\n")
    err().print(f"trace: {target}", soft_wrap=True)


def _rate(bps: float) -> str:
    for unit, size in (("Gb/s", 1e9), ("Mb/s", 1e6), ("kb/s", 1e3)):
        if bps >= size:
            return f"{bps / size:.4g} {unit}"
    return f"{bps:.4g} b/s"


def _table(found: dict[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    table.add_column("what", style="cyan", no_wrap=True)
    table.add_column("value", overflow="fold")
    column = f", column {found['column']} in {found['unit']}" if found["unit"] else ""
    table.add_row("format", found["format"] + column)
    table.add_row("duration", f"{found['duration_s']:g} s")
    table.add_row("mean", _rate(found["mean_bps"]))
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


def sparkline(samples: Sequence[float], most: int = _MOST_BLOCKS) -> str:
    """Samples as a line of blocks, from zero to the highest; neighbours are averaged where there are more than fit."""
    bins = min(most, len(samples))
    edges = [round(i * len(samples) / bins) for i in range(bins + 1)]
    means = [sum(samples[a:b]) / (b - a) for a, b in itertools.pairwise(edges)]
    top = max(means) or 1.0
    return "".join(_BLOCKS[min(int(mean / top * len(_BLOCKS)), len(_BLOCKS) - 1)] for mean in means)
