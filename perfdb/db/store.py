"""What is written of pages and in the log. The caller owns the connection and its transaction.

Many processes may store the same things at once. Rows that several of them add are inserted in
the order of their key and in the same order of tables, so that on PostgreSQL they wait for each
other and do not deadlock; what remains is settled by doing the transaction again
(`perfdb.db.session.retried`).
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from sqlalchemy import Connection, select

from perfdb import __version__
from perfdb.db import bulk, files, marks, revisions, withdrawal
from perfdb.db.actions import Action
from perfdb.db.revisions import Past, Place, Written
from perfdb.db.rows import LogEntry, PageWritten, ResultRow, SourceFile
from perfdb.db.session import take_turns
from perfdb.db.tables import ingest_log


def put_page(
    connection: Connection,
    source: SourceFile,
    given: Sequence[ResultRow],
    when: datetime,
    *,
    whole: bool = True,
) -> PageWritten:
    """Store the rows of a published page; a row that says something else is a new revision.

    One that says the same as before stands from now on where this state of the page has it.
    Where every row could be read (`whole`), the results that an earlier state of the page had and
    this one does not are withdrawn.
    """
    take_turns(connection, source.path)
    past = revisions.written(connection, [row.key for row in given])
    actions = [_action(row, past.get(row.key, ()), source.path) for row in given]
    acted = list(zip(given, actions, strict=True))
    changed = [row for row, action in acted if action is not Action.UNCHANGED]
    kept = [row for row, action in acted if action is Action.UNCHANGED]
    gone = withdrawal.no_longer_stated(connection, source.path, given) if whole else ()
    release_ids = revisions.supersede(connection, [one.id for one in gone], when)
    moved = [(one.id, row) for row in kept for one in _read_before(row, past, source)]
    if changed or moved:
        number = files.ids(connection, [source], when)[files.natural(source)]
        places = [(id_, number, row) for id_, row in moved]
        release_ids |= revisions.move(connection, places)
        stale = [one.id for row in changed for one in past.get(row.key, ()) if not one.superseded]
        release_ids |= revisions.supersede(connection, stale, when)
        rows = [(row, Place(number, None, when)) for row in changed]
        release_ids |= revisions.append(connection, rows, past)
    marks.take_away(connection, release_ids)
    return PageWritten(tuple(actions), gone)


def _read_before(row: ResultRow, past: Past, source: SourceFile) -> Iterator[Written]:
    """What the page said last of an unchanged row, in another state or as another version read it.

    Another page may hold the result since.
    """
    said_here = [one for one in past.get(row.key, ()) if one.path == source.path]
    read = (source.sha256, source.parser_version)
    yield from (one for one in said_here[-1:] if (one.sha256, one.parser_version) != read)


def log(connection: Connection, entries: Iterable[LogEntry], when: datetime) -> None:
    """Note what became of sources; what was not stored and is noted already is not noted again."""
    noted = [entry for entry in dict.fromkeys(entries) if not _is_noted(connection, entry)]
    columns = ("path", "action", "line", "reason", "at", "perfdb_version")
    rows = [(one.path, one.action, one.line, one.reason, when, __version__) for one in noted]
    bulk.add(connection, ingest_log, columns, rows)


def _is_noted(connection: Connection, entry: LogEntry) -> bool:
    if entry.action not in (Action.REJECTED, Action.UNATTRIBUTED):
        return False
    same = [ingest_log.c[name].is_not_distinct_from(value) for name, value in vars(entry).items()]
    return connection.scalar(select(ingest_log.c.id).where(*same).limit(1)) is not None


def _action(row: ResultRow, past: Sequence[Written], path: str) -> Action:
    """What storing a row of a page means, given the revisions there are of it.

    Two pages may state the same result differently, and the one read later holds. Reading the
    earlier one again, as it was, changes nothing: only a page that changed speaks anew, also where
    it comes to agree with the other, or to state again what it had withdrawn.
    """
    if not past:
        return Action.NEW
    in_force = next((one for one in past if not one.superseded), None)
    if in_force is None:
        return Action.REVISED
    said_here = [place for place, one in enumerate(past) if one.path == path]
    if said_here and _was_withdrawn(*past[said_here[-1] :][:2]):
        return Action.REVISED
    last = past[said_here[-1]] if said_here else in_force
    return Action.UNCHANGED if row.content_hash == last.content_hash else Action.REVISED


def _was_withdrawn(one: Written, following: Written | None = None) -> bool:
    """Whether a revision had ended before the one that follows it began."""
    return following is not None and one.superseded_at not in (None, following.created_at)
