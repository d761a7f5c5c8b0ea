"""From what was read to what is stored: a run's steps or a page's row become one result. Pure."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache

from perfdb import catalog, flops, metrics, skipped, trained, windows
from perfdb.content_hash import content_hash
from perfdb.db.rows import MeasuredRun, ResultRow, RunRow, StepRow
from perfdb.ended import judged
from perfdb.record import (
    Origin,
    Outcome,
    PublishedResult,
    RunRecord,
    StepRecord,
    Task,
    WorkerConfiguration,
    WorkerSummary,
)
from perfdb.rundir import StepsRead, Worker


def measured(
    record: RunRecord,
    read: StepsRead,
    worker: Worker,
    content: str,
    asked: windows.Window | None = None,
) -> MeasuredRun:
    """A run with its steps and its one result; `content` is the hash of all that it was read from.

    The result's figures are taken over the window that is asked for, else over all steps but the
    warm-up ones.
    """
    steps = [step for _, step in read.steps]
    outcome, withheld = judged(record, steps, worker)
    identity = {"case": record.case.key, "release": record.release.key, "run": record.run_id}
    result = ResultRow(
        case=record.case,
        release=record.release,
        key=content_hash(identity | {"origin": Origin.MEASURED}),
        content_hash=content_hash({"of": content, "window": asked.name}) if asked else content,
        origin=Origin.MEASURED,
        outcome=outcome,
        withheld=withheld,
        formula_version=flops.FORMULA_VERSION,
    )
    if withheld is None:
        result = shape_noted(result, worker.configuration)
        result = with_figures(result, steps, asked or windows.skip_warmup(record.warmup_steps))
    # The record of a finished run has no error.
    error = record.error or (withheld if record.outcome is Outcome.FINISHED else None)
    row = replace(_run_row(record, outcome, worker.summary, content), error=error)
    return MeasuredRun(row, step_rows(read), result)


def published_row(row: PublishedResult) -> ResultRow:
    """A row of a page, with its figures as they were printed."""
    identity = {"case": row.case.key, "release": row.release.key, "origin": Origin.PUBLISHED}
    method = row.method.model_dump()
    content = row.model_dump(mode="json", include={"figures", "raw", "extras", "notes"})
    return ResultRow(
        case=row.case,
        release=row.release,
        key=content_hash(identity),
        content_hash=content_hash(content | method),
        origin=Origin.PUBLISHED,
        outcome=Outcome.FINISHED,
        source_line=row.line,
        raw=row.raw,
        printed=row.printed,
        extras=row.extras,
        notes=row.notes,
        **method,
        **row.figures.model_dump(),
    )


def with_figures(
    result: ResultRow, steps: Sequence[StepRecord], window: windows.Window
) -> ResultRow:
    """The result with the figures of its steps in a window; incomplete if that holds no step."""
    within = window.pick(steps)
    left_out = [step.step for step in within if step.skipped]
    noted = skipped.noted(result, skipped.skips(left_out, [1] * len(left_out), len(within)))
    times, why_none = windows.summarise(within), window.why_none(len(steps))
    timed = noted if noted.withheld else with_times(noted, times, window, why_none)
    return with_memory(timed, max((step.peak_memory_bytes or 0 for step in steps), default=0))


def shape_noted(result: ResultRow, configuration: WorkerConfiguration | None) -> ResultRow:
    """The result with a note where its run trained another shape of the model, as it was told."""
    said = trained.difference(result.case.model, configuration)
    return replace(result, notes=(*result.notes, said)) if said else result


def with_memory(result: ResultRow, peak_bytes: int) -> ResultRow:
    """The result with the peak memory of all steps, in the window or not; 0 means unknown."""
    return replace(result, peak_memory_bytes=None if result.withheld else peak_bytes or None)


def with_times(
    result: ResultRow, times: windows.Summary | None, window: windows.Window, why_none: str
) -> ResultRow:
    """The result with the figures of a window's step times; incomplete if there are none."""
    if times is None:
        return replace(result, outcome=Outcome.INCOMPLETE, withheld=why_none)
    timed = replace(
        result,
        window=window.name,
        num_steps=times.num_steps,
        num_means=times.num_means,
        step_time_s=times.median_s,
        step_time_mean_s=times.mean_s,
        step_time_stdev_s=times.stdev_s,
        step_time_p10_s=times.p10_s,
        step_time_p90_s=times.p90_s,
        step_time_last_s=times.last_s,
    )
    return _with_rates(timed, times.median_s)


def _with_rates(result: ResultRow, step_time_s: float) -> ResultRow:
    case = result.case
    tokens = metrics.tokens_per_sec_per_gpu(
        case.global_batch_size, case.sequence_length, step_time_s, case.num_gpus
    )
    per_token = _flops_per_token(case.model, case.sequence_length, case.task)
    if per_token is None or trained.is_other(result.notes):
        return replace(result, tokens_per_sec_per_gpu=tokens)
    achieved = metrics.model_tflops_per_sec_per_gpu(tokens, per_token)
    peak = catalog.peak(case.system, case.precision)
    return replace(
        result,
        tokens_per_sec_per_gpu=tokens,
        model_tflops_per_sec_per_gpu=achieved,
        flops_convention=flops.DEFAULT.name,
        mfu=metrics.mfu(achieved, peak.tflops) if peak else None,
        peak_tflops=peak.tflops if peak else None,
    )


@cache
def _flops_per_token(name: str, sequence_length: int, task: Task) -> float | None:
    """FLOPs per token; None if the model is not in the catalogue, or no formula covers it."""
    model = catalog.models().get(name)
    return flops.flops_per_token(model, sequence_length, task=task) if model else None


def _run_row(
    record: RunRecord, outcome: Outcome, summary: WorkerSummary | None, content: str
) -> RunRow:
    return RunRow(
        run_id=record.run_id,
        recipe=record.recipe.name,
        outcome=outcome,
        error=record.error,
        exit_code=record.exit_code,
        attempt=record.attempt,
        started_at=_utc(record.started_at),
        ended_at=_utc(record.ended_at) if record.ended_at else None,
        warmup_steps=record.warmup_steps,
        measured_steps=record.measured_steps,
        environment=record.environment.model_dump(mode="json"),
        command=record.command,
        summary=_plain(summary) if summary else None,
        content_hash=content,
    )


def _plain(summary: WorkerSummary) -> Mapping[str, object]:
    """The summary as JSON without NaN, which PostgreSQL refuses."""
    plain: dict[str, object] = json.loads(summary.model_dump_json())
    return plain


def _utc(moment: datetime) -> datetime:
    """SQLite keeps no offset: all moments are stored in UTC."""
    return moment.astimezone(UTC)


def step_rows(read: StepsRead) -> tuple[StepRow, ...]:
    """One row for each step, in order: if a step was written twice, the first."""
    rows: dict[int, StepRow] = {}
    for line, step in read.steps:
        if step.step not in rows:
            rows[step.step] = StepRow(
                step=step.step,
                step_time_s=step.step_time_s,
                step_time_min_s=step.step_time_min_s,
                loss=_finite(step.loss),
                grad_norm=_finite(step.grad_norm),
                tokens=step.tokens,
                peak_memory_bytes=step.peak_memory_bytes,
                skipped=step.skipped,
                source_line=line,
            )
    return tuple(rows[number] for number in sorted(rows))


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
