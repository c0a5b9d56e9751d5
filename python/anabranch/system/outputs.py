"""Where results go: whether a place can be written, before the work and while it is written."""

from __future__ import annotations

import errno
import os
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def check_folder(folder: Path) -> None:
    """Refuses a folder that could not be made or written. Nothing is left behind.

    A run may take minutes, and this is known before it.

    Raises:
        OSError: It cannot; the message names what is in the way.
    """
    place = folder
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, _about(folder, place, "is a file, not a folder"), str(folder))
    # Only trying tells: permissions are no limit for root, and a file system may be read-only or full.
    try:
        Path(tempfile.mkdtemp(prefix=".anabranch-", dir=place)).rmdir()
    except OSError as error:
        what = f"cannot be written: {error.strerror}"
        raise OSError(error.errno, _about(folder, place, what), str(folder)) from error


def _about(folder: Path, place: Path, what: str) -> str:
    return f"this {what}" if place == folder else f"{place} {what}"


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """Makes one kind of error of all that fail while files are written: with the place, and the system's reason.

    Raises:
        OSError: Something was not written, such as on a full disk.
    """
    from polars.exceptions import PolarsError

    try:
        yield
    except (OSError, PolarsError) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        # What comes from the compiled part of a library has the number only in its text.
        full = getattr(error, "errno", None) == errno.ENOSPC or "os error 28" in reason or "No space left" in reason
        number = errno.ENOSPC if full else getattr(error, "errno", None) or errno.EIO
        raise OSError(number, os.strerror(number) if full else reason, str(place)) from error


@contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """Writes a file that is either whole or as it was before, also where several processes write the same one.

    Yields:
        Where to write the new content; it takes the place of the file at the end, and is removed on an error.
    """
    new = file.with_name(f".{file.name}-{uuid.uuid4().hex[:12]}")
    try:
        yield new
        new.replace(file)
    finally:
        new.unlink(missing_ok=True)
