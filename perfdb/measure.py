"""From steps to a result: the one arithmetic for run directories, logs and files of figures.

A run's steps or a page's row become one `ResultRow`. All functions are pure.
"""

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from math import isfinite
from operator import ge
from typing import Any, Final

import numpy as np

from perfdb import aggregation, catalog, flops, metrics, validity
from perfdb.aggregation import Window
from perfdb.db.rows import MeasuredRun, ResultRow, RunRow
from perfdb.formats import ParsedLog
from perfdb.formats.columns import StepColumn, Steps, kind_of
from perfdb.jsonfile import content_hash
from perfdb.messages import note_text
from perfdb.metrics import EMITTED
from perfdb.record import (
    MOST,
    Case,
    Figures,
    Note,
    NoteCode,
    Origin,
    Outcome,
    PublishedResult,
    Release,
    RunKind,
    Task,
)
from perfdb.run_record import RunRecord, WorkerConfiguration
from perfdb.rundir import StepsRead, Worker
from perfdb.selection import (
    Selection,
    emitted_rates,
    first_of_other_tokens,
    known_rates,
    pick_steps,
    storable,
    token_rate,
)

DEFAULT_WINDOW: Final = "skip_warmup(10)"

LEAST_OF_STOPPED: Final = 50
"""So many steps of a run that did not finish give figures, unless their window is asked for."""

_OWN_ERRORS: Final = (
    Outcome.INCOMPLETE, Outcome.NO_DATA, Outcome.NAN_LOSS, Outcome.NAN_GRAD_NORM,
)  # fmt: skip
"""Outcomes that the log's own error explains best; the others' errors are lines of a program."""


@dataclass(frozen=True)
class LogRun:
    """What a log is of, the id that its run is stored under, the hash of all it was read from."""

    case: Case
    release: Release
    run_id: str
    content: str
    averages: bool = False
    """Whether its format is one of those in `perfdb.formats.AVERAGES`."""
    notes: tuple[Note, ...] = ()
    """What the files next to the log say of its figures."""


def of_run(
    record: RunRecord,
    read: StepsRead,
    worker: Worker,
    content: str,
    window: Window | None = None,
) -> MeasuredRun:
    """The run of a run directory, with its steps and its one result.

    `content` is the hash of all that it was read from. The figures are taken over the window,
    by default over all steps but the warm-up.
    """
    outcome, withheld = validity.judged(record, read, worker)
    read = _storable(read)
    of = LogRun(record.case, record.release, record.run_id, content)
    hashed = content_hash({"of": content, "window": window.name}) if window else content
    why = withheld or _no_benchmark(record)
    notes = validity.unlike_nodes(record.environment.nodes)
    result = _unmeasured(of, hashed, outcome, why, notes)
    if why is None:
        result = with_model_shape(result, worker.configuration)
        window = window or aggregation.skip_warmup(record.warmup_steps)
        result = with_figures(result, pick_steps(timed_steps(read), window), window)
    return MeasuredRun(_run_row(record, worker, outcome, withheld, content), read, result)


def _run_row(
    record: RunRecord, worker: Worker, outcome: Outcome, withheld: Note | None, content: str
) -> RunRow:
    machine, error = record.environment, record.error
    if error is None and withheld and record.outcome is Outcome.FINISHED:
        error = note_text(withheld)
    return RunRow(
        run_id=record.run_id,
        recipe=record.recipe.name,
        outcome=outcome,
        error=error,
        exit_code=record.exit_code,
        attempt=record.attempt,
        kind=record.kind,
        started_at=_utc(record.started_at),
        ended_at=_utc(record.ended_at) if record.ended_at else None,
        warmup_steps=record.warmup_steps,
        measured_steps=record.measured_steps,
        environment=machine.model_dump(mode="json", exclude=None if machine.nodes else {"nodes"}),
        command=record.command,
        # Without NaN, which PostgreSQL refuses.
        summary=json.loads(worker.summary.model_dump_json()) if worker.summary else None,
        content_hash=content,
    )


def _no_benchmark(record: RunRecord) -> Note | None:
    """Why a run that went well has no figures all the same: it was not made for its timings."""
    if record.kind is RunKind.BENCHMARK:
        return None
    return Note(NoteCode.NO_BENCHMARK, {"kind": record.kind.value})


def _unmeasured(
    of: LogRun, hashed: str, outcome: Outcome, withheld: Note | None, notes: tuple[Note, ...] = ()
) -> ResultRow:
    """A measured result before any figure is computed."""
    return ResultRow(
        case=of.case,
        release=of.release,
        key=measured_key(of.case, of.release, of.run_id),
        content_hash=hashed,
        origin=Origin.MEASURED,
        outcome=outcome,
        withheld=withheld,
        formula_version=flops.FORMULA_VERSION,
        notes=notes,
    )


def measured_key(case: Case, release: Release, run_id: str) -> str:
    """The key of the result of a run."""
    identity = {"case": case.key, "release": release.key, "run": run_id}
    return content_hash(identity | {"origin": Origin.MEASURED})


def _utc(moment: datetime) -> datetime:
    """SQLite keeps no offset: all moments are stored in UTC."""
    return moment.astimezone(UTC)


def _storable(read: StepsRead) -> StepsRead:
    """The steps of a run directory in order, the first of those that were written twice.

    A loss that is not a number and a count beyond what the store can hold are not known.
    """
    columns, numbers = dict(read.columns), read.columns["step"]
    for name in ("loss", "grad_norm"):
        columns[name] = tuple(it if it is None or isfinite(it) else None for it in columns[name])
    for name in ("tokens", "peak_memory_bytes"):
        columns[name] = tuple(it if it is None or abs(it) <= MOST else None for it in columns[name])
    lines = read.lines
    if any(map(ge, numbers, numbers[1:])):
        first = {number: place for place, number in reversed(tuple(enumerate(numbers)))}
        in_order = [first[number] for number in sorted(first)]
        columns = {name: [one[place] for place in in_order] for name, one in columns.items()}
        lines = [lines[place] for place in in_order]
    return StepsRead(lines, columns)


def timed_steps(read: StepsRead) -> Steps:
    """The columns of a run directory that its figures are computed from."""
    names = ("skipped", "peak_memory_bytes")
    return Steps(
        np.array(read.lines, np.int64),
        np.array(read.columns["step"], np.int64),
        np.array(read.columns["step_time_s"], np.float64),
        {name: StepColumn.of(read.columns[name], kind_of(name)) for name in names},
    )


def of_log(log: ParsedLog, of: LogRun, window: Window, *, asked: bool = False) -> MeasuredRun:
    """The run of a log with its steps and its one result. `asked`: the window was asked for."""
    selection = pick_steps(log.steps, window, averages=of.averages)
    outcome = log.outcome or Outcome.INCOMPLETE
    withheld = _ended(outcome, log.error if outcome in _OWN_ERRORS else None)
    content = {"files": of.content, "case": of.case.model_dump(mode="json"), "window": window.name}
    hashed = content_hash(content | {"release": of.release.key})
    result = _unmeasured(of, hashed, outcome, withheld, of.notes)
    if outcome.is_stopped and selection.counts.sum() >= (1 if asked else LEAST_OF_STOPPED):
        result = replace(result, withheld=None)
    if result.withheld is None:
        result = with_token_rate(with_figures(result, selection, window), selection)
    if result.withheld is None:
        # The average that a log ends with is over the window of its format.
        same = len(selection.steps) and window.name == log.window
        average = log.emitted.model_dump() if same else {}
        rates = known_rates({**average, **emitted_rates(selection, EMITTED, of.case)})
        result = replace(result, emitted=rates)
    return MeasuredRun(_log_run_row(log, of.run_id, result, selection), storable(log.steps), result)


def _log_run_row(log: ParsedLog, run_id: str, result: ResultRow, selection: Selection) -> RunRow:
    last = log.steps[-1].step if log.steps else 0
    starts = [selection.steps[0].step - int(selection.counts[0])] if len(selection.steps) else []
    if selection.skipped:
        starts.append(int(selection.skipped.params["first"] or 0) - 1)
    warmup = min(starts, default=last)
    environment = {"variables": dict(log.environment), "gpu_memory_bytes": log.gpu_memory_bytes}
    return RunRow(
        run_id=run_id,
        recipe=None,
        outcome=result.outcome,
        error=_storable_text(log.error),
        exit_code=None,
        attempt=1,
        started_at=None,
        ended_at=None,
        warmup_steps=warmup,
        measured_steps=max(0, (log.planned_steps or last) - warmup),
        environment={name: value for name, value in environment.items() if value},
        command=(),
        summary=None,
        content_hash=result.content_hash,
    )


def log_window(log: ParsedLog, window: Window | None = None) -> Window:
    """The window that is asked for, else that of the log's format."""
    return window or aggregation.named(log.window or DEFAULT_WINDOW)


def _ended(outcome: Outcome, error: str | None) -> Note | None:
    """Why a log has no figures if its run did not finish."""
    if outcome is Outcome.FINISHED:
        return None
    text = _storable_text(error)
    return Note(NoteCode.REPORTED, {"text": text}) if text else validity.run_ended(outcome)


def of_summary(log: ParsedLog, of: LogRun) -> ResultRow:
    """A result of a file without steps, with its figures as they were printed.

    It is known by its bytes, as a run is: another file of the same case is a repeat of it.
    """
    outcome = log.outcome or Outcome.INCOMPLETE
    withheld = _ended(outcome, log.error)
    figures = printed_figures(log).model_dump(mode="json")
    peak = log.peak_memory_bytes if withheld is None else None
    content = {
        "case": of.case.key,
        "release": of.release.key,
        "figures": figures,
        "window": log.window,
        "withheld": withheld and withheld.params,
        "extras": log.extras,
        **({"peak_memory_bytes": peak} if peak else {}),
        **({"peak_tflops": log.peak_tflops} if log.peak_tflops else {}),
    }
    return ResultRow(
        case=of.case,
        release=of.release,
        key=content_hash({"file": of.run_id, "origin": Origin.PUBLISHED}),
        content_hash=content_hash(content),
        origin=Origin.PUBLISHED,
        outcome=outcome,
        withheld=withheld,
        source_line=log.emitted_line,
        window=log.window,
        extras=log.extras,
        peak_memory_bytes=peak,
        peak_tflops=log.peak_tflops if figures["mfu"] else None,
        **figures,
    )


def printed_figures(log: ParsedLog) -> Figures:
    """The figures that a file without steps states; none if the run did not finish."""
    return log.emitted if log.outcome is Outcome.FINISHED else Figures()


def of_page(row: PublishedResult) -> ResultRow:
    """A row of a page, with its figures as they were printed."""
    identity = {"case": row.case.key, "release": row.release.key, "origin": Origin.PUBLISHED}
    method = row.method.model_dump()
    content = row.model_dump(mode="json", include={"figures", "raw", "extras", "notes"})
    if row.peak_tflops:
        content["peak_tflops"] = row.peak_tflops
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
        peak_tflops=row.peak_tflops,
        **method,
        **row.figures.model_dump(),
    )


def with_figures(result: ResultRow, selection: Selection, window: Window) -> ResultRow:
    """The result with the figures of a selection.

    It is incomplete if that holds no step, or if the optimizer skipped most steps.
    """
    skipped = selection.skipped
    if skipped and 2 * int(skipped.params["num_steps"] or 0) > int(skipped.params["of"] or 0):
        return replace(result, outcome=Outcome.INCOMPLETE, withheld=skipped)
    if skipped:
        result = replace(result, notes=(*result.notes, skipped))
    times = aggregation.summarize(selection.steps.step_time_s, selection.counts)
    if times is None:
        none = window.none_held(selection.num_steps, selection.longest)
        return replace(result, outcome=Outcome.INCOMPLETE, withheld=none)
    return replace(
        result,
        window=window.name,
        peak_memory_bytes=selection.peak_memory_bytes or None,
        num_steps=times.num_steps,
        num_means=times.num_means,
        step_time_s=times.median_s,
        step_time_mean_s=times.mean_s,
        step_time_stdev_s=times.stdev_s,
        step_time_p10_s=times.p10_s,
        step_time_p90_s=times.p90_s,
        step_time_last_s=times.last_s,
        **_rates(result, times.median_s),
    )


def _rates(result: ResultRow, step_time_s: float) -> dict[str, Any]:
    """The rates of a result by its step time; those that no formula covers are left out."""
    case = result.case
    tokens = metrics.tokens_per_sec_per_gpu(
        case.global_batch_size, case.sequence_length, step_time_s, case.num_gpus
    )
    per_token = _flops_per_token(case.model, case.sequence_length, case.task)
    if per_token is None or has_note(result, NoteCode.MODEL_SHAPE):
        return {"tokens_per_sec_per_gpu": tokens}
    achieved = metrics.model_tflops_per_sec_per_gpu(tokens, per_token)
    peak = catalog.peak(case.system, case.precision)
    return {
        "tokens_per_sec_per_gpu": tokens,
        "model_tflops_per_sec_per_gpu": achieved,
        "flops_convention": flops.DEFAULT.name,
        "mfu": metrics.mfu(achieved, peak.tflops) if peak else None,
        "peak_tflops": peak.tflops if peak else None,
    }


@cache
def _flops_per_token(name: str, sequence_length: int, task: Task) -> float | None:
    """FLOPs per token; None if the model is not in the catalog, or no formula covers it."""
    model = catalog.models().get(name)
    return flops.flops_per_token(model, sequence_length, task=task) if model else None


def has_note(result: ResultRow, code: NoteCode) -> bool:
    """Whether one of the notes of a result has this code."""
    return any(note.code is code for note in result.notes)


def with_model_shape(result: ResultRow, configuration: WorkerConfiguration | None) -> ResultRow:
    """The result with a note where its run trained another shape of the model."""
    note = validity.model_shape(result.case.model, configuration)
    return replace(result, notes=(*result.notes, note)) if note else result


def with_token_rate(result: ResultRow, selection: Selection) -> ResultRow:
    """The rate of steps of samples of many lengths, as in fine-tuning: all tokens over all time.

    The FLOPs of a token depend on the length of its sample, which no step has: TFLOP/s and MFU are
    unknown. So is the rate where not every step has its tokens.
    """
    steps, counts = selection.steps, selection.counts
    if result.withheld is not None or first_of_other_tokens(steps, result.case) is None:
        return result
    rate = token_rate(steps.column("tokens"), steps.step_time_s, counts)
    note = Note(NoteCode.VARIABLE_LENGTH_STEPS)
    return replace(
        result,
        tokens_per_sec_per_gpu=rate and rate / result.case.num_gpus,
        model_tflops_per_sec_per_gpu=None,
        flops_convention=None,
        mfu=None,
        peak_tflops=None,
        notes=(*result.notes, note) if rate else result.notes,
    )


def _storable_text(text: str | None) -> str | None:
    """Text without the character that PostgreSQL refuses."""
    return text.replace("\0", "\ufffd") if text else None
