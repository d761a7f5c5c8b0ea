"""Compressed files: their plain bytes in bounded memory, and their names without the suffix."""

import bz2
import lzma
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Final, Protocol

import zstandard

from perfdb.db.packing import little_by_little
from perfdb.errors import ArchiveError, Diagnostic

CHUNK_BYTES: Final = 4 << 20
"""Bytes of a chunk: as many as a block of a log, so that blocks need no joining."""

MOST_MEMORY_BYTES: Final = 128 << 20
"""What a decompressor may remember of what it has read: xz -9 asks for half of it."""

SUFFIXES: Final = (".gz", ".zst", ".xz", ".bz2")

_ROTATED = re.compile(r".+(\.(?:log|out|err|txt|jsonl))[.-](?:\d[\d.t:_-]*|old)")
"""What logrotate and its like make of a log's name: `train.log.1`, `x.out-20260301`."""
_STREAM = re.compile(r".+\.([oe])\d[\d.-]*|std([oe])(?:ut|rr)")
"""What PBS and Grid Engine keep of a job: `train.o12345`, of an array `train.o12345.2`."""


@dataclass
class Budget:
    """How much may be unpacked of one file that was found, with all that it holds.

    `most_of_one` is of a single member, `most_bytes` and `most_members` of all together.
    """

    most_bytes: int = 64 << 30
    most_members: int = 500_000
    unpacked_bytes: int = 0
    num_members: int = 0

    @property
    def most_of_one(self) -> int:
        """The bytes that one member may have."""
        return self.most_bytes // 4

    @property
    def is_spent(self) -> bool:
        """Whether there was more than may be read."""
        return self.unpacked_bytes > self.most_bytes or self.num_members > self.most_members

    def spend(self, where: str, num_bytes: int) -> None:
        """Count bytes that were unpacked. Raises ArchiveError."""
        self.unpacked_bytes += num_bytes
        if self.unpacked_bytes > self.most_bytes:
            message = f"unpacks to more than {self.most_bytes / 2**30:.3g} GiB"
            remedy = "raise --archive-limit if you trust it"
            raise ArchiveError(Diagnostic(where, message, remedy=remedy))

    def count_member(self, where: str) -> None:
        """Count a member. Raises ArchiveError."""
        self.num_members += 1
        if self.num_members > self.most_members:
            message = f"holds more than {self.most_members:,} members"
            raise ArchiveError(Diagnostic(where, message, remedy="unpack it and name what to read"))


class Decompressor(Protocol):
    """What zlib, bz2, lzma and zstandard have in common."""

    @property
    def eof(self) -> bool:
        """Whether the compressed stream has ended."""
        ...

    @property
    def unused_data(self) -> bytes:
        """The bytes behind the end."""
        ...

    def decompress(self, data: bytes, /) -> bytes:
        """What the next bytes hold."""
        ...


def _zstd() -> Decompressor:
    return zstandard.ZstdDecompressor(max_window_size=MOST_MEMORY_BYTES).decompressobj()


DECOMPRESSORS: Final[dict[bytes, Callable[[], Decompressor]]] = {
    b"\x1f\x8b": lambda: zlib.decompressobj(wbits=31),
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ\x00": lambda: lzma.LZMADecompressor(memlimit=MOST_MEMORY_BYTES),
    b"\x28\xb5\x2f\xfd": _zstd,
}
"""By the first bytes of a file. The file objects of the library have no limit of memory for xz."""


def plain_name(path: PurePath) -> str:
    """The name of a file without the suffix of its compression."""
    return path.stem if path.suffix.lower() in SUFFIXES else path.name


def plain_suffix(path: PurePath) -> str:
    """The suffix of that name, in lower case; of a log's other names, that of the log it is."""
    name = plain_name(path).lower()
    if rotated := _ROTATED.fullmatch(name):
        return rotated[1]
    stream = _STREAM.fullmatch(name)
    if stream:
        return ".out" if "o" in stream.groups() else ".err"
    return PurePath(name).suffix


def chunks(path: Path, budget: Budget) -> Iterator[bytes]:
    """The bytes of a file, unpacked if it is compressed, in chunks of about CHUNK_BYTES.

    Raises ArchiveError where it is damaged, cut off, or unpacks to more than the budget.
    """
    with path.open("rb") as file:
        start, packed = file.peek(), iter(lambda: file.read(CHUNK_BYTES), b"")
        new = next((new for magic, new in DECOMPRESSORS.items() if start.startswith(magic)), None)
        if new is None:
            yield from packed
            return
        for chunk in _gathered(_unpacked(path, packed, new)):
            budget.spend(str(path), len(chunk))
            yield chunk


def plain_size_bytes(path: Path) -> int | None:
    """The size of a file that is not compressed; None of one that is."""
    with path.open("rb") as file:
        is_packed = file.peek().startswith(tuple(DECOMPRESSORS))
        return None if is_packed else os.fstat(file.fileno()).st_size


def _unpacked(
    path: Path, packed: Iterable[bytes], new: Callable[[], Decompressor]
) -> Iterator[bytes]:
    """The plain bytes of one compressed stream, or of several one after another."""
    decompressor = new()
    try:
        for fed in little_by_little(packed):
            left = fed
            while left:
                if decompressor.eof:
                    decompressor = new()
                yield decompressor.decompress(left)
                # Zeros are padding, as tapes need it.
                left = decompressor.unused_data.lstrip(b"\0") if decompressor.eof else b""
    except (zlib.error, lzma.LZMAError, zstandard.ZstdError, OSError) as error:
        raise ArchiveError(Diagnostic(str(path), f"damaged: {error}")) from error
    if not decompressor.eof:
        raise ArchiveError(Diagnostic(str(path), "cut off: the compressed data has no end"))


def _gathered(unpacked: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in larger chunks; what came before an error comes before it here too."""
    held = bytearray()
    try:
        for piece in unpacked:
            held += piece
            if len(held) >= CHUNK_BYTES:
                yield bytes(held)
                held.clear()
    except ArchiveError:
        yield bytes(held)
        raise
    if held:
        yield bytes(held)
