"""Brings what the store keeps of systems and models up to the catalogue."""

from collections.abc import Callable, Iterator

from sqlalchemy import Connection, Table, or_, select, update

from perfdb import catalog
from perfdb.db import keys, marks
from perfdb.db.tables import cases, models, results, systems

Found = tuple[Table, int, keys.Row]
"""A table, the id of a row of it, and what its columns should say."""


def outdated(connection: Connection) -> list[Found]:
    """The systems and models of which the store says something else than the catalogue.

    What the catalogue does not hold stays as it is: it may have held it before.
    """
    return [
        *_outdated(connection, systems, {*catalog.systems()}, keys.system_row),
        *_outdated(connection, models, {*catalog.models()}, keys.model_row),
    ]


def renew(connection: Connection, given: list[Found]) -> None:
    """Write what the catalogue says now; releases with results of it are to be audited again."""
    changed = []
    for table, number, row in given:
        connection.execute(update(table).where(table.c.id == number).values(row))
        changed.append((cases.c.system_id if table is systems else cases.c.model_id) == number)
    of = select(cases.c.id).where(or_(*changed))
    marks.take_away(connection, marks.releases_of(connection, results.c.case_id.in_(of)))


def _outdated(
    connection: Connection, table: Table, known: set[str], row_of: Callable[[str], keys.Row]
) -> Iterator[Found]:
    for stored in connection.execute(select(table).order_by(table.c.id)).mappings():
        if stored["name"] in known:
            row = row_of(stored["name"])
            if any(stored[name] != value for name, value in row.items()):
                yield table, stored["id"], row
