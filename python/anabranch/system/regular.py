"""Reading of files that others may have made: only regular ones, and only of a size that is known before.

A FIFO would let its reader wait for ever, a device may have no end, and some devices act when they are opened. What is
packed may be a thousand times as large as its file. All of this is refused by name.
"""

from __future__ import annotations

import json
import os
import stat
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from anabranch.errors import InputError

if TYPE_CHECKING:
    import polars as pl

MOST_TEXT = 1 << 24
"""Bytes of a text that people or these programs write: the largest of the project have a hundredth of it."""

MOST_BYTES = 1 << 30
"""Bytes of any other file that is read as a whole."""

_MOST_VALUES = 1 << 28
"""Rows times columns of a table: two gigabytes of numbers."""

_KINDS = (
    (stat.S_ISDIR, "folder"),
    (stat.S_ISFIFO, "FIFO"),
    (stat.S_ISSOCK, "socket"),
    (stat.S_ISCHR, "device"),
    (stat.S_ISBLK, "device"),
)


def check(path: Path, most: int = MOST_BYTES) -> int:
    """The size of a regular file.

    Raises:
        InputError: It is something else, or larger than `most` bytes.
        OSError: There is none, or it cannot be reached.
    """
    return _size(path, path.stat(), most)


def opened(path: Path, most: int = MOST_BYTES) -> BinaryIO:
    """The file, open for reading. The caller closes it.

    Raises:
        InputError: It is no regular file, or larger than `most` bytes.
        OSError: It cannot be opened.
    """
    # First without opening it, which may already do something. It may be exchanged in between, so the open one counts.
    check(path, most)
    number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        _size(path, os.fstat(number), most)
        return os.fdopen(number, "rb")
    except BaseException:
        os.close(number)
        raise


def read(path: Path, most: int = MOST_BYTES) -> bytes:
    """The bytes of a file.

    Raises:
        InputError: It is no regular file, or larger than `most` bytes.
        OSError: It cannot be read.
    """
    with opened(path, most) as file:
        # It may grow meanwhile.
        return file.read(most)


def read_text(path: Path, most: int = MOST_TEXT) -> str:
    """The text of a file in UTF-8.

    Raises:
        InputError: It is no regular file, larger than `most` bytes, or no text.
        OSError: It cannot be read.
    """
    try:
        return read(path, most).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: this is no text in UTF-8") from error


def read_json(path: Path, most: int = MOST_TEXT) -> Any:
    """The content of a file of JSON.

    Raises:
        InputError: It is no regular file, larger than `most` bytes, no text, or no JSON.
        OSError: It cannot be read.
    """
    try:
        return json.loads(read_text(path, most))
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: this is no JSON: {error}") from error


def read_parquet(path: Path) -> pl.DataFrame:
    """A table of a run folder or of a store.

    Raises:
        InputError: It is no regular file, too large, no Parquet, or has more values than such a table.
        OSError: It cannot be read.
    """
    import polars as pl

    check(path)
    try:
        # Both are in its description. What is repeated takes next to nothing in a file.
        rows, columns = pl.scan_parquet(path).select(pl.len()).collect().item(), len(pl.read_parquet_schema(path))
        if rows * columns > _MOST_VALUES:
            raise InputError(f"{path}: {rows} rows of {columns} columns are more than such a table has")
        return pl.read_parquet(path)
    except (ValueError, pl.exceptions.PolarsError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: this is no table in Parquet: {error}") from error
    except BaseException as error:
        # Some damage makes the library's compiled part panic.
        if type(error).__name__ != "PanicException":
            raise
        raise InputError(f"{path}: this is no table in Parquet") from error


def inflated(packed: bytes, most: int) -> bytes:
    """What `zlib.compress` has packed.

    Raises:
        ValueError: It is damaged, incomplete, or has more than `most` bytes.
    """
    unpacking = zlib.decompressobj()
    try:
        content = unpacking.decompress(packed, most)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if not unpacking.eof:
        more = f"it has more than {most} bytes" if len(content) == most else "it is incomplete"
        raise ValueError(more)
    return content


def _size(path: Path, found: os.stat_result, most: int) -> int:
    if not stat.S_ISREG(found.st_mode):
        kind = next((name for is_kind, name in _KINDS if is_kind(found.st_mode)), "special file")
        raise InputError(f"{path}: this is a {kind}; expected a regular file")
    if found.st_size > most:
        raise InputError(f"{path}: {found.st_size} bytes are more than such a file has; expected at most {most}")
    return found.st_size
