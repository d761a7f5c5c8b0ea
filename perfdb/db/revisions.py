"""Revisions of results: what was said of the same thing before, and what is said of it now."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from operator import attrgetter

from sqlalchemy import Connection, select, update

from perfdb.db import bulk, keys
from perfdb.db.rows import ResultRow
from perfdb.db.tables import results, sources

_SAID = tuple(field.name for field in fields(ResultRow) if field.name in results.c)
_ADDED = ("case_id", "release_id", "revision", "source_id", "run_id", "created_at")
_said_by = attrgetter(*_SAID)


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


Past = Mapping[str, Sequence[Written]]
"""Every revision of results, by their key, oldest first."""


def written(connection: Connection, wanted: Iterable[str]) -> Past:
    """Every revision there is of the results of these keys."""
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


def supersede(connection: Connection, ids: Iterable[int], when: datetime) -> None:
    """Say of results that they are no longer in force, and since when."""
    ordered = sorted(ids)
    for start in range(0, len(ordered), keys.AT_ONCE):
        some = ordered[start : start + keys.AT_ONCE]
        connection.execute(
            update(results)
            .where(results.c.id.in_(some))
            .values(superseded=True, superseded_at=when)
        )


def append(connection: Connection, given: Sequence[tuple[ResultRow, Place]], past: Past) -> None:
    """Add a revision to each result."""
    release = keys.release_ids(connection, [row.release for row, _ in given])
    case = keys.case_ids(connection, [row.case for row, _ in given])
    rows = []
    for row, place in sorted(given, key=lambda one: one[0].key):
        revision = 1 + max((one.revision for one in past.get(row.key, ())), default=0)
        ids = (case[row.case.key], release[row.release.key])
        rows.append((*_said_by(row), *ids, revision, place.source_id, place.run_id, place.when))
    bulk.add(connection, results, (*_SAID, *_ADDED), rows)
