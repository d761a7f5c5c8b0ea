"""Knows a log that grew since it was read: its run is a later state of the run of its first bytes.

The id of a log's run is made of its bytes, so that the run that is there takes the new one's.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import Connection, RowMapping

from perfdb.db import keys, packing
from perfdb.db import runs as stored_runs
from perfdb.db.rows import SourceFile
from perfdb.db.session import take_turns
from perfdb.db.sources import content_of
from perfdb.db.tables import runs, sources
from perfdb.errors import Diagnostic
from perfdb.ingest.fallback import spellings
from perfdb.ingest.read import RunRead
from perfdb.queries import runs as questions

_LOG_ID = re.compile(r"log-[0-9a-f]{16}(?:-(\d+))?")


def rename(connection: Connection, given: Sequence[RunRead]) -> Sequence[RunRead]:
    """Give the runs of logs that grew the ids of what was read of them now; the logs that are new.

    A log is taken for a later state of another one by its path and its first bytes.
    """
    logs = [read for read in given if read.run.run.recipe is None]
    if not logs:
        return ()
    take_turns(connection, "runs")
    there = keys.known(connection, runs, runs.c.run_id, [one.run.run.run_id for one in logs])
    fresh = [one for one in logs if one.run.run.run_id not in there]
    earlier = _earlier(connection, fresh)
    new = []
    for read in fresh:
        rows = earlier.get(read.files.record_file.path, ())
        if row := next((row for row in rows if begins_with(read, row)), None):
            stored_runs.rename(connection, row["id"], read.run.run.run_id)
        else:
            new.append(read)
    return new


def replaced(connection: Connection, given: Sequence[RunRead]) -> Mapping[str, Diagnostic]:
    """Notes on other runs that the paths of new logs told of before and that are in force.

    By the ids of the runs that were read now. A job that is requeued may have emptied its log.
    """
    earlier = _earlier(connection, given)
    ids = [row["run_id"] for rows in earlier.values() for row in rows]
    known = stored_runs.known(connection, ids) if ids else {}
    in_force = {run_id for run_id, run in known.items() if run.withdrawn is None}
    notes = {}
    for read in given:
        file = read.files.record_file
        of_others = {row["run_id"] for row in earlier.get(file.path, ())} & in_force
        count = sum(not one.startswith(f"log-{file.sha256[:16]}") for one in of_others)
        if count:
            notes[read.run.run.run_id] = _replaced(read.path, count)
    return notes


def _replaced(path: str, count: int) -> Diagnostic:
    others = "another run before, which stays" if count == 1 else f"{count} others, which stay"
    remedy = f"`perfdb withdraw {path}` takes all that was read from it"
    return Diagnostic(path, f"told of {others}", remedy=remedy)


def _earlier(
    connection: Connection, given: Sequence[RunRead]
) -> Mapping[str, Sequence[RowMapping]]:
    """The runs that were read from the paths of logs, by these, the longest log first."""
    of_spelling = {
        spelling: read.files.record_file.path
        for read in given
        for spelling in spellings(read.files.record_file.path)
    }
    found: dict[str, list[RowMapping]] = {}
    for some in keys.chunks(of_spelling):
        which = keys.among(connection, sources.c.path, some)
        for row in connection.execute(questions.logs_at(which)).mappings():
            found.setdefault(of_spelling[row["path"]], []).append(row)
    return found


def begins_with(read: RunRead, row: RowMapping) -> bool:
    """Whether a log holds all bytes of a run's log and more, of its number among the log's runs.

    `row` has the columns of `perfdb.queries.questions.logs_at`.
    """
    file, number = read.files.record_file, number_in_log(read.run.run.run_id)
    may_be = row["size_bytes"] < file.size_bytes and number_in_log(row["run_id"]) == number
    return may_be and _sha256(_chunks(file), row["size_bytes"]) == row["sha256"]


def is_start_of(connection: Connection, read: RunRead, row: RowMapping) -> bool:
    """Whether a run's log, which the store has, holds all bytes of a log and more, likewise."""
    file, number = read.files.record_file, number_in_log(read.run.run.run_id)
    if row["size_bytes"] <= file.size_bytes or number_in_log(row["run_id"]) != number:
        return False
    content = content_of(connection, row["source_id"])
    return _sha256(content, file.size_bytes) == file.sha256


def number_in_log(run_id: str) -> int:
    """Which of the runs of its log a run is; 0 where it was read from none."""
    found = _LOG_ID.fullmatch(run_id)
    return int(found[1] or 1) if found else 0


def _sha256(chunks: Iterable[bytes], size_bytes: int) -> str:
    """The SHA-256 of so many bytes at the start of a file, in hexadecimal."""
    digest, left = hashlib.sha256(), size_bytes
    for chunk in chunks:
        digest.update(chunk[:left])
        left -= len(chunk)
        if left <= 0:
            break
    return digest.hexdigest()


def _chunks(file: SourceFile) -> Iterable[bytes]:
    content = file.content
    return (
        [content] if isinstance(content, bytes) else packing.unpacked_pieces(content.compressed())
    )
