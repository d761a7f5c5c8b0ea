"""One `perfdb run`: plans the cases of recipes, and runs them one after the other."""

import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType

import click
from rich.console import Console

from perfdb import hardware, recipe, units
from perfdb.errors import Diagnostic, InputError, PerfdbError
from perfdb.hardware import Machine
from perfdb.rundir import RunDir
from runner import devices, history, report
from runner.backends import BACKENDS, Backend
from runner.history import History
from runner.launchers import LAUNCHERS, Launcher
from runner.plan import AT_WORK, FINISHED, Availability, PlanAction, Planned, Support, plan
from runner.progress import watching
from runner.report import CaseRow
from runner.run import ExecutionTarget, execute


@dataclass(frozen=True)
class Tools:
    """The machine, frameworks and launchers of a session. Tests use others than the default."""

    machine: Machine = field(default_factory=hardware.detect)
    backends: Mapping[str, Backend] = field(default_factory=lambda: BACKENDS)
    launchers: Mapping[str, Launcher] = field(default_factory=lambda: LAUNCHERS)


@dataclass(frozen=True)
class Request:
    """What the command line asks for."""

    paths: tuple[Path, ...]
    only: str
    output: Path
    launcher: str
    dry_run: bool
    repeat: int
    gate: frozenset[str]
    as_json: bool


def run_session(request: Request, tools: Tools) -> int:
    """Plan and run what a command line asks for, print the report, and return the exit code."""
    _check_output(request.output)
    files = recipe.load(request.paths)
    before = history.read(request.output)
    planned = plan_cases(files, request, before, tools)
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    report.show_plan(console, planned)
    rows: list[CaseRow] = []
    try:
        if request.dry_run:
            rows += [_dry_run_row(attempt, request, before, tools) for attempt in planned]
        else:
            with _writing(request.output):
                history.mark_interrupted(before)
                target = _target(request, tools)
                run_all(console, planned, target, before, rows)
    except (KeyboardInterrupt, PerfdbError):
        if any(row.outcome for row in rows):  # else the error says all there is to say
            report.show_rows(rows, dry_run=False, as_json=request.as_json)
        raise
    report.show_rows(rows, dry_run=request.dry_run, as_json=request.as_json)
    return 1 if any(row.failed for row in rows) or request.gate & _closed_gates(rows) else 0


def _check_output(output: Path) -> None:
    """Raises InputError where ingest would refuse the path of every run, or it cannot be one."""
    name = hardware.readable(str(output))
    if name != str(output):
        raise InputError(
            Diagnostic("--output", f"{name} is not UTF-8", remedy="name another folder")
        )
    try:
        output.is_dir()
    except OSError as error:
        message = f"{output}: {error.strerror}"
        raise InputError(Diagnostic("--output", message, remedy="name another folder")) from error


@contextmanager
def _writing(output: Path) -> Iterator[None]:
    """Raises InputError where run directories cannot be made or written, as on a full disk."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        message = f"no run directory can be made in {output}"
        if output.is_dir():
            message = f"{output} cannot be written"
        remedy = "make room, or name a folder that can be written"
        problem = Diagnostic("--output", f"{message}: {error.strerror or error}", remedy=remedy)
        raise InputError(problem) from error


def _closed_gates(rows: Sequence[CaseRow]) -> frozenset[str]:
    """The gates of `--fail-on` that the rows close."""
    statuses = {row.status for row in rows}
    closed = {
        "skipped": PlanAction.SKIP.value in statuses,
        "unmeasured": statuses <= {PlanAction.SKIP.value, PlanAction.DONE.value},
    }
    return frozenset(name for name, closes in closed.items() if closes)


def _target(request: Request, tools: Tools) -> ExecutionTarget:
    launcher = tools.launchers[request.launcher]
    return ExecutionTarget(request.output, tools.machine, launcher, tools.backends)


def plan_cases(
    files: Sequence[recipe.RecipeFile], request: Request, before: History, tools: Tools
) -> list[Planned]:
    """The plan of this machine. Raises InputError where `--only` matches nothing."""
    for problem in before.problems:
        click.echo(f"warning: {problem}", err=True)
    available = Availability(
        machine=tools.machine,
        frameworks={
            name: Support(backend.version(), backend.unsupported)
            for name, backend in tools.backends.items()
        },
        done=before.done,
        cores=len(devices.cores()),
        container=hardware.readable(os.environ.get("PERFDB_CONTAINER", "")) or None,
        running=before.running,
    )
    planned = plan(files, available, only=request.only, repeat=request.repeat)
    if not planned:
        some = files[: report.NAMES_SHOWN]
        names = ", ".join(point.name for file in some for point in file.points[:1])
        message = f"{request.only!r} matches none of the cases"
        raise InputError(Diagnostic("--only", message, remedy=f"their names are like {names}"))
    return planned


def _dry_run_row(planned: Planned, request: Request, before: History, tools: Tools) -> CaseRow:
    """The row of a dry run: the command that would start a case, or what is known of it."""
    if planned.action is not PlanAction.RUN:
        return _not_run(planned, before)
    directory = RunDir(request.output / "RUN")
    command = tools.backends[planned.point.case.framework].command(planned.point, directory)
    return report.not_run(planned, tools.launchers[request.launcher].argv(command, directory))


def run_all(
    console: Console,
    planned: Sequence[Planned],
    target: ExecutionTarget,
    before: History,
    rows: list[CaseRow],
) -> None:
    """Run what is to run, one attempt after the other; a failed case does not stop the rest.

    Adds a row for each to `rows`, also for the one that it breaks off at.
    """
    stop_on_sigterm()
    total = sum(attempt.action is PlanAction.RUN for attempt in planned)
    number = 0
    for attempt in planned:
        if attempt.action is not PlanAction.RUN:
            rows.append(_not_run(attempt, before))
            continue
        number += 1
        try:
            rows.append(run_attempt(console, attempt, target, f"[{number}/{total}]"))
        except (KeyboardInterrupt, PerfdbError, OSError) as error:
            rows.append(report.broken_off(attempt, error))
            raise
        console.print(f"[{number}/{total}] {attempt.point.name}: {_status(rows[-1])}", markup=False)


def run_attempt(console: Console, planned: Planned, target: ExecutionTarget, title: str) -> CaseRow:
    """Run a case, unless another runner is working on it or has finished it since the plan."""
    with history.claimed(target.output, planned.measurement) as now:
        if now is None:
            return report.not_run(replace(planned, action=PlanAction.SKIP, reason=AT_WORK))
        if now.done[planned.measurement] >= planned.repeat:
            return _not_run(replace(planned, action=PlanAction.DONE, reason=FINISHED), now)
        with watching(console, planned, title) as watcher:
            return report.ran(planned, *execute(planned, target, watcher))


def _not_run(planned: Planned, before: History) -> CaseRow:
    """The row of a case that is skipped, or of the run that finished before."""
    if planned.action is PlanAction.SKIP:
        return report.not_run(planned)
    found = before.finished[planned.measurement][planned.repeat - 1]
    return report.finished_before(planned, found)


def stop_on_sigterm() -> None:
    """A scheduler's SIGTERM ends a run as cleanly as Ctrl-C, and the record says which it was."""
    job = os.environ.get("SLURM_JOB_ID")
    message = f"stopped by SIGTERM (Slurm job {job})" if job else "stopped by SIGTERM"

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt(message)

    signal.signal(signal.SIGTERM, stop)


def _status(row: CaseRow) -> str:
    if row.failed:
        return f"{row.outcome}: {row.reason} (see {row.run_dir})"
    if row.reason:
        return row.reason
    return f"{units.significant(row.step_time_s)} s/step, {row.num_steps} steps"
