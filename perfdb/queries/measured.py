"""What figures are computed from: measured results with their run, and the runs' steps."""

from sqlalchemy import Select, select

from perfdb.db.tables import releases, results, run_files, runs, sources, steps
from perfdb.queries.results import current
from perfdb.queries.results import measured as only_measured


def in_force() -> Select[*tuple[object, ...]]:
    """Every measured result in force, with the columns of results.current and of its run."""
    return only_measured(current()).add_columns(
        results.c.key.label("result_key"),
        releases.c.container_digest,
        sources.c.parser,
        runs.c.id.label("run_row_id"),
        runs.c.outcome.label("run_outcome"),
        runs.c.error.label("run_error"),
        runs.c.content_hash.label("run_content_hash"),
    )


def steps_of(run_row_id: int) -> Select[*tuple[object, ...]]:
    """The steps of a run, by the id of its row, in order."""
    return select(steps).where(steps.c.run_id == run_row_id).order_by(steps.c.step)


def file_of(run_row_id: int, name: str) -> Select[bytes]:
    """The packed bytes of a run's file of a name, by the id of the run's row."""
    return (
        select(sources.c.content)
        .join(run_files, run_files.c.source_id == sources.c.id)
        .where(run_files.c.run_id == run_row_id, run_files.c.name == name)
    )
