"""What a comparison reads from the store: the releases, and the results of one."""

from sqlalchemy import Connection

from perfdb.compare.base import Result
from perfdb.compare.releases import Choice, KnownRelease, choices
from perfdb.queries import catalog, results


def known_releases(connection: Connection) -> tuple[Choice, ...]:
    """The releases that have results, as a person can name them."""
    rows = connection.execute(catalog.all_releases()).mappings()
    return choices(KnownRelease.model_validate(row) for row in rows)


def results_of(connection: Connection, choice: Choice) -> tuple[Result, ...]:
    """Every result in force of the releases that a name stands for."""
    questions = [results.of_release(results.current(), one) for one in choice.release_ids]
    found = [connection.execute(question).mappings() for question in questions]
    return tuple(Result.model_validate(row) for rows in found for row in rows)
