"""`perfdb withdraw`: take what a page or file stated, or a run measured, out of every table."""

from collections.abc import Sequence

import click

from perfdb import ingest
from perfdb.audit.report import counts
from perfdb.cli.options import db_option, examples, json_option, print_json
from perfdb.db.session import store_url


@click.command(
    epilog=examples(
        "perfdb withdraw old.md --reason 'superseded'",
        "perfdb withdraw runs/a --reason 'wrong clock'",
        "perfdb withdraw runs/a --undo",
    )
)
@click.argument("words", nargs=-1, required=True, metavar="FILE|RUN...")
@click.option("--reason", metavar="TEXT", help="The reason, for the changelog. Required for runs.")
@click.option("--undo", is_flag=True, help="Restore withdrawn runs.")
@db_option
@json_option
def withdraw(
    words: Sequence[str], reason: str | None, db: str | None, *, undo: bool, as_json: bool
) -> int:
    """Withdraw every result of pages, result files, or runs.

    FILE is the path that perfdb read, even if the file no longer exists. RUN is a run ID, a run
    directory, or a log. The store keeps withdrawn results. If another page states the same result,
    read that page again. To restore a page or file, read it again. To restore a run, use --undo.
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
