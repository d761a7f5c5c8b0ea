"""What a comparison reads from the store: the releases, and the results of one."""

from sqlalchemy import Connection

from perfdb.compare.base import Result
from perfdb.compare.releases import Choice, KnownRelease, choices
from perfdb.queries import catalog, results
from perfdb.queries.only import Only, known, narrowed


def known_releases(connection: Connection) -> tuple[Choice, ...]:
    """The releases that have results, as a person can name them."""
    rows = connection.execute(catalog.all_releases()).mappings()
    return choices(KnownRelease.model_validate(row) for row in rows)


def results_of(
    connection: Connection, choice: Choice, only: Only | None = None
) -> tuple[Result, ...]:
    """Every result in force of the releases that a name stands for, of these alone.

    Raises InputError for a framework, system or model that the store does not have.
    """
    wanted = narrowed(results.current(), known(connection, only or Only()))
    questions = [results.of_release(wanted, one) for one in choice.release_ids]
    found = [connection.execute(question).mappings() for question in questions]
    return tuple(Result.model_validate(row) for rows in found for row in rows)
