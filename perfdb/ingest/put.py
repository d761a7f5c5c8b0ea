"""Puts what was read into the store: many runs in one transaction, any other source in its own.

A source is stored whole or not at all. Of runs that are stored together, one that no column can
hold is found by halving them, so that it is rejected and the others are stored.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DataError

from perfdb.db import ingest_log, pages, results, runs
from perfdb.db import sources as files
from perfdb.db.ingest_log import Action, LogEntry
from perfdb.db.rows import ResultRow, SourceFile
from perfdb.db.runs import RunWritten
from perfdb.db.session import retried
from perfdb.errors import Diagnostic
from perfdb.ingest import again, elsewhere, fallback, grown, left, of_directory, twice
from perfdb.ingest.read import (
    PageRows,
    PassedOver,
    Read,
    Rejected,
    RunFound,
    RunRead,
    StillRunning,
    Unattributed,
    Unchanged,
    problems_of,
)
from perfdb.ingest.twice import Twin


@dataclass(frozen=True)
class Stored:
    """What became of one source."""

    read: Read
    actions: tuple[Action, ...] = ()
    withdrawn: int = 0
    problems: tuple[Diagnostic, ...] = ()
    known: bool = False
    """The store has it already, read with options that are not given now."""
    notes: tuple[Diagnostic, ...] = ()
    fell_back: Mapping[str, int] = field(default_factory=dict)
    """How many of a page's results other pages state, by their paths."""
    dropped: int = 0
    """How many that other pages hold this one has stated until now."""
    twin: Twin | None = None
    """The log of a run in the store that it tells of, too: nothing of it is stored."""


def put(engine: Engine, batch: Sequence[Read | RunFound]) -> Iterator[Stored]:
    """Store a batch, in its order, and say what became of each source."""
    for group in _groups(again.parsed(engine, batch)):
        match group[0]:
            case Unchanged() as read:
                yield _as_stored(read, read.withdrawn)
            case PassedOver() | StillRunning() as read:
                yield Stored(read)
            case _:
                yield from _put_group(engine, group)


def _groups(reads: Iterable[Read]) -> Iterator[Sequence[Read]]:
    """Runs of different ids that follow one another, together; any other source by itself.

    Logs are apart from run directories, which may hold them.
    """
    group: dict[str, RunRead] = {}
    of_logs: bool | None = None
    for read in reads:
        run_id = read.run.run.run_id if isinstance(read, RunRead) else None
        is_log = isinstance(read, RunRead) and read.run.run.recipe is None
        if group and (run_id is None or run_id in group or is_log is not of_logs):
            yield list(group.values())
            group = {}
        of_logs = is_log
        if isinstance(read, RunRead):
            group[read.run.run.run_id] = read
        else:
            yield [read]
    if group:
        yield list(group.values())


def _put_group(engine: Engine, group: Sequence[Read]) -> Sequence[Stored]:
    """Store sources together; where one of them cannot be stored, each half by itself."""
    try:
        return retried(partial(_in_one_transaction, engine, group))
    except (DataError, OverflowError) as error:
        # A source is well formed and yet says what no column can hold, such as 10²⁰ GPUs.
        if len(group) == 1:
            cause = error.orig if isinstance(error, DataError) else error
            path = group[0].path
            rejected = Rejected(path, (Diagnostic(path, f"cannot be stored: {cause}"),))
            return _put_group(engine, [rejected])
    half = len(group) // 2
    return [*_put_group(engine, group[:half]), *_put_group(engine, group[half:])]


def _in_one_transaction(engine: Engine, group: Sequence[Read]) -> Sequence[Stored]:
    when = datetime.now(UTC)
    with engine.begin() as connection:
        given = [read for read in group if isinstance(read, RunRead)]
        stored = [one for some in twice.apart(given) for one in _put_runs(connection, some, when)]
        stored = stored or [_put(connection, group[0], when)]
        ingest_log.add(connection, [entry for one in stored for entry in _log_entries(one)], when)
        return stored


def _put_runs(connection: Connection, given: Sequence[RunRead], when: datetime) -> Sequence[Stored]:
    new = grown.rename(connection, given)
    of_runs = of_directory.told(connection, new)
    taken = of_directory.taken(connection, given)
    twins, waiting = twice.found(
        connection, [read for read in new if read.run.run.run_id not in of_runs]
    )
    twins = {**twins, **of_runs}
    later = [read for read in given if read.run.run.run_id in waiting]
    no_twins = [read for read in new if read.run.run.run_id not in {*twins, *waiting}]
    beside = grown.replaced(connection, no_twins)
    now = [read for read in given if read.run.run.run_id not in waiting]
    held = [elsewhere.held(connection, twice.noted(read, twins)) for read in now]
    told = [_told(connection, one, twins.get(one.read.run.run.run_id)) for one in held]
    given = [one.read for one in held]
    wanted = [
        runs.Given(read.run, read.files, read.window)
        for read, it in zip(given, told, strict=True)
        if it is None
    ]
    notes = [
        [
            elsewhere.reattributed(connection, read),
            beside.get(read.run.run.run_id),
            taken.get(read.run.run.run_id),
        ]
        for read in given
    ]
    written = iter(runs.put(connection, wanted, when))
    stored = [
        it or _of_run(read, next(written), tuple(filter(None, some)))
        for read, it, some in zip(given, told, notes, strict=True)
    ]
    return [*stored, *(_put_runs(connection, later, when) if later else ())]


def _told(connection: Connection, one: elsewhere.Held, twin: Twin | None) -> Stored | None:
    """What becomes of a log that was read with options before and is read without any now, or
    whose run another log tells of; None if it is to be stored.

    What another version has read as the same case and release is read again.
    """
    read = one.read
    if twin and not twin.grew:
        return Stored(read, twin=twin, known=True)
    if one.stays and not twin:
        return replace(_as_stored(read, one.withdrawn), known=True)
    held = None if read.insisted else runs.held(connection, read.run.run.run_id, read.files)
    if held is None:
        return None
    by_this = held.parser_version == read.files.parser_version
    if not by_this and held.subject == read.run.run.content_hash:
        return None
    return _as_before(read, by_this=by_this)


def _as_before(read: RunRead | Unattributed, *, by_this: bool) -> Stored:
    message = "stays as another version of perfdb has read it with options"
    remedy = "to have this version read it, give them again"
    note = Diagnostic(read.path, message, remedy=remedy)
    return Stored(read, (Action.UNCHANGED,), known=True, notes=() if by_this else (note,))


def _as_stored(read: RunRead | Unchanged, withdrawn: str | None) -> Stored:
    """A run that stays as it is; a note says so of one that was withdrawn."""
    if withdrawn is None:
        return Stored(read, (Action.UNCHANGED,))
    remedy = "`perfdb withdraw --undo` makes it count again"
    note = Diagnostic(read.path, f"stays withdrawn: {withdrawn}", remedy=remedy)
    return Stored(read, (Action.UNCHANGED,), notes=(note,))


def _of_run(read: RunRead, written: RunWritten, notes: tuple[Diagnostic, ...]) -> Stored:
    run_id, other = read.run.run.run_id, Path(written.other or "").parent
    if written.action is Action.UNCHANGED and written.other:
        message = f"tells no more than {other} of the run {run_id!r}, which stays as it is"
        return Stored(read, (written.action,), notes=(Diagnostic(read.path, message),))
    if written.action is Action.UNCHANGED:
        return _as_stored(read, written.withdrawn)
    if written.other is None:
        return Stored(read, (written.action,), notes=notes)
    message = f"the run {run_id!r} of {other} is in the store and says otherwise"
    remedy = "give one of two runs another run_id; of two copies keep the right one, at that path"
    return Stored(read, problems=(Diagnostic(read.path, message, remedy=remedy),))


def _put(connection: Connection, read: Read, when: datetime) -> Stored:
    match read:
        case PageRows():
            return _put_page(connection, read, when)
        case Unattributed():
            return _put_nameless(connection, read, when)
        case _:
            notes = left.of_path(connection, read.path) if problems_of(read) else ()
            return Stored(read, problems=tuple(problems_of(read)), notes=tuple(notes))


def _put_nameless(connection: Connection, read: Unattributed, when: datetime) -> Stored:
    line = read.problem.line
    held = None if read.insisted else results.held(connection, read.source, read.run_id, line)
    if held:
        return _as_before(read, by_this=held.parser_version == read.source.parser_version)
    files.id_of(connection, read.source, when)
    return Stored(read)


def _put_page(connection: Connection, read: PageRows, when: datetime) -> Stored:
    known_path = fallback.known_path(connection, read.source)
    path = known_path or read.source.path
    read = replace(read, source=replace(read.source, path=path))
    rows = [row for row in read.rows if read.insisted or not _is_said(connection, read.source, row)]
    whole = read.whole and not read.problems and len(rows) == len(read.rows)
    last_id = pages.last_id(connection, read.source)
    page = results.put_page(connection, read.source, rows, when, whole=whole)
    gone = page.withdrawn
    if read.emptied:
        gone = results.all_stated(connection, path)
        results.withdraw(connection, gone, when)
    elif whole and rows:
        gone = (*gone, *fallback.withdraw_unstated(connection, read, when))
    if read.rows or (read.emptied and known_path):
        pages.keep_state(connection, read.source, read.original, when)
    fell_back = fallback.fall_back(connection, read.source, gone, when)
    dropped = 0
    if read.emptied or (whole and rows):
        dropped = pages.drop(connection, path, read.rows, when)
    stays = list(left.notes(connection, path, read.rows) if read.problems else ())
    if {*page.actions} - {Action.UNCHANGED}:
        stays += left.of_state(connection, read, last_id, whole=whole)
    as_before = [Action.UNCHANGED] * (len(read.rows) - len(rows))
    return Stored(
        read,
        (*page.actions, *as_before),
        len(gone) - sum(fell_back.counts.values()),
        read.problems,
        known=bool(as_before),
        notes=(*fell_back.notes, *stays),
        fell_back=fell_back.counts,
        dropped=dropped,
    )


def _is_said(connection: Connection, source: SourceFile, row: ResultRow) -> bool:
    """Whether a line was read before, by this version or as a result that more was said of."""
    held = results.held(connection, source, None, row.source_line)
    return held is not None and (
        held.parser_version == source.parser_version or held.subject != results.subject(row)
    )


def _log_entries(stored: Stored) -> Iterator[LogEntry]:
    path = stored.read.path
    counts = {action: stored.actions.count(action) for action in (Action.NEW, Action.REVISED)}
    said = [f"{count} {action}" for action, count in counts.items() if count]
    said += [f"{stored.withdrawn} withdrawn"] if stored.withdrawn else []
    said += [f"{count} as {other} states" for other, count in stored.fell_back.items()]
    said += [f"{stored.dropped} that other pages hold no longer stated"] if stored.dropped else []
    if said:
        only_new = said == [f"{counts[Action.NEW]} {Action.NEW}"]
        first = Action.NEW if only_new else Action.REVISED
        why = stored.read.why if isinstance(stored.read, PageRows) else ""
        yield LogEntry(path, first, reason=": ".join(filter(None, (", ".join(said), why))))
    if isinstance(stored.read, Unattributed) and not stored.known:
        problem = stored.read.problem
        yield LogEntry(path, Action.UNATTRIBUTED, problem.line, problem.reason)
    for problem in stored.problems:
        yield LogEntry(problem.where, Action.REJECTED, problem.line, problem.reason)
