"""What an ingest has changed in a store: each result that it read or withdrew, and its status."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import Connection, Engine

from perfdb.db import keys
from perfdb.db.tables import results, runs
from perfdb.ingest import shown
from perfdb.ingest.shown import Shown
from perfdb.queries import results as questions


class Status(StrEnum):
    """What becomes of a result."""

    NEW = "new"
    REVISED = "revised"
    UNCHANGED = "unchanged"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True)
class Change:
    """A result as it is in force afterwards, or was before it was withdrawn.

    `before` is what was in force of a revised one; None: it had been withdrawn.
    """

    status: Status
    result: Shown
    before: Shown | None = None

    @property
    def is_written(self) -> bool:
        """Whether it is a revision that was not there before."""
        return self.status in (Status.NEW, Status.REVISED)

    @property
    def is_change(self) -> bool:
        """Whether something else is in force afterwards."""
        return self.status is not Status.UNCHANGED


def in_force(engine: Engine) -> frozenset[int]:
    """The numbers of all results in force."""
    with engine.connect() as connection:
        return frozenset(connection.scalars(questions.current_ids()))


def changes(engine: Engine, before: frozenset[int], read: Collection[str]) -> tuple[Change, ...]:
    """What has become of the results that were in force, and of those that were read.

    `read` holds the keys of results and the ids of runs.
    """
    after = in_force(engine)
    with engine.connect() as connection:
        gone = {one.identity: one for one in shown.of_ids(connection, before - after)}
        come = {one.identity: one for one in shown.of_ids(connection, after - before)}
        stay = [one for one in _read(connection, read) if one.result_id in before & after]
    found = [
        *(_come(one, gone.get(identity)) for identity, one in come.items()),
        *(Change(Status.UNCHANGED, one) for one in stay),
        *(Change(Status.WITHDRAWN, gone[identity]) for identity in gone.keys() - come.keys()),
    ]
    return tuple(sorted(found, key=_place))


def _come(one: Shown, before: Shown | None) -> Change:
    is_new = before is None and one.revision == 1
    return Change(Status.NEW if is_new else Status.REVISED, one, before)


def _place(change: Change) -> tuple[str, int, int]:
    one = change.result
    return one.source, one.source_line or 0, one.result_id


def _read(connection: Connection, read: Collection[str]) -> Iterator[Shown]:
    for some in keys.chunks(read):
        for column in (results.c.key, runs.c.run_id):
            yield from shown.of(connection, keys.among(connection, column, some))
