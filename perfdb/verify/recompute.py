"""Recomputes measured results in the store; each that changes becomes a new revision."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import URL, Connection, Engine

from perfdb.db import results as stored_results
from perfdb.db.results import Revision
from perfdb.db.rows import ResultRow
from perfdb.db.session import reading_current, retried, storing
from perfdb.db.sources import Action, LogEntry, log
from perfdb.db.tables import results
from perfdb.ingest.pipeline import audit_release
from perfdb.messages import note_text
from perfdb.queries import Rows
from perfdb.queries import results as result_queries
from perfdb.queries.scope import Scope, within
from perfdb.verify import figures
from perfdb.verify.figures import Asked, StoredRun

LOGGED_AS = "perfdb recompute"
"""What the ingest log has in place of a path."""


@dataclass(frozen=True)
class Recomputed:
    """A stored result and its figures made anew, if they differ, by column before and after.

    `reason`: why the window that was asked for gives no figures, or why none can be computed, so
    that the result stays.
    """

    stored: StoredRun
    after: ResultRow
    changes: Mapping[str, tuple[object, object]]
    reason: str | None = None
    remedy: str = "name another window"


@dataclass(frozen=True)
class RecomputeReport:
    """How many measured results were looked at, which changed, and which had to be left."""

    examined: int
    changed: tuple[Recomputed, ...]
    left: tuple[Recomputed, ...]

    @property
    def unchanged(self) -> int:
        """How many have the same figures as before."""
        return self.examined - len(self.changed) - len(self.left)


def preview(url: URL, scope: Scope, asked: Asked) -> RecomputeReport:
    """What recomputing would change; nothing is stored. Raises StoreError and InputError."""
    with reading_current(url) as connection:
        return _report(connection, within(connection, result_queries.with_runs(), scope), asked)


def recompute(url: URL, scope: Scope, asked: Asked) -> RecomputeReport:
    """Recompute the figures of measured results, all in one transaction.

    What changes becomes a new revision, is noted in the ingest log, and its release is audited
    again. A result for which the window gives no figures stays as it is. Raises StoreError if the
    store cannot be written, and InputError for a name that is not in it.
    """
    with reading_current(url):
        pass  # refused before anything is opened to write
    with storing(url) as engine:
        return retried(lambda: _in_one_transaction(engine, scope, asked))


def _in_one_transaction(engine: Engine, scope: Scope, asked: Asked) -> RecomputeReport:
    when = datetime.now(UTC)
    with engine.begin() as connection:
        # On PostgreSQL an ingest of the same run waits for this one, or this one for it.
        question = within(connection, result_queries.with_runs(), scope)
        report = _report(connection, question.with_for_update(of=results, key_share=True), asked)
        if report.changed:
            stored_results.revise(connection, list(map(_revision, report.changed)), when)
            window = f", window {asked.window.name}" if asked.window else ""
            convention = f", convention {asked.convention.name}" if asked.convention else ""
            reason = f"{len(report.changed)} revised{window}{convention}"
            entry = LogEntry(LOGGED_AS, Action.REVISED, reason=reason)
            log(connection, [entry], when)
        for release_id in sorted({change.stored.release_id for change in report.changed}):
            audit_release(connection, release_id)
        return report


def _report(connection: Connection, question: Rows, asked: Asked) -> RecomputeReport:
    rows = connection.execute(question).mappings().all()
    changed, left = [], []
    for stored, steps in figures.with_steps(connection, rows):
        after = figures.recomputed(stored, steps, asked)
        if reason := figures.lost(stored):
            left.append(Recomputed(stored, after, {}, reason, "put it into perfdb.toml again"))
        elif asked.window and stored.outcome and after.withheld is not None:
            left.append(Recomputed(stored, after, {}, note_text(after.withheld)))
        elif changes := figures.differences(stored.result, after):
            changed.append(Recomputed(stored, after, changes))
    return RecomputeReport(len(rows), tuple(changed), tuple(left))


def _revision(changed: Recomputed) -> Revision:
    columns = {name: getattr(changed.after, name) for name in figures.REVISED}
    hashed = figures.revised_hash(changed.after, changed.stored.result.content_hash)
    return Revision(changed.stored.result_id, hashed, columns)
