"""`perfdb db`: the store's schema, and copies of the store."""

from functools import partial

import click

from perfdb.cli.options import db_option, examples, json_option, print_json, progress_bar
from perfdb.db import migrate, session
from perfdb.db.session import store_url
from perfdb.db.transfer import transfer
from perfdb.units import counted


@click.group(epilog=examples("perfdb db upgrade", "perfdb db current", "perfdb db check"))
def db() -> None:
    """Upgrade, check, and copy the store."""


@db.command(epilog=examples("perfdb db upgrade --db sqlite:///perfdb.sqlite"))
@db_option
def upgrade(db: str | None) -> None:
    """Upgrade the store to this version's schema.

    If there is no store, this creates an empty one.
    """
    url = store_url(db)
    migrate.upgrade(url)
    click.echo(f"{url.render_as_string()}: schema {migrate.current(url)}")


@db.command(
    context_settings={"ignore_unknown_options": True},
    epilog=examples("perfdb db downgrade -1"),
)
@click.argument("revision")
@db_option
def downgrade(revision: str, db: str | None) -> None:
    """Downgrade the store to the schema REVISION.

    REVISION is a schema number such as 0001, -1 for one step, or base for an empty store. The
    command drops data that the older schema cannot hold, and names it.
    """
    url = store_url(db)
    dropped = migrate.downgrade(url, revision)
    click.echo(f"{url.render_as_string()}: schema {migrate.current(url) or 'none'}")
    for what in dropped:
        click.echo(f"note: dropped: {what}", err=True)
    if dropped:
        remedy = "restore a backup, or upgrade and read the same files again with `perfdb ingest`"
        click.echo(f"note: to have it back, {remedy}", err=True)


@db.command(epilog=examples("perfdb db current --json"))
@db_option
@json_option
def current(db: str | None, *, as_json: bool) -> None:
    """Print the store's schema and the newest one."""
    found = migrate.current(store_url(db))
    if as_json:
        print_json({"schema": found, "newest": session.HEAD})
        return
    click.echo(f"{found or 'none'} (newest: {session.HEAD})")


@db.command(epilog=examples("perfdb db check"))
@db_option
def check(db: str | None) -> int:
    """Compare the store's tables with this version's schema.

    The command exits with 1 if they differ.
    """
    url = store_url(db)
    with session.reading_current(url):
        differences = migrate.differences(url)
    for difference in differences:
        click.echo(difference)
    if not differences:
        click.echo(f"{url.render_as_string()}: schema {session.HEAD}, as expected")
    return 1 if differences else 0


@db.command(epilog=examples("perfdb db copy postgresql://db.example.org/perfdb"))
@click.argument("target", metavar="URL")
@db_option
def copy(target: str, db: str | None) -> None:
    """Copy the store into the empty store at URL.

    This copies every row of every table, between SQLite and PostgreSQL in either direction. Create
    the empty store first, with `perfdb db upgrade --db URL`. One transaction copies everything or
    nothing.
    """
    source, into = store_url(db), store_url(target)
    with progress_bar() as progress:
        copied = transfer(
            source,
            into,
            lambda table, count: partial(progress.advance, progress.add_task(table, total=count)),
        )
    click.echo(f"{into.render_as_string()}: {counted(copied, 'row')} copied")
