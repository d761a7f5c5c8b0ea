"""Unpacks tar and zip archives into a temporary folder: safe names, bounded size and memory.

An archive is listed before anything is written, so that one that unpacks to too much, or holds too
many members, is refused whole. Links are not followed, and an archive in an archive is not read.
"""

import io
import lzma
import shutil
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Final, Self

from perfdb.errors import ArchiveError, Diagnostic
from perfdb.ingest.compression import CHUNK_BYTES, Budget, chunks
from perfdb.ingest.find import is_read, name_fault, printable
from perfdb.rundir import RECORD
from perfdb.units import counted

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MOST_HEADER_BYTES: Final = 1 << 20
"""What a tar may state of one member, and a zip of a thousand: names are not longer."""

MOST_LISTED: Final = 20
"""Members that are refused one by one."""

LONGEST_NAME: Final = 4096
LONGEST_PART: Final = 255
"""Bytes that Linux allows in a path, and between two slashes of it."""

_LINK: Final = "a link, which is not followed"
_SPECIAL: Final = "neither a file nor a folder"
_CUT_OFF: Final = "cut off: the end of the archive is missing"

_EXTENDED: Final = (
    tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)  # fmt: skip
"""Headers that are read whole before the member they are of."""

_ZIP_STARTS: Final = (b"PK\x03\x04", b"PK\x05\x06")
_ZIP_END: Final = b"PK\x05\x06"
_ZIP64_END: Final = b"PK\x06\x06"

_DAMAGES: Final = (
    tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, ValueError,
    NotImplementedError, RuntimeError,
)  # fmt: skip
"""What reading a damaged archive raises."""


@dataclass(frozen=True)
class Member:
    """A file in an archive; `fault` is why it cannot be read.

    `open` gives its bytes; of a tar only while this member is the last that was listed.
    """

    name: str
    size_bytes: int
    fault: str | None
    open: Callable[[], IO[bytes] | None]


@dataclass
class Listing:
    """The members of an archive to read, and those that are refused, with the reason."""

    wanted: set[str] = field(default_factory=set)
    refused: dict[str, str] = field(default_factory=dict)
    broken: Diagnostic | None = None
    """Why the list ends before the archive does."""

    def problems(self, archive: str) -> Iterator[Diagnostic]:
        """What is refused, each named after the member, and what is wrong with the archive."""
        for name, reason in list(self.refused.items())[:MOST_LISTED]:
            yield Diagnostic(f"{archive}!/{printable(name)}", reason)
        if (rest := len(self.refused) - MOST_LISTED) > 0:
            are = "is" if rest == 1 else "are"
            yield Diagnostic(archive, f"{counted(rest, 'more member')} {are} refused")
        if self.broken:
            yield self.broken


def is_archive(path: Path) -> bool:
    """Whether a file is a tar, compressed or not, or a zip, by its first bytes."""
    if _is_zip(path):
        return True
    try:
        head = next(chunks(path, Budget()), b"")[: tarfile.BLOCKSIZE]
        return any(head) and bool(tarfile.TarInfo.frombuf(head, "utf-8", "surrogateescape").name)
    except (ArchiveError, tarfile.HeaderError):
        return False


def unpack(path: Path, folder: Path, budget: Budget) -> Listing:
    """Write the runs, pages, logs and settings of an archive below a folder; what is refused.

    Raises ArchiveError for an archive that holds more than the budget.
    """
    listing = _listed(path, budget)
    again = replace(budget, unpacked_bytes=0, num_members=0)
    try:
        for member in members(path, again):
            if member.name in listing.wanted and (fault := _written(member, folder)):
                listing.refused[member.name] = fault
                _refuse_run(listing, member.name, "a file of the run is refused", folder)
    except ArchiveError as error:
        listing.broken = listing.broken or error.problems[0]
    return listing


def members(path: Path, budget: Budget) -> Iterator[Member]:
    """The files in an archive, in its order; folders are left out.

    Raises ArchiveError where it is damaged or holds more than the budget.
    """
    try:
        yield from (_of_zip if _is_zip(path) else _of_tar)(path, budget)
    except _DAMAGES as error:
        raise ArchiveError(Diagnostic(str(path), _damage(error))) from error


def member_fault(name: str) -> str | None:
    """Why the name of a member cannot be written; None for a relative path below the archive."""
    if fault := name_fault(name):
        return fault
    if name.startswith("/") or name[1:2] == ":":
        return "the name is an absolute path"
    if "\\" in name:
        return "the name holds a backslash"
    parts = name.split("/")
    if ".." in parts:
        return "the name leads out of the archive"
    sizes = [len(part.encode()) for part in parts]
    if max(sizes) > LONGEST_PART or sum(sizes) + len(sizes) > LONGEST_NAME:
        return "the name is too long"
    return None


def _listed(path: Path, budget: Budget) -> Listing:
    listing, last = Listing(), ""
    try:
        for member in members(path, budget):
            last = member.name
            _list(listing, member)
    except ArchiveError as error:
        if budget.is_spent:
            raise
        listing.broken = error.problems[0]
    listing.wanted -= listing.refused.keys()
    for name in list(listing.refused):
        _refuse_run(listing, name, "a file of the run is refused")
    if listing.broken:
        _refuse_run(listing, last, "the archive ends in this run")
    return listing


def _list(listing: Listing, member: Member) -> None:
    name, fault = member.name, member_fault(member.name)
    wanted = is_read(PurePosixPath(name))
    if fault or (member.fault and (wanted or member.fault == _SPECIAL)):
        listing.refused[name] = fault or member.fault or ""
    elif wanted and name in listing.wanted:
        listing.refused[name] = "twice in the archive; nobody says which is right"
    elif wanted:
        listing.wanted.add(name)


def _refuse_run(listing: Listing, name: str, reason: str, folder: Path | None = None) -> None:
    """Refuse the run directory of a member whole: the rest of it is not what ran."""
    records = {*listing.wanted, *listing.refused}
    parents = PurePosixPath(name).parents
    root = next((one for one in parents if str(one / RECORD) in records), None)
    if root is None or name_fault(name):
        return
    prefix = f"{root}/" if root.parts else ""
    listing.wanted = {one for one in listing.wanted if not one.startswith(prefix)}
    listing.refused[str(root)] = reason
    if folder:
        shutil.rmtree(folder / root, ignore_errors=True)


def _written(member: Member, folder: Path) -> str | None:
    """Write a member below a folder; the answer is why that cannot be done."""
    path, left = folder / member.name, member.size_bytes
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as target, member.open() or io.BytesIO() as file:
            while chunk := file.read(CHUNK_BYTES):
                left -= len(chunk)
                target.write(chunk)
    except _DAMAGES as error:
        fault = _damage(error)
    except OSError as error:
        fault = f"cannot be unpacked: {error.strerror}"
    else:
        fault = _CUT_OFF if left else ""
    if fault:
        path.unlink(missing_ok=True)
    return fault or None


def _is_zip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) in _ZIP_STARTS


class _DamagedHeaderError(ValueError):
    """A tar's header that cannot be read."""


class _Header(tarfile.TarInfo):
    """A header that is checked; tarfile takes a damaged one for the end of the archive."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        if len(buf) < tarfile.BLOCKSIZE:
            raise _DamagedHeaderError(_CUT_OFF)
        try:
            header = super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as error:
            if any(buf):
                raise _DamagedHeaderError(f"damaged: {error}") from error
            raise  # a block of zeros is the end
        if header.type in _EXTENDED and header.size > MOST_HEADER_BYTES:
            raise _DamagedHeaderError(f"damaged: a header of {header.size:,} bytes")
        return header


class _Tar(tarfile.TarFile):
    """`members` are those that were listed; a reader of one after another need not keep them."""

    members: list[tarfile.TarInfo]


class _Stream(io.RawIOBase):
    """Chunks as a file that is read from front to back."""

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
    with _Tar.open(fileobj=stream, mode="r|", tarinfo=_Header, encoding="utf-8") as tar:
        while (header := tar.next()) is not None:
            tar.members.clear()
            budget.count_member(str(path))
            if not header.isdir():
                fault = _kind_fault(header) or _size_fault(header.size, budget)
                name, size = _normal(header.name), header.size
                yield Member(name, size, fault, partial(tar.extractfile, header))
    while stream.read(CHUNK_BYTES):
        pass  # what is behind the end shows whether the compressed data is whole


def _of_zip(path: Path, budget: Budget) -> Iterator[Member]:
    _check_directory(path, budget)
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            budget.count_member(str(path))
            if not entry.is_dir():
                budget.spend(str(path), entry.file_size)
                fault = _entry_fault(entry) or _size_fault(entry.file_size, budget)
                # zipfile's own name is cut at a NUL.
                name, size = _normal(entry.orig_filename), entry.file_size
                yield Member(name, size, fault, partial(archive.open, entry))


def _check_directory(path: Path, budget: Budget) -> None:
    """zipfile reads the list of members whole: refuse one that is larger than any list."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - (1 << 17)))
        tail = file.read()
    end, large = tail.rfind(_ZIP_END), tail.rfind(_ZIP64_END)
    stated = struct.unpack_from("<L", tail, end + 12)[0] if 0 <= end <= len(tail) - 22 else 0
    if stated == 0xFFFFFFFF and 0 <= large <= len(tail) - 56:
        stated = struct.unpack_from("<Q", tail, large + 40)[0]
    if stated > budget.most_members * MOST_HEADER_BYTES // 1000:
        raise ArchiveError(Diagnostic(str(path), f"a list of members of {stated:,} bytes"))


def _kind_fault(header: tarfile.TarInfo) -> str | None:
    if header.issym() or header.islnk():
        return _LINK
    return None if header.isreg() else _SPECIAL


def _entry_fault(entry: zipfile.ZipInfo) -> str | None:
    if entry.flag_bits & 1:
        return "encrypted"
    return _LINK if stat.S_ISLNK(entry.external_attr >> 16) else None


def _size_fault(size_bytes: int, budget: Budget) -> str | None:
    if size_bytes <= budget.most_of_one:
        return None
    limit = f"{budget.most_of_one / 2**30:.3g} GiB"
    return f"unpacks to more than {limit}; raise --archive-limit if you trust it"


def _normal(name: str) -> str:
    """A name without `./` and doubled slashes; one that leads elsewhere stays as it is."""
    return name if member_fault(name) else str(PurePosixPath(name))


def _damage(error: Exception) -> str:
    text = str(error)
    if text == "unexpected end of data":
        return _CUT_OFF
    return text if isinstance(error, _DamagedHeaderError) else f"damaged: {text}"
