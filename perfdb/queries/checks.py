"""What `perfdb verify` asks the store: all that it keeps, superseded or not."""

from typing import Final

from sqlalchemy import Column, ColumnElement, Select, case, exists, func, select

from perfdb.db.tables import cases, models, releases, results, runs, sources, systems
from perfdb.fields import CONFIGURATION, WORKLOAD
from perfdb.queries.results import identified
from perfdb.record import Origin

SOURCES: Final = select(
    sources.c.id, sources.c.path, sources.c.sha256, sources.c.size_bytes
).order_by(sources.c.id)
"""Every source without its bytes."""

_IN_FORCE: Final = case((~results.c.superseded, results.c.revision))
REVISIONS: Final = (
    select(
        results.c.key,
        func.count().label("count"),
        func.min(results.c.revision).label("first"),
        func.max(results.c.revision).label("last"),
        func.count(_IN_FORCE).label("in_force"),
        func.max(_IN_FORCE).label("newest"),
    )
    .group_by(results.c.key)
    .order_by(results.c.key)
)
"""Each result: how many revisions it has, their numbers, and which are in force."""

ENDED_IN_FORCE: Final = select(results.c.key, results.c.revision).where(
    ~results.c.superseded, results.c.superseded_at.is_not(None)
)
"""Results in force that nevertheless have a time at which they were superseded."""

RUNS_IN_FORCE: Final = (
    select(runs.c.run_id, runs.c.withdrawn, func.count(_IN_FORCE))
    .join(results, results.c.run_id == runs.c.id)
    .group_by(runs.c.run_id, runs.c.withdrawn)
    .having(func.count(_IN_FORCE) != case((runs.c.withdrawn.is_(None), 1), else_=0))
    .order_by(runs.c.run_id)
)
"""Runs with a wrong number of results in force: 1, or 0 if the run was withdrawn."""

PUBLISHED: Final = (
    identified(
        select(
            results,
            *(cases.c[name] for name in (*WORKLOAD, *CONFIGURATION) if name in cases.c),
            models.c.name.label("model"),
            systems.c.name.label("system"),
            releases.c.version.label("release"),
            releases.c.container,
            *(sources.c[name] for name in ("path", "parser", "parser_version")),
        )
    )
    .where(results.c.origin == Origin.PUBLISHED.value)
    .order_by(results.c.source_id, results.c.id)
)
"""Every published result with its source, ordered by source."""

MEASURED_WITHOUT_RUN: Final = select(results.c.key).where(
    results.c.origin == Origin.MEASURED.value, results.c.run_id.is_(None)
)
"""The keys of measured results that belong to no run."""


def dangling(column: Column[int], target: Column[int]) -> Select[int]:
    """Count the rows that refer to a row that does not exist."""
    there = exists().where(target == column)
    return select(func.count()).select_from(column.table).where(column.is_not(None), ~there)


def unused(name: ColumnElement[str], identity: Column[int], user: Column[int]) -> Select[str]:
    """Name the rows that no row of another table refers to, in order."""
    return select(name).where(~exists().where(user == identity)).order_by(name)
