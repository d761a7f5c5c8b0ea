"""How the store packs the bytes of a file: as a zstd frame with a checksum."""

import hashlib
import os
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

import zstandard

from perfdb.errors import DamagedBytesError

_REMEDY: Final = "take an older copy of the store, or ingest the file into a new one"

LEVEL: Final = 3
"""Logs: ten times as fast as zlib's usual level, in no more room."""

FED_BYTES: Final = 2048
"""What is unpacked at once: zstd may make 64 MiB of it, where all lines are the same."""

MOST_IN_MEMORY: Final = 1 << 16
"""Compressed bytes above which they are kept in a temporary file."""

CHUNK_BYTES: Final = 1 << 20


def packer() -> "zstandard.ZstdCompressionObj":  # a name of the stub alone
    """What packs bytes that come piece by piece."""
    return _compressor().compressobj()  # of its own: two at once may not share a compressor


def packed(content: bytes) -> bytes:
    """Bytes as the store keeps them."""
    return _of_whole_files().compress(content)


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


@cache
def _of_whole_files() -> zstandard.ZstdCompressor:
    """One for all: to make it takes far longer than to pack a small file."""
    return _compressor()


def _compressor() -> zstandard.ZstdCompressor:
    return zstandard.ZstdCompressor(level=LEVEL, write_checksum=True)


class Packed:
    """The bytes of a file, hashed and compressed; in a temporary file where they are many.

    The temporary file is in `folder`, else in TMPDIR.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._hash = hashlib.sha256()
        self._compressor = packer()
        self._held = bytearray()
        self._file: Path | None = None
        self.size_bytes = 0
        self.compressed_bytes = 0

    def passing(self, content: Iterable[bytes]) -> Iterator[bytes]:
        """The same chunks, each of them kept."""
        for chunk in content:
            self._hash.update(chunk)
            self.size_bytes += len(chunk)
            self._keep(self._compressor.compress(chunk))
            yield chunk

    def close(self) -> None:
        """Say that no chunk is to come."""
        self._keep(self._compressor.flush())

    @property
    def sha256(self) -> str:
        """The SHA-256 of the bytes, in hexadecimal."""
        return self._hash.hexdigest()

    @property
    def in_memory(self) -> bool:
        """Whether the compressed bytes are few."""
        return self._file is None

    def compressed(self) -> Iterator[bytes]:
        """The compressed bytes, a chunk at a time."""
        if self._file:
            with self._file.open("rb") as file:
                yield from iter(lambda: file.read(CHUNK_BYTES), b"")
        yield bytes(self._held)

    def _keep(self, compressed: bytes) -> None:
        self.compressed_bytes += len(compressed)
        self._held += compressed
        if len(self._held) > MOST_IN_MEMORY:
            file = self._file or self._new_file()
            with file.open("ab") as kept:
                kept.write(self._held)
            self._held.clear()

    def _new_file(self) -> Path:
        # Named: an open file for each log of a large tree would be more than a process may have.
        number, name = tempfile.mkstemp(prefix="perfdb-", dir=self._folder)
        os.close(number)
        self._file = Path(name)
        weakref.finalize(self, self._file.unlink, missing_ok=True)
        return self._file
