"""Print what `perfdb run` plans, and what it did."""

import dataclasses
import shlex

import click
from rich.console import Console

from perfdb import units
from perfdb.cli.options import print_json, print_table
from runner import report
from runner.plan import Planned, Verdict

NAMES_SHOWN = 3


def plan(console: Console, planned: list[Planned]) -> None:
    """What will run, what was done, and what is skipped and why."""
    console.print(f"plan: {report.counted(planned)}", markup=False)
    for reason, names in report.skipped_reasons(planned):
        shown = ", ".join(names[:NAMES_SHOWN])
        more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
        console.print(f"  skip {len(names)} ({shown}{more}): {reason}", markup=False)
    for attempt in planned:
        if attempt.verdict is Verdict.RUN:
            case = attempt.point.case
            console.print(
                f"  run  {attempt.point.name} on {case.num_gpus} × {case.system}", markup=False
            )


def rows(of: list[report.Row], *, dry_run: bool, as_json: bool) -> None:
    """On stdout, how the cases went or would be started; nothing where none has been begun."""
    if as_json:
        print_json({"cases": [dataclasses.asdict(row) for row in of]})
    elif dry_run:
        _commands(of)
    else:
        _summary(of)


def _commands(rows: list[report.Row]) -> None:
    """On stdout, a line of shell for each case that would run."""
    for row in rows:
        if row.command:
            click.echo(shlex.join(row.command))


def _summary(rows: list[report.Row]) -> None:
    """The summary table on stdout; skipped cases were listed with the plan."""
    shown = [row for row in rows if row.status != Verdict.SKIP.value]
    if not shown:
        return
    before = sum(row.status == Verdict.DONE.value for row in shown)
    title = units.counted(len(shown) - before, "run")
    print_table(
        f"{title}, {before} finished before" if before else title,
        ("Case", "Status", "Step time (s)", "Tokens/s/GPU", "Steps", "Run directory or reason"),
        [
            (
                row.case,
                row.status if row.status == Verdict.DONE.value else row.outcome or row.status,
                units.significant(row.step_time_s),
                units.number(row.tokens_per_sec_per_gpu),
                row.num_steps,
                row.reason or row.run_dir,
            )
            for row in shown
        ],
    )
