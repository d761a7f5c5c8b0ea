"""Runs: which there are, the files they were read from, and their steps."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, func, select

from perfdb.db.tables import (
    STEP_COLUMNS,
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
from perfdb.queries import Rows
from perfdb.record import RunKind

PARTITIONS: Final[Mapping[str, ColumnElement[Any]]] = {
    "framework": cases.c.framework,
    "release": releases.c.version.label("release"),
    "system": systems.c.name.label("system"),
    "model": models.c.name.label("model"),
}
"""The columns by which steps can be parted."""

IS_BENCHMARK: Final = runs.c.kind == RunKind.BENCHMARK.value
"""Whether a run was made for its timings."""


def _that_count(*columns: ColumnElement[Any]) -> Rows:
    """Columns of the runs that count, and of what each is of."""
    return (
        select(*columns)
        .select_from(runs)
        .join(cases, runs.c.case_id == cases.c.id)
        .join(releases, runs.c.release_id == releases.c.id)
        .join(systems, cases.c.system_id == systems.c.id)
        .join(models, cases.c.model_id == models.c.id)
        .where(runs.c.withdrawn.is_(None))
    )


def all_runs() -> Rows:
    """Every run that counts with its case's main fields and when it was read, by its run id."""
    titled = (models.c.title.label("model_title"), cases.c.key.label("case_key"))
    columns = (*runs.c, *PARTITIONS.values(), *titled, sources.c.ingested_at)
    read = _that_count(*columns).join(sources, runs.c.source_id == sources.c.id)
    return read.order_by(runs.c.run_id)


def newest(most: int, outcomes: Collection[str], run_ids: Collection[str]) -> Rows:
    """The newest runs, at most so many, and those of some ids; as `all_runs` has them.

    `outcomes`: of these alone; of every one if empty. Runs without a start time come last, the
    last ingested first. `source`: the file that the figures were read from.
    """
    order = (runs.c.started_at.desc().nulls_last(), runs.c.id.desc())
    ended = select(runs.c.id).where(runs.c.withdrawn.is_(None))
    if outcomes:
        ended = ended.where(runs.c.outcome.in_(outcomes))
    read_from = (
        select(func.min(sources.c.path))
        .join(results, results.c.source_id == sources.c.id)
        .where(results.c.run_id == runs.c.id, ~results.c.superseded)
        .correlate(runs)
    )
    wanted = runs.c.id.in_(ended.order_by(*order).limit(most)) | runs.c.run_id.in_(run_ids)
    found = all_runs().add_columns(read_from.scalar_subquery().label("source")).where(wanted)
    return found.order_by(None).order_by(*order)


def outcomes() -> Select[str, int]:
    """How many of the runs that count ended how."""
    counted = select(runs.c.outcome, func.count()).where(runs.c.withdrawn.is_(None))
    return counted.group_by(runs.c.outcome).order_by(runs.c.outcome)


def all_steps() -> Rows:
    """The steps of every benchmark that counts, with the columns to part them by, run by run."""
    columns = (runs.c.run_id, *PARTITIONS.values(), *(steps.c[name] for name in STEP_COLUMNS))
    recorded = _that_count(*columns).join(steps, steps.c.run_id == runs.c.id)
    return recorded.where(IS_BENCHMARK).order_by(runs.c.id, steps.c.step)


def parts(by: Sequence[str]) -> Rows:
    """The distinct values of some of `PARTITIONS` that runs have, in order."""
    columns = [PARTITIONS[name] for name in by]
    return _that_count(*columns).where(IS_BENCHMARK).distinct().order_by(*columns)


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


def of_id(run_id: str) -> Rows:
    """The run that counts of this run id, as `all_runs` has it."""
    return all_runs().where(runs.c.run_id == run_id)


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
