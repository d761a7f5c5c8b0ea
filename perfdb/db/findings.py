"""The findings of results, and the mark of a release that an audit has seen its results as they are.

Whoever changes results removes the mark in the same transaction, at its end. An audit marks the
release first, then reads its results and writes its findings, in one transaction: on PostgreSQL
either waits for the other at the row of the release, so that a mark never covers results that the
audit has not seen.
"""

from collections.abc import Iterable

from sqlalchemy import ColumnElement, Connection, RowMapping, bindparam, delete, insert, select, update

from perfdb.db.rows import FindingRow
from perfdb.db.tables import findings, releases, results

_COLUMNS = (
    "result_id", "rule", "severity", "fields", "expected", "found", "message", "suggestion",
)  # fmt: skip


def replace(connection: Connection, release_id: int, wanted: Iterable[FindingRow]) -> bool:
    """Make these the findings of a release's results; whether that changed anything.

    What is there already stays as it is; findings of results that are superseded go.
    """
    unique = dict.fromkeys(wanted)
    stored = _stored(connection, release_id)
    stale = [{"of": number} for row, number in stored.items() if row not in unique]
    added = [vars(row) for row in unique if row not in stored]
    if stale:
        connection.execute(delete(findings).where(findings.c.id == bindparam("of")), stale)
    if added:
        connection.execute(insert(findings), added)
    return bool(stale or added)


def _stored(connection: Connection, release_id: int) -> dict[FindingRow, int]:
    question = (
        select(findings.c.id, *(findings.c[name] for name in _COLUMNS))
        .join(results, findings.c.result_id == results.c.id)
        .where(results.c.release_id == release_id)
    )
    rows = connection.execute(question).mappings()
    return {_finding(row): int(row["id"]) for row in rows}


def _finding(row: RowMapping) -> FindingRow:
    columns = {name: row[name] for name in _COLUMNS}
    return FindingRow(**columns | {"fields": tuple(row["fields"])})


def mark(connection: Connection, release_id: int, version: int) -> None:
    """Note that this version of the audit sees a release's results; wait for who changes them."""
    connection.execute(
        update(releases).where(releases.c.id == release_id).values(audited_version=version)
    )


def unmark(connection: Connection, release_ids: Iterable[int]) -> None:
    """Note that the results of releases have changed since they were audited."""
    rows = [{"of": number} for number in sorted(set(release_ids))]
    if rows:
        changed = update(releases).where(releases.c.id == bindparam("of"))
        connection.execute(changed.values(audited_version=None), rows)


def releases_of(connection: Connection, which: ColumnElement[bool]) -> set[int]:
    """The ids of the releases of some results."""
    return set(connection.scalars(select(results.c.release_id).where(which).distinct()))
