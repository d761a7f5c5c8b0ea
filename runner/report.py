"""What `perfdb run` reports: the plan, a row for each case, and the summary."""

import shlex
from dataclasses import asdict, dataclass, replace

import click
import numpy as np
from rich.console import Console

from perfdb import aggregation, metrics, units
from perfdb.aggregation import Summary
from perfdb.cli.options import print_json, print_table
from perfdb.groups import grouped
from perfdb.record import Outcome
from perfdb.run_record import RunRecord
from perfdb.rundir import RunDir
from runner.plan import PlanAction, Planned
from runner.run import STOPPED

NAMES_SHOWN = 3


@dataclass(frozen=True)
class CaseRow:
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


def not_run(planned: Planned, command: tuple[str, ...] = ()) -> CaseRow:
    """The row of a case that is skipped, or of a dry run, with the command that would start it."""
    return CaseRow(planned.point.name, planned.action.value, planned.reason, command=command)


def ran(planned: Planned, run: RunDir, record: RunRecord) -> CaseRow:
    """The row of a case that was run; its step time is the median after warm-up."""
    finished = record.outcome is Outcome.FINISHED
    summary = _step_times(run, record) if finished else None
    case = record.case
    return CaseRow(
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


def broken_off(planned: Planned, error: BaseException) -> CaseRow:
    """The row of a case at which all ended: somebody stopped it, or no file can be written."""
    stopped = isinstance(error, KeyboardInterrupt)
    return CaseRow(
        case=planned.point.name,
        status="failed",
        reason=str(error) or (STOPPED if stopped else type(error).__name__),
        outcome=Outcome.INTERRUPTED.value if stopped else None,
    )


def finished_before(planned: Planned, run: RunDir) -> CaseRow:
    """The row of a case that was finished before, with the figures of that run."""
    row = ran(planned, run, run.read_record())
    return replace(row, status=planned.action.value, reason=planned.reason)


def _counts(planned: list[Planned]) -> str:
    """'9 to run, 2 finished before, 30 skipped'."""
    words = {
        PlanAction.RUN: "to run",
        PlanAction.DONE: "finished before",
        PlanAction.SKIP: "skipped",
    }
    counts = {action: sum(p.action is action for p in planned) for action in words}
    return ", ".join(f"{counts[action]} {word}" for action, word in words.items())


def _skipped_reasons(planned: list[Planned]) -> list[tuple[str, list[str]]]:
    """Each reason for skipping, with the names of the cases that were skipped for it."""
    skipped = (attempt for attempt in planned if attempt.action is PlanAction.SKIP)
    by_reason = grouped(skipped, lambda attempt: attempt.reason)
    return [(why, [attempt.point.name for attempt in some]) for why, some in by_reason.items()]


def _step_times(run: RunDir, record: RunRecord) -> Summary | None:
    steps = run.read_steps()
    window = aggregation.skip_warmup(record.warmup_steps)
    is_counted = window.pick([step.step for step in steps])
    is_counted &= ~np.array([step.skipped for step in steps], np.bool_)
    return aggregation.summarize(np.array([step.step_time_s for step in steps])[is_counted])


def show_plan(console: Console, planned: list[Planned]) -> None:
    """What will run, what was done, and what is skipped and why."""
    console.print(f"plan: {_counts(planned)}", markup=False)
    for reason, names in _skipped_reasons(planned):
        shown = ", ".join(names[:NAMES_SHOWN])
        more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
        console.print(f"  skip {len(names)} ({shown}{more}): {reason}", markup=False)
    for attempt in planned:
        if attempt.action is PlanAction.RUN:
            case = attempt.point.case
            console.print(
                f"  run  {attempt.point.name} on {case.num_gpus} × {case.system}", markup=False
            )


def show_rows(rows: list[CaseRow], *, dry_run: bool, as_json: bool) -> None:
    """On stdout, how the cases went or would be started; nothing where none has been begun."""
    if as_json:
        print_json({"cases": [asdict(row) for row in rows]})
    elif dry_run:
        _commands(rows)
    else:
        _summary(rows)


def _commands(rows: list[CaseRow]) -> None:
    """On stdout, a line of shell for each case that would run."""
    for row in rows:
        if row.command:
            click.echo(shlex.join(row.command))


def _summary(rows: list[CaseRow]) -> None:
    """The summary table on stdout; skipped cases were listed with the plan."""
    shown = [row for row in rows if row.status != PlanAction.SKIP.value]
    if not shown:
        return
    before = sum(row.status == PlanAction.DONE.value for row in shown)
    title = units.counted(len(shown) - before, "run")
    print_table(
        f"{title}, {before} finished before" if before else title,
        ("Case", "Status", "Step time (s)", "Tokens/s/GPU", "Steps", "Run directory or reason"),
        [
            (
                row.case,
                row.status if row.status == PlanAction.DONE.value else row.outcome or row.status,
                units.significant(row.step_time_s),
                units.number(row.tokens_per_sec_per_gpu),
                row.num_steps,
                row.reason or row.run_dir,
            )
            for row in shown
        ],
    )
