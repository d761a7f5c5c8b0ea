"""Audits the releases that results were read of, and keeps what is found beside the results.

Every release that a source has, or had, a result of is audited, also where the source itself is
unchanged: an ingest that was killed before its audit is made good by the next one.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from sqlalchemy import Connection, Engine

from perfdb.audit import Finding, audit
from perfdb.audit.check import ordered
from perfdb.audit.read import subjects
from perfdb.db import findings, keys
from perfdb.db.rows import FindingRow
from perfdb.ingest.read import PageRows, Read, RunRead
from perfdb.ingest.retry import retried
from perfdb.queries import catalog


def audited(engine: Engine, reads: Sequence[Read]) -> tuple[Finding, ...]:
    """The findings of every release that the sources give results of, as they are now stored.

    Each release is a transaction of its own: no rule looks at two of them.
    """
    release_ids = retried(lambda: _releases_of(engine, reads))
    found = [retried(partial(_audited, engine, release_id)) for release_id in release_ids]
    return ordered(finding for of_release in found for finding in of_release)


def _releases_of(engine: Engine, reads: Iterable[Read]) -> list[int]:
    with engine.begin() as connection:
        return sorted(set(_release_ids(connection, tuple(reads))))


def _release_ids(connection: Connection, reads: Sequence[Read]) -> Iterator[int]:
    run_ids = {read.run.run.run_id for read in reads if isinstance(read, RunRead)}
    for some in keys.chunks(run_ids):
        yield from connection.scalars(catalog.releases_of_runs(some))
    paths = {read.source.path for read in reads if isinstance(read, PageRows)}
    for some in keys.chunks(paths):
        yield from connection.scalars(catalog.releases_of_files(some))


def _audited(engine: Engine, release_id: int) -> tuple[Finding, ...]:
    with engine.begin() as connection:
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
