"""Reads a source whole: from the files of a run, or the text of a page, to rows of the store."""

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from perfdb import normalize, pages
from perfdb.db.rows import MeasuredRun, ResultRow, RunFiles, SourceFile
from perfdb.errors import Problem, RunDirError
from perfdb.ingest.find import Source
from perfdb.record import SCHEMA_VERSION, RunRecord, WorkerSummary
from perfdb.rundir import RunDir, parse_json, parse_steps

STILL_RUNNING = "still running"
"""The reason a run is left alone whose runner is at work."""

PAGE_PARSER_VERSION = 1
"""Kept with each page; raised when perfdb.pages reads something else out of the same text."""


@dataclass(frozen=True)
class RunRead:
    """A run, ready to be stored.

    `insisted` is false for a log of which the command line says nothing: what was said of the same
    bytes before then holds.
    """

    path: str
    run: MeasuredRun
    files: RunFiles
    notes: tuple[Problem, ...] = ()
    insisted: bool = True


@dataclass(frozen=True)
class PageRows:
    """A page's rows, ready to be stored, those that are not, and what was not understood.

    `whole` is false where more results are in the file than are known to be of a case; `insisted`
    as of a run.
    """

    source: SourceFile
    rows: tuple[ResultRow, ...]
    problems: tuple[Problem, ...]
    notes: tuple[Problem, ...]
    whole: bool = True
    insisted: bool = True


@dataclass(frozen=True)
class Rejected:
    """A source of which nothing is stored, and why."""

    path: str
    problems: tuple[Problem, ...]


@dataclass(frozen=True)
class Unattributed:
    """A result of a log of which nobody says what it is of; its bytes are kept until somebody does.

    `run_id` is that of its run; None: it is the line of a file that sums up.
    """

    source: SourceFile
    problem: Problem
    run_id: str | None
    insisted: bool

    @property
    def path(self) -> str:
        """Where the log is."""
        return self.source.path


Read = RunRead | PageRows | Unattributed | Rejected


def results_of(read: Read) -> Sequence[ResultRow]:
    """The results that a source gives."""
    match read:
        case RunRead():
            return (read.run.result,)
        case PageRows():
            return read.rows
        case Unattributed() | Rejected():
            return ()


def problems_of(read: Read) -> Sequence[Problem]:
    """What of a source is rejected."""
    return read.problems if isinstance(read, PageRows | Rejected) else ()


def notes_of(read: Read) -> Sequence[Problem]:
    """What of a source is kept but not understood."""
    return read.notes if isinstance(read, PageRows | RunRead) else ()


def read_source(source: Source, context: pages.PageContext) -> Read:
    """All that a source says. What is wrong with it is part of the answer, not an error."""
    if source.kind == "run":
        return read_run(RunDir(source.path))
    return read_page(source, context)


def read_run(run: RunDir) -> RunRead | Rejected:
    """A run directory; one that says of no end is read when its runner is gone, as it was left."""
    where = str(run.path)
    try:
        if is_running(run, run.read_record()):
            return Rejected(where, (Problem(where, STILL_RUNNING),))
        return _read_ended(run)
    except RunDirError as error:
        return Rejected(where, tuple(error.problems))
    except OSError as error:
        problem = Problem(str(error.filename or where), error.strerror or str(error))
        return Rejected(where, (problem,))


def is_running(run: RunDir, record: RunRecord) -> bool:
    """Whether a run has not ended and its runner is at work on it.

    A runner holds its run's lock; of one that has none, its process on this machine tells.
    """
    if record.outcome is not None:
        return False
    if run.lock.is_file():
        return run.in_progress()
    return record.environment.hostname == socket.gethostname() and _is_alive(record.runner_pid)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # another user's, but alive
        return True
    return True


def _read_ended(run: RunDir) -> RunRead | Rejected:
    """Every file is read once, and all is taken from the very bytes that are stored."""
    files = _files(run)
    record = parse_json(str(run.record), _content(files, run.record), RunRecord)
    lines = _content(files, run.steps).decode(errors="replace").splitlines()
    steps = parse_steps(str(run.steps), lines)
    problem = normalize.damage(str(run.steps), steps)
    if problem:
        return Rejected(str(run.path), (problem,))
    last_words = _content(files, run.summary)
    summary = parse_json(str(run.summary), last_words, WorkerSummary) if last_words else None
    measured = normalize.measured(record, steps, summary, files.content_hash)
    return RunRead(str(run.path), measured, files)


def _files(run: RunDir) -> RunFiles:
    paths = [run.record, run.recipe, run.worker_config, run.steps, run.summary, *run.logs()]
    there = [path for path in dict.fromkeys(paths) if path.is_file()]
    by_name = {
        str(path.relative_to(run.path)): SourceFile(
            str(path), path.read_bytes(), "run directory", SCHEMA_VERSION
        )
        for path in there
    }
    measured_in = run.steps if run.steps in there else run.record
    return RunFiles(by_name, run.record.name, measured_in.name)


def _content(files: RunFiles, path: Path) -> bytes:
    """The bytes of a file at the top of the run directory; none if it is not there."""
    file = files.by_name.get(path.name)
    return file.content if file else b""


def read_page(source: Source, context: pages.PageContext) -> PageRows | Rejected:
    """A page's rows. A file that is no page is passed over, unless the user named it."""
    where = str(source.path)
    try:
        content = source.path.read_bytes()
        text = content.decode()
    except OSError as error:
        return Rejected(where, (Problem(where, error.strerror or str(error)),))
    except UnicodeDecodeError:
        return _unknown(source)
    if not pages.looks_like_page(text):
        return _unknown(source)
    found = pages.read(where, text, context)
    rows, repeated = once_each(where, [normalize.published_row(row) for row in found.results])
    file = SourceFile(where, content, "page", PAGE_PARSER_VERSION)
    return PageRows(file, rows, (*found.problems, *repeated), found.notes)


def _unknown(source: Source) -> Rejected:
    where = str(source.path)
    message = "neither a run directory, a page with a table of results nor a log of a known format"
    return Rejected(where, (Problem(where, message),) if source.named else ())


def once_each(
    where: str, rows: Sequence[ResultRow]
) -> tuple[tuple[ResultRow, ...], tuple[Problem, ...]]:
    """Each result of a page once: of two rows for the same case neither is more right.

    The first is kept; another one is a problem if it says something else.
    """
    first: dict[str, ResultRow] = {}
    problems: list[Problem] = []
    for row in rows:
        kept = first.setdefault(row.key, row)
        if kept.content_hash != row.content_hash:
            message = f"the same case as line {kept.source_line}, with other figures"
            problems.append(Problem(where, message, line=row.source_line))
    return tuple(first.values()), tuple(problems)
