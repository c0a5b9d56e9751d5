#!/usr/bin/env python3
"""Makes this environment find the package in python/, and its command, as an editable installation does.

For the tests, whose compiled part `make` takes from the build of Rust's tests. An installation writes the same files.
"""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[1] / "python"
COMMAND = """\
#!{python}
import sys

from anabranch.cli import main

sys.exit(main())
"""


def main() -> None:
    """Writes the two files."""
    if sys.prefix == sys.base_prefix:
        sys.exit("error: this is no virtual environment; nothing outside one is changed")
    (Path(sysconfig.get_path("purelib")) / "anabranch.pth").write_text(f"{SOURCES}\n", encoding="utf-8")
    command = Path(sysconfig.get_path("scripts")) / "anabranch"
    command.write_text(COMMAND.format(python=sys.executable), encoding="utf-8")
    command.chmod(0o755)


if __name__ == "__main__":
    main()
