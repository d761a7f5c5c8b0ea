"""Runs in force by the logs they were read from, and by their steps."""

from collections.abc import Collection

from sqlalchemy import ColumnElement, Select, select

from perfdb.db.tables import cases, releases, results, run_files, runs, sources, steps


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


def steps_of(number: int) -> Select[int, float, float | None]:
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
