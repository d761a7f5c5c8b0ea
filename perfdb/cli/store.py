"""The store of a command that reads it."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection

from perfdb.db.schema import require_current
from perfdb.db.session import reading, store_url


@contextmanager
def opened(db: str | None) -> Iterator[Connection]:
    """The store that --db names. Raises StoreError where it is missing or of another schema."""
    url = store_url(db)
    with reading(url) as connection:
        require_current(connection, url.render_as_string())
        yield connection
