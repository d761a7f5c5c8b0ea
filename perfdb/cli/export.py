"""`perfdb export`: results as CSV, JSON, Parquet, Markdown or PyTorch benchmark records."""

import sys
from pathlib import Path

import click

from perfdb.cli.options import db_option
from perfdb.db.migrate import require_current
from perfdb.db.session import reading, store_url
from perfdb.errors import InputError, Problem
from perfdb.export import FORMATS, pytorch
from perfdb.export.restated import table as restated
from perfdb.export.results import table
from perfdb.flops import CONVENTIONS


@click.group()
def export() -> None:
    """Write results as CSV, JSON, Parquet, Markdown or PyTorch benchmark records."""


@export.command()
@click.option("--format", "style", type=click.Choice(list(FORMATS)), required=True)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where to write. [default: stdout]",
)
@click.option(
    "--convention",
    type=click.Choice(list(CONVENTIONS)),
    metavar="NAME",
    help="Add columns with model TFLOP/s/GPU and MFU restated in this FLOPs convention, such as "
    "megatron-lm.",
)
@db_option
def results(style: str, output: Path | None, convention: str | None, db: str | None) -> None:
    """Write one row for each result, measured and published; empty where a value is unknown.

    Of the PyTorch benchmark database's records, `pytorch`, one for each figure.

    With --convention, figures that count FLOPs stand a second time, in columns `restated_…`, all
    counted alike: also those of pages, where their figures tell what the page counted. The note
    says how that is known, or why a row cannot be restated.
    """
    if convention and style == pytorch.NAME:
        message, remedy = "pytorch has no place for restated figures", "choose another --format"
        raise InputError(Problem("--convention", message, remedy=remedy))
    url = store_url(db)
    with reading(url) as connection:
        require_current(connection, url.render_as_string())
        rows = restated(connection, CONVENTIONS[convention]) if convention else table(connection)
        written = FORMATS[style].render(rows)
    if output is None:
        sys.stdout.buffer.write(written)
        sys.stdout.flush()
        return
    try:
        output.write_bytes(written)
    except OSError as error:
        raise InputError(Problem(str(output), error.strerror or str(error))) from error
