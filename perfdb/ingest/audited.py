"""Audits the releases that results were read of, and keeps what is found beside the results.

Of every release that a source has, or had, a result of the mark tells whether it is to be audited:
an ingest that was killed before its audit leaves none, and is made good by the next one, also where
every source is unchanged.
"""

from collections.abc import Collection, Iterable, Iterator
from functools import partial

from sqlalchemy import Connection, Engine

from perfdb.audit import AUDIT_VERSION, Finding, audit
from perfdb.audit.check import ordered
from perfdb.audit.read import subjects
from perfdb.db import findings, keys, marks
from perfdb.db.rows import FindingRow
from perfdb.db.session import retried
from perfdb.db.tables import runs, sources
from perfdb.queries import findings as questions
from perfdb.queries.catalog import releases_of_files as of_files
from perfdb.queries.catalog import releases_of_runs as of_runs


def audited(
    engine: Engine, run_ids: Collection[str], paths: Collection[str]
) -> tuple[Finding, ...]:
    """The findings of every release that runs and files give results of, as they are now stored.

    Each release is a transaction of its own: no rule looks at two of them. One whose results are
    as the last audit saw them is not audited again.
    """
    versions = retried(partial(_versions, engine, run_ids, paths))
    for release_id, version in sorted(versions.items()):
        if version != AUDIT_VERSION:
            retried(partial(_audited, engine, release_id))
    return retried(partial(_kept, engine, versions))


def _versions(
    engine: Engine, run_ids: Iterable[str], paths: Iterable[str]
) -> dict[int, int | None]:
    """By which version the releases of runs and files were audited since they last changed."""
    found: dict[int, int | None] = {}
    with engine.connect() as connection:
        for some in keys.chunks(run_ids):
            which = keys.among(connection, runs.c.run_id, some)
            found |= dict(connection.execute(of_runs(which)).all())
        for some in keys.chunks(paths):
            which = keys.among(connection, sources.c.path, some)
            found |= dict(connection.execute(of_files(which)).all())
    return found


def _audited(engine: Engine, release_id: int) -> None:
    with engine.begin() as connection:
        renewed(connection, release_id)


def renewed(connection: Connection, release_id: int) -> None:
    """Audit a release and keep its findings, in the caller's transaction."""
    marks.put(connection, release_id, AUDIT_VERSION)
    findings.replace(connection, release_id, _rows(audit(subjects(connection, [release_id]))))


def _kept(engine: Engine, release_ids: Iterable[int]) -> tuple[Finding, ...]:
    with engine.connect() as connection:
        found = [
            Finding.model_validate(row)
            for some in keys.chunks(release_ids)
            for row in connection.execute(questions.of_releases(some)).mappings()
        ]
    return ordered(found)


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
