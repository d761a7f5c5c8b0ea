"""Submits the cases of a plan to Slurm, follows all jobs at once, and finds them again."""

import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

import click
from rich.console import Console

from perfdb.errors import RunError
from perfdb.jsonfile import read_json, write_atomically
from perfdb.record import Outcome, RunKind
from perfdb.run_record import RunRecord, StepRecord
from perfdb.rundir import RunDir
from perfdb.text import visible
from runner import environment, history
from runner.diagnosis import Diagnosis, diagnose
from runner.launchers import slurm
from runner.plan import AT_WORK, ExecutionTarget, Planned
from runner.printed import StepSource
from runner.progress import pace, showing
from runner.run import (
    LEAST_PATIENCE_S,
    Watchdog,
    checked,
    log_lines,
    new_directory,
    prepare,
    settle,
)
from runner.slurm.client import LaterError, Slurm, cancel, check, end_of, started_as, submit
from runner.slurm.jobs import SUBMITTED_AFTER_S, JobIntent, JobState, ending, is_without, seen

LOOK_EVERY_S = 1
"""How often the files of running jobs are looked at; Slurm is asked less often."""
Ended = Callable[[Planned, RunDir, RunRecord], None]


@dataclass(eq=False)
class Submitted:
    """A run that Slurm has, or is to get. Each is equal to itself alone: there are many."""

    planned: Planned
    run: RunDir
    record: RunRecord
    intent: JobIntent
    source: StepSource
    held: ExitStack
    watchdog: Watchdog = field(default_factory=lambda: Watchdog(LEAST_PATIENCE_S))
    job: JobState | None = None
    steps: Sequence[StepRecord] = ()
    without_since: float | None = None
    """Since when Slurm has not known it, or has called it over while its own end is missing."""
    asked_at: float = float("-inf")
    """When sbatch was last asked for a job of it, in seconds of the monotonic clock."""
    hangs: str = ""

    @property
    def total(self) -> int:
        """The steps that are planned."""
        return self.record.warmup_steps + self.record.measured_steps

    @property
    def cells(self) -> dict[str, str]:
        """How it is doing, by the titles of the table."""
        state, left_s = "submitted" if self.intent.job_id else "to submit", ""
        if self.job:
            state = self.job.state.lower()
        if self.steps:
            left_s = f"{(self.total - len(self.steps)) * self.steps[-1].step_time_s:.0f} s"
        return {
            "Case": self.intent.case_name,
            "Job": str(self.intent.job_id or "–"),
            "State": state,
            "Reason": self.job.reason if self.job and self.job.reason != "None" else "",
            "Nodes": str(self.intent.num_nodes),
            "Elapsed": self.job.elapsed if self.job else "",
            "Step": f"{len(self.steps)}/{self.total}" if self.steps else "",
            "Pace": pace(self.record.case, self.steps) if self.steps else "",
            "Left": left_s,
        }

    def write(self, **changed: object) -> None:
        """Change the intent, and write it."""
        self.intent = self.intent.model_copy(update=changed)
        write_atomically(self.run.job, self.intent.model_dump_json(indent=1))


def intent_of(planned: Planned, target: ExecutionTarget) -> JobIntent:
    """What is to be asked of Slurm for a case, under a name that no other job has."""
    assert target.cluster is not None, "the launcher has its settings"
    settings = target.cluster.changed(planned.point.slurm)
    return JobIntent(
        name=f"perfdb-{uuid.uuid4()}",
        case_name=planned.point.name,
        num_nodes=slurm.num_nodes(planned.point, settings),
        limit_s=settings.seconds(planned.point.timeout_s),
        written_at=datetime.now(UTC),
        after=target.after,
    )


def submitted(run: RunDir) -> JobIntent | None:
    """The intent that a run directory has; None where it has none. Raises RunDirError."""
    return read_json(run.job, JobIntent) if run.job.is_file() else None


class Follower:
    """Follows jobs until the last one has ended; reports each end to `ended`."""

    def __init__(self, target: ExecutionTarget, ended: Ended, console: Console) -> None:
        check()
        assert target.cluster is not None, "the launcher has its settings"
        self.target, self.ended, self.console = target, ended, console
        self.poll_s = target.cluster.poll_s
        self.slurm = Slurm()
        self.jobs: list[Submitted] = []
        self._asked_at = float("-inf")
        self._answered_at = float("-inf")
        self._looked_at_ns = 0

    def add(self, planned: Planned, before: history.History) -> str:
        """Take up the next attempt of a case: a job that is there, else a new one.

        The reason, where another runner is at work on it.
        """
        mine = {one.run.path for one in self.jobs}
        for run in before.submitted.get(planned.measurement, ()):
            if run.path in mine or run.read_record().outcome is not None:
                continue
            if run.in_progress():
                return AT_WORK
            self._take(planned, run)
            return ""
        with history.locked(self.target.output, planned.measurement) as is_mine:
            if not is_mine or self._is_elsewhere(planned):
                return AT_WORK
            run = new_directory(planned.point.name, self.target.output)
            held = ExitStack()
            held.enter_context(run.held())
            self.jobs.append(self._made(planned, run, held))
            self._looked_at_ns = self.target.output.stat().st_mtime_ns
        return ""

    def _is_elsewhere(self, planned: Planned) -> bool:
        """Whether another runner has taken up, or finished, what is to be submitted.

        Run directories are read only where another runner has made one since the last look.
        """
        output, key = self.target.output, planned.measurement
        if output.stat().st_mtime_ns == self._looked_at_ns:
            return False
        now = history.read(output, key)
        is_mine = any(one.planned.measurement == key for one in self.jobs)
        is_taken = bool(now.submitted.get(key)) or (key in now.running and not is_mine)
        return is_taken or len(now.finished.get(key, ())) >= planned.repeat

    def _take(self, planned: Planned, run: RunDir) -> None:
        """Follow a run that an earlier runner has submitted, or was about to."""
        held = ExitStack()
        held.enter_context(run.held())
        intent = submitted(run)
        assert intent is not None, "the history lists runs that have one"
        source = self._source(planned, run)
        made = Submitted(planned, run, run.read_record(), intent, source, held)
        made.asked_at = time.monotonic()
        self.jobs.append(made)

    def _source(self, planned: Planned, run: RunDir) -> StepSource:
        backend = self.target.backends[planned.point.case.framework]
        return StepSource(run, backend.command(planned.point, run).log_format)

    def _made(self, planned: Planned, run: RunDir, held: ExitStack) -> Submitted:
        """Write all of a run: its intent last, from which on it counts as submitted."""
        assert self.target.cluster is not None, "checked before"
        record, command = prepare(run, planned, self.target)
        settings = self.target.cluster.changed(planned.point.slurm)
        variables = environment.relevant(slurm.reaching(command, settings))
        known = record.environment.model_copy(update={"variables": variables})
        in_image = bool(record.release.container)
        known = environment.before_nodes(known, in_image=in_image)
        record = record.model_copy(update={"environment": known})
        run.write_record(record)
        intent = intent_of(planned, self.target)
        text = slurm.script(planned.point, self.target.cluster, command, run, intent)
        write_atomically(run.job_script, text)
        made = Submitted(planned, run, record, intent, StepSource(run, command.log_format), held)
        made.write()
        return made

    # ---------------------------------------------------------------------------------- the loop

    def follow(self, more: Iterator[Planned], before: history.History) -> None:
        """Submit, some at once, and follow all until the last has ended."""
        with showing(self.console) as show:
            left = True
            while left or self.jobs:
                while left and len(self.jobs) < self.target.max_jobs:
                    if (planned := next(more, None)) is None:
                        left = False
                    elif reason := self.add(planned, before):
                        self.console.print(visible(f"{planned.point.name}: {reason}"), markup=False)
                is_asked = self._turn()
                if is_asked or any(one.steps for one in self.jobs):
                    show([one.cells for one in self.jobs], self.slurm.problem)
                if self.jobs:
                    time.sleep(min(LOOK_EVERY_S, self.poll_s))

    def _turn(self) -> bool:
        """Look at each job once; ask Slurm where it is time. Whether it was."""
        now, known = time.monotonic(), None
        if is_time := now - self._asked_at >= self.poll_s:
            self._asked_at = now
            known = self.slurm.jobs([one.intent.name for one in self.jobs])
            self._answered_at = now if known is not None else self._answered_at
        for one in list(self.jobs):
            if known is not None:
                self._learn(one, known, now)
            if one.intent.job_id is None:
                self._submit(one, now, is_absent=known is not None and one.job is None)
            self._look(one, now)
        return is_time

    def _learn(self, one: Submitted, known: dict[str, list[JobState]], now: float) -> None:
        one.job = seen(known, one.intent, started_as(one.run))
        number = one.job.job_id if one.job else started_as(one.run)
        if number and number != one.intent.job_id:
            one.write(job_id=number)
        is_lacking = is_without(end_of(one.run), one.job)
        one.without_since = (one.without_since or now) if is_lacking else None

    def _submit(self, one: Submitted, now: float, *, is_absent: bool) -> None:
        """Ask sbatch where no job can be there: it was never asked, or long ago and in vain."""
        is_new = one.asked_at == float("-inf")
        if not is_new and not (is_absent and now - one.asked_at >= SUBMITTED_AFTER_S):
            return
        if not is_new and one.run.job_end.is_file():
            return
        one.asked_at = now
        try:
            one.write(job_id=submit(one.run))
            one.without_since = None
        except LaterError as error:
            self.slurm.problem = str(error)
        except RunError as error:
            self._end(one, -1, Diagnosis(Outcome.FAILED, f"sbatch refuses it: {error}"))

    def _look(self, one: Submitted, now: float) -> None:
        """Read what a job has left so far, and see whether it has ended."""
        if one not in self.jobs:
            return
        if one.job and one.job.state == "RUNNING":
            one.steps = one.source.read()
            is_saving = one.record.kind is RunKind.CHECKPOINT and len(one.steps) >= one.total
            if not (one.hangs or is_saving) and (reason := one.watchdog.hung(one.steps, now)):
                with suppress(LaterError):
                    cancel([one.job.job_id])
                    one.hangs = reason
        # Time in which Slurm does not answer says nothing of a job.
        without_s = max(0, self._answered_at - (one.without_since or now))
        if one.intent.job_id is None or (one.job and one.job.state == "PENDING"):
            return
        found = ending(one.intent, end_of(one.run), one.job, without_s)
        if found is None:
            return
        exit_code, why = found
        if one.hangs:
            why = Diagnosis(Outcome.TIMED_OUT, one.hangs)
        if why is None:
            why = diagnose(exit_code, one.source.read(), one.total, log_lines(one.run))
        self._end(one, exit_code, why)

    def _end(self, one: Submitted, exit_code: int, why: Diagnosis) -> None:
        """Write how a run ended, and how its earlier attempts did."""
        record = one.record.model_copy(
            update={"environment": environment.of_nodes(one.record.environment, one.run)}
        )
        record = settle(record, one.run, exit_code, checked(record, one.run, why))
        _settle_attempts(one.run, record)
        one.held.close()
        self.jobs.remove(one)
        self.ended(one.planned, one.run, record)

    def cancel(self) -> None:
        """Cancel every job, and write that it was."""
        cancel(one.intent.job_id for one in self.jobs if one.intent.job_id)
        for one in list(self.jobs):
            self._end(one, -1, Diagnosis(Outcome.INTERRUPTED, "cancelled by the user"))


def _settle_attempts(run: RunDir, record: RunRecord) -> None:
    """Write the records of attempts before the one that ended: runs of their own, cut off."""
    for number, folder in enumerate(sorted(run.path.parent.glob(f"{run.path.name}-attempt-*")), 1):
        attempt = RunDir(folder)
        if not attempt.is_run():
            reason = f"attempt {number} was cut off, and Slurm started the job again"
            had = environment.of_nodes(record.environment, attempt)
            named = record.model_copy(update={"run_id": folder.name, "environment": had})
            settle(named, attempt, -1, Diagnosis(Outcome.INTERRUPTED, reason))


def follow_all(follower: Follower, planned: Sequence[Planned], before: history.History) -> None:
    """Submit and follow what is to run. Raises KeyboardInterrupt, whether jobs go on or not."""
    try:
        follower.follow(iter(planned), before)
    except KeyboardInterrupt as stop:
        if not str(stop) and _is_to_cancel(follower):
            follower.cancel()
            raise
        if follower.jobs:
            number = len(follower.jobs)
            message = f"{number} jobs go on: the same command follows them again, `perfdb cancel`"
            click.echo(f"{message} ends them", err=True)
        raise


def _is_to_cancel(follower: Follower) -> bool:
    """Ask at a terminal what is to become of the jobs; elsewhere they go on."""
    if not follower.jobs or not (sys.stdin.isatty() and follower.console.is_terminal):
        return False
    question = f"\n{len(follower.jobs)} jobs are left. Cancel them? Else they go on"
    return click.confirm(question, default=False, err=True)
