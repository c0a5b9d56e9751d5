#!/usr/bin/env python3
"""Makes this environment find the package in python/, and its command, as an editable installation does.

    python scripts/link-package.py target/debug

For the tests, whose compiled part comes from that folder, the build of Rust's tests. An installation writes the same
files.
"""

from __future__ import annotations

import shutil
import sys
import sysconfig
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[1] / "python"
COMPILED = SOURCES / "anabranch" / "_core.abi3.so"
COMMAND = """\
#!{python}
import sys

from anabranch.cli import main

sys.exit(main())
"""


def main() -> None:
    """Copies the compiled part, and writes the two files."""
    built = Path(sys.argv[1])
    if sys.prefix == sys.base_prefix:
        sys.exit("error: this is no virtual environment; nothing outside one is changed")
    libraries = [file for ending in ("so", "dylib") if (file := built / f"lib_core.{ending}").exists()]
    if not libraries:
        sys.exit(f"error: {built} has no compiled part; `make` builds it first")
    # In one step: a process that has the old one loaded keeps it.
    shutil.copy(libraries[0], new := COMPILED.with_suffix(".so.new"))
    new.replace(COMPILED)
    (Path(sysconfig.get_path("purelib")) / "anabranch.pth").write_text(f"{SOURCES}\n", encoding="utf-8")
    command = Path(sysconfig.get_path("scripts")) / "anabranch"
    command.write_text(COMMAND.format(python=sys.executable), encoding="utf-8")
    command.chmod(0o755)


if __name__ == "__main__":
    main()
