"""Finished runs on disk, by key: a folder of files that only grow.

Each process writes a file of its own, a record per run with its length and a checksum, so nothing is locked, and
processes on several machines may share a folder. Whatever cuts a record off (a kill, a full disk) leaves an incomplete
record at the end of a file that is not continued; it is ignored, and its run made again. Two stores of one build merge
by copying files.

The store knows neither plans nor metrics: it keeps bytes.
"""

from __future__ import annotations

import json
import os
import struct
import time
import uuid
import zlib
from collections.abc import Iterator, Mapping
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from anabranch.errors import InputError
from anabranch.experiments.keys import KEY_BYTES
from anabranch.system import outputs, regular

SCHEMA = 1
"""The version of the files."""

# Mark, length of the payload, checksum of key and payload, key.
_HEAD = struct.Struct(f"<4sII{KEY_BYTES}s")
_MARK = b"ANR1"
_ABOUT = "store.json"
_RUNS = "runs"
_ENDING = ".runs"
# What the system has not written by then is lost if the machine loses power; a kill of the process loses nothing.
_SYNC_EVERY_S = 5.0
_FAST = 1
# A run of a store is some kilobytes; with ten thousand sessions it has some megabytes. Files grow by whole runs.
_MOST_RECORD = 1 << 28
_MOST_FILE = 1 << 40

_Place = tuple[Path, int, int]
"""The file of a record, and where its payload begins and how long it is."""


class Store:
    """The finished runs of a folder, of one build.

    Attributes:
        folder: Where they are.
    """

    def __init__(self, folder: Path, build: Mapping[str, str]) -> None:
        """Opens a store, or prepares a new one; the folder is made at the first record.

        Raises:
            InputError: It is of another build, or no store.
        """
        self.folder = folder
        self._build = dict(build)
        check_build(folder, self._build)
        self._records: dict[bytes, _Place] = {}
        self._file: FileIO | None = None
        self._path = folder
        self._synced = time.monotonic()
        self._add_files(folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __contains__(self, key: bytes) -> bool:
        return key in self._records

    def __len__(self) -> int:
        return len(self._records)

    def get(self, key: bytes) -> bytes:
        """What is kept under a key.

        Raises:
            KeyError: Nothing is.
        """
        record = self._records[key]
        with regular.opened(record[0], _MOST_FILE) as file:
            return _content(file, record)

    def read(self, keys: Iterator[bytes]) -> Iterator[bytes | None]:
        """What is kept under some keys, ``None`` where nothing is. Files stay open meanwhile."""
        files: dict[Path, BinaryIO] = {}
        try:
            for key in keys:
                if (record := self._records.get(key)) is None:
                    yield None
                    continue
                if (file := files.get(record[0])) is None:
                    file = files[record[0]] = regular.opened(record[0], _MOST_FILE)
                yield _content(file, record)
        finally:
            for file in files.values():
                file.close()

    def put(self, key: bytes, content: bytes) -> None:
        """Keeps a run, unless its key is there.

        Raises:
            OSError: It cannot be written. What was kept before is whole, and this store takes nothing more.
        """
        if key in self._records:
            return
        payload = zlib.compress(content, _FAST)
        head = _HEAD.pack(_MARK, len(payload), _checksum(key, payload), key)
        with outputs.writing(self.folder):
            file = self._file or self._create()
            offset = file.tell()
            try:
                write_all(file, head + payload)
                self._sync(file)
            except OSError:
                # The record may be incomplete, so nothing may follow it in this file.
                self._file = None
                file.close()
                raise
        self._records[key] = (self._path, offset + _HEAD.size, len(payload))

    def merge(self, other: Path) -> int:
        """Takes the runs of another store, and returns how many were new.

        Raises:
            InputError: It is no store, or of another build.
        """
        if not (other / _ABOUT).is_file():
            raise InputError(f"{other}: this is no store of runs; expected a folder with {_ABOUT}")
        source = Store(other, self._build)
        keys = [key for key in source._records if key not in self]
        for key in keys:
            self.put(key, source.get(key))
        return len(keys)

    def close(self) -> None:
        """Writes what the system still holds back."""
        if self._file is not None:
            with outputs.writing(self.folder):
                file, self._file = self._file, None
                try:
                    os.fsync(file.fileno())
                finally:
                    file.close()

    def _create(self) -> FileIO:
        runs = self.folder / _RUNS
        runs.mkdir(parents=True, exist_ok=True)
        about = self.folder / _ABOUT
        if not about.is_file():
            with outputs.replacing(about) as new, new.open("wb") as file:
                file.write(json.dumps({"schema": SCHEMA, **self._build}, indent=2).encode() + b"\n")
                os.fsync(file.fileno())
        self._path = runs / f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{uuid.uuid4().hex[:12]}{_ENDING}"
        # Without a buffer, what was written survives a kill.
        self._file = self._path.open("xb", buffering=0)
        return self._file

    def _sync(self, file: FileIO) -> None:
        if time.monotonic() - self._synced > _SYNC_EVERY_S:
            os.fsync(file.fileno())
            self._synced = time.monotonic()

    def _add_files(self, folder: Path) -> None:
        for path in sorted((folder / _RUNS).glob(f"*{_ENDING}")):
            for key, offset, length in _records_of(path):
                self._records.setdefault(key, (path, offset, length))


_REMEDY = (
    "choose another --store, or remove this folder and make its runs again; "
    "`anabranch compare` compares the tables of two builds"
)


def check_build(folder: Path, build: Mapping[str, str]) -> None:
    """Refuses a store of another build; a folder that is none yet may become one.

    Raises:
        InputError: It is of another build, or this is a file.
    """
    about = folder / _ABOUT
    if not about.is_file():
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder}: this is a file; expected a folder")
        return
    found = _read_about(about)
    if found.get("schema") != SCHEMA:
        raise InputError(f"{folder}: this store has schema {found.get('schema')!r}; expected {SCHEMA}; {_REMEDY}")
    for key, value in build.items():
        if found.get(key) != value:
            raise InputError(
                f"{folder}: this store is of another build of anabranch ({key} {_short(found.get(key))}, "
                f"this one has {_short(value)}), and results of two builds are never mixed; {_REMEDY}"
            )


def is_store(folder: Path) -> bool:
    """Whether this is a store."""
    return (folder / _ABOUT).is_file()


def write_all(file: FileIO, data: bytes) -> None:
    """Writes everything: a file without a buffer may take less at a time."""
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]


def _records_of(path: Path) -> Iterator[tuple[bytes, int, int]]:
    """The whole records of a file: keys, and where the payloads are."""
    with regular.opened(path, _MOST_FILE) as file:
        begin = _HEAD.size
        while len(head := file.read(_HEAD.size)) == _HEAD.size:
            mark, length, checksum, key = _HEAD.unpack(head)
            if mark != _MARK or length > _MOST_RECORD or len(payload := file.read(length)) < length:
                return
            if _checksum(key, payload) == checksum:
                yield key, begin, length
            begin += length + _HEAD.size


def _content(file: BinaryIO, record: _Place) -> bytes:
    """What a record holds.

    Raises:
        InputError: It is damaged, or much larger than any run.
    """
    path, offset, length = record
    file.seek(offset)
    try:
        return regular.inflated(file.read(length), _MOST_RECORD)
    except ValueError as error:
        raise InputError(
            f"{path}: the record at byte {offset} is no run: {error}; remove this file, and its runs are made again"
        ) from error


def _checksum(key: bytes, payload: bytes | memoryview) -> int:
    return zlib.crc32(payload, zlib.crc32(key))


def _read_about(path: Path) -> dict[str, Any]:
    try:
        found = regular.read_json(path)
    except ValueError as error:
        raise InputError(f"{path}: this is no description of a store; {_REMEDY}") from error
    return found if isinstance(found, dict) else {}


def _short(value: object) -> str:
    return str(value)[:12]
