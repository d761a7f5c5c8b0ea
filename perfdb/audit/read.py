"""What an audit reads from the store: the results in force, of some releases or of all."""

from collections.abc import Sequence

from sqlalchemy import Connection

from perfdb.audit.subject import Subject
from perfdb.queries import results


def subjects(
    connection: Connection, release_ids: Sequence[int] | None = None
) -> tuple[Subject, ...]:
    """Every result in force; of the releases of these ids, where they are given."""
    every = results.current()
    wanted = [every] if release_ids is None else [results.of_release(every, n) for n in release_ids]
    found = [connection.execute(question).mappings() for question in wanted]
    return tuple(Subject.model_validate(row) for rows in found for row in rows)
