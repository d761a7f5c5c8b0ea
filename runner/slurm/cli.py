"""`perfdb jobs`, `perfdb logs` and `perfdb cancel`."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import click

from perfdb.cli.options import examples, json_option, print_json, print_table, wide_option
from perfdb.errors import Diagnostic, InputError, suggestion
from perfdb.hardware import secret_values, without_values
from perfdb.rundir import RunDir, find_runs
from perfdb.text import decoded
from perfdb.units import counted
from runner.slurm.client import Slurm, cancel, started_as
from runner.slurm.follow import submitted
from runner.slurm.jobs import JobIntent, seen

FOLLOW_EVERY_S = 1

output_option = click.option(
    "--output", default="runs", show_default=True, type=click.Path(path_type=Path),
    help="The folder of the run directories.",
)  # fmt: skip


class _Job(NamedTuple):
    run: RunDir
    intent: JobIntent
    is_open: bool
    """Whether nobody has written yet how it ended."""

    @property
    def words(self) -> tuple[str, ...]:
        """What it may be named by."""
        return (self.intent.case_name, self.run.path.name, str(self.intent.job_id))


def _jobs(output: Path, words: Sequence[str] = ()) -> list[_Job]:
    """The jobs of a folder, the newest last; those that words name. Raises InputError."""
    found = [
        _Job(run, intent, run.read_record().outcome is None)
        for run in find_runs(output)
        if (intent := submitted(run))
    ]
    known = {word for job in found for word in job.words}
    if unknown := [word for word in words if word not in known]:
        message = f"no job of {unknown[0]!r} in {output}"
        raise InputError(Diagnostic("CASE", message, remedy=suggestion(unknown[0], known)))
    chosen = [job for job in found if not words or set(words) & {*job.words}]
    return sorted(chosen, key=lambda job: job.intent.written_at)


@click.command(epilog=examples("perfdb jobs", "perfdb jobs --json"))
@output_option
@wide_option
@json_option
def jobs(output: Path, as_json: bool) -> int:
    """List the Slurm jobs of unfinished runs.

    The list includes ended jobs whose outcome is not recorded yet. To record it, run the same
    `perfdb run` command again.
    """
    left = [job for job in _jobs(output) if job.is_open]
    slurm = Slurm()
    known = slurm.jobs([job.intent.name for job in left]) if left else {}
    if known is None:
        click.echo(f"warning: Slurm does not answer: {slurm.problem}", err=True)
    rows = []
    for job in left:
        told = seen(known or {}, job.intent, started_as(job.run))
        state = told.state.lower() if told else "ended" if job.run.job_end.is_file() else None
        rows.append(
            {
                "case": job.intent.case_name,
                "job_id": told.job_id if told else job.intent.job_id,
                "state": state,
                "reason": told.reason if told and told.reason != "None" else "",
                "num_nodes": told.num_nodes if told else job.intent.num_nodes,
                "elapsed": told.elapsed if told else None,
                "num_steps": len(job.run.read_steps()),
                "run_dir": str(job.run.path),
            }
        )
    if as_json:
        print_json({"jobs": rows})
        return 0
    titles = ("Case", "Job", "State", "Reason", "Nodes", "Elapsed", "Steps", "Run directory")
    print_table(counted(len(rows), "job"), titles, [tuple(row.values()) for row in rows])
    return 0


@click.command(epilog=examples("perfdb logs smoke-dp2 --follow"))
@click.argument("case")
@click.option("--follow", is_flag=True, help="Keep printing until the run ends.")
@output_option
def logs(case: str, follow: bool, output: Path) -> int:
    """Print the logs of a case's newest Slurm job.

    These are the logs of Slurm, of the first node, and of the first rank. CASE is a case name, a
    run directory, or a job ID.
    """
    job = _jobs(output, [case])[-1]
    read: dict[Path, int] = {}
    hidden = secret_values(os.environ)
    while True:
        is_over = not follow or job.run.read_record().outcome is not None
        for log in _first_logs(job.run):
            with log.open("rb") as file:
                file.seek(read.get(log, 0))
                new = file.read()
            lines = new if is_over else new[: new.rfind(b"\n") + 1]
            read[log] = read.get(log, 0) + len(lines)
            if lines:
                click.echo(f"==> {log} <==")
                click.echo(without_values(decoded(lines), hidden).rstrip("\n"))
        if is_over:
            return 0
        time.sleep(FOLLOW_EVERY_S)


def _first_logs(run: RunDir) -> list[Path]:
    first = run.rank_logs.glob("node-0/*/attempt_0/0/*.log")
    return [log for log in (run.console, *run.rank_logs.glob("console-0.log"), *sorted(first))
            if log.is_file()]  # fmt: skip


@click.command("cancel", epilog=examples("perfdb cancel smoke-dp2", "perfdb cancel --all"))
@click.argument("cases", nargs=-1)
@click.option("--all", "every", is_flag=True, help="Cancel every unfinished job of the folder.")
@output_option
def cancel_jobs(cases: tuple[str, ...], every: bool, output: Path) -> int:
    """Cancel Slurm jobs.

    CASES are case names, run directories, or job IDs. The next `perfdb run` records them as
    canceled.
    """
    if bool(cases) == every:
        raise click.UsageError("name cases, or use --all")
    left = [job for job in _jobs(output, cases) if job.is_open]
    known = (Slurm().jobs([job.intent.name for job in left]) or {}) if left else {}
    found = [(job, seen(known, job.intent, started_as(job.run))) for job in left]
    numbers = [told.job_id if told else job.intent.job_id for job, told in found]
    cancel(number for number in numbers if number)
    for (job, _), number in zip(found, numbers, strict=True):
        click.echo(f"{job.intent.case_name}: {f'job {number} cancelled' if number else 'no job'}")
    return 0
