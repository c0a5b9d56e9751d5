"""The real curl, which downloads."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from anabranch.system.programs import ToolError, find

_ASK_EVERY_S = 0.1
_STOP_TIMEOUT_S = 5.0
# curl ends with this code when --max-time is over.
_TIMED_OUT = 28


@dataclass(frozen=True)
class Download:
    """What curl reports.

    Attributes:
        over: Whether everything was fetched.
        said: curl's own numbers (``--write-out '%{json}'``).
    """

    over: bool
    said: dict[str, Any]


def fetch(url: str, *, before: Sequence[str], limit_s: float, progress: Callable[[float], object]) -> Download:
    """Downloads and throws away.

    Args:
        url: What.
        before: The command that runs curl where it should run.
        limit_s: The download is cut off after this time.
        progress: Called with the fraction of that time that has passed.

    Raises:
        ToolError: curl is missing, or could not download.
    """
    find("curl", "curl")
    options = (
        "--silent",
        "--show-error",
        "--output",
        "/dev/null",
        "--max-time",
        f"{limit_s:.3f}",
        "--write-out",
        "%{json}",
    )
    command = [*before, "curl", *options, url]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    waited = 0.0
    try:
        while True:
            try:
                out, complaint = process.communicate(timeout=_ASK_EVERY_S)
                break
            except subprocess.TimeoutExpired:
                waited += _ASK_EVERY_S
                progress(min(waited / limit_s, 1.0))
    except BaseException:
        process.terminate()
        process.wait(_STOP_TIMEOUT_S)
        raise
    if process.returncode not in (0, _TIMED_OUT):
        raise ToolError(f"curl could not download {url}: {complaint.strip()}")
    return Download(process.returncode == 0, json.loads(out) if out else {})
