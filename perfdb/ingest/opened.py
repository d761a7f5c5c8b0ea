"""Opens the files of a run directory: each is read once, and large logs are kept out of memory."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from perfdb.db.packed import Packed
from perfdb.db.rows import RunFiles, SourceFile
from perfdb.record import SCHEMA_VERSION
from perfdb.rundir import RECORD, STEPS, RunDir

PARSER: Final = "run directory"
"""Who reads the files of a run directory, as the store names it."""

MOST_HELD_BYTES: Final = 1 << 20
"""Logs that are larger pass by in chunks of this size."""

_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
"""A pipe that nobody writes to is opened, and then found to be no file."""


def files_of(run: RunDir, scratch: Path | None = None) -> RunFiles:
    """Every file that says something of a run; packed logs lie in a temporary folder.

    The record comes first: where it says that the run has ended, nobody writes to the others.
    Raises OSError.
    """
    by_name = {
        name: SourceFile(path, content, PARSER, SCHEMA_VERSION)
        for name, path, is_log in run.files()
        if (content := _content(path, scratch, is_log=is_log)) is not None
    }
    measured_in = STEPS if STEPS in by_name else RECORD
    return RunFiles(by_name, RECORD, measured_in)


def _content(path: str, scratch: Path | None, *, is_log: bool) -> bytes | Packed | None:
    """None where there is no such file, or a log that is empty."""
    try:
        number = os.open(path, _FLAGS)
    except FileNotFoundError:
        return None
    try:
        status = os.fstat(number)
        if not stat.S_ISREG(status.st_mode) or (is_log and not status.st_size):
            return None
        if is_log and status.st_size > MOST_HELD_BYTES:
            return _packed(number, scratch)
        return _whole(number, status.st_size)
    finally:
        os.close(number)


def _packed(number: int, scratch: Path | None) -> Packed:
    packed = Packed(scratch)
    for _ in packed.passing(_chunks(number)):
        pass  # they are kept as they pass by
    packed.close()
    return packed


def _whole(number: int, size: int) -> bytes:
    """What a file of so many bytes holds, and what was added to it meanwhile."""
    content = os.read(number, size + 1)
    if len(content) == size:
        return content
    return b"".join((content, *_chunks(number)))


def _chunks(number: int) -> Iterator[bytes]:
    while chunk := os.read(number, MOST_HELD_BYTES):
        yield chunk
