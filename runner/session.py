"""One `perfdb run`: plans the cases of recipes, runs them one after the other, and reports."""

import os
import shlex
import signal
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import FrameType

import click
import numpy as np
from rich.console import Console

from perfdb import aggregation, catalog, hardware, metrics, recipe, units
from perfdb.cli import output
from perfdb.cli.options import print_json, print_table
from perfdb.errors import Diagnostic, InputError, PerfdbError
from perfdb.groups import grouped
from perfdb.hardware import Machine
from perfdb.recipe.slurm import load as load_settings
from perfdb.record import Outcome, RunKind
from perfdb.run_record import RunRecord
from perfdb.rundir import RunDir
from perfdb.text import visible
from runner import devices, fit, history
from runner.backends import BACKENDS, Backend
from runner.history import History
from runner.launchers import LAUNCHERS, Launcher, slurm
from runner.missing import missing
from runner.plan import AT_WORK, FINISHED, ExecutionTarget, PlanAction, Planned, plan
from runner.progress import watching
from runner.run import STOPPED, execute
from runner.slurm.follow import Follower, follow_all, intent_of
from runner.slurm.preflight import check_nodes

NAMES_SHOWN = 3


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
    only: tuple[str, ...]
    given: tuple[str, ...]
    output: Path
    launcher: str
    dry_run: bool
    repeat: int
    max_cases: int
    gate: frozenset[str]
    fit: bool
    fit_to: str | None
    as_json: bool
    cluster: Path | None = None
    slurm: tuple[str, ...] = ()
    max_jobs: int = 500
    preflight: bool = False
    after: tuple[int, ...] = ()
    missing_for: str | None = None
    db: str | None = None


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
    variables: Mapping[str, str] = field(default_factory=dict)
    script: str = ""
    proxy_of: str | None = None
    """The key of the original case; `changes` say how it was cut."""
    changes: tuple[str, ...] = ()


def run_session(request: Request, tools: Tools) -> int:
    """Plan and run what a command line asks for, print the report, and return the exit code."""
    name = hardware.readable(str(request.output))
    if name != str(request.output):  # ingest would refuse the path of every run
        problem = Diagnostic("--output", f"{name} is not UTF-8", remedy="name another folder")
        raise InputError(problem)
    files = recipe.load(request.paths, request.max_cases, request.only, request.given)
    with _writing(request.output):
        before = history.read(request.output)
    target = _target(request, tools)
    warn_of(before)
    planned = _narrowed(plan(files, target, before, repeat=request.repeat), request)
    console = output.console()
    show_plan(console, planned)
    rows: list[CaseRow] = []
    try:
        if request.dry_run:
            rows += [_dry_run_row(attempt, target, before) for attempt in planned]
        else:
            with _writing(request.output):
                history.mark_interrupted(before)
                run = follow if target.cluster else run_all
                run(console, planned, target, before, rows)
    except (KeyboardInterrupt, PerfdbError):
        if any(row.outcome for row in rows):  # else the error is enough
            show_rows(rows, request)
        raise
    show_rows(rows, request)
    return _exit_code({row.status for row in rows}, request.gate)


def _narrowed(planned: list[Planned], request: Request) -> list[Planned]:
    """A plan, where asked less what no comparison of two releases lacks. Raises InputError."""
    if request.missing_for is None:
        return planned
    lacks = missing(request.missing_for, request.db)
    return [lacks.narrowed(one) for one in planned]


def _exit_code(statuses: Collection[str], gate: frozenset[str]) -> int:
    closed = {
        "skipped": PlanAction.SKIP in statuses,
        "unmeasured": set(statuses) <= {PlanAction.SKIP, PlanAction.DONE},
    }
    return 1 if "failed" in statuses or any(closed[word] for word in gate) else 0


def _target(request: Request, tools: Tools) -> ExecutionTarget:
    """Where the runs of a request are executed. Raises ConfigError."""
    on_slurm = request.launcher == slurm.NAME
    cluster = load_settings(request.cluster, request.slurm) if on_slurm else None
    return ExecutionTarget(
        output=request.output,
        machine=hardware.Machine(cluster.system, None, 0, None, "") if cluster else tools.machine,
        cluster=cluster,
        max_jobs=request.max_jobs,
        preflight=request.preflight,
        after=request.after,
        launcher=tools.launchers[request.launcher],
        backends=tools.backends,
        cores=len(devices.cores()),
        fit=fit.hardware(request.fit_to, tools.machine) if request.fit_to or request.fit else None,
        container=hardware.readable(os.environ.get("PERFDB_CONTAINER", "")) or None,
    )


def warn_of(before: History) -> None:
    """On stderr, what is wrong with runs that are there."""
    for problem in before.problems:
        click.echo(f"warning: {problem}", err=True)


@contextmanager
def _writing(output: Path) -> Iterator[None]:
    """Raises InputError where run directories cannot be made or written, as on a full disk."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        message = f"no run directory can be made in {output}"
        if os.path.isdir(output):  # noqa: PTH112  # a name may be too long
            message = f"{output} cannot be written"
        remedy = "make room, or name a folder that can be written"
        problem = Diagnostic("--output", f"{message}: {error.strerror or error}", remedy=remedy)
        raise InputError(problem) from error


# --------------------------------------------------------------------------------------- running


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
            rows.append(_row_without_run(attempt, before))
            continue
        number += 1
        try:
            row = run_attempt(console, attempt, target, f"[{number}/{total}]")
        except (KeyboardInterrupt, PerfdbError, OSError) as error:
            rows.append(_broken_off(attempt, error))
            raise
        rows.append(row)
        _show_end(console, row, f"[{number}/{total}]")


def _show_end(console: Console, row: CaseRow, title: str) -> None:
    steps = f"{units.significant(row.step_time_s)} s/step, {row.num_steps} steps"
    ending = row.reason or (steps if row.num_steps else f"see {row.run_dir}")
    if row.status == "failed":
        ending = f"{row.outcome}: {row.reason} (see {row.run_dir})"
    console.print(visible(f"{title} {row.case}: {ending}"), markup=False)


def follow(
    console: Console,
    planned: Sequence[Planned],
    target: ExecutionTarget,
    before: History,
    rows: list[CaseRow],
) -> None:
    """Have Slurm run what is to run, many jobs at once. Adds a row for each to `rows`."""
    stop_on_sigterm()
    wanted = [attempt for attempt in planned if attempt.action is PlanAction.RUN]
    rows += [_row_without_run(one, before) for one in planned if one not in wanted]

    def ended(attempt: Planned, run: RunDir, record: RunRecord) -> None:
        is_finished = record.outcome is Outcome.FINISHED
        rows.append(_row(attempt, run, record, "finished" if is_finished else "failed"))
        number = sum(row.run_dir is not None and row.status != PlanAction.DONE for row in rows)
        _show_end(console, rows[-1], f"[{number}/{len(wanted)}]")

    follower = Follower(target, ended, console)
    new = [one for one in wanted if not before.submitted.get(one.measurement)]
    if target.preflight and new:
        check_nodes(console, new, target)
    follow_all(follower, wanted, before)


def run_attempt(console: Console, planned: Planned, target: ExecutionTarget, title: str) -> CaseRow:
    """Run a case, unless another runner is working on it or has finished it since the plan."""
    with history.claimed(target.output, planned.measurement) as now:
        if now is None:
            planned = replace(planned, action=PlanAction.SKIP, reason=AT_WORK)
            return _row_without_run(planned, History({}))
        if len(now.finished.get(planned.measurement, ())) >= planned.repeat:
            return _row_without_run(replace(planned, action=PlanAction.DONE, reason=FINISHED), now)
        with watching(console, planned, title) as watcher:
            run, record = execute(planned, target, watcher)
        is_finished = record.outcome is Outcome.FINISHED
        return _row(planned, run, record, "finished" if is_finished else "failed")


def stop_on_sigterm() -> None:
    """Make SIGTERM end a run as cleanly as Ctrl-C; the record names the signal."""
    job = os.environ.get("SLURM_JOB_ID")
    message = f"stopped by SIGTERM (Slurm job {job})" if job else "stopped by SIGTERM"

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt(message)

    signal.signal(signal.SIGTERM, stop)


# -------------------------------------------------------------------------------- rows of cases


def _row(planned: Planned, run: RunDir, record: RunRecord, status: str) -> CaseRow:
    """The row of a case that was run; its step time is the median after warm-up."""
    row = CaseRow(
        case=planned.point.name,
        status=status,
        reason=planned.reason or record.error or "",
        run_dir=str(run.path),
        outcome=record.outcome.value if record.outcome else None,
        proxy_of=record.case.proxy_of,
        changes=planned.changes,
    )
    if record.outcome is not Outcome.FINISHED or record.kind is not RunKind.BENCHMARK:
        return row
    steps = run.read_steps()
    is_counted = aggregation.skip_warmup(record.warmup_steps).pick([step.step for step in steps])
    is_counted &= ~np.array([step.skipped for step in steps], np.bool_)
    summary = aggregation.summarize(np.array([step.step_time_s for step in steps])[is_counted])
    if summary is None:
        return row
    case = record.case
    rate = metrics.tokens_per_sec_per_gpu(
        case.global_batch_size, case.sequence_length, summary.median_s, case.num_gpus
    )
    return replace(
        row,
        num_steps=summary.num_steps,
        step_time_s=summary.median_s,
        tokens_per_sec_per_gpu=rate,
    )


def _row_without_run(planned: Planned, before: History) -> CaseRow:
    """The row of a case that is skipped, or of the run that finished before, with its figures."""
    if planned.action is PlanAction.SKIP:
        return _skipped(planned)
    run = before.finished[planned.measurement][planned.repeat - 1]
    return _row(planned, run, run.read_record(), planned.action.value)


def _skipped(planned: Planned) -> CaseRow:
    """The row of a case that was not run."""
    point, changes = planned.point, planned.changes
    of, action = point.case.proxy_of, planned.action.value
    return CaseRow(point.name, action, planned.reason, proxy_of=of, changes=changes)


def _dry_run_row(planned: Planned, target: ExecutionTarget, before: History) -> CaseRow:
    """The row of a dry run: the command that would start a case, or what is known of it.

    A case that is skipped for where it is has its command, too: of several nodes, which the
    launchers do not start, that of each process.
    """
    backend = target.backends.get(planned.point.case.framework)
    if planned.action is PlanAction.DONE or not backend or backend.unsupported(planned.point):
        return _row_without_run(planned, before)
    directory = RunDir(target.output / "RUN")
    command, case = backend.command(planned.point, directory), planned.point.case
    if target.cluster and planned.action is PlanAction.RUN:
        made = slurm.script(
            planned.point, target.cluster, command, directory, intent_of(planned, target)
        )
        return replace(_skipped(planned), script=made)
    of_node = catalog.system(case.system).gpus_per_node or case.num_gpus
    argv = (command.python, *command.program)
    return replace(
        _skipped(planned),
        command=target.launcher.argv(command, directory) if case.num_gpus <= of_node else argv,
        variables=command.variables,
    )


def _broken_off(planned: Planned, error: BaseException) -> CaseRow:
    """The row of the case at which the session ended: it was stopped, or could not write."""
    stopped = isinstance(error, KeyboardInterrupt)
    reason = str(error) or (STOPPED if stopped else type(error).__name__)
    outcome = Outcome.INTERRUPTED.value if stopped else None
    return CaseRow(planned.point.name, "failed", reason, outcome=outcome)


# -------------------------------------------------------------------------------------- printing


def show_plan(console: Console, planned: Sequence[Planned]) -> None:
    """On stderr, what will run, what was done, and what is skipped and why."""
    by_action = grouped(planned, lambda attempt: attempt.action)
    words = {
        PlanAction.RUN: "to run",
        PlanAction.DONE: "finished before",
        PlanAction.SKIP: "skipped",
    }
    counts = (f"{len(by_action.get(action, ()))} {word}" for action, word in words.items())
    lines = [f"plan: {', '.join(counts)}"]
    skipped = grouped(by_action.get(PlanAction.SKIP, ()), lambda attempt: attempt.reason)
    for reason, some in skipped.items():
        shown = ", ".join(attempt.point.name for attempt in some[:NAMES_SHOWN])
        more = f" and {len(some) - NAMES_SHOWN} more" if len(some) > NAMES_SHOWN else ""
        lines.append(f"  skip {len(some)} ({shown}{more}): {reason}")
    for attempt in by_action.get(PlanAction.RUN, ()):
        case = attempt.point.case
        lines.append(f"  run  {attempt.point.name} on {case.num_gpus} × {case.system}")
    for attempt in planned:
        if attempt.changes:
            changes = ", ".join(attempt.changes)
            lines.append(f"  {attempt.point.name} is not the case itself: {changes}")
    for line in lines:
        console.print(visible(line), markup=False)


def show_rows(rows: Sequence[CaseRow], request: Request) -> None:
    """On stdout, how the cases went, or the commands that would start them.

    The table leaves out skipped cases, which were listed with the plan.
    """
    if request.as_json:
        print_json({"cases": [asdict(row) for row in rows]})
        return
    if request.dry_run:
        for row in rows:
            if row.script:
                click.echo(row.script)
            elif row.command:
                if row.reason:
                    click.echo(f"# {row.case}: {row.reason}")
                set_ = [f"{name}={value}" for name, value in row.variables.items()]
                click.echo(shlex.join([*set_, *row.command]))
        return
    shown = [row for row in rows if row.status != PlanAction.SKIP]
    before = sum(row.status == PlanAction.DONE for row in shown)
    title = units.counted(len(shown) - before, "run")
    if shown:
        print_table(
            f"{title}, {before} finished before" if before else title,
            ("Case", "Status", "Step time (s)", "Tokens/s/GPU", "Steps", "Run directory or reason"),
            [
                (
                    row.case,
                    row.status if row.status == PlanAction.DONE else row.outcome or row.status,
                    units.significant(row.step_time_s),
                    units.number(row.tokens_per_sec_per_gpu),
                    row.num_steps,
                    row.reason or row.run_dir,
                )
                for row in shown
            ],
        )
