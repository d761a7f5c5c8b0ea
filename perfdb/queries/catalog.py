"""What the store contains: releases, versions and models, and whether it has changed."""

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    CompoundSelect,
    Select,
    Text,
    cast,
    func,
    literal,
    literal_column,
    select,
    union_all,
)

from perfdb.db.tables import (
    cases,
    findings,
    ingest_log,
    metadata,
    models,
    releases,
    results,
    runs,
    sources,
)
from perfdb.record import LAST_VERIFIED


def all_releases() -> Select[*tuple[object, ...]]:
    """Every release that has results, with how many, ordered by framework and version.

    `first_at` is when its first run was started; of what does not say, when it was read.
    `verified` is the first date, as printed, at which a file says that a result was verified, and
    `first_line` the first line of a file that has a result of it.
    """
    begun = func.coalesce(runs.c.started_at, sources.c.ingested_at)
    return (
        select(
            releases.c.id.label("release_id"),
            releases.c.framework,
            releases.c.version.label("release"),
            releases.c.container,
            results.c.origin,
            func.count().label("num_results"),
            func.min(begun).label("first_at"),
            func.min(results.c.extras[LAST_VERIFIED].as_string()).label("verified"),
            func.min(results.c.source_line).label("first_line"),
        )
        .join(results, results.c.release_id == releases.c.id)
        .join(sources, results.c.source_id == sources.c.id)
        .outerjoin(runs, results.c.run_id == runs.c.id)
        .where(~results.c.superseded)
        .group_by(
            releases.c.id,
            releases.c.framework,
            releases.c.version,
            releases.c.container,
            results.c.origin,
        )
        .order_by(releases.c.framework, releases.c.version, releases.c.id, results.c.origin)
    )


def releases_of_runs(which: ColumnElement[bool]) -> Select[int]:
    """The releases of the results, current or superseded, of some runs."""
    return _of_results().join(runs, results.c.run_id == runs.c.id).where(which)


def releases_of_files(which: ColumnElement[bool]) -> Select[int]:
    """The releases of the results, current or superseded, of some sources."""
    return _of_results().join(sources, results.c.source_id == sources.c.id).where(which)


def releases_to_audit(version: int) -> Select[int]:
    """The releases whose present results no audit of this version has checked."""
    return (
        _of_results()
        .join(releases, results.c.release_id == releases.c.id)
        .where(releases.c.audited_version.is_distinct_from(version))
    )


def _of_results() -> Select[int]:
    return select(results.c.release_id).distinct()


def versions() -> Select[str, str]:
    """Each framework with each version that has a current result."""
    return (
        select(releases.c.framework, releases.c.version)
        .join(results, results.c.release_id == releases.c.id)
        .where(~results.c.superseded, releases.c.version.is_not(None))
        .distinct()
        .order_by(releases.c.framework, releases.c.version)
    )


def last_change() -> Select[int | None, int | None, int]:
    """The last ids in the ingest log and among the findings, and how many findings there are.

    One of them changes with every change of the store; an audit makes no entry in the log.
    """
    newest = select(func.max(findings.c.id)).scalar_subquery()
    count = select(func.count(findings.c.id)).scalar_subquery()
    return select(func.max(ingest_log.c.id), newest, count)


def row_versions() -> CompoundSelect[*tuple[object, ...]]:
    """For each table: its name, its number of rows, the sum of the transactions that wrote them.

    A row that is written or changed has the number of its transaction (xmin), which is higher than
    all before it: if the number of rows is the same after a change, the sum has grown.
    """
    written_by = cast(cast(literal_column("xmin"), Text), BigInteger)
    return union_all(
        *(
            select(literal(table.name), func.count(), func.sum(written_by)).select_from(table)
            for table in metadata.sorted_tables
        )
    )


def model_names() -> Select[str]:
    """The names of the models that have current results."""
    return (
        select(models.c.name)
        .join(cases, cases.c.model_id == models.c.id)
        .join(results, results.c.case_id == cases.c.id)
        .where(~results.c.superseded)
        .distinct()
        .order_by(models.c.name)
    )
