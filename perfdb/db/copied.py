"""A private copy of a store, to try on it what is to change nothing.

The store is only read, as it is at one moment, and nobody who writes to it has to wait.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from sqlalchemy import URL, Select, case, literal, select

from perfdb.db import migrate, schema, transfer
from perfdb.db.packing import packed
from perfdb.db.session import is_missing, reading, storing
from perfdb.db.tables import metadata, sources
from perfdb.errors import StoreError

NAME: Final = "store.sqlite"

AT_ONCE: Final = 1_000
"""Sources that are held while they are copied; among them are pages."""


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
        if schema.current(stored) is None:
            return
        schema.require_current(stored, url.render_as_string())
        for table in metadata.sorted_tables:
            asked = _sources(whole) if table is sources else transfer.rows(table)
            transfer.copy_rows(stored, into, table, asked)


def _sources(whole: str) -> Select[*tuple[object, ...]]:
    columns = [one for one in sources.c if one is not sources.c.content]
    nothing = literal(packed(b""), sources.c.content.type)
    content = case((sources.c.parser == whole, sources.c.content), else_=nothing)
    asked = select(*columns, content.label(sources.c.content.name))
    return asked.execution_options(yield_per=AT_ONCE)
