"""Revisions of results: those of pages are written here, those of runs by `perfdb.db.runs`.

The caller owns the connection and its transaction. Many processes may store the same things at
once. Rows that several of them add are inserted in the order of their key and in the same order of
tables, so that on PostgreSQL they wait for each other and do not deadlock; what remains is settled
by trying the transaction again (`perfdb.db.session.retried`).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from operator import attrgetter, itemgetter
from typing import Final, NamedTuple

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    RowMapping,
    bindparam,
    insert,
    or_,
    select,
    update,
)

from perfdb.db import bulk, findings, keys
from perfdb.db import sources as stored_sources
from perfdb.db.ingest_log import Action
from perfdb.db.rows import ResultRow, SourceFile
from perfdb.db.session import take_turns
from perfdb.db.tables import cases, releases, results, runs, sources
from perfdb.fields import DERIVED
from perfdb.record import Origin

_COLUMNS = tuple(field.name for field in fields(ResultRow) if field.name in results.c)
_cells = attrgetter(*_COLUMNS, *(f"case.{name}" for name in DERIVED))
_KEY = _COLUMNS.index("key")
_ADDED = ("case_id", "release_id", "revision", "source_id", "run_id", "created_at")
_WRITTEN = (
    "id", "key", "revision", "superseded", "content_hash", "created_at", "superseded_at",
)  # fmt: skip
_OF_A_REVISION = ("id", "superseded", "superseded_at")
_COMPARED = tuple(name for name in _COLUMNS if name not in ("content_hash", "formula_version"))
_MOVED: Final[Mapping[str, BindParameter[object]]] = {
    "source_id": bindparam("source"),
    "source_line": bindparam("line"),
    **{name: bindparam(f"its_{name}") for name in DERIVED},
}


class ResultPlace(NamedTuple):
    """Where a result comes from: its source, and the run if it is measured."""

    source_id: int
    run_id: int | None
    when: datetime


@dataclass(frozen=True)
class Revision:
    """The new content of the result of this id. Other columns stay as they are."""

    result_id: int
    content_hash: str
    columns: Mapping[str, object]


class Written(NamedTuple):
    """A result that is in the store, and the path that it was read from."""

    id: int
    key: str
    revision: int
    superseded: bool
    content_hash: str
    created_at: datetime
    superseded_at: datetime | None
    path: str
    sha256: str
    parser_version: int


Past = Mapping[str, Sequence[Written]]
"""Every revision of results, by their key, oldest first."""


@dataclass(frozen=True)
class Withdrawn:
    """A result that its page no longer states: its id and key, the state of the page that stated
    it, and the case and the release that it is of.
    """

    id: int
    key: str
    source_id: int
    case_key: str
    framework: str
    release: str | None
    container: str | None


@dataclass(frozen=True)
class PageWritten:
    """What became of each row of a page, and the results that it no longer has."""

    actions: tuple[Action, ...]
    withdrawn: tuple[Withdrawn, ...]


@dataclass(frozen=True)
class Held:
    """What was read of these very bytes before: by which version, and of what."""

    parser_version: int
    subject: str


def written(connection: Connection, wanted: Iterable[str]) -> Past:
    """Every revision there is of the results of these keys."""
    found: dict[str, tuple[Written, ...]] = {}
    columns = [results.c[name] for name in _WRITTEN]
    for some in keys.chunks(wanted):
        question = (
            select(*columns, sources.c.path, sources.c.sha256, sources.c.parser_version)
            .join(sources, results.c.source_id == sources.c.id)
            .where(results.c.key.in_(some))
            .order_by(results.c.revision)
        )
        for row in map(Written._make, connection.execute(question)):
            found[row.key] = (*found.get(row.key, ()), row)
    return found


def put_page(
    connection: Connection,
    source: SourceFile,
    rows: Sequence[ResultRow],
    when: datetime,
    *,
    whole: bool = True,
) -> PageWritten:
    """Store the rows of a published page; a row that differs from before is a new revision.

    One that is the same as before is from now on where this state of the page has it. Where every
    row could be read (`whole`), the results that an earlier state of the page had and this one does
    not are withdrawn.
    """
    take_turns(connection, source.path)
    past = written(connection, [row.key for row in rows])
    actions = [_action(row, past.get(row.key, ()), source.path) for row in rows]
    acted = list(zip(rows, actions, strict=True))
    changed = [row for row, action in acted if action is not Action.UNCHANGED]
    kept = [row for row, action in acted if action is Action.UNCHANGED]
    gone = no_longer_stated(connection, source.path, rows) if whole and rows else ()
    release_ids = supersede(connection, [one.id for one in gone], when)
    moved = [(one.id, row) for row in kept for one in _read_before(row, past, source)]
    if changed or moved:
        number = stored_sources.id_of(connection, source, when)
        release_ids |= move(connection, [(id_, number, row) for id_, row in moved])
        stale = [one.id for row in changed for one in past.get(row.key, ()) if not one.superseded]
        release_ids |= supersede(connection, stale, when)
        place = ResultPlace(number, None, when)
        release_ids |= append(connection, [(row, place) for row in changed], past)
    findings.unmark(connection, release_ids)
    return PageWritten(tuple(actions), gone)


def _read_before(row: ResultRow, past: Past, source: SourceFile) -> Iterator[Written]:
    """What an unchanged row was last on this page, in another state or read by another version.

    Another page may hold the result since.
    """
    on_page = [one for one in past.get(row.key, ()) if one.path == source.path]
    read = (source.sha256, source.parser_version)
    yield from (one for one in on_page[-1:] if (one.sha256, one.parser_version) != read)


def _action(row: ResultRow, past: Sequence[Written], path: str) -> Action:
    """What storing a row of a page means, after the revisions there are of it.

    Two pages may state the same result differently, and the one read later holds. Reading the
    earlier one again, as it was, changes nothing: only a page that changed counts anew, also where
    it comes to agree with the other, or to state again what it had withdrawn.
    """
    if not past:
        return Action.NEW
    current = next((one for one in past if not one.superseded), None)
    if current is None:
        return Action.REVISED
    on_page = [place for place, one in enumerate(past) if one.path == path]
    if on_page and _was_withdrawn(*past[on_page[-1] :][:2]):
        return Action.REVISED
    last = past[on_page[-1]] if on_page else current
    return Action.UNCHANGED if row.content_hash == last.content_hash else Action.REVISED


def _was_withdrawn(one: Written, following: Written | None = None) -> bool:
    """Whether a revision had ended before the one that follows it began."""
    return following is not None and one.superseded_at not in (None, following.created_at)


def no_longer_stated(
    connection: Connection, path: str, rows: Sequence[ResultRow]
) -> tuple[Withdrawn, ...]:
    """The current results that were read from this path before and are not on the page now.

    Only those of the releases that it states now, or of no stated release: a page that now shows
    the next release leaves the last one as it was.
    """
    stated = {row.key for row in rows}
    earlier = _of_page(connection, path, of_releases(rows))
    return tuple(one for one in earlier if one.key not in stated)


def of_releases(given: Sequence[ResultRow]) -> ColumnElement[bool]:
    """Of the releases that a page states, or of no stated release."""
    versions = {row.release.version for row in given if row.release.version}
    return or_(releases.c.version.in_(sorted(versions)), releases.c.version.is_(None))


def all_stated(connection: Connection, path: str) -> tuple[Withdrawn, ...]:
    """Every current result that was read from a page."""
    return tuple(_of_page(connection, path))


def _of_page(connection: Connection, path: str, *which: ColumnElement[bool]) -> Iterator[Withdrawn]:
    """The published current results of a path."""
    return _published(connection, sources.c.path == path, *which)


def _published(connection: Connection, *which: ColumnElement[bool]) -> Iterator[Withdrawn]:
    question = (
        select(
            results.c.id,
            results.c.key,
            results.c.source_id,
            cases.c.key.label("case_key"),
            releases.c.framework,
            releases.c.version.label("release"),
            releases.c.container,
        )
        .join(sources, results.c.source_id == sources.c.id)
        .join(cases, results.c.case_id == cases.c.id)
        .join(releases, results.c.release_id == releases.c.id)
        .where(results.c.origin == Origin.PUBLISHED.value, ~results.c.superseded, *which)
    )
    yield from (Withdrawn(*withdrawn_row) for withdrawn_row in connection.execute(question))


def withdraw(connection: Connection, gone: Sequence[Withdrawn], when: datetime) -> None:
    """Say of results that no page states them."""
    findings.unmark(connection, supersede(connection, [one.id for one in gone], when))


def held(
    connection: Connection, source: SourceFile, run_id: str | None, line: int | None
) -> Held | None:
    """The result of these bytes: of a run, or the current one of a line where there is no run.

    A run that was withdrawn has no current one.
    """
    of_line = ~results.c.superseded & (results.c.source_line == line)
    which = runs.c.run_id == run_id if run_id else of_line
    found = connection.execute(
        select(sources.c.parser_version, cases.c.key.label("case"), releases.c.key.label("release"))
        .select_from(results)
        .join(cases, results.c.case_id == cases.c.id)
        .join(releases, results.c.release_id == releases.c.id)
        .join(sources, results.c.source_id == sources.c.id)
        .outerjoin(runs, results.c.run_id == runs.c.id)
        .where(sources.c.sha256 == source.sha256, which)
        .order_by(results.c.superseded, sources.c.parser_version.desc())
        .limit(1)
    ).first()
    return Held(found.parser_version, f"{found.case} {found.release}") if found else None


def subject(row: ResultRow) -> str:
    """What a result is of, whatever its figures."""
    return f"{row.case.key} {row.release.key}"


def supersede(connection: Connection, ids: Iterable[int], when: datetime) -> set[int]:
    """Mark results as no longer current, and since when; the releases they are of."""
    release_ids: set[int] = set()
    for some in keys.chunks(ids):
        which = results.c.id.in_(some)
        release_ids |= findings.releases_of(connection, which)
        ended = update(results).where(which, ~results.c.superseded)
        connection.execute(ended.values(superseded=True, superseded_at=when))
    return release_ids


def supersede_runs(connection: Connection, ids: Collection[int], when: datetime) -> set[int]:
    """The same of the current results of runs, by the ids of their rows."""
    question = select(results.c.id).where(results.c.run_id.in_(ids), ~results.c.superseded)
    return supersede(connection, connection.scalars(question), when)


def append(
    connection: Connection,
    added: Sequence[tuple[ResultRow, ResultPlace]],
    past: Past,
    ids: Sequence[tuple[int, int]] = (),
) -> set[int]:
    """Add a revision to each result; the releases they are of.

    `ids`: of the case and the release of each, where they are known.
    """
    known = ids or of_ids(connection, [row for row, _ in added])
    rows = []
    for (row, place), (case_id, release_id) in zip(added, known, strict=True):
        revision = 1 + max((one.revision for one in past.get(row.key, ())), default=0)
        rows.append((*_cells(row), case_id, release_id, revision, *place))
    columns = (*_COLUMNS, *DERIVED, *_ADDED)
    bulk.add(connection, results, columns, sorted(rows, key=itemgetter(_KEY)))
    return {release_id for _, release_id in known}


def of_ids(connection: Connection, rows: Sequence[ResultRow]) -> list[tuple[int, int]]:
    """The ids of the case and the release of each result; those not there yet are added."""
    release_ids = keys.release_ids(connection, [row.release for row in rows])
    case_ids = keys.case_ids(connection, [row.case for row in rows])
    return list(zip(case_ids, release_ids, strict=True))


def revise(connection: Connection, revised: Sequence[Revision], when: datetime) -> None:
    """Add a revision to each result, with other figures but of the same source.

    The unique key of a revision refuses one of two processes that revise the same result.
    """
    for start in range(0, len(revised), keys.AT_ONCE):
        some = revised[start : start + keys.AT_ONCE]
        _revise(connection, {one.result_id: one for one in some}, when)


def _revise(connection: Connection, revised: Mapping[int, Revision], when: datetime) -> None:
    last = connection.execute(
        select(results).where(results.c.id.in_(sorted(revised))).order_by(results.c.key)
    ).mappings()
    rows = [
        {
            **{name: value for name, value in row.items() if name not in _OF_A_REVISION},
            **revised[row["id"]].columns,
            "content_hash": revised[row["id"]].content_hash,
            "revision": row["revision"] + 1,
            "created_at": when,
        }
        for row in last
    ]
    release_ids = supersede(connection, revised, when)
    if rows:
        connection.execute(insert(results), rows)
    findings.unmark(connection, release_ids)


def same(connection: Connection, wanted: Mapping[int, ResultRow]) -> set[int]:
    """The ids of those results that equal the row for them, whoever computed it."""
    found: set[int] = set()
    for some in keys.chunks(wanted):
        columns = (results.c.id, *(results.c[name] for name in _COMPARED))
        rows = connection.execute(select(*columns).where(results.c.id.in_(some))).mappings()
        found |= {row["id"] for row in rows if _is_same(row, wanted[row["id"]])}
    return found


def _is_same(stored: RowMapping, row: ResultRow) -> bool:
    return all(_as_stored(stored[name]) == _as_stored(getattr(row, name)) for name in _COMPARED)


def _as_stored(value: object) -> object:
    """JSON has lists and objects alone."""
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value


def move(connection: Connection, moved: Iterable[tuple[int, int, ResultRow]]) -> set[int]:
    """Note that another source has results: their ids, its id, and what it states.

    Their line may be another one, and so may the GA and DP that are read of the same words. Returns
    the releases they are of, as their findings may name the line.
    """
    rows = [
        {"of": id_, "source": source_id, "line": row.source_line}
        | {f"its_{name}": getattr(row.case, name) for name in DERIVED}
        for id_, source_id, row in sorted(moved, key=itemgetter(0))
    ]
    release_ids: set[int] = set()
    for start in range(0, len(rows), keys.AT_ONCE):
        some = rows[start : start + keys.AT_ONCE]
        changed = update(results).where(results.c.id == bindparam("of"))
        connection.execute(changed.values(_MOVED), some)
        which = results.c.id.in_([row["of"] for row in some])
        release_ids |= findings.releases_of(connection, which)
    return release_ids
