"""the bytes of sources are packed by zstd, no longer by zlib

One at a time, since logs are large. Bytes that are damaged stay as they are, for `perfdb verify`.
"""

import zlib
from collections.abc import Callable

import sqlalchemy as sa
import zstandard
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

SOURCES = sa.table("sources", sa.column("id", sa.Integer()), sa.column("content", sa.LargeBinary()))
FED_BYTES = 2048
ZLIB, ZSTD = "the bytes, zlib-compressed", "the bytes, zstd-compressed"


def upgrade() -> None:
    _comment(ZSTD)
    compressor = zstandard.ZstdCompressor(level=3, write_checksum=True)
    _repack(zlib.decompressobj, compressor.compressobj)


def downgrade() -> None:
    _repack(zstandard.ZstdDecompressor().decompressobj, zlib.compressobj)
    _comment(ZLIB)


def _repack(unpacker: Callable[[], object], packer: Callable[[], object]) -> None:
    connection = op.get_bind()
    for id_ in connection.scalars(sa.select(SOURCES.c.id).order_by(SOURCES.c.id)).all():
        this = SOURCES.c.id == id_
        content = connection.scalar(sa.select(SOURCES.c.content).where(this)) or b""
        packed = _repacked(content, unpacker(), packer())
        if packed is not None:
            connection.execute(SOURCES.update().where(this).values(content=packed))


def _repacked(content, unpacker, packer) -> bytes | None:
    """The same bytes packed otherwise; None where they are cut off, or others follow."""
    parts = []
    try:
        for start in range(0, len(content), FED_BYTES):
            if unpacker.eof:
                return None
            plain = unpacker.decompress(content[start : start + FED_BYTES])
            parts.append(packer.compress(plain))
    except (zlib.error, zstandard.ZstdError):
        return None
    whole = unpacker.eof and not unpacker.unused_data
    return b"".join((*parts, packer.flush())) if whole else None


def _comment(said: str) -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.alter_column("sources", "content", comment=said)
