"""Runs: which there are, the files they were read from, and their steps."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import ColumnElement, Select, select

from perfdb.db.tables import cases, models, releases, run_files, runs, sources, steps, systems
from perfdb.queries import Rows


def all_runs() -> Rows:
    """Every run that counts with its case's main fields and when it was read, by its run id."""
    return (
        select(
            *runs.c,
            cases.c.framework,
            releases.c.version.label("release"),
            systems.c.name.label("system"),
            models.c.name.label("model"),
            models.c.title.label("model_title"),
            cases.c.key.label("case_key"),
            sources.c.ingested_at,
        )
        .join(cases, runs.c.case_id == cases.c.id)
        .join(releases, runs.c.release_id == releases.c.id)
        .join(systems, cases.c.system_id == systems.c.id)
        .join(models, cases.c.model_id == models.c.id)
        .join(sources, runs.c.source_id == sources.c.id)
        .where(runs.c.withdrawn.is_(None))
        .order_by(runs.c.run_id)
    )


def logs_at(which: ColumnElement[bool]) -> Select[int, str, str, str, int, str | None]:
    """The runs that were read from the logs that `which` selects, the longest log first."""
    of_file = (sources.c.path, sources.c.sha256, sources.c.size_bytes)
    return (
        select(runs.c.id, runs.c.run_id, *of_file, releases.c.version)
        .join(sources, runs.c.source_id == sources.c.id)
        .join(releases, runs.c.release_id == releases.c.id)
        .where(runs.c.recipe.is_(None), which)
        .order_by(sources.c.size_bytes.desc(), runs.c.id)
    )


def steps_of(run_id: str) -> Rows:
    """The steps of a run, by its run id, in order."""
    statement = select(steps).join(runs, steps.c.run_id == runs.c.id)
    return statement.where(runs.c.run_id == run_id).order_by(steps.c.step)


def steps_of_row(run_row_id: int) -> Rows:
    """The steps of a run, by the id of its row, in order."""
    return select(steps).where(steps.c.run_id == run_row_id).order_by(steps.c.step)


def _of_files(*columns: ColumnElement[Any]) -> Rows:
    statement = select(*columns).join(runs, run_files.c.run_id == runs.c.id)
    return statement.join(sources, run_files.c.source_id == sources.c.id)


def files_of(run_id: str) -> Rows:
    """The files a run was read from: name, SHA-256 and size."""
    columns = (run_files.c.name, sources.c.sha256, sources.c.size_bytes)
    return _of_files(*columns).where(runs.c.run_id == run_id).order_by(run_files.c.name)


def files_of_row(run_row_id: int) -> Rows:
    """The files a run was read from, by the id of its row, with the parser that read them.

    `is_record`: whether the file says what the run is.
    """
    is_record = (runs.c.source_id == sources.c.id).label("is_record")
    read_by = (sources.c.path, sources.c.sha256, sources.c.parser, sources.c.parser_version)
    statement = _of_files(run_files.c.name, run_files.c.source_id, *read_by, is_record)
    return statement.where(run_files.c.run_id == run_row_id).order_by(run_files.c.name)


def all_run_files() -> Rows:
    """The files of every run that counts, without bytes: run id, name, SHA-256 and size."""
    columns = (runs.c.run_id, run_files.c.name, sources.c.sha256, sources.c.size_bytes)
    counted = _of_files(*columns).where(runs.c.withdrawn.is_(None))
    return counted.order_by(runs.c.run_id, run_files.c.name)


def with_bytes(which: ColumnElement[bool]) -> Select[int, str]:
    """The ids and hashes of the sources that `which` selects."""
    return select(sources.c.id, sources.c.sha256).where(which)


def of_files(source_ids: Collection[int]) -> Select[int, str, str]:
    """The current runs of directories that hold these sources, with the paths of the sources."""
    is_current = runs.c.recipe.is_not(None) & runs.c.withdrawn.is_(None)
    return (
        select(run_files.c.source_id, runs.c.run_id, sources.c.path)
        .join(runs, run_files.c.run_id == runs.c.id)
        .join(sources, run_files.c.source_id == sources.c.id)
        .where(run_files.c.source_id.in_(source_ids), is_current)
    )
