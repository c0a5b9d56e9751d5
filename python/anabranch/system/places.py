"""Where things are kept."""

from __future__ import annotations

import os
from pathlib import Path


def cache() -> Path:
    """The folder for what can be made or fetched again, made if need be: below ``XDG_CACHE_HOME`` or ``~/.cache``."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "anabranch"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
