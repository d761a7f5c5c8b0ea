"""What an audit reads from the store: the results in force, of some releases or of all.

And the pages that print them, for what these work out in their text.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from sqlalchemy import Connection, RowMapping, Select

from perfdb.audit.subject import Subject
from perfdb.db.sources import content
from perfdb.queries import results
from perfdb.record import Origin

Question = Select[*tuple[object, ...]]


def subjects(
    connection: Connection, release_ids: Sequence[int] | None = None
) -> tuple[Subject, ...]:
    """Every result in force; of the releases of these ids, where they are given."""
    others: dict[int, dict[str, RowMapping]] = defaultdict(dict)
    for row in _answers(connection, results.on_other_pages(), release_ids):
        others[row["result_id"]][row["source"]] = row
    found = _answers(connection, results.current(), release_ids)
    return tuple(_subject(row, others.get(row["result_id"], {})) for row in found)


def pages(connection: Connection, printed: Iterable[Subject]) -> dict[str, str]:
    """The text of each page that prints a result, by its path."""
    hashes = {row.source: row.source_sha256 for row in printed if row.origin is Origin.PUBLISHED}
    known = {path: sha256 for path, sha256 in hashes.items() if path and sha256}
    return {
        path: content(connection, sha256).decode(errors="replace") for path, sha256 in known.items()
    }


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
