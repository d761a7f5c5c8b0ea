"""What the store contains: releases, models, pages and rejections, and whether it has changed."""

from collections.abc import Collection

import sqlalchemy as sa

from perfdb.db import tables
from perfdb.db.sources import Action
from perfdb.db.tables import cases, ingest_log, models, releases, results, runs, sources
from perfdb.queries import Rows
from perfdb.queries.results import BENCHMARK
from perfdb.record import LAST_VERIFIED, Origin


def releases_with_results(origin: Origin | None = None) -> Rows:
    """Every release that has current results, or some of an origin, without counting them."""
    of_release = sa.select(results.c.id).where(results.c.release_id == releases.c.id)
    if origin is not None:
        of_release = of_release.where(results.c.origin == origin.value)
    columns = (releases.c.framework, releases.c.version.label("release"), releases.c.container)
    return sa.select(releases.c.id.label("release_id"), *columns).where(
        of_release.where(~results.c.superseded).exists()
    )


def all_releases(among: Collection[int] | None = None) -> Rows:
    """Every release that has results, with how many, ordered by framework and version.

    Those of profiles and checkpoints are not counted: `results.current` has none.
    `among`: of these alone; each of their results is read, with its run and its source.
    `first_at`: when its first run started, or when a result that has no such time was read.
    `verified`: the first date, as printed, at which a file calls a result verified. `first_line`:
    the first line of a file that has a result of it.
    """
    begun = sa.func.coalesce(runs.c.started_at, sources.c.ingested_at)
    release = (releases.c.framework, releases.c.version.label("release"), releases.c.container)
    asked = (
        sa.select(
            releases.c.id.label("release_id"),
            *release,
            results.c.origin,
            sa.func.sum(sa.case((BENCHMARK, 1), else_=0)).label("num_results"),
            sa.func.min(begun).label("first_at"),
            sa.func.min(results.c.extras[LAST_VERIFIED].as_string()).label("verified"),
            sa.func.min(results.c.source_line).label("first_line"),
        )
        .join(results, results.c.release_id == releases.c.id)
        .join(sources, results.c.source_id == sources.c.id)
        .outerjoin(runs, results.c.run_id == runs.c.id)
        .where(~results.c.superseded)
        .group_by(releases.c.id, *release, results.c.origin)
        .order_by(releases.c.framework, releases.c.version, releases.c.id, results.c.origin)
    )
    return asked if among is None else asked.where(results.c.release_id.in_(among))


def releases_of_runs(which: sa.ColumnElement[bool]) -> sa.Select[int]:
    """The releases of the results, current or superseded, of the runs that `which` selects."""
    of_runs = sa.select(results.c.release_id).join(runs, results.c.run_id == runs.c.id)
    return of_runs.where(which).distinct()


def releases_of_files(which: sa.ColumnElement[bool]) -> sa.Select[int]:
    """The releases of the results, current or superseded, of the sources that `which` selects."""
    of_sources = sa.select(results.c.release_id).join(sources, results.c.source_id == sources.c.id)
    return of_sources.where(which).distinct()


def releases_to_audit(version: int) -> sa.Select[int]:
    """The releases with present results that no audit of this version has checked."""
    outdated = releases.c.audited_version.is_distinct_from(version)
    return sa.select(releases.c.id).where(
        outdated, releases.c.id.in_(sa.select(results.c.release_id))
    )


def versions() -> sa.Select[str, str]:
    """Each framework with each version that has a current result."""
    return (
        sa.select(releases.c.framework, releases.c.version)
        .join(results, results.c.release_id == releases.c.id)
        .where(~results.c.superseded, releases.c.version.is_not(None))
        .distinct()
        .order_by(releases.c.framework, releases.c.version)
    )


def last_change() -> sa.Select[int | None, int | None, int]:
    """The last ids in the ingest log and among the findings, and how many findings there are.

    One of them changes with every change of the store; an audit makes no entry in the log.
    """
    findings = tables.findings.c.id
    newest, count = (
        sa.select(it).scalar_subquery() for it in (sa.func.max(findings), sa.func.count(findings))
    )
    return sa.select(sa.func.max(ingest_log.c.id), newest, count)


def row_versions() -> sa.CompoundSelect[*tuple[object, ...]]:
    """For each table: its name, its number of rows, and the sum of their transactions' numbers.

    On PostgreSQL a row that is written has the number of its transaction (xmin), which is higher
    than all before it: if the number of rows is the same after a change, the sum has grown.
    """
    written_by = sa.cast(sa.cast(sa.literal_column("xmin"), sa.Text), sa.BigInteger)
    return sa.union_all(
        *(
            sa.select(sa.literal(table.name), sa.func.count(), sa.func.sum(written_by)).select_from(
                table
            )
            for table in tables.metadata.sorted_tables
        )
    )


def model_names() -> sa.Select[str]:
    """The names of the models that have current results."""
    return (
        sa.select(models.c.name)
        .join(cases, cases.c.model_id == models.c.id)
        .join(results, results.c.case_id == cases.c.id)
        .where(~results.c.superseded)
        .distinct()
        .order_by(models.c.name)
    )


def published_sources() -> Rows:
    """The states of the pages that published current results were read from, by SHA-256.

    Path, SHA-256, when it was first read, when a result was last read from it, the URL and the day
    of its original. The empty state of a page that was withdrawn is left out.
    """
    published = results.c.origin == Origin.PUBLISHED.value
    read = sa.select(sources.c.path).join(results, results.c.source_id == sources.c.id)
    return (
        sa.select(
            sources.c.path,
            sources.c.sha256,
            sa.func.min(sources.c.ingested_at).label("ingested_at"),
            sa.func.max(results.c.created_at).label("created_at"),
            sa.func.max(sources.c.source_url).label("source_url"),
            sa.func.max(sources.c.published_on).label("published_on"),
        )
        .outerjoin(results, results.c.source_id == sources.c.id)
        .where(sources.c.path.in_(read.where(~results.c.superseded, published)))
        .where(sources.c.size_bytes > 0)
        .group_by(sources.c.path, sources.c.sha256)
        .order_by(sources.c.sha256, sources.c.path)
    )


def all_rejections() -> Rows:
    """Everything that was rejected, as it was logged: time, path, line and reason."""
    columns = (ingest_log.c.at, ingest_log.c.path, ingest_log.c.line, ingest_log.c.reason)
    return (
        sa.select(*columns).where(ingest_log.c.action == Action.REJECTED).order_by(ingest_log.c.id)
    )
