"""Unpacks compressed files and archives in bounded memory, with safe names and bounded sizes.

Compressed files are known by their first bytes. An archive is unpacked into a temporary folder;
links in it are not followed, and an archive in an archive is not read.
"""

import bz2
import io
import lzma
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final, Self

import zstandard

from perfdb.db.packing import little_by_little
from perfdb.errors import ArchiveError, Diagnostic
from perfdb.ingest.find import is_read, name_fault, printable
from perfdb.rundir import RECORD
from perfdb.units import counted

CHUNK_BYTES: Final = 4 << 20
"""Bytes of a chunk: as many as a block of a log, so that blocks need no joining."""

MOST_MEMORY_BYTES: Final = 128 << 20
"""What a decompressor may remember of what it has read: xz -9 asks for half of it."""

MOST_HEADER_BYTES: Final = 1 << 20
"""What a tar may state of one member: names are not longer."""

MOST_LISTED: Final = 20
"""Members that are refused one by one."""

LONGEST_NAME: Final = 4096
LONGEST_PART: Final = 255
"""Bytes that Linux allows in a path, and between two slashes of it."""

_LINK: Final = "a link, which is not followed"
_SPECIAL: Final = "neither a file nor a folder"
_CUT_OFF: Final = "cut off: the end of the archive is missing"
_TRUST: Final = "raise --archive-limit if you trust it"

_EXTENDED: Final = (
    tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)  # fmt: skip
"""Headers that tarfile reads whole before the member they are of."""

_DAMAGES: Final = (
    tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, ValueError,
    NotImplementedError, RuntimeError,
)  # fmt: skip
"""What reading a damaged archive raises."""

_DECOMPRESSORS: Final[dict[bytes, Callable[[], Any]]] = {
    b"\x1f\x8b": lambda: zlib.decompressobj(wbits=31),
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ\x00": lambda: lzma.LZMADecompressor(memlimit=MOST_MEMORY_BYTES),
    b"\x28\xb5\x2f\xfd": lambda: zstandard.ZstdDecompressor(
        max_window_size=MOST_MEMORY_BYTES
    ).decompressobj(),
}
"""By the first bytes of a file. The file objects of the library have no limit of memory for xz."""


@dataclass
class Budget:
    """How much may be unpacked from one file that was found, with all that it holds."""

    most_bytes: int = 64 << 30
    most_members: int = 500_000
    unpacked_bytes: int = 0
    num_members: int = 0

    @property
    def is_spent(self) -> bool:
        """Whether there was more than may be read."""
        return self.unpacked_bytes > self.most_bytes or self.num_members > self.most_members

    def spend(self, where: str, *, num_bytes: int = 0, members: int = 0) -> None:
        """Count what was unpacked. Raises ArchiveError if it is too much."""
        self.unpacked_bytes += num_bytes
        self.num_members += members
        if self.unpacked_bytes > self.most_bytes:
            message = f"unpacks to more than {self.most_bytes / 2**30:.3g} GiB"
            raise ArchiveError(Diagnostic(where, message, remedy=_TRUST))
        if self.num_members > self.most_members:
            message = f"holds more than {self.most_members:,} members"
            raise ArchiveError(Diagnostic(where, message, remedy="unpack it and name what to read"))


def chunks(path: Path, budget: Budget) -> Iterator[bytes]:
    """The bytes of a file, unpacked if it is compressed, in chunks of about CHUNK_BYTES.

    Raises ArchiveError if it is damaged, cut off, or unpacks to more than the budget.
    """
    with path.open("rb") as file:
        start, content = file.peek(), iter(lambda: file.read(CHUNK_BYTES), b"")
        new = next((new for magic, new in _DECOMPRESSORS.items() if start.startswith(magic)), None)
        if new is None:
            yield from content
            return
        held, broken = bytearray(), None
        try:
            for piece in _unpacked(content, new):
                held += piece
                if len(held) >= CHUNK_BYTES:
                    budget.spend(str(path), num_bytes=len(held))
                    yield bytes(held)
                    held.clear()
        except EOFError as error:
            broken = f"cut off: {error}"
        except (zlib.error, lzma.LZMAError, zstandard.ZstdError, OSError) as error:
            broken = f"damaged: {error}"
        budget.spend(str(path), num_bytes=len(held))
        if held:
            yield bytes(held)
        if broken:
            raise ArchiveError(Diagnostic(str(path), broken))


def _unpacked(content: Iterable[bytes], new: Callable[[], Any]) -> Iterator[bytes]:
    """The plain bytes of one compressed stream, or of several one after another."""
    decompressor = new()
    for fed in little_by_little(content):
        left = fed
        while left:
            if decompressor.eof:
                decompressor = new()
            yield decompressor.decompress(left)
            # Zeros are padding, as tapes need it.
            left = decompressor.unused_data.lstrip(b"\0") if decompressor.eof else b""
    if not decompressor.eof:
        raise EOFError("the compressed data has no end")


def is_archive(path: Path) -> bool:
    """Whether a file is a tar, compressed or not, or a zip, by its first bytes."""
    if _is_zip(path):
        return True
    try:
        head = next(chunks(path, Budget()), b"")[: tarfile.BLOCKSIZE]
        return any(head) and bool(tarfile.TarInfo.frombuf(head, "utf-8", "surrogateescape").name)
    except (ArchiveError, tarfile.HeaderError):
        return False


@dataclass(frozen=True)
class Member:
    """A file in an archive; `fault` is why it cannot be read, `open` gives its bytes."""

    name: str
    size_bytes: int
    fault: str | None
    open: Callable[[], IO[bytes] | None]


def unpack(path: Path, folder: Path, budget: Budget, where: str) -> list[Diagnostic]:
    """Write the runs, pages, logs and settings of an archive below a folder; what is refused.

    A run directory is refused whole if one of its files is, or if the archive ends in it. Raises
    ArchiveError for an archive that holds more than the budget.
    """
    written, refused = set[str](), dict[str, str]()
    last, broken = "", None
    try:
        for member in members(path, budget):
            last = member.name
            if last in refused:
                continue
            if fault := _unpack(member, folder, is_written=last in written):
                refused[last] = fault
            elif is_read(PurePosixPath(last)):
                written.add(last)
    except ArchiveError as error:
        if budget.is_spent:
            raise
        broken = error.problems[0]
    _refuse_runs(folder, refused, {*written, *refused}, last if broken else None)
    found = [Diagnostic(f"{where}!/{printable(name)}", why) for name, why in refused.items()]
    if (rest := len(found) - MOST_LISTED) > 0:
        message = f"{counted(rest, 'more member')} {'is' if rest == 1 else 'are'} refused"
        found[MOST_LISTED:] = [Diagnostic(where, message)]
    return [*found, broken] if broken else found


def _refuse_runs(folder: Path, refused: dict[str, str], known: set[str], cut: str | None) -> None:
    """Refuse the runs of refused members, and the one that the archive is cut off in, whole."""
    reasons = dict.fromkeys(refused, "a file of the run is refused")
    if cut is not None:
        reasons.setdefault(cut, "the archive ends in this run")
    for name, reason in reasons.items():
        parents = PurePosixPath(name).parents
        root = next((one for one in parents if str(one / RECORD) in known), None)
        if root is not None and member_fault(str(root)) is None:
            shutil.rmtree(folder / root, ignore_errors=True)
            folder.mkdir(exist_ok=True)  # of an archive that is one run
            refused[str(root)] = reason


def _unpack(member: Member, folder: Path, *, is_written: bool) -> str | None:
    """Write a member below a folder if it is one to read; why it is refused."""
    path = folder / member.name
    if not is_read(PurePosixPath(member.name)):
        return member_fault(member.name) or (member.fault if member.fault == _SPECIAL else None)
    if is_written:
        path.unlink()
        return "twice in the archive; nobody says which is right"
    return member_fault(member.name) or member.fault or _write(member, path)


def _write(member: Member, path: Path) -> str | None:
    """Write a member; why that cannot be done. Raises ArchiveError if the archive ends in it."""
    left = member.size_bytes
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as target, member.open() or io.BytesIO() as file:
            while chunk := file.read(CHUNK_BYTES):
                left -= len(chunk)
                target.write(chunk)
        fault = _CUT_OFF if left else None
    except _DAMAGES as error:
        fault = _damage(error)
    except OSError as error:
        return f"cannot be unpacked: {error.strerror}"
    except ArchiveError:
        path.unlink(missing_ok=True)
        raise
    if fault:
        path.unlink(missing_ok=True)
    return fault


def members(path: Path, budget: Budget) -> Iterator[Member]:
    """The files in an archive, in its order; folders are left out.

    Of a tar, `open` works only until the next member. Raises ArchiveError if the archive is damaged
    or holds more than the budget.
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


def _is_zip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) in (b"PK\x03\x04", b"PK\x05\x06")


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


class _Reader:
    """Chunks as a file that is read from front to back."""

    def __init__(self, content: Iterator[bytes]) -> None:
        self._content, self._held = content, bytearray()

    def read(self, size: int) -> bytes:
        """The next bytes, at most so many."""
        while len(self._held) < size and (chunk := next(self._content, b"")):
            self._held += chunk
        taken = bytes(self._held[:size])
        del self._held[:size]
        return taken


def _of_tar(path: Path, budget: Budget) -> Iterator[Member]:
    content = chunks(path, budget)
    tar = tarfile.TarFile.open(
        fileobj=_Reader(content), mode="r|", tarinfo=_Header, encoding="utf-8"
    )  # type: ignore[call-overload]
    with tar:
        while (header := tar.next()) is not None:
            tar.members.clear()
            budget.spend(str(path), members=1)
            if not header.isdir():
                fault = (
                    _LINK if header.issym() or header.islnk() else _too_large(header.size, budget)
                )
                if not fault and (not header.isreg() or header.issparse()):
                    fault = _SPECIAL
                name = _normal(header.name)
                yield Member(name, header.size, fault, partial(tar.extractfile, header))
    for _ in content:
        pass  # what is behind the end shows whether the compressed data is whole


def _of_zip(path: Path, budget: Budget) -> Iterator[Member]:
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        size = sum(entry.file_size for entry in entries)
        budget.spend(str(path), num_bytes=size, members=len(entries))
        for entry in entries:
            if not entry.is_dir():
                fault = "encrypted" if entry.flag_bits & 1 else _too_large(entry.file_size, budget)
                if stat.S_ISLNK(entry.external_attr >> 16):
                    fault = _LINK
                # zipfile's own name is cut at a NUL.
                name = _normal(entry.orig_filename)
                yield Member(name, entry.file_size, fault, partial(archive.open, entry))


def _too_large(size_bytes: int, budget: Budget) -> str | None:
    """A member may have a quarter of what the archive may."""
    most = budget.most_bytes // 4
    return f"unpacks to more than {most / 2**30:.3g} GiB; {_TRUST}" if size_bytes > most else None


def _normal(name: str) -> str:
    """A name without `./` and doubled slashes; one that cannot be written stays as it is."""
    return name if member_fault(name) else str(PurePosixPath(name))


def _damage(error: Exception) -> str:
    text = str(error)
    if text == "unexpected end of data":
        return _CUT_OFF
    return text if isinstance(error, _DamagedHeaderError) else f"damaged: {text}"
