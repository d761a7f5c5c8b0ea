"""Archives for tests, whole and damaged, and what tells them apart."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import zstandard

Members = Iterable[tuple[str, bytes]]

COMPRESSORS: Mapping[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": lambda content: gzip.compress(content, mtime=0),
    ".zst": zstandard.ZstdCompressor().compress,
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
}


def tar(members: Members) -> bytes:
    """A tar of such files, in this order; a name may come twice."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, content in members:
            add(archive, name, content)
    return made.getvalue()


def add(archive: tarfile.TarFile, name: str, content: bytes = b"", **header: object) -> None:
    """Add a file, or what `header` makes of it: type=, linkname=."""
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for field, value in header.items():
        setattr(info, field, value)
    archive.addfile(info, io.BytesIO(content))


def zipped(members: Members) -> bytes:
    """A zip of such files."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return made.getvalue()


def write(path: Path, content: bytes) -> Path:
    """A file of these bytes."""
    path.write_bytes(content)
    return path


def of_folder(folder: Path) -> list[tuple[str, bytes]]:
    """The files below a folder, as members."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return [(str(path.relative_to(folder)), path.read_bytes()) for path in paths]
