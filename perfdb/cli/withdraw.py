"""`perfdb withdraw`: take what a page stated out of every table."""

from collections.abc import Sequence
from pathlib import Path

import click

from perfdb import ingest
from perfdb.audit import document
from perfdb.cli.options import db_option, json_option, print_json
from perfdb.db.session import store_url


@click.command()
@click.argument(
    "pages", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PAGE..."
)
@db_option
@json_option
def withdraw(pages: Sequence[Path], db: str | None, *, as_json: bool) -> int:
    """Withdraw every result that was read from published pages, be they there or gone.

    A page is named by the path that it was read from. A result that another page states falls
    back to it. What was withdrawn is kept, and reading a page again brings its results back.
    """
    report = ingest.withdraw(pages, store_url(db))
    if as_json:
        print_json({"withdrawn": report.withdrawn, "revised": report.revised})
        return 0
    for note in report.notes:
        click.echo(f"note: {note}", err=True)
    revised = f", {report.revised} revised" if report.revised else ""
    click.echo(f"{report.withdrawn} withdrawn{revised}")
    if report.findings:
        click.echo(f"findings: {document.counts(report.findings)} (perfdb audit)", err=True)
    return 0
