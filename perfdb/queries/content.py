"""The bytes of a source, as they were read."""

from sqlalchemy import Connection, select

from perfdb.db.packing import unpacked
from perfdb.db.tables import sources


def content(connection: Connection, sha256: str) -> bytes:
    """The bytes with this SHA-256, from any source that has them. Raises DamagedBytesError."""
    asked = select(sources.c.content).where(sources.c.sha256 == sha256).limit(1)
    return unpacked(connection.execute(asked).scalar_one(), f"the file of SHA-256 {sha256}")
