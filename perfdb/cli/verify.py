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


@click.command()
@options.db_option
@options.json_option
def verify(db: str | None, *, as_json: bool) -> int:
    """Prove that the store holds together, and that all of it follows from the bytes it keeps.

    \b
    schema      the tables are those of this version
    database    the database's own check finds nothing
    values      every value can be read
    sources     the bytes of every file decompress, with their size and SHA-256
    originals   what pages state of their originals is as they state it
    references  every row that another one refers to is there
    revisions   they are contiguous, and at most the newest is current
    orphans     no run, case, release, system or model is left without results
    keys        cases and releases have the keys of their columns
    figures     measured figures follow from the stored steps
    runs        runs, their steps and results are those of the stored files
    published   published results are those of the stored pages
    findings    findings are those that the audit makes
    log         entries of the ingest log are whole, and every result has one

    Nothing is written. Exits with 1 if anything is wrong, after saying all of it.
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
    columns = ("Check", "Looked at", "Passed over", "Faults")
    rows = [(one.check, one.count, len(one.passed_over), len(one.faults)) for one in found]
    options.print_table("Verified", columns, rows)
    for one in found:
        for note in one.passed_over:
            click.echo(f"passed over: {one.check}: {note.where}: {note.message}", err=True)
    for one in found:
        for fault in one.faults:
            click.echo(f"fault: {one.check}: {fault.where}: {fault.message}")
    faults = sum(len(one.faults) for one in found)
    click.echo(counted(faults, "fault") if faults else "the store holds together")
