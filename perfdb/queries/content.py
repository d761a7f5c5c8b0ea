"""The bytes of a source, as they were read."""

from collections.abc import Iterator
from sqlite3 import Connection as SqliteConnection

from sqlalchemy import Connection, select

from perfdb.db.packed import CHUNK_BYTES
from perfdb.db.packing import unpacked, unpacked_pieces
from perfdb.db.tables import sources


def content_of(connection: Connection, source_id: int) -> Iterator[bytes]:
    """The bytes of a source, a chunk at a time. Raises DamagedBytesError."""
    return unpacked_pieces(_packed(connection, source_id))


def _packed(connection: Connection, source_id: int) -> Iterator[bytes]:
    """The bytes that the store has: of a large log SQLite would hold them more than once."""
    driver, column = connection.connection.driver_connection, sources.c.content
    if isinstance(driver, SqliteConnection):
        with driver.blobopen(sources.name, column.name, source_id, readonly=True) as blob:
            yield from iter(lambda: blob.read(CHUNK_BYTES), b"")
    else:
        yield connection.scalar(select(column).where(sources.c.id == source_id)) or b""


def content(connection: Connection, sha256: str) -> bytes:
    """The bytes with this SHA-256, from any source that has them. Raises DamagedBytesError."""
    asked = select(sources.c.content).where(sources.c.sha256 == sha256).limit(1)
    return unpacked(connection.execute(asked).scalar_one(), f"the file of SHA-256 {sha256}")
