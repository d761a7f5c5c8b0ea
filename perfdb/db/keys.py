"""The ids of systems, models, releases and cases; those that are not there yet are added.

Ids are looked up by natural key before anything is inserted, so that what is known costs no write.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import TypeVar

import sqlalchemy as sa

from perfdb import catalog
from perfdb.db import findings
from perfdb.db.tables import cases, models, releases, results, systems
from perfdb.fields import DERIVED
from perfdb.record import Case, Release

AT_ONCE = 10_000
"""Keys asked for in one statement: SQLite takes 32,766 parameters, PostgreSQL 65,535."""

Row = Mapping[str, object]

Outdated = tuple[sa.Table, int, Row]
"""A table, the id of a row of it, and what its columns should hold."""

Key = TypeVar("Key", int, str)


def release_ids(connection: sa.Connection, wanted: Sequence[Release]) -> list[int]:
    """The id of each release, in the same order."""
    rows = {one.key: release_row(one) for one in dict.fromkeys(wanted)}
    found = _ids(connection, releases, releases.c.key, rows)
    return [found[one.key] for one in wanted]


def case_ids(connection: sa.Connection, wanted: Sequence[Case]) -> list[int]:
    """The id of each case, in the same order."""
    ordered = [case.key for case in wanted]
    by_key = dict(zip(ordered, wanted, strict=True))
    found = known(connection, cases, cases.c.key, by_key)
    added = {key: case for key, case in by_key.items() if key not in found}
    if added:
        its_systems = {case.system: system_row(case.system) for case in added.values()}
        its_models = {case.model: model_row(case.model) for case in added.values()}
        system_ids = _ids(connection, systems, systems.c.name, its_systems)
        model_ids = _ids(connection, models, models.c.name, its_models)
        rows = {
            key: {
                **case_row(case),
                "system_id": system_ids[case.system],
                "model_id": model_ids[case.model],
            }
            for key, case in added.items()
        }
        found |= _ids(connection, cases, cases.c.key, rows)
    return [found[key] for key in ordered]


def case_row(case: Case) -> Row:
    """The columns of a case, but for the ids of its system and model."""
    return {
        **case.model_dump(exclude={"system", "model", *DERIVED}),
        "qualifiers": ", ".join(case.qualifiers),
        "kernels": ", ".join(case.kernels),
        "key": case.key,
        "workload_key": case.workload_key,
    }


def release_row(release: Release) -> Row:
    """The columns of a release."""
    return {"key": release.key, **release.model_dump()}


def chunks(keys: Iterable[Key]) -> Iterator[list[Key]]:
    """The keys in portions that one statement can ask for."""
    ordered = sorted(keys)
    for start in range(0, len(ordered), AT_ONCE):
        yield ordered[start : start + AT_ONCE]


def among(
    connection: sa.Connection, column: sa.Column[str], wanted: Sequence[str]
) -> sa.ColumnElement[bool]:
    """Whether a column has one of these keys.

    They are one parameter, since each by itself costs more than to look it up.
    """
    if connection.dialect.name == "postgresql":
        from sqlalchemy.dialects.postgresql import ARRAY  # noqa: PLC0415 - SQLite does without

        return column == sa.any_(sa.literal(wanted, ARRAY(sa.Text)))
    values = sa.func.json_each(json.dumps(wanted)).table_valued("value")
    return column.in_(sa.select(values.c.value))


def known(
    connection: sa.Connection, table: sa.Table, key: sa.Column[str], wanted: Iterable[str]
) -> dict[str, int]:
    """The ids of the rows of a table that are there already, by their natural key."""
    found: dict[str, int] = {}
    for some in chunks(wanted):
        rows = connection.execute(sa.select(key, table.c.id).where(among(connection, key, some)))
        found |= {str(name): int(number) for name, number in rows}
    return found


def _ids(
    connection: sa.Connection, table: sa.Table, key: sa.Column[str], rows: Mapping[str, Row]
) -> dict[str, int]:
    """The ids of rows by their key; those that another process adds meanwhile are left alone."""
    there = known(connection, table, key, rows)
    if added := [dict(rows[one]) for one in sorted(rows.keys() - there.keys())]:
        dialect = import_module(f"sqlalchemy.dialects.{connection.dialect.name}")
        connection.execute(dialect.insert(table).on_conflict_do_nothing(), added)
        there = known(connection, table, key, rows)
    return there


def system_row(name: str) -> Row:
    """The columns of a system, by the catalog."""
    return _catalog_row(name, catalog.systems().get(name))


def model_row(name: str) -> Row:
    """The columns of a model, by the catalog; of one that it does not hold, the name alone."""
    entry = catalog.models().get(name)
    return {**_catalog_row(name, entry), "family": entry.family if entry else None}


def _catalog_row(name: str, entry: catalog.Model | catalog.System | None) -> Row:
    specification = entry.model_dump(mode="json") if entry else {}
    return {"name": name, "title": entry.title if entry else name, "specification": specification}


def case_of(row: sa.RowMapping) -> Case:
    """The case of a row that has the columns of one, and the names of its system and model.

    GA and DP are unknown unless it is a row of a result.
    """
    joined = {name: str(row[name]).split(", ") for name in ("qualifiers", "kernels")}
    words = {name: tuple(filter(None, parts)) for name, parts in joined.items()}
    known = {name: row[name] for name in Case.model_fields if name in row or name not in DERIVED}
    return Case.model_validate(known | words)


def outdated(connection: sa.Connection) -> list[Outdated]:
    """The systems and models that differ from the catalog's.

    What the catalog does not hold stays as it is: it may have held it before.
    """
    found: list[Outdated] = []
    for table, entries, row_of in (
        (systems, {*catalog.systems()}, system_row), (models, {*catalog.models()}, model_row),
    ):  # fmt: skip
        for stored in connection.execute(sa.select(table).order_by(table.c.id)).mappings():
            row = row_of(stored["name"]) if stored["name"] in entries else {}
            if any(stored[name] != value for name, value in row.items()):
                found.append((table, stored["id"], row))
    return found


def renew(connection: sa.Connection, changes: Iterable[Outdated]) -> None:
    """Write what the catalog has now; releases with results of it are to be audited again."""
    changed = []
    for table, number, row in changes:
        connection.execute(sa.update(table).where(table.c.id == number).values(row))
        changed.append((cases.c.system_id if table is systems else cases.c.model_id) == number)
    of = sa.select(cases.c.id).where(sa.or_(*changed))
    findings.unmark(connection, findings.releases_of(connection, results.c.case_id.in_(of)))
