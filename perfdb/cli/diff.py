"""`perfdb diff`: what differs between two runs."""

from contextlib import ExitStack
from pathlib import Path

import click

from perfdb.cli import options


@click.command(epilog=options.examples("perfdb diff runs/a runs/b"))
@click.argument("run_a")
@click.argument("run_b")
@options.db_option
@options.wide_option
@options.json_option
def diff(run_a: str, run_b: str, db: str | None, *, as_json: bool) -> None:
    """Show the differences between two runs: configuration, environment, versions, and steps.

    RUN_A and RUN_B are run directories, or IDs of runs in the store. For the steps, this compares
    their number, the median step time after warm-up, and the last loss. The exit code is 0 even
    if the runs differ. For verdicts and gates, use `perfdb compare`.
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
        click.echo("No difference.")
