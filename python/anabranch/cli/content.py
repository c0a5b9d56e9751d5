"""`anabranch content make`: real video for live runs."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from anabranch import _core, content
from anabranch.cli.console import Exit, answer, err, fail, out, progress_bar
from anabranch.errors import InputError
from anabranch.runs.reading import load

EXAMPLES = (
    'Example: anabranch content make --scenario dash/ratio-1-1 --duration "60 s" --out ladder\n\n'
    'Or: anabranch content make --rates "500 kb/s, 1 Mb/s, 2 Mb/s" --segment "2 s" --duration "60 s" --out ladder\n\n'
    'Or: anabranch content make --progressive mp4 --rate "2 Mb/s" --duration "60 s" --out film\n\n'
    "The folder holds manifest.mpd with its media segments, film.mp4 or film.ts, and content.json, which describes "
    "them."
)

app = typer.Typer(
    help="Make real video for live runs.",
    epilog='Example: anabranch content make --scenario dash/ratio-1-1 --duration "60 s" --out ladder',
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_DEFAULT_SEGMENT = "2 s"
_DEFAULT_DURATION = "60 s"


_Directory = Annotated[
    Path, typer.Option("--out", metavar="DIR", help="The folder to make; it must not exist.", show_default=False)
]
_Scenario = Annotated[
    str | None,
    typer.Option(
        "--scenario", metavar="SCENARIO", help="Make the video of this scenario's first session.", show_default=False
    ),
]
_Duration = Annotated[
    str | None,
    typer.Option(metavar="TIME", help=f"Playing time; the scenario's, or {_DEFAULT_DURATION}.", show_default=False),
]
_Rates = Annotated[
    str | None, typer.Option(metavar="RATES", help='DASH: rates, such as "500 kb/s, 1 Mb/s".', show_default=False)
]
_Segment = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help=f"DASH: a media segment; the scenario's, or {_DEFAULT_SEGMENT}.", show_default=False
    ),
]
_Resolutions = Annotated[
    str | None,
    typer.Option(
        metavar="SIZES",
        help='Sizes of the pictures, such as "640x360, 1280x720", or one for all; what suits the rates.',
        show_default=False,
    ),
]
_Progressive = Annotated[
    content.Container | None,
    typer.Option(help="Make one file that is played while it is fetched, too: MP4 or an MPEG-TS.", show_default=False),
]
_Rate = Annotated[
    str | None, typer.Option(metavar="RATE", help="Progressive: its rate; the scenario's.", show_default=False)
]
_Fps = Annotated[
    str | None, typer.Option(metavar="N", help="Pictures per second; the scenario's, or 24.", show_default=False)
]


@app.command("make", epilog=EXAMPLES)
def make(
    directory: _Directory,
    scenario: _Scenario = None,
    duration: _Duration = None,
    rates: _Rates = None,
    segment: _Segment = None,
    resolutions: _Resolutions = None,
    progressive: _Progressive = None,
    rate: _Rate = None,
    fps: _Fps = None,
) -> None:
    """Encode a DASH ladder, a progressive file, or both, with ffmpeg.

    The pictures are synthetic, with so much noise that the encoder reaches the rates.
    """
    wanted = _Wanted(
        scenario=None if scenario is None else load(scenario),
        duration_s=_time(duration, "--duration"),
        segment_s=_time(segment, "--segment"),
        rates=None if rates is None else [_rate(text, "--rates") for text in rates.split(",")],
        sizes=None if resolutions is None else [_size(text) for text in resolutions.split(",")],
        container=progressive,
        rate=None if rate is None else _rate(rate, "--rate"),
        fps=None if fps is None else _fps(fps),
    )
    plans = wanted.plans()
    try:
        with progress_bar(f"encoding {directory}") as progress:
            made = content.make(plans, directory, progress)
    except KeyboardInterrupt:
        fail("interrupted", Exit.INTERRUPTED)
    _tell(made)


class _Wanted:
    """What the options ask for, together with the scenario."""

    def __init__(
        self,
        *,
        scenario: _core.Scenario | None,
        duration_s: float | None,
        segment_s: float | None,
        rates: list[int] | None,
        sizes: list[tuple[int, int]] | None,
        container: content.Container | None,
        rate: int | None,
        fps: Fraction | None,
    ) -> None:
        self._model = None if scenario is None else content.of_scenario(scenario, duration_s)
        given = _core.time_s(_DEFAULT_DURATION) if duration_s is None else duration_s
        self._duration_s = given if self._model is None else self._model.duration_s
        self._segment_s, self._rates, self._sizes = segment_s, rates, sizes
        self._container, self._rate, self._fps = container, rate, fps

    def plans(self) -> list[content.Ladder | content.Film]:
        plans = [plan for plan in (self._ladder(), self._film()) if plan is not None]
        if not plans:
            raise InputError("nothing to make: expected --scenario, --rates, or --progressive with --rate")
        return plans

    def _ladder(self) -> content.Ladder | None:
        model = self._model if isinstance(self._model, content.Ladder) else None
        if model is None and self._rates is None:
            return None
        rates, sizes = self._rates, None
        if rates is None and model is not None:
            rates = [one.rate_bps for one in model.renditions]
            sizes = [(one.width, one.height) for one in model.renditions]
        assert rates is not None
        segment = self._segment_s
        if segment is None:
            segment = _core.time_s(_DEFAULT_SEGMENT) if model is None else model.segment_s
        chosen = self._sizes * len(rates) if self._sizes is not None and len(self._sizes) == 1 else self._sizes
        return content.ladder(
            rates,
            segment_s=segment,
            duration_s=self._duration_s,
            resolutions=sizes if chosen is None else chosen,
            fps=content.FPS if self._fps is None else self._fps,
        )

    def _film(self) -> content.Film | None:
        model = self._model if isinstance(self._model, content.Film) else None
        if model is None and self._container is None:
            if self._rate is not None:
                raise InputError("--rate: expected --progressive mp4 or --progressive ts with it, or --rates for DASH")
            return None
        rate = self._rate if model is None or self._rate is not None else model.rendition.rate_bps
        if rate is None:
            raise InputError('--progressive: expected --rate with it, such as --rate "2 Mb/s"')
        return content.film(
            rate,
            duration_s=self._duration_s,
            resolution=None if self._sizes is None else self._sizes[-1],
            fps=self._fps or (content.FPS if model is None else model.fps),
            container=self._container or content.Container.MP4,
        )


def _time(text: str | None, option: str) -> float | None:
    try:
        return None if text is None else _core.time_s(text)
    except InputError as error:
        raise InputError(f"{option}: {error}") from error


def _rate(text: str, option: str) -> int:
    try:
        return _core.rate_bps(text.strip())
    except InputError as error:
        raise InputError(f"{option}: {error}") from error


def _size(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"\s*(\d{1,5})x(\d{1,5})\s*", text)
    if not found:
        raise InputError(f"--resolutions: {text.strip()!r}; expected width and height such as 1280x720")
    return int(found[1]), int(found[2])


def _fps(text: str) -> Fraction:
    try:
        fps = Fraction(text)
    except (ValueError, ZeroDivisionError):
        fps = Fraction(0)
    if not 1 <= fps <= 240:
        raise InputError(f"--fps {text}: expected pictures per second from 1 to 240, such as 25 or 24000/1001")
    return fps


def _tell(made: content.Made) -> None:
    table = Table(box=None, pad_edge=False)
    for title in ("pictures", "target", "measured", "deviation"):
        table.add_column(title, justify="right")
    table.add_column("file")
    for one in made.renditions:
        rendition = one.rendition
        table.add_row(
            f"{rendition.width}x{rendition.height}",
            f"{rendition.rate_bps / 1e3:.0f} kb/s",
            f"{one.rate_bps / 1e3:.0f} kb/s",
            Text(f"{one.deviation:+.1%}", style="bold yellow" if one.is_off else ""),
            one.file,
        )
    answer(table)
    for one in made.renditions:
        if one.is_off:
            asked = f"{one.rendition.rate_bps / 1e3:.0f} kb/s at {one.rendition.width}x{one.rendition.height}"
            err().print(Text(f"{asked} was not reached: {one.rate_bps / 1e3:.0f} kb/s.", style="bold yellow"))
    out().print(f"\ncontent: {made.directory}", soft_wrap=True)
