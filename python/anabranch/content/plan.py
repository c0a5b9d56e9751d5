"""What is to be encoded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from itertools import pairwise

from anabranch import _core
from anabranch.errors import InputError

FPS = Fraction(24)
"""Pictures per second by default: those of Big Buck Bunny, and the default of progressive videos."""

_SIZES = ((0, 426, 240), (400_000, 640, 360), (800_000, 854, 480), (1_500_000, 1280, 720), (4_000_000, 1920, 1080))
"""Which pictures a rate (bit/s) gets by default: sizes and rates that streaming services commonly pair."""


class Container(StrEnum):
    """How a progressive file is wrapped."""

    MP4 = "mp4"
    TS = "ts"


@dataclass(frozen=True)
class Rendition:
    """One encoding.

    Attributes:
        rate_bps: Target rate of the video, bit/s.
        width: Pixels in a line; even.
        height: Lines; even.
    """

    rate_bps: int
    width: int
    height: int


@dataclass(frozen=True)
class Ladder:
    """A DASH video.

    Attributes:
        renditions: By their rates.
        segment_s: Playing time of a media segment; a whole number of pictures.
        duration_s: Playing time.
        fps: Pictures per second.
    """

    renditions: tuple[Rendition, ...]
    segment_s: float
    duration_s: float
    fps: Fraction = FPS

    @property
    def pictures_per_segment(self) -> int:
        """Pictures of a media segment."""
        return round(self.segment_s * self.fps)


@dataclass(frozen=True)
class Film:
    """A progressive video: one file that is played while it is fetched.

    Attributes:
        rendition: Its rate and its pictures.
        duration_s: Playing time.
        fps: Pictures per second.
        container: How it is wrapped.
    """

    rendition: Rendition
    duration_s: float
    fps: Fraction = FPS
    container: Container = Container.MP4


def ladder(
    rates_bps: Sequence[int],
    *,
    segment_s: float,
    duration_s: float,
    resolutions: Sequence[tuple[int, int] | None] | None = None,
    fps: Fraction = FPS,
) -> Ladder:
    """Checks a DASH video.

    Args:
        rates_bps: Target rates, bit/s, rising.
        segment_s: Playing time of a media segment.
        duration_s: Playing time of the video.
        resolutions: Width and height for each rate; what suits the rate where absent.
        fps: Pictures per second.

    Raises:
        InputError: It cannot be made.
    """
    if not rates_bps or any(low >= high for low, high in pairwise(rates_bps)):
        raise InputError('--rates: expected rising rates, such as "500 kb/s, 1 Mb/s, 2 Mb/s"')
    sizes = [None] * len(rates_bps) if resolutions is None else list(resolutions)
    if len(sizes) != len(rates_bps):
        raise InputError(f"--resolutions: {len(sizes)} of them for {len(rates_bps)} rates; expected one for each")
    planned = Ladder(
        renditions=tuple(_rendition(rate, size) for rate, size in zip(rates_bps, sizes, strict=True)),
        segment_s=segment_s,
        duration_s=_playable(duration_s),
        fps=fps,
    )
    if planned.pictures_per_segment < 1 or abs(planned.pictures_per_segment / fps - segment_s) > 1e-6:
        raise InputError(f"--segment {segment_s} s: expected a whole number of pictures at {fps} per second")
    return planned


def film(
    rate_bps: int,
    *,
    duration_s: float,
    resolution: tuple[int, int] | None = None,
    fps: Fraction = FPS,
    container: Container = Container.MP4,
) -> Film:
    """Checks a progressive video; arguments and errors as those of `ladder`."""
    return Film(_rendition(rate_bps, resolution), _playable(duration_s), fps, container)


def of_scenario(scenario: _core.Scenario, duration_s: float | None) -> Ladder | Film:
    """What the first session of a scenario watches.

    Args:
        scenario: The scenario.
        duration_s: Playing time, where it is not the scenario's.

    Raises:
        InputError: It watches no video.
    """
    for video in scenario.videos():
        length = video.get("duration_s", 0.0) if duration_s is None else duration_s
        if video["kind"] == "dash":
            rates, sizes = zip(*video["representations"], strict=True)
            return ladder(rates, segment_s=video["segment_s"], duration_s=length, resolutions=sizes)
        if video["kind"] == "progressive":
            return film(video["rate_bps"], duration_s=length, fps=Fraction(*video["fps"]))
    raise InputError(f"{scenario.name}: no session watches a video; expected a scenario with one, such as sticky/base")


def _rendition(rate_bps: int, size: tuple[int, int] | None) -> Rendition:
    if rate_bps < 1:
        raise InputError(f"a rate of {rate_bps} b/s: expected more than nothing")
    if size is None:
        size = next((width, height) for least, width, height in reversed(_SIZES) if rate_bps >= least)
    width, height = size
    # H.264 with one colour sample for four pixels has no odd sizes, and 16 is the side of a macroblock.
    if any(side < 16 or side > 8192 or side % 2 for side in size):
        raise InputError(f"{width}x{height}: expected even numbers of pixels from 16 to 8192, such as 640x360")
    return Rendition(rate_bps, width, height)


def _playable(duration_s: float) -> float:
    if not 0.1 <= duration_s <= 86_400:
        raise InputError(f"a video of {duration_s:g} s: expected 0.1 s to 24 h")
    return duration_s
