"""Engines and transactions: SQLite made safe for many processes, PostgreSQL as it is."""

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from sqlite3 import Connection as SqliteConnection
from sqlite3 import DatabaseError as DamagedError
from sqlite3 import OperationalError as OperationalSqliteError
from typing import TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event, func, make_url, select
from sqlalchemy.exc import (
    ArgumentError,
    DatabaseError,
    DataError,
    DBAPIError,
    IntegrityError,
    OperationalError,
)

from perfdb.errors import InputError, Problem, StoreError

DEFAULT_URL = "sqlite:///perfdb.sqlite"
DRIVERS = ("sqlite", "postgres", "postgresql", "postgresql+psycopg")
BUSY_TIMEOUT_S = 60

RACES = ("40001", "40P01")
"""PostgreSQL: serialization failure, deadlock detected."""

ATTEMPTS = 8
"""How often a transaction is tried."""

FIRST_PAUSE_S = 0.02

Answer = TypeVar("Answer")

DAMAGED = "the file is damaged: take an older copy, or ingest everything into a new one"
"""What to do about a file whose bytes have changed."""

_DAMAGES = (
    "malformed", "Could not decode to UTF-8", "no such column", "no such table", "error in table",
)  # fmt: skip
"""What SQLite says of such a file: also the names of columns and tables lie in it."""

_REMEDIES = {
    "unable to open database file": "may files be made in its folder?",
    "readonly database": "may it be written to? name another one with --db",
    "database or disk is full": "make room and try again; what was stored before is whole",
    "disk I/O error": "is there room, and no limit on files? what was stored before is whole",
    "database is locked": "another program keeps it locked: wait for it, or end it",
    **dict.fromkeys(_DAMAGES, DAMAGED),
    "file is not a database": "name a store of perfdb with --db",
}
"""What to do about what SQLite says."""


def store_url(given: str | None = None) -> URL:
    """The store's address: what was given, else PERFDB_URL, else perfdb.sqlite here.

    A plain file name is a SQLite file; postgres[ql]:// takes the psycopg driver. Raises InputError.
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
    return url if url.drivername == "sqlite" else url.set(drivername="postgresql+psycopg")


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
            f"{path}: no database here; run `perfdb ingest` first, or name another with --db or "
            "PERFDB_URL"
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
        if not any(words in str(error.orig) for words in _DAMAGES):
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
def storing(url: URL) -> Iterator[Engine]:
    """An engine that may write, for as long as something is stored. Raises StoreError."""
    engine = writer(url)
    try:
        yield engine
    except (DataError, IntegrityError):
        raise  # what was written is wrong, not the store
    except DatabaseError as error:
        raise failed(url, error) from error
    finally:
        engine.dispose()


def retried(act: Callable[[], Answer]) -> Answer:
    """The answer of a transaction, tried again while other processes are in its way."""
    for attempt in range(ATTEMPTS - 1):
        try:
            return act()
        except DBAPIError as error:
            if not is_race(error):
                raise
            time.sleep(FIRST_PAUSE_S * 2**attempt * random.uniform(0.5, 1.5))
    return act()


def is_race(error: DBAPIError) -> bool:
    """Whether another process was in the way, so that the same transaction may succeed now."""
    if isinstance(error, IntegrityError):
        return True
    busy = "database is locked" in str(error.orig)
    return isinstance(error, OperationalError) and (
        busy or getattr(error.orig, "sqlstate", None) in RACES
    )


def take_turns(connection: Connection, what: str) -> None:
    """Wait for a process that is storing the same thing, so as to find it there and unchanged.

    A SQLite transaction holds the only write lock from its beginning.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(what, 0))))


def _prepare_sqlite(connection: SqliteConnection, _record: object) -> None:
    """WAL lets readers read while one writes; foreign keys are off in SQLite unless asked for."""
    _look_at_sqlite(connection, _record)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute("PRAGMA foreign_keys=ON")


_NO_TEXT = "malformed: the definitions of the tables are no text"

_NO_KEYS = """
SELECT schema.name FROM sqlite_schema AS schema JOIN pragma_table_info(schema.name) AS declared
WHERE schema.type = 'table' AND declared.name = 'id' AND declared.type <> 'INTEGER'
AND EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'ingest_log')
"""
"""The tables of a store whose ids are read as NULL: only an INTEGER is the number of its row."""


def _look_at_sqlite(connection: SqliteConnection, _record: object) -> None:
    """SQLite opens any file; that it is no database, or damaged, shows when it is first read."""
    try:
        rows = connection.execute("SELECT * FROM sqlite_schema").fetchall()
    except (UnicodeDecodeError, OperationalSqliteError) as error:
        if "decode" not in str(error):
            raise
        raise DamagedError(_NO_TEXT) from error
    if any(isinstance(value, bytes) for row in rows for value in row):
        raise DamagedError(_NO_TEXT)
    if damaged := connection.execute(_NO_KEYS).fetchone():
        raise DamagedError(f"malformed: the ids of the table {damaged[0]} cannot be read")
