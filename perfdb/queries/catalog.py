"""What the store contains: releases, systems, models, runs and their steps and files."""

from sqlalchemy import ColumnElement, Select, func, select

from perfdb.db.tables import (
    cases,
    findings,
    ingest_log,
    models,
    releases,
    results,
    run_files,
    runs,
    sources,
    steps,
    systems,
)
from perfdb.stated import LAST_VERIFIED


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
    """The releases of the results, in force or superseded, of some runs."""
    return _of_results().join(runs, results.c.run_id == runs.c.id).where(which)


def releases_of_files(which: ColumnElement[bool]) -> Select[int]:
    """The releases of the results, in force or superseded, of some sources."""
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


def all_runs() -> Select[*tuple[object, ...]]:
    """Every run that counts with its case's main fields and when it was read, by its run id."""
    return (
        _of_runs(
            *runs.c,
            cases.c.framework,
            releases.c.version.label("release"),
            systems.c.name.label("system"),
            models.c.name.label("model"),
            models.c.title.label("model_title"),
            cases.c.key.label("case_key"),
            sources.c.ingested_at,
        )
        .join(sources, runs.c.source_id == sources.c.id)
        .where(runs.c.withdrawn.is_(None))
        .order_by(runs.c.run_id)
    )


def _of_runs(*columns: ColumnElement[object]) -> Select[*tuple[object, ...]]:
    return (
        select(*columns)
        .select_from(runs)
        .join(cases, runs.c.case_id == cases.c.id)
        .join(releases, runs.c.release_id == releases.c.id)
        .join(systems, cases.c.system_id == systems.c.id)
        .join(models, cases.c.model_id == models.c.id)
    )


def versions() -> Select[str, str]:
    """Each framework with each version that has a result in force."""
    return (
        select(releases.c.framework, releases.c.version)
        .join(results, results.c.release_id == releases.c.id)
        .where(~results.c.superseded, releases.c.version.is_not(None))
        .distinct()
        .order_by(releases.c.framework, releases.c.version)
    )


def said_of(run_id: str) -> Select[*tuple[object, ...]]:
    """The case and the release of a run, by its run id, with its source and parser version."""
    of_case = [column for column in cases.c if column.name not in ("id", "system_id", "model_id")]
    return (
        _of_runs(
            *of_case,
            models.c.name.label("model"),
            systems.c.name.label("system"),
            releases.c.framework.label("release_framework"),
            releases.c.version,
            releases.c.container,
            releases.c.container_digest,
            releases.c.key.label("release_key"),
            sources.c.path,
            sources.c.parser_version,
            runs.c.withdrawn,
        )
        .join(sources, runs.c.source_id == sources.c.id)
        .where(runs.c.run_id == run_id)
    )


def hashes_of(run_id: str) -> Select[str, str]:
    """The format and the hash of each file that a run was read from, by its run id."""
    return (
        select(sources.c.parser, sources.c.sha256)
        .join(run_files, run_files.c.source_id == sources.c.id)
        .join(runs, run_files.c.run_id == runs.c.id)
        .where(runs.c.run_id == run_id)
    )


def logs_at(which: ColumnElement[bool]) -> Select[int, str, str, str, int]:
    """The runs that were read from logs, of those sources, the longest first."""
    return (
        select(runs.c.id, runs.c.run_id, sources.c.path, sources.c.sha256, sources.c.size_bytes)
        .join(sources, runs.c.source_id == sources.c.id)
        .where(runs.c.recipe.is_(None), which)
        .order_by(sources.c.size_bytes.desc(), runs.c.id)
    )


def steps_of(run_id: str) -> Select[*tuple[object, ...]]:
    """The steps of a run, by its run id, in order."""
    return (
        select(steps)
        .join(runs, steps.c.run_id == runs.c.id)
        .where(runs.c.run_id == run_id)
        .order_by(steps.c.step)
    )


def files_of(run_id: str) -> Select[*tuple[object, ...]]:
    """The files a run was read from: name, SHA-256, size, and the compressed bytes."""
    return (
        select(run_files.c.name, sources.c.sha256, sources.c.size_bytes, sources.c.content)
        .join(runs, run_files.c.run_id == runs.c.id)
        .join(sources, run_files.c.source_id == sources.c.id)
        .where(runs.c.run_id == run_id)
        .order_by(run_files.c.name)
    )


def last_change() -> Select[int | None, int | None, int]:
    """The last ids in the ingest log and among the findings, and how many findings there are.

    One of them changes with every change of the store; an audit makes no entry in the log.
    """
    newest = select(func.max(findings.c.id)).scalar_subquery()
    count = select(func.count(findings.c.id)).scalar_subquery()
    return select(func.max(ingest_log.c.id), newest, count)
