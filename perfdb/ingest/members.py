"""Lists the files in a tar or zip archive, one after another, and says which cannot be read."""

import io
import lzma
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Final, Self

from perfdb.errors import ArchiveError, Diagnostic
from perfdb.ingest import names
from perfdb.ingest.compression import CHUNK_BYTES, Budget, chunks

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MOST_HEADER_BYTES: Final = 1 << 20
"""What a tar may say of one member, and a zip of a thousand: names are not longer."""

LINK: Final = "a link, which is not followed"
SPECIAL: Final = "neither a file nor a folder"

_SAYS_MORE: Final = (
    tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)  # fmt: skip
"""Headers that are read whole before the member they are of."""

_ZIP_STARTS: Final = (b"PK\x03\x04", b"PK\x05\x06")
_ZIP_END: Final = b"PK\x05\x06"
_ZIP64_END: Final = b"PK\x06\x06"


_DAMAGES: Final = (
    tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, ValueError,
)  # fmt: skip
"""What reading a damaged archive raises."""


@dataclass(frozen=True)
class Member:
    """A file in an archive.

    `fault` says why it cannot be read. `content` gives its bytes; of a tar only while this member
    is the last that was listed. It raises ArchiveError where the archive is damaged.
    """

    name: str
    size_bytes: int
    fault: str | None
    content: Callable[[], Iterator[bytes]]


def is_archive(path: Path) -> bool:
    """Whether a file is a tar, compressed or not, or a zip, by its first bytes."""
    if _is_zip(path):
        return True
    try:
        head = next(chunks(path, Budget()), b"")[: tarfile.BLOCKSIZE]
        return any(head) and bool(tarfile.TarInfo.frombuf(head, "utf-8", "surrogateescape").name)
    except (ArchiveError, tarfile.HeaderError):
        return False


def members(path: Path, budget: Budget) -> Iterator[Member]:
    """The files in an archive, in its order; folders are passed over.

    Raises ArchiveError where it is damaged or holds more than the budget.
    """
    return _of_zip(path, budget) if _is_zip(path) else _of_tar(path, budget)


def _is_zip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) in _ZIP_STARTS


class _Damage(ValueError):
    """A tar's header that cannot be read."""


class _Header(tarfile.TarInfo):
    """A header that is checked; tarfile takes a damaged one for the end of the archive."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        if len(buf) < tarfile.BLOCKSIZE:
            raise _Damage("cut off: the end of the archive is missing")
        try:
            header = super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as error:
            if any(buf):
                raise _Damage(f"damaged: {error}") from error
            raise  # a block of zeros is the end
        if header.type in _SAYS_MORE and header.size > MOST_HEADER_BYTES:
            raise _Damage(f"damaged: a header of {header.size:,} bytes")
        return header


class _Tar(tarfile.TarFile):
    """`members` are those that were listed; a reader of one after another need not keep them."""

    members: list[tarfile.TarInfo]


class _Stream(io.RawIOBase):
    """Chunks as a file that is read from front to back; what came before an error is not lost."""

    def __init__(self, content: Iterable[bytes]) -> None:
        self._content = iter(content)
        self._held = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        room = memoryview(buffer)
        if not self._held:
            self._held = memoryview(next(self._content, b""))
        taken = self._held[: len(room)]
        room[: len(taken)] = taken
        self._held = self._held[len(taken) :]
        return len(taken)


def _of_tar(path: Path, budget: Budget) -> Iterator[Member]:
    stream = _Stream(chunks(path, budget))
    try:
        with _Tar.open(fileobj=stream, mode="r|", tarinfo=_Header, encoding="utf-8") as tar:
            while (header := tar.next()) is not None:
                tar.members.clear()
                budget.meet(str(path))
                if not header.isdir():
                    yield _tar_member(path, tar, header, budget)
        while stream.read(CHUNK_BYTES):
            pass  # what is behind the end shows whether the compressed data is whole
    except _DAMAGES as error:
        raise ArchiveError(Diagnostic(str(path), _told(error))) from error


def _told(error: Exception) -> str:
    text = str(error)
    if text == "unexpected end of data":
        return "cut off: the end of the archive is missing"
    return text if isinstance(error, _Damage) else f"damaged: {text}"


def _tar_member(
    path: Path, tar: tarfile.TarFile, header: tarfile.TarInfo, budget: Budget
) -> Member:
    def content() -> Iterator[bytes]:
        file = tar.extractfile(header)
        if file is None:
            raise ArchiveError(
                Diagnostic(str(path), f"damaged: {names.shown(header.name)} is no file")
            )
        return _whole(path, file, header.size)

    fault = _kind_fault(header) or _size_fault(header.size, budget)
    return Member(_normal(header.name), header.size, fault, content)


def _kind_fault(header: tarfile.TarInfo) -> str | None:
    if header.issym() or header.islnk():
        return LINK
    return None if header.isreg() else SPECIAL


def _size_fault(size_bytes: int, budget: Budget) -> str | None:
    if size_bytes <= budget.most_of_one:
        return None
    limit = f"{budget.most_of_one / 2**30:.3g} GiB"
    return f"unpacks to more than {limit}; raise --archive-limit if you trust it"


def _normal(name: str) -> str:
    """A name without `./` and doubled slashes; one that leads elsewhere stays as it is."""
    return name if names.member_fault(name) else str(PurePosixPath(name))


def _whole(path: Path, file: IO[bytes], size_bytes: int) -> Iterator[bytes]:
    """The bytes of a member. Raises ArchiveError where there are not so many."""
    left = size_bytes
    try:
        while chunk := file.read(CHUNK_BYTES):
            left -= len(chunk)
            yield chunk
    except (*_DAMAGES, OSError) as error:
        raise ArchiveError(Diagnostic(str(path), _told(error))) from error
    if left:
        raise ArchiveError(Diagnostic(str(path), "cut off: the end of the archive is missing"))


def _of_zip(path: Path, budget: Budget) -> Iterator[Member]:
    _check_directory(path, budget)
    try:
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                budget.meet(str(path))
                if not entry.is_dir():
                    budget.spend(str(path), entry.file_size)
                    yield _zip_member(path, archive, entry, budget)
    except _DAMAGES as error:
        raise ArchiveError(Diagnostic(str(path), f"damaged or cut off: {error}")) from error


def _check_directory(path: Path, budget: Budget) -> None:
    """zipfile reads the list of members whole: refuse one that is larger than any list."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - (1 << 17)))
        tail = file.read()
    end = tail.rfind(_ZIP_END)
    stated = struct.unpack_from("<L", tail, end + 12)[0] if 0 <= end <= len(tail) - 22 else 0
    large = tail.rfind(_ZIP64_END)
    if stated == 0xFFFFFFFF and 0 <= large <= len(tail) - 56:
        stated = struct.unpack_from("<Q", tail, large + 40)[0]
    if stated > budget.most_members * MOST_HEADER_BYTES // 1000:
        raise ArchiveError(Diagnostic(str(path), f"a list of members of {stated:,} bytes"))


def _zip_member(
    path: Path, archive: zipfile.ZipFile, entry: zipfile.ZipInfo, budget: Budget
) -> Member:
    def content() -> Iterator[bytes]:
        try:
            with archive.open(entry) as file:
                yield from _whole(path, file, entry.file_size)
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
            raise ArchiveError(Diagnostic(str(path), f"damaged: {error}")) from error

    fault = _entry_fault(entry) or _size_fault(entry.file_size, budget)
    # zipfile's own name is cut at a NUL.
    return Member(_normal(entry.orig_filename), entry.file_size, fault, content)


def _entry_fault(entry: zipfile.ZipInfo) -> str | None:
    if entry.flag_bits & 1:
        return "encrypted"
    mode = entry.external_attr >> 16
    return LINK if stat.S_ISLNK(mode) else None
