"""The ids of sources by what makes them; the bytes of those not there yet are kept, compressed."""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from sqlite3 import Connection as SqliteConnection

from sqlalchemy import BindParameter, Connection, Select, Text, func, literal, select, update
from sqlalchemy.dialects import postgresql

from perfdb.db import bulk
from perfdb.db.packed import Packed
from perfdb.db.rows import SourceFile
from perfdb.db.tables import sources

Natural = tuple[str, str, str, int]
"""The SHA-256 of a source, its path, and its parser with its version."""

_NATURAL = ("sha256", "path", "parser", "parser_version")
_FOUND = select(
    sources.c.sha256, sources.c.path, sources.c.parser, sources.c.parser_version, sources.c.id
)


def ids(connection: Connection, files: Iterable[SourceFile], when: datetime) -> dict[Natural, int]:
    """The id of each source; the bytes of those not there yet are kept, compressed."""
    by_key = {natural(one): one for one in files}
    pairs = sorted({key[:2] for key in by_key})
    known = _wanted(connection, _alike(connection, pairs), by_key)
    added = [by_key[key] for key in sorted(by_key.keys() - known.keys())]
    if not added:
        return known
    large = {natural(one): content for one in added if (content := _streamed(connection, one))}
    columns = (*_NATURAL, "size_bytes", "content", "ingested_at")
    last = connection.scalar(select(func.max(sources.c.id))) or 0
    bulk.add(connection, sources, columns, _rows(added, large, when))
    found = known | _wanted(connection, _FOUND.where(sources.c.id > last), by_key)
    for key, content in large.items():
        _write(connection, found[key], content)
    return found


def _rows(
    added: Iterable[SourceFile], large: Collection[Natural], when: datetime
) -> Iterator[tuple[object, ...]]:
    """The rows of sorted sources: the same bytes, which many runs share, are packed once."""
    packed, of = b"", ""
    for one in added:
        key = natural(one)
        if key in large:
            yield (*key, one.size_bytes, b"", when)
            continue
        if one.sha256 != of:
            packed, of = one.compressed(), one.sha256
        yield (*key, one.size_bytes, packed, when)


def natural(file: SourceFile) -> Natural:
    """What makes a source the same one: its bytes, where they were, and who read them."""
    return (file.sha256, file.path, file.parser, file.parser_version)


def _wanted(
    connection: Connection,
    question: Select[str, str, str, int, int],
    wanted: Collection[Natural],
) -> dict[Natural, int]:
    rows = connection.execute(question)
    found = {(sha, path, parser, version): id_ for sha, path, parser, version, id_ in rows}
    return {key: id_ for key, id_ in found.items() if key in wanted}


def _alike(
    connection: Connection, pairs: Sequence[tuple[str, str]]
) -> Select[str, str, str, int, int]:
    """The sources of these pairs of a hash and a path.

    Both: many runs share a recipe's hash, and a path has as many hashes as it had states. The pairs
    are a table to join with: of two lists SQLite would try each hash with each path.
    """
    if connection.dialect.name == "postgresql":
        hashes, paths = (_texts([pair[place] for pair in pairs]) for place in (0, 1))
        asked = func.unnest(hashes, paths).table_valued("sha256", "path").render_derived()
        return _FOUND.join(
            asked, (sources.c.sha256 == asked.c.sha256) & (sources.c.path == asked.c.path)
        )
    joined = json.dumps([sha256 + path for sha256, path in pairs])
    each = func.json_each(joined).table_valued("value")
    sha256, path = func.substr(each.c.value, 1, 64), func.substr(each.c.value, 65)
    return _FOUND.select_from(each).join(
        sources, (sources.c.sha256 == sha256) & (sources.c.path == path)
    )


def _texts(values: Sequence[str]) -> BindParameter[Sequence[str]]:
    return literal(values, postgresql.ARRAY(Text))


def _streamed(connection: Connection, source: SourceFile) -> Packed | None:
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
