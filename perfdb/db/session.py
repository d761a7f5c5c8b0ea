"""Engines and transactions: SQLite made safe for many processes, PostgreSQL as it is."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from sqlite3 import Connection as SqliteConnection

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from perfdb.errors import InputError, Problem, StoreError

DEFAULT_URL = "sqlite:///perfdb.sqlite"
DRIVERS = ("sqlite", "postgresql", "postgresql+psycopg")
BUSY_TIMEOUT_S = 60
_REMEDIES = {
    "unable to open database file": "may files be made in its folder?",
    "readonly database": "may it be written to? name another one with --db",
    "database or disk is full": "make room and try again; what was stored before is whole",
    "disk I/O error": "is there room, and no limit on files? what was stored before is whole",
    "database is locked": "another program keeps it locked: wait for it, or end it",
    "malformed": "the file is damaged: take an older copy, or ingest everything into a new one",
    "file is not a database": "name a store of perfdb with --db",
}
"""What to do about what SQLite says."""


def store_url(given: str | None = None) -> URL:
    """The store's address: what was given, else PERFDB_URL, else perfdb.sqlite here.

    A plain file name is a SQLite file; postgresql:// takes the psycopg driver. Raises InputError.
    """
    text = given or os.environ.get("PERFDB_URL") or DEFAULT_URL
    if "://" not in text:
        text = f"sqlite:///{text}"
    try:
        url = make_url(text)
    except (ArgumentError, ValueError) as error:
        remedy = "give sqlite:///FILE or postgresql://USER@HOST/DATABASE"
        raise InputError(
            Problem("--db", f"not a database address: {text!r}", remedy=remedy)
        ) from error
    if url.drivername not in DRIVERS:
        remedy = "perfdb keeps its data in sqlite or postgresql (with psycopg)"
        raise InputError(Problem("--db", f"unknown database {url.drivername!r}", remedy=remedy))
    if url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:"):
        remedy = "name a file: sqlite:///perfdb.sqlite"
        raise InputError(Problem("--db", "a store in memory is gone at once", remedy=remedy))
    return url.set(drivername="postgresql+psycopg") if url.drivername == "postgresql" else url


def writer(url: URL) -> Engine:
    """An engine that may write. Every SQLite transaction takes the write lock as it begins."""
    if url.get_backend_name() != "sqlite":
        return create_engine(url)
    engine = create_engine(url, connect_args={"timeout": BUSY_TIMEOUT_S, "isolation_level": None})
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    return engine


def reader(url: URL) -> Engine:
    """An engine that cannot write. Raises StoreError where there is no database."""
    if url.get_backend_name() != "sqlite":
        return create_engine(
            url,
            execution_options={"postgresql_readonly": True, "isolation_level": "REPEATABLE READ"},
        )
    path = Path(url.database or "")
    if not path.is_file():
        raise StoreError(
            f"{path}: no database here; run `perfdb ingest` first, or name one with --db"
        )
    # A reader of a WAL database makes files beside it, unless it is told that nobody writes.
    mode = "mode=ro" if os.access(path.parent, os.W_OK) else "mode=ro&immutable=1"
    address = f"sqlite:///file:{path.absolute()}?{mode}&uri=true"
    engine = create_engine(
        address, connect_args={"timeout": BUSY_TIMEOUT_S, "isolation_level": None}
    )
    event.listen(engine, "connect", _look_at_sqlite)
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
    return engine


@contextmanager
def reading(url: URL) -> Iterator[Connection]:
    """One consistent read of the store, released at the end. Raises StoreError."""
    engine = reader(url)
    try:
        with opened(engine, url) as connection:
            yield connection
    except DBAPIError as error:
        if "malformed" not in str(error.orig):
            raise  # the question is wrong, not the store
        raise failed(url, error) from error
    finally:
        engine.dispose()


def opened(engine: Engine, url: URL) -> Connection:
    """A connection to the store at an address. Raises StoreError where there is none to be had."""
    try:
        return engine.connect()
    except DBAPIError as error:
        raise failed(url, error) from error


def failed(url: URL, error: DBAPIError) -> StoreError:
    """What a database says, as an error that names the store and what to do."""
    said = str(error.orig)
    remedy = next((f"; {remedy}" for words, remedy in _REMEDIES.items() if words in said), "")
    return StoreError(f"{url.render_as_string()}: {said}{remedy}")


@contextmanager
def writing(url: URL) -> Iterator[Connection]:
    """One write transaction: committed at the end, or undone whole."""
    engine = writer(url)
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


def _prepare_sqlite(connection: SqliteConnection, _record: object) -> None:
    """WAL lets readers read while one writes; foreign keys are off in SQLite unless asked for."""
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute("PRAGMA foreign_keys=ON")


def _look_at_sqlite(connection: SqliteConnection, _record: object) -> None:
    """SQLite opens any file; that it is no database shows when it is first read."""
    connection.execute("PRAGMA schema_version")
