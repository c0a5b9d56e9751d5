"""Which program made a run: the source's revision and the built library."""

from __future__ import annotations

import hashlib
import subprocess
from functools import cache
from pathlib import Path

from anabranch import _core

# A revision is asked for from a repository on this disk.
_GIT_TIMEOUT_S = 10


@cache
def library_sha256() -> str:
    """The digest of the compiled part, which decides every number of a simulation."""
    with Path(str(_core.__file__)).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def build() -> dict[str, str]:
    """What decides the results of a run. Those of two builds are never mixed."""
    return {"version": _core.__version__, "library_sha256": library_sha256()}


@cache
def source_revision() -> str | None:
    """The commit of the sources that the package is used from, with ``-modified`` where files differ from it.

    ``None`` where the package is installed without its repository, or git does not answer.
    """
    root = Path(__file__).resolve().parents[3]
    # An environment may lie in another project's repository.
    if not ((root / ".git").exists() and (root / "crates" / "python").is_dir()):
        return None
    commit = _git(root, "rev-parse", "HEAD")
    changes = _git(root, "status", "--porcelain", "--untracked-files=no")
    if not commit or changes is None:
        return None
    return f"{commit}-modified" if changes else commit


def _git(root: Path, *arguments: str) -> str | None:
    """What git prints; ``None`` if it fails or is missing."""
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, timeout=_GIT_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
