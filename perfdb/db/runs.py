"""Stores runs, many in one transaction, with their files, their steps and their results."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, delete, func, select, update

from perfdb.db import bulk, keys, marks, revisions
from perfdb.db import files as sourced
from perfdb.db.actions import Action
from perfdb.db.revisions import Place
from perfdb.db.rows import MeasuredRun, RunFiles, RunRow, RunWritten, StepRow
from perfdb.db.session import take_turns
from perfdb.db.tables import results, run_files, runs, sources, steps
from perfdb.record import Outcome

_SAID = tuple(field.name for field in fields(RunRow))
_said_by = attrgetter(*_SAID)


@dataclass(frozen=True)
class Given:
    """A run to store, what it was read from, and the window that its figures were asked over."""

    run: MeasuredRun
    files: RunFiles
    window: str | None = None

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self.run.run.run_id


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

    def is_read(self, parser_version: int, window: str | None) -> bool:
        """Whether this version has read it, over the window that is asked for, if one is."""
        return self.parser_version == parser_version and window in (None, self.window)

    def says(self, content_hash: str, parser_version: int, window: str | None) -> bool:
        """Whether to read it again, over this window if one is asked for, would tell nothing."""
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
    )
    .join(sources, runs.c.source_id == sources.c.id)
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
    """Renew what the system says of the files of runs, by the runs' numbers."""
    renewed = update(runs).where(runs.c.id == bindparam("number")).values(stamp=bindparam("now"))
    given = [{"number": number, "now": now} for number, now in stamps.items()]
    connection.execute(renewed, given)


def put(connection: Connection, given: Sequence[Given], when: datetime) -> tuple[RunWritten, ...]:
    """Store runs of different ids; one that is read anew from other bytes replaces itself.

    So does one whose bytes another version has read; its result is a new revision only where it
    says something else. A run of another start than the one of its id, read from another directory,
    is not stored: it is another run. Nor is a copy that tells no more, or one that was withdrawn.
    One process at a time stores runs, so as to find what the last one stored.
    """
    take_turns(connection, "runs")
    there = known(connection, [one.run_id for one in given])
    read_anew = [one for one in given if not _is_as_before(one, there.get(one.run_id))]
    standing = _standing(connection, read_anew, there)
    written = {
        one.run_id: _written(connection, one, there.get(one.run_id), standing) for one in read_anew
    }
    stored = [one for one in read_anew if written[one.run_id].is_stored]
    if stored:
        _put(connection, stored, there, standing, when)
    return tuple(
        written.get(one.run_id) or RunWritten(Action.UNCHANGED, there[one.run_id].withdrawn)
        for one in given
    )


def _is_as_before(one: Given, there: Known | None) -> bool:
    content = one.run.run.content_hash
    return there is not None and there.says(content, one.files.parser_version, one.window)


def _standing(
    connection: Connection, given: Sequence[Given], there: Mapping[str, Known]
) -> Mapping[str, int]:
    """The results, by their runs, that stay though the same bytes are read anew.

    They say the same, or they were made over other steps than the run's files ask for.
    """
    same_bytes = {
        it.result_id: (one, it)
        for one in given
        if (it := there.get(one.run_id))
        and it.result_id is not None
        and it.content_hash == one.run.run.content_hash
    }
    alike = revisions.alike(
        connection, {id_: one.run.result for id_, (one, _) in same_bytes.items()}
    )
    return {
        one.run_id: id_
        for id_, (one, it) in same_bytes.items()
        if id_ in alike or (it.recomputed and one.window is None)
    }


def _written(
    connection: Connection, one: Given, there: Known | None, standing: Mapping[str, int]
) -> RunWritten:
    if there is None:
        return RunWritten(Action.NEW, is_stored=True)
    if one.run_id in standing:
        return RunWritten(Action.UNCHANGED, is_stored=True)
    is_same = there.started_at == one.run.run.started_at
    is_here = Path(there.path).resolve() == Path(one.files.record_file.path).resolve()
    was_log = there.started_at is None
    is_state_of_it = is_here or there.content_hash == one.run.run.content_hash
    if not (is_same or is_state_of_it or was_log):
        return RunWritten(Action.REJECTED, other=there.path)
    if there.withdrawn is not None:
        return RunWritten(Action.UNCHANGED, there.withdrawn)
    if is_state_of_it or was_log:
        return RunWritten(Action.REVISED, is_stored=True)
    return _of_a_copy(connection, one, there)


def _of_a_copy(connection: Connection, one: Given, there: Known) -> RunWritten:
    """What becomes of a run of which the store has another directory, with other bytes.

    It counts where it tells more. Two that have ended and differ are both whole: nobody can tell
    which of them is right.
    """
    num_steps = connection.scalar(select(func.count()).where(steps.c.run_id == there.id)) or 0
    its = _told(Outcome(there.outcome), num_steps)
    mine = _told(one.run.run.outcome, len(one.run.steps))
    if mine > its:
        return RunWritten(Action.REVISED, is_stored=True)
    result = {there.result_id: one.run.result} if there.result_id is not None else {}
    if mine < its or revisions.alike(connection, result):
        return RunWritten(Action.UNCHANGED, other=there.path)
    return RunWritten(Action.REJECTED, other=there.path)


def _told(outcome: Outcome, num_steps: int) -> tuple[bool, bool, int]:
    """How much is known of a run: first of all that it finished, then that it ended at all."""
    is_whole = outcome is Outcome.FINISHED
    return is_whole, outcome is not Outcome.INCOMPLETE, 0 if is_whole else num_steps


def _put(
    connection: Connection,
    given: Sequence[Given],
    there: Mapping[str, Known],
    standing: Mapping[str, int],
    when: datetime,
) -> None:
    source = sourced.ids(
        connection, [file for one in given for file in one.files.by_name.values()], when
    )
    _put_rows(connection, given, there, source)
    ids = keys.known(connection, runs, runs.c.run_id, [one.run_id for one in given])
    numbered = [(ids[one.run_id], one) for one in given]
    _clear(connection, [it.id for one in given if (it := there.get(one.run_id))])
    _put_parts(connection, numbered, source)
    revisions.move(
        connection,
        (
            (standing[one.run_id], source[sourced.natural(one.files.measured_file)], one.run.result)
            for one in given
            if one.run_id in standing
        ),
    )
    revised = [(number, one) for number, one in numbered if one.run_id not in standing]
    if revised:
        _put_results(connection, revised, source, when)


def _put_parts(
    connection: Connection,
    numbered: Sequence[tuple[int, Given]],
    source: Mapping[sourced.Natural, int],
) -> None:
    """The steps and the files of runs, each with the number of its run."""
    bulk.add(
        connection,
        steps,
        ("run_id", *StepRow._fields),
        ((number, *step) for number, one in numbered for step in one.run.steps),
    )
    bulk.add(
        connection,
        run_files,
        ("run_id", "name", "source_id"),
        (
            (number, name, source[sourced.natural(file)])
            for number, one in numbered
            for name, file in one.files.by_name.items()
        ),
    )


def _put_rows(
    connection: Connection,
    given: Sequence[Given],
    there: Mapping[str, Known],
    source: Mapping[sourced.Natural, int],
) -> None:
    release_ids = keys.release_ids(connection, [one.run.result.release for one in given])
    case_ids = keys.case_ids(connection, [one.run.result.case for one in given])
    columns = (*_SAID, "case_id", "release_id", "source_id", "stamp")
    added = []
    for one, *ids in zip(given, case_ids, release_ids, strict=True):
        record = source[sourced.natural(one.files.record_file)]
        row = (*_said_by(one.run.run), *ids, record, one.files.stamp)
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


def _put_results(
    connection: Connection,
    given: Sequence[tuple[int, Given]],
    source: Mapping[sourced.Natural, int],
    when: datetime,
) -> None:
    past = revisions.written(connection, [one.run.result.key for _, one in given])
    left = revisions.supersede_runs(connection, [number for number, _ in given], when)
    rows = [
        (one.run.result, Place(source[sourced.natural(one.files.measured_file)], number, when))
        for number, one in given
    ]
    marks.take_away(connection, left | revisions.append(connection, rows, past))
