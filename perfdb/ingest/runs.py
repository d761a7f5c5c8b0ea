"""Reads run directories: the files are opened once, and only where the store lacks them."""

import hashlib
import os
import re
import socket
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Final

from sqlalchemy import Engine

from perfdb import measure
from perfdb.aggregation import Window
from perfdb.db import runs as stored_runs
from perfdb.db.packing import Packed
from perfdb.db.rows import ResultRow, RunFiles, SourceFile
from perfdb.db.session import retried
from perfdb.errors import Diagnostic, RunDirError
from perfdb.ingest.base import Read, Rejected, RunRead, Skipped, Unchanged
from perfdb.ingest.find import Source
from perfdb.jsonfile import parse_json
from perfdb.messages import note_text
from perfdb.record import NoteCode, Outcome
from perfdb.run_record import RunRecord
from perfdb.rundir import RECORD, STEPS, RunDir, parse_steps, parse_worker
from perfdb.validity import damage

PARSER: Final = "run directory"
"""Who reads the files of a run directory, as the store names it."""

RUN_PARSER_VERSION: Final = 3
"""Kept with each file of a run directory; raised when something else is read out of the same."""

MOST_HELD_BYTES: Final = 1 << 20
"""Larger logs are compressed in chunks of this size, in a temporary file."""

GRAIN_NS: Final = 2_000_000_000
"""File systems count time in steps of up to so much: what changed within it may change unseen."""

_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
"""A pipe that nobody writes to is opened, and then found to be no file."""

_RUN_ID = re.compile(rb'"run_id"\s*:\s*"([^"\\\x00-\x1f]+)"')
"""Control characters, which no JSON string holds, PostgreSQL would not even look for."""


@dataclass(frozen=True)
class RunFound:
    """A run directory of which nothing but the record has been opened, and the window asked for.

    `stamp` stands for the name, inode, size and times of each file, by which git knows its files,
    too; None where one has changed so lately that it may change again within the same moment.
    """

    source: Source
    record: bytes
    size_bytes: int
    stamp: str | None
    window: Window | None
    scratch: Path | None

    @property
    def path(self) -> str:
        """The path under which it is reported."""
        return self.source.where

    @property
    def run(self) -> RunDir:
        """Its files."""
        return RunDir(self.source.path)

    def claimed_id(self) -> str | None:
        """The run id in its record, without parsing all of it."""
        found = _RUN_ID.search(self.record)
        return found[1].decode(errors="replace") if found else None

    @cached_property
    def files(self) -> RunFiles:
        """Its files, each read once, when they are first asked for. Raises OSError.

        The record comes first: where it says that the run has ended, nobody writes to the others.
        """
        by_name = {
            name: SourceFile(self.source.place.name(path), content, PARSER, RUN_PARSER_VERSION)
            for name, path, is_log in self.run.files()
            if (content := _content(path, self.scratch, is_log=is_log)) is not None
        }
        return RunFiles(by_name, RECORD, STEPS if STEPS in by_name else RECORD, self.stamp)


def find_run(
    source: Source, window: Window | None = None, scratch: Path | None = None
) -> RunFound | Rejected:
    """The record of a run directory, and what the system knows of its files."""
    settled_ns, run = time.time_ns() - GRAIN_NS, RunDir(source.path)
    try:
        found = [(name, status) for name, path, _ in run.files() if (status := _status(path))]
        settled = all(status.st_ctime_ns < settled_ns for _, status in found)
        stamp = _stamp(found) if settled else None
        size = sum(status.st_size for _, status in found)
        return RunFound(source, run.record.read_bytes(), size, stamp, window, scratch)
    except OSError as error:
        return _unreadable(source.where, error)


def parse_run(found: RunFound) -> RunRead | Skipped | Rejected:
    """What the files of a run contain; all is taken from the very bytes that are stored.

    A run without an end is read when its runner is gone, as it was left.
    """
    try:
        record = _record(found)
        if _is_running(found.run, record):
            return Skipped(found.path, "running")
        if record.outcome is None:
            # Its runner may have ended it since its files were read; nobody writes to them now.
            found = replace(found)
            record = _record(found)
        return _parse_ended(found, record)
    except RunDirError as error:
        return Rejected(found.path, tuple(error.problems))
    except OSError as error:
        return _unreadable(found.path, error)


def parsed(engine: Engine, batch: Sequence[Read | RunFound]) -> Iterator[Read]:
    """Parse the run directories of a batch, but for those that the store has from the same bytes.

    Where the system knows of their files what it knew before, these are not even opened.
    """
    claimed = [one.claimed_id() if isinstance(one, RunFound) else None for one in batch]
    run_ids = set(filter(None, claimed))
    known = retried(partial(_known, engine, run_ids)) if run_ids else {}
    stamps: dict[int, str] = {}
    for one, run_id in zip(batch, claimed, strict=True):
        if not isinstance(one, RunFound):
            yield one
        elif (stored := known.get(run_id or "")) and _is_unchanged(one, stored):
            if one.stamp is not None and one.stamp != stored.stamp:
                stamps[stored.id] = one.stamp
            yield Unchanged(one.path, stored.run_id, stored.withdrawn)
        else:
            yield parse_run(one)
    if stamps:
        retried(partial(_renew_stamps, engine, stamps))


def _known(engine: Engine, run_ids: Iterable[str]) -> Mapping[str, stored_runs.Known]:
    with engine.connect() as connection:
        return stored_runs.known(connection, run_ids)


def _renew_stamps(engine: Engine, stamps: Mapping[int, str]) -> None:
    with engine.begin() as connection:
        stored_runs.stamp(connection, stamps)


def _is_unchanged(found: RunFound, stored: stored_runs.Known) -> bool:
    window = found.window.name if found.window else None
    if not stored.is_read(RUN_PARSER_VERSION, window):
        return False
    if found.stamp is not None and found.stamp == stored.stamp:
        return True
    try:
        return found.files.content_hash == stored.content_hash
    except OSError:
        return False  # the parser reports which file it is


def _parse_ended(found: RunFound, record: RunRecord) -> RunRead | Rejected:
    run, files, name = found.run, found.files, found.source.place.name
    lines = _bytes_of(files, STEPS).decode(errors="replace").splitlines()
    steps = parse_steps(name(run.steps), lines)
    problem = damage(name(run.steps), steps)
    if problem:
        return Rejected(found.path, (problem,))
    worker = parse_worker(run, partial(_bytes_of, files))
    measured = measure.of_run(record, steps, worker, files.content_hash, found.window)
    notes = tuple(_notes(found.path, record, measured.result))
    window = found.window.name if found.window else None
    return RunRead(found.path, measured, files, notes, window=window)


def _notes(where: str, record: RunRecord, result: ResultRow) -> Iterator[Diagnostic]:
    """What keeps a run from being finished that ended as if it was; which steps do not count."""
    if record.outcome is Outcome.FINISHED and result.outcome is not Outcome.FINISHED:
        ended = result.outcome.replace("_", " ")
        reason = note_text(result.withheld) if result.withheld else ""
        yield Diagnostic(where, f"says that it finished, and is {ended}: {reason}")
        return
    for note in (*filter(None, [result.withheld]), *result.notes):
        if note.code in (NoteCode.SKIPPED_STEPS, NoteCode.MODEL_SHAPE):
            yield Diagnostic(where, note_text(note))


def _record(found: RunFound) -> RunRecord:
    where = found.source.place.name(found.run.record)
    return parse_json(where, _bytes_of(found.files, RECORD), RunRecord)


def _bytes_of(files: RunFiles, name: str) -> bytes:
    """The bytes of a file at the top of the run directory; none if it is not there."""
    file = files.by_name.get(name)
    return file.content if file and isinstance(file.content, bytes) else b""


def _unreadable(where: str, error: OSError) -> Rejected:
    place = str(error.filename or where)
    return Rejected(where, (Diagnostic(place, error.strerror or str(error)),))


def _is_running(run: RunDir, record: RunRecord) -> bool:
    """Whether a run has not ended and its runner is at work on it.

    A runner holds its run's lock; where there is none, its process on this machine decides.
    """
    if record.outcome is not None:
        return False
    if run.lock.is_file():
        return run.in_progress()
    return record.environment.hostname == socket.gethostname() and _is_alive(record.runner_pid)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # another user's, but alive
        return True
    return True


def _stamp(found: Iterable[tuple[str, os.stat_result]]) -> str:
    known = [(name, it.st_ino, it.st_size, it.st_mtime_ns, it.st_ctime_ns) for name, it in found]
    return hashlib.sha256(repr(known).encode()).hexdigest()


def _status(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)  # noqa: PTH116 (a Path takes longer to make than to ask of)
    except FileNotFoundError:
        return None


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
