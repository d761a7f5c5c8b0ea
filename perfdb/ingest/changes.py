"""What an ingest has changed in a store: each result that it read or withdrew, and its status."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sqlalchemy import ColumnElement, Connection, Engine

from perfdb.db import keys
from perfdb.db.tables import results, runs
from perfdb.queries import results as questions
from perfdb.record import Result
from perfdb.units import number, percent, significant

FIGURES: Final[Mapping[str, Callable[[float | None], str]]] = {
    "step_time_s": significant,
    "tokens_per_sec_per_gpu": number,
    "model_tflops_per_sec_per_gpu": significant,
    "mfu": percent,
}
"""The figures of a result, and how each is printed."""


class Status(StrEnum):
    """What becomes of a result."""

    NEW = "new"
    REVISED = "revised"
    UNCHANGED = "unchanged"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True)
class Change:
    """A result as it is afterwards, or was before it was withdrawn.

    `before` is what a revised one was; None: it had been withdrawn.
    """

    status: Status
    result: Result
    before: Result | None = None

    @property
    def is_written(self) -> bool:
        """Whether it is a revision that was not there before."""
        return self.status in (Status.NEW, Status.REVISED)

    @property
    def is_change(self) -> bool:
        """Whether something else is current afterwards."""
        return self.status is not Status.UNCHANGED


def exactly(field: str, value: float) -> str:
    """A figure with every digit that it was read with."""
    return f"{value * 100:.10g}%" if field == "mfu" else f"{value:,.10g}"


def figure_text(result: Result, field: str) -> str:
    """A figure by its field: with all digits of a page, and with those that a run's means."""
    value = result.figure(field)
    if value is None or result.run_id is not None:
        return FIGURES[field](value)
    return exactly(field, value)


def current(engine: Engine) -> frozenset[int]:
    """The ids of all current results."""
    with engine.connect() as connection:
        return frozenset(connection.scalars(questions.current_keys()))


def changes(engine: Engine, before: frozenset[int], read: Collection[str]) -> tuple[Change, ...]:
    """What has become of the results that were current, and of those that were read.

    `read` holds the keys of results and the ids of runs.
    """
    after = current(engine)
    with engine.connect() as connection:
        gone = {_identity(one): one for one in _of_ids(connection, before - after)}
        added = {_identity(one): one for one in _of_ids(connection, after - before)}
        kept = [one for one in _read(connection, read) if one.result.result_id in before & after]
    found = [
        *(_added(one, gone.get(identity)) for identity, one in added.items()),
        *(Change(Status.UNCHANGED, one.result) for one in kept),
        *(Change(Status.WITHDRAWN, gone[it].result) for it in gone.keys() - added.keys()),
    ]
    return tuple(sorted(found, key=_place))


@dataclass(frozen=True)
class _Row:
    """A result with its key and the number of its revision."""

    result: Result
    key: str
    revision: int


def _identity(row: _Row) -> str:
    """What a revision of it has too: the run, which may turn out to be of another case."""
    return row.result.run_id or row.key


def _added(row: _Row, before: _Row | None) -> Change:
    is_new = before is None and row.revision == 1
    status = Status.NEW if is_new else Status.REVISED
    return Change(status, row.result, before.result if before else None)


def _place(change: Change) -> tuple[str, int, int]:
    one = change.result
    return one.source, one.source_line or 0, one.result_id


def _read(connection: Connection, read: Collection[str]) -> Iterator[_Row]:
    for some in keys.chunks(read):
        for column in (results.c.key, runs.c.run_id):
            yield from _rows(connection, keys.among(connection, column, some))


def _of_ids(connection: Connection, ids: Iterable[int]) -> Iterator[_Row]:
    for some in keys.chunks(ids):
        yield from _rows(connection, results.c.id.in_(some))


def _rows(connection: Connection, which: ColumnElement[bool]) -> Iterator[_Row]:
    statement = questions.listed(which)
    numbers = {row.result_id: (row.key, row.revision) for row in connection.execute(statement)}
    for result in questions.read(connection, statement):
        yield _Row(result, *numbers[result.result_id])
