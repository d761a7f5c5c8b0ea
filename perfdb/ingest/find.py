"""Finds what there is to read at the paths given: run directories, pages and logs."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from perfdb.errors import InputError, Problem
from perfdb.rundir import RunDir, find_runs

PAGES = (".md",)
LOGS = (".log", ".out", ".txt", ".json", ".jsonl", ".yaml", ".yml")
"""The suffixes of files that are looked at in a folder; a file that is named may have any."""


@dataclass(frozen=True)
class Source:
    """A run directory, or a file that may be a page or a log.

    `named`: the user gave this very path, so that it must be something; a file that was met in a
    folder may hold no figures at all.
    """

    path: Path
    kind: Literal["run", "page", "log"]
    named: bool


def find(paths: Iterable[Path]) -> list[Source]:
    """Each source at or below the paths once, folders in path order. Raises InputError."""
    given = list(paths)
    missing = [path for path in given if not path.exists()]
    if missing:
        raise InputError(Problem(str(path), "no such file or folder") for path in missing)
    found = {source.path.resolve(): source for path in given for source in _at(path)}
    return list(found.values())


def _at(path: Path) -> Iterator[Source]:
    if not path.is_dir():
        is_record = path == RunDir(path.parent).record
        yield Source(path.parent, "run", True) if is_record else _file(path, named=True)
    elif RunDir(path).is_run():
        yield Source(path, "run", True)
    else:
        yield from _below(path)


def _below(folder: Path) -> Iterator[Source]:
    runs = [run.path for run in find_runs(folder) if not _is_hidden(run.path, folder)]
    yield from (Source(path, "run", False) for path in runs)
    suffixes = (*PAGES, *LOGS)
    files = [path for path in sorted(folder.rglob("*.*")) if path.suffix.lower() in suffixes]
    shown = [path for path in files if path.is_file() and not _is_hidden(path, folder)]
    yield from (_file(path, named=False) for path in shown if not _is_inside(path, runs))


def _file(path: Path, *, named: bool) -> Source:
    return Source(path, "page" if path.suffix.lower() in PAGES else "log", named)


def _is_hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(folder).parts)


def _is_inside(path: Path, runs: Sequence[Path]) -> bool:
    return not set(path.parents).isdisjoint(runs)
