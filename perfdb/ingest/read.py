"""What is read of a source, and the reading of run directories: from their files to rows."""

import os
import re
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Literal

from perfdb import measure
from perfdb.aggregation import Window
from perfdb.attribute import Attributed
from perfdb.db.rows import MeasuredRun, ResultRow, RunFiles, SourceFile
from perfdb.errors import Diagnostic, RunDirError
from perfdb.ingest import opened
from perfdb.jsonfile import parse_json
from perfdb.messages import note_text
from perfdb.record import NoteCode, Original, Outcome, RunRecord
from perfdb.rundir import RECORD, STEPS, RunDir, parse_steps, parse_worker
from perfdb.validity import damage

_RUN_ID = re.compile(rb'"run_id"\s*:\s*"([^"\\\x00-\x1f]+)"')
"""Control characters, which no JSON string holds, PostgreSQL would not even look for."""

PAGE = "page"
"""The name of the parser of pages, whatever their markup."""


@dataclass(frozen=True)
class RunRead:
    """A run, ready to be stored.

    `insisted` is false for a log that no option says anything of: the options that were given for
    the same bytes before then hold. `anew` makes the run of a log, of what is said of it now and of
    the case and release that its bytes were stored for.
    """

    path: str
    run: MeasuredRun
    files: RunFiles
    notes: tuple[Diagnostic, ...] = ()
    insisted: bool = True
    window: str | None = None
    """The window that its figures were asked over, by its name."""
    anew: Callable[[Attributed, Attributed], MeasuredRun] | None = None
    beside: tuple[str, ...] = ()
    """The files beside a log that say what it is of."""


@dataclass(frozen=True)
class RunFound:
    """A run directory of which nothing but the record has been opened, and the window asked for.

    Its large logs are packed in the temporary folder.
    """

    run: RunDir
    seen: opened.Seen
    window: Window | None = None
    scratch: Path | None = None

    def claimed_id(self) -> str | None:
        """The run id that the record seems to state, by as little of it as tells."""
        found = _RUN_ID.search(self.seen.record)
        return found[1].decode(errors="replace") if found else None

    @cached_property
    def files(self) -> RunFiles:
        """Its files, each read once, when they are first asked for. Raises OSError."""
        return opened.files_of(self.run, self.scratch, self.seen.stamp)


@dataclass(frozen=True)
class Unchanged:
    """A run that is in the store already, read from these very bytes; why, if it was withdrawn."""

    path: str
    run_id: str
    withdrawn: str | None
    restamped: str | None = None
    """The stamp of its files, where it is another than the store has."""


@dataclass(frozen=True)
class PageRows:
    """A page's rows, ready to be stored, those that are not, and what was not understood.

    `whole` is false where more results are in the file than are known to be of a case; `insisted`
    as of a run; `emptied` is true of a page that the user named and that states no result, so that
    all it ever stated is withdrawn, and `why` the reason that was given.
    """

    source: SourceFile
    rows: tuple[ResultRow, ...]
    problems: tuple[Diagnostic, ...]
    notes: tuple[Diagnostic, ...]
    whole: bool = True
    insisted: bool = True
    emptied: bool = False
    why: str = ""
    original: Original = field(default_factory=Original)
    beside: tuple[str, ...] = ()
    """The files beside a file that sums up that say what it is of."""

    @property
    def path(self) -> str:
        """Where the page is."""
        return self.source.path


@dataclass(frozen=True)
class Rejected:
    """A source of which nothing is stored, and why.

    `notes`: why the tables of a file in a folder are not read, though they look like figures.
    """

    path: str
    problems: tuple[Diagnostic, ...]
    notes: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True)
class StillRunning:
    """A run directory that is left alone, because its runner is at work."""

    path: str


@dataclass(frozen=True)
class PassedOver:
    """What is not read, and why.

    A page that perfdb has made itself, a log by its name that no format knows (`unknown`), or a
    link to a folder that is searched nowhere (`linked`).
    """

    path: str
    why: Literal["made", "unknown", "linked"] = "made"


@dataclass(frozen=True)
class Unattributed:
    """A result of a log of which nobody says what it is of; its bytes are kept until somebody does.

    `run_id` is that of its run; None: it is the line of a file that sums up. `missing` names the
    fields that somebody has to say.
    """

    source: SourceFile
    problem: Diagnostic
    run_id: str | None
    insisted: bool
    missing: tuple[str, ...] = ()
    notes: tuple[Diagnostic, ...] = ()

    @property
    def path(self) -> str:
        """Where the log is."""
        return self.source.path


Read = RunRead | Unchanged | StillRunning | PageRows | PassedOver | Unattributed | Rejected


def results_of(read: Read) -> Sequence[ResultRow]:
    """The results that a source gives."""
    match read:
        case RunRead():
            return (read.run.result,)
        case PageRows():
            return read.rows
        case Unchanged() | StillRunning() | PassedOver() | Unattributed() | Rejected():
            return ()


def size_bytes(read: Read | RunFound) -> int:
    """How many bytes of its files a source holds."""
    match read:
        case RunFound():
            return read.seen.size_bytes
        case RunRead():
            return sum(file.size_bytes for file in read.files.by_name.values())
        case PageRows() | Unattributed():
            return read.source.size_bytes
        case Unchanged() | StillRunning() | PassedOver() | Rejected():
            return 0


def problems_of(read: Read) -> Sequence[Diagnostic]:
    """What of a source is rejected."""
    return read.problems if isinstance(read, PageRows | Rejected) else ()


def notes_of(read: Read) -> Sequence[Diagnostic]:
    """What of a source is kept but not understood."""
    noted = PageRows | RunRead | Unattributed | Rejected
    return read.notes if isinstance(read, noted) else ()


def read_run(
    run: RunDir, window: Window | None = None, scratch: Path | None = None
) -> RunRead | StillRunning | Rejected:
    """A run directory; one that says of no end is read when its runner is gone, as it was left.

    Without a window its figures are over all steps but the warm-up ones.
    """
    found = find_files(run, window, scratch)
    return parse_run(found) if isinstance(found, RunFound) else found


def find_files(
    run: RunDir, window: Window | None = None, scratch: Path | None = None
) -> RunFound | Rejected:
    """What the system says of the files of a run directory, and its record."""
    try:
        return RunFound(run, opened.seen(run), window, scratch)
    except OSError as error:
        return _unreadable(str(run.path), error)


def parse_run(found: RunFound) -> RunRead | StillRunning | Rejected:
    """What the files of a run say; all is taken from the very bytes that are stored."""
    run, where = found.run, str(found.run.path)
    try:
        record = _record(found)
        if _is_running(run, record):
            return StillRunning(where)
        if record.outcome is None:
            # Its runner may have ended it since its files were read; nobody writes to them now.
            found = replace(found)
            record = _record(found)
        return _parse_ended(found, record)
    except RunDirError as error:
        return Rejected(where, tuple(error.problems))
    except OSError as error:
        return _unreadable(where, error)


def _unreadable(where: str, error: OSError) -> Rejected:
    problem = Diagnostic(str(error.filename or where), error.strerror or str(error))
    return Rejected(where, (problem,))


def _is_running(run: RunDir, record: RunRecord) -> bool:
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


def _record(found: RunFound) -> RunRecord:
    return parse_json(str(found.run.record), _content(found.files, RECORD), RunRecord)


def _parse_ended(found: RunFound, record: RunRecord) -> RunRead | Rejected:
    run, files = found.run, found.files
    lines = _content(files, STEPS).decode(errors="replace").splitlines()
    steps = parse_steps(str(run.steps), lines)
    problem = damage(str(run.steps), steps)
    if problem:
        return Rejected(str(run.path), (problem,))
    worker = parse_worker(run, partial(_content, files))
    measured = measure.of_run(record, steps, worker, files.content_hash, found.window)
    asked = found.window.name if found.window else None
    notes = tuple(_less_than_said(run, record, measured.result))
    return RunRead(str(run.path), measured, files, notes, window=asked)


def _less_than_said(run: RunDir, record: RunRecord, result: ResultRow) -> Iterator[Diagnostic]:
    """What keeps a run from being finished that says it is, and which of its steps do not count."""
    if record.outcome is Outcome.FINISHED and result.outcome is not Outcome.FINISHED:
        ended = result.outcome.replace("_", " ")
        why = note_text(result.withheld) if result.withheld else ""
        yield Diagnostic(str(run.path), f"says that it finished, and is {ended}: {why}")
        return
    for note in (*filter(None, [result.withheld]), *result.notes):
        if note.code in (NoteCode.SKIPPED_STEPS, NoteCode.MODEL_SHAPE):
            yield Diagnostic(str(run.path), note_text(note))


def _content(files: RunFiles, name: str) -> bytes:
    """The bytes of a file at the top of the run directory; none if it is not there."""
    file = files.by_name.get(name)
    return file.content if file and isinstance(file.content, bytes) else b""
