"""What `perfdb verify` asks the store: all that it keeps, superseded or not."""

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from sqlalchemy import Column, ColumnElement, Select, Text, case, cast, exists, func, or_, select

from perfdb.db.sources import Action
from perfdb.db.tables import cases, ingest_log, models, releases, results, runs, sources, systems
from perfdb.fields import CONFIGURATION, WORKLOAD
from perfdb.queries.results import identified
from perfdb.record import Origin

SOURCES: Final = select(*(one for one in sources.c if one.name != "content")).order_by(sources.c.id)
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
"""Each result: how many revisions it has, their numbers, and which are current."""

WRONGLY_ENDED: Final = select(results.c.key, results.c.revision, results.c.superseded).where(
    results.c.superseded == results.c.superseded_at.is_(None)
)
"""Current results that have a time at which they were superseded, and others that have none."""

RUNS_IN_FORCE: Final = (
    select(runs.c.run_id, runs.c.withdrawn, func.count(_IN_FORCE))
    .join(results, results.c.run_id == runs.c.id)
    .group_by(runs.c.run_id, runs.c.withdrawn)
    .having(func.count(_IN_FORCE) != case((runs.c.withdrawn.is_(None), 1), else_=0))
    .order_by(runs.c.run_id)
)
"""Runs with a wrong number of current results: 1, or 0 if the run was withdrawn."""

_READ: Final = identified(
    select(
        *results.c,
        *(cases.c[name] for name in (*WORKLOAD, *CONFIGURATION) if name in cases.c),
        models.c.name.label("model"),
        systems.c.name.label("system"),
        releases.c.version.label("release"),
        *(releases.c[name] for name in ("container", "container_digest")),
        *(sources.c[name] for name in ("path", "parser", "parser_version")),
    )
).order_by(results.c.source_id, results.c.id)

PUBLISHED: Final = _READ.where(results.c.origin == Origin.PUBLISHED.value)
"""Every published result, superseded or not, with its case, release and source, by source."""

MEASURED: Final = _READ.where(results.c.origin == Origin.MEASURED.value)
"""Every measured result, superseded or not, likewise."""

RUNS: Final = (
    select(*runs.c, cases.c.key.label("case"), releases.c.key.label("release"))
    .join(cases, runs.c.case_id == cases.c.id)
    .join(releases, runs.c.release_id == releases.c.id)
    .order_by(runs.c.source_id, runs.c.id)
)
"""Every run with the keys of its case and release, ordered by the file that says what it is."""

CASES: Final = (
    select(*cases.c, models.c.name.label("model"), systems.c.name.label("system"))
    .join(models, cases.c.model_id == models.c.id)
    .join(systems, cases.c.system_id == systems.c.id)
    .order_by(cases.c.id)
)
"""Every case with the names of its model and system."""

RELEASES: Final = select(releases).order_by(releases.c.id)

LOG: Final = select(ingest_log).order_by(ingest_log.c.id)

_LOGGED: Final = ingest_log.c.action.in_((Action.NEW.value, Action.REVISED.value))

UNLOGGED: Final = (
    select(results.c.id, results.c.key, results.c.revision)
    .join(sources, results.c.source_id == sources.c.id)
    .where(
        ~exists().where(
            _LOGGED,
            ingest_log.c.at == results.c.created_at,
            or_(results.c.run_id.is_not(None), ingest_log.c.path == sources.c.path),
        )
        | results.c.superseded_at.is_not(None)
        & ~exists().where(_LOGGED, ingest_log.c.at == results.c.superseded_at)
    )
    .order_by(results.c.id)
)
"""Results that no entry of the log made, or superseded, at their time. A page names its path."""

WITHDRAWN_UNLOGGED: Final = (
    select(runs.c.run_id, runs.c.withdrawn)
    .where(runs.c.withdrawn.is_not(None))
    .where(~exists().where(ingest_log.c.stated_reason == runs.c.withdrawn))
    .order_by(runs.c.run_id)
)
"""Runs that were withdrawn for a reason that nobody stated."""

WITHOUT_RUN: Final = select(results.c.key).where(
    (results.c.origin == Origin.MEASURED.value) == results.c.run_id.is_(None)
)
"""The keys of measured results that belong to no run, and of published ones that do."""


def of_hashes(hashes: Sequence[str]) -> Select[Any]:
    """The sources of files that state what the results next to them are of, by their SHA-256."""
    columns = (sources.c[name] for name in ("sha256", "path", "parser", "parser_version"))
    question = select(sources.c.id.label("source_id"), *columns)
    return question.where(sources.c.sha256.in_(hashes)).order_by(sources.c.id)


@cache
def dangling(column: Column[int], target: Column[int]) -> Select[int]:
    """Count the rows that refer to a row that does not exist."""
    there = exists().where(target == column)
    return select(func.count()).select_from(column.table).where(column.is_not(None), ~there)


@cache
def unused(name: ColumnElement[str], identity: Column[int], user: Column[int]) -> Select[str]:
    """Name the rows that no row of another table refers to, in order."""
    return select(name).where(~exists().where(user == identity)).order_by(name)


@cache
def texts(columns: tuple[Column[Any], ...]) -> Select[Any]:
    """The key of each row of a table, and its values in some columns as text."""
    return select(*columns[0].table.primary_key, *(cast(it, Text) for it in columns))


@cache
def of_other_types(columns: tuple[Column[Any], ...], kinds: tuple[str, ...]) -> Select[Any]:
    """The key of each row with a value of another type than its column's, and all of its types.

    SQLite takes any value in any column.
    """
    types = [func.typeof(column) for column in columns]
    wrong = (it.not_in((kind, "null")) for it, kind in zip(types, kinds, strict=True))
    return select(*columns[0].table.primary_key, *types).where(or_(*wrong))
