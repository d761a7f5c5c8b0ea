"""The files that figures were read from: their ids, and their bytes as they were."""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from sqlite3 import Connection as SqliteConnection

from sqlalchemy import BindParameter, Connection, Select, Text, func, literal, select, update
from sqlalchemy.dialects import postgresql

from perfdb.db import bulk
from perfdb.db.packing import CHUNK_BYTES, Packed, unpacked, unpacked_pieces
from perfdb.db.rows import SourceFile
from perfdb.db.tables import sources

Natural = tuple[str, str, str, int]
"""The SHA-256 of a source, its path, and its parser with its version."""

_NATURAL = ("sha256", "path", "parser", "parser_version")
_FOUND = select(
    sources.c.sha256, sources.c.path, sources.c.parser, sources.c.parser_version, sources.c.id
)


def natural(file: SourceFile) -> Natural:
    """What makes a source the same one: its bytes, where they were, and who read them."""
    return (file.sha256, file.path, file.parser, file.parser_version)


def ids(connection: Connection, files: Iterable[SourceFile], when: datetime) -> dict[Natural, int]:
    """The id of each source; the bytes of those not there yet are kept, compressed."""
    by_key = {natural(file): file for file in files}
    known = _wanted(connection, _of_pairs(connection, sorted({key[:2] for key in by_key})), by_key)
    added = [by_key[key] for key in sorted(by_key.keys() - known.keys())]
    if not added:
        return known
    large = {natural(file): content for file in added if (content := _large(connection, file))}
    columns = (*_NATURAL, "size_bytes", "content", "ingested_at")
    last = connection.scalar(select(func.max(sources.c.id))) or 0
    bulk.add(connection, sources, columns, _rows(added, large, when))
    found = known | _wanted(connection, _FOUND.where(sources.c.id > last), by_key)
    for key, content in large.items():
        _write(connection, found[key], content)
    return found


def id_of(connection: Connection, file: SourceFile, when: datetime) -> int:
    """The id of one source; its bytes are kept if it is not there yet."""
    return ids(connection, [file], when)[natural(file)]


def content_of(connection: Connection, source_id: int) -> Iterator[bytes]:
    """The bytes of a source, a chunk at a time. Raises DamagedBytesError."""
    return unpacked_pieces(_packed(connection, source_id))


def content(connection: Connection, sha256: str) -> bytes:
    """The bytes with this SHA-256, from any source that has them. Raises DamagedBytesError."""
    question = select(sources.c.content).where(sources.c.sha256 == sha256).limit(1)
    return unpacked(connection.execute(question).scalar_one(), f"the file of SHA-256 {sha256}")


def _packed(connection: Connection, source_id: int) -> Iterator[bytes]:
    """The compressed bytes; SQLite would hold those of a large log more than once."""
    driver, column = connection.connection.driver_connection, sources.c.content
    if isinstance(driver, SqliteConnection):
        with driver.blobopen(sources.name, column.name, source_id, readonly=True) as blob:
            yield from iter(lambda: blob.read(CHUNK_BYTES), b"")
    else:
        yield connection.scalar(select(column).where(sources.c.id == source_id)) or b""


def _rows(
    added: Iterable[SourceFile], large: Collection[Natural], when: datetime
) -> Iterator[tuple[object, ...]]:
    """The rows of sorted sources: the same bytes, which many runs share, are packed once."""
    packed, sha256 = b"", ""
    for file in added:
        key = natural(file)
        if key in large:
            yield (*key, file.size_bytes, b"", when)
            continue
        if file.sha256 != sha256:
            packed, sha256 = file.compressed(), file.sha256
        yield (*key, file.size_bytes, packed, when)


def _wanted(
    connection: Connection,
    question: Select[str, str, str, int, int],
    wanted: Collection[Natural],
) -> dict[Natural, int]:
    rows = connection.execute(question)
    found = {(sha256, path, parser, version): id_ for sha256, path, parser, version, id_ in rows}
    return {key: id_ for key, id_ in found.items() if key in wanted}


def _of_pairs(
    connection: Connection, pairs: Sequence[tuple[str, str]]
) -> Select[str, str, str, int, int]:
    """The sources of these pairs of a hash and a path.

    Both: many runs share a recipe's hash, and a path has as many hashes as it had states. The pairs
    are a table to join with: of two lists SQLite would try each hash with each path.
    """
    if connection.dialect.name == "postgresql":
        hashes, paths = (_texts([pair[place] for pair in pairs]) for place in (0, 1))
        pair = func.unnest(hashes, paths).table_valued("sha256", "path").render_derived()
        return _FOUND.join(
            pair, (sources.c.sha256 == pair.c.sha256) & (sources.c.path == pair.c.path)
        )
    joined = json.dumps([sha256 + path for sha256, path in pairs])
    each = func.json_each(joined).table_valued("value")
    sha256, path = func.substr(each.c.value, 1, 64), func.substr(each.c.value, 65)
    return _FOUND.select_from(each).join(
        sources, (sources.c.sha256 == sha256) & (sources.c.path == path)
    )


def _texts(values: Sequence[str]) -> BindParameter[Sequence[str]]:
    return literal(values, postgresql.ARRAY(Text))


def _large(connection: Connection, source: SourceFile) -> Packed | None:
    """The bytes of a source that are too many for SQLite at once, which would copy them thrice."""
    content = source.content
    if isinstance(content, bytes) or content.in_memory or connection.dialect.name != "sqlite":
        return None
    return content


def _write(connection: Connection, source_id: int, content: Packed) -> None:
    """Fill in the bytes of a source that was added without them."""
    room = func.zeroblob(content.compressed_bytes)
    connection.execute(update(sources).where(sources.c.id == source_id).values(content=room))
    driver = connection.connection.driver_connection
    assert isinstance(driver, SqliteConnection)
    with driver.blobopen(sources.name, sources.c.content.name, source_id) as blob:
        for chunk in content.compressed():
            blob.write(chunk)
