"""What a comparison reads from the store: the releases, and the results of one."""

from collections.abc import Sequence

from sqlalchemy import Connection

from perfdb.audit.review import Entry, explained
from perfdb.compare.releases import Choice, KnownRelease, choices, named
from perfdb.compare.result import Result
from perfdb.queries import catalog, findings, results
from perfdb.queries.scope import Only, Scope, within
from perfdb.record import Finding


def known_releases(connection: Connection) -> tuple[Choice, ...]:
    """The releases that have results, as a person can name them."""
    rows = connection.execute(catalog.all_releases()).mappings()
    return choices(KnownRelease.model_validate(row) for row in rows)


def release_ids(connection: Connection, name: str | None) -> tuple[int, ...] | None:
    """The releases in the store that a name stands for; None without one. Raises InputError."""
    return None if name is None else named(name, known_releases(connection)).release_ids


def results_of(
    connection: Connection, choice: Choice, only: Only | None = None
) -> tuple[Result, ...]:
    """Every result in force of the releases that a name stands for, of these alone.

    Raises InputError for a framework, system or model that the store does not have.
    """
    scope = Scope(only or Only(), choice.release_ids)
    rows = connection.execute(within(connection, results.current(), scope)).mappings()
    return tuple(map(Result.model_validate, rows))


def open_errors(connection: Connection, known: Sequence[Entry]) -> frozenset[int]:
    """The results, by their number, in which the last audit found errors that nobody accepts.

    `known` are the findings that are accepted.
    """
    rows = connection.execute(findings.errors()).mappings()
    found = explained(map(Finding.model_validate, rows), known)
    return frozenset(it.result_id for it in found if it.result_id is not None and it.is_open_error)
