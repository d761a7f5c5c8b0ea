"""Engines and transactions: SQLite made safe for many processes, PostgreSQL as it is."""

import json
import os
import random
import re
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from sqlite3 import Connection as SqliteConnection
from sqlite3 import DatabaseError as DamagedError
from sqlite3 import OperationalError as OperationalSqliteError
from typing import Final, TypeVar
from urllib.parse import quote

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    Text,
    column,
    create_engine,
    event,
    func,
    inspect,
    make_url,
    select,
    table,
)
from sqlalchemy.exc import (
    ArgumentError,
    DatabaseError,
    DataError,
    DBAPIError,
    IntegrityError,
    OperationalError,
)

from perfdb.errors import Diagnostic, InputError, StoreError

DEFAULT_URL = "sqlite:///perfdb.sqlite"
DRIVERS = ("sqlite", "postgres", "postgresql", "postgresql+psycopg")
BUSY_TIMEOUT_S = 60

RACES = ("40001", "40P01")
"""PostgreSQL: serialization failure, deadlock detected."""

ATTEMPTS = 8
"""How often a transaction is tried."""

FIRST_PAUSE_S = 0.02

HEAD: Final = "0001"
"""The migration that makes the tables as perfdb.db.tables has them: the newest."""

_REVISION: Final = column("version_num", Text)
_REVISIONS: Final = table("alembic_version", _REVISION)

Answer = TypeVar("Answer")

DAMAGED = "the file is damaged: take an older copy, or ingest everything into a new one"
"""What to do about a file whose bytes have changed."""

_DAMAGES = (
    "malformed", "Could not decode to UTF-8", "no such column", "no such table", "error in table",
)  # fmt: skip
"""What SQLite says of such a file: also the names of columns and tables lie in it."""

_UNOPENED = "unable to open database file"
_A_FOLDER = "it is a folder; name a file in it"

_REMEDIES = {
    "readonly database": "may it be written to? name another one with --db",
    "database or disk is full": "make room and try again; what was stored before is whole",
    "disk I/O error": "is there room, and no limit on files? what was stored before is whole",
    "database is locked": "another program keeps it locked: wait for it, or end it",
    **dict.fromkeys(_DAMAGES, DAMAGED),
    "file is not a database": "name a store of perfdb with --db",
    "not a perfdb database": "name another file with --db",
}
"""What to do about what SQLite says."""


def store_url(given: str | None = None) -> URL:
    """The store's address: what was given, else PERFDB_URL, else perfdb.sqlite here.

    A plain file name is a SQLite file, of this very name; in an address %3F stands for a ?, as in
    any. postgres[ql]:// takes the psycopg driver. Raises InputError.
    """
    text = given or os.environ.get("PERFDB_URL") or DEFAULT_URL
    url = _address(text) if "://" in text else URL.create("sqlite", database=text)
    if url.drivername not in DRIVERS:
        remedy = "perfdb keeps its data in sqlite or postgresql (with psycopg)"
        raise InputError(Diagnostic("--db", f"unknown database {url.drivername!r}", remedy=remedy))
    if url.drivername != "sqlite":
        return url.set(drivername="postgresql+psycopg")
    if problem := _no_file(text, url):
        raise InputError(problem)
    return url


def _address(text: str) -> URL:
    try:
        return make_url(text)
    except (ArgumentError, ValueError) as error:
        remedy = "give sqlite:///FILE or postgresql://USER@HOST/DATABASE"
        raise InputError(
            Diagnostic("--db", f"not a database address: {text!r}", remedy=remedy)
        ) from error


def _no_file(text: str, url: URL) -> Diagnostic | None:
    """Why a SQLite address is not that of one file."""
    if url.host or url.username or url.port:
        message, remedy = f"{text!r} names no file", "write sqlite:///FILE, with three slashes"
    elif url.database in (None, "", ":memory:"):
        message = "a store in memory is gone at once"
        remedy = "name a file: sqlite:///perfdb.sqlite"
    elif "://" in text and "?" in text:
        message = f"{text!r} has options, and a store takes none"
        remedy = "write a ? of the file's name as %3F, or give the name without sqlite:///"
    elif re.search("[\0\ud800-\udfff]", url.database or ""):
        message, remedy = f"{text!r} is not UTF-8, or holds a null character", "name another file"
    else:
        return None
    return Diagnostic("--db", message, remedy=remedy)


def is_missing(url: URL) -> bool:
    """Whether a store is a SQLite file that is not there. Raises StoreError where none can be."""
    if url.get_backend_name() != "sqlite":
        return False
    path = Path(url.database or "")
    try:
        if path.is_dir():
            raise StoreError(f"{path}: {_A_FOLDER}")
        return not path.is_file()
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from error


def writer(url: URL) -> Engine:
    """An engine that may write. Every SQLite transaction takes the write lock as it begins."""
    if url.get_backend_name() != "sqlite":
        return create_engine(url, json_deserializer=_from_json)
    engine = create_engine(
        url,
        connect_args={"timeout": BUSY_TIMEOUT_S, "isolation_level": None},
        json_deserializer=_from_json,
    )
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    return engine


def reader(url: URL) -> Engine:
    """An engine that cannot write. Raises StoreError where there is no database."""
    if url.get_backend_name() != "sqlite":
        return create_engine(
            url,
            execution_options={"postgresql_readonly": True, "isolation_level": "REPEATABLE READ"},
            json_deserializer=_from_json,
        )
    path = Path(url.database or "")
    if is_missing(url):
        raise StoreError(
            f"{path}: no database here; run `perfdb ingest` first, or name another with --db or "
            "PERFDB_URL"
        )
    # A reader of a WAL database makes files next to it, unless it is told that nobody writes.
    mode = {"mode": "ro"} if os.access(path.parent, os.W_OK) else {"mode": "ro", "immutable": "1"}
    file = f"file:{quote(os.fsencode(path.absolute()))}"  # SQLite takes # ? and % for its own
    engine = create_engine(
        URL.create("sqlite", database=file, query=mode | {"uri": "true"}),
        connect_args={"timeout": BUSY_TIMEOUT_S, "isolation_level": None},
        json_deserializer=_from_json,
    )
    event.listen(engine, "connect", _look_at_sqlite)
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
    return engine


def _from_json(text: str) -> object:
    """The value of a cell; most cells of most rows are empty, and parsing takes longer."""
    if text == "{}":
        return {}
    return [] if text == "[]" else json.loads(text)


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


def current(connection: Connection) -> str | None:
    """The schema a database has; None where it has none."""
    if not inspect(connection).has_table(_REVISIONS.name):
        return None
    found = connection.execute(select(_REVISION).select_from(_REVISIONS)).scalars()
    return ", ".join(sorted(found)) or None


def option(where: str) -> str:
    """'--db sqlite:///perfdb.sqlite': a store as commands take it, less the mask of a password."""
    return f"--db {shlex.quote(where.replace(':***@', '@'))}"


def require_current(connection: Connection, where: str) -> None:
    """Raises StoreError unless the database has exactly this version's schema."""
    upgrade, found = f"run `perfdb db upgrade {option(where)}`", current(connection)
    if found is None:
        raise StoreError(f"{where}: not a perfdb database; {upgrade}")
    if found != HEAD:
        remedy = f"{upgrade}, or use" if found < HEAD else "use"
        raise StoreError(
            f"{where}: schema {found} is not {HEAD}, this version's; "
            f"{remedy} the perfdb that wrote it"
        )


@contextmanager
def reading_current(url: URL) -> Iterator[Connection]:
    """One consistent read of a store. Raises StoreError where there is none of this schema."""
    with reading(url) as connection:
        require_current(connection, url.render_as_string())
        yield connection


def opened(engine: Engine, url: URL) -> Connection:
    """A connection to the store at an address. Raises StoreError where there is none to be had."""
    try:
        return engine.connect()
    except DBAPIError as error:
        raise failed(url, error) from error


def failed(url: URL, error: DBAPIError) -> StoreError:
    """What a database says, as an error that names the store and what to do."""
    cause = str(error.orig)
    remedies = (remedy for words, remedy in _REMEDIES.items() if words in cause)
    remedy = _unopened(Path(url.database or "")) if _UNOPENED in cause else next(remedies, "")
    return StoreError("; ".join(filter(None, (f"{url.render_as_string()}: {cause}", remedy))))


def _unopened(path: Path) -> str:
    """Why SQLite cannot open a file, as far as that can be told."""
    try:
        if path.is_dir():
            return _A_FOLDER
        if not path.parent.is_dir():
            return f"there is no folder {path.parent}: make it"
        if path.exists() and not os.access(path, os.R_OK):
            return "may it be read?"
    except OSError as error:
        return str(error.strerror)
    return "may files be made in its folder?"


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

_OF_OTHERS = r"""
SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'alembic_version'
AND name NOT LIKE 'sqlite\_%' ESCAPE '\'
AND NOT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'ingest_log')
"""
"""The tables of a file that is no store: every schema of ours has a log of what was ingested."""


def _look_at_sqlite(connection: SqliteConnection, _record: object) -> None:
    """SQLite opens any file; that it is no database, damaged or of another program shows when it is
    first read, before anything is written.
    """
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
    if other := connection.execute(_OF_OTHERS).fetchone():
        raise DamagedError(f"not a perfdb database: it has tables of others, such as {other[0]}")
