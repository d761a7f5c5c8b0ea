"""`perfdb run` and `perfdb selftest`."""

import dataclasses
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import click
from rich.console import Console

from perfdb import machine, recipe, units
from perfdb.cli.gate import gate_option
from perfdb.cli.options import json_option, print_json, print_table
from perfdb.errors import Diagnostic, InputError, PerfdbError
from perfdb.rundir import RunDir
from runner import devices, history, report, show
from runner.backends import BACKENDS
from runner.launchers import LAUNCHERS
from runner.plan import AT_WORK, FINISHED, Here, Planned, Support, Verdict, plan
from runner.progress import watching
from runner.run import Site, execute


@click.command(no_args_is_help=True)
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--output", default="runs", show_default=True, type=click.Path(path_type=Path),
              help="The folder for run directories.")  # fmt: skip
@click.option("--launcher", default="local", show_default=True, type=click.Choice(list(LAUNCHERS)),
              help="Where to start the processes.")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Show the plan and the commands; run nothing.")
@click.option("--only", metavar="GLOB", default="*", help="Only cases whose name matches.")
@click.option("--repeat", metavar="N", default=1, show_default=True, type=click.IntRange(min=1),
              help="Finished runs wanted of each case; those there are count.")  # fmt: skip
@gate_option(
    ("skipped", "unmeasured"),
    "Exit with 1 where a case was skipped, or where none was run: each was skipped or had finished "
    "before; several with a comma. [default: never]",
)
@json_option
@click.pass_context
def run(context: click.Context, /, **_options: object) -> int:
    """Run the cases of recipes that fit this machine, and leave one run directory for each.

    PATHS are recipe files or folders of them. Cases for other systems are skipped with the
    reason. The same command again resumes: finished cases are not run again. One that fails does
    not stop the others; the exit code is then 1.
    """
    request = Request(**context.params)
    _readable(request.output)
    files = recipe.load(request.paths)
    before = history.read(request.output)
    planned = planned_cases(files, request, before)
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    show.plan(console, planned)
    rows: list[report.Row] = []
    try:
        if request.dry_run:
            rows += [_foreseen(attempt, request, before) for attempt in planned]
        else:
            with _writing(request.output):
                history.mark_interrupted(before)
                run_all(console, planned, request, before, rows)
    except (KeyboardInterrupt, PerfdbError):
        if any(row.outcome for row in rows):  # else the error says all there is to say
            show.rows(rows, dry_run=False, as_json=request.as_json)
        raise
    show.rows(rows, dry_run=request.dry_run, as_json=request.as_json)
    return 1 if any(row.failed for row in rows) or request.gate & _closing(rows) else 0


def _readable(output: Path) -> None:
    """Raises InputError where ingest would refuse the path of every run, or it cannot be one."""
    name = machine.readable(str(output))
    if name != str(output):
        raise InputError(
            Diagnostic("--output", f"{name} is not UTF-8", remedy="name another folder")
        )
    try:
        output.is_dir()
    except OSError as error:
        problem = Diagnostic(
            "--output", f"{output}: {error.strerror}", remedy="name another folder"
        )
        raise InputError(problem) from error


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


def _closing(rows: list[report.Row]) -> frozenset[str]:
    """The gates that what happened closes."""
    statuses = {row.status for row in rows}
    closing = {
        "skipped": Verdict.SKIP.value in statuses,
        "unmeasured": statuses <= {Verdict.SKIP.value, Verdict.DONE.value},
    }
    return frozenset(name for name, closes in closing.items() if closes)


@dataclasses.dataclass(frozen=True)
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


def planned_cases(
    files: list[recipe.RecipeFile], request: Request, before: history.History
) -> list[Planned]:
    """The plan of this machine. Raises InputError where `--only` matches nothing."""
    for problem in before.problems:
        click.echo(f"warning: {problem}", err=True)
    here = Here(
        machine=machine.detect(),
        frameworks={
            name: Support(backend.version(), backend.unsupported)
            for name, backend in BACKENDS.items()
        },
        done=before.done,
        cores=len(devices.cores()),
        container=machine.readable(os.environ.get("PERFDB_CONTAINER", "")) or None,
        running=before.running,
    )
    planned = plan(files, here, only=request.only, repeat=request.repeat)
    if not planned:
        names = ", ".join(
            point.name for file in files[: show.NAMES_SHOWN] for point in file.points[:1]
        )
        message = f"{request.only!r} matches none of the cases"
        raise InputError(Diagnostic("--only", message, remedy=f"their names are like {names}"))
    return planned


def _foreseen(planned: Planned, request: Request, before: history.History) -> report.Row:
    """The row of a dry run: the command that would start a case, or what is known of it."""
    if planned.verdict is not Verdict.RUN:
        return _not_run(planned, before)
    return report.not_run(planned, command_of(planned, request))


def command_of(planned: Planned, request: Request) -> tuple[str, ...]:
    """The command line that starts a case; RUN stands for its run directory."""
    directory = RunDir(request.output / "RUN")
    command = BACKENDS[planned.point.case.framework].command(planned.point, directory)
    return LAUNCHERS[request.launcher].argv(command, directory)


def run_all(
    console: Console,
    planned: list[Planned],
    request: Request,
    before: history.History,
    rows: list[report.Row],
) -> None:
    """Run what is to run, one attempt after the other; a failed case does not stop the rest.

    Adds a row for each to `rows`, also for the one that it breaks off at.
    """
    stop_on_sigterm()
    site = Site(request.output, machine.detect(), LAUNCHERS[request.launcher])
    total = sum(attempt.verdict is Verdict.RUN for attempt in planned)
    number = 0
    for attempt in planned:
        if attempt.verdict is not Verdict.RUN:
            rows.append(_not_run(attempt, before))
            continue
        number += 1
        try:
            rows.append(turn(console, attempt, site, f"[{number}/{total}]"))
        except (KeyboardInterrupt, PerfdbError, OSError) as error:
            rows.append(report.broken_off(attempt, error))
            raise
        console.print(f"[{number}/{total}] {attempt.point.name}: {_status(rows[-1])}", markup=False)


def turn(console: Console, planned: Planned, site: Site, title: str) -> report.Row:
    """Run a case, unless another runner is at work on it or has finished it since the plan."""
    with history.claimed(site.output, planned.measurement) as now:
        if now is None:
            return report.not_run(
                dataclasses.replace(planned, verdict=Verdict.SKIP, reason=AT_WORK)
            )
        if now.done[planned.measurement] >= planned.repeat:
            return _not_run(
                dataclasses.replace(planned, verdict=Verdict.DONE, reason=FINISHED), now
            )
        with watching(console, planned, title) as watcher:
            return report.ran(planned, *execute(planned, site, watcher))


def _not_run(planned: Planned, before: history.History) -> report.Row:
    """The row of a case that is skipped, or of the run that finished before."""
    if planned.verdict is Verdict.SKIP:
        return report.not_run(planned)
    found = before.finished[planned.measurement][planned.repeat - 1]
    return report.done(planned, found)


def stop_on_sigterm() -> None:
    """A scheduler's SIGTERM ends a run as cleanly as Ctrl-C, and the record says which it was."""
    job = os.environ.get("SLURM_JOB_ID")
    message = f"stopped by SIGTERM (Slurm job {job})" if job else "stopped by SIGTERM"

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt(message)

    signal.signal(signal.SIGTERM, stop)


def _status(row: report.Row) -> str:
    if row.failed:
        return f"{row.outcome}: {row.reason} (see {row.run_dir})"
    if row.reason:
        return row.reason
    return f"{units.significant(row.step_time_s)} s/step, {row.num_steps} steps"


@click.command()
@click.option("--max-processes", metavar="N", default=4, show_default=True,
              type=click.IntRange(min=1), help="Leave out layouts of more processes.")  # fmt: skip
@json_option
def selftest(max_processes: int, as_json: bool) -> int:
    """Prove that this machine's runner computes correctly, before its timings are trusted.

    The same small model, seed and data are trained for four steps under different parallel
    layouts. Every layout must give the same losses and gradient norms, to float32 rounding; a
    layout that computes something else is fast for the wrong reason.
    """
    from runner.selftest import check  # noqa: PLC0415  needs a training framework installed

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    rows = check(console, max_processes)
    if as_json:
        print_json({"layouts": [dataclasses.asdict(row) for row in rows]})
    else:
        print_table(
            "selftest",
            ("Layout", "Processes", "Verdict", "Largest difference", "Loss, step 4", "Reason"),
            [
                (
                    row.layout,
                    row.processes,
                    "same" if row.agrees else "WRONG",
                    f"{row.difference:.1e}" if row.difference is not None else None,
                    units.significant(row.loss, 7),
                    row.reason,
                )
                for row in rows
            ],
        )
    return 0 if all(row.agrees for row in rows) else 1
