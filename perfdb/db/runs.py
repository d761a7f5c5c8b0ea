"""Stores runs, many in one transaction, with their files, their steps and their results."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path

from sqlalchemy import Connection, delete, select, update

from perfdb.db import bulk, keys, revisions, store
from perfdb.db import files as sourced
from perfdb.db.revisions import Place
from perfdb.db.rows import Action, MeasuredRun, RunFiles, RunRow, RunWritten, StepRow
from perfdb.db.tables import results, run_files, runs, sources, steps

Given = tuple[MeasuredRun, RunFiles]

_SAID = tuple(field.name for field in fields(RunRow))
_STEP = tuple(field.name for field in fields(StepRow))
_said_by, _step = attrgetter(*_SAID), attrgetter(*_STEP)


@dataclass(frozen=True)
class _Known:
    """A run that is in the store, and the path that its record was read from."""

    id: int
    run_id: str
    content_hash: str
    started_at: datetime | None
    path: str


def content_hashes(connection: Connection, run_ids: Iterable[str]) -> Mapping[str, str]:
    """What the runs of these ids were read from, by their id; those not there are left out."""
    found: dict[str, str] = {}
    for some in keys.chunks(run_ids):
        question = select(runs.c.run_id, runs.c.content_hash).where(runs.c.run_id.in_(some))
        found |= {row.run_id: row.content_hash for row in connection.execute(question)}
    return found


def put(connection: Connection, given: Sequence[Given], when: datetime) -> tuple[RunWritten, ...]:
    """Store runs of different ids; one that is read anew from other bytes replaces itself.

    A run of another start than the one of its id, read from another directory, is not stored: it
    is another run. One process at a time stores runs, so as to find what the last one stored.
    """
    store.take_turns(connection, "runs")
    known = _known(connection, [run.run.run_id for run, _ in given])
    written = tuple(_written(run, files, known.get(run.run.run_id)) for run, files in given)
    stored = (Action.NEW, Action.REVISED)
    changed = [one for one, it in zip(given, written, strict=True) if it.action in stored]
    if changed:
        _put(connection, changed, known, when)
    return written


def _known(connection: Connection, run_ids: Iterable[str]) -> dict[str, _Known]:
    columns = (runs.c.id, runs.c.run_id, runs.c.content_hash, runs.c.started_at, sources.c.path)
    question = select(*columns).join(sources, runs.c.source_id == sources.c.id)
    found: dict[str, _Known] = {}
    for some in keys.chunks(run_ids):
        rows = connection.execute(question.where(runs.c.run_id.in_(some)))
        found |= {row.run_id: _Known(*row) for row in rows}
    return found


def _written(run: MeasuredRun, files: RunFiles, known: _Known | None) -> RunWritten:
    if known is None:
        return RunWritten(Action.NEW)
    if known.content_hash == run.run.content_hash:
        return RunWritten(Action.UNCHANGED)
    path = files.by_name[files.record].path
    is_same = _utc(known.started_at) == _utc(run.run.started_at)
    if is_same or Path(known.path).absolute() == Path(path).absolute():
        return RunWritten(Action.REVISED)
    return RunWritten(Action.REJECTED, known.path)


def _utc(moment: datetime | None) -> datetime | None:
    """SQLite gives back no offset."""
    return moment.replace(tzinfo=UTC) if moment and moment.tzinfo is None else moment


def _put(
    connection: Connection, given: Sequence[Given], known: Mapping[str, _Known], when: datetime
) -> None:
    everything = [file for _, files in given for file in files.by_name.values()]
    source = sourced.ids(connection, everything, when)
    _put_rows(connection, given, known, source)
    ids = _ids(connection, [run.run.run_id for run, _ in given])
    numbered = [(ids[run.run.run_id], run, files) for run, files in given]
    _clear(connection, [known[run.run.run_id].id for run, _ in given if run.run.run_id in known])
    bulk.add(
        connection,
        steps,
        ("run_id", *_STEP),
        ((number, *_step(step)) for number, run, _ in numbered for step in run.steps),
    )
    bulk.add(
        connection,
        run_files,
        ("run_id", "name", "source_id"),
        (
            (number, name, source[sourced.natural(file)])
            for number, _, files in numbered
            for name, file in files.by_name.items()
        ),
    )
    _put_results(connection, numbered, source, when)


def _put_rows(
    connection: Connection,
    given: Sequence[Given],
    known: Mapping[str, _Known],
    source: Mapping[sourced.Natural, int],
) -> None:
    release = keys.release_ids(connection, [run.result.release for run, _ in given])
    case = keys.case_ids(connection, [run.result.case for run, _ in given])
    columns = (*_SAID, "case_id", "release_id", "source_id")
    added = []
    for run, files in given:
        ids = (
            case[run.result.case.key],
            release[run.result.release.key],
            source[sourced.natural(files.by_name[files.record])],
        )
        row = (*_said_by(run.run), *ids)
        if old := known.get(run.run.run_id):
            values = dict(zip(columns, row, strict=True))
            connection.execute(update(runs).where(runs.c.id == old.id).values(values))
        else:
            added.append(row)
    bulk.add(connection, runs, columns, added)


def _ids(connection: Connection, run_ids: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for some in keys.chunks(run_ids):
        rows = connection.execute(select(runs.c.run_id, runs.c.id).where(runs.c.run_id.in_(some)))
        found |= {row.run_id: row.id for row in rows}
    return found


def _clear(connection: Connection, ids: Sequence[int]) -> None:
    """Runs that are read anew lose the steps and files that they had."""
    if ids:
        for table in (steps, run_files):
            connection.execute(delete(table).where(table.c.run_id.in_(ids)))


def _put_results(
    connection: Connection,
    given: Sequence[tuple[int, MeasuredRun, RunFiles]],
    source: Mapping[sourced.Natural, int],
    when: datetime,
) -> None:
    past = revisions.written(connection, [run.result.key for _, run, _ in given])
    question = select(results.c.id).where(
        results.c.run_id.in_([number for number, _, _ in given]), ~results.c.superseded
    )
    revisions.supersede(connection, connection.scalars(question), when)
    rows = [
        (run.result, Place(source[sourced.natural(files.by_name[files.measured_in])], number, when))
        for number, run, files in given
    ]
    revisions.append(connection, rows, past)
