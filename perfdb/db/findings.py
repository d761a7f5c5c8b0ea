"""The findings of results: what the last audit of their release said, and nothing else.

An audit marks a release (`perfdb.db.marks`), reads its results and writes its findings in one
transaction: of several that audit the same release, the last one has seen all that is stored.
"""

from collections.abc import Iterable

from sqlalchemy import Connection, RowMapping, bindparam, delete, insert, select

from perfdb.db.rows import FindingRow
from perfdb.db.tables import findings, results

SAID = ("result_id", "rule", "severity", "fields", "expected", "found", "message", "suggestion")


def replace(connection: Connection, release_id: int, given: Iterable[FindingRow]) -> bool:
    """Make these the findings of a release's results; whether that changed anything.

    What is there already stays as it is; findings of results that are superseded go.
    """
    wanted = dict.fromkeys(given)
    stored = _stored(connection, release_id)
    stale = [{"of": number} for row, number in stored.items() if row not in wanted]
    added = [vars(row) for row in wanted if row not in stored]
    if stale:
        connection.execute(delete(findings).where(findings.c.id == bindparam("of")), stale)
    if added:
        connection.execute(insert(findings), added)
    return bool(stale or added)


def _stored(connection: Connection, release_id: int) -> dict[FindingRow, int]:
    question = (
        select(findings.c.id, *(findings.c[name] for name in SAID))
        .join(results, findings.c.result_id == results.c.id)
        .where(results.c.release_id == release_id)
    )
    found = connection.execute(question).mappings()
    return {_row(columns): int(columns["id"]) for columns in found}


def _row(columns: RowMapping) -> FindingRow:
    said = {name: columns[name] for name in SAID}
    return FindingRow(**said | {"fields": tuple(columns["fields"])})
