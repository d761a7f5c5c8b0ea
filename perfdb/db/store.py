"""Every write there is. The caller owns the connection and its transaction.

Many processes may store the same things at once. Rows that several of them add are inserted in
the order of their key and in the same order of tables, so that on PostgreSQL they wait for each
other and do not deadlock; what remains (`is_race`) is settled by doing the transaction again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, func, insert, or_, select, update
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError

from perfdb import __version__
from perfdb.db import keys
from perfdb.db.rows import (
    Action,
    LogEntry,
    MeasuredRun,
    PageWritten,
    ResultRow,
    RunFiles,
    SourceFile,
)
from perfdb.db.tables import cases, ingest_log, releases, results, run_files, runs, sources, steps
from perfdb.record import Origin

RACES = ("40001", "40P01")
"""PostgreSQL: serialization failure, deadlock detected."""


def is_race(error: DBAPIError) -> bool:
    """Whether another process was in the way, so that the same transaction may succeed now."""
    if isinstance(error, IntegrityError):
        return True
    busy = "database is locked" in str(error.orig)
    return isinstance(error, OperationalError) and (
        busy or getattr(error.orig, "sqlstate", None) in RACES
    )


def put_run(connection: Connection, given: MeasuredRun, files: RunFiles, when: datetime) -> Action:
    """Store a run, its files, steps and result; read anew from other bytes, it replaces itself."""
    take_turns(connection, given.run.run_id)
    known = connection.execute(
        select(runs.c.id, runs.c.content_hash).where(runs.c.run_id == given.run.run_id)
    ).one_or_none()
    if known and known.content_hash == given.run.content_hash:
        return Action.UNCHANGED
    by_path = keys.source_ids(connection, list(files.by_name.values()), when)
    by_name = {name: by_path[file.path] for name, file in files.by_name.items()}
    run_id = _put_run_row(connection, given, by_name[files.record], known.id if known else None)
    _put_steps_and_files(connection, run_id, given, by_name)
    past = _written(connection, [given.result.key])
    _supersede(connection, _in_force_of_run(connection, run_id), when)
    _append(connection, [given.result], past, Place(by_name[files.measured_in], run_id, when))
    return Action.REVISED if known else Action.NEW


def put_page(
    connection: Connection,
    source: SourceFile,
    given: Sequence[ResultRow],
    when: datetime,
    *,
    whole: bool = True,
) -> PageWritten:
    """Store the rows of a published page; a row that says something else is a new revision.

    Where every row could be read (`whole`), the results that an earlier state of the page had and
    this one does not are withdrawn.
    """
    take_turns(connection, source.path)
    past = _written(connection, [row.key for row in given])
    actions = [_action(row, past.get(row.key, ()), source.path) for row in given]
    changed = [
        row for row, action in zip(given, actions, strict=True) if action is not Action.UNCHANGED
    ]
    withdrawn = _withdraw(connection, source.path, given, when) if whole else 0
    if changed:
        source_id = keys.source_ids(connection, [source], when)[source.path]
        stale = [one.id for row in changed for one in past.get(row.key, ()) if not one.superseded]
        _supersede(connection, stale, when)
        _append(connection, changed, past, Place(source_id, None, when))
    return PageWritten(tuple(actions), withdrawn)


def keep(connection: Connection, source: SourceFile, when: datetime) -> None:
    """Store the bytes of a source that nothing can be told of yet."""
    keys.source_ids(connection, [source], when)


def log(connection: Connection, entry: LogEntry, when: datetime) -> None:
    """Note what became of a source; what was not stored and is noted already is not noted again."""
    row = {"path": entry.path, "action": entry.action, "line": entry.line, "reason": entry.reason}
    same = [ingest_log.c[name].is_not_distinct_from(value) for name, value in row.items()]
    repeated = entry.action in (Action.REJECTED, Action.UNATTRIBUTED) and connection.scalar(
        select(ingest_log.c.id).where(*same).limit(1)
    )
    if not repeated:
        connection.execute(insert(ingest_log), row | {"at": when, "perfdb_version": __version__})


def take_turns(connection: Connection, what: str) -> None:
    """Wait for a process that is storing the same thing, so as to find it there and unchanged.

    A SQLite transaction holds the only write lock from its beginning.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(what, 0))))


@dataclass(frozen=True)
class Place:
    """Where results come from: their source, and the run if they are measured."""

    source_id: int
    run_id: int | None
    when: datetime


@dataclass(frozen=True)
class Written:
    """A result that is in the store, and the path that it was read from."""

    id: int
    key: str
    revision: int
    superseded: bool
    content_hash: str
    path: str


def _put_run_row(
    connection: Connection, given: MeasuredRun, source_id: int, known: int | None
) -> int:
    result = given.result
    release_id = keys.release_ids(connection, [result.release])[result.release.key]
    case_id = keys.case_ids(connection, [result.case])[result.case.key]
    row = vars(given.run) | {
        "case_id": case_id,
        "release_id": release_id,
        "source_id": source_id,
    }
    if known is None:
        return int(connection.scalar(insert(runs).returning(runs.c.id), row))
    connection.execute(update(runs).where(runs.c.id == known).values(row))
    return known


def _put_steps_and_files(
    connection: Connection, run_id: int, given: MeasuredRun, by_name: Mapping[str, int]
) -> None:
    for table in (steps, run_files):
        connection.execute(delete(table).where(table.c.run_id == run_id))
    if given.steps:
        connection.execute(insert(steps), [vars(step) | {"run_id": run_id} for step in given.steps])
    files = [
        {"run_id": run_id, "name": name, "source_id": source_id}
        for name, source_id in by_name.items()
    ]
    connection.execute(insert(run_files), files)


def _written(connection: Connection, wanted: Sequence[str]) -> dict[str, tuple[Written, ...]]:
    """Every revision of the results of these keys, oldest first."""
    found: dict[str, tuple[Written, ...]] = {}
    columns = [results.c[name] for name in ("id", "key", "revision", "superseded", "content_hash")]
    for some in keys.chunks(wanted):
        question = (
            select(*columns, sources.c.path)
            .join(sources, results.c.source_id == sources.c.id)
            .where(results.c.key.in_(some))
            .order_by(results.c.revision)
        )
        for row in connection.execute(question):
            one = Written(**row._mapping)
            found[one.key] = (*found.get(one.key, ()), one)
    return found


def _action(row: ResultRow, past: Sequence[Written], path: str) -> Action:
    """What storing a row of a page means, given the revisions there are of it.

    Two pages may state the same result differently, and the one read later holds. Reading the
    earlier one again, as it was, changes nothing: only a page that changed speaks anew.
    """
    if not past:
        return Action.NEW
    in_force = next((one for one in past if not one.superseded), None)
    if in_force is None:
        return Action.REVISED
    said_here = [one.content_hash for one in past if one.path == path]
    unchanged = row.content_hash in (in_force.content_hash, *said_here[-1:])
    return Action.UNCHANGED if unchanged else Action.REVISED


def _in_force_of_run(connection: Connection, run_id: int) -> Sequence[int]:
    return connection.scalars(
        select(results.c.id).where(results.c.run_id == run_id, ~results.c.superseded)
    ).all()


def _supersede(connection: Connection, ids: Sequence[int], when: datetime) -> None:
    if ids:
        connection.execute(
            update(results)
            .where(results.c.id.in_(sorted(ids)))
            .values(superseded=True, superseded_at=when)
        )


def _append(
    connection: Connection,
    given: Sequence[ResultRow],
    past: Mapping[str, Sequence[Written]],
    place: Place,
) -> None:
    """Add a revision to each result."""
    release = keys.release_ids(connection, [row.release for row in given])
    case = keys.case_ids(connection, [row.case for row in given])
    rows = []
    for row in sorted(given, key=lambda row: row.key):
        earlier = [one.revision for one in past.get(row.key, ())]
        ids = {"case_id": case[row.case.key], "release_id": release[row.release.key]}
        columns = {name: value for name, value in vars(row).items() if name in results.c}
        rows.append(
            columns
            | ids
            | {
                "revision": max(earlier, default=0) + 1,
                "source_id": place.source_id,
                "run_id": place.run_id,
                "created_at": place.when,
            }
        )
    connection.execute(insert(results), rows)


def _withdraw(connection: Connection, path: str, given: Sequence[ResultRow], when: datetime) -> int:
    """Supersede what an earlier state of a page said and this one does not; the result is how many.

    It is the same page if it still shows one of its cases. Only rows of the releases it states now
    are withdrawn, or of no stated release: a page that now shows the next release leaves the last
    one as it was.
    """
    versions = {row.release.version for row in given if row.release.version}
    earlier = connection.execute(
        select(results.c.id, results.c.key, cases.c.key.label("case_key"))
        .join(sources, results.c.source_id == sources.c.id)
        .join(cases, results.c.case_id == cases.c.id)
        .join(releases, results.c.release_id == releases.c.id)
        .where(
            sources.c.path == path,
            results.c.origin == Origin.PUBLISHED.value,
            ~results.c.superseded,
            or_(releases.c.version.in_(sorted(versions)), releases.c.version.is_(None)),
        )
    ).all()
    stated = {row.key for row in given}
    shown = {row.case.key for row in given}
    if not any(row.case_key in shown for row in earlier):
        return 0
    gone = [row.id for row in earlier if row.key not in stated]
    _supersede(connection, gone, when)
    return len(gone)
