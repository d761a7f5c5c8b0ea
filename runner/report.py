"""What `perfdb run` reports: the plan, a row for each case, and the summary."""

from dataclasses import dataclass, replace

import numpy as np

from perfdb import aggregation, metrics
from perfdb.aggregation import Summary
from perfdb.groups import grouped
from perfdb.record import Outcome, RunRecord
from perfdb.rundir import RunDir
from runner.plan import Planned, Verdict
from runner.run import STOPPED


@dataclass(frozen=True)
class Row:
    """How one planned case went; figures are None where the run has none."""

    case: str
    status: str
    reason: str
    run_dir: str | None = None
    outcome: str | None = None
    num_steps: int | None = None
    step_time_s: float | None = None
    tokens_per_sec_per_gpu: float | None = None
    command: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether the case was to run and did not finish."""
        return self.status == "failed"


def not_run(planned: Planned, command: tuple[str, ...] = ()) -> Row:
    """The row of a case that is skipped, or of a dry run, with the command that would start it."""
    return Row(planned.point.name, planned.verdict.value, planned.reason, command=command)


def ran(planned: Planned, run: RunDir, record: RunRecord) -> Row:
    """The row of a case that was run; its step time is the median after warm-up."""
    finished = record.outcome is Outcome.FINISHED
    summary = _step_times(run, record) if finished else None
    case = record.case
    return Row(
        case=planned.point.name,
        status="finished" if finished else "failed",
        reason=record.error or "",
        run_dir=str(run.path),
        outcome=record.outcome.value if record.outcome else None,
        num_steps=summary.num_steps if summary else None,
        step_time_s=summary.median_s if summary else None,
        tokens_per_sec_per_gpu=metrics.tokens_per_sec_per_gpu(
            case.global_batch_size, case.sequence_length, summary.median_s, case.num_gpus
        )
        if summary
        else None,
    )


def broken_off(planned: Planned, error: BaseException) -> Row:
    """The row of a case at which all ended: somebody stopped it, or no file can be written."""
    stopped = isinstance(error, KeyboardInterrupt)
    return Row(
        case=planned.point.name,
        status="failed",
        reason=str(error) or (STOPPED if stopped else type(error).__name__),
        outcome=Outcome.INTERRUPTED.value if stopped else None,
    )


def done(planned: Planned, run: RunDir) -> Row:
    """The row of a case that was finished before, with the figures of that run."""
    row = ran(planned, run, run.read_record())
    return replace(row, status=planned.verdict.value, reason=planned.reason)


def counted(planned: list[Planned]) -> str:
    """'9 to run, 2 finished before, 30 skipped'."""
    words = {Verdict.RUN: "to run", Verdict.DONE: "finished before", Verdict.SKIP: "skipped"}
    counts = {verdict: sum(p.verdict is verdict for p in planned) for verdict in words}
    return ", ".join(f"{counts[verdict]} {word}" for verdict, word in words.items())


def skipped_reasons(planned: list[Planned]) -> list[tuple[str, list[str]]]:
    """Each reason for skipping, with the names of the cases that were skipped for it."""
    skipped = (attempt for attempt in planned if attempt.verdict is Verdict.SKIP)
    by_reason = grouped(skipped, lambda attempt: attempt.reason)
    return [(why, [attempt.point.name for attempt in some]) for why, some in by_reason.items()]


def _step_times(run: RunDir, record: RunRecord) -> Summary | None:
    steps = run.read_steps()
    window = aggregation.skip_warmup(record.warmup_steps)
    is_counted = window.pick([step.step for step in steps])
    is_counted &= ~np.array([step.skipped for step in steps], np.bool_)
    return aggregation.summarize(np.array([step.step_time_s for step in steps])[is_counted])
