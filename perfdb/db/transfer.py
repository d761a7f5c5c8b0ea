"""Copies of a store: into an empty one, also between SQLite and PostgreSQL, or a private one.

A private copy is to try on it what is to change nothing. The store is only read, as it is at one
moment, and nobody who writes to it has to wait.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import sqlalchemy as sa
from sqlalchemy import table as table_of
from sqlalchemy.exc import DataError, IntegrityError

from perfdb.db import bulk, migrate, session
from perfdb.db.packing import packed
from perfdb.db.session import is_missing, reading, reading_current, require_current, storing
from perfdb.db.tables import NotesType, NoteType, metadata, sources
from perfdb.errors import StoreError

Watched = Callable[[str, int], Callable[[int], None]]
"""From a table and its number of rows: what to call with the number of further copied rows."""

NAME: Final = "store.sqlite"
"""What a private copy is called in its folder."""

AS_TEXT: Final = (sa.JSON, NotesType, NoteType)
"""The types of columns that are copied as the text that they are kept as."""

SOURCES_AT_ONCE: Final = 1_000
"""Sources that are held while they are copied; among them are pages."""


def transfer(source: sa.URL, target: sa.URL, watched: Watched) -> int:
    """Copy every row of a store into an empty one, in one transaction; how many rows there are.

    Raises StoreError if either has another schema, and if the target is not empty.
    """
    where, total = target.render_as_string(), 0
    if is_missing(target):  # to write to a SQLite file that is not there would make it
        make = f"make it with `perfdb db upgrade {session.option(where)}`"
        raise StoreError(f"{where}: no database here; {make}")
    with storing(target) as engine, reading_current(source) as stored, engine.begin() as into:
        require_current(into, where)
        if _identity(stored) == _identity(into):
            raise StoreError(f"{where}: this is the store itself; name another to copy it into")
        if into.dialect.name == "postgresql":  # on SQLite who would write meanwhile waits anyway
            names = ", ".join(table.name for table in metadata.sorted_tables)
            into.exec_driver_sql(f"LOCK TABLE {names} IN EXCLUSIVE MODE")
        for table in metadata.sorted_tables:
            if into.execute(sa.select(table.c[0]).limit(1)).first():
                message = f"the store is not empty, it has {table.name}; copy into a new one"
                raise StoreError(f"{where}: {message}")
        for table in metadata.sorted_tables:
            count = stored.scalar(sa.select(sa.func.count()).select_from(table)) or 0
            try:
                _copy_rows(stored, into, table, watched(table.name, count))
            except (DataError, IntegrityError) as error:
                cause = f"{where}: a row of {table.name} cannot be kept there: {error.orig}"
                raise StoreError(f"{cause}; nothing is copied") from error
            _number_on(into, table)
            total += count
    return total


def _copy_rows(
    stored: sa.Connection,
    into: sa.Connection,
    table: sa.Table,
    done: Callable[[int], None] = lambda _: None,
    whole: str | None = None,
) -> None:
    """Copy every row of a table, with JSON as the text that it is kept as.

    Bytes are copied one source at a time. `whole`: copy only those that this parser read.
    """
    kinds = {one.name: sa.Text() if isinstance(one.type, AS_TEXT) else one.type for one in table.c}
    asked: list[sa.ColumnElement[object]] = [
        sa.cast(one, sa.Text) if isinstance(one.type, AS_TEXT) else one for one in table.c
    ]
    at_once = bulk.AT_ONCE
    if any(isinstance(one.type, sa.LargeBinary) for one in table.c):
        at_once = 1 if whole is None else SOURCES_AT_ONCE
        if whole is not None:
            nothing = sa.literal(packed(b""), sources.c.content.type)
            is_whole = sources.c.parser == whole
            asked[-1] = sa.case((is_whole, sources.c.content), else_=nothing)  # the last column
    found = stored.execute(sa.select(*asked).execution_options(yield_per=at_once))

    def passing() -> Iterator[bulk.Cells]:
        for some in found.partitions():
            yield from map(tuple, some)
            done(len(some))

    try:
        target = table_of(table.name, *(sa.column(name, kind) for name, kind in kinds.items()))
        bulk.add(into, target, list(kinds), passing(), at_once)
    finally:
        if not stored.invalidated:  # an interrupted fetch leaves it so
            found.close()


def _identity(connection: sa.Connection) -> tuple[object, ...]:
    """What two connections to the same store have in common, however its address is written."""
    if connection.dialect.name == "sqlite":
        file = Path(connection.exec_driver_sql("PRAGMA database_list").one().file).stat()
        return file.st_dev, file.st_ino
    its = "SELECT pg_postmaster_start_time(), current_database(), current_schema()"
    return tuple(connection.execute(sa.text(its)).one())


def _number_on(into: sa.Connection, table: sa.Table) -> None:
    """PostgreSQL counts ids apart from the rows: go on above the highest, if there is any."""
    id_ = table.autoincrement_column
    if into.dialect.name == "postgresql" and id_ is not None:
        sequence = sa.func.pg_get_serial_sequence(table.name, id_.name)
        into.execute(sa.select(sa.func.setval(sequence, sa.func.max(id_))))


def copied(url: sa.URL, folder: Path, whole: str) -> sa.URL:
    """A SQLite copy of a store in a folder; an empty store if there is none.

    Of a server's sources it has the bytes of those that this parser read, and no others.
    Raises StoreError for a store that cannot be read or is of another version.
    """
    copy, where = sa.URL.create("sqlite", database=str(folder / NAME)), url.render_as_string()
    if url.get_backend_name() == "sqlite":
        if not is_missing(url):
            _back_up(url, folder / NAME)
        migrate.upgrade(copy, where=where)
        return copy
    migrate.upgrade(copy)
    with reading(url) as stored, storing(copy) as engine, engine.begin() as into:
        if session.current(stored) is not None:
            require_current(stored, where)
            for table in metadata.sorted_tables:
                _copy_rows(stored, into, table, whole=whole)
    return copy


def _back_up(url: sa.URL, path: Path) -> None:
    with reading(url) as connection, closing(sqlite3.connect(path)) as into:
        stored = connection.connection.driver_connection
        assert isinstance(stored, sqlite3.Connection)
        try:
            stored.backup(into)
        except sqlite3.Error as error:
            message = f"the store cannot be copied for a dry run: {error}"
            raise StoreError(f"{path}: {message}") from error
