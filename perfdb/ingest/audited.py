"""Audits the releases that results were read of, and keeps what is found beside the results.

Every release that a source has, or had, a result of is audited, also where the source itself is
unchanged: an ingest that was killed before its audit is made good by the next one.
"""

from collections.abc import Collection, Iterable, Iterator
from functools import partial

from sqlalchemy import Connection, Engine

from perfdb.audit import Finding, audit
from perfdb.audit.check import ordered
from perfdb.audit.read import subjects
from perfdb.db import findings, keys
from perfdb.db.rows import FindingRow
from perfdb.ingest.retry import retried
from perfdb.queries import catalog


def audited(
    engine: Engine, run_ids: Collection[str], paths: Collection[str]
) -> tuple[Finding, ...]:
    """The findings of every release that runs and files give results of, as they are now stored.

    Each release is a transaction of its own: no rule looks at two of them.
    """
    release_ids = retried(partial(_releases_of, engine, run_ids, paths))
    found = [retried(partial(_audited, engine, release_id)) for release_id in release_ids]
    return ordered(finding for of_release in found for finding in of_release)


def _releases_of(engine: Engine, run_ids: Iterable[str], paths: Iterable[str]) -> list[int]:
    found: set[int] = set()
    with engine.begin() as connection:
        for some in keys.chunks(run_ids):
            found.update(connection.scalars(catalog.releases_of_runs(some)))
        for some in keys.chunks(paths):
            found.update(connection.scalars(catalog.releases_of_files(some)))
    return sorted(found)


def _audited(engine: Engine, release_id: int) -> tuple[Finding, ...]:
    with engine.begin() as connection:
        return renewed(connection, release_id)


def renewed(connection: Connection, release_id: int) -> tuple[Finding, ...]:
    """The findings of a release, audited and kept in the caller's transaction."""
    findings.take_turns(connection, release_id)
    found = audit(subjects(connection, [release_id]))
    findings.replace(connection, release_id, _rows(found))
    return found


def _rows(found: Iterable[Finding]) -> Iterator[FindingRow]:
    for it in found:
        if it.result_id is not None:
            yield FindingRow(
                result_id=it.result_id,
                rule=it.rule,
                severity=it.severity.value,
                fields=it.fields,
                expected=it.expected,
                found=it.found,
                message=it.message,
                suggestion=it.suggestion,
            )
