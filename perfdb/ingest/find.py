"""Finds run directories, pages, logs and archives below paths."""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path, PurePath
from typing import Final, Literal

from perfdb.errors import Diagnostic, InputError
from perfdb.formats import experiment
from perfdb.rundir import RECORD, RunDir

PAGES: Final = (".md", ".mdx", ".rst", ".html", ".htm")
LOGS: Final = (".log", ".out", ".err", ".txt", ".json", ".jsonl", ".yaml", ".yml")
COMPRESSED: Final = (".gz", ".zst", ".xz", ".bz2")
ARCHIVES: Final = (".tar", ".tgz", ".tbz2", ".txz", ".tzst", ".zip")
READ: Final = frozenset((*PAGES, *LOGS, *COMPRESSED, *ARCHIVES))
"""The suffixes of files that are read in a folder; a file that is named may have any."""

LONGEST_SHOWN: Final = 200

_ODD = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Characters that would break a line of output or a row of the store; lone surrogates are bytes
that are no UTF-8."""
_ROTATED = re.compile(r".+(\.(?:log|out|err|txt|jsonl))[.-](?:\d[\d.t:_-]*|old)")
"""Names that logrotate and the like give to logs: `train.log.1`, `x.out-20260301`."""
_STREAM = re.compile(r".+\.([oe])\d[\d.-]*|std([oe])(?:ut|rr)")
"""Names that PBS and Grid Engine give to the output of a job: `train.o12345`."""


@dataclass(frozen=True)
class Place:
    """A temporary folder with the files of an archive; without an archive, the file system."""

    folder: str = ""
    archive: str = ""

    def name(self, path: Path | str) -> str:
        """The path under which a file is reported and stored: `ARCHIVE!/PATH` in an archive."""
        text = str(path)
        if not self.archive or not text.startswith(self.folder):
            return text
        inner = text[len(self.folder) + 1 :]
        return f"{self.archive}!/{inner}" if inner else self.archive


FILE_SYSTEM: Final = Place()


@dataclass(frozen=True)
class Source:
    """A run directory, a file that may be a page, a log or an archive, or what is not read.

    `closed` is a folder that cannot be read, `linked` a link to a folder. `named`: the user gave
    this very path, so that it must be something; a file in a folder may hold no figures at all.
    """

    path: Path
    kind: Literal["run", "page", "log", "closed", "linked"]
    named: bool
    place: Place = FILE_SYSTEM

    @property
    def where(self) -> str:
        """The path under which it is reported and stored."""
        return self.place.name(self.path)


def find(paths: Iterable[Path], place: Place = FILE_SYSTEM) -> list[Source]:
    """Each source at or below the paths once, folders in path order. Raises InputError."""
    wanted = list(paths)
    if missing := [problem for path in wanted for problem in _missing(path)]:
        raise InputError(missing)
    found: dict[str, Source] = {}
    searched: set[str] = set()
    for path in wanted:
        if path.is_dir() and not RunDir(path).is_run():
            found.update(_below(path, place, searched))
            continue
        is_file = not path.is_dir()
        run = path.parent if is_file and path.name == RECORD else None if is_file else path
        source = (
            file(path, named=True, place=place) if run is None else _run(run, place, named=True)
        )
        found[os.path.realpath(source.path)] = source
    known = searched | found.keys()
    return [
        source
        for source in found.values()
        if source.kind != "linked" or os.path.realpath(source.path) not in known
    ]


def file(path: Path, *, named: bool, place: Place = FILE_SYSTEM) -> Source:
    """A file as a source by its suffix. Its content decides whether it is an archive."""
    return Source(path, "page" if path.suffix.lower() in PAGES else "log", named, place)


def is_read(path: PurePath) -> bool:
    """Whether a file below a folder is one to read, by its path relative to that folder."""
    if path.suffix.lower() not in READ and plain_suffix(path) not in READ:
        return False
    return not any(map(_is_skipped, ("", *path.parts), path.parts))


def plain_name(path: PurePath) -> str:
    """The name of a file without the suffix of its compression."""
    return path.stem if path.suffix.lower() in COMPRESSED else path.name


def plain_suffix(path: PurePath) -> str:
    """The suffix of that name in lower case; of a rotated log or a job's output, that of a log."""
    name = plain_name(path).lower()
    if rotated := _ROTATED.fullmatch(name):
        return rotated[1]
    if stream := _STREAM.fullmatch(name):
        return ".out" if "o" in stream.groups() else ".err"
    return PurePath(name).suffix


def name_fault(name: str) -> str | None:
    """Why the name of a file cannot be stored; None for one that can."""
    if not (odd := _ODD.search(name)):
        return None
    if odd[0] >= "\ud800":
        return "the name is not UTF-8"
    return "the name holds a line break or another control character"


def printable(name: str) -> str:
    """A name on one line that any terminal and any store takes."""
    plain = _ODD.sub(lambda odd: ascii(odd[0])[1:-1], name)
    return plain if len(plain) <= LONGEST_SHOWN else f"{plain[:LONGEST_SHOWN]}…"


def _missing(path: Path) -> Iterator[Diagnostic]:
    try:
        path.stat()
    except FileNotFoundError:
        yield Diagnostic(str(path), "no such file or folder")
    except OSError as error:
        yield Diagnostic(str(path), error.strerror or str(error))


def _run(path: Path, place: Place, *, named: bool) -> Source:
    """A run directory, unless its name cannot be stored."""
    return Source(path, "closed" if name_fault(str(path)) else "run", named, place)


def _is_skipped(folder: str, name: str) -> bool:
    """Hidden files, and the copy of a program's code in the folder of an experiment."""
    is_code = name == "code" and experiment.configuration(folder) is not None
    return name.startswith(".") or is_code


def _below(top: Path, place: Place, searched: set[str]) -> Iterator[tuple[str, Source]]:
    """The sources below a folder with their real paths: runs, files, and what is not read.

    Adds the folders that were searched.
    """
    for kind, path, real in sorted(_walk(top, searched), key=lambda it: (it[0], it[1].split("/"))):
        if kind is _Kind.RUN:
            yield real, _run(Path(path), place, named=False)
        elif kind is _Kind.FILE:
            yield real, file(Path(path), named=False, place=place)
        else:
            yield (
                path,
                Source(Path(path), "closed" if kind is _Kind.CLOSED else "linked", False, place),
            )


class _Kind(IntEnum):
    RUN, FILE, CLOSED, LINKED = range(4)


def _walk(top: Path, searched: set[str]) -> Iterator[tuple[_Kind, str, str]]:
    """What is below a folder, with its path and its real path; links to folders are not followed.

    The files of a run directory belong to the run.
    """
    real_top, runs, closed = os.path.realpath(top), set[str](), list[OSError]()
    for folder, folders, names in os.walk(top, onerror=closed.append):
        real = real_top + folder[len(str(top)) :]
        searched.add(real)
        above, _, last = folder.rpartition("/")
        folders[:] = [name for name in folders if not _is_skipped(last, name)]
        if RECORD in names and os.path.isfile(f"{folder}/{RECORD}"):  # noqa: PTH113
            yield _Kind.RUN, folder, real
            runs.add(folder)
        if folder in runs or above in runs:
            runs.add(folder)
            continue
        for name in names:
            path = f"{folder}/{name}"
            if is_read(PurePath(name)) and os.path.isfile(path):  # noqa: PTH113
                is_link = os.path.islink(path)  # noqa: PTH114
                yield _Kind.FILE, path, os.path.realpath(path) if is_link else f"{real}/{name}"
        links = (f"{folder}/{name}" for name in folders)
        yield from ((_Kind.LINKED, path, "") for path in links if os.path.islink(path))  # noqa: PTH114
    yield from ((_Kind.CLOSED, error.filename, "") for error in closed)
