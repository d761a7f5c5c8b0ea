"""Revisions of results: what was said of the same thing before, and what is said of it now."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from operator import attrgetter, itemgetter
from typing import Final

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    FromClause,
    RowMapping,
    and_,
    bindparam,
    insert,
    select,
    update,
)

from perfdb.db import bulk, keys, marks
from perfdb.db.rows import ResultRow
from perfdb.db.tables import results, sources

_SAID = tuple(field.name for field in fields(ResultRow) if field.name in results.c)
_ADDED = ("case_id", "release_id", "revision", "source_id", "run_id", "created_at")
_said_by = attrgetter(*_SAID, *(f"case.{name}" for name in keys.OF_RESULTS))
_KEY = _SAID.index("key")
_WRITTEN = (
    "id", "key", "revision", "superseded", "content_hash", "created_at", "superseded_at",
)  # fmt: skip
_OF_A_REVISION = ("id", "superseded", "superseded_at")
_COMPARED = tuple(name for name in _SAID if name not in ("content_hash", "formula_version"))
_MOVED: Final[Mapping[str, BindParameter[object]]] = {
    "source_id": bindparam("source"),
    "source_line": bindparam("line"),
    **{name: bindparam(f"its_{name}") for name in keys.OF_RESULTS},
}


@dataclass(frozen=True)
class Place:
    """Where a result comes from: its source, and the run if it is measured."""

    source_id: int
    run_id: int | None
    when: datetime


@dataclass(frozen=True)
class Revision:
    """What a result of this id says from now on. Other columns stay as they are."""

    result_id: int
    content_hash: str
    columns: Mapping[str, object]


@dataclass(frozen=True)
class Written:
    """A result that is in the store, and the path that it was read from."""

    id: int
    key: str
    revision: int
    superseded: bool
    content_hash: str
    path: str
    sha256: str
    parser_version: int
    created_at: datetime
    superseded_at: datetime | None


Past = Mapping[str, Sequence[Written]]
"""Every revision of results, by their key, oldest first."""


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
        for row in connection.execute(question):
            one = Written(**row._mapping)
            found[one.key] = (*found.get(one.key, ()), one)
    return found


def supersede(connection: Connection, ids: Iterable[int], when: datetime) -> set[int]:
    """Say of results that they are no longer in force, and since when; the releases they are of."""
    release_ids: set[int] = set()
    for some in keys.chunks(ids):
        which = results.c.id.in_(some)
        release_ids |= marks.releases_of(connection, which)
        ended = update(results).where(which, ~results.c.superseded)
        connection.execute(ended.values(superseded=True, superseded_at=when))
    return release_ids


def supersede_runs(connection: Connection, ids: Collection[int], when: datetime) -> set[int]:
    """The same of the results in force of runs, by the ids of their rows."""
    question = select(results.c.id).where(results.c.run_id.in_(ids), ~results.c.superseded)
    return supersede(connection, connection.scalars(question), when)


def took_its_place(following: FromClause, said: FromClause) -> ColumnElement[bool]:
    """Whether a revision began as the one before it ended.

    Else that one had been withdrawn before, or its page has dropped it since; or the store was of a
    version that did not say when it was superseded.
    """
    return and_(
        following.c.key == said.c.key,
        following.c.revision == said.c.revision + 1,
        following.c.created_at == said.c.superseded_at,
    )


def append(
    connection: Connection, given: Sequence[tuple[ResultRow, Place]], past: Past
) -> set[int]:
    """Add a revision to each result; the releases they are of."""
    release_ids = keys.release_ids(connection, [row.release for row, _ in given])
    case_ids = keys.case_ids(connection, [row.case for row, _ in given])
    rows = []
    for (row, place), *ids in zip(given, case_ids, release_ids, strict=True):
        revision = 1 + max((one.revision for one in past.get(row.key, ())), default=0)
        rows.append((*_said_by(row), *ids, revision, place.source_id, place.run_id, place.when))
    bulk.add(
        connection, results, (*_SAID, *keys.OF_RESULTS, *_ADDED), sorted(rows, key=itemgetter(_KEY))
    )
    return set(release_ids)


def revise(connection: Connection, given: Sequence[Revision], when: datetime) -> None:
    """Add a revision to each result, with other figures but of the same source.

    The unique key of a revision refuses one of two processes that revise the same result.
    """
    for start in range(0, len(given), keys.AT_ONCE):
        _revise(connection, {it.result_id: it for it in given[start : start + keys.AT_ONCE]}, when)


def _revise(connection: Connection, given: Mapping[int, Revision], when: datetime) -> None:
    last = connection.execute(
        select(results).where(results.c.id.in_(sorted(given))).order_by(results.c.key)
    ).mappings()
    rows = [
        {
            **{name: value for name, value in row.items() if name not in _OF_A_REVISION},
            **given[row["id"]].columns,
            "content_hash": given[row["id"]].content_hash,
            "revision": row["revision"] + 1,
            "created_at": when,
        }
        for row in last
    ]
    release_ids = supersede(connection, given, when)
    if rows:
        connection.execute(insert(results), rows)
    marks.take_away(connection, release_ids)


def alike(connection: Connection, given: Mapping[int, ResultRow]) -> set[int]:
    """The ids of those results that say what the row given for them says, whoever computed it."""
    found: set[int] = set()
    for some in keys.chunks(given):
        columns = (results.c.id, *(results.c[name] for name in _COMPARED))
        rows = connection.execute(select(*columns).where(results.c.id.in_(some))).mappings()
        found |= {row["id"] for row in rows if _says(row, given[row["id"]])}
    return found


def _says(stored: RowMapping, row: ResultRow) -> bool:
    return all(stored[name] == _as_stored(getattr(row, name)) for name in _COMPARED)


def _as_stored(value: object) -> object:
    """JSON has lists and objects alone."""
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value


def move(connection: Connection, given: Iterable[tuple[int, int, ResultRow]]) -> set[int]:
    """Say of results that another source has them: their ids, then it, and what it says.

    Their line may be another one, and so may the GA and DP that are read of the same words. The
    answer is the releases they are of: the audit may have told of these.
    """
    moved_to = sorted(given, key=itemgetter(0))
    rows = [
        {"of": id_, "source": source, "line": row.source_line}
        | {f"its_{name}": getattr(row.case, name) for name in keys.OF_RESULTS}
        for id_, source, row in moved_to
    ]
    release_ids: set[int] = set()
    for start in range(0, len(rows), keys.AT_ONCE):
        some = rows[start : start + keys.AT_ONCE]
        moved = update(results).where(results.c.id == bindparam("of"))
        connection.execute(moved.values(_MOVED), some)
        which = results.c.id.in_([row["of"] for row in some])
        release_ids |= marks.releases_of(connection, which)
    return release_ids
