"""Finds what there is to read at the paths given: run directories, pages, logs and archives."""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePath
from typing import Final, Literal

from perfdb.errors import Diagnostic, InputError
from perfdb.formats import experiment
from perfdb.ingest.compression import plain_suffix
from perfdb.rundir import RECORD, RunDir

PAGES: Final = (".md", ".mdx", ".rst", ".html", ".htm")
LOGS: Final = (".log", ".out", ".err", ".txt", ".json", ".jsonl", ".yaml", ".yml")
ARCHIVES: Final = (
    ".tar", ".tgz", ".tbz2", ".txz", ".tzst", ".zip", ".gz", ".zst", ".xz", ".bz2",
)  # fmt: skip
"""The suffixes of files that are read below a folder; a file that is named may have any."""

READ: Final = frozenset((*PAGES, *LOGS, *ARCHIVES))

LONGEST_SHOWN: Final = 200

_ODD = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Characters that would break a line of output or a row of the store; lone surrogates are bytes
that are no UTF-8."""


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


@dataclass(frozen=True)
class Source:
    """A run directory, a file that may be a page, a log or an archive, or what is not read.

    `closed` is a folder that cannot be read, `linked` a link to one that is not searched.
    `named`: the user gave this very path, so that it must be something; a file that was found in a
    folder may hold no figures at all.
    """

    path: Path
    kind: Literal["run", "page", "log", "closed", "linked"]
    named: bool
    place: Place = Place()

    @property
    def where(self) -> str:
        """The path under which it is reported and stored."""
        return self.place.name(self.path)


def find(paths: Iterable[Path], place: Place | None = None) -> list[Source]:
    """Each source at or below the paths once, folders in path order. Raises InputError."""
    wanted = list(paths)
    missing = [problem for path in wanted for problem in _missing(path)]
    if missing:
        raise InputError(missing)
    finder = _Finder(place or Place())
    for path in wanted:
        finder.add(path)
    return finder.sources()


def file(path: Path, *, named: bool, place: Place | None = None) -> Source:
    """A file by its suffix. Whether it is an archive, its content decides."""
    is_page = path.suffix.lower() in PAGES
    return Source(path, "page" if is_page else "log", named, place or Place())


def is_read(path: PurePath) -> bool:
    """Whether a file below a folder is one to read, by its path relative to that folder."""
    if path.suffix.lower() not in READ and plain_suffix(path) not in READ:
        return False
    return not any(map(_is_skipped, ("", *path.parts), path.parts))


def name_fault(name: str) -> str | None:
    """Why the name of a file cannot be kept; None for one that can."""
    if not (odd := _ODD.search(name)):
        return None
    if odd[0] >= "\ud800":
        return "the name is not UTF-8"
    return "the name holds a line break or another control character"


def printable(name: str) -> str:
    """A name on one line that any terminal and any store takes."""
    plain = _ODD.sub(lambda odd: ascii(odd[0])[1:-1], name)
    return plain if len(plain) <= LONGEST_SHOWN else f"{plain[:LONGEST_SHOWN]}…"


def _is_skipped(folder: str, name: str) -> bool:
    """Hidden files, and the copy of a program's code that is in an experiment's folder."""
    is_code = name == "code" and experiment.configuration(folder) is not None
    return name.startswith(".") or is_code


def _missing(path: Path) -> Iterator[Diagnostic]:
    try:
        path.stat()
    except FileNotFoundError:
        yield Diagnostic(str(path), "no such file or folder")
    except OSError as error:
        yield Diagnostic(str(path), error.strerror or str(error))


@dataclass
class _Finder:
    """The sources found so far, by their real paths, and the folders that were searched."""

    place: Place
    found: dict[str, Source] = field(default_factory=dict)
    searched: set[str] = field(default_factory=set)

    def add(self, path: Path) -> None:
        if not path.is_dir():
            is_record = path == RunDir(path.parent).record
            source = (
                self._run(path.parent, named=True)
                if is_record
                else file(path, named=True, place=self.place)
            )
            self.found[os.path.realpath(source.path)] = source
        elif RunDir(path).is_run():
            self.found[os.path.realpath(path)] = self._run(path, named=True)
        else:
            self._add_below(path)

    def sources(self) -> list[Source]:
        return [source for source in self.found.values() if not self._is_read_elsewhere(source)]

    def _is_read_elsewhere(self, source: Source) -> bool:
        """Whether it is a link to a folder that is read in its own place."""
        if source.kind != "linked":
            return False
        target = os.path.realpath(source.path)
        return target in self.searched or target in self.found

    def _add_below(self, top: Path) -> None:
        below = _Below(top)
        below.walk()
        self.searched |= below.searched
        for path in sorted(below.runs, key=_parts):
            self.found[below.real(path)] = self._run(Path(path), named=False)
        for path in sorted(below.files, key=_parts):
            self.found[below.real(path)] = file(Path(path), named=False, place=self.place)
        for path in sorted(below.closed, key=_parts):
            self.found[path] = Source(Path(path), "closed", False, self.place)
        for path in sorted(below.linked, key=_parts):
            self.found[path] = Source(Path(path), "linked", False, self.place)

    def _run(self, path: Path, *, named: bool) -> Source:
        """A run directory, unless its name is one that cannot be kept."""
        kind: Literal["run", "closed"] = "closed" if name_fault(str(path)) else "run"
        return Source(path, kind, named, self.place)


@dataclass
class _Below:
    """What is below a folder. Links to folders are not followed."""

    top: Path
    runs: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    links: set[str] = field(default_factory=set)
    closed: list[str] = field(default_factory=list)
    linked: list[str] = field(default_factory=list)
    searched: set[str] = field(default_factory=set)

    def walk(self) -> None:
        left = [(str(self.top), False)]
        while left:
            folder, in_run = left.pop()
            try:
                with os.scandir(folder) as listed:
                    entries = list(listed)
            except OSError:
                self.closed.append(folder)
                continue
            if any(entry.name == RECORD and _is_file(entry) for entry in entries):
                self.runs.append(folder)
                in_run = True
            left += ((entry.path, in_run) for entry in entries if _is_folder(entry, folder))
            self.searched.add(self.real(folder))
            if not in_run:
                self._add_files(entries)
                self.linked += (entry.path for entry in entries if _is_link(entry, folder))

    def real(self, path: str) -> str:
        if path in self.links:
            return os.path.realpath(path)
        return self._real_top + path[len(str(self.top)) :]

    @cached_property
    def _real_top(self) -> str:
        return os.path.realpath(self.top)

    def _add_files(self, entries: Iterable[os.DirEntry[str]]) -> None:
        for entry in entries:
            if _is_file(entry) and is_read(PurePath(entry.name)):
                self.files.append(entry.path)
                if entry.is_symlink():
                    self.links.add(entry.path)


def _parts(path: str) -> list[str]:
    return path.split("/")


def _is_folder(entry: os.DirEntry[str], folder: str) -> bool:
    return entry.is_dir(follow_symlinks=False) and not _is_skipped_in(folder, entry)


def _is_link(entry: os.DirEntry[str], folder: str) -> bool:
    is_link = entry.is_symlink() and Path(entry.path).is_dir()
    return is_link and not _is_skipped_in(folder, entry)


def _is_skipped_in(folder: str, entry: os.DirEntry[str]) -> bool:
    return _is_skipped(folder.rpartition("/")[2], entry.name)


def _is_file(entry: os.DirEntry[str]) -> bool:
    return Path(entry.path).is_file() if entry.is_symlink() else entry.is_file()
