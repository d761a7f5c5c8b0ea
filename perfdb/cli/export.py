"""`perfdb export`: results as CSV, JSON, Parquet or Markdown."""

import sys
from pathlib import Path

import click

from perfdb.cli.options import db_option
from perfdb.db.migrate import require_current
from perfdb.db.session import reading, store_url
from perfdb.errors import InputError, Problem
from perfdb.export import FORMATS
from perfdb.export.results import table


@click.group()
def export() -> None:
    """Write results as CSV, JSON, Parquet or Markdown."""


@export.command()
@click.option("--format", "style", type=click.Choice(list(FORMATS)), required=True)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where to write. [default: stdout]",
)
@db_option
def results(style: str, output: Path | None, db: str | None) -> None:
    """Write one row for each result, measured and published; empty where a value is unknown."""
    url = store_url(db)
    with reading(url) as connection:
        require_current(connection, url.render_as_string())
        written = FORMATS[style].render(table(connection))
    if output is None:
        sys.stdout.buffer.write(written)
        sys.stdout.flush()
        return
    try:
        output.write_bytes(written)
    except OSError as error:
        raise InputError(Problem(str(output), error.strerror or str(error))) from error
