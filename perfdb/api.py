"""perfdb from Python: what a store holds, as pandas DataFrames.

    from perfdb import api
    api.results(release="nemo 25.04", system="dgx-h100")

`db` is a store's address, `sqlite:///FILE` or `postgresql://…`; without one it is `PERFDB_URL`,
else `sqlite:///perfdb.sqlite`. Each call reads one consistent state and writes nothing. What is
unknown is NA. Every function raises StoreError where there is no store of this version, and
InputError for a name that the store does not have.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pandas as pd
from sqlalchemy import Connection

from perfdb.audit.review import accepted
from perfdb.compare import Comparison, match, report
from perfdb.compare import releases as known
from perfdb.db.session import reading_current, store_url
from perfdb.export import results as exported
from perfdb.queries import Rows, catalog, runs
from perfdb.queries import results as queries
from perfdb.queries.scope import Scope, within

__all__ = ["compare", "findings", "releases", "results", "steps"]


def releases(*, db: str | None = None) -> pd.DataFrame:
    """The releases that have results, in order, with how many results of which origin."""
    with _store(db) as connection:
        return _answer(connection, catalog.all_releases())[
            ["framework", "release", "container", "origin", "num_results"]
        ]


def results(
    *,
    release: str | None = None,
    framework: str | None = None,
    system: str | None = None,
    model: str | None = None,
    db: str | None = None,
) -> pd.DataFrame:
    """The current results, a row each, with the columns of `perfdb export results`."""
    with _store(db) as connection:
        only = {"framework": framework, "system": system, "model": model}
        table = exported.table(connection, known.scope_of(connection, release, **only))
    return _frame(table.names, table.rows)


def steps(run_id: str, *, db: str | None = None) -> pd.DataFrame:
    """The steps of a run, in order: number, time in seconds, loss and what else was recorded."""
    with _store(db) as connection:
        return _answer(connection, runs.steps_of(run_id)).drop(columns="run_id")


def findings(*, release: str | None = None, db: str | None = None) -> pd.DataFrame:
    """The findings of the last audit on current results."""
    with _store(db) as connection:
        scope = known.scope_of(connection, release)
        asked = within(connection, queries.current_findings(), scope)
        return _answer(connection, asked)


def compare(
    a: str, b: str, *, scope: Scope | None = None, metric: str | None = None, db: str | None = None
) -> pd.DataFrame:
    """Release B against A, a row for each match, with the keys of `perfdb compare --json`.

    A and B are names such as 'nemo 25.04'. `verdict` speaks of B; `level` says how the two were
    matched, `differences` in what they differ, and `reason` why there is no verdict.
    """
    with _store(db) as connection:
        found = compared(connection, a, b, scope or Scope(), metric)
    return pd.DataFrame([report.matched(it) for it in found.matched]).convert_dtypes()


def compared(
    connection: Connection, a: str, b: str, scope: Scope, metric: str | None = None
) -> Comparison:
    """Release B against A, as `perfdb compare` judges them: errors of the audit have no verdict."""
    how = known.Judging(known.open_errors(connection, accepted(None)), metric)
    frameworks = scope.options.get("framework", ())
    pairs = known.both_named(a, b, known.known_releases(connection), frameworks)
    return match.together([known.compared(connection, pair, scope, how) for pair in pairs])


@contextmanager
def _store(db: str | None) -> Iterator[Connection]:
    with reading_current(store_url(db)) as connection:
        yield connection


def _answer(connection: Connection, question: Rows) -> pd.DataFrame:
    answer = connection.execute(question)
    return _frame(list(answer.keys()), [tuple(row) for row in answer])


def _frame(columns: list[str], rows: Sequence[Sequence[object]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=columns, dtype=object).convert_dtypes()
