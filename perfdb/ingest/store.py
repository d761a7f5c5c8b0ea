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
from typing import Final

from sqlalchemy import Connection, Engine, RowMapping
from sqlalchemy.exc import DataError

from perfdb.db import keys, packing, pages, results, runs
from perfdb.db import sources as files
from perfdb.db.rows import ResultRow
from perfdb.db.session import retried, take_turns
from perfdb.db.sources import Action, LogEntry
from perfdb.db.tables import sources
from perfdb.errors import Diagnostic
from perfdb.ingest import identity
from perfdb.ingest.logs import number_in_log
from perfdb.ingest.reads import (
    PAGE,
    PageRows,
    Read,
    RunRead,
    Skipped,
    Unattributed,
    Unchanged,
    rejected,
)
from perfdb.ingest.runs import RunFound, parsed
from perfdb.queries import runs as questions
from perfdb.units import counted

_TWO_RUNS: Final = (
    "give one of two runs another run_id; of two copies keep the right one, at that path"
)


@dataclass(frozen=True)
class Stored:
    """What became of one source.

    `known`: the store has it already, read with options that are not used now. `same_as`: the file
    with the same bytes that the store has; nothing of this one is stored.
    """

    read: Read
    actions: tuple[Action, ...] = ()
    withdrawn: int = 0
    problems: tuple[Diagnostic, ...] = ()
    known: bool = False
    notes: tuple[Diagnostic, ...] = ()
    same_as: str | None = None


def put(engine: Engine, batch: Sequence[Read | RunFound]) -> Iterator[Stored]:
    """Store a batch, in its order; what became of each source."""
    group: dict[str, RunRead] = {}
    are_logs = False
    for read in parsed(engine, batch):
        run = read if isinstance(read, RunRead) else None
        # Logs are apart from run directories, which may hold them.
        if group and (run is None or run.run_id in group or run.is_log is not are_logs):
            yield from _put_group(engine, list(group.values()))
            group = {}
        if run:
            group[run.run_id], are_logs = run, run.is_log
        elif isinstance(read, Unchanged):
            yield _unchanged(read, read.withdrawn)
        elif isinstance(read, Skipped):
            yield Stored(read)
        else:
            yield from _put_group(engine, [read])
    if group:
        yield from _put_group(engine, list(group.values()))


def spellings(path: str) -> tuple[str, ...]:
    """The names of a file: as stated, relative to the working directory, absolute, and what
    a link leads to.
    """
    real = os.path.realpath(path)
    return (path, os.path.relpath(path), str(Path(path).absolute()), real, os.path.relpath(real))


def _put_group(engine: Engine, group: Sequence[Read]) -> Sequence[Stored]:
    """Store sources together; if one of them cannot be stored, each half by itself."""
    try:
        return retried(partial(_in_one_transaction, engine, group))
    except (DataError, OverflowError) as error:
        # A source is well formed and yet has what no column can hold, such as 10²⁰ GPUs.
        if len(group) == 1:
            cause = error.orig if isinstance(error, DataError) else error
            return _put_group(engine, [rejected(group[0].path, f"cannot be stored: {cause}")])
    half = len(group) // 2
    return [*_put_group(engine, group[:half]), *_put_group(engine, group[half:])]


def _in_one_transaction(engine: Engine, group: Sequence[Read]) -> Sequence[Stored]:
    when, first = datetime.now(UTC), group[0]
    with engine.begin() as connection:
        if isinstance(first, RunRead):
            done = _put_runs(connection, [it for it in group if isinstance(it, RunRead)], when)
        elif isinstance(first, PageRows):
            done = [_put_page(connection, first, when)]
        elif isinstance(first, Unattributed):
            done = [_put_unattributed(connection, first, when)]
        else:
            done = [Stored(first, problems=first.problems)]
        files.log(connection, [entry for one in done for entry in _log_entries(one)], when)
        return done


def _log_entries(done: Stored) -> Iterator[LogEntry]:
    read, new, revised = done.read, *map(done.actions.count, (Action.NEW, Action.REVISED))
    counts = {"new": new, "revised": revised, "withdrawn": done.withdrawn}
    if parts := [f"{count} {word}" for word, count in counts.items() if count]:
        action = Action.NEW if parts == [f"{new} new"] else Action.REVISED
        reason = read.reason if isinstance(read, PageRows) else ""
        text = ": ".join(filter(None, (", ".join(parts), reason)))
        yield LogEntry(read.path, action, reason=text, stated_reason=reason or None)
    if isinstance(read, Unattributed) and not done.known:
        problem = read.problem
        yield LogEntry(read.path, Action.UNATTRIBUTED, problem.line, problem.reason)
    for problem in done.problems:
        yield LogEntry(problem.where, Action.REJECTED, problem.line, problem.reason)


def _put_runs(connection: Connection, read: Sequence[RunRead], when: datetime) -> Sequence[Stored]:
    done: dict[str, Stored] = {}
    notes: Mapping[str, tuple[Diagnostic, ...]] = {}
    if read[0].is_log:
        take_turns(connection, "runs")
        there = runs.known(connection, {it for one in read for it in identity.ids_of(one)})
        read, done = _of_releases(read, there)
        done |= _not_read_again(connection, [it for it in read if it.run_id not in done], there)
        unknown = [one for one in read if one.run_id not in done and one.run_id not in there]
        notes = _grown(connection, unknown)
    added = [one for one in read if one.run_id not in done]
    inputs = [runs.RunInput(one.run, one.files, one.window) for one in added]
    for one, written in zip(added, runs.put(connection, inputs, when), strict=True):
        other, action = Path(written.other or "").parent, (written.action,)
        if written.action is Action.UNCHANGED and written.other:
            message = f"has no more than {other} of the run {one.run_id!r}, which stays as it is"
            done[one.run_id] = Stored(one, action, notes=(Diagnostic(one.path, message),))
        elif written.action is Action.UNCHANGED:
            done[one.run_id] = _unchanged(one, written.withdrawn)
        elif written.other is None:
            done[one.run_id] = Stored(one, action, notes=notes.get(one.run_id, ()))
        else:
            message = f"the run {one.run_id!r} of {other} is in the store and differs"
            problem = Diagnostic(one.path, message, remedy=_TWO_RUNS)
            done[one.run_id] = Stored(one, problems=(problem,))
    return [done[one.run_id] for one in read]


def _of_releases(
    logs: Sequence[RunRead], there: Mapping[str, runs.Known]
) -> tuple[Sequence[RunRead], dict[str, Stored]]:
    """Logs with their ids for their releases, and those that are not stored, by run id."""
    found, refused = list[RunRead](), dict[str, Stored]()
    for one in logs:
        own = identity.run_of_release(one, there)
        found.append(one if isinstance(own, Diagnostic) else own)
        if isinstance(own, Diagnostic):
            refused[one.run_id] = Stored(one, problems=(own,))
    return found, refused


def _unchanged(read: RunRead | Unchanged, withdrawn: str | None) -> Stored:
    """A run that stays as it is; a note for one that was withdrawn."""
    if withdrawn is None:
        return Stored(read, (Action.UNCHANGED,))
    remedy = "`perfdb withdraw --undo` makes it count again"
    note = Diagnostic(read.path, f"stays withdrawn: {withdrawn}", remedy=remedy)
    return Stored(read, (Action.UNCHANGED,), notes=(note,))


def _not_read_again(
    connection: Connection, logs: Sequence[RunRead], there: Mapping[str, runs.Known]
) -> dict[str, Stored]:
    """The logs of which nothing is stored, by run id: their bytes are in the store.

    Those of a run directory's own log; and those that were read before, maybe with options, and are
    read without any now.
    """
    found: dict[str, Stored] = {}
    in_runs = _in_run_directories(connection, [one.files.record_file.sha256 for one in logs])
    for read in logs:
        file, old = read.files.record_file, there.get(read.run_id)
        if other := in_runs.get(file.sha256):
            found[read.run_id] = Stored(read, known=True, same_as=other)
        elif old and not read.explicit and old.content_hash != read.run.run.content_hash:
            # What another version has read as the same case and release is read again.
            is_moved = old.path not in spellings(file.path)
            if is_moved or runs.held(connection, read.run_id, read.files) is not None:
                found[read.run_id] = replace(_unchanged(read, old.withdrawn), known=True)
    return found


def _in_run_directories(connection: Connection, hashes: Iterable[str]) -> Mapping[str, str]:
    """The paths of logs of these hashes in run directories that are in the store."""
    there: dict[int, str] = {}
    for some in keys.chunks(set(hashes)):
        which = keys.among(connection, sources.c.sha256, some)
        there |= {row.id: row.sha256 for row in connection.execute(questions.with_bytes(which))}
    rows = connection.execute(questions.of_files(there)) if there else ()
    return {there[source_id]: path for source_id, _, path in rows}


def _grown(connection: Connection, new: Sequence[RunRead]) -> Mapping[str, tuple[Diagnostic, ...]]:
    """Give the runs of logs that grew the ids of what was read of them now.

    A log is a later state of another one by its path and its first bytes. Notes on other runs that
    were read from the path, by the ids of the runs read now.
    """
    names = {one.run_id: spellings(one.files.record_file.path) for one in new}
    rows: list[RowMapping] = []
    for some in keys.chunks({path for paths in names.values() for path in paths}):
        which = keys.among(connection, sources.c.path, some)
        rows += connection.execute(questions.logs_at(which)).mappings()
    notes: dict[str, tuple[Diagnostic, ...]] = {}
    for read in new:
        bytes_now = read.files.record_file.sha256
        earlier = [
            row for row in rows if row["path"] in names[read.run_id] and row["sha256"] != bytes_now
        ]
        version = read.run.result.release.version
        same = [row for row in earlier if not version or identity.is_of(row["version"], version)]
        if row := next((row for row in same if _begins_with(read, row)), None):
            runs.rename(connection, row["id"], read.run_id)
        elif earlier:
            count = counted(len({row["run_id"] for row in earlier}), "run")
            message = f"{count} read from this path before, which had other bytes, stays stored"
            remedy = f"`perfdb withdraw {read.path}` withdraws all that was read from it"
            notes[read.run_id] = (Diagnostic(read.path, message, remedy=remedy),)
    return notes


def _begins_with(read: RunRead, row: RowMapping) -> bool:
    """Whether a log holds all bytes of a run's log and more, of its number among the log's runs.

    `row` has the columns of `perfdb.queries.runs.logs_at`.
    """
    file, number, left = read.files.record_file, number_in_log(read.run_id), row["size_bytes"]
    if left >= file.size_bytes or number_in_log(row["run_id"]) != number:
        return False
    content, digest = file.content, hashlib.sha256()
    held = [content] if isinstance(content, bytes) else content.compressed()
    pieces = held if isinstance(content, bytes) else packing.unpacked_pieces(held)
    for chunk in pieces:
        digest.update(chunk[:left])
        left -= len(chunk)
        if left <= 0:
            break
    return bool(digest.hexdigest() == row["sha256"])


def _put_unattributed(connection: Connection, read: Unattributed, when: datetime) -> Stored:
    line = read.problem.line
    if not read.explicit and results.held(connection, read.source, read.run_id, line):
        return Stored(read, (Action.UNCHANGED,), known=True)
    files.id_of(connection, read.source, when)
    return Stored(read)


def _put_page(connection: Connection, read: PageRows, when: datetime) -> Stored:
    """Store the rows of a page; the results that it no longer has are withdrawn.

    If a row of it is rejected, nobody knows which these are: they stay.
    """
    known_path = pages.spelled(connection, read.source, spellings(read.source.path))
    path = known_path or read.source.path
    read = replace(read, path=path, source=replace(read.source, path=path))
    if read.source.parser != PAGE:
        take_turns(connection, path)
        past = results.written(connection, identity.keys_of(read))
        read = identity.rows_of_release(read, past)
    as_before = [row for row in read.rows if row.key in read.as_before]
    held = {row.key for row in as_before if _is_held(connection, read, row)}
    rows = [row for row in read.rows if row.key not in held]
    whole = read.whole and not read.problems and len(rows) == len(read.rows)
    page = results.put_page(connection, read.source, rows, when, whole=whole)
    files.ids(connection, read.beside, when)
    gone, dropped = page.withdrawn, 0
    if read.emptied:
        gone = results.all_stated(connection, path)
        results.withdraw(connection, gone, when)
    if read.rows or (read.emptied and known_path):
        pages.keep_state(connection, read.source, read.original, when)
    if read.emptied or (whole and rows):
        dropped = pages.drop(connection, path, read.rows, when)
    notes: tuple[Diagnostic, ...] = ()
    if read.problems:
        # Results that the page may or may not have any more.
        stated = {row.key for row in read.rows}
        if left := [it for it in results.all_stated(connection, path) if it.key not in stated]:
            message = f"{counted(len(left), 'result')} read from it before stay current"
            remedy = "correct what is rejected: what the page no longer states is then withdrawn"
            notes = (Diagnostic(path, message, remedy=remedy),)
    return Stored(
        read, (*page.actions, *[Action.UNCHANGED] * len(held)), len(gone) + dropped,
        read.problems, known=bool(held), notes=notes,
    )  # fmt: skip


def _is_held(connection: Connection, read: PageRows, row: ResultRow) -> bool:
    """Whether a line was read before, by this version or as a result that more was known of."""
    held = results.held(connection, read.source, None, row.source_line)
    is_read = held is not None and held.parser_version == read.source.parser_version
    return held is not None and (is_read or held.subject != results.subject(row))
