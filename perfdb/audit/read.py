"""What an audit reads from the store: the results in force, of some releases or of all."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from sqlalchemy import Connection, RowMapping, Select

from perfdb.audit.subject import Subject
from perfdb.queries import elsewhere, results

Question = Select[*tuple[object, ...]]


def subjects(
    connection: Connection, release_ids: Sequence[int] | None = None
) -> tuple[Subject, ...]:
    """Every result in force; of the releases of these ids, where they are given."""
    others: dict[int, dict[str, RowMapping]] = defaultdict(dict)
    for row in _answers(connection, elsewhere.said_elsewhere(), release_ids):
        others[row["result_id"]][row["source"]] = row
    found = _answers(connection, results.current(), release_ids)
    return tuple(_subject(row, others.get(row["result_id"], {})) for row in found)


def _answers(
    connection: Connection, question: Question, release_ids: Sequence[int] | None
) -> Iterator[RowMapping]:
    ids = release_ids
    wanted = [question] if ids is None else [results.of_release(question, n) for n in ids]
    for one in wanted:
        yield from connection.execute(one).mappings()


def _subject(row: RowMapping, others: Mapping[str, RowMapping]) -> Subject:
    """A result, with the last word of each other page that still says something of it."""
    subject = Subject.model_validate(row)
    said_there = tuple(
        Subject.model_validate({**row, **said}) for said in others.values() if said["replaced"]
    )
    return subject.model_copy(update={"elsewhere": said_there})
