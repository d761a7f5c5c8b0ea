"""Which schema a store has, and whether it is this version's; perfdb.db.migrate changes it.

Every command that reads a store asks: what makes the tables is not loaded for that.
"""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sqlalchemy import URL, Connection, Text, column, inspect, select, table

from perfdb.db.session import reading
from perfdb.errors import StoreError

HEAD: Final = "0010"
"""The migration that makes the tables as perfdb.db.tables has them: the newest."""

_REVISION: Final = column("version_num", Text)
_REVISIONS: Final = table("alembic_version", _REVISION)


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
