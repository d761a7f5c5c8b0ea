"""Opens the files of a run directory: each is read once, and large logs are kept out of memory."""

import hashlib
import os
import stat
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from perfdb.db.packing import Packed
from perfdb.db.rows import RunFiles, SourceFile
from perfdb.rundir import RECORD, STEPS, RunDir

PARSER: Final = "run directory"
"""Who reads the files of a run directory, as the store names it."""

RUN_PARSER_VERSION: Final = 3
"""Kept with each file of a run directory; raised when something else is read out of the same."""

MOST_HELD_BYTES: Final = 1 << 20
"""Logs that are larger pass by in chunks of this size."""

_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
"""A pipe that nobody writes to is opened, and then found to be no file."""

GRAIN_NS: Final = 2_000_000_000
"""File systems count time in steps of up to so much: what changed within it may change unseen."""


@dataclass(frozen=True)
class Seen:
    """What the system says of the files of a run, before they are read.

    `stamp` stands for the name, inode, size and times of each, by which git knows its files, too;
    None where one has changed so lately that it may change again within the same moment.
    """

    record: bytes
    size_bytes: int
    stamp: str | None
    parser_version: int


def seen(run: RunDir) -> Seen:
    """The record of a run, and what the system says of all its files. Raises OSError."""
    settled_ns = time.time_ns() - GRAIN_NS
    there = [(name, status) for name, path, _ in run.files() if (status := _status(path))]
    is_settled = all(it.st_ctime_ns < settled_ns for _, it in there)
    return Seen(
        record=run.record.read_bytes(),
        size_bytes=sum(it.st_size for _, it in there),
        stamp=_stamp(there) if is_settled else None,
        parser_version=RUN_PARSER_VERSION,
    )


def _stamp(there: Iterable[tuple[str, os.stat_result]]) -> str:
    said = [(name, it.st_ino, it.st_size, it.st_mtime_ns, it.st_ctime_ns) for name, it in there]
    return hashlib.sha256(repr(said).encode()).hexdigest()


def _status(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)  # noqa: PTH116 (a Path takes longer to make than to ask of)
    except FileNotFoundError:
        return None


def files_of(run: RunDir, scratch: Path | None = None, stamp: str | None = None) -> RunFiles:
    """Every file that says something of a run; packed logs lie in a temporary folder.

    The record comes first: where it says that the run has ended, nobody writes to the others.
    `stamp`: what the system said of them just before. Raises OSError.
    """
    by_name = {
        name: SourceFile(path, content, PARSER, RUN_PARSER_VERSION)
        for name, path, is_log in run.files()
        if (content := _content(path, scratch, is_log=is_log)) is not None
    }
    measured_in = STEPS if STEPS in by_name else RECORD
    return RunFiles(by_name, RECORD, measured_in, stamp)


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
