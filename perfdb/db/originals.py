"""Where the originals of published pages are. The caller owns the connection and transaction."""

from sqlalchemy import Connection, insert, select

from perfdb.db.rows import SourceFile
from perfdb.db.tables import originals, sources
from perfdb.record import Original


def keep(connection: Connection, page: SourceFile, said: Original) -> None:
    """Store what a stored page says of its original; the same bytes always say the same."""
    if said == Original():
        return
    this = select(sources.c.id).where(
        sources.c.sha256 == page.sha256,
        sources.c.path == page.path,
        sources.c.parser == page.parser,
        sources.c.parser_version == page.parser_version,
    )
    there = select(originals.c.source_id).where(originals.c.source_id.in_(this))
    if connection.scalar(there) is None:
        row = {"source_id": connection.execute(this).scalar_one(), **said.model_dump()}
        connection.execute(insert(originals).values(row))
