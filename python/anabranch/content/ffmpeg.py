"""Calling ffmpeg."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path

from anabranch.content.plan import Rendition
from anabranch.system.programs import ToolError, find

# The fastest of x264: the look of the pictures does not matter, their rate does, and encodes shall be short.
_PRESET = "ultrafast"
# Deviation of the noise on every sample, of 255. Without it the pictures are too simple for high rates (6 Mb/s at
# 640x360 stayed at three quarters), and with it the lowest rates of the shipped ladders are still reached.
_NOISE = 12
# How far the rate may run ahead, in seconds of it: a second, as streaming encoders are usually set.
_VBV_S = 1.0

Progress = Callable[[float], object]


def encode(
    rendition: Rendition,
    *,
    rate_bps: int,
    duration_s: float,
    fps: Fraction,
    key_interval: int,
    shape: Fraction,
    target: Path,
    progress: Progress,
) -> None:
    """Encodes a synthetic picture with x264.

    Args:
        rendition: Which pictures.
        rate_bps: The target of the encoder, bit/s.
        duration_s: Playing time.
        fps: Pictures per second.
        key_interval: Pictures from one key picture to the next.
        shape: Width over height as seen, whatever the numbers of pixels are.
        target: The file; the ending of its name selects the container.
        progress: Called with the fraction that is done.

    Raises:
        ToolError: ffmpeg is missing or failed.
    """
    size = f"{rendition.width}x{rendition.height}"
    source = f"testsrc2=size={size}:rate={fps},noise=alls={_NOISE}:allf=t,setdar={shape.numerator}/{shape.denominator}"
    coder = ["-c:v", "libx264", "-preset", _PRESET, "-pix_fmt", "yuv420p"]
    rate = ["-b:v", str(rate_bps), "-maxrate", str(rate_bps), "-bufsize", str(round(_VBV_S * rate_bps))]
    # Key pictures in those places and no others, so that media segments are equally long in every representation.
    keys = ["-g", str(key_interval), "-keyint_min", str(key_interval), "-sc_threshold", "0"]
    container = ["-movflags", "+faststart"] if target.suffix == ".mp4" else []
    arguments = ["-f", "lavfi", "-i", source, "-t", f"{duration_s:.6f}", *coder, *rate, *keys, *container, str(target)]
    run(arguments, duration_s=duration_s, progress=progress)


def run(
    arguments: Sequence[str],
    *,
    duration_s: float = 0.0,
    progress: Progress | None = None,
    directory: Path | None = None,
) -> None:
    """Runs ffmpeg; ends it if anything is raised meanwhile.

    Args:
        arguments: Those after the general ones.
        duration_s: Playing time that counts as all of it.
        progress: Called with the fraction that is done.
        directory: Where it runs.

    Raises:
        ToolError: It is missing or failed.
    """
    general = ["-hide_banner", "-loglevel", "error", "-nostdin", "-y", "-progress", "pipe:1"]
    command = [find("ffmpeg", "ffmpeg"), *general, *arguments]
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=directory)
        assert process.stdout is not None
        try:
            for fraction in _fractions(process.stdout, duration_s):
                if progress is not None:
                    progress(fraction)
            code = process.wait()
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
        if code != 0:
            errors.seek(0)
            raise ToolError(f"ffmpeg failed: {errors.read().strip() or f'exit code {code}'}")


def _fractions(lines: Iterable[str], duration_s: float) -> Iterator[float]:
    """What ffmpeg reports as done, between 0 and 1."""
    for line in lines:
        key, _, value = line.strip().partition("=")
        if key == "out_time_us" and value.isdigit():
            yield min(int(value) / 1e6 / duration_s, 1.0) if duration_s else 0.0
