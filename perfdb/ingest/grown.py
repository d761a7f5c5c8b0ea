"""Knows a log that grew since it was read: its run is a later state of the run of its first bytes.

The id of a log's run is made of its bytes, so that the run that is there takes the new one's.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence

from sqlalchemy import Connection, RowMapping

from perfdb.db import keys, packing
from perfdb.db import runs as stored_runs
from perfdb.db.rows import SourceFile
from perfdb.db.session import take_turns
from perfdb.db.tables import runs, sources
from perfdb.ingest.fallback import spellings
from perfdb.ingest.read import RunRead
from perfdb.queries import catalog

_LOG_ID = re.compile(r"log-[0-9a-f]{16}(?:-(\d+))?")


def rename(connection: Connection, given: Sequence[RunRead]) -> None:
    """Give the runs of logs that grew the ids of what was read of them now."""
    logs = [read for read in given if read.run.run.recipe is None]
    if not logs:
        return
    take_turns(connection, "runs")
    there = keys.known(connection, runs, runs.c.run_id, [one.run.run.run_id for one in logs])
    fresh = [one for one in logs if one.run.run.run_id not in there]
    earlier = _earlier(connection, fresh)
    for read in fresh:
        if row := next(_states(read, earlier), None):
            stored_runs.rename(connection, row["id"], read.run.run.run_id)


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
        for row in connection.execute(catalog.logs_at(which)).mappings():
            found.setdefault(of_spelling[row["path"]], []).append(row)
    return found


def _states(read: RunRead, earlier: Mapping[str, Sequence[RowMapping]]) -> Iterator[RowMapping]:
    """The runs of which a log holds all bytes and more, by its number among the log's runs."""
    file, number = read.files.record_file, _number(read.run.run.run_id)
    for row in earlier.get(file.path, ()):
        may_be = row["size_bytes"] < file.size_bytes and _number(row["run_id"]) == number
        if may_be and _sha256(file, row["size_bytes"]) == row["sha256"]:
            yield row


def _number(run_id: str) -> int:
    """Which of the runs of its log a run is; 0 where it was read from none."""
    found = _LOG_ID.fullmatch(run_id)
    return int(found[1] or 1) if found else 0


def _sha256(file: SourceFile, size_bytes: int) -> str:
    """The SHA-256 of so many bytes at the start of a file, in hexadecimal."""
    digest, left = hashlib.sha256(), size_bytes
    for chunk in _chunks(file):
        digest.update(chunk[:left])
        left -= len(chunk)
        if left <= 0:
            break
    return digest.hexdigest()


def _chunks(file: SourceFile) -> Iterator[bytes]:
    content = file.content
    return (
        iter([content])
        if isinstance(content, bytes)
        else packing.unpacked_pieces(content.compressed())
    )
