"""Stores runs, many in one transaction, with their files, their steps and their results."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from itertools import chain, repeat
from operator import add, attrgetter
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, delete, func, select, update

from perfdb.db import bulk, findings, keys
from perfdb.db import results as stored
from perfdb.db import sources as files
from perfdb.db.results import Held, ResultPlace, Revision
from perfdb.db.rows import MeasuredRun, Natural, RunFiles, RunRow
from perfdb.db.session import take_turns
from perfdb.db.sources import Action
from perfdb.db.tables import STEP_COLUMNS, releases, results, run_files, runs, sources, steps
from perfdb.record import Outcome

_COLUMNS = tuple(field.name for field in fields(RunRow))
_cells = attrgetter(*_COLUMNS)


@dataclass(frozen=True)
class RunInput:
    """A run to store, what it was read from, and the window that its figures were asked over."""

    run: MeasuredRun
    files: RunFiles
    window: str | None = None

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self.run.run.run_id


@dataclass(frozen=True)
class RunWritten:
    """What became of a run.

    `withdrawn` is why the run of its id does not count, `other` where the record is that the store
    has of its id: of another run, or of this one, with as much or more in it.
    """

    action: Action
    withdrawn: str | None = None
    other: str | None = None
    is_stored: bool = False
    """Whether its rows are written, though its result may stay as it is."""


class Known(NamedTuple):
    """A run that is in the store: what it was read from, where its record was, and its result."""

    id: int
    run_id: str
    content_hash: str
    started_at: datetime | None
    outcome: str
    path: str
    parser_version: int
    result_id: int | None
    result_hash: str | None
    window: str | None
    withdrawn: str | None
    stamp: str | None
    version: str | None
    """That of its release."""

    def is_read(self, parser_version: int, window: str | None) -> bool:
        """Whether this version has read it, over the window that is asked for, if one is."""
        return self.parser_version == parser_version and window in (None, self.window)

    def is_same(self, content_hash: str, parser_version: int, window: str | None) -> bool:
        """Whether to read it again, over this window if one is asked for, would change nothing."""
        return self.content_hash == content_hash and self.is_read(parser_version, window)

    @property
    def recomputed(self) -> bool:
        """Whether its figures are others than its files give without being asked."""
        return self.result_hash != self.content_hash


_KNOWN = (
    select(
        runs.c.id,
        runs.c.run_id,
        runs.c.content_hash,
        runs.c.started_at,
        runs.c.outcome,
        sources.c.path,
        sources.c.parser_version,
        results.c.id.label("result_id"),
        results.c.content_hash.label("result_hash"),
        results.c.window,
        runs.c.withdrawn,
        runs.c.stamp,
        releases.c.version,
    )
    .join(sources, runs.c.source_id == sources.c.id)
    .join(releases, runs.c.release_id == releases.c.id)
    .outerjoin(results, (results.c.run_id == runs.c.id) & ~results.c.superseded)
)


def known(connection: Connection, run_ids: Iterable[str]) -> Mapping[str, Known]:
    """The runs of these ids, by their id; those not there are left out."""
    found: dict[str, Known] = {}
    for some in keys.chunks(run_ids):
        rows = connection.execute(_KNOWN.where(keys.among(connection, runs.c.run_id, some)))
        found |= {row.run_id: Known._make(row) for row in rows}
    return found


def rename(connection: Connection, number: int, run_id: str) -> None:
    """Give a run, by its number, another id."""
    connection.execute(update(runs).where(runs.c.id == number).values(run_id=run_id))


def stamp(connection: Connection, stamps: Mapping[int, str]) -> None:
    """Renew the stamps of the files of runs, by the ids of their rows."""
    renewed = update(runs).where(runs.c.id == bindparam("number")).values(stamp=bindparam("now"))
    connection.execute(renewed, [{"number": number, "now": now} for number, now in stamps.items()])


def put(connection: Connection, read: Sequence[RunInput], when: datetime) -> tuple[RunWritten, ...]:
    """Store runs of different ids; one that is read anew from other bytes replaces itself.

    So does one whose bytes another version has read; its result is a new revision only where it
    differs. A run of another start than the one of its id, read from another directory, is not
    stored: it is another run. Nor is a copy without anything new, or one that was withdrawn. One
    process at a time stores runs, so as to find what the last one stored.
    """
    take_turns(connection, "runs")
    there = known(connection, [one.run_id for one in read])
    anew = [one for one in read if not _is_as_before(one, there.get(one.run_id))]
    kept = _kept(connection, anew, there)
    written = {one.run_id: _written(connection, one, there.get(one.run_id), kept) for one in anew}
    if changed := [one for one in anew if written[one.run_id].is_stored]:
        _put(connection, changed, there, kept, when)
    return tuple(
        written.get(one.run_id) or RunWritten(Action.UNCHANGED, there[one.run_id].withdrawn)
        for one in read
    )


def _is_as_before(one: RunInput, old: Known | None) -> bool:
    content = one.run.run.content_hash
    return old is not None and old.is_same(content, one.files.parser_version, one.window)


def _kept(
    connection: Connection, anew: Sequence[RunInput], there: Mapping[str, Known]
) -> Mapping[str, int]:
    """The results, by their runs, that stay though the same bytes are read anew.

    They are the same, or they were made over other steps than the run's files ask for.
    """
    same_bytes = {
        old.result_id: (one, old)
        for one in anew
        if (old := there.get(one.run_id))
        and old.result_id is not None
        and old.content_hash == one.run.run.content_hash
    }
    same = stored.same(connection, {id_: one.run.result for id_, (one, _) in same_bytes.items()})
    return {
        one.run_id: id_
        for id_, (one, old) in same_bytes.items()
        if id_ in same or (old.recomputed and one.window is None)
    }


def _written(
    connection: Connection, one: RunInput, old: Known | None, kept: Mapping[str, int]
) -> RunWritten:
    if old is None:
        return RunWritten(Action.NEW, is_stored=True)
    if one.run_id in kept:
        return RunWritten(Action.UNCHANGED, is_stored=True)
    is_same = old.started_at == one.run.run.started_at
    is_here = Path(old.path).resolve() == Path(one.files.record_file.path).resolve()
    was_log = old.started_at is None
    is_state_of_it = is_here or old.content_hash == one.run.run.content_hash
    if not (is_same or is_state_of_it or was_log):
        return RunWritten(Action.REJECTED, other=old.path)
    if old.withdrawn is not None:
        return RunWritten(Action.UNCHANGED, old.withdrawn)
    if is_state_of_it or was_log:
        return RunWritten(Action.REVISED, is_stored=True)
    return _of_a_copy(connection, one, old)


def _of_a_copy(connection: Connection, one: RunInput, old: Known) -> RunWritten:
    """What becomes of a run of which the store has another directory, with other bytes.

    It counts where more is known of it. Two that have ended and differ are both whole: nobody can
    tell which of them is right.
    """
    num_steps = connection.scalar(select(func.count()).where(steps.c.run_id == old.id)) or 0
    its = _completeness(Outcome(old.outcome), num_steps)
    mine = _completeness(one.run.run.outcome, len(one.run.steps))
    if mine > its:
        return RunWritten(Action.REVISED, is_stored=True)
    result = {old.result_id: one.run.result} if old.result_id is not None else {}
    if mine < its or stored.same(connection, result):
        return RunWritten(Action.UNCHANGED, other=old.path)
    return RunWritten(Action.REJECTED, other=old.path)


def _completeness(outcome: Outcome, num_steps: int) -> tuple[bool, bool, int]:
    """How much is known of a run: first of all that it finished, then that it ended at all."""
    is_whole = outcome is Outcome.FINISHED
    return is_whole, outcome is not Outcome.INCOMPLETE, 0 if is_whole else num_steps


def _put(
    connection: Connection,
    read: Sequence[RunInput],
    there: Mapping[str, Known],
    kept: Mapping[str, int],
    when: datetime,
) -> None:
    source_ids = files.ids(
        connection, [file for one in read for file in one.files.by_name.values()], when
    )
    of_ids = stored.of_ids(connection, [one.run.result for one in read])
    _put_rows(connection, zip(read, of_ids, strict=True), there, source_ids)
    ids = keys.known(connection, runs, runs.c.run_id, [one.run_id for one in read])
    _clear(connection, [there[one.run_id].id for one in read if one.run_id in there])
    _put_steps(connection, [(ids[one.run_id], one) for one in read])
    _put_files(connection, [(ids[one.run_id], one) for one in read], source_ids)
    moved, added = [], []
    for one, (case_id, release_id) in zip(read, of_ids, strict=True):
        measured = source_ids[one.files.measured_file.natural]
        if one.run_id in kept:
            moved.append((kept[one.run_id], measured, one.run.result))
        else:
            added.append((one, ResultPlace(measured, ids[one.run_id], when), (case_id, release_id)))
    stored.move(connection, moved)
    if added:
        _put_results(connection, added, [it.id for it in there.values()], when)


def _put_rows(
    connection: Connection,
    read: Iterable[tuple[RunInput, tuple[int, int]]],
    there: Mapping[str, Known],
    source_ids: Mapping[Natural, int],
) -> None:
    columns = (*_COLUMNS, "case_id", "release_id", "source_id", "stamp")
    added = []
    for one, of_ids in read:
        record = source_ids[one.files.record_file.natural]
        row = (*_cells(one.run.run), *of_ids, record, one.files.stamp)
        if old := there.get(one.run_id):
            values = dict(zip(columns, row, strict=True))
            connection.execute(update(runs).where(runs.c.id == old.id).values(values))
        else:
            added.append(row)
    bulk.add(connection, runs, columns, added)


def _clear(connection: Connection, ids: Sequence[int]) -> None:
    """Runs that are read anew lose the steps and files that they had."""
    if ids:
        for table in (steps, run_files):
            connection.execute(delete(table).where(table.c.run_id.in_(ids)))


def _put_steps(connection: Connection, read: Iterable[tuple[int, RunInput]]) -> None:
    names = (*STEP_COLUMNS, "line")
    rows = (map(add, repeat((number,)), one.run.steps.rows(*names)) for number, one in read)
    columns = ("run_id", *STEP_COLUMNS, "source_line")
    bulk.add(connection, steps, columns, chain.from_iterable(rows))


def _put_files(
    connection: Connection,
    read: Iterable[tuple[int, RunInput]],
    source_ids: Mapping[Natural, int],
) -> None:
    rows = (
        (number, name, source_ids[file.natural])
        for number, one in read
        for name, file in one.files.by_name.items()
    )
    bulk.add(connection, run_files, ("run_id", "name", "source_id"), rows)


def _put_results(
    connection: Connection,
    added: Sequence[tuple[RunInput, ResultPlace, tuple[int, int]]],
    there: Collection[int],
    when: datetime,
) -> None:
    """Add the results of runs, of which some are `there` already, by the ids of their rows."""
    past = stored.written(connection, [one.run.result.key for one, _, _ in added])
    revised = [place.run_id for _, place, _ in added if place.run_id in there]
    changed = stored.supersede_runs(connection, [number for number in revised if number], when)
    rows = [(one.run.result, place) for one, place, _ in added]
    changed |= stored.append(connection, rows, past, [of_ids for _, _, of_ids in added])
    findings.unmark(connection, changed)


def held(connection: Connection, run_id: str, its_files: RunFiles) -> Held | None:
    """The run of an id, if it was read from these very bytes; with its content hash."""
    found = connection.execute(
        select(sources.c.sha256, sources.c.parser_version, runs.c.content_hash)
        .join(run_files, run_files.c.source_id == sources.c.id)
        .join(runs, run_files.c.run_id == runs.c.id)
        .where(runs.c.run_id == run_id)
    ).all()
    hashes = [file.sha256 for file in its_files.by_name.values()]
    if not found or sorted(hashes) != sorted(row.sha256 for row in found):
        return None
    return Held(min(row.parser_version for row in found), found[0].content_hash)


def withdraw(
    connection: Connection, run_ids: Collection[str], reason: str, when: datetime
) -> set[str]:
    """Make runs count no more, and note why; the ids of those that counted until now."""
    take_turns(connection, "runs")
    which = runs.c.run_id.in_(run_ids) & runs.c.withdrawn.is_(None)
    gone = dict(connection.execute(select(runs.c.run_id, runs.c.id).where(which)).all())
    connection.execute(update(runs).where(which).values(withdrawn=reason))
    findings.unmark(connection, stored.supersede_runs(connection, gone.values(), when))
    return set(gone)


def restore(connection: Connection, run_ids: Collection[str], when: datetime) -> set[str]:
    """Make runs count again, with their last figures; the ids of those that did not."""
    take_turns(connection, "runs")
    which = runs.c.run_id.in_(run_ids) & runs.c.withdrawn.is_not(None)
    back = dict(connection.execute(select(runs.c.run_id, runs.c.id).where(which)).all())
    connection.execute(update(runs).where(which).values(withdrawn=None))
    last = (
        select(func.max(results.c.id))
        .where(results.c.run_id.in_(back.values()))
        .group_by(results.c.run_id)
    )
    question = select(results.c.id, results.c.content_hash).where(results.c.id.in_(last))
    again = [Revision(id_, content, {}) for id_, content in connection.execute(question)]
    stored.revise(connection, again, when)
    return set(back)
