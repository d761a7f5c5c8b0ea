"""Measured results as they are stored, and their figures recomputed from the stored steps."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Final

from sqlalchemy import Connection, RowMapping

from perfdb import aggregation, catalog, flops, measure, metrics, selection
from perfdb.aggregation import Window
from perfdb.db import keys
from perfdb.db.rows import ResultRow
from perfdb.db.sources import content_of
from perfdb.db.tables import results
from perfdb.db.tables import steps as stored_steps
from perfdb.errors import DamagedBytesError, RunDirError
from perfdb.flops.base import Convention
from perfdb.formats import AVERAGES, Reading
from perfdb.formats.columns import Steps
from perfdb.jsonfile import content_hash, parse_json
from perfdb.queries import runs as run_queries
from perfdb.record import NoteCode, Origin, Outcome, Release
from perfdb.run_record import WorkerConfiguration
from perfdb.rundir import WORKER_CONFIG

RECOMPUTED: Final = (
    "outcome", "withheld", "window", "num_steps", "num_means", "step_time_s", "step_time_mean_s",
    "step_time_stdev_s", "step_time_p10_s", "step_time_p90_s", "step_time_last_s",
    "tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu", "flops_convention", "mfu",
    "peak_tflops", "peak_memory_bytes", "emitted", "notes",
)  # fmt: skip
"""The columns of a result that follow from its steps, its case and the catalog."""

REVISED: Final = (*RECOMPUTED, "formula_version")
"""The columns that a revision of `perfdb recompute` has of its own."""

SAME: Final = 1e-12
"""The relative difference up to which two figures are equal: one sum, added in another order."""

STEPS_AT_ONCE: Final = 1 << 12
"""How many rows, of steps or of others, are held at a time."""

_OF_ONE_WINDOW: Final = (
    NoteCode.VARIABLE_LENGTH_STEPS, NoteCode.SKIPPED_STEPS, NoteCode.MODEL_SHAPE,
)  # fmt: skip
"""The notes that hold of the steps of one window, or of the catalog as it was."""

_STORED: Final = tuple(field.name for field in fields(ResultRow) if field.name in results.c)
_READING: Final = (
    stored_steps.c.source_line,
    *(stored_steps.c[name] for name in Reading._fields if name in stored_steps.c),
)
"""The stored columns of a reading, in its order: the line comes first, the printed MFU last."""


@dataclass(frozen=True)
class StoredRun:
    """A measured result as it is stored, and what is known of its run."""

    result: ResultRow
    """With the content hash of all files of the run."""
    result_id: int
    release_id: int
    run_id: str
    run_row_id: int
    outcome: Outcome | None
    """How the run ended, if its steps may give figures in some window; None: they do not."""
    of_log: bool
    """Whether the run was read from a log."""
    averages: bool = False
    """Whether that log is of one of `perfdb.formats.AVERAGES`."""
    configuration: WorkerConfiguration | None = None
    """What the worker of a run directory was configured to do."""


@dataclass(frozen=True)
class Asked:
    """The window and the convention to state figures in. None: those that each result has."""

    window: Window | None = None
    convention: Convention | None = None


def result_of(row: RowMapping, **changed: object) -> ResultRow:
    """The result of a row that has its columns, those of its case and its release."""
    release = {name: row[name] for name in ("framework", "container", "container_digest")}
    columns = {name: row[name] for name in _STORED if name in row}
    columns |= {"origin": Origin(row["origin"]), "outcome": Outcome(row["outcome"])}
    return ResultRow(
        case=keys.case_of(row),
        release=Release.model_validate({"version": row["release"], **release}),
        **columns | changed,
    )


def stored(row: RowMapping) -> StoredRun:
    """The run of a row of `perfdb.queries.results.with_runs`."""
    changed = {"key": row["result_key"], "content_hash": row["run_content_hash"]}
    result = result_of(row, **changed, source_line=None)
    of_log = row["recipe"] is None
    ended = Outcome(row["run_outcome"])
    # A log's run may lack figures only because of the steps in its window. A log that itself ends
    # too early has a reason, which is kept as the run's error.
    if of_log and ended is Outcome.INCOMPLETE and row["run_error"] is None:
        ended = Outcome.FINISHED
    return StoredRun(
        result=result,
        result_id=row["result_id"],
        release_id=row["release_id"],
        run_id=row["run_id"],
        run_row_id=row["run_row_id"],
        outcome=ended if ended is Outcome.FINISHED or (of_log and ended.is_stopped) else None,
        of_log=of_log,
        averages=of_log and row["parser"] in AVERAGES,
    )


def with_steps(
    connection: Connection, rows: Iterable[RowMapping]
) -> Iterator[tuple[StoredRun, Steps]]:
    """The run of each row of `perfdb.queries.results.with_runs`, with its steps.

    A run may have millions of steps: they are read as columns, one run at a time.
    """
    for run in map(stored, rows):
        question = run_queries.steps_of_row(run.run_row_id).with_only_columns(*_READING)
        found = connection.execute(question, execution_options={"yield_per": STEPS_AT_ONCE})
        parts = [Steps.of(Reading(*row) for row in some) for some in found.partitions()]
        yield _configured(connection, run), Steps.joined(parts)


def _configured(connection: Connection, run: StoredRun) -> StoredRun:
    """The run with its worker's configuration; if nobody can read that, its figures stay."""
    if run.of_log or run.outcome is None:
        return run
    files = connection.execute(run_queries.files_of_row(run.run_row_id))
    number = next((file.source_id for file in files if file.name == WORKER_CONFIG), None)
    try:
        content = b"" if number is None else b"".join(content_of(connection, number))
        read = parse_json(WORKER_CONFIG, content, WorkerConfiguration) if content else None
    except (DamagedBytesError, RunDirError):
        return replace(run, outcome=None)
    return replace(run, configuration=read)


def lost(run: StoredRun) -> str | None:
    """What the catalogue no longer has of what the figures follow from; None: it has all of it."""
    case, result = run.result.case, run.result
    if result.model_tflops_per_sec_per_gpu and case.model not in catalog.models():
        return f"its model {case.model!r} is not in the catalogue any more"
    if result.peak_tflops and case.system not in catalog.systems():
        return f"its system {case.system!r} is not in the catalogue any more"
    return None


def recomputed(run: StoredRun, steps: Steps, asked: Asked) -> ResultRow:
    """A result with its figures recomputed by today's formulas and catalog.

    The result stays as it is if its run failed or its window is unknown. The figures are
    withheld if the window holds no step, or if the optimizer skipped most of those in it. The
    convention is recorded all the same, for the next window that gives figures.
    """
    result, window = run.result, asked.window
    if window is None and result.window:
        window = aggregation.named(result.window, "window")
    if window is None or run.outcome is None:
        return result
    empty = ResultRow(
        case=result.case,
        release=result.release,
        key=result.key,
        content_hash=result.content_hash,
        origin=result.origin,
        outcome=run.outcome,
        window=window.name,
        formula_version=flops.FORMULA_VERSION,
        notes=tuple(note for note in result.notes if note.code not in _OF_ONE_WINDOW),
    )
    picked = selection.pick_steps(steps, window, averages=run.averages)
    emitted = result.emitted
    if window.name != result.window:  # a rate that is not stored for each step is left out
        emitted = selection.emitted_rates(picked, selection.EMITTED_PER_STEP, result.case)
    empty = measure.with_model_shape(replace(empty, emitted=emitted), run.configuration)
    figures = measure.with_figures(empty, picked, window)
    if run.of_log:
        figures = measure.with_token_rate(figures, picked)
    known = flops.CONVENTIONS.get(result.flops_convention or "", flops.DEFAULT)
    return _counted_as(figures, asked.convention or known)


def _counted_as(result: ResultRow, convention: Convention) -> ResultRow:
    """The result with its TFLOP/s and MFU in another convention; tokens per second stay."""
    if convention is flops.DEFAULT or measure.has_note(result, NoteCode.MODEL_SHAPE):
        return result
    case, tokens = result.case, result.tokens_per_sec_per_gpu
    if tokens is None or measure.has_note(result, NoteCode.VARIABLE_LENGTH_STEPS):
        return replace(result, flops_convention=convention.name)
    model = catalog.models().get(case.model)
    if model is None:
        return result
    per_token = flops.flops_per_token(model, case.sequence_length, convention, case.task)
    if per_token is None:
        return result
    achieved = metrics.model_tflops_per_sec_per_gpu(tokens, per_token)
    return replace(
        result,
        model_tflops_per_sec_per_gpu=achieved,
        flops_convention=convention.name,
        mfu=metrics.mfu(achieved, result.peak_tflops) if result.peak_tflops else None,
    )


def revised_hash(result: ResultRow, run: str) -> str:
    """The content hash of a recomputed result, by its figures and the hash of its run."""
    return content_hash({"of": run, **{name: getattr(result, name) for name in REVISED}})


def differences(before: ResultRow, after: ResultRow) -> Mapping[str, tuple[object, object]]:
    """The values of the derived columns in which two rows differ by more than a rounding error.

    The deviation of equal step times is 0, or a rounding error of the step time.
    """
    found = {}
    for name in RECOMPUTED:
        one, other = getattr(before, name), getattr(after, name)
        dust = SAME * (after.step_time_s or 0.0) if name.startswith("step_time_") else 0.0
        if not is_same(one, other, dust):
            found[name] = (one, other)
    return found


def is_same(one: object, other: object, dust: float = 0.0) -> bool:
    """Whether two values are equal; two figures, up to a rounding error or to `dust`."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=SAME, abs_tol=dust)
    return one == other
