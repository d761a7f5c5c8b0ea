"""The log of ingests: what became of each source that was read."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

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

_ONCE: Final = (Action.REJECTED, Action.UNATTRIBUTED)
"""What is not logged again for each ingest of the same file."""


@dataclass(frozen=True)
class LogEntry:
    """A row of `ingest_log`; `stated_reason` is why somebody withdrew it, if they did."""

    path: str
    action: Action
    line: int | None = None
    reason: str | None = None
    stated_reason: str | None = None


def add(connection: Connection, entries: Iterable[LogEntry], when: datetime) -> None:
    """Log what became of sources; the same rejection is logged once."""
    new = [entry for entry in dict.fromkeys(entries) if not _is_logged(connection, entry)]
    columns = ("path", "action", "line", "reason", "stated_reason", "at", "perfdb_version")
    rows = [(*vars(one).values(), when, __version__) for one in new]
    bulk.add(connection, ingest_log, columns, rows)


def _is_logged(connection: Connection, entry: LogEntry) -> bool:
    if entry.action not in _ONCE:
        return False
    same = [ingest_log.c[name].is_not_distinct_from(value) for name, value in vars(entry).items()]
    return connection.scalar(select(ingest_log.c.id).where(*same).limit(1)) is not None
