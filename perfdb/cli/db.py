"""`perfdb db`: the store's schema, and copies of the store."""

from functools import partial

import click

from perfdb.cli.options import db_option, json_option, print_json, progress_bar
from perfdb.db import migrate, session
from perfdb.db.session import store_url
from perfdb.db.transfer import transfer
from perfdb.units import counted


@click.group()
def db() -> None:
    """Upgrade, downgrade and check the store's schema; copy the store."""


@db.command()
@db_option
def upgrade(db: str | None) -> None:
    """Bring the store to this version's schema.

    Where there is no store it is made.
    """
    url = store_url(db)
    migrate.upgrade(url)
    click.echo(f"{url.render_as_string()}: schema {migrate.current(url)}")


@db.command(context_settings={"ignore_unknown_options": True})
@click.argument("revision")
@db_option
def downgrade(revision: str, db: str | None) -> None:
    """Bring the store down to REVISION.

    It is the number of a schema such as 0001, -1 for one step, or base for an empty store. What
    that schema has no room for is dropped, and named.
    """
    url = store_url(db)
    dropped = migrate.downgrade(url, revision)
    click.echo(f"{url.render_as_string()}: schema {migrate.current(url) or 'none'}")
    for what in dropped:
        click.echo(f"note: dropped: {what}", err=True)
    if dropped:
        remedy = "restore a backup, or upgrade and read the same files again with `perfdb ingest`"
        click.echo(f"note: to have it back, {remedy}", err=True)


@db.command()
@db_option
@json_option
def current(db: str | None, *, as_json: bool) -> None:
    """Print the store's schema, and the newest there is."""
    found = migrate.current(store_url(db))
    if as_json:
        print_json({"schema": found, "newest": session.HEAD})
        return
    click.echo(f"{found or 'none'} (newest: {session.HEAD})")


@db.command()
@db_option
def check(db: str | None) -> int:
    """Compare the store's tables with this version's.

    Exits with 1 if they differ.
    """
    url = store_url(db)
    with session.reading_current(url):
        differences = migrate.differences(url)
    for difference in differences:
        click.echo(difference)
    if not differences:
        click.echo(f"{url.render_as_string()}: schema {session.HEAD}, as expected")
    return 1 if differences else 0


@db.command()
@click.argument("target", metavar="URL")
@db_option
def copy(target: str, db: str | None) -> None:
    """Copy the store into the empty one at URL.

    Every row of every table, on SQLite or PostgreSQL, from either to either: also what was
    withdrawn, recomputed and stated by hand. Make URL with `perfdb db upgrade --db URL` before. It
    is one transaction: all of it is copied, or nothing.
    """
    source, into = store_url(db), store_url(target)
    with progress_bar() as progress:
        copied = transfer(
            source,
            into,
            lambda table, count: partial(progress.advance, progress.add_task(table, total=count)),
        )
    click.echo(f"{into.render_as_string()}: {counted(copied, 'row')} copied")
