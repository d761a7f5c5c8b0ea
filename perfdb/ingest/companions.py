"""Finds the files that state what the logs next to them are of.

A file accompanies logs of certain formats only. NVIDIA's launcher writes llmb-config_JOB.yaml for
each job, into the folder of its logs or of the experiment that holds it: a log takes the file of
the job whose number its name or that of a folder of it has. Where they have none, the only such
file in a folder is of the only log there. Any other file counts where it is the only one of its
format in the folder.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path, PurePath
from typing import Final

from perfdb import formats
from perfdb.db.rows import SourceFile
from perfdb.formats import ParsedLog, golden, llmb, megatron_bridge, megatron_lm, nemo
from perfdb.groups import grouped
from perfdb.ingest.compression import plain_name, plain_suffix
from perfdb.ingest.find import Place, Source

LOG_PARSER_VERSION: Final = 13
"""Kept with each log; raised when perfdb.formats reads something else out of the same bytes."""

SUFFIXES: Final = (".yaml", ".yml")
"""The suffixes of files that may state something about the logs next to them."""

MOST_BYTES: Final = 1 << 20
"""A companion is a page of settings: what is larger is none."""

FOLDERS_ABOVE: Final = 2
"""How far above a log its job's file may be: experiment/experiment_TIME/experiment/log."""

_LOGS_OF: Final[Mapping[str, tuple[str, ...]]] = {
    llmb.FORMAT.name: (nemo.NEMO2.name, megatron_bridge.FORMAT.name, megatron_lm.FORMAT.name),
    golden.CONFIG.name: (golden.MEGATRON.name, megatron_lm.FORMAT.name),
}
"""The formats of the logs that a file may be of, by its own."""

_LOG_NAMES: Final = (".log", ".out")
"""The suffixes of files that are taken for logs by their names."""


@dataclass(frozen=True)
class Companion:
    """A file that states what the run next to it is of."""

    source: SourceFile
    log: ParsedLog

    @property
    def name(self) -> str:
        """The name of the file."""
        return PurePath(self.source.path).name


@dataclass(frozen=True)
class _Folder:
    """The companions in a folder: those of jobs, and those that are alone of their format.

    `names`: of all its files.
    """

    of_jobs: Mapping[str, Companion] = field(default_factory=dict)
    alone: tuple[Companion, ...] = ()
    names: frozenset[str] = frozenset()


class Folders:
    """The companions of logs. Each folder is read once, as its logs come one after another."""

    def __init__(self) -> None:
        self._folder = lru_cache(maxsize=64)(_folder)

    def companions(self, source: Source, parser: str) -> tuple[Companion, ...]:
        """The files that may accompany a log of a format."""
        alone = self._folder(source.path.parent, source.place).alone
        others = (one for one in alone if one.source.parser != llmb.FORMAT.name)
        own = self._of_job(source) if parser in _LOGS_OF[llmb.FORMAT.name] else ()
        return (*own, *(one for one in others if parser in _LOGS_OF.get(one.source.parser, ())))

    def _of_job(self, source: Source) -> tuple[Companion, ...]:
        """The launcher's file of the job that a log is of; none where several may be."""
        log = source.path
        near = [log.parent, *log.parents[1 : FOLDERS_ABOVE + 1]]
        own = llmb.job_of_log(log.name)
        jobs = {own} if own else _jobs_named(log.name, *(folder.name for folder in near))
        by_folder = [self._folder(folder, source.place).of_jobs for folder in near]
        found = [one for job in jobs if (one := _first(job, by_folder))]
        if found or own:
            return tuple(found) if len(found) == 1 else ()
        folder = self._folder(log.parent, source.place)
        alone = [one for one in folder.alone if one.source.parser == llmb.FORMAT.name]
        others = _other_logs(log, folder.names)
        return tuple(one for one in alone if all(_is_of(one, name) for name in others))


def _first(job: str, by_folder: Sequence[Mapping[str, Companion]]) -> Companion | None:
    return next((folder[job] for folder in by_folder if job in folder), None)


def _other_logs(log: Path, names: Iterable[str]) -> Sequence[str]:
    """The other logs of a log's folder, by their names."""
    suffixes = (*_LOG_NAMES, plain_suffix(log))
    logs = [plain_name(other) for other in map(PurePath, names) if plain_suffix(other) in suffixes]
    return [name for name in logs if name != plain_name(log)]


def _jobs_named(log: str, *folders: str) -> set[str]:
    """The numbers that a log's name has, and that folders' names end with."""
    ends = (re.search(r"_(\d+)$", folder) for folder in folders)
    return {*re.findall(r"_(\d+)(?=[._])", log), *(end[1] for end in ends if end)}


def _is_of(one: Companion, log: str) -> bool:
    job = llmb.job_of_config(one.name)
    return job is not None and job == llmb.job_of_log(log)


def _folder(path: Path, place: Place) -> _Folder:
    try:
        files = sorted(path.iterdir())
    except OSError:  # a folder of which the log may be read, but not what else is in it
        return _Folder()
    found = (one for file in files for one in _read(file, place))
    by_format = grouped(found, lambda one: one.source.parser)
    of_jobs = {
        job: one
        for one in by_format.get(llmb.FORMAT.name, [])
        if (job := llmb.job_of_config(one.name))
    }
    alone = tuple(some[0] for some in by_format.values() if len(some) == 1)
    return _Folder(of_jobs, alone, frozenset(file.name for file in files))


def _read(path: Path, place: Place) -> Iterator[Companion]:
    if path.suffix.lower() not in SUFFIXES or not path.is_file():
        return
    try:
        content = path.read_bytes() if path.stat().st_size <= MOST_BYTES else b""
    except OSError:  # it is rejected where it is read itself
        return
    if member := formats.recognized(content[: 1 << 16], path.name):
        name = place.name(path)
        parsed = member.parse(name, [content])
        if len(parsed) == 1 and parsed[0].outcome is None:
            source = SourceFile(name, content, member.name, LOG_PARSER_VERSION)
            yield Companion(source, parsed[0])
