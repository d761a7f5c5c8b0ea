"""How a run of a run directory ended, and whether it is whole: else it has no figures. Pure."""

import math
from collections.abc import Iterator, Mapping, Sequence

from perfdb.contradiction import contradiction
from perfdb.errors import Diagnostic
from perfdb.record import Outcome, RunRecord, StepRecord
from perfdb.rundir import StepsRead, Worker
from perfdb.windows import LONGEST_STEP_S, SHORTEST_STEP_S

WITHHELD: Mapping[Outcome, str] = {
    Outcome.FAILED: "the run failed",
    Outcome.OUT_OF_MEMORY: "the run was out of memory",
    Outcome.NAN_LOSS: "the loss was not a number",
    Outcome.NAN_GRAD_NORM: "the gradient norm was not a number",
    Outcome.TIMED_OUT: "the run reached its time limit",
    Outcome.INTERRUPTED: "the run was interrupted",
    Outcome.INCOMPLETE: "the run is incomplete",
    Outcome.NO_DATA: "the source holds no figures",
}
"""Why a result has no figures, if nothing more exact is known."""

CUT_OFF = "the run was cut off: its runner is gone and did not say how it ended"


def damage(where: str, read: StepsRead) -> Diagnostic | None:
    """Why a steps file cannot be used; None if it can, also if a crash cut off its last line.

    It cannot if a line that is not the last is unreadable, or if a step has impossible values.
    """
    last = read.steps[-1][0] if read.steps else 0
    unreadable = [problem for problem in read.problems if (problem.line or 0) < last]
    if unreadable or len(read.problems) > 1:
        return (unreadable or read.problems)[0]
    return next(
        (found for line, step in read.steps for found in _impossible(where, line, step)), None
    )


def _impossible(where: str, line: int, step: StepRecord) -> Iterator[Diagnostic]:
    """A problem for each impossible value of a step: its times, its tokens, its memory."""
    for name, seconds in (
        ("step_time_s", step.step_time_s),
        ("step_time_min_s", step.step_time_min_s),
    ):
        if seconds is not None and not SHORTEST_STEP_S <= seconds <= LONGEST_STEP_S:
            message = f"{seconds:g} seconds is no duration of a step"
            yield Diagnostic(where, message, field=name, line=line)
    for name, count in (("tokens", step.tokens), ("peak_memory_bytes", step.peak_memory_bytes)):
        if count is not None and count < 0:
            yield Diagnostic(where, f"{count} is less than nothing", field=name, line=line)


def judged(
    record: RunRecord, steps: Sequence[StepRecord], worker: Worker
) -> tuple[Outcome, str | None]:
    """How a run ended, and why it has no figures if it has none.

    By its record, its steps, and what is known of its worker.
    """
    broken = not_a_number(steps)
    if broken:
        return broken
    if record.outcome is None:
        return Outcome.INCOMPLETE, CUT_OFF
    if record.outcome is not Outcome.FINISHED:
        return record.outcome, WITHHELD[record.outcome]
    if other := contradiction(record, steps, worker):
        return Outcome.FAILED, other
    gap = _gap(record, steps)
    return (Outcome.INCOMPLETE, gap) if gap else (Outcome.FINISHED, None)


def not_a_number(steps: Sequence[StepRecord]) -> tuple[Outcome, str] | None:
    """The outcome and the reason if a loss or gradient norm is not finite: of the first one."""
    for step in steps:
        if step.loss is not None and not math.isfinite(step.loss):
            return Outcome.NAN_LOSS, f"the loss is {step.loss:g} at step {step.step}"
        if step.grad_norm is not None and not math.isfinite(step.grad_norm):
            reason = f"the gradient norm is {step.grad_norm:g} at step {step.step}"
            return Outcome.NAN_GRAD_NORM, reason
    return None


def _gap(record: RunRecord, steps: Sequence[StepRecord]) -> str | None:
    """How the steps are not the planned ones, each once and in order; None if they are."""
    for expected, step in enumerate(steps, start=1):
        if step.step > expected:
            return f"step {expected} is missing"
        if step.step < expected:
            return f"step {step.step} is there twice or out of order"
    planned = record.warmup_steps + record.measured_steps
    return f"{len(steps)} of {planned} steps" if len(steps) < planned else None
