"""Execute one planned case: make its run directory, start it, watch it, and say how it ended."""

import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import perfdb
from perfdb.errors import LeftAtWorkError, PerfdbError
from perfdb.hardware import readable
from perfdb.jsonfile import write_atomically
from perfdb.messages import note_text
from perfdb.record import Outcome
from perfdb.run_record import RunRecord
from perfdb.rundir import RunDir
from perfdb.validity import contradiction
from runner import devices, environment
from runner.backends import Command
from runner.diagnosis import Diagnosis, diagnose
from runner.launchers import Process
from runner.plan import ExecutionTarget, Planned
from runner.progress import Watcher

POLL_S = 0.3
STOPPED = "stopped by the user"
LOG_TAIL_BYTES = 200_000
"""How many bytes at the end of each log are searched for the reason of a failure."""


class OverdueError(LeftAtWorkError):
    """Processes of a run that took too long do not end."""


def execute(
    planned: Planned, target: ExecutionTarget, watcher: Watcher
) -> tuple[RunDir, RunRecord]:
    """Run a case to its end, whatever that is, once no other run has its devices.

    Raises KeyboardInterrupt after a clean stop, LeftAtWorkError where processes of the run do not
    end, both once the record is written, and OSError where files cannot be written.
    """
    names = devices.of_run(planned.point.case.num_gpus, target.machine, os.environ)
    with devices.held(names, watcher.waiting):
        run = _new_directory(planned.point.name, target.output)
        with run.held():
            return run, _executed(run, planned, target, watcher)


def _new_directory(name: str, output: Path) -> RunDir:
    """A directory that no other run has, even of another runner at the same moment."""
    slug = re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-")
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    path = output / f"{slug[:80]}-{stamp}-{secrets.token_hex(3)}"
    path.mkdir(parents=True)
    return RunDir(path)


def _executed(
    run: RunDir, planned: Planned, target: ExecutionTarget, watcher: Watcher
) -> RunRecord:
    backend = target.backends[planned.point.case.framework]
    command = backend.command(planned.point, run)
    record = _record(planned, run, target, command)
    run.write_record(record)
    write_atomically(run.recipe, planned.file.text)
    write_atomically(run.worker_config, backend.worker_config(planned.point))
    exit_code, diagnosis = -1, Diagnosis(Outcome.FAILED, "the runner itself failed")
    try:
        process = target.launcher.start(command, run)
        exit_code, diagnosis = _watch(process, run, planned, watcher)
        if diagnosis.outcome is Outcome.FINISHED:
            other = contradiction(record, run.read_steps(), run.read_worker())
            diagnosis = Diagnosis(Outcome.FAILED, note_text(other)) if other else diagnosis
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
        now = datetime.now(UTC)
        record = record.ended(diagnosis.outcome, now, exit_code, diagnosis.error)
        record = _with_worker_versions(record, run)
        run.write_record(record)
    return record


def _record(planned: Planned, run: RunDir, target: ExecutionTarget, command: Command) -> RunRecord:
    point, container = planned.point, planned.release.container
    variables = target.launcher.variables(command)
    return RunRecord(
        run_id=run.path.name,
        case=point.case,
        release=planned.release,
        recipe=planned.file.reference,
        environment=environment.capture(target.machine, container, planned.file.path, variables),
        command=tuple(map(readable, target.launcher.argv(command, run))),
        warmup_steps=point.warmup_steps,
        measured_steps=point.measured_steps,
        seed=point.seed,
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
    packages = record.environment.packages
    known["packages"] = {name: summary.versions.get(name) or packages[name] for name in packages}
    return record.model_copy(update={"environment": record.environment.model_copy(update=known)})


def _watch(
    process: Process, run: RunDir, planned: Planned, watcher: Watcher
) -> tuple[int, Diagnosis]:
    """Wait for the end, showing steps; stop it after its timeout, or at Ctrl-C.

    Raises KeyboardInterrupt and LeftAtWorkError.
    """
    point = planned.point
    total = point.warmup_steps + point.measured_steps
    deadline = time.monotonic() + point.timeout_s
    try:
        while (exit_code := process.poll()) is None:
            watcher.steps_done(run.read_steps(), total)
            if time.monotonic() > deadline:
                return _overdue(process, f"stopped after {point.timeout_s:g} s (timeout_s)")
            time.sleep(POLL_S)
    except KeyboardInterrupt as reason:
        try:
            process.stop()
        except LeftAtWorkError as error:  # no other run may start now
            raise KeyboardInterrupt(f"{str(reason) or STOPPED}; {error}") from error
        raise
    steps = run.read_steps()
    watcher.steps_done(steps, total)
    return exit_code, diagnose(exit_code, steps, total, _log_lines(run))


def _overdue(process: Process, reason: str) -> tuple[int, Diagnosis]:
    """End a run that takes too long."""
    try:
        process.stop()
        return process.poll() or 0, Diagnosis(Outcome.TIMED_OUT, reason)
    except LeftAtWorkError as error:
        raise OverdueError(f"{reason}; {error}") from error


def _log_lines(run: RunDir) -> Iterator[str]:
    """The ends of the raw logs, ranks before the launcher, which only points at their errors."""
    for log in reversed(run.logs()):
        with suppress(OSError), log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - LOG_TAIL_BYTES))
            yield from file.read().decode(errors="replace").splitlines()
