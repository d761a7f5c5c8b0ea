"""What `perfdb verify` asks the store: all that it keeps, with the bytes, superseded or not."""

from sqlalchemy import Column, ColumnElement, Select, case, exists, func, select

from perfdb.db.tables import cases, releases, results, run_files, runs, sources, systems
from perfdb.queries.results import identified
from perfdb.record import Origin

Question = Select[*tuple[object, ...]]

_IN_FORCE = case((~results.c.superseded, results.c.revision))


def all_sources() -> Question:
    """Every source without its bytes."""
    columns = (sources.c.id, sources.c.path, sources.c.sha256, sources.c.size_bytes)
    return select(*columns).order_by(sources.c.id)


def files_of(run_row_id: int) -> Question:
    """The files a run was read from, by the id of its row, with the parser that read them."""
    return (
        select(
            run_files.c.name,
            run_files.c.source_id,
            sources.c.path,
            sources.c.parser,
            sources.c.parser_version,
            (runs.c.source_id == sources.c.id).label("is_record"),
        )
        .join(sources, run_files.c.source_id == sources.c.id)
        .join(runs, run_files.c.run_id == runs.c.id)
        .where(run_files.c.run_id == run_row_id)
        .order_by(run_files.c.name)
    )


def published() -> Question:
    """Every published result, superseded or not, with its source, ordered by source."""
    columns = (
        results,
        cases.c.framework,
        cases.c.precision,
        systems.c.name.label("system"),
        releases.c.version.label("release"),
        releases.c.container,
        sources.c.path,
        sources.c.parser,
        sources.c.parser_version,
    )
    return (
        identified(select(*columns))
        .where(results.c.origin == Origin.PUBLISHED.value)
        .order_by(results.c.source_id, results.c.id)
    )


def revisions() -> Question:
    """For each result: how many revisions it has, their numbers, and which are in force."""
    return (
        select(
            results.c.key,
            func.count().label("count"),
            func.min(results.c.revision).label("first"),
            func.max(results.c.revision).label("last"),
            func.count(_IN_FORCE).label("in_force"),
            func.max(_IN_FORCE).label("newest_in_force"),
        )
        .group_by(results.c.key)
        .order_by(results.c.key)
    )


def in_force_and_superseded_at() -> Question:
    """Results in force that nevertheless have a time at which they were superseded."""
    return select(results.c.key, results.c.revision).where(
        ~results.c.superseded, results.c.superseded_at.is_not(None)
    )


def runs_by_results_in_force() -> Question:
    """Runs with a wrong number of current results: it must be 1, or 0 if the run was withdrawn."""
    in_force = func.count(_IN_FORCE)
    return (
        select(runs.c.run_id, runs.c.withdrawn, in_force.label("count"))
        .join(results, results.c.run_id == runs.c.id)
        .group_by(runs.c.run_id, runs.c.withdrawn)
        .having(in_force != case((runs.c.withdrawn.is_(None), 1), else_=0))
        .order_by(runs.c.run_id)
    )


def dangling(column: Column[int], target: Column[int]) -> Select[int]:
    """How many rows refer to a row that does not exist."""
    found = exists().where(target == column)
    return select(func.count()).select_from(column.table).where(column.is_not(None), ~found)


def unused(name: ColumnElement[str], identity: Column[int], user: Column[int]) -> Select[str]:
    """The names of the rows that no row of another table refers to."""
    return select(name).where(~exists().where(user == identity)).order_by(name)


def measured_without_run() -> Select[str]:
    """The keys of measured results that belong to no run."""
    return select(results.c.key).where(
        results.c.origin == Origin.MEASURED.value, results.c.run_id.is_(None)
    )
