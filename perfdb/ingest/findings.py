"""Audits the releases whose results have changed, and keeps the findings with the results.

The mark of a release tells whether it is to be audited, whatever was read: an ingest that was
killed before its audit leaves none, a change of the catalogue takes it away from releases of other
sources too, and a version with other rules finds that of an older one.
"""

from collections.abc import Collection, Iterable
from functools import partial

from sqlalchemy import Connection, Engine

from perfdb.audit.check import AUDIT_VERSION, audit, stored
from perfdb.audit.report import ordered
from perfdb.db import findings, keys
from perfdb.db.session import retried
from perfdb.db.tables import runs, sources
from perfdb.queries import results as questions
from perfdb.queries.catalog import releases_of_files as of_files
from perfdb.queries.catalog import releases_of_runs as of_runs
from perfdb.queries.catalog import releases_to_audit as to_audit
from perfdb.record import Finding


def audited(
    engine: Engine, run_ids: Collection[str], paths: Collection[str]
) -> tuple[Finding, ...]:
    """The findings of every release that runs and files give results of, as they are now stored.

    Every release that no audit has seen as it is now is audited, whatever its sources. Each is a
    transaction of its own: no rule looks at two of them.
    """
    for release_id in retried(partial(_to_audit, engine)):
        retried(partial(_audited, engine, release_id))
    return retried(partial(_kept, engine, run_ids, paths))


def _to_audit(engine: Engine) -> list[int]:
    with engine.connect() as connection:
        return sorted(connection.scalars(to_audit(AUDIT_VERSION)))


def _audited(engine: Engine, release_id: int) -> None:
    with engine.begin() as connection:
        renewed(connection, release_id)


def renewed(connection: Connection, release_id: int) -> None:
    """Audit a release and keep its findings, in the caller's transaction."""
    findings.mark(connection, release_id, AUDIT_VERSION)
    findings.replace(connection, release_id, audit(*stored(connection, [release_id])))


def _kept(engine: Engine, run_ids: Iterable[str], paths: Iterable[str]) -> tuple[Finding, ...]:
    with engine.connect() as connection:
        release_ids: set[int] = set()
        for some in keys.chunks(run_ids):
            which = keys.among(connection, runs.c.run_id, some)
            release_ids.update(connection.scalars(of_runs(which)))
        for some in keys.chunks(paths):
            which = keys.among(connection, sources.c.path, some)
            release_ids.update(connection.scalars(of_files(which)))
        rows = (
            row
            for some in keys.chunks(release_ids)
            for row in connection.execute(questions.findings_of_releases(some)).mappings()
        )
        return ordered(map(Finding.model_validate, rows))
