"""Bring a database to a schema, and say how its tables differ from what the code expects."""

from functools import partial
from pathlib import Path
from sqlite3 import Connection as SqliteConnection
from typing import TYPE_CHECKING

from sqlalchemy import URL, Connection, event, inspect
from sqlalchemy.exc import DBAPIError, NoReferenceError

import perfdb
from perfdb.db import session
from perfdb.db.session import failed, reading, retried, writer
from perfdb.db.tables import metadata
from perfdb.errors import StoreError

if TYPE_CHECKING:  # a store that is new or current needs no alembic, which loads for long
    from alembic.config import Config

PACKAGE = Path(perfdb.__file__).parent

POSTGRES_LOCK = 0x70657266
"""Any constant: processes that migrate the same database at once take turns on it."""

_VERSION_TABLE = """
CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
)
"""
"""As alembic makes it."""


def scripts() -> Path:
    """The migrations: inside an installed wheel, next to the package in a checkout."""
    packaged = PACKAGE / "_migrations"
    return packaged if packaged.is_dir() else PACKAGE.parent / "migrations"


def config(connection: Connection | None = None) -> "Config":
    """Alembic's configuration, with the connection its env.py is to use."""
    from alembic.config import Config  # noqa: PLC0415

    made = Config()
    made.set_main_option("script_location", str(scripts()))
    made.attributes["connection"] = connection
    return made


def current(url: URL) -> str | None:
    """The schema a database has; None if it has none."""
    with reading(url) as connection:
        return session.current(connection)


def upgrade(url: URL, revision: str = "head", where: str | None = None) -> None:
    """Bring a database up to a schema, and make it if need be; many processes may try at once.

    `where`: what errors call the database. None: its address. Raises StoreError for a newer schema
    and for a file of another program.
    """
    _migrate(url, revision, where or url.render_as_string(), upwards=True)


def downgrade(url: URL, revision: str) -> tuple[str, ...]:
    """Bring a database down to a schema; what is lost with it, which is everything."""
    _migrate(url, revision, url.render_as_string(), upwards=False)
    return ("everything",) if current(url) is None else ()


def _migrate(url: URL, revision: str, where: str, *, upwards: bool) -> None:
    try:
        retried(partial(_try_to_migrate, url, revision, where, upwards=upwards))
    except DBAPIError as error:
        raise failed(url, error) from error


def _try_to_migrate(url: URL, revision: str, where: str, *, upwards: bool) -> None:
    engine = writer(url)
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _without_foreign_keys)
    try:
        with engine.connect() as connection, connection.begin():
            if engine.dialect.name == "postgresql":
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({POSTGRES_LOCK})")
            if not (upwards and revision == "head" and _is_newest(connection)):
                _run_scripts(connection, revision, where, upwards=upwards)
    finally:
        engine.dispose()


def _is_newest(connection: Connection) -> bool:
    """Whether a database has the newest schema; one without any table gets it at once."""
    if not inspect(connection).get_table_names():
        metadata.create_all(connection)
        connection.exec_driver_sql(_VERSION_TABLE)
        connection.exec_driver_sql(f"INSERT INTO alembic_version VALUES ('{session.HEAD}')")
        return True
    return session.current(connection) == session.HEAD


def _run_scripts(connection: Connection, revision: str, where: str, *, upwards: bool) -> None:
    """Run the migrations to a schema. Raises StoreError for one that is not known."""
    from alembic import command  # noqa: PLC0415
    from alembic.script import ScriptDirectory  # noqa: PLC0415
    from alembic.util import CommandError  # noqa: PLC0415

    try:
        (command.upgrade if upwards else command.downgrade)(config(connection), revision)
    except CommandError as error:
        known = ScriptDirectory.from_config(config()).walk_revisions()
        names = ", ".join(sorted(one.revision for one in known))
        newer = "use the perfdb that wrote it, or a newer one"
        remedy = newer if upwards else f"known: base, {names}"
        raise StoreError(f"{where}: {error}; {remedy}") from error


def _without_foreign_keys(connection: SqliteConnection, _record: object) -> None:
    """SQLite changes a column by making the table anew; dropping the old one would delete from
    other tables what refers to it. The pragma holds only outside of a transaction.
    """
    connection.execute("PRAGMA foreign_keys=OFF")


def differences(url: URL) -> list[str]:
    """How the tables differ from what the code expects; empty if they do not."""
    from alembic.autogenerate import compare_metadata  # noqa: PLC0415
    from alembic.migration import MigrationContext  # noqa: PLC0415

    with reading(url) as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        try:
            return [str(difference) for difference in compare_metadata(context, metadata)]
        except NoReferenceError as error:  # a table lacks what another one refers to
            return [str(error)]
