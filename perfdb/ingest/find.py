"""Finds what there is to read at the paths given: run directories, pages, logs and archives."""

import os
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePath
from typing import Literal

from perfdb.errors import Diagnostic, InputError
from perfdb.formats import experiment
from perfdb.ingest import names
from perfdb.ingest.compression import plain_suffix
from perfdb.rundir import RECORD, RunDir

PAGES = (".md", ".mdx", ".rst", ".html", ".htm")
LOGS = (".log", ".out", ".err", ".txt", ".json", ".jsonl", ".yaml", ".yml")
ARCHIVES = (".tar", ".tgz", ".tbz2", ".txz", ".tzst", ".zip", ".gz", ".zst", ".xz", ".bz2")
"""The suffixes of files that are looked at in a folder, also where a log's name goes on behind
them; a file that is named may have any.
"""

LOOKED_AT = frozenset((*PAGES, *LOGS, *ARCHIVES))


@dataclass(frozen=True)
class Source:
    """A run directory, a file that may be a page, a log or an archive, or what is not read.

    That is a folder that cannot be read, or a link to one that is not searched.
    `named`: the user gave this very path, so that it must be something; a file that was met in a
    folder may hold no figures at all.
    """

    path: Path
    kind: Literal["run", "page", "log", "closed", "linked"]
    named: bool


def find(paths: Iterable[Path]) -> list[Source]:
    """Each source at or below the paths once, folders in path order. Raises InputError."""
    given = list(paths)
    missing = [problem for path in given for problem in _missing(path)]
    if missing:
        raise InputError(missing)
    searched: set[str] = set()
    found = {key: source for path in given for key, source in _at(path, searched)}
    return [source for source in found.values() if not _is_known_link(source, found, searched)]


def _is_known_link(source: Source, found: Container[str], searched: Container[str]) -> bool:
    """Whether it is a link to a folder that is read where it lies."""
    if source.kind != "linked":
        return False
    target = os.path.realpath(source.path)
    return target in searched or target in found


def file(path: Path, *, named: bool) -> Source:
    """A file by its suffix. Whether it is an archive its content will tell."""
    return Source(path, "page" if path.suffix.lower() in PAGES else "log", named)


def run(path: Path, *, named: bool) -> Source:
    """A run directory, unless its name is one that cannot be kept."""
    return Source(path, "closed" if names.fault(str(path)) else "run", named)


def is_looked_at(path: PurePath) -> bool:
    """Whether a file that was met below a folder is one to look at, by its path alone.

    `path` is relative to that folder.
    """
    if path.suffix.lower() not in LOOKED_AT and plain_suffix(path) not in LOOKED_AT:
        return False
    return not any(map(_is_passed_over, ("", *path.parts), path.parts))


def _is_passed_over(folder: str, name: str) -> bool:
    """What is hidden, and the copy of a program's code that lies in an experiment's folder."""
    is_code = name == "code" and experiment.configuration(folder) is not None
    return name.startswith(".") or is_code


def _missing(path: Path) -> Iterator[Diagnostic]:
    try:
        path.stat()
    except FileNotFoundError:
        yield Diagnostic(str(path), "no such file or folder")
    except OSError as error:
        yield Diagnostic(str(path), error.strerror or str(error))


def _at(path: Path, searched: set[str]) -> Iterator[tuple[str, Source]]:
    """Each source at or below a path, and where it really is, whatever links lead to it.

    The folders that are looked into are added to those that are searched.
    """
    if not path.is_dir():
        is_record = path == RunDir(path.parent).record
        found = run(path.parent, named=True) if is_record else file(path, named=True)
        yield os.path.realpath(found.path), found
    elif RunDir(path).is_run():
        yield os.path.realpath(path), run(path, named=True)
    else:
        below = _Below(path)
        below.walk()
        searched |= below.searched
        yield from below.sources()


@dataclass
class _Below:
    """What lies below a folder, in the order it is met. Links to folders are not followed."""

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
            folder, inside = left.pop()
            try:
                with os.scandir(folder) as listed:
                    entries = list(listed)
            except OSError:
                self.closed.append(folder)
                continue
            if any(entry.name == RECORD and _is_file(entry) for entry in entries):
                self.runs.append(folder)
                inside = True
            left += ((entry.path, inside) for entry in entries if _is_open(entry, folder))
            self.searched.add(self._really(folder))
            if not inside:
                self._note_files(entries)
                self.linked += (entry.path for entry in entries if _is_link(entry, folder))

    def _note_files(self, entries: Iterable[os.DirEntry[str]]) -> None:
        for entry in entries:
            if _is_file(entry) and is_looked_at(PurePath(entry.name)):
                self.files.append(entry.path)
                if entry.is_symlink():
                    self.links.add(entry.path)

    def sources(self) -> Iterator[tuple[str, Source]]:
        """Runs, then files, each in path order."""
        for path in sorted(self.runs, key=_parts):
            yield self._really(path), run(Path(path), named=False)
        for path in sorted(self.files, key=_parts):
            yield self._really(path), file(Path(path), named=False)
        for path in sorted(self.closed, key=_parts):
            yield path, Source(Path(path), "closed", False)
        for path in sorted(self.linked, key=_parts):
            yield path, Source(Path(path), "linked", False)

    @cached_property
    def _top(self) -> str:
        return os.path.realpath(self.top)

    def _really(self, path: str) -> str:
        if path in self.links:
            return os.path.realpath(path)
        return self._top + path[len(str(self.top)) :]


def _parts(path: str) -> list[str]:
    return path.split("/")


def _is_open(entry: os.DirEntry[str], folder: str) -> bool:
    """Whether an entry of a folder is a folder to look into."""
    return entry.is_dir(follow_symlinks=False) and _is_shown(entry, folder)


def _is_link(entry: os.DirEntry[str], folder: str) -> bool:
    """Whether an entry of a folder is a link to another folder."""
    return entry.is_symlink() and Path(entry.path).is_dir() and _is_shown(entry, folder)


def _is_shown(entry: os.DirEntry[str], folder: str) -> bool:
    return not _is_passed_over(folder.rpartition("/")[2], entry.name)


def _is_file(entry: os.DirEntry[str]) -> bool:
    return Path(entry.path).is_file() if entry.is_symlink() else entry.is_file()
