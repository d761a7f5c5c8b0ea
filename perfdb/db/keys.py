"""The ids of systems, models, releases and cases; those that are not there yet are added.

Ids are looked up by natural key before anything is inserted, so that what is known costs no write.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Insert,
    RowMapping,
    Table,
    Text,
    any_,
    literal,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite

from perfdb import catalog
from perfdb.db.tables import cases, models, releases, systems
from perfdb.record import Case, Release

AT_ONCE = 10_000
"""Keys asked for in one statement: SQLite takes 32,766 parameters, PostgreSQL 65,535."""

OF_RESULTS = ("gradient_accumulation", "data_parallel")
"""The fields of a case that are no part of its identity: each of its results has its own."""

Row = Mapping[str, object]

Key = TypeVar("Key", int, str)


def release_ids(connection: Connection, given: Sequence[Release]) -> list[int]:
    """The id of each release, in the same order."""
    ordered = [one.key for one in given]
    by_key = dict(zip(ordered, given, strict=True))
    rows = {key: {"key": key, **one.model_dump()} for key, one in by_key.items()}
    found = _ids(connection, releases, releases.c.key, rows)
    return [found[key] for key in ordered]


def case_ids(connection: Connection, given: Sequence[Case]) -> list[int]:
    """The id of each case, in the same order."""
    ordered = [one.key for one in given]
    found = _case_ids(connection, dict(zip(ordered, given, strict=True)))
    return [found[key] for key in ordered]


def _case_ids(connection: Connection, by_key: Mapping[str, Case]) -> dict[str, int]:
    there = known(connection, cases, cases.c.key, by_key)
    added = [one for key, one in by_key.items() if key not in there]
    if not added:
        return there
    system_rows = {name: system_row(name) for name in {one.system for one in added}}
    model_rows = {name: model_row(name) for name in {one.model for one in added}}
    system = _ids(connection, systems, systems.c.name, system_rows)
    model = _ids(connection, models, models.c.name, model_rows)
    rows = {one.key: _case_row(one, system[one.system], model[one.model]) for one in added}
    return there | _ids(connection, cases, cases.c.key, rows)


def insert_new(connection: Connection, table: Table) -> Insert:
    """An insert that leaves rows alone that another process has added meanwhile."""
    if connection.dialect.name == "postgresql":
        return postgresql.insert(table).on_conflict_do_nothing()
    return sqlite.insert(table).on_conflict_do_nothing()


def chunks(keys: Iterable[Key]) -> Iterator[list[Key]]:
    """The keys in portions that one statement can ask for."""
    ordered = sorted(keys)
    for start in range(0, len(ordered), AT_ONCE):
        yield ordered[start : start + AT_ONCE]


def among(
    connection: Connection, column: Column[str], wanted: Sequence[str]
) -> ColumnElement[bool]:
    """Whether a column has one of these keys.

    PostgreSQL takes them as one parameter: each by itself costs more than to look it up.
    """
    if connection.dialect.name == "postgresql":
        return column == any_(literal(wanted, postgresql.ARRAY(Text)))
    return column.in_(wanted)


def known(
    connection: Connection, table: Table, key: Column[str], wanted: Iterable[str]
) -> dict[str, int]:
    """The ids of the rows of a table that are there already, by their natural key."""
    found: dict[str, int] = {}
    for some in chunks(wanted):
        question = select(key, table.c.id).where(among(connection, key, some))
        rows = connection.execute(question)
        found |= {str(row[0]): int(row[1]) for row in rows}
    return found


def _ids(
    connection: Connection, table: Table, key: Column[str], rows: Mapping[str, Row]
) -> dict[str, int]:
    there = known(connection, table, key, rows)
    added = [dict(rows[one]) for one in sorted(rows.keys() - there.keys())]
    if added:
        connection.execute(insert_new(connection, table), added)
        there = known(connection, table, key, rows)
    return there


def system_row(name: str) -> Row:
    """The columns of a system, by the catalogue."""
    entry = catalog.systems().get(name)
    return {
        "name": name,
        "title": entry.title if entry else name,
        "specification": entry.model_dump(mode="json") if entry else {},
    }


def model_row(name: str) -> Row:
    """The columns of a model, by the catalogue; of one that it does not hold, the name alone."""
    entry = catalog.models().get(name)
    return {
        "name": name,
        "title": entry.title if entry else name,
        "family": entry.family if entry else None,
        "specification": entry.model_dump(mode="json") if entry else {},
    }


def _case_row(case: Case, system_id: int, model_id: int) -> Row:
    fields = case.model_dump(exclude={"system", "model", *OF_RESULTS})
    fields |= {"qualifiers": ", ".join(case.qualifiers), "kernels": ", ".join(case.kernels)}
    keys = {"key": case.key, "workload_key": case.workload_key}
    return fields | keys | {"system_id": system_id, "model_id": model_id}


def case_of(row: RowMapping) -> Case:
    """The case of a row that has the columns of one, and the names of its system and model.

    GA and DP are unknown where it is no row of a result.
    """
    joined = {name: str(row[name]).split(", ") for name in ("qualifiers", "kernels")}
    parts = {name: tuple(filter(None, said)) for name, said in joined.items()}
    known = {name: row[name] for name in Case.model_fields if name in row or name not in OF_RESULTS}
    return Case.model_validate(known | parts)
