"""Puts sources into the store, each in its own transaction, and says what became of them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import URL, Connection, Engine
from sqlalchemy.exc import DataError, InternalError, OperationalError, ProgrammingError

from perfdb.audit import Finding
from perfdb.db import known, migrate, store
from perfdb.db.rows import Action, LogEntry, ResultRow, SourceFile
from perfdb.db.session import writer
from perfdb.errors import Problem, StoreError
from perfdb.ingest import audited
from perfdb.ingest.find import Source, find
from perfdb.ingest.logs import LogOptions, read_any, words
from perfdb.ingest.read import (
    STILL_RUNNING,
    PageRows,
    Read,
    Rejected,
    RunRead,
    Unattributed,
    notes_of,
    problems_of,
    results_of,
)
from perfdb.ingest.retry import retried
from perfdb.pages import PageContext


def _in_turn(sources: Sequence[Source]) -> Iterable[Source]:
    return sources


@dataclass(frozen=True)
class Options:
    """What pages and logs do not say of themselves, and who watches the sources go by."""

    context: PageContext = field(default_factory=PageContext)
    watched: Callable[[Sequence[Source]], Iterable[Source]] = _in_turn
    logs: LogOptions = field(default_factory=LogOptions)


@dataclass(frozen=True)
class Report:
    """What became of all that was read: how many results, and what was rejected.

    `withdrawn` counts results that an edited page no longer states; `unattributed` says where the
    results are whose release nobody stated, and the logs of which nobody said what they are of.
    `findings` are those of every release that anything was read of, by an audit of its results in
    force.
    """

    new: int = 0
    revised: int = 0
    unchanged: int = 0
    withdrawn: int = 0
    rejected: tuple[Problem, ...] = ()
    unattributed: tuple[str, ...] = ()
    notes: tuple[Problem, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether anything was rejected; a run that is still at work is not a failure."""
        return any(problem.message != STILL_RUNNING for problem in self.rejected)


@dataclass(frozen=True)
class Stored:
    """What became of one source."""

    read: Read
    actions: tuple[Action, ...] = ()
    withdrawn: int = 0
    problems: tuple[Problem, ...] = ()
    known: bool = False
    """The store has it already, with more words than were given now."""


def ingest(paths: Iterable[Path], url: URL, options: Options) -> Report:
    """Store every run, page and log at or below the paths; make or upgrade the store if need be.

    The releases that they are of are audited at the end, and what is found is kept.

    Raises InputError for a path that does not exist or an option that is wrong, and StoreError for
    a store that cannot be written or is of a newer version.
    """
    sources = find(paths)
    engine = writer(url)
    try:
        retried(lambda: migrate.upgrade(url))
        stored = [_stored(engine, read) for read in _reads(sources, options)]
        findings = audited.audited(engine, [one.read for one in stored])
        return replace(_report(stored), findings=findings)
    except (OperationalError, InternalError, ProgrammingError) as error:
        raise StoreError(f"{url.render_as_string()}: {error.orig}") from error
    finally:
        engine.dispose()


def preview(paths: Iterable[Path], options: Options) -> tuple[list[ResultRow], Report]:
    """The results that the paths hold, and what would be rejected; nothing is stored."""
    reads = list(_reads(find(paths), options))
    rows = [row for read in reads for row in results_of(read)]
    return rows, _report([Stored(read, problems=tuple(problems_of(read))) for read in reads])


def _reads(sources: Sequence[Source], options: Options) -> Iterator[Read]:
    given = words(options.context, options.logs)
    for source in options.watched(sources):
        yield from read_any(source, given)


def _stored(engine: Engine, read: Read) -> Stored:
    try:
        return retried(lambda: _in_one_transaction(engine, read))
    except (DataError, OverflowError) as error:
        # The source is well formed and yet says what no column can hold, such as 10²⁰ GPUs.
        cause = error.orig if isinstance(error, DataError) else error
        path = _path_of(read)
        rejected = Rejected(path, (Problem(path, f"cannot be stored: {cause}"),))
        return retried(lambda: _in_one_transaction(engine, rejected))


def _in_one_transaction(engine: Engine, read: Read) -> Stored:
    when = datetime.now(UTC)
    with engine.begin() as connection:
        stored = _put(connection, read, when)
        for entry in _log_entries(stored):
            store.log(connection, entry, when)
        return stored


def _put(connection: Connection, read: Read, when: datetime) -> Stored:
    match read:
        case RunRead() | Unattributed() if _is_known(connection, read):
            return Stored(read, (Action.UNCHANGED,), known=True)
        case RunRead():
            return Stored(read, (store.put_run(connection, read.run, read.files, when),))
        case Unattributed():
            store.keep(connection, read.source, when)
            return Stored(read)
        case PageRows():
            return _put_page(connection, read, when)
        case Rejected():
            return Stored(read, problems=read.problems)


def _put_page(connection: Connection, read: PageRows, when: datetime) -> Stored:
    rows = [row for row in read.rows if read.insisted or not _is_said(connection, read.source, row)]
    whole = read.whole and not read.problems and len(rows) == len(read.rows)
    page = store.put_page(connection, read.source, rows, when, whole=whole)
    as_before = [Action.UNCHANGED] * (len(read.rows) - len(rows))
    actions = (*page.actions, *as_before)
    return Stored(read, actions, page.withdrawn, read.problems, known=bool(as_before))


def _is_said(connection: Connection, source: SourceFile, row: ResultRow) -> bool:
    return known.holds_result(connection, source, None, row.source_line)


def _is_known(connection: Connection, read: RunRead | Unattributed) -> bool:
    """Whether the store holds a log that nothing is said of now, by what was said of it before."""
    if read.insisted:
        return False
    if isinstance(read, RunRead):
        return known.holds_run(connection, read.run.run.run_id, read.files)
    return known.holds_result(connection, read.source, read.run_id, read.problem.line)


def _log_entries(stored: Stored) -> Iterator[LogEntry]:
    path = _path_of(stored.read)
    counts = {action: stored.actions.count(action) for action in (Action.NEW, Action.REVISED)}
    said = [f"{count} {action}" for action, count in counts.items() if count]
    said += [f"{stored.withdrawn} withdrawn"] if stored.withdrawn else []
    if said:
        first = Action.REVISED if counts[Action.REVISED] or stored.withdrawn else Action.NEW
        yield LogEntry(path, first, reason=", ".join(said))
    if isinstance(stored.read, Unattributed) and not stored.known:
        problem = stored.read.problem
        yield LogEntry(path, Action.UNATTRIBUTED, problem.line, reason(problem))
    for problem in stored.problems:
        if problem.message != STILL_RUNNING:
            yield LogEntry(problem.where, Action.REJECTED, problem.line, reason(problem))


def reason(problem: Problem) -> str:
    """What is wrong and what to do, without the place."""
    name = f"{problem.field}: " if problem.field else ""
    remedy = f"; {problem.remedy}" if problem.remedy else ""
    return f"{name}{problem.message}{remedy}"


def _path_of(read: Read) -> str:
    return read.source.path if isinstance(read, PageRows) else read.path


def _report(stored: Sequence[Stored]) -> Report:
    actions = [action for one in stored for action in one.actions]
    return Report(
        new=actions.count(Action.NEW),
        revised=actions.count(Action.REVISED),
        unchanged=actions.count(Action.UNCHANGED),
        withdrawn=sum(one.withdrawn for one in stored),
        rejected=tuple(problem for one in stored for problem in one.problems),
        unattributed=tuple(place for one in stored for place in _unattributed(one)),
        notes=tuple(note for one in stored for note in notes_of(one.read)),
    )


def _unattributed(stored: Stored) -> Iterator[str]:
    read = stored.read
    if stored.known:
        return
    if isinstance(read, Unattributed):
        yield str(read.problem)
    for row in results_of(read):
        if row.release.version is None:
            line = f":{row.source_line}" if row.source_line else ""
            case = f"{row.case.model} on {row.case.system}"
            yield f"{_path_of(read)}{line}: {case} names no release; pass --release"
