"""Revisions of results: what was said of the same thing before, and what is said of it now."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from operator import attrgetter, itemgetter

from sqlalchemy import Connection, RowMapping, bindparam, select, update

from perfdb.db import bulk, keys, marks
from perfdb.db.rows import ResultRow
from perfdb.db.tables import results, sources

_SAID = tuple(field.name for field in fields(ResultRow) if field.name in results.c)
_ADDED = ("case_id", "release_id", "revision", "source_id", "run_id", "created_at")
_said_by = attrgetter(*_SAID)
_KEY = _SAID.index("key")
_WRITTEN = (
    "id", "key", "revision", "superseded", "content_hash", "created_at", "superseded_at",
)  # fmt: skip
_COMPARED = tuple(name for name in _SAID if name not in ("content_hash", "formula_version"))


@dataclass(frozen=True)
class Place:
    """Where a result comes from: its source, and the run if it is measured."""

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
    ordered = sorted(ids)
    release_ids: set[int] = set()
    for start in range(0, len(ordered), keys.AT_ONCE):
        some = ordered[start : start + keys.AT_ONCE]
        which = results.c.id.in_(some)
        release_ids |= marks.releases_of(connection, which)
        connection.execute(update(results).where(which).values(superseded=True, superseded_at=when))
    return release_ids


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
    bulk.add(connection, results, (*_SAID, *_ADDED), sorted(rows, key=itemgetter(_KEY)))
    return set(release_ids)


def alike(connection: Connection, given: Mapping[int, ResultRow]) -> set[int]:
    """The ids of those results that say what the row given for them says, whoever computed it."""
    found: set[int] = set()
    ordered = sorted(given)
    for start in range(0, len(ordered), keys.AT_ONCE):
        some = ordered[start : start + keys.AT_ONCE]
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


def move(connection: Connection, given: Iterable[tuple[int, int, int | None]]) -> None:
    """Say of results that another source has them, and at which line: their ids, then both."""
    rows = [{"of": id_, "source": source, "line": line} for id_, source, line in given]
    if rows:
        moved = update(results).where(results.c.id == bindparam("of"))
        connection.execute(
            moved.values(source_id=bindparam("source"), source_line=bindparam("line")), rows
        )
