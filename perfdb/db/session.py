"""Engines and transactions: SQLite made safe for many processes, PostgreSQL as it is."""

import getpass
import json
import os
import random
import re
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from sqlite3 import Connection as SqliteConnection
from sqlite3 import DatabaseError as SqliteError
from typing import Final, TypeVar
from urllib.parse import quote

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    NullPool,
    Pool,
    event,
    func,
    inspect,
    make_url,
    select,
    text,
)
from sqlalchemy import create_engine as engine_of
from sqlalchemy.exc import (
    ArgumentError,
    DatabaseError,
    DataError,
    DBAPIError,
    IntegrityError,
    OperationalError,
)

from perfdb.errors import Diagnostic, InputError, StoreError

DEFAULT_URL: Final = "sqlite:///perfdb.sqlite"
BUSY_TIMEOUT_S = 60
RACES: Final = ("40001", "40P01")
"""PostgreSQL: serialization failure, deadlock detected."""
ATTEMPTS: Final = 8
"""How often a transaction is tried."""
FIRST_PAUSE_S: Final = 0.02
HEAD: Final = "0001"
"""The migration that makes the tables as perfdb.db.tables has them: the newest."""

Answer = TypeVar("Answer")

_MISSPELT: Final = re.compile(r"postgres\w*(?:\+\w+)?:")
"""How an address of PostgreSQL begins, which without its // is no name of a file."""
_FOLDER: Final = "it is a folder; name a file in it"
_DAMAGES: Final = (
    "malformed", "Could not decode to UTF-8", "no such column", "no such table", "error in table",
)  # fmt: skip
"""What SQLite says of a file with changed bytes, also in the names of its tables."""
_REMEDIES: Final = {
    "readonly database": "may it be written to? name another one with --db",
    "database or disk is full": "make room and try again; what was stored before is whole",
    "disk I/O error": "is there room, and no limit on files? what was stored before is whole",
    "database is locked": "another program keeps it locked: wait for it, or end it",
    **dict.fromkeys(
        _DAMAGES, "the file is damaged: take an older copy, or ingest everything into a new one"
    ),
    "file is not a database": "name a store of perfdb with --db",
    "not a perfdb database": "name another file with --db",
}
"""What to do about what SQLite says."""


def store_url(given: str | None = None) -> URL:
    """The store's address: the argument, else PERFDB_URL, else perfdb.sqlite here.

    A name without :// is that of a SQLite file. In an address %3F is a ?. postgres:// and
    postgresql:// take the psycopg driver. Raises InputError.
    """
    address = given or os.environ.get("PERFDB_URL") or DEFAULT_URL
    is_name = "://" not in address and not _MISSPELT.match(address)
    try:
        url = URL.create("sqlite", database=address) if is_name else make_url(address)
    except (ArgumentError, ValueError) as error:
        remedy = "give sqlite:///FILE or postgresql://USER@HOST/DATABASE"
        message = "not a database address"  # nor printed: a password may be anywhere in it
        raise InputError(Diagnostic("--db", message, remedy=remedy)) from error
    if url.drivername in ("postgres", "postgresql", "postgresql+psycopg"):
        return _masking(url.set(drivername="postgresql+psycopg"))
    if problem := _no_file(address, url):
        raise InputError(problem)
    return url


def _masking(url: URL) -> URL:
    """An address with the password of its options in its own place, where printing masks it."""
    if "sslpassword" in url.query:
        remedy = "use a key without a password, or a service file (PGSERVICEFILE)"
        raise InputError(Diagnostic("--db", "sslpassword would be shown", remedy=remedy))
    known = {
        name: value if isinstance(value, str) else value[-1]
        for name in ("user", "password")
        if (value := url.query.get(name))
    }
    user = known.get("user") or url.username
    if "password" in known and user is None:
        user = os.environ.get("PGUSER") or getpass.getuser()  # as the driver would
    password = known.get("password") or url.password
    return url.set(username=user, password=password).difference_update_query(known)


def _no_file(address: str, url: URL) -> Diagnostic | None:
    """Why an address is not that of one SQLite file."""
    address = re.sub(r"(?<=://).*(?=@)|(?<=password=)[^&]*", "***", address)
    if url.drivername != "sqlite":
        message = f"unknown database {url.drivername!r}"
        remedy = "perfdb keeps its data in sqlite or postgresql (with psycopg)"
    elif url.host or url.username or url.port:
        message, remedy = f"{address!r} names no file", "write sqlite:///FILE, with three slashes"
    elif url.database in (None, "", ":memory:"):
        message = "a store in memory is gone at once"
        remedy = "name a file: sqlite:///perfdb.sqlite"
    elif "://" in address and "?" in address:
        message = f"{address!r} has options, and a store takes none"
        remedy = "write a ? of the file's name as %3F, or give the name without sqlite:///"
    elif re.search("[\0\ud800-\udfff]", url.database or ""):
        message = f"{address!r} is not UTF-8, or holds a null character"
        remedy = "name another file"
    else:
        return None
    return Diagnostic("--db", message, remedy=remedy)


def is_missing(url: URL) -> bool:
    """Whether a store is a SQLite file that does not exist. Raises StoreError if none can."""
    if url.get_backend_name() != "sqlite":
        return False
    path = Path(url.database or "")
    try:
        if path.is_dir():
            raise StoreError(f"{path}: {_FOLDER}")
        return not path.is_file()
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from error


def writer(url: URL) -> Engine:
    """An engine that may write. Every SQLite transaction takes the write lock as it begins."""
    if url.get_backend_name() != "sqlite":
        return engine_of(url, json_deserializer=_from_json)
    engine = _sqlite_engine(url, "BEGIN IMMEDIATE")
    event.listen(engine, "connect", _prepare_to_write)
    return engine


def reader(url: URL) -> Engine:
    """An engine that cannot write. Raises StoreError if there is no database."""
    if url.get_backend_name() != "sqlite":
        options = {"postgresql_readonly": True, "isolation_level": "REPEATABLE READ"}
        return engine_of(url, execution_options=options, json_deserializer=_from_json)
    path = Path(url.database or "")
    if is_missing(url):
        remedy = "run `perfdb ingest` first, or name another with --db or PERFDB_URL"
        raise StoreError(f"{path}: no database here; {remedy}")
    # A reader of a WAL database makes files next to it, unless it knows that nobody writes.
    mode = {"mode": "ro"} if os.access(path.parent, os.W_OK) else {"mode": "ro", "immutable": "1"}
    file = f"file:{quote(os.fsencode(path.absolute()))}"  # SQLite reads # ? and % as its own
    return _sqlite_reader(URL.create("sqlite", database=file, query=mode | {"uri": "true"}))


@lru_cache(maxsize=16)
def _sqlite_reader(url: URL) -> Engine:
    """An engine that keeps the statements that it has compiled, and no connection."""
    return _sqlite_engine(url, "BEGIN", NullPool)


def _sqlite_engine(url: URL, begin: str, pool: type[Pool] | None = None) -> Engine:
    options = {"timeout": BUSY_TIMEOUT_S, "isolation_level": None}
    engine = engine_of(url, connect_args=options, json_deserializer=_from_json, poolclass=pool)
    event.listen(engine, "connect", _refuse_other_programs)
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
    return engine


def _from_json(stored: str) -> object:
    """The value of a cell; most cells of most rows are empty, and parsing takes longer."""
    if stored == "{}":
        return {}
    return [] if stored == "[]" else json.loads(stored)


def _prepare_to_write(connection: SqliteConnection, _record: object) -> None:
    """WAL lets readers read while one writes; foreign keys are off in SQLite unless asked for."""
    for setting in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {setting}")


_TABLES_OF_OTHERS: Final = r"""
SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'alembic_version'
AND name NOT LIKE 'sqlite\_%' ESCAPE '\'
AND NOT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'ingest_log')
"""
"""The tables of a file that is no store: every schema of ours has a log of what was ingested."""


def _refuse_other_programs(connection: SqliteConnection, _record: object) -> None:
    """SQLite opens any file. This reads it first, before anything is written."""
    try:
        other = connection.execute(_TABLES_OF_OTHERS).fetchone()
    except UnicodeDecodeError as error:
        raise SqliteError("malformed: the definitions of the tables are no text") from error
    if other:
        raise SqliteError(f"not a perfdb database: it has tables of others, such as {other[0]}")


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
    """The schema a database has; None if it has none."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.scalars(text("SELECT version_num FROM alembic_version"))
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
        message = f"schema {found} is not {HEAD}, this version's"
        raise StoreError(f"{where}: {message}; {remedy} the perfdb that wrote it")


@contextmanager
def reading_current(url: URL) -> Iterator[Connection]:
    """One consistent read of a store. Raises StoreError if there is none of this schema."""
    with reading(url) as connection:
        require_current(connection, url.render_as_string())
        yield connection


def opened(engine: Engine, url: URL) -> Connection:
    """A connection to the store at an address. Raises StoreError if it cannot be opened."""
    try:
        return engine.connect()
    except DBAPIError as error:
        raise failed(url, error) from error


def failed(url: URL, error: DBAPIError) -> StoreError:
    """What a database says, as an error that names the store and what to do."""
    cause = str(error.orig)
    if "unable to open database file" in cause:
        remedy = _why_unopened(Path(url.database or ""))
    else:
        remedy = next((remedy for words, remedy in _REMEDIES.items() if words in cause), "")
    return StoreError("; ".join(filter(None, (f"{url.render_as_string()}: {cause}", remedy))))


def _why_unopened(path: Path) -> str:
    try:
        if path.is_dir():
            return _FOLDER
        if not path.parent.is_dir():
            return f"there is no folder {path.parent}: make it"
        is_unreadable = path.exists() and not os.access(path, os.R_OK)
    except OSError as error:
        return str(error.strerror)
    return "may it be read?" if is_unreadable else "may files be made in its folder?"


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
    busy = "database is locked" in str(error.orig)
    lost = busy or getattr(error.orig, "sqlstate", None) in RACES
    return isinstance(error, IntegrityError) or (isinstance(error, OperationalError) and lost)


def take_turns(connection: Connection, what: str) -> None:
    """Wait for a process that is storing the same thing, so as to find it there and unchanged.

    A SQLite transaction holds the only write lock from its beginning.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(what, 0))))
