"""Revisions of results: those of pages are written here, those of runs by `perfdb.db.runs`.

The caller owns the connection and its transaction. Many processes may store the same things at
once. Rows that several of them add are inserted in the order of their key and in the same order of
tables, so that on PostgreSQL they wait for each other and do not deadlock; what remains is settled
by trying the transaction again (`perfdb.db.session.retried`).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from operator import attrgetter, itemgetter
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, Row, bindparam, insert, or_, select, true, update

from perfdb.db import bulk, findings, keys
from perfdb.db import sources as stored_sources
from perfdb.db.rows import ResultRow, SourceFile
from perfdb.db.session import take_turns
from perfdb.db.sources import Action
from perfdb.db.tables import cases, releases, results, runs, sources
from perfdb.fields import DERIVED
from perfdb.record import Origin

_COLUMNS: Final = tuple(field.name for field in fields(ResultRow) if field.name in results.c)
_cells = attrgetter(*_COLUMNS, *(f"case.{name}" for name in DERIVED))
_ADDED: Final = ("case_id", "release_id", "revision", "source_id", "run_id", "created_at")
_NOT_COMPARED: Final = ("content_hash", "formula_version", "stated")
_COMPARED: Final = tuple(it for it in _COLUMNS if it not in _NOT_COMPARED)


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


class StatedResult(NamedTuple):
    """A current result that a page states, or stated."""

    id: int
    key: str


class PageWritten(NamedTuple):
    """What became of each row of a page, and the results that it no longer has."""

    actions: tuple[Action, ...]
    withdrawn: tuple[StatedResult, ...]


class Held(NamedTuple):
    """What was read of these very bytes before: by which version, and of what."""

    parser_version: int
    subject: str


Written = Row[Any]
"""A revision of a result that is in the store, with the source that it was read from."""

Past = Mapping[str, Sequence[Written]]
"""Every revision of results, by their key, oldest first."""


def written(connection: Connection, wanted: Iterable[str]) -> Past:
    """Every revision there is of the results of these keys."""
    found: dict[str, list[Written]] = {}
    of_result = ("id", "key", "revision", "superseded", "content_hash", "created_at")
    columns = [results.c[name] for name in (*of_result, "superseded_at")]
    columns += [sources.c[name] for name in ("path", "sha256", "parser_version")]
    columns.append(releases.c.version)
    joined = select(*columns).join(sources, results.c.source_id == sources.c.id)
    question = joined.join(releases, results.c.release_id == releases.c.id)
    for some in keys.chunks(wanted):
        of_keys = question.where(results.c.key.in_(some)).order_by(results.c.revision)
        for row in connection.execute(of_keys):
            found.setdefault(row.key, []).append(row)
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

    A row that is the same as before is from now on where this state of the page has it. If every
    row could be read (`whole`), the results that an earlier state of the page had and this one does
    not are withdrawn.
    """
    take_turns(connection, source.path)
    past = written(connection, [row.key for row in rows])
    actions = [_action(row, past.get(row.key, ()), source.path) for row in rows]
    changed, moved, stale = [], [], []
    for row, action in zip(rows, actions, strict=True):
        its_past = past.get(row.key, ())
        if action is not Action.UNCHANGED:
            changed.append(row)
            stale += [one.id for one in its_past if not one.superseded]
            continue
        on_page = [one for one in its_past if one.path == source.path]  # or on another page since
        read = (source.sha256, source.parser_version)
        if on_page and (on_page[-1].sha256, on_page[-1].parser_version) != read:
            moved.append((on_page[-1].id, row))
    stated = {row.key for row in rows}
    earlier = _of_page(connection, source.path, of_releases(rows)) if whole and rows else ()
    gone = tuple(one for one in earlier if one.key not in stated)
    release_ids = supersede(connection, [one.id for one in gone], when)
    if changed or moved:
        number = stored_sources.id_of(connection, source, when)
        release_ids |= move(connection, [(id_, number, row) for id_, row in moved])
        release_ids |= supersede(connection, stale, when)
        place = ResultPlace(number, None, when)
        release_ids |= append(connection, [(row, place) for row in changed], past)
    findings.unmark(connection, release_ids)
    return PageWritten(tuple(actions), gone)


def _action(row: ResultRow, past: Sequence[Written], path: str) -> Action:
    """What storing a row of a page means, after the revisions there are of it.

    Two pages may state the same result differently, and the one read later counts. Reading the
    earlier one again, as it was, changes nothing: only a page that changed counts anew, also if it
    comes to agree with the other, or to state again what it had withdrawn.
    """
    if not past:
        return Action.NEW
    current = next((one for one in past if not one.superseded), None)
    places = [place for place, one in enumerate(past) if one.path == path]
    last = past[places[-1]] if places else current
    if current is None or last is None:
        return Action.REVISED
    following = past[places[-1] + 1 :][:1] if places else ()
    # Withdrawn: a revision that had ended before the one that follows it began.
    was_withdrawn = following and last.superseded_at not in (None, following[0].created_at)
    is_same = row.content_hash == last.content_hash
    return Action.UNCHANGED if is_same and not was_withdrawn else Action.REVISED


def of_releases(given: Sequence[ResultRow]) -> ColumnElement[bool]:
    """Of the releases that a page states, or of no stated release.

    A page that now shows the next release leaves the results of the last one as they were.
    """
    versions = {row.release.version for row in given if row.release.version}
    return or_(releases.c.version.in_(sorted(versions)), releases.c.version.is_(None))


def _of_page(
    connection: Connection, path: str, which: ColumnElement[bool]
) -> tuple[StatedResult, ...]:
    question = (
        select(results.c.id, results.c.key)
        .join(sources, results.c.source_id == sources.c.id)
        .join(releases, results.c.release_id == releases.c.id)
        .where(results.c.origin == Origin.PUBLISHED.value, ~results.c.superseded)
        .where(sources.c.path == path, which)
    )
    return tuple(map(StatedResult._make, connection.execute(question)))


def all_stated(connection: Connection, path: str) -> tuple[StatedResult, ...]:
    """Every current result that was read from a page."""
    return _of_page(connection, path, true())


def withdraw(connection: Connection, gone: Sequence[StatedResult], when: datetime) -> None:
    """Note that no page states these results."""
    findings.unmark(connection, supersede(connection, [one.id for one in gone], when))


def held(
    connection: Connection, source: SourceFile, run_id: str | None, line: int | None
) -> Held | None:
    """The result of these bytes: of a run, or the current one of a line if there is no run.

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

    `ids`: of the case and the release of each, if they are known.
    """
    known = ids or of_ids(connection, [row for row, _ in added])
    rows = []
    for (row, place), (case_id, release_id) in zip(added, known, strict=True):
        revision = 1 + max((one.revision for one in past.get(row.key, ())), default=0)
        rows.append((*_cells(row), case_id, release_id, revision, *place))
    by_key = sorted(rows, key=itemgetter(_COLUMNS.index("key")))
    bulk.add(connection, results, (*_COLUMNS, *DERIVED, *_ADDED), by_key)
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
    by_id = {one.result_id: one for one in revised}
    for some in keys.chunks(by_id):
        last = select(results).where(results.c.id.in_(some)).order_by(results.c.key)
        rows = [
            {
                **{name: value for name, value in row.items() if name not in _NOT_REVISED},
                **by_id[row["id"]].columns,
                "content_hash": by_id[row["id"]].content_hash,
                "revision": row["revision"] + 1,
                "created_at": when,
            }
            for row in connection.execute(last).mappings()
        ]
        release_ids = supersede(connection, some, when)
        if rows:
            connection.execute(insert(results), rows)
        findings.unmark(connection, release_ids)


_NOT_REVISED: Final = ("id", "superseded", "superseded_at")


def same(connection: Connection, wanted: Mapping[int, ResultRow]) -> set[int]:
    """The ids of those results that equal the row for them, whoever computed it."""
    found: set[int] = set()
    for some in keys.chunks(wanted):
        columns = (results.c.id, *(results.c[name] for name in _COMPARED))
        question = select(*columns).where(results.c.id.in_(some))
        for row in connection.execute(question).mappings():
            ours = wanted[row["id"]]
            if all(_plain(row[name]) == _plain(getattr(ours, name)) for name in _COMPARED):
                found.add(row["id"])
    return found


def _plain(value: object) -> object:
    """A value in the types of JSON, which has lists and objects alone."""
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value


def move(connection: Connection, moved: Iterable[tuple[int, int, ResultRow]]) -> set[int]:
    """Note that another source has results: their ids, its id, and what it states.

    Their line may be another one, and so may the GA and DP that are read from the same words, and
    the options that they were read with.
    Returns the releases they are of, as their findings may name the line.
    """
    by_id = {number: (source_id, row) for number, source_id, row in moved}
    columns = ("source_id", "source_line", "stated", *DERIVED)
    changed = update(results).where(results.c.id == bindparam("of"))
    changed = changed.values({name: bindparam(f"its_{name}") for name in columns})
    release_ids: set[int] = set()
    for some in keys.chunks(by_id):
        rows = [
            {"of": number, "its_source_id": source_id, "its_source_line": row.source_line}
            | {"its_stated": row.stated}
            | {f"its_{name}": getattr(row.case, name) for name in DERIVED}
            for number, (source_id, row) in ((number, by_id[number]) for number in some)
        ]
        connection.execute(changed, rows)
        release_ids |= findings.releases_of(connection, results.c.id.in_(some))
    return release_ids
