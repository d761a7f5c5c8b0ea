"""`perfdb diff`: what differs between two runs."""

from contextlib import ExitStack
from pathlib import Path

import click

from perfdb.cli import options


@click.command()
@click.argument("run_a")
@click.argument("run_b")
@options.db_option
@options.json_option
def diff(run_a: str, run_b: str, db: str | None, *, as_json: bool) -> None:
    """Say in what two runs differ: configuration, environment, versions and steps.

    RUN_A and RUN_B are run directories, or ids of runs in the store. Of the steps it is their
    number, the median step time after warm-up, and the loss of the last one. The exit code says
    nothing of the runs: `perfdb compare` has verdicts, and a gate.
    """
    from perfdb.compare import run_diff
    from perfdb.db.session import reading_current, store_url
    from perfdb.rundir import RunDir

    with ExitStack() as stack:
        found = []
        for word in (run_a, run_b):
            if (run := RunDir(Path(word))).is_run():
                found.append(run_diff.of_directory(run))
            else:
                connection = stack.enter_context(reading_current(store_url(db)))
                found.append(run_diff.of_stored(connection, word))
    apart = run_diff.differences(*found)
    if as_json:
        options.print_json({"a": run_a, "b": run_b, "differences": apart})
    elif apart:
        options.print_table(f"A: {run_a}, B: {run_b}", ("Field", "A", "B"), run_diff.rows(apart))
    else:
        click.echo("no difference")
