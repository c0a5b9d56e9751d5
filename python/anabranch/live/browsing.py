"""The real dash.js as a witness of `anabranch validate`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from anabranch import _core, content
from anabranch.content.make import MANIFEST
from anabranch.live.run import clients, run

Progress = Callable[[float], object]
Witness = Callable[[str, str, int, Callable[[], bool]], _core.Outcome]
"""Who plays the test cases for a browser; see :func:`anabranch._core.validate`."""

# Few and small pictures, so that a browser decodes them in passing; rates around what the test cases' links carry.
_RATES_BPS = (300_000, 600_000, 1_200_000, 2_400_000)
_PICTURES = ((320, 180), (480, 270), (640, 360), (640, 360))
_SEGMENT_S = 2.0
_DURATION_S = 60.0


class UnwantedError(Exception):
    """Whoever asked for a run does not want it any more."""


def video(progress: Progress) -> Path:
    """The folder with the video of the test cases for a browser, encoded the first time.

    Args:
        progress: Called with the fraction that is encoded.

    Raises:
        ToolError: ffmpeg is missing or failed.
    """
    ladder = content.ladder(_RATES_BPS, segment_s=_SEGMENT_S, duration_s=_DURATION_S, resolutions=_PICTURES)
    return content.cached(ladder, progress)


def witness(ladder: Path) -> Witness:
    """The real dash.js in Chromium.

    Args:
        ladder: The folder with the video.

    Raises:
        ToolError: Chromium, npm or mptcpize is missing.
    """
    clients()["dash.js"].prepare()

    def play(scenario: str, server: str, seed: int, wanted: Callable[[], bool]) -> _core.Outcome:
        def check(_fraction: float) -> None:
            if not wanted():
                raise UnwantedError

        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            # A scenario names files relative to itself.
            (folder / MANIFEST).symlink_to(ladder / MANIFEST)
            file = folder / "test-case.toml"
            file.write_text(scenario, encoding="utf-8")
            done = run(file, folder=folder, seed=seed, server=server, client="dash.js", content=ladder, progress=check)
            return done.outcome

    return play
