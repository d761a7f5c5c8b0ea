"""The ids of systems, models, releases and cases; those that are not there yet are added.

Ids are looked up by natural key before anything is inserted, so that what is known costs no write.
What the store keeps of systems and models is brought up to the catalog.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
    or_,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from perfdb import catalog
from perfdb.db import findings
from perfdb.db.tables import cases, models, releases, results, systems
from perfdb.fields import DERIVED
from perfdb.record import Case, Release

AT_ONCE = 10_000
"""Keys asked for in one statement: SQLite takes 32,766 parameters, PostgreSQL 65,535."""

Row = Mapping[str, object]

Outdated = tuple[Table, int, Row]
"""A table, the id of a row of it, and what its columns should hold."""

Key = TypeVar("Key", int, str)


def release_ids(connection: Connection, wanted: Sequence[Release]) -> list[int]:
    """The id of each release, in the same order."""
    ordered = [release.key for release in wanted]
    rows = {
        key: {"key": key, **release.model_dump()}
        for key, release in dict(zip(ordered, wanted, strict=True)).items()
    }
    found = _ids(connection, releases, releases.c.key, rows)
    return [found[key] for key in ordered]


def case_ids(connection: Connection, wanted: Sequence[Case]) -> list[int]:
    """The id of each case, in the same order."""
    ordered = [case.key for case in wanted]
    by_key = dict(zip(ordered, wanted, strict=True))
    found = known(connection, cases, cases.c.key, by_key)
    if added := {key: case for key, case in by_key.items() if key not in found}:
        found |= _add_cases(connection, added)
    return [found[key] for key in ordered]


def _add_cases(connection: Connection, added: Mapping[str, Case]) -> dict[str, int]:
    system_rows = {name: system_row(name) for name in {case.system for case in added.values()}}
    model_rows = {name: model_row(name) for name in {case.model for case in added.values()}}
    system = _ids(connection, systems, systems.c.name, system_rows)
    model = _ids(connection, models, models.c.name, model_rows)
    rows = {
        key: _case_row(key, case, system[case.system], model[case.model])
        for key, case in added.items()
    }
    return _ids(connection, cases, cases.c.key, rows)


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
    """The columns of a system, by the catalog."""
    entry = catalog.systems().get(name)
    return {
        "name": name,
        "title": entry.title if entry else name,
        "specification": entry.model_dump(mode="json") if entry else {},
    }


def model_row(name: str) -> Row:
    """The columns of a model, by the catalog; of one that it does not hold, the name alone."""
    entry = catalog.models().get(name)
    return {
        "name": name,
        "title": entry.title if entry else name,
        "family": entry.family if entry else None,
        "specification": entry.model_dump(mode="json") if entry else {},
    }


def _case_row(key: str, case: Case, system_id: int, model_id: int) -> Row:
    fields = case.model_dump(exclude={"system", "model", *DERIVED})
    fields |= {"qualifiers": ", ".join(case.qualifiers), "kernels": ", ".join(case.kernels)}
    keys = {"key": key, "workload_key": case.workload_key}
    return fields | keys | {"system_id": system_id, "model_id": model_id}


def case_of(row: RowMapping) -> Case:
    """The case of a row that has the columns of one, and the names of its system and model.

    GA and DP are unknown where it is no row of a result.
    """
    joined = {name: str(row[name]).split(", ") for name in ("qualifiers", "kernels")}
    words = {name: tuple(filter(None, parts)) for name, parts in joined.items()}
    known = {name: row[name] for name in Case.model_fields if name in row or name not in DERIVED}
    return Case.model_validate(known | words)


def outdated(connection: Connection) -> list[Outdated]:
    """The systems and models that differ from the catalog's.

    What the catalog does not hold stays as it is: it may have held it before.
    """
    return [
        *_outdated(connection, systems, {*catalog.systems()}, system_row),
        *_outdated(connection, models, {*catalog.models()}, model_row),
    ]


def _outdated(
    connection: Connection, table: Table, known: set[str], row_of: Callable[[str], Row]
) -> Iterator[Outdated]:
    for stored in connection.execute(select(table).order_by(table.c.id)).mappings():
        if stored["name"] in known:
            row = row_of(stored["name"])
            if any(stored[name] != value for name, value in row.items()):
                yield table, stored["id"], row


def renew(connection: Connection, changes: Iterable[Outdated]) -> None:
    """Write what the catalog has now; releases with results of it are to be audited again."""
    changed = []
    for table, number, row in changes:
        connection.execute(update(table).where(table.c.id == number).values(row))
        changed.append((cases.c.system_id if table is systems else cases.c.model_id) == number)
    of = select(cases.c.id).where(or_(*changed))
    findings.unmark(connection, findings.releases_of(connection, results.c.case_id.in_(of)))
