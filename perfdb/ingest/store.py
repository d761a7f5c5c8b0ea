"""Puts what was read into the store: many runs in one transaction, any other source in its own.

A source is stored whole or not at all. Of runs that are stored together, one that no column can
hold is found by halving them, so that it is rejected and the others are stored.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from sqlalchemy import Connection, Engine, RowMapping
from sqlalchemy.exc import DataError

from perfdb.db import ingest_log, keys, packing, pages, results, runs
from perfdb.db import sources as files
from perfdb.db.ingest_log import Action, LogEntry
from perfdb.db.rows import ResultRow, SourceFile
from perfdb.db.runs import RunWritten
from perfdb.db.session import retried, take_turns
from perfdb.db.tables import runs as run_rows
from perfdb.db.tables import sources
from perfdb.errors import Diagnostic
from perfdb.ingest.base import (
    PageRows,
    Read,
    Rejected,
    RunRead,
    Skipped,
    Unattributed,
    Unchanged,
    problems_of,
)
from perfdb.ingest.logs import number_in_log
from perfdb.ingest.runs import RunFound, parsed
from perfdb.queries import runs as questions
from perfdb.units import counted


@dataclass(frozen=True)
class Stored:
    """What became of one source."""

    read: Read
    actions: tuple[Action, ...] = ()
    withdrawn: int = 0
    problems: tuple[Diagnostic, ...] = ()
    known: bool = False
    """The store has it already, read with options that are not used now."""
    notes: tuple[Diagnostic, ...] = ()
    same_as: str | None = None
    """The file with the same bytes that the store has; nothing of this one is stored."""


def put(engine: Engine, batch: Sequence[Read | RunFound]) -> Iterator[Stored]:
    """Store a batch, in its order; what became of each source."""
    for group in _groups(parsed(engine, batch)):
        first = group[0]
        if isinstance(first, Unchanged):
            yield _unchanged(first, first.withdrawn)
        elif isinstance(first, Skipped):
            yield Stored(first)
        else:
            yield from _put_group(engine, group)


def spellings(path: str) -> tuple[str, ...]:
    """The names of a file: as it is given, relative to the working directory, absolute, and what
    a link leads to.
    """
    real = os.path.realpath(path)
    return (path, os.path.relpath(path), str(Path(path).absolute()), real, os.path.relpath(real))


def _groups(reads: Iterable[Read]) -> Iterator[Sequence[Read]]:
    """Runs of different ids that follow one another, together; any other source by itself.

    Logs are apart from run directories, which may hold them.
    """
    group: dict[str, RunRead] = {}
    for read in reads:
        if group and not (isinstance(read, RunRead) and _joins(read, group)):
            yield list(group.values())
            group = {}
        if isinstance(read, RunRead):
            group[read.run_id] = read
        else:
            yield [read]
    if group:
        yield list(group.values())


def _joins(read: RunRead, group: Mapping[str, RunRead]) -> bool:
    first = next(iter(group.values()))
    return read.run_id not in group and read.is_log is first.is_log


def _put_group(engine: Engine, group: Sequence[Read]) -> Sequence[Stored]:
    """Store sources together; where one of them cannot be stored, each half by itself."""
    try:
        return retried(partial(_in_one_transaction, engine, group))
    except (DataError, OverflowError) as error:
        # A source is well formed and yet has what no column can hold, such as 10²⁰ GPUs.
        if len(group) == 1:
            cause = error.orig if isinstance(error, DataError) else error
            path = group[0].path
            rejected = Rejected(path, (Diagnostic(path, f"cannot be stored: {cause}"),))
            return _put_group(engine, [rejected])
    half = len(group) // 2
    return [*_put_group(engine, group[:half]), *_put_group(engine, group[half:])]


def _in_one_transaction(engine: Engine, group: Sequence[Read]) -> Sequence[Stored]:
    when = datetime.now(UTC)
    with engine.begin() as connection:
        read = [one for one in group if isinstance(one, RunRead)]
        done = _put_runs(connection, read, when) if read else [_put(connection, group[0], when)]
        ingest_log.add(connection, [entry for one in done for entry in _log_entries(one)], when)
        return done


def _put(connection: Connection, read: Read, when: datetime) -> Stored:
    if isinstance(read, PageRows):
        return _put_page(connection, read, when)
    if isinstance(read, Unattributed):
        return _put_unattributed(connection, read, when)
    return Stored(read, problems=tuple(problems_of(read)))


def _put_runs(connection: Connection, read: Sequence[RunRead], when: datetime) -> Sequence[Stored]:
    kept: Mapping[str, Stored] = {}
    notes: Mapping[str, Diagnostic] = {}
    if read[0].is_log:
        take_turns(connection, "runs")
        kept = _kept(connection, read)
        notes = _grown(connection, [one for one in read if one.run_id not in kept])
    added = [one for one in read if one.run_id not in kept]
    given = [runs.Given(one.run, one.files, one.window) for one in added]
    written = {
        one.run_id: _of_run(one, result, notes.get(one.run_id))
        for one, result in zip(added, runs.put(connection, given, when), strict=True)
    }
    return [kept.get(one.run_id) or written[one.run_id] for one in read]


def _of_run(read: RunRead, written: RunWritten, note: Diagnostic | None) -> Stored:
    other = Path(written.other or "").parent
    if written.action is Action.UNCHANGED and written.other:
        message = f"has no more than {other} of the run {read.run_id!r}, which stays as it is"
        return Stored(read, (written.action,), notes=(Diagnostic(read.path, message),))
    if written.action is Action.UNCHANGED:
        return _unchanged(read, written.withdrawn)
    if written.other is None:
        return Stored(read, (written.action,), notes=(note,) if note else ())
    message = f"the run {read.run_id!r} of {other} is in the store and differs"
    remedy = "give one of two runs another run_id; of two copies keep the right one, at that path"
    return Stored(read, problems=(Diagnostic(read.path, message, remedy=remedy),))


def _unchanged(read: RunRead | Unchanged, withdrawn: str | None) -> Stored:
    """A run that stays as it is; a note for one that was withdrawn."""
    if withdrawn is None:
        return Stored(read, (Action.UNCHANGED,))
    remedy = "`perfdb withdraw --undo` makes it count again"
    note = Diagnostic(read.path, f"stays withdrawn: {withdrawn}", remedy=remedy)
    return Stored(read, (Action.UNCHANGED,), notes=(note,))


def _kept(connection: Connection, logs: Sequence[RunRead]) -> Mapping[str, Stored]:
    """The logs of which nothing is stored, by run id: their bytes are in the store.

    Those of a run directory's own log; and those that were read before, maybe with options, and are
    read without any now.
    """
    found: dict[str, Stored] = {}
    in_runs = _in_run_directories(connection, [one.files.record_file.sha256 for one in logs])
    there = runs.known(connection, [one.run_id for one in logs])
    for read in logs:
        if other := in_runs.get(read.files.record_file.sha256):
            found[read.run_id] = Stored(read, known=True, same_as=other)
        elif (old := there.get(read.run_id)) and _stays(connection, read, old):
            is_same_version = old.parser_version == read.files.parser_version
            found[read.run_id] = _as_before(read, old.withdrawn, is_same_version=is_same_version)
    return found


def _stays(connection: Connection, read: RunRead, old: runs.Known) -> bool:
    """Whether a log without options stays as it was read: at another path, or with options.

    What another version has read as the same case and release is read again.
    """
    if read.explicit or old.content_hash == read.run.run.content_hash:
        return False
    is_moved = old.path not in spellings(read.files.record_file.path)
    return is_moved or runs.held(connection, read.run_id, read.files) is not None


def _as_before(
    read: RunRead | Unattributed, withdrawn: str | None, *, is_same_version: bool
) -> Stored:
    message = "stays as another version of perfdb has read it with options"
    remedy = "to have this version read it, pass them again"
    note = Diagnostic(read.path, message, remedy=remedy)
    kept = (
        _unchanged(read, withdrawn)
        if isinstance(read, RunRead)
        else Stored(read, (Action.UNCHANGED,))
    )
    return replace(kept, known=True, notes=kept.notes if is_same_version else (note,))


def _in_run_directories(connection: Connection, hashes: Iterable[str]) -> Mapping[str, str]:
    """The paths of logs of these hashes in run directories that are in the store."""
    there: dict[int, str] = {}
    for some in keys.chunks(set(hashes)):
        which = keys.among(connection, sources.c.sha256, some)
        there |= {row.id: row.sha256 for row in connection.execute(questions.with_bytes(which))}
    rows = connection.execute(questions.of_files(there)) if there else ()
    return {there[source_id]: path for source_id, _, path in rows}


def _grown(connection: Connection, logs: Sequence[RunRead]) -> Mapping[str, Diagnostic]:
    """Give the runs of logs that grew the ids of what was read of them now.

    A log is a later state of another one by its path and its first bytes. Notes on other runs that
    were read from the path, by the ids of the runs read now.
    """
    there = keys.known(connection, run_rows, run_rows.c.run_id, [one.run_id for one in logs])
    new = [one for one in logs if one.run_id not in there]
    notes: dict[str, Diagnostic] = {}
    for read, earlier in zip(new, _earlier(connection, new), strict=True):
        if row := next((row for row in earlier if _begins_with(read, row)), None):
            runs.rename(connection, row["id"], read.run_id)
        elif earlier:
            count = counted(len({row["run_id"] for row in earlier}), "run")
            message = f"{count} read from this path before, which had other bytes, stays stored"
            remedy = f"`perfdb withdraw {read.path}` withdraws all that was read from it"
            notes[read.run_id] = Diagnostic(read.path, message, remedy=remedy)
    return notes


def _earlier(connection: Connection, logs: Sequence[RunRead]) -> Sequence[Sequence[RowMapping]]:
    """The runs that were read from the path of each log, the longest log first."""
    paths = [spellings(one.files.record_file.path) for one in logs]
    rows: list[RowMapping] = []
    for some in keys.chunks({path for names in paths for path in names}):
        which = keys.among(connection, sources.c.path, some)
        rows += connection.execute(questions.logs_at(which)).mappings()
    return [[row for row in rows if row["path"] in names] for names in paths]


def _begins_with(read: RunRead, row: RowMapping) -> bool:
    """Whether a log holds all bytes of a run's log and more, of its number among the log's runs.

    `row` has the columns of `perfdb.queries.runs.logs_at`.
    """
    file, number = read.files.record_file, number_in_log(read.run_id)
    if row["size_bytes"] >= file.size_bytes or number_in_log(row["run_id"]) != number:
        return False
    digest, left = hashlib.sha256(), row["size_bytes"]
    for chunk in _chunks(file):
        digest.update(chunk[:left])
        left -= len(chunk)
        if left <= 0:
            break
    return bool(digest.hexdigest() == row["sha256"])


def _chunks(file: SourceFile) -> Iterable[bytes]:
    if isinstance(file.content, bytes):
        return [file.content]
    return packing.unpacked_pieces(file.content.compressed())


def _put_unattributed(connection: Connection, read: Unattributed, when: datetime) -> Stored:
    line = read.problem.line
    held = None if read.explicit else results.held(connection, read.source, read.run_id, line)
    if held:
        is_same_version = held.parser_version == read.source.parser_version
        return _as_before(read, None, is_same_version=is_same_version)
    files.id_of(connection, read.source, when)
    return Stored(read)


def _put_page(connection: Connection, read: PageRows, when: datetime) -> Stored:
    """Store the rows of a page; the results that it no longer has are withdrawn.

    Where a row of it is rejected, nobody knows which these are: they stay.
    """
    known_path = pages.spelled(connection, read.source, spellings(read.source.path))
    path = known_path or read.source.path
    read = replace(read, source=replace(read.source, path=path))
    rows = [row for row in read.rows if read.explicit or not _is_held(connection, read.source, row)]
    whole = read.whole and not read.problems and len(rows) == len(read.rows)
    page = results.put_page(connection, read.source, rows, when, whole=whole)
    gone, dropped = page.withdrawn, 0
    if read.emptied:
        gone = results.all_stated(connection, path)
        results.withdraw(connection, gone, when)
    if read.rows or (read.emptied and known_path):
        pages.keep_state(connection, read.source, read.original, when)
    if read.emptied or (whole and rows):
        dropped = pages.drop(connection, path, read.rows, when)
    as_before = [Action.UNCHANGED] * (len(read.rows) - len(rows))
    notes = tuple(_stays_current(connection, read)) if read.problems else ()
    return Stored(
        read, (*page.actions, *as_before), len(gone) + dropped, read.problems,
        known=bool(as_before), notes=notes,
    )  # fmt: skip


def _stays_current(connection: Connection, read: PageRows) -> Iterator[Diagnostic]:
    """Results of a page with rejected rows that it may or may not have any more."""
    stated = {row.key for row in read.rows}
    left = [one for one in results.all_stated(connection, read.path) if one.key not in stated]
    if left:
        message = f"{counted(len(left), 'result')} read from it before stay current"
        remedy = "correct what is rejected: what the page no longer states is then withdrawn"
        yield Diagnostic(read.path, message, remedy=remedy)


def _is_held(connection: Connection, source: SourceFile, row: ResultRow) -> bool:
    """Whether a line was read before, by this version or as a result that more was known of."""
    held = results.held(connection, source, None, row.source_line)
    return held is not None and (
        held.parser_version == source.parser_version or held.subject != results.subject(row)
    )


def _log_entries(done: Stored) -> Iterator[LogEntry]:
    path, new = done.read.path, done.actions.count(Action.NEW)
    counts = {
        "new": new,
        "revised": done.actions.count(Action.REVISED),
        "withdrawn": done.withdrawn,
    }
    parts = [f"{count} {word}" for word, count in counts.items() if count]
    if parts:
        action = Action.NEW if parts == [f"{new} new"] else Action.REVISED
        reason = done.read.reason if isinstance(done.read, PageRows) else ""
        text = ": ".join(filter(None, (", ".join(parts), reason)))
        yield LogEntry(path, action, reason=text, stated_reason=reason or None)
    if isinstance(done.read, Unattributed) and not done.known:
        problem = done.read.problem
        yield LogEntry(path, Action.UNATTRIBUTED, problem.line, problem.reason)
    for problem in done.problems:
        yield LogEntry(problem.where, Action.REJECTED, problem.line, problem.reason)
