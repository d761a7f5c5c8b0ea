"""The checks of the database itself: its own check, and that every value of every row is one."""

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection

from perfdb.db import tables
from perfdb.db.sources import Action
from perfdb.db.tables import Moment, NotesType, NoteType, findings, ingest_log, results, runs
from perfdb.queries import checks as questions
from perfdb.record import Origin, Outcome, RunKind, Severity
from perfdb.verify.base import Fault, Watch

_INVALID: Final = "SELECT conname FROM pg_constraint WHERE NOT convalidated ORDER BY conname"

_TYPES: Final[Mapping[type[Any], str]] = {
    sa.Double: "real", sa.Integer: "integer", sa.Boolean: "integer", sa.LargeBinary: "blob",
}  # fmt: skip
"""What SQLite calls the values of a type of column; those of all others are text."""

_ENUMS: Final[Mapping[sa.Column[Any], Callable[[str], object]]] = {
    results.c.outcome: Outcome,
    results.c.origin: Origin,
    runs.c.outcome: Outcome,
    runs.c.kind: RunKind,
    findings.c.severity: Severity,
    ingest_log.c.action: Action,
}


def database(connection: Connection, watch: Watch) -> Iterator[Fault]:
    """The database's own check finds nothing wrong; no constraint waits to be checked."""
    if connection.dialect.name == "sqlite":
        answers = connection.exec_driver_sql("PRAGMA integrity_check").scalars().all()
        yield from (Fault("database", one) for one in watch(answers) if one != "ok")
    else:
        for names in watch([connection.exec_driver_sql(_INVALID).scalars().all()]):
            yield from (Fault(name, "the constraint is not validated") for name in names)


def values(connection: Connection, watch: Watch) -> Iterator[Fault]:
    """Every value is of its column's type; what is kept as text can be read."""
    every = [column for table in tables.metadata.sorted_tables for column in table.c]
    for column in watch(every):
        if connection.dialect.name == "sqlite":
            of = next((it for kind, it in _TYPES.items() if isinstance(column.type, kind)), "text")
            for *key, kind in connection.execute(questions.of_other_type(column, of)):
                yield _fault(column, key, f"holds a value of the type {kind}")
        if read := _reader(column):
            for *key, value in connection.execute(questions.texts(column)):
                try:
                    read(value)
                except (ValueError, KeyError, TypeError) as error:
                    yield _fault(column, key, f"{str(value)[:60]!r} cannot be read: {error}")


def _reader(column: sa.Column[Any]) -> Callable[[str], object] | None:
    """What reads the text of a column. Raises ValueError, KeyError or TypeError."""
    readers: tuple[tuple[type[Any], Callable[[str], object]], ...] = (
        (NoteType, _note), (NotesType, _notes), (sa.JSON, _document),
        (Moment, datetime.fromisoformat), (sa.Date, date.fromisoformat),
    )  # fmt: skip
    of_type = next((read for kind, read in readers if isinstance(column.type, kind)), None)
    return _ENUMS.get(column, of_type)


def _note(text: str) -> object:
    return tables.of_json(json.loads(text))


def _notes(text: str) -> object:
    return [tables.of_json(one) for one in json.loads(text)]


def _document(text: str) -> object:
    document = json.loads(text)
    if not isinstance(document, dict | list | None):
        raise TypeError("neither an object nor a list")
    return document


def _fault(column: sa.Column[Any], key: list[object], message: str) -> Fault:
    row = ", ".join(map(str, key))
    return Fault(f"{column.table.name} {row}", f"{column.name} {message}")
