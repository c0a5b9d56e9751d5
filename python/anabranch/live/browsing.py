"""The real dash.js in the comparison with the kernel: the video that it plays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from anabranch import content
from anabranch.live.run import clients

Progress = Callable[[float], object]

# Few and small pictures, so that a browser decodes them in passing; rates around what the test cases' links carry.
_RATES_BPS = (300_000, 600_000, 1_200_000, 2_400_000)
_PICTURES = ((320, 180), (480, 270), (640, 360), (640, 360))
_SEGMENT_S = 2.0
_DURATION_S = 60.0


def video(progress: Progress) -> Path:
    """The folder with the video of the test cases for a browser, encoded the first time.

    Args:
        progress: Called with the fraction that is encoded.

    Raises:
        ToolError: ffmpeg is missing or failed.
    """
    ladder = content.ladder(_RATES_BPS, segment_s=_SEGMENT_S, duration_s=_DURATION_S, resolutions=_PICTURES)
    return content.cached(ladder, progress)


def prepare() -> None:
    """Fetches the real dash.js, and looks for what it needs.

    Raises:
        ToolError: Chromium, npm or mptcpize is missing.
    """
    clients()["dash.js"].prepare()
