"""Programs of others."""

from __future__ import annotations

import shutil


class ToolError(Exception):
    """A program is missing or failed; the message says which and what to do."""


def find(program: str, package: str) -> str:
    """The path of a program.

    Raises:
        ToolError: It is not installed; the message names Debian's package.
    """
    path = shutil.which(program)
    if path is None:
        raise ToolError(f"{program} is missing; on Debian and Ubuntu: apt install {package}")
    return path
