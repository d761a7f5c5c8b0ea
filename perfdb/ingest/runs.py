"""Reads run directories: the files are opened once, and only if the store lacks them."""

import hashlib
import os
import re
import socket
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from io import FileIO
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
from perfdb.ingest.find import Source
from perfdb.ingest.reads import (
    RUN_DIRECTORY,
    RUN_PARSER_VERSION,
    Read,
    Rejected,
    RunRead,
    Skipped,
    Unchanged,
)
from perfdb.jsonfile import parse_json
from perfdb.messages import note_text
from perfdb.record import NoteCode, Outcome
from perfdb.run_record import RunRecord
from perfdb.rundir import RECORD, STEPS, RunDir, parse_steps, parse_worker
from perfdb.validity import damage

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
    too; None if one has changed so lately that it may change again within the same moment.
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

    @cached_property
    def files(self) -> RunFiles:
        """Its files, each read once, when they are first asked for. Raises OSError.

        The record was read first: if it states that the run has ended, nobody writes to the others.
        """
        by_name = {}
        for name, path, is_log in self.run.files():
            is_record = name == RECORD
            content = self.record if is_record else _content(path, self.scratch, is_log=is_log)
            if content is not None:
                where = self.source.place.name(path)
                by_name[name] = SourceFile(where, content, RUN_DIRECTORY, RUN_PARSER_VERSION)
        return RunFiles(by_name, RECORD, STEPS if STEPS in by_name else RECORD, self.stamp)

    def bytes_of(self, name: str) -> bytes:
        """The bytes of a file at the top of the run directory; none if it is not there."""
        file = self.files.by_name.get(name)
        return file.content if file and isinstance(file.content, bytes) else b""


def find_run(
    source: Source, window: Window | None = None, scratch: Path | None = None
) -> RunFound | Rejected:
    """The record of a run directory, and what the system knows of its files."""
    settled_ns, run = time.time_ns() - GRAIN_NS, RunDir(source.path)
    try:
        found = [(name, status) for name, path, _ in run.files() if (status := _status(path))]
        known = [(it, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for it, s in found]
        settled = all(status.st_ctime_ns < settled_ns for _, status in found)
        stamp = hashlib.sha256(repr(known).encode()).hexdigest() if settled else None
        size = sum(status.st_size for _, status in found)
        with FileIO(f"{source.path}/{RECORD}") as file:
            return RunFound(source, file.readall(), size, stamp, window, scratch)
    except OSError as error:
        return _unreadable(source.where, error)


def parse_run(found: RunFound) -> RunRead | Skipped | Rejected:
    """What the files of a run contain; all is taken from the very bytes that are stored.

    A run without an end is read when its runner is gone, as it was left.
    """
    try:
        record = _record(found)
        if _is_running(found.run, record):
            return Skipped(found.path, reason="running")
        if record.outcome is None:
            # Its runner may have ended it since its files were read; nobody writes to them now.
            again = find_run(found.source, found.window, found.scratch)
            if isinstance(again, Rejected):
                return again
            found, record = again, _record(again)
        where = found.source.place.name(f"{found.source.path}/{STEPS}")
        steps = parse_steps(where, found.bytes_of(STEPS).decode(errors="replace").splitlines())
        if problem := damage(where, steps):
            return Rejected(found.path, (problem,))
        worker = parse_worker(found.path, found.bytes_of)
    except RunDirError as error:
        return Rejected(found.path, tuple(error.problems))
    except OSError as error:
        return _unreadable(found.path, error)
    run = measure.of_run(record, steps, worker, found.files.content_hash, found.window)
    notes = tuple(_notes(found.path, record, run.result))
    window = found.window.name if found.window else None
    if window:
        run = replace(run, result=replace(run.result, stated={"window": window}))
    return RunRead(found.path, notes=notes, run=run, files=found.files, window=window)


def parsed(engine: Engine, batch: Sequence[Read | RunFound]) -> Iterator[Read]:
    """Parse the run directories of a batch, except those that the store has from the same bytes.

    If the system knows the same of their files as before, these are not even opened.
    """
    ids = {id(one): _claimed_id(one) for one in batch if isinstance(one, RunFound)}
    run_ids = set(filter(None, ids.values()))
    known = retried(partial(_known, engine, run_ids)) if run_ids else {}
    stamps: dict[int, str] = {}
    for one in batch:
        if not isinstance(one, RunFound):
            yield one
        elif (stored := known.get(ids[id(one)] or "")) and _is_unchanged(one, stored):
            if one.stamp is not None and one.stamp != stored.stamp:
                stamps[stored.id] = one.stamp
            yield Unchanged(one.path, run_id=stored.run_id, withdrawn=stored.withdrawn)
        else:
            yield parse_run(one)
    if stamps:
        retried(partial(_renew_stamps, engine, stamps))


def _claimed_id(found: RunFound) -> str | None:
    """The run id in the record, without parsing all of it."""
    claimed = _RUN_ID.search(found.record)
    return claimed[1].decode(errors="replace") if claimed else None


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


def _notes(where: str, record: RunRecord, result: ResultRow) -> Iterator[Diagnostic]:
    """Why a run is not finished though its record states that; which steps do not count."""
    if record.outcome is Outcome.FINISHED and result.outcome is not Outcome.FINISHED:
        ended = result.outcome.replace("_", " ")
        reason = note_text(result.withheld) if result.withheld else ""
        yield Diagnostic(where, f"says that it finished, and is {ended}: {reason}")
        return
    for note in (*filter(None, [result.withheld]), *result.notes):
        if note.code in (NoteCode.SKIPPED_STEPS, NoteCode.MODEL_SHAPE):
            yield Diagnostic(where, note_text(note))


def _record(found: RunFound) -> RunRecord:
    where = found.source.place.name(f"{found.source.path}/{RECORD}")
    return parse_json(where, found.bytes_of(RECORD), RunRecord)


def _unreadable(where: str, error: OSError) -> Rejected:
    place = str(error.filename or where)
    return Rejected(where, (Diagnostic(place, error.strerror or str(error)),))


def _is_running(run: RunDir, record: RunRecord) -> bool:
    """Whether a run has not ended and its runner is at work on it.

    A runner holds its run's lock; if there is none, its process on this machine decides.
    """
    if record.outcome is not None:
        return False
    if run.lock.is_file():
        return run.in_progress()
    if record.environment.hostname != socket.gethostname():
        return False
    try:
        os.kill(record.runner_pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # another user's, but alive
        return True
    return True


def _status(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)  # noqa: PTH116 (a Path takes longer to make than to ask of)
    except FileNotFoundError:
        return None


def _content(path: str, scratch: Path | None, *, is_log: bool) -> bytes | Packed | None:
    """The bytes of a file and what is added to it meanwhile; packed if it is a large log.

    None if there is no such file, or it is a log that is empty.
    """
    try:
        number = os.open(path, _FLAGS)
    except FileNotFoundError:
        return None
    try:
        status = os.fstat(number)
        if not stat.S_ISREG(status.st_mode) or (is_log and not status.st_size):
            return None
        if is_log and status.st_size > MOST_HELD_BYTES:
            packed = Packed(scratch)
            for _ in packed.passing(_chunks(number)):
                pass  # they are kept as they pass by
            packed.close()
            return packed
        content = os.read(number, status.st_size + 1)
        if len(content) == status.st_size:
            return content
        return b"".join((content, *_chunks(number)))
    finally:
        os.close(number)


def _chunks(number: int) -> Iterator[bytes]:
    while chunk := os.read(number, MOST_HELD_BYTES):
        yield chunk
