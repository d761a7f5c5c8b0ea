"""From a parsed log to what is stored: a run with its steps, or the figures it prints. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from perfdb import flops, normalize, windows
from perfdb.db.rows import MeasuredRun, ResultRow, RunRow, StepRow
from perfdb.formats import ParsedLog, Reading
from perfdb.formats.numbers import finite, positive
from perfdb.formats.readings import Readings
from perfdb.record import Case, Origin, Outcome, Release, StepRecord, content_hash
from perfdb.windows import Steps

DEFAULT_WINDOW = windows.skip_warmup(10)
"""For a format that has no window of its own."""

SAME_TOKENS = 0.01
"""By how much a step's tokens may differ from GBS × sequence length, where labels are shifted."""

EMITTED = ("tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu", "mfu")
"""The rates that programs print beside a step."""

_TOLD = (Outcome.INCOMPLETE, Outcome.NO_DATA, Outcome.NAN_LOSS, Outcome.NAN_GRAD_NORM)
"""Outcomes that the log's own error explains best; the others' errors are lines of a program."""


@dataclass(frozen=True)
class LogRun:
    """What a log is of, under which id its run is stored, and the hash of all it was read from."""

    case: Case
    release: Release
    run_id: str
    content: str


def window_of(log: ParsedLog, asked: windows.Window | None) -> windows.Window:
    """The steps to take figures over: those asked for, else those that the format names."""
    return asked or (windows.named(log.window) if log.window else DEFAULT_WINDOW)


def measured(log: ParsedLog, of: LogRun, window: windows.Window) -> MeasuredRun:
    """A run with its steps and its one result, by the same arithmetic as a run directory's."""
    steps = [step for _, step in log.steps]
    outcome, withheld = judged(log, steps, window)
    identity = {"case": of.case.key, "release": of.release.key, "run": of.run_id}
    said = {"files": of.content, "case": of.case.model_dump(mode="json"), "window": window.name}
    content = content_hash(said | {"release": of.release.key})
    result = ResultRow(
        case=of.case,
        release=of.release,
        key=content_hash(identity | {"origin": Origin.MEASURED}),
        content_hash=content,
        origin=Origin.MEASURED,
        outcome=outcome,
        withheld=withheld,
        formula_version=flops.FORMULA_VERSION,
    )
    if withheld is None:
        result = normalize.with_figures(result, steps, window)
        result = without_rates(result) if odd_step(steps, of.case, window) else result
        result = replace(result, emitted=emitted(log, window, window.pick(steps)))
    run = _run_row(log, of.run_id, result, window.pick(steps))
    return MeasuredRun(run, tuple(map(_step_row, log.readings)), result)


def emitted(log: ParsedLog, window: windows.Window, picked: Steps) -> Mapping[str, float]:
    """What the program itself says of a window's steps, beside what is computed of them.

    The median of each rate over the steps that print it, else the average that the log ends with
    where that is over the same window. A rate of 0 is not known.
    """
    said = log.emitted.model_dump() if picked and window.name == log.window else {}
    readings = Readings.of(log.readings)
    inside = np.isin(readings.step, [step.step for step in picked])
    for field in EMITTED:
        printed = readings.column(field).at(inside)
        known = printed.known & np.isfinite(printed.values) & (printed.values > 0)
        said |= {field: float(np.median(printed.values[known]))} if known.any() else {}
    return {field: value for field, value in said.items() if positive(value)}


def _step_row(reading: Reading) -> StepRow:
    """A step with the rates that were printed beside it."""
    return StepRow(
        step=reading.step,
        step_time_s=reading.step_time_s,
        step_time_min_s=None,
        loss=finite(reading.loss),
        grad_norm=finite(reading.grad_norm),
        tokens=reading.tokens,
        peak_memory_bytes=reading.peak_memory_bytes,
        skipped=reading.skipped,
        source_line=reading.line,
        tokens_per_sec_per_gpu=positive(reading.tokens_per_sec_per_gpu),
        model_tflops_per_sec_per_gpu=positive(reading.model_tflops_per_sec_per_gpu),
    )


def judged(log: ParsedLog, steps: Steps, window: windows.Window) -> tuple[Outcome, str | None]:
    """How the run ended, by its log and its steps, and why it has no figures if it has none."""
    outcome = log.outcome or Outcome.INCOMPLETE
    if outcome is not Outcome.FINISHED:
        told = _plain(log.error) if outcome in _TOLD else None
        return outcome, told or normalize.WITHHELD[outcome]
    skipped = next((step.step for step in window.pick(steps) if step.skipped), None)
    if skipped:
        return Outcome.INCOMPLETE, f"the optimizer skipped step {skipped}"
    return normalize.not_a_number(steps) or (outcome, None)


def odd_step(steps: Steps, case: Case, window: windows.Window) -> StepRecord | None:
    """The first step of a window that says other tokens than GBS × sequence length.

    Samples of many lengths are no work that a rate can be computed for from the case.
    """
    expected = case.global_batch_size * case.sequence_length
    for step in window.pick(steps):
        if step.tokens is not None and abs(step.tokens / expected - 1) > SAME_TOKENS:
            return step
    return None


def without_rates(result: ResultRow) -> ResultRow:
    """The step time alone, where steps of other tokens than the case's give no rate."""
    return replace(
        result,
        tokens_per_sec_per_gpu=None,
        model_tflops_per_sec_per_gpu=None,
        flops_convention=None,
        mfu=None,
        peak_tflops=None,
    )


def printed(log: ParsedLog, case: Case, release: Release) -> ResultRow:
    """A result of a file that sums up, with its figures as they were printed."""
    identity = {"case": case.key, "release": release.key, "origin": Origin.PUBLISHED}
    figures = log.emitted.model_dump(mode="json")
    return ResultRow(
        case=case,
        release=release,
        key=content_hash(identity),
        content_hash=content_hash({"figures": figures, "window": log.window}),
        origin=Origin.PUBLISHED,
        outcome=Outcome.FINISHED,
        source_line=log.emitted_line,
        window=log.window,
        **figures,
    )


def _run_row(log: ParsedLog, run_id: str, result: ResultRow, picked: Steps) -> RunRow:
    last = log.readings[-1].step if log.readings else 0
    warmup = picked[0].step - 1 if picked else last
    return RunRow(
        run_id=run_id,
        recipe=None,
        outcome=result.outcome,
        error=_plain(log.error),
        exit_code=None,
        attempt=1,
        started_at=None,
        ended_at=None,
        warmup_steps=warmup,
        measured_steps=max(0, (log.planned_steps or last) - warmup),
        environment={"variables": dict(log.environment)} if log.environment else {},
        command=(),
        summary=None,
        content_hash=result.content_hash,
    )


def _plain(text: str | None) -> str | None:
    """Text without the character that PostgreSQL refuses."""
    return text.replace("\0", "\ufffd") if text else None
