"""The ids of systems, models, releases, cases and sources; those that are not there yet are added.

Ids are looked up by natural key before anything is inserted, so that what is known costs no write.
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Insert,
    Table,
    bindparam,
    func,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from perfdb import catalog
from perfdb.db.rows import SourceFile
from perfdb.db.tables import cases, models, releases, sources, systems
from perfdb.record import Case, Release

AT_ONCE = 10_000
"""Keys asked for in one statement: SQLite takes 32,766 parameters, PostgreSQL 65,535."""

DERIVED = (cases.c.gradient_accumulation, cases.c.data_parallel)
"""The fields of a case that are no part of its identity."""

Row = Mapping[str, object]


def release_ids(connection: Connection, given: Iterable[Release]) -> dict[str, int]:
    """The id of each release, by its key."""
    rows = {one.key: {"key": one.key, **one.model_dump()} for one in given}
    return _ids(connection, releases, releases.c.key, rows)


def case_ids(connection: Connection, given: Iterable[Case]) -> dict[str, int]:
    """The id of each case, by its key. What pages derive is brought up to what is said last."""
    by_key = {one.key: one for one in given}
    known = _known(connection, cases, cases.c.key, by_key)
    _restate(connection, [by_key[key] for key in sorted(known)])
    added = [one for key, one in by_key.items() if key not in known]
    if not added:
        return known
    system = _system_ids(connection, {one.system for one in added})
    model = _model_ids(connection, {one.model for one in added})
    rows = {one.key: _case_row(one, system[one.system], model[one.model]) for one in added}
    return known | _ids(connection, cases, cases.c.key, rows)


def source_ids(
    connection: Connection, files: Sequence[SourceFile], when: datetime
) -> dict[str, int]:
    """The id of each source by its path; the bytes of those not there yet are kept, compressed."""
    known = _known_sources(connection, files)
    rows = [_source_row(one, when) for one in files if one.path not in known]
    if not rows:
        return known
    rows.sort(key=lambda row: (str(row["sha256"]), str(row["path"])))
    connection.execute(insert_new(connection, sources), rows)
    return _known_sources(connection, files)


def insert_new(connection: Connection, table: Table) -> Insert:
    """An insert that leaves rows alone that another process has added meanwhile."""
    if connection.dialect.name == "postgresql":
        return postgresql.insert(table).on_conflict_do_nothing()
    return sqlite.insert(table).on_conflict_do_nothing()


def chunks(keys: Iterable[str]) -> Iterator[list[str]]:
    """The keys in portions that one statement can ask for."""
    ordered = sorted(keys)
    for start in range(0, len(ordered), AT_ONCE):
        yield ordered[start : start + AT_ONCE]


def _ids(
    connection: Connection, table: Table, key: Column[str], rows: Mapping[str, Row]
) -> dict[str, int]:
    known = _known(connection, table, key, rows)
    added = [dict(rows[one]) for one in sorted(rows.keys() - known.keys())]
    if added:
        connection.execute(insert_new(connection, table), added)
        known = _known(connection, table, key, rows)
    return known


def _known(
    connection: Connection, table: Table, key: Column[str], wanted: Iterable[str]
) -> dict[str, int]:
    found: dict[str, int] = {}
    for some in chunks(wanted):
        rows = connection.execute(select(key, table.c.id).where(key.in_(some)))
        found |= {str(row[0]): int(row[1]) for row in rows}
    return found


def _known_sources(connection: Connection, files: Sequence[SourceFile]) -> dict[str, int]:
    wanted = {(one.sha256, one.path, one.parser, one.parser_version) for one in files}
    natural = (sources.c.sha256, sources.c.path, sources.c.parser, sources.c.parser_version)
    # Both: many runs share a recipe's hash, and a path has as many hashes as it had states.
    alike = select(*natural, sources.c.id).where(
        sources.c.sha256.in_(sorted({one.sha256 for one in files})),
        sources.c.path.in_(sorted({one.path for one in files})),
    )
    rows = [tuple(row) for row in connection.execute(alike)]
    return {row[1]: row[4] for row in rows if row[:4] in wanted}


def _system_ids(connection: Connection, names: Iterable[str]) -> dict[str, int]:
    rows: dict[str, Row] = {}
    for name in names:
        entry = catalog.systems().get(name)
        rows[name] = {
            "name": name,
            "title": entry.title if entry else name,
            "specification": entry.model_dump(mode="json") if entry else {},
        }
    return _ids(connection, systems, systems.c.name, rows)


def _model_ids(connection: Connection, names: Iterable[str]) -> dict[str, int]:
    rows: dict[str, Row] = {}
    for name in names:
        entry = catalog.models().get(name)
        rows[name] = {
            "name": name,
            "title": entry.title if entry else name,
            "family": entry.family if entry else None,
            "specification": entry.model_dump(mode="json") if entry else {},
        }
    return _ids(connection, models, models.c.name, rows)


def _case_row(case: Case, system_id: int, model_id: int) -> Row:
    fields = case.model_dump(exclude={"system", "model"})
    fields |= {"qualifiers": ", ".join(case.qualifiers), "kernels": ", ".join(case.kernels)}
    keys = {"key": case.key, "workload_key": case.workload_key}
    return fields | keys | {"system_id": system_id, "model_id": model_id}


def _restate(connection: Connection, known: Sequence[Case]) -> None:
    said = [one for one in known if one.gradient_accumulation or one.data_parallel]
    if said:
        values: dict[str, ColumnElement[int | None]] = {
            c.name: func.coalesce(bindparam(f"said_{c.name}"), c) for c in DERIVED
        }
        connection.execute(
            update(cases).where(cases.c.key == bindparam("of")).values(values),
            [
                {"of": one.key} | {f"said_{c.name}": getattr(one, c.name) for c in DERIVED}
                for one in said
            ],
        )


def _source_row(source: SourceFile, when: datetime) -> dict[str, object]:
    return {
        "sha256": source.sha256,
        "path": source.path,
        "parser": source.parser,
        "parser_version": source.parser_version,
        "size_bytes": len(source.content),
        "content": zlib.compress(source.content),
        "ingested_at": when,
    }
