"""How the store packs the bytes of a file: as a zstd frame with a checksum."""

from collections.abc import Iterable, Iterator
from typing import Final

import zstandard

from perfdb.errors import DamagedBytesError

_REMEDY: Final = "take an older copy of the store, or ingest the file into a new one"

LEVEL: Final = 3
"""Logs: ten times as fast as zlib's usual level, in no more room."""

FED_BYTES: Final = 2048
"""What is unpacked at once: zstd may make 64 MiB of it, where all lines are the same."""


def packer() -> "zstandard.ZstdCompressionObj":  # of its stub alone
    """What packs bytes that come piece by piece."""
    return _compressor().compressobj()


def packed(content: bytes) -> bytes:
    """Bytes as the store keeps them."""
    return _compressor().compress(content)


def unpacked(content: bytes, where: str) -> bytes:
    """The bytes of a file that the store keeps as these. Raises DamagedBytesError."""
    try:
        return b"".join(unpacked_pieces([content]))
    except DamagedBytesError as error:
        message = f"{where}: its bytes in the store are damaged: {error}; {_REMEDY}"
        raise DamagedBytesError(message) from error


def unpacked_pieces(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The bytes that the store keeps as these, piece by piece. Raises DamagedBytesError."""
    unpacker = zstandard.ZstdDecompressor().decompressobj()
    for fed in little_by_little(pieces):
        if unpacker.eof:
            raise DamagedBytesError("more bytes follow behind the end")
        try:
            yield unpacker.decompress(fed)
        except zstandard.ZstdError as error:
            raise DamagedBytesError(str(error)) from error
    if not unpacker.eof:
        raise DamagedBytesError("the compressed bytes end too early")
    if unpacker.unused_data:
        raise DamagedBytesError("more bytes follow behind the end")


def little_by_little(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces of FED_BYTES."""
    for piece in pieces:
        for start in range(0, len(piece), FED_BYTES):
            yield piece[start : start + FED_BYTES]


def _compressor() -> zstandard.ZstdCompressor:
    return zstandard.ZstdCompressor(level=LEVEL, write_checksum=True)
