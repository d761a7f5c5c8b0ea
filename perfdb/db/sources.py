"""The files that figures were read from: their ids, their bytes, and what became of each."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from sqlite3 import Connection as SqliteConnection

from sqlalchemy import Connection, func, select, update

from perfdb import __version__
from perfdb.db import bulk, keys
from perfdb.db.packing import CHUNK_BYTES, Packed, unpacked, unpacked_pieces
from perfdb.db.rows import Natural, SourceFile
from perfdb.db.tables import ingest_log, sources
from perfdb.jsonfile import content_hash

_NATURAL = ("sha256", "path", "parser", "parser_version")


def ids(connection: Connection, files: Iterable[SourceFile], when: datetime) -> dict[Natural, int]:
    """The id of each source; the bytes of those not there yet are kept, compressed."""
    by_key = {file.natural: file for file in files}
    found = _known(connection, by_key)
    added = [by_key[key] for key in sorted(by_key.keys() - found.keys())]
    if not added:
        return found
    large = {file.natural: content for file in added if (content := _large(connection, file))}
    columns = (*_NATURAL, "size_bytes", "content", "ingested_at")
    bulk.add(connection, sources, columns, _rows(added, large, when))
    found = _known(connection, by_key)
    for key, content in large.items():
        _write(connection, found[key], content)
    return found


def id_of(connection: Connection, file: SourceFile, when: datetime) -> int:
    """The id of one source; its bytes are kept if it is not there yet."""
    return ids(connection, [file], when)[file.natural]


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


def _known(connection: Connection, wanted: Collection[Natural]) -> dict[Natural, int]:
    """The ids of those of the sources that are there, found by path: a path has few states."""
    found: dict[Natural, int] = {}
    for paths in keys.chunks({path for _, path, _, _ in wanted}):
        columns = [sources.c[name] for name in (*_NATURAL, "id")]
        question = select(*columns).where(keys.among(connection, sources.c.path, paths))
        for sha256, path, parser, version, number in connection.execute(question):
            if (key := (sha256, path, parser, version)) in wanted:
                found[key] = number
    return found


def _rows(
    added: Iterable[SourceFile], large: Collection[Natural], when: datetime
) -> Iterator[bulk.Cells]:
    """The rows of sorted sources: the same bytes, which many runs share, are packed once."""
    packed, sha256 = b"", ""
    for file in added:
        key = file.natural
        if key in large:
            yield (*key, file.size_bytes, b"", when)
            continue
        if file.sha256 != sha256:
            packed, sha256 = file.compressed(), file.sha256
        yield (*key, file.size_bytes, packed, when)


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


class Action(StrEnum):
    """What became of a source or a result that was read."""

    NEW = "new"
    REVISED = "revised"
    UNCHANGED = "unchanged"
    REJECTED = "rejected"
    UNATTRIBUTED = "unattributed"


RUN_LOGGED_AS = "run "
"""What precedes the id of a run in the log, in place of a path."""


@dataclass(frozen=True)
class LogEntry:
    """A row of `ingest_log`; `stated_reason` is why a person withdrew it."""

    path: str
    action: Action
    line: int | None = None
    reason: str | None = None
    stated_reason: str | None = None


def log(connection: Connection, entries: Iterable[LogEntry], when: datetime) -> None:
    """Log what became of sources; a file that stays rejected or unattributed is logged once."""
    rows: list[bulk.Cells] = []
    for entry in dict.fromkeys(entries):
        if entry.action in (Action.REJECTED, Action.UNATTRIBUTED) and _is_logged(connection, entry):
            continue
        row = vars(entry) | {"at": when, "perfdb_version": __version__}
        rows.append((*row.values(), log_hash(row)))
    columns = (*LogEntry.__annotations__, "at", "perfdb_version", "content_hash")
    bulk.add(connection, ingest_log, columns, rows)


def _is_logged(connection: Connection, entry: LogEntry) -> bool:
    same = [ingest_log.c[name].is_not_distinct_from(it) for name, it in vars(entry).items()]
    return connection.scalar(select(ingest_log.c.id).where(*same).limit(1)) is not None


def log_hash(row: Mapping[str, object]) -> str:
    """The content hash of a row of `ingest_log`; nothing else determines its other columns."""
    known = {name: row[name] for name in LogEntry.__annotations__}
    at = row["at"]
    assert isinstance(at, datetime)
    return content_hash({**known, "at": at.isoformat(), "by": row["perfdb_version"]})
