"""Finds what there is to read at the paths given: run directories, pages, logs and archives."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Literal

from perfdb.errors import InputError, Problem
from perfdb.formats import experiment
from perfdb.ingest import names
from perfdb.rundir import RunDir

PAGES = (".md", ".mdx", ".rst", ".html", ".htm")
LOGS = (".log", ".out", ".txt", ".json", ".jsonl", ".yaml", ".yml")
ARCHIVES = (".tar", ".tgz", ".tbz2", ".txz", ".tzst", ".zip", ".gz", ".zst", ".xz", ".bz2")
"""The suffixes of files that are looked at in a folder; a file that is named may have any."""

LOOKED_AT = frozenset((*PAGES, *LOGS, *ARCHIVES))


@dataclass(frozen=True)
class Source:
    """A run directory, a file that may be a page, a log or an archive, or what cannot be read.

    `named`: the user gave this very path, so that it must be something; a file that was met in a
    folder may hold no figures at all.
    """

    path: Path
    kind: Literal["run", "page", "log", "closed"]
    named: bool


def find(paths: Iterable[Path]) -> list[Source]:
    """Each source at or below the paths once, folders in path order. Raises InputError."""
    given = list(paths)
    missing = [problem for path in given for problem in _missing(path)]
    if missing:
        raise InputError(missing)
    found = {source.path.resolve(): source for path in given for source in _at(path)}
    return list(found.values())


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
    return path.suffix.lower() in LOOKED_AT and not any(map(_is_passed_over, _steps(path)))


def _steps(path: PurePath) -> Iterator[tuple[str, str]]:
    """Each part of a path with the name of the folder that it lies in."""
    return zip(("", *path.parts), path.parts, strict=False)


def _is_passed_over(step: tuple[str, str]) -> bool:
    """What is hidden, and the copy of a program's code that lies in an experiment's folder."""
    folder, name = step
    is_code = name == "code" and experiment.configuration(folder) is not None
    return name.startswith(".") or is_code


def _missing(path: Path) -> Iterator[Problem]:
    try:
        path.stat()
    except FileNotFoundError:
        yield Problem(str(path), "no such file or folder")
    except OSError as error:
        yield Problem(str(path), error.strerror or str(error))


def _at(path: Path) -> Iterator[Source]:
    if not path.is_dir():
        is_record = path == RunDir(path.parent).record
        yield run(path.parent, named=True) if is_record else file(path, named=True)
    elif RunDir(path).is_run():
        yield run(path, named=True)
    else:
        found = _Below()
        found.walk(path)
        yield from found.sources()


@dataclass
class _Below:
    """What lies below a folder, in the order it is met. Links to folders are not followed."""

    runs: list[Path] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    closed: list[Path] = field(default_factory=list)

    def walk(self, top: Path) -> None:
        within: set[str] = set()
        for name, folders, files in os.walk(top, onerror=self._note):
            folder = Path(name)
            if RunDir(folder).is_run():
                self.runs.append(folder)
                within.add(str(folder))
            folders[:] = [one for one in folders if not _is_passed_over((folder.name, one))]
            if str(folder) in within:
                within |= {str(folder / one) for one in folders}
            else:
                self.files += [folder / one for one in files if is_looked_at(PurePath(one))]

    def _note(self, error: OSError) -> None:
        self.closed.append(Path(error.filename))

    def sources(self) -> Iterator[Source]:
        """Runs, then files, each in path order."""
        yield from (run(path, named=False) for path in sorted(self.runs))
        yield from (file(path, named=False) for path in sorted(self.files) if path.is_file())
        yield from (Source(path, "closed", False) for path in sorted(self.closed))
