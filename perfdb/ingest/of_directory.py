"""Knows a log that is a file of a run directory: the directory counts, and the log does not."""

from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import Connection

from perfdb.db import keys
from perfdb.db import runs as stored_runs
from perfdb.db.tables import sources
from perfdb.errors import Diagnostic
from perfdb.ingest.read import RunRead
from perfdb.ingest.twice import Twin
from perfdb.queries import runs as tellings
from perfdb.rundir import is_log


def told(connection: Connection, logs: Sequence[RunRead]) -> Mapping[str, Twin]:
    """The logs that are files of runs in the store, by the ids of their own runs."""
    hashes = _there(connection, {read.files.record_file.sha256 for read in logs})
    rows = connection.execute(tellings.of_files(hashes)) if hashes else ()
    found = {hashes[source_id]: (run_id, path) for source_id, run_id, path in rows}
    twins = {}
    for read in logs:
        if held := found.get(read.files.record_file.sha256):
            run_id, path = held
            note = Diagnostic(
                read.path, f"tells of the same run as {path}: the log of run {run_id!r}"
            )
            twins[read.run.run.run_id] = Twin(path, note)
    return twins


def taken(connection: Connection, given: Sequence[RunRead]) -> Mapping[str, Diagnostic]:
    """Give the run of a log the id of the directory that holds the log: notes, by these ids."""
    of_hash = {
        file.sha256: read
        for read in given
        if read.run.run.recipe is not None
        for name, file in read.files.by_name.items()
        if is_log(name)
    }
    hashes = _there(connection, of_hash)
    rows = connection.execute(tellings.of_one_log(hashes)).all() if hashes else ()
    run_ids = [of_hash[hashes[row.source_id]].run.run.run_id for row in rows]
    there = stored_runs.known(connection, run_ids)
    notes: dict[str, Diagnostic] = {}
    for source_id, number, path in rows:
        read = of_hash[hashes[source_id]]
        run_id = read.run.run.run_id
        if run_id not in there and run_id not in notes:
            stored_runs.rename(connection, number, run_id)
            notes[run_id] = Diagnostic(read.path, f"holds the log {path}, and takes its place")
    return notes


def _there(connection: Connection, hashes: Iterable[str]) -> Mapping[int, str]:
    """The sources of these hashes that the store has, with their hashes."""
    found: dict[int, str] = {}
    for some in keys.chunks(hashes):
        which = keys.among(connection, sources.c.sha256, some)
        found |= {row.id: row.sha256 for row in connection.execute(tellings.with_bytes(which))}
    return found
