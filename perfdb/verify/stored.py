"""Measured results as they are stored, with what is known of their runs, and the runs' steps."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Final

from sqlalchemy import Connection, RowMapping

from perfdb.db import keys
from perfdb.db.packing import unpacked
from perfdb.db.rows import ResultRow
from perfdb.db.tables import results, steps
from perfdb.errors import DamagedBytesError, RunDirError
from perfdb.formats import AVERAGES, Reading
from perfdb.formats.columns import Steps
from perfdb.jsonfile import parse_json
from perfdb.queries import runs as run_queries
from perfdb.record import Origin, Outcome, Release
from perfdb.run_record import WorkerConfiguration
from perfdb.rundir import WORKER_CONFIG

STEPS_AT_ONCE: Final = 1 << 12
"""How many steps are held as rows at a time."""

_RELEASE: Final = ("framework", "container", "container_digest")
_OTHERS: Final = ("key", "content_hash", "origin", "outcome", "source_line")
_COLUMNS: Final = tuple(
    field.name
    for field in fields(ResultRow)
    if field.name in results.c and field.name not in _OTHERS
)
_READING: Final = (
    steps.c.source_line, *(steps.c[name] for name in Reading._fields if name in steps.c),
)  # fmt: skip
"""The stored columns of a reading, in its order: the line comes first, the printed MFU last."""


@dataclass(frozen=True)
class StoredRun:
    """A measured result as it is stored, and what is known of its run."""

    result: ResultRow
    """With the run's content hash: that of all that the run was read from."""
    result_id: int
    release_id: int
    run_id: str
    run_row_id: int
    finished: bool
    """Whether the run finished, so that its steps may give figures in some window."""
    of_log: bool
    """Whether the run was read from a log."""
    averages: bool = False
    """Whether that log is of one of `perfdb.formats.AVERAGES`."""
    configuration: WorkerConfiguration | None = None
    """What the worker of a run directory was configured to do."""


def stored(row: RowMapping) -> StoredRun:
    """A row of `perfdb.queries.results.with_runs`."""
    of_log = row["recipe"] is None
    # A log's run may lack figures only because of the steps in its window. A log that itself ends
    # too early has a reason, which is kept as the run's error.
    of_window = row["run_outcome"] == Outcome.INCOMPLETE and row["run_error"] is None
    return StoredRun(
        result=_result(row),
        result_id=row["result_id"],
        release_id=row["release_id"],
        run_id=row["run_id"],
        run_row_id=row["run_row_id"],
        finished=row["run_outcome"] == Outcome.FINISHED or (of_log and of_window),
        of_log=of_log,
        averages=of_log and row["parser"] in AVERAGES,
    )


def _result(row: RowMapping) -> ResultRow:
    release = {"version": row["release"], **{name: row[name] for name in _RELEASE}}
    return ResultRow(
        case=keys.case_of(row),
        release=Release.model_validate(release),
        key=row["result_key"],
        content_hash=row["run_content_hash"],
        origin=Origin(row["origin"]),
        outcome=Outcome(row["outcome"]),
        **{name: row[name] for name in _COLUMNS},
    )


def with_steps(
    connection: Connection, rows: Iterable[RowMapping]
) -> Iterator[tuple[StoredRun, Steps]]:
    """Each result of the rows of `perfdb.queries.results.with_runs`, with its run's steps.

    A run may have millions of steps: they are read as columns, one run at a time.
    """
    for run in map(stored, rows):
        yield _configured(connection, run), _steps(connection, run.run_row_id)


def _configured(connection: Connection, run: StoredRun) -> StoredRun:
    """With the configuration of its worker; where nobody can read that, its figures stay."""
    if run.of_log or not run.finished:
        return run
    packed = connection.scalar(run_queries.file_of(run.run_row_id, WORKER_CONFIG))
    try:
        content = unpacked(packed, WORKER_CONFIG) if packed else b""
        read = parse_json(WORKER_CONFIG, content, WorkerConfiguration) if content else None
    except (DamagedBytesError, RunDirError):
        return replace(run, finished=False)
    return replace(run, configuration=read)


def _steps(connection: Connection, run_row_id: int) -> Steps:
    statement = run_queries.steps_of_row(run_row_id).with_only_columns(*_READING)
    found = connection.execute(statement, execution_options={"yield_per": STEPS_AT_ONCE})
    return Steps.joined([Steps.of(Reading(*row) for row in some) for some in found.partitions()])
