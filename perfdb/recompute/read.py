"""What recomputing reads from the store: measured results, and the steps of their runs."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from pydantic import ConfigDict, Field
from sqlalchemy import Connection, RowMapping

from perfdb.db import keys
from perfdb.db.packing import unpacked
from perfdb.db.rows import ResultRow
from perfdb.db.tables import steps
from perfdb.errors import DamagedBytesError, RunDirError
from perfdb.formats import AVERAGES, Reading
from perfdb.formats.columns import Steps
from perfdb.jsonfile import parse_json
from perfdb.queries import runs as run_queries
from perfdb.recompute.figures import Stored
from perfdb.record import Frozen, Note, Origin, Outcome, Release, WorkerConfiguration
from perfdb.rundir import WORKER_CONFIG

AT_ONCE = 1 << 12
"""How many steps are held as rows at a time."""


class _Run(Frozen):
    """A row of `perfdb.queries.results.with_runs`: the run, and how it ended."""

    model_config = ConfigDict(extra="ignore")

    result_id: int
    release_id: int
    run_id: str
    run_row_id: int
    recipe: str | None
    parser: str
    run_outcome: Outcome
    run_error: str | None
    run_content_hash: str


class _Figures(Frozen):
    """The same row: its result's own columns."""

    model_config = ConfigDict(extra="ignore")

    key: str = Field(alias="result_key")
    origin: Origin
    outcome: Outcome
    withheld: Note | None
    window: str | None
    num_steps: int | None
    num_means: int | None
    step_time_s: float | None
    step_time_mean_s: float | None
    step_time_stdev_s: float | None
    step_time_p10_s: float | None
    step_time_p90_s: float | None
    step_time_last_s: float | None
    tokens_per_sec_per_gpu: float | None
    model_tflops_per_sec_per_gpu: float | None
    flops_convention: str | None
    formula_version: int | None
    mfu: float | None
    peak_tflops: float | None
    peak_memory_bytes: int | None
    emitted: Mapping[str, float]
    notes: tuple[Note, ...]


def stored(row: RowMapping) -> Stored:
    """A row of `perfdb.queries.results.with_runs`."""
    run = _Run.model_validate(row)
    of_log = run.recipe is None
    return Stored(
        result=_result(row, run.run_content_hash),
        result_id=run.result_id,
        release_id=run.release_id,
        run_id=run.run_id,
        run_row_id=run.run_row_id,
        finished=run.run_outcome is Outcome.FINISHED or (of_log and _for_its_window(run)),
        of_log=of_log,
        averages=of_log and run.parser in AVERAGES,
    )


def with_steps(
    connection: Connection, rows: Iterable[RowMapping]
) -> Iterator[tuple[Stored, Steps]]:
    """Each result of the rows of `perfdb.queries.results.with_runs`, with its run's steps.

    A run may have millions of steps: they are read as columns, one run at a time.
    """
    for result in map(stored, rows):
        yield _configured(connection, result), _steps(connection, result.run_row_id)


def _configured(connection: Connection, given: Stored) -> Stored:
    """With what its worker was told to do; where nobody can read that, its figures stay."""
    if given.of_log or not given.finished:
        return given
    packed = connection.scalar(run_queries.file_of(given.run_row_id, WORKER_CONFIG))
    try:
        content = unpacked(packed, WORKER_CONFIG) if packed else b""
        told = parse_json(WORKER_CONFIG, content, WorkerConfiguration) if content else None
    except (DamagedBytesError, RunDirError):
        return replace(given, finished=False)
    return replace(given, configuration=told)


def _for_its_window(run: _Run) -> bool:
    """Whether a log's run has no figures only because of the steps that its window picked.

    A log that itself ends too early says why, and the reason is kept as the run's error.
    """
    return run.run_outcome is Outcome.INCOMPLETE and run.run_error is None


def _result(row: RowMapping, content: str) -> ResultRow:
    release = {"version": row["release"], **{name: row[name] for name in _RELEASE}}
    return ResultRow(
        case=keys.case_of(row),
        release=Release.model_validate(release),
        content_hash=content,
        **dict(_Figures.model_validate(row)),
    )


_RELEASE = ("framework", "container", "container_digest")


def _steps(connection: Connection, run_row_id: int) -> Steps:
    question = run_queries.steps_of_row(run_row_id).with_only_columns(*_COLUMNS)
    found = connection.execute(question, execution_options={"yield_per": AT_ONCE})
    return Steps.joined([Steps.of(Reading(*row) for row in some) for some in found.partitions()])


_COLUMNS = (steps.c.source_line, *(steps.c[name] for name in Reading._fields if name in steps.c))
"""The stored columns of a reading, in its order: the line comes first, the printed MFU last."""
