"""The mark of a release that an audit has seen its results as they are.

Whoever changes results takes the mark away in the same transaction, at its end; an audit sets it
as the first thing that it does. On PostgreSQL either waits for the other at the row of the release,
so that a mark never stands for results that the audit has not seen.
"""

from collections.abc import Iterable

from sqlalchemy import ColumnElement, Connection, bindparam, select, update

from perfdb.db.tables import releases, results


def take_away(connection: Connection, release_ids: Iterable[int]) -> None:
    """Say of releases that their results have changed since they were audited."""
    rows = [{"of": number} for number in sorted(set(release_ids))]
    if rows:
        changed = update(releases).where(releases.c.id == bindparam("of"))
        connection.execute(changed.values(audited_version=None), rows)


def releases_of(connection: Connection, which: ColumnElement[bool]) -> set[int]:
    """The ids of the releases of some results."""
    return set(connection.scalars(select(results.c.release_id).where(which).distinct()))


def put(connection: Connection, release_id: int, version: int) -> None:
    """Say that this version of the audit sees a release's results; wait for who changes them."""
    connection.execute(
        update(releases).where(releases.c.id == release_id).values(audited_version=version)
    )
