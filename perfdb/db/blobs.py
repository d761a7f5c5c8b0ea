"""Writes large sources to SQLite piece by piece, which would copy them thrice otherwise."""

from sqlite3 import Connection as SqliteConnection

from sqlalchemy import Connection, func, update

from perfdb.db.packed import Packed
from perfdb.db.rows import SourceFile
from perfdb.db.tables import sources


def streamed(connection: Connection, source: SourceFile) -> Packed | None:
    """The bytes of a source that are too many to be given to the store at once."""
    content = source.content
    if isinstance(content, bytes) or content.in_memory or connection.dialect.name != "sqlite":
        return None
    return content


def write(connection: Connection, source_id: int, content: Packed) -> None:
    """Fill in the bytes of a source that was added without them."""
    room = func.zeroblob(content.compressed_bytes)
    connection.execute(update(sources).where(sources.c.id == source_id).values(content=room))
    driver = connection.connection.driver_connection
    assert isinstance(driver, SqliteConnection)
    with driver.blobopen(sources.name, sources.c.content.name, source_id) as blob:
        for chunk in content.compressed():
            blob.write(chunk)
