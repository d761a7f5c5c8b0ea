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
ZLIB, ZSTD = "the bytes, zlib-compressed", "the bytes, zstd-compressed"


def upgrade() -> None:
    _comment(ZSTD)
    _repack(zlib.decompress, zstandard.ZstdCompressor(level=3, write_checksum=True).compress)


def downgrade() -> None:
    _repack(
        lambda packed: zstandard.ZstdDecompressor().decompressobj().decompress(packed),
        zlib.compress,
    )
    _comment(ZLIB)


def _repack(unpack: Callable[[bytes], bytes], pack: Callable[[bytes], bytes]) -> None:
    connection = op.get_bind()
    ids = connection.scalars(sa.select(SOURCES.c.id).order_by(SOURCES.c.id)).all()
    for id_ in ids:
        this = SOURCES.c.id == id_
        content = connection.scalar(sa.select(SOURCES.c.content).where(this)) or b""
        try:
            packed = pack(unpack(content))
        except (zlib.error, zstandard.ZstdError):
            continue
        connection.execute(SOURCES.update().where(this).values(content=packed))


def _comment(said: str) -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.alter_column("sources", "content", comment=said)
