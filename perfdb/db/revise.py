"""New revisions of results that are in the store: the same result, said with other figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, insert, select

from perfdb.db import marks, revisions
from perfdb.db.keys import AT_ONCE
from perfdb.db.tables import results


@dataclass(frozen=True)
class Revision:
    """What a result in force, of this id, says from now on. Other columns stay as they are."""

    result_id: int
    content_hash: str
    columns: Mapping[str, object]


def put(connection: Connection, given: Sequence[Revision], when: datetime) -> None:
    """Supersede results and append a revision of each, in one transaction with its reading.

    The unique key of a revision refuses one of two processes that revise the same result.
    """
    for start in range(0, len(given), AT_ONCE):
        _put(connection, {one.result_id: one for one in given[start : start + AT_ONCE]}, when)


def _put(connection: Connection, given: Mapping[int, Revision], when: datetime) -> None:
    old = connection.execute(
        select(results).where(results.c.id.in_(sorted(given))).order_by(results.c.key)
    ).mappings()
    rows = [
        {
            **{name: value for name, value in row.items() if name != "id"},
            **given[row["id"]].columns,
            "content_hash": given[row["id"]].content_hash,
            "revision": row["revision"] + 1,
            "created_at": when,
        }
        for row in old
    ]
    release_ids = revisions.supersede(connection, given, when)
    if rows:
        connection.execute(insert(results), rows)
    marks.take_away(connection, release_ids)
