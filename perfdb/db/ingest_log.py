"""The log of ingests: what became of each source that was read."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import Connection, select

from perfdb import __version__
from perfdb.db import bulk
from perfdb.db.tables import ingest_log


class Action(StrEnum):
    """What became of a source or a result that was read."""

    NEW = "new"
    REVISED = "revised"
    UNCHANGED = "unchanged"
    REJECTED = "rejected"
    UNATTRIBUTED = "unattributed"


RUN_LOGGED_AS = "run "
"""What precedes the id of a run in the log, in place of a path."""


@dataclass(frozen=True)
class LogEntry:
    """A row of `ingest_log`; `stated_reason` is why a person withdrew it."""

    path: str
    action: Action
    line: int | None = None
    reason: str | None = None
    stated_reason: str | None = None


def add(connection: Connection, entries: Iterable[LogEntry], when: datetime) -> None:
    """Log what became of sources; a file that stays rejected or unattributed is logged once."""
    rows: list[bulk.Cells] = []
    for entry in dict.fromkeys(entries):
        cells = vars(entry)
        same = [ingest_log.c[name].is_not_distinct_from(value) for name, value in cells.items()]
        is_once = entry.action in (Action.REJECTED, Action.UNATTRIBUTED)
        if not is_once or not connection.scalar(select(ingest_log.c.id).where(*same).limit(1)):
            rows.append((*cells.values(), when, __version__))
    bulk.add(connection, ingest_log, (*LogEntry.__annotations__, "at", "perfdb_version"), rows)
