"""Execute one planned case: make its run directory, start it, watch it, and say how it ended."""

import math
import os
import re
import secrets
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import perfdb
from perfdb.errors import LeftAtWorkError, PerfdbError
from perfdb.hardware import readable, secret_values, without_secrets, without_values
from perfdb.jsonfile import write_atomically
from perfdb.messages import note_text
from perfdb.record import Outcome, RunKind
from perfdb.run_record import RunRecord, StepRecord
from perfdb.rundir import RunDir
from perfdb.text import visible
from perfdb.validity import contradiction
from runner import devices, environment
from runner.backends import Command
from runner.diagnosis import Diagnosis, diagnose
from runner.launchers import Process
from runner.plan import ExecutionTarget, Planned
from runner.printed import StepSource
from runner.progress import Watcher

POLL_S = 0.3
LEAST_PATIENCE_S = 60
"""A run is not taken for hung before it has been without a step for so long."""
PATIENCE_STEPS = 20
"""A run is not taken for hung before so many steps of its median time could have been done."""
LONGEST_POLL_S = 5
"""What counts of the time between two polls: the rest is of a machine that was asleep."""
STOPPED = "stopped by the user"
LOG_TAIL_BYTES = 200_000
"""How many bytes at the end of each log are searched for the reason of a failure."""


class OverdueError(LeftAtWorkError):
    """Processes of a run that took too long do not end."""


def execute(
    planned: Planned,
    target: ExecutionTarget,
    watcher: Watcher,
    least_patience_s: float = LEAST_PATIENCE_S,
) -> tuple[RunDir, RunRecord]:
    """Run a case to its end, whatever that is, once no other run has its devices.

    A run that has done a step, and then none for `least_patience_s` and for 20 times the median
    step time, hangs: it is stopped.

    Raises KeyboardInterrupt after a clean stop, LeftAtWorkError where processes of the run do not
    end, both once the record is written, and OSError where files cannot be written.
    """
    names = devices.of_run(planned.point.case.num_gpus, target.machine, os.environ)
    with devices.held(names, watcher.waiting):
        run = new_directory(planned.point.name, target.output)
        with run.held():
            return run, _executed(run, planned, target, watcher, least_patience_s)


def new_directory(name: str, output: Path) -> RunDir:
    """A directory that no other run has, even of another runner at the same moment."""
    slug = re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-")
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    path = output / f"{slug[:80]}-{stamp}-{secrets.token_hex(3)}"
    path.mkdir(parents=True)
    return RunDir(path)


def _executed(
    run: RunDir,
    planned: Planned,
    target: ExecutionTarget,
    watcher: Watcher,
    least_patience_s: float,
) -> RunRecord:
    record, command = prepare(run, planned, target)
    exit_code, diagnosis = -1, Diagnosis(Outcome.FAILED, "the runner itself failed")
    try:
        process = target.launcher.start(command, run)
        source = StepSource(run, command.log_format)
        exit_code, diagnosis = _watch(process, source, planned, watcher, least_patience_s)
        diagnosis = checked(record, run, diagnosis)
    except LeftAtWorkError as error:
        is_late = isinstance(error, OverdueError)
        diagnosis = Diagnosis(Outcome.TIMED_OUT if is_late else Outcome.FAILED, str(error))
        raise
    except PerfdbError as error:
        diagnosis = Diagnosis(Outcome.FAILED, str(error))
    except KeyboardInterrupt as stop:
        diagnosis = Diagnosis(Outcome.INTERRUPTED, str(stop) or STOPPED)
        raise
    finally:
        record = settle(record, run, exit_code, diagnosis)
    return record


def prepare(run: RunDir, planned: Planned, target: ExecutionTarget) -> tuple[RunRecord, Command]:
    """Write what is known of a run before it starts."""
    backend = target.backends[planned.point.case.framework]
    command = backend.command(planned.point, run)
    record = _record(planned, run, target, command)
    run.write_record(record)
    write_atomically(run.recipe, planned.file.text)
    for name, text in backend.files(planned.point, run).items():
        write_atomically(run.path / name, text)
    return record, command


def checked(record: RunRecord, run: RunDir, diagnosis: Diagnosis) -> Diagnosis:
    """The diagnosis, unless a run that finished contradicts what was planned."""
    if diagnosis.outcome is not Outcome.FINISHED:
        return diagnosis
    other = contradiction(record, run.parse_steps(), run.read_worker())
    return Diagnosis(Outcome.FAILED, note_text(other)) if other else diagnosis


def _record(planned: Planned, run: RunDir, target: ExecutionTarget, command: Command) -> RunRecord:
    point, container = planned.point, planned.release.container
    variables = target.launcher.variables(command)
    return RunRecord(
        run_id=run.path.name,
        case=point.case,
        release=planned.release,
        recipe=planned.file.reference,
        environment=environment.capture(target.machine, container, planned.file.path, variables),
        command=tuple(without_secrets(readable(it)) for it in target.launcher.argv(command, run)),
        warmup_steps=point.warmup_steps,
        measured_steps=point.measured_steps,
        seed=point.seed,
        kind=point.kind,
        attempt=planned.repeat,
        runner_pid=os.getpid(),
        perfdb_version=perfdb.__version__,
        started_at=datetime.now(UTC),
    )


def _with_worker_versions(record: RunRecord, run: RunDir) -> RunRecord:
    """The record with the versions that the worker reports: CUDA, NCCL and packages."""
    summary = run.read_summary()
    if summary is None:
        return record
    known: dict[str, object] = {name: summary.versions.get(name) for name in ("cuda", "nccl")}
    versions = {**record.environment.packages, **summary.versions}
    known["packages"] = {
        name: versions[name] for name in environment.PACKAGES if versions.get(name)
    }
    known["python"] = summary.versions.get("python") or record.environment.python
    return record.model_copy(update={"environment": record.environment.model_copy(update=known)})


def _watch(
    process: Process,
    source: StepSource,
    planned: Planned,
    watcher: Watcher,
    least_patience_s: float,
) -> tuple[int, Diagnosis]:
    """Wait for the end, showing steps; stop it after its timeout, where it hangs, or at Ctrl-C.

    Raises KeyboardInterrupt and LeftAtWorkError.
    """
    point = planned.point
    total = point.warmup_steps + point.measured_steps
    watchdog, deadline = Watchdog(least_patience_s), time.monotonic() + point.timeout_s
    try:
        while (exit_code := process.poll()) is None:
            steps = source.read()
            watcher.steps_done(steps, total)
            is_saving = point.kind is RunKind.CHECKPOINT and len(steps) >= total
            if reason := None if is_saving else watchdog.hung(steps, time.monotonic()):
                return _overdue(process, reason)
            if time.monotonic() > deadline:
                return _overdue(process, f"stopped after {point.timeout_s:g} s (timeout_s)")
            time.sleep(POLL_S)
    except KeyboardInterrupt as reason:
        try:
            process.stop()
        except LeftAtWorkError as error:  # no other run may start now
            raise KeyboardInterrupt(f"{str(reason) or STOPPED}; {error}") from error
        raise
    steps = source.read()
    watcher.steps_done(steps, total)
    return exit_code, diagnose(exit_code, steps, total, log_lines(source.run))


@dataclass
class Watchdog:
    """Notices that a run hangs by the time that it has been without a step, once it had one."""

    least_patience_s: float
    num_steps: int = 0
    polled_at: float = math.inf
    waited_s: float = 0

    def hung(self, steps: Sequence[StepRecord], now: float) -> str:
        """Why a run with these steps is to be stopped at a moment in seconds; empty: it is not."""
        self.waited_s += max(0, min(now - self.polled_at, LONGEST_POLL_S))
        self.polled_at = now
        if len(steps) > self.num_steps:
            self.num_steps, self.waited_s = len(steps), 0
        if not steps or self.waited_s <= self.least_patience_s:
            return ""
        median_s = statistics.median(step.step_time_s for step in steps)
        if self.waited_s <= PATIENCE_STEPS * median_s:
            return ""
        return (
            f"stopped after {self.waited_s:.0f} s without a step: it hangs after step "
            f"{steps[-1].step}, and a step takes {median_s:.3g} s"
        )


def _overdue(process: Process, reason: str) -> tuple[int, Diagnosis]:
    """End a run that takes too long."""
    try:
        process.stop()
        return process.poll() or 0, Diagnosis(Outcome.TIMED_OUT, reason)
    except LeftAtWorkError as error:
        raise OverdueError(f"{reason}; {error}") from error


def settle(record: RunRecord, run: RunDir, exit_code: int, diagnosis: Diagnosis) -> RunRecord:
    """Write and return the record of a run that has ended, once its logs hold no secret."""
    secrets_here = secret_values(os.environ)
    redact_logs(run, secrets_here)
    error = diagnosis.error and visible(without_values(diagnosis.error, secrets_here))
    ended = record.ended(diagnosis.outcome, datetime.now(UTC), exit_code, error)
    ended = _with_worker_versions(ended, run)
    run.write_record(ended)
    return ended


def redact_logs(run: RunDir, values: Sequence[str]) -> None:
    """Take the secrets, also those of the shell's variables, out of the logs that a run left."""
    for log in run.logs():
        with suppress(OSError), log.open(encoding="latin-1", newline="") as file:  # any bytes
            if any(line != without_values(line, values) for line in file):
                file.seek(0)
                temporary = log.with_name(f".{log.name}")
                with temporary.open("w", encoding="latin-1", newline="") as written:
                    written.writelines(without_values(line, values) for line in file)
                temporary.replace(log)


def log_lines(run: RunDir) -> Iterator[str]:
    """The ends of the raw logs, ranks before the launcher, which only points at their errors."""
    for log in reversed(run.logs()):
        with suppress(OSError), log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - LOG_TAIL_BYTES))
            yield from file.read().decode(errors="replace").splitlines()
