"""A SELECT that somebody else wrote, which can read the store's tables and do nothing else."""

import sqlite3
import time
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from perfdb.errors import Diagnostic, InputError

TIMEOUT_S: Final = 10
_CHECK_EVERY: Final = 10_000
"""After so many instructions SQLite asks whether to go on: some tens of microseconds."""
_READS: Final = frozenset(
    {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
)
"""What a SELECT does. Not among them: ATTACH, which opens other files, and PRAGMA."""


@dataclass(frozen=True)
class Selected:
    """The first rows of an answer; `more`: whether there are others."""

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    more: bool


def select(
    connection: Connection, statement: str, most_rows: int, timeout_s: int = TIMEOUT_S
) -> Selected:
    """The answer to one SELECT, of at most so many rows, within `timeout_s` seconds.

    Raises InputError for what is no single SELECT, is wrong, or takes longer.
    """
    asked = f"SELECT * FROM (\n{statement.strip().rstrip(';')}\n) AS asked LIMIT {most_rows + 1}"
    try:
        if connection.dialect.name == "sqlite":
            columns, rows = _of_sqlite(connection, asked, timeout_s)
        else:
            columns, rows = _of_postgresql(connection, asked, timeout_s)
    except (connection.dialect.loaded_dbapi.Error, UnicodeEncodeError) as error:
        cause = str(error).partition("\n")[0]
        remedy = "give one SELECT on the tables of docs/reference/schema.md"
        raise InputError(Diagnostic("sql", cause, remedy=remedy)) from error
    return Selected(tuple(columns), tuple(map(tuple, rows[:most_rows])), len(rows) > most_rows)


def _of_sqlite(
    connection: Connection, asked: str, timeout_s: int
) -> tuple[list[str], list[tuple[object, ...]]]:
    raw = connection.connection.driver_connection
    assert isinstance(raw, sqlite3.Connection)
    end = time.monotonic() + timeout_s
    raw.set_authorizer(
        lambda action, *_: sqlite3.SQLITE_OK if action in _READS else sqlite3.SQLITE_DENY
    )
    raw.set_progress_handler(lambda: time.monotonic() > end, _CHECK_EVERY)
    try:
        cursor = raw.execute(asked)
        return [column[0] for column in cursor.description], cursor.fetchall()
    finally:
        raw.set_progress_handler(None, 0)
        raw.set_authorizer(None)


def _of_postgresql(
    connection: Connection, asked: str, timeout_s: int
) -> tuple[list[str], list[tuple[object, ...]]]:
    """The transaction is read-only; a prepared statement is a single one, so nothing ends it."""
    connection.exec_driver_sql(f"SET LOCAL statement_timeout = '{timeout_s}s'")
    raw = connection.connection.driver_connection
    assert raw is not None
    with raw.cursor() as cursor, connection.begin_nested():
        cursor.execute(asked, prepare=True)
        return [column.name for column in cursor.description], cursor.fetchall()
