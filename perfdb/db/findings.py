"""The findings of results, and the mark of a release that an audit has seen what it has now.

Whoever changes results removes the mark in the same transaction, at its end. An audit marks the
release first, then reads its results and writes its findings, in one transaction: on PostgreSQL
either waits for the other at the row of the release, so that a mark never covers results that the
audit has not seen.
"""

from collections.abc import Iterable

from sqlalchemy import ColumnElement, Connection, bindparam, delete, select, update

from perfdb.db import bulk
from perfdb.db.tables import findings, releases, results
from perfdb.record import Finding

_COLUMNS = (
    "result_id", "rule", "severity", "fields", "expected", "found", "message", "suggestion",
)  # fmt: skip


def replace(connection: Connection, release_id: int, current: Iterable[Finding]) -> bool:
    """Make these the findings of a release's results; whether that changed anything.

    What is there already stays as it is; findings of results that are superseded go.
    """
    stale, added = differences(connection, release_id, current)
    if stale:
        its_row = delete(findings).where(findings.c.id == bindparam("of"))
        connection.execute(its_row, [{"of": number} for number in stale])
    bulk.add(connection, findings, _COLUMNS, added)
    return bool(stale or added)


def differences(
    connection: Connection, release_id: int, current: Iterable[Finding]
) -> tuple[list[int], list[bulk.Cells]]:
    """The ids of stored findings of a release's results that are none of these, and those of these
    that are not stored, with the cells of their rows: first the result and the rule.
    """
    wanted = dict.fromkeys(
        tuple(getattr(one, name) for name in _COLUMNS)
        for one in current
        if one.result_id is not None
    )
    rows = connection.execute(
        select(findings.c.id, *(findings.c[name] for name in _COLUMNS))
        .join(results, findings.c.result_id == results.c.id)
        .where(results.c.release_id == release_id)
    )
    stored = [
        (number, tuple(tuple(map(str, cell)) if isinstance(cell, list) else cell for cell in cells))
        for number, *cells in rows
    ]
    kept = {cells: number for number, cells in stored}  # one of each, should there be two
    stale = [number for number, cells in stored if cells not in wanted or kept[cells] != number]
    return stale, [cells for cells in wanted if cells not in kept]


def mark(connection: Connection, release_id: int, version: int) -> None:
    """Note that this version of the audit sees a release's results; wait for who changes them."""
    its_row = update(releases).where(releases.c.id == release_id)
    connection.execute(its_row.values(audited_version=version))


def unmark(connection: Connection, release_ids: Iterable[int]) -> None:
    """Note that the results of releases have changed since they were audited."""
    for release_id in sorted(set(release_ids)):  # in order, so that two processes do not deadlock
        its_row = update(releases).where(releases.c.id == release_id)
        connection.execute(its_row.values(audited_version=None))


def releases_of(connection: Connection, which: ColumnElement[bool]) -> set[int]:
    """The ids of the releases of some results."""
    return set(connection.scalars(select(results.c.release_id).where(which).distinct()))
