"""Runs: which there are, the files they were read from, and their steps."""

from collections.abc import Collection

from sqlalchemy import ColumnElement, Select, select

from perfdb.db.tables import (
    cases,
    models,
    releases,
    results,
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


def of_logs(
    which: ColumnElement[bool],
    timed: Collection[tuple[int, float]],
    others: ColumnElement[bool],
) -> Select[*tuple[object, ...]]:
    """The runs in force that were read from logs, in the order in which they were stored.

    One row for each of their steps with one of these numbers and one of these times; of `others`,
    with any time.
    """
    numbers, times = map(set, zip(*timed, strict=True))
    return (
        select(
            runs.c.id,
            runs.c.run_id,
            runs.c.outcome,
            cases.c.key.label("case_key"),
            releases.c.key.label("release_key"),
            sources.c.id.label("source_id"),
            sources.c.path,
            sources.c.parser,
            sources.c.sha256,
            sources.c.size_bytes,
            steps.c.step,
            steps.c.step_time_s,
            steps.c.loss,
        )
        .join(cases, runs.c.case_id == cases.c.id)
        .join(releases, runs.c.release_id == releases.c.id)
        .join(sources, runs.c.source_id == sources.c.id)
        .join(steps, steps.c.run_id == runs.c.id)
        .where(runs.c.recipe.is_(None), runs.c.withdrawn.is_(None), which)
        .where(steps.c.step.in_(sorted(numbers)), steps.c.step_time_s.in_(sorted(times)) | others)
        .order_by(runs.c.id, steps.c.step)
    )


def times_of(number: int) -> Select[int, float, float | None]:
    """The steps of a run, by the id of its row, in order: what every rendering of a log has."""
    return (
        select(steps.c.step, steps.c.step_time_s, steps.c.loss)
        .where(steps.c.run_id == number)
        .order_by(steps.c.step)
    )


def peak_memory_of(number: int) -> Select[int | None]:
    """The peak memory in bytes of a run's result in force, by the id of its row."""
    of_run = (results.c.run_id == number, ~results.c.superseded)
    return select(results.c.peak_memory_bytes).where(*of_run)


def with_bytes(which: ColumnElement[bool]) -> Select[int, str]:
    """The sources of these hashes, with their hashes: seldom there is one."""
    return select(sources.c.id, sources.c.sha256).where(which)


def of_files(source_ids: Collection[int]) -> Select[int, str, str]:
    """The runs in force of directories with these sources, with the paths of the sources."""
    return (
        select(run_files.c.source_id, runs.c.run_id, sources.c.path)
        .join(runs, run_files.c.run_id == runs.c.id)
        .join(sources, run_files.c.source_id == sources.c.id)
        .where(run_files.c.source_id.in_(source_ids))
        .where(runs.c.recipe.is_not(None), runs.c.withdrawn.is_(None))
    )


def of_one_log(source_ids: Collection[int]) -> Select[int, int, str]:
    """The runs in force that were read from logs which are these sources, with their paths."""
    return (
        select(runs.c.source_id, runs.c.id, sources.c.path)
        .join(sources, runs.c.source_id == sources.c.id)
        .where(runs.c.source_id.in_(source_ids))
        .where(runs.c.recipe.is_(None), runs.c.withdrawn.is_(None))
    )
