"""Finds the files that state what the logs next to them are of.

A file accompanies logs of certain formats only. NVIDIA's launcher writes llmb-config_JOB.yaml for
each job, into the folder of its logs or of the experiment that holds it: a log takes the file of
the job that its name, or that of a folder of it, has the number of. If they have none, the only
such file in a folder is of the only log there. Any other file counts if it is the only one of its
format in the folder.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Final

from perfdb import formats
from perfdb.db.rows import SourceFile
from perfdb.formats import ParsedLog, golden, llmb, megatron_bridge, megatron_lm, nemo
from perfdb.groups import grouped
from perfdb.ingest.find import Place, Source, plain_name, plain_suffix
from perfdb.ingest.reads import LOG_PARSER_VERSION

MOST_BYTES: Final = 1 << 20
"""A companion is a page of settings: a larger file is none."""

FOLDERS_ABOVE: Final = 2
"""How far above a log its job's file may be: experiment/experiment_TIME/experiment/log."""

_LOGS_OF: Final[Mapping[str, tuple[str, ...]]] = {
    llmb.FORMAT.name: (nemo.NEMO2.name, megatron_bridge.FORMAT.name, megatron_lm.FORMAT.name),
    golden.CONFIG.name: (golden.MEGATRON.name, megatron_lm.FORMAT.name),
}
"""The formats of the logs that a file of a format may be of."""


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
    """The companions of jobs in a folder, those that are alone of their format, and all names."""

    of_jobs: Mapping[str, Companion] = field(default_factory=dict)
    alone: Mapping[str, Companion] = field(default_factory=dict)
    names: tuple[str, ...] = ()


class Folders:
    """The companions of logs. The folders of the last log are kept, as the next is of them too."""

    def __init__(self) -> None:
        self._read: dict[tuple[Path, Place], _Folder] = {}

    def companions(self, source: Source, parser: str) -> tuple[Companion, ...]:
        """The files that may accompany a log of a format."""
        formats_of = [one for one, logs in _LOGS_OF.items() if parser in logs]
        if not formats_of:
            return ()
        near = [source.path.parent, *source.path.parents[1 : FOLDERS_ABOVE + 1]]
        wanted = [(folder, source.place) for folder in near]
        self._read = {key: self._read.get(key) or _folder(*key) for key in wanted}
        folders = list(self._read.values())
        job = _of_job(source.path, folders) if llmb.FORMAT.name in formats_of else None
        alone = folders[0].alone
        others = [alone[one] for one in formats_of if one in alone and one != llmb.FORMAT.name]
        return (job, *others) if job else tuple(others)


def _of_job(log: Path, folders: list[_Folder]) -> Companion | None:
    """The launcher's file of the job that a log is of; None if several may be."""
    own = _job_of_log(log.name)
    ends = (re.search(r"_(\d+)$", folder.name) for folder in log.parents[: FOLDERS_ABOVE + 1])
    named = {*re.findall(r"_(\d+)(?=[._])", log.name), *(end[1] for end in ends if end)}
    found = {
        job: next(folder.of_jobs[job] for folder in folders if job in folder.of_jobs)
        for job in ([own] if own else named)
        if any(job in folder.of_jobs for folder in folders)
    }
    if found or own:
        return next(iter(found.values())) if len(found) == 1 else None
    alone = folders[0].alone.get(llmb.FORMAT.name)
    suffixes, paths = (".log", ".out", plain_suffix(log)), map(PurePath, folders[0].names)
    logs = {plain_name(path) for path in paths if plain_suffix(path) in suffixes}
    job = _job_of_config(alone.name) if alone else None
    others = logs - {plain_name(log)}
    return alone if all(job and _job_of_log(other) == job for other in others) else None


def _job_of_config(name: str) -> str | None:
    """The job that a file of this name is of."""
    found = re.fullmatch(r"llmb-config_(.+)\.ya?ml", name)
    return found[1] if found else None


def _job_of_log(name: str) -> str | None:
    """The job of a log by its name: log-EXPERIMENT_JOB_RETRY.out, or sbatch_EXPERIMENT_JOB.out.

    None for a log of another name, be it compressed or not.
    """
    found = re.match(r"(?:log-.*_(\d+)_\d+|sbatch_.*_(\d+))\.out(?:\.|$)", name)
    return found[1] or found[2] if found else None


def _folder(path: Path, place: Place) -> _Folder:
    try:
        files = sorted(path.iterdir())
    except OSError:  # a folder of which the log may be read, but not what else is in it
        return _Folder()
    found = grouped((one for file in files for one in _read(file, place)), lambda it: it[0])
    of_jobs = {
        job: one for _, one in found.get(llmb.FORMAT.name, []) if (job := _job_of_config(one.name))
    }
    alone = {name: some[0][1] for name, some in found.items() if len(some) == 1}
    return _Folder(of_jobs, alone, tuple(file.name for file in files))


def _read(path: Path, place: Place) -> Iterator[tuple[str, Companion]]:
    """A file as a companion, with its format, if it is one."""
    if path.suffix.lower() not in (".yaml", ".yml") or not path.is_file():
        return
    try:
        content = path.read_bytes() if path.stat().st_size <= MOST_BYTES else b""
    except OSError:  # it is rejected when it is read itself
        return
    member = formats.recognized(content[: 1 << 16], path.name)
    if member and member.name in _LOGS_OF:
        name = place.name(path)
        parsed = member.parse(name, [content])
        if len(parsed) == 1 and parsed[0].outcome is None:
            source = SourceFile(name, content, member.name, LOG_PARSER_VERSION)
            yield member.name, Companion(source, parsed[0])
