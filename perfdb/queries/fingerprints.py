"""What the store has of each release, as one text: it changes whenever a row of it does."""

from collections.abc import Collection, Iterable
from functools import reduce
from operator import add
from typing import Any, Final, TypeVarTuple

from sqlalchemy import (
    ColumnElement,
    Integer,
    Select,
    Text,
    cast,
    func,
    literal_column,
    or_,
    select,
)

from perfdb.db.tables import (
    STEP_COLUMNS,
    cases,
    findings,
    models,
    releases,
    results,
    run_files,
    runs,
    sources,
    steps,
    systems,
)
from perfdb.queries import Rows
from perfdb.queries.results import all_revisions, identified

Columns = TypeVarTuple("Columns")
ReleaseName = tuple[str, str | None]
"""A framework and a version: the containers of a version are one release."""

_UNKNOWN: Final[ColumnElement[str]] = literal_column("'\x1e'", Text)
_NOT_SHOWN: Final = ("content", "specification", "audited_version")
"""Columns of sources, models, systems and releases that no page has."""
_END: Final[ColumnElement[str]] = literal_column("'\x1f'", Text)
"""Written into the statement: hundreds of parameters take long to bind."""


def contents() -> tuple[Rows, ...]:
    """Statements with a row for each release: framework, version, and a text of all it has.

    The results with their cases, revisions among them; what many share; what else a superseded one
    has; the findings, the runs, the files and the steps. The rows become one text within the
    database: 10,000 results take a tenth of the time of reading them.
    """
    every = identified(select(results))
    shared = (models, systems, sources, releases)
    names = [it for table in shared for it in table.c if it.name not in _NOT_SHOWN]
    current = every.where(~results.c.superseded)
    of_runs = current.join(runs, results.c.run_id == runs.c.id)
    files = of_runs.join(run_files, run_files.c.run_id == runs.c.id)
    file_sources = sources.alias("file_sources")
    named = (runs.c.run_id, run_files.c.name, file_sources.c.sha256, file_sources.c.size_bytes)
    of_steps = of_runs.join(steps, steps.c.run_id == runs.c.id)
    # of steps, which are many, the sums: they are written once, with the run
    flag = cast(steps.c.skipped, Integer)
    sums = [func.sum(flag if it == "skipped" else steps.c[it]) for it in STEP_COLUMNS]
    return (
        _content(every, (*results.c, *cases.c)),
        _content(every.group_by(cases.c.framework, *(table.c.id for table in shared)), names),
        _content(all_revisions().where(results.c.superseded)),
        _content(
            current.join(findings, findings.c.result_id == results.c.id),
            [it for it in findings.c if it is not findings.c.id],
        ),
        _content(of_runs, runs.c),
        _content(files.join(file_sources, file_sources.c.id == run_files.c.source_id), named),
        of_steps.with_only_columns(
            cases.c.framework, releases.c.version.label("release"), _text([func.count(), *sums])
        ).group_by(cases.c.framework, releases.c.version),
    )


def narrowed(
    statement: Select[*Columns], names: Collection[ReleaseName] | None
) -> Select[*Columns]:
    """A statement on results, narrowed to some releases; None: to none."""
    if names is None:
        return statement
    version = releases.c.version
    return statement.where(
        or_(
            *(
                (cases.c.framework == framework) & version.is_not_distinct_from(release)
                for framework, release in names
            )
        )
    )


def of_runs(statement: Rows, names: Collection[ReleaseName] | None) -> Rows:
    """A statement on runs, narrowed to those with a current result of some releases."""
    if names is None:
        return statement
    current = identified(select(results.c.run_id).select_from(results)).where(~results.c.superseded)
    return statement.where(runs.c.id.in_(narrowed(current, names).correlate(None)))


def _content(statement: Rows, columns: Iterable[ColumnElement[Any]] = ()) -> Rows:
    """For each release the text of these columns, or else of all, of the rows of a statement."""
    rows = (
        statement.order_by(None)
        .with_only_columns(
            cases.c.framework.label("framework"),
            releases.c.version.label("release"),
            _text(columns or statement.selected_columns).label("content"),
        )
        .subquery()
    )
    release = (rows.c.framework, rows.c.release)
    content = func.aggregate_strings(rows.c.content, "\n")
    return select(*release, content).group_by(*release).order_by(*release)


def _text(columns: Iterable[ColumnElement[Any]]) -> ColumnElement[str]:
    values = [func.coalesce(cast(one, Text), _UNKNOWN) + _END for one in columns]
    return reduce(add, values)
