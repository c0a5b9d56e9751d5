"""Encoding what was planned into a folder that a server can serve."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path

from anabranch.content import ffmpeg, manifest
from anabranch.content.plan import Film, Ladder, Rendition
from anabranch.errors import InputError
from anabranch.system import places

TOLERANCE = 0.10
"""A measured rate may be off its target by this part; beyond, the encoder gets one other aim, then a message."""

MANIFEST = "manifest.mpd"
ABOUT = "content.json"

Progress = Callable[[float], object]


@dataclass(frozen=True)
class Measured:
    """What became of a rendition.

    Attributes:
        rendition: What was asked for.
        file: The file, or the MPD, below the folder.
        rate_bps: Its rate: bytes of the media over playing time, bit/s.
    """

    rendition: Rendition
    file: str
    rate_bps: float

    @property
    def deviation(self) -> float:
        """How far the rate is from its target, as a part of the target."""
        return self.rate_bps / self.rendition.rate_bps - 1

    @property
    def is_off(self) -> bool:
        """Whether that is more than `TOLERANCE`."""
        return abs(self.deviation) > TOLERANCE


@dataclass(frozen=True)
class Made:
    """A folder of content.

    Attributes:
        directory: The folder.
        renditions: What is in it.
    """

    directory: Path
    renditions: tuple[Measured, ...]


def make(plans: list[Ladder | Film], directory: Path, progress: Progress = lambda _fraction: None) -> Made:
    """Encodes videos into a new folder, which appears when everything in it is complete.

    Args:
        plans: A ladder, a film, or both.
        directory: The folder; it must not exist, or be empty.
        progress: Called with the fraction that is done.

    Raises:
        InputError: There is something in the folder.
        ToolError: ffmpeg is missing or failed.
        OSError: The folder cannot be written.
    """
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise InputError(f"{directory}: there is something already; expected a folder that does not exist")
    directory.absolute().parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{directory.name}-", dir=directory.absolute().parent))
    try:
        work = sum(_work(plan) for plan in plans)
        done = 0.0
        found: list[Measured] = []
        for plan in plans:
            share = _work(plan) / work
            report = _part_of(progress, done, share)
            found += _ladder(plan, partial, report) if isinstance(plan, Ladder) else _film(plan, partial, report)
            done += share
        _describe(plans, found, partial / ABOUT)
        # Temporary folders are private; a server may run as another user.
        partial.chmod(0o755)
        partial.replace(directory)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return Made(directory, tuple(found))


def cached(plan: Ladder | Film, progress: Progress = lambda _fraction: None) -> Path:
    """The folder with this video, encoded the first time and kept; errors as those of `make`."""
    digest = hashlib.sha256(repr(plan).encode()).hexdigest()[:16]
    folder = places.cache() / f"content-{digest}"
    if not folder.is_dir():
        try:
            make([plan], folder, progress)
        except (InputError, OSError):
            # Another process may have made it meanwhile.
            if not folder.is_dir():
                raise
    return folder


def _work(plan: Ladder | Film) -> float:
    """How much there is to encode, in pixels per picture and second of playing time."""
    renditions = plan.renditions if isinstance(plan, Ladder) else (plan.rendition,)
    return sum(_pixels(one) for one in renditions) * plan.duration_s


def _pixels(rendition: Rendition) -> int:
    return rendition.width * rendition.height


def _part_of(progress: Progress, done: float, share: float) -> Progress:
    return lambda fraction: progress(done + share * fraction)


def _to_target(
    rendition: Rendition, plan: Ladder | Film, key_interval: int, shape: Fraction, target: Path, progress: Progress
) -> float:
    """Encodes; once more with another aim if the rate is too far from the target. Returns the rate."""
    aim = rendition.rate_bps
    measured = 0.0
    for _ in range(2):
        ffmpeg.encode(
            rendition,
            rate_bps=aim,
            duration_s=plan.duration_s,
            fps=plan.fps,
            key_interval=key_interval,
            shape=shape,
            target=target,
            progress=progress,
        )
        measured = target.stat().st_size * 8 / plan.duration_s
        if not Measured(rendition, target.name, measured).is_off:
            break
        aim = max(1, round(aim * rendition.rate_bps / measured))
    return measured


def _film(plan: Film, directory: Path, progress: Progress) -> list[Measured]:
    target = directory / f"film.{plan.container}"
    rendition = plan.rendition
    shape = Fraction(rendition.width, rendition.height)
    # A key picture every two seconds, as is usual: nothing here seeks.
    rate = _to_target(rendition, plan, round(2 * plan.fps), shape, target, progress)
    return [Measured(rendition, target.name, rate)]


def _ladder(plan: Ladder, directory: Path, progress: Progress) -> list[Measured]:
    """Encodes every rendition, and lets ffmpeg cut them into media segments."""
    largest = max(plan.renditions, key=_pixels)
    shape = Fraction(largest.width, largest.height)
    work = sum(_pixels(one) for one in plan.renditions)
    done = 0.0
    encoded = []
    for rank, rendition in enumerate(plan.renditions):
        share = _pixels(rendition) / work
        encoded.append(directory / f"encoded-{rank}.mp4")
        report = _part_of(progress, done, share)
        _to_target(rendition, plan, plan.pictures_per_segment, shape, encoded[-1], report)
        done += share
    inputs = [word for file in encoded for word in ("-i", file.name)]
    maps = [word for rank in range(len(encoded)) for word in ("-map", f"{rank}:v")]
    dash = ["-f", "dash", "-seg_duration", f"{plan.segment_s:.6f}", "-use_template", "1", "-use_timeline", "0"]
    names = ["-init_seg_name", manifest.INIT_NAME, "-media_seg_name", manifest.MEDIA_NAME]
    sets = ["-adaptation_sets", "id=0,streams=v", MANIFEST]
    ffmpeg.run([*inputs, *maps, "-c", "copy", *dash, *names, *sets], directory=directory)
    for file in encoded:
        file.unlink()
    sizes = manifest.finish(directory / MANIFEST, [one.rate_bps for one in plan.renditions])
    rates = [sum(row) * 8 / plan.duration_s for row in sizes]
    return [Measured(one, MANIFEST, rate) for one, rate in zip(plan.renditions, rates, strict=True)]


def _describe(plans: list[Ladder | Film], found: list[Measured], file: Path) -> None:
    about = {
        "made": [{"kind": type(plan).__name__.lower(), "duration_s": plan.duration_s} for plan in plans],
        "renditions": [{**asdict(one.rendition), "file": one.file, "measured_bps": one.rate_bps} for one in found],
    }
    text = json.dumps(about, indent=2) + os.linesep
    file.write_text(text, encoding="utf-8")
