"""Finds the files that say what the logs beside them are of; each folder is looked at once.

A file accompanies logs of certain formats only. NVIDIA's launcher writes llmb-config_JOB.yaml for
each job, into the folder of its logs or of the experiment that holds it: a log takes the file of
the job whose number its name or that of a folder of it has. Where they have none, the only such
file in a folder is of the only log there. Any other file counts where it is the only one of its
format in the folder.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path, PurePath
from typing import Final

from perfdb import formats
from perfdb.formats import (
    ParsedLog,
    golden,
    llmb,
    megatron_bridge,
    megatron_lm,
    nemo,
)
from perfdb.groups import grouped
from perfdb.ingest.compression import plain_name, plain_suffix

SUFFIXES: Final = (".yaml", ".yml")
"""The suffixes of files that may say something of the logs beside them."""

MOST_BYTES: Final = 1 << 20
"""A companion is a page of settings: what is larger is none."""

_LOGS_OF: Final[Mapping[str, tuple[str, ...]]] = {
    llmb.FORMAT.name: (nemo.NEMO2.name, megatron_bridge.FORMAT.name, megatron_lm.FORMAT.name),
    golden.CONFIG.name: (golden.MEGATRON.name, megatron_lm.FORMAT.name),
}
"""The formats of the logs that a file may speak of, by its own."""

_LOG_NAMES: Final = (".log", ".out")
"""The suffixes of files that are taken for logs by their names."""

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
    """The companions in a folder: those of jobs, and those that are alone of their format.

    `names`: of all its files.
    """

    of_jobs: Mapping[str, Companion] = field(default_factory=dict)
    alone: tuple[Companion, ...] = ()
    names: frozenset[str] = frozenset()


class Companions:
    """The companions of logs. Folders are remembered, as the logs of one come one after another."""

    def __init__(self) -> None:
        self._folder = lru_cache(maxsize=64)(_folder)
        self._met: dict[Path, set[str]] = {}

    def meet(self, path: Path) -> None:
        """Note a file of an archive: it is not in its folder while another is read."""
        self._met.setdefault(path.parent, set()).add(path.name)

    def of(self, log: Path, parser: str) -> tuple[Companion, ...]:
        """The files that may accompany a log of a format."""
        alone = self._folder(log.parent).alone
        others = (one for one in alone if one.format != llmb.FORMAT.name)
        own = self._of_job(log) if parser in _LOGS_OF[llmb.FORMAT.name] else ()
        return (*own, *(one for one in others if parser in _LOGS_OF.get(one.format, ())))

    def _of_job(self, log: Path) -> tuple[Companion, ...]:
        """The launcher's file of the job that a log is of; none where several may be."""
        near = [log.parent, *log.parents[1 : FOLDERS_ABOVE + 1]]
        own = llmb.job_of_log(log.name)
        jobs = {own} if own else _jobs_named(log.name, *(place.name for place in near))
        found = [one for job in jobs if (one := self._noted(job, near))]
        if found or own:
            return tuple(found) if len(found) == 1 else ()
        return self._of_only(log)

    def _noted(self, job: str, near: Sequence[Path]) -> Companion | None:
        found = (self._folder(place).of_jobs.get(job) for place in near)
        return next((one for one in found if one), None)

    def _of_only(self, log: Path) -> tuple[Companion, ...]:
        """The only such file of a folder where it holds no other log, or only logs of that job."""
        alone = (one for one in self._folder(log.parent).alone if one.format == llmb.FORMAT.name)
        return tuple(one for one in alone if all(_is_of(one, name) for name in self._others(log)))

    def _others(self, log: Path) -> Iterator[str]:
        """The other logs of a log's folder, by their names."""
        own, names = plain_name(log), self._folder(log.parent).names
        suffixes = (*_LOG_NAMES, plain_suffix(log))
        for other in map(PurePath, names | self._met.get(log.parent, set())):
            if plain_name(other) != own and plain_suffix(other) in suffixes:
                yield plain_name(other)


def _jobs_named(log: str, *folders: str) -> set[str]:
    """The numbers that a log's name has, and that folders' names end with."""
    ends = (re.search(r"_(\d+)$", folder) for folder in folders)
    return {*re.findall(r"_(\d+)(?=[._])", log), *(end[1] for end in ends if end)}


def _is_of(one: Companion, log: str) -> bool:
    job = llmb.job_of_config(one.path.name)
    return job is not None and job == llmb.job_of_log(log)


def _folder(path: Path) -> _Folder:
    try:
        files = sorted(path.iterdir())
    except OSError:  # a folder of which the log may be read, but not what else is in it
        return _Folder()
    by_format = grouped(_in(files), lambda one: one.format)
    of_jobs = {
        job: one
        for one in by_format.get(llmb.FORMAT.name, [])
        if (job := llmb.job_of_config(one.path.name))
    }
    alone = tuple(some[0] for some in by_format.values() if len(some) == 1)
    return _Folder(of_jobs, alone, frozenset(file.name for file in files))


def _in(files: Sequence[Path]) -> Iterator[Companion]:
    for path in files:
        if path.suffix.lower() in SUFFIXES and path.is_file():
            yield from _companion(path)


def _companion(path: Path) -> Iterator[Companion]:
    try:
        content = path.read_bytes() if path.stat().st_size <= MOST_BYTES else b""
    except OSError:  # it is told of where it is read itself
        return
    if member := formats.recognized(content[: 1 << 16], path.name):
        parsed = member.parse(str(path), [content])
        if len(parsed) == 1 and parsed[0].outcome is None:
            yield Companion(path, content, member.name, parsed[0])
