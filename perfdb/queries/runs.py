"""Runs: which there are, the files they were read from, and their steps."""

from collections.abc import Collection

from sqlalchemy import ColumnElement, Select, select

from perfdb.db.tables import (
    cases,
    models,
    releases,
    run_files,
    runs,
    sources,
    steps,
    systems,
)


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


def steps_of_row(run_row_id: int) -> Select[*tuple[object, ...]]:
    """The steps of a run, by the id of its row, in order."""
    return select(steps).where(steps.c.run_id == run_row_id).order_by(steps.c.step)


def files_of(run_id: str) -> Select[*tuple[object, ...]]:
    """The files a run was read from: name, SHA-256, size, and the compressed bytes."""
    return (
        select(run_files.c.name, sources.c.sha256, sources.c.size_bytes, sources.c.content)
        .join(runs, run_files.c.run_id == runs.c.id)
        .join(sources, run_files.c.source_id == sources.c.id)
        .where(runs.c.run_id == run_id)
        .order_by(run_files.c.name)
    )


def file_of(run_row_id: int, name: str) -> Select[bytes]:
    """The packed bytes of a run's file of a name, by the id of the run's row."""
    return (
        select(sources.c.content)
        .join(run_files, run_files.c.source_id == sources.c.id)
        .where(run_files.c.run_id == run_row_id, run_files.c.name == name)
    )


def all_run_files() -> Select[*tuple[object, ...]]:
    """The files of every run that counts, without bytes: run id, name, SHA-256 and size."""
    return (
        select(runs.c.run_id, run_files.c.name, sources.c.sha256, sources.c.size_bytes)
        .join(runs, run_files.c.run_id == runs.c.id)
        .join(sources, run_files.c.source_id == sources.c.id)
        .where(runs.c.withdrawn.is_(None))
        .order_by(runs.c.run_id, run_files.c.name)
    )


def times_of(number: int) -> Select[int, float, float | None]:
    """The steps of a run, by the id of its row, in order: what every rendering of a log has."""
    return (
        select(steps.c.step, steps.c.step_time_s, steps.c.loss)
        .where(steps.c.run_id == number)
        .order_by(steps.c.step)
    )


def with_bytes(which: ColumnElement[bool]) -> Select[int, str]:
    """The sources of these hashes, with their hashes: seldom there is one."""
    return select(sources.c.id, sources.c.sha256).where(which)


def of_files(source_ids: Collection[int]) -> Select[int, str, str]:
    """The current runs of directories with these sources, with the paths of the sources."""
    return (
        select(run_files.c.source_id, runs.c.run_id, sources.c.path)
        .join(runs, run_files.c.run_id == runs.c.id)
        .join(sources, run_files.c.source_id == sources.c.id)
        .where(run_files.c.source_id.in_(source_ids))
        .where(runs.c.recipe.is_not(None), runs.c.withdrawn.is_(None))
    )
