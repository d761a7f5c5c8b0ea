"""`perfdb verify`: prove that the store's figures follow from what it keeps."""

from collections.abc import Callable, Sequence

import click

from perfdb import verify as verifying
from perfdb.cli import options
from perfdb.db.session import store_url
from perfdb.units import counted
from perfdb.verify import Verified

MANY = 1_000
"""From so many things on that a check looks at, its progress is worth showing."""


@click.command(epilog=options.examples("perfdb verify", "perfdb verify --json"))
@options.db_option
@options.json_option
def verify(db: str | None, *, as_json: bool) -> int:
    """Check the store against the original files that it keeps.

    \b
    schema      the tables match this version
    database    the database's own check passes
    values      every value is readable
    sources     every file unpacks to its size and SHA-256
    originals   the stated originals of pages match the pages
    references  every row that another row refers to exists
    revisions   revision numbers have no gaps, and only the newest is current
    orphans     every run, case, release, system, and model has results
    keys        the keys of cases and releases match their columns
    figures     measured figures follow from the stored steps
    runs        runs, steps, and results match the stored files
    published   published results match the stored pages
    findings    the findings match a new audit
    log         the ingest log is complete

    The command changes nothing. It reports every problem, then exits with 1 if there is any.
    """
    with options.progress_bar(quiet=as_json) as progress:

        def watched(check: str, count: int) -> Callable[[], None]:
            if count < MANY:
                return lambda: None
            task = progress.add_task(check, total=count)
            return lambda: progress.advance(task)

        found = verifying.verify(store_url(db), watched)
    if as_json:
        faults = [{"check": one.check, **vars(it)} for one in found for it in one.faults]
        passed = [{"check": one.check, **vars(it)} for one in found for it in one.passed_over]
        checked = {one.check: one.count for one in found}
        options.print_json({"checked": checked, "faults": faults, "passed_over": passed})
    else:
        _print(found)
    return 1 if any(one.faults for one in found) else 0


def _print(found: Sequence[Verified]) -> None:
    columns = ("Check", "Checked", "Skipped", "Problems")
    rows = [(one.check, one.count, len(one.passed_over), len(one.faults)) for one in found]
    options.print_table("Checks", columns, rows)
    for one in found:
        for note in one.passed_over:
            click.echo(f"skipped: {one.check}: {note.where}: {note.message}", err=True)
    for one in found:
        for fault in one.faults:
            click.echo(f"problem: {one.check}: {fault.where}: {fault.message}")
    faults = sum(len(one.faults) for one in found)
    click.echo(counted(faults, "problem") if faults else "OK")
