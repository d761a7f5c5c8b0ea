"""Finds the files that say what the logs beside them are of; each folder is looked at once.

NVIDIA's launcher writes llmb-config_JOB.yaml for each job, into the folder of its logs or of the
experiment that holds it: a log whose name has a job's number takes the file of that job and no
other. Any other such file counts where it is the only one of its format in the folder.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from perfdb import formats
from perfdb.formats import ParsedLog, llmb_config

SUFFIXES: Final = (".yaml", ".yml")
"""The suffixes of files that may say something of the logs beside them."""

MOST_BYTES: Final = 1 << 20
"""A companion is a page of settings: what is larger is none."""

FOLDERS_ABOVE: Final = 2
"""How far above a log its job's file may lie: experiment/experiment_TIME/experiment/log."""


@dataclass(frozen=True)
class Companion:
    """A file that says what the run beside it is of."""

    path: Path
    content: bytes
    format: str
    said: ParsedLog


@dataclass(frozen=True)
class _Folder:
    """The companions in a folder: those of jobs, and those that are alone of their format."""

    of_jobs: Mapping[str, Companion]
    alone: tuple[Companion, ...]


class Companions:
    """The companions of logs. Folders are remembered, as the logs of one come one after another."""

    def __init__(self) -> None:
        self._folder = lru_cache(maxsize=64)(_folder)

    def of(self, log: Path) -> tuple[Companion, ...]:
        """The files that may accompany a log."""
        folder, job = self._folder(log.parent), llmb_config.job_of_log(log.name)
        if job is None:
            return folder.alone
        others = [one for one in folder.alone if one.format != llmb_config.NAME]
        near = [log.parent, *log.parents[1 : FOLDERS_ABOVE + 1]]
        found = (self._folder(place).of_jobs.get(job) for place in near)
        own = next((one for one in found if one), None)
        return (own, *others) if own else tuple(others)


def _folder(path: Path) -> _Folder:
    by_format: dict[str, list[Companion]] = {}
    for found in _in(path):
        by_format.setdefault(found.format, []).append(found)
    of_jobs = {
        job: one
        for one in by_format.get(llmb_config.NAME, [])
        if (job := llmb_config.job_of_config(one.path.name))
    }
    alone = tuple(some[0] for some in by_format.values() if len(some) == 1)
    return _Folder(of_jobs, alone)


def _in(folder: Path) -> Iterator[Companion]:
    try:
        files = sorted(folder.iterdir())
    except OSError:  # a folder of which the log may be read, but not what else is in it
        return
    for path in files:
        if path.suffix.lower() in SUFFIXES and path.is_file():
            yield from _companion(path)


def _companion(path: Path) -> Iterator[Companion]:
    try:
        content = path.read_bytes() if path.stat().st_size <= MOST_BYTES else b""
    except OSError:  # it is told of where it is read itself
        return
    if member := formats.recognised(content[: 1 << 16], path.name):
        parsed = member.parse(str(path), [content])
        if len(parsed) == 1 and parsed[0].outcome is None:
            yield Companion(path, content, member.NAME, parsed[0])
