"""`perfdb withdraw`: take what a page or file stated, or a run measured, out of every table."""

from collections.abc import Sequence

import click

from perfdb import ingest
from perfdb.audit.report import counts
from perfdb.cli.options import db_option, json_option, print_json
from perfdb.db.session import store_url


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="FILE|RUN...")
@click.option("--reason", metavar="TEXT", help="Why, for the changelog; a run needs it.")
@click.option("--undo", is_flag=True, help="Make runs that were withdrawn count again.")
@db_option
@json_option
def withdraw(
    words: Sequence[str], reason: str | None, db: str | None, *, undo: bool, as_json: bool
) -> int:
    """Withdraw every result of pages, result files or runs, whether the file still exists or not.

    A page or a file of results, such as a summary or golden values, is named by the path that it
    was read from, a run by its id, its directory or its log. A result that another page states,
    too, is withdrawn with it: read that page again. What was withdrawn is kept. Reading a page or
    file again brings its results back; a run counts again only with --undo.
    """
    if undo:
        restored = ingest.restore(words, store_url(db))
        print_json({"restored": restored}) if as_json else click.echo(f"{len(restored)} restored")
        return 0
    report = ingest.withdraw(words, store_url(db), reason)
    if as_json:
        print_json({"withdrawn": report.withdrawn, "revised": report.revised})
        return 0
    for note in report.notes:
        click.echo(f"note: {note}", err=True)
    revised = f", {report.revised} revised" if report.revised else ""
    click.echo(f"{report.withdrawn} withdrawn{revised}")
    if report.findings:
        click.echo(f"findings: {counts(report.findings)} (perfdb audit)", err=True)
    return 0
