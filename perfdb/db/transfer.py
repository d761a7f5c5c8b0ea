"""Copies of a store: into an empty one, also between SQLite and PostgreSQL, or a private one.

A private copy is to try on it what is to change nothing. The store is only read, as it is at one
moment, and nobody who writes to it has to wait.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from sqlalchemy import (
    JSON,
    URL,
    Connection,
    LargeBinary,
    Result,
    Select,
    Table,
    Text,
    case,
    cast,
    column,
    func,
    literal,
    select,
)
from sqlalchemy import table as table_of
from sqlalchemy.exc import DataError, IntegrityError

from perfdb.db import bulk, migrate
from perfdb.db.column_types import NotesType, NoteType
from perfdb.db.packing import packed
from perfdb.db.session import (
    current,
    is_missing,
    option,
    reading,
    reading_current,
    require_current,
    storing,
)
from perfdb.db.tables import metadata, sources
from perfdb.errors import StoreError

Watched = Callable[[str, int], Callable[[int], None]]
"""Given a table and how many rows it has, what to call with how many more of them are copied."""

NAME: Final = "store.sqlite"
"""What a private copy is called in its folder."""

AS_TEXT: Final = (JSON, NotesType, NoteType)
"""The types of columns that are copied as the text that they are kept as."""

SOURCES_AT_ONCE: Final = 1_000
"""Sources that are held while they are copied; among them are pages."""


def transfer(source: URL, target: URL, watched: Watched) -> int:
    """Copy every row of a store into an empty one, in one transaction; how many rows there are.

    Raises StoreError where either has another schema, and where the target is not empty.
    """
    _require_there(target)
    where, copied = target.render_as_string(), 0
    with (
        storing(target) as engine,
        reading_current(source) as stored,
        engine.begin() as into,
    ):
        require_current(into, where)
        if _identity(stored) == _identity(into):
            raise StoreError(f"{where}: this is the store itself; name another to copy it into")
        _require_empty(into, where)
        for table in metadata.sorted_tables:
            count = stored.scalar(select(func.count()).select_from(table)) or 0
            try:
                copy_rows(stored, into, table, rows(table), watched(table.name, count))
            except (DataError, IntegrityError) as error:
                cause = f"{where}: a row of {table.name} cannot be kept there: {error.orig}"
                raise StoreError(f"{cause}; nothing is copied") from error
            _number_on(into, table)
            copied += count
    return copied


def rows(table: Table) -> Select[*tuple[object, ...]]:
    """Every row of a table, with JSON as the text that it is kept as, and bytes one at a time."""
    columns = (
        cast(one, Text).label(one.name) if isinstance(one.type, AS_TEXT) else one for one in table.c
    )
    of_bytes = any(isinstance(one.type, LargeBinary) for one in table.c)
    return select(*columns).execution_options(yield_per=1 if of_bytes else bulk.AT_ONCE)


def copy_rows(
    stored: Connection,
    into: Connection,
    table: Table,
    asked: Select[*tuple[object, ...]],
    done: Callable[[int], None] = lambda _: None,
) -> None:
    """Copy what is asked of a table, in the form of `rows`: its `yield_per` rows at a time."""
    at_once: int = asked.get_execution_options()["yield_per"]
    columns = [
        column(one.name, Text() if isinstance(one.type, AS_TEXT) else one.type) for one in table.c
    ]
    names = [one.name for one in columns]
    found = stored.execute(asked)
    try:
        bulk.add(into, table_of(table.name, *columns), names, _passing(found, done), at_once)
    finally:
        if not stored.invalidated:  # as who interrupts a fetch leaves it
            found.close()


def _passing(
    found: Result[*tuple[object, ...]], done: Callable[[int], None]
) -> Iterator[bulk.Cells]:
    for some in found.partitions():
        yield from map(tuple, some)
        done(len(some))


def _require_there(target: URL) -> None:
    """To write to a SQLite file that is not there would make it."""
    if is_missing(target):
        where = target.render_as_string()
        make = f"make it with `perfdb db upgrade {option(where)}`"
        raise StoreError(f"{where}: no database here; {make}")


def _identity(connection: Connection) -> tuple[object, ...]:
    """What two connections to the same store have in common, however its address is written."""
    if connection.dialect.name == "sqlite":
        file = Path(connection.exec_driver_sql("PRAGMA database_list").one().file).stat()
        return file.st_dev, file.st_ino
    server = func.pg_postmaster_start_time()
    return tuple(
        connection.execute(select(server, func.current_database(), func.current_schema())).one()
    )


def _require_empty(into: Connection, where: str) -> None:
    """On PostgreSQL those who would write meanwhile wait; on SQLite they do so anyway."""
    if into.dialect.name == "postgresql":
        names = ", ".join(table.name for table in metadata.sorted_tables)
        into.exec_driver_sql(f"LOCK TABLE {names} IN EXCLUSIVE MODE")
    for table in metadata.sorted_tables:
        if into.execute(select(table.c[0]).limit(1)).first():
            raise StoreError(
                f"{where}: the store is not empty, it has {table.name}; copy into a new one"
            )


def _number_on(into: Connection, table: Table) -> None:
    """PostgreSQL counts ids apart from the rows: go on above the highest, if there is any."""
    id_ = table.autoincrement_column
    if into.dialect.name == "postgresql" and id_ is not None:
        sequence = func.pg_get_serial_sequence(table.name, id_.name)
        into.execute(select(func.setval(sequence, func.max(id_))))


def copied(url: URL, folder: Path, whole: str) -> URL:
    """A SQLite copy of a store in a folder; an empty store where there is none.

    Of a server's sources it has the bytes of those that this parser read, and no others.
    Raises StoreError for a store that cannot be read or is of another version.
    """
    copy = URL.create("sqlite", database=str(folder / NAME))
    if url.get_backend_name() != "sqlite":
        migrate.upgrade(copy)
        _copy_rows(url, copy, whole)
        return copy
    if not is_missing(url):
        _copy_file(url, folder / NAME)
    migrate.upgrade(copy, where=url.render_as_string())
    return copy


def _copy_file(url: URL, path: Path) -> None:
    with reading(url) as connection, closing(sqlite3.connect(path)) as into:
        stored = connection.connection.driver_connection
        assert isinstance(stored, sqlite3.Connection)
        try:
            stored.backup(into)
        except sqlite3.Error as error:
            raise StoreError(
                f"{path}: the store cannot be copied for a dry run: {error}"
            ) from error


def _copy_rows(url: URL, copy: URL, whole: str) -> None:
    with reading(url) as stored, storing(copy) as engine, engine.begin() as into:
        if current(stored) is None:
            return
        require_current(stored, url.render_as_string())
        for table in metadata.sorted_tables:
            asked = _sources(whole) if table is sources else rows(table)
            copy_rows(stored, into, table, asked)


def _sources(whole: str) -> Select[*tuple[object, ...]]:
    columns = [one for one in sources.c if one is not sources.c.content]
    nothing = literal(packed(b""), sources.c.content.type)
    content = case((sources.c.parser == whole, sources.c.content), else_=nothing)
    asked = select(*columns, content.label(sources.c.content.name))
    return asked.execution_options(yield_per=SOURCES_AT_ONCE)
