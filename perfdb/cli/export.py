"""`perfdb export`: results as CSV, JSON, Parquet, Markdown or PyTorch benchmark records."""

import sys
from pathlib import Path

import click

from perfdb.cli.options import convention_option, db_option
from perfdb.cli.store import opened
from perfdb.errors import InputError, Problem
from perfdb.export import FORMATS, priced, pytorch
from perfdb.export.restated import table as restated
from perfdb.export.results import table
from perfdb.flops import CONVENTIONS


@click.group()
def export() -> None:
    """Write results as CSV, JSON, Parquet, Markdown or PyTorch benchmark records."""


@export.command()
@click.option(
    "--format",
    "style",
    type=click.Choice(list(FORMATS)),
    required=True,
    help="How to write them.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where to write. [default: stdout]",
)
@convention_option(
    "Add columns with model TFLOP/s/GPU and MFU restated in this FLOPs convention, such as "
    "megatron-lm."
)
@click.option(
    "--price",
    "prices",
    multiple=True,
    metavar="SYSTEM=AMOUNT",
    help="Add what a million tokens cost at this price of a GPU-hour, such as dgx-h100=2.49; once "
    "for each system.",
)
@db_option
def results(
    style: str,
    output: Path | None,
    convention: str | None,
    prices: tuple[str, ...],
    db: str | None,
) -> None:
    """Write a row for each result, empty where a value is unknown.

    All results in force are written, measured and published. With --format pytorch there is a
    record of the PyTorch benchmark database for each figure instead.

    With --convention, figures that count FLOPs stand a second time, in columns `restated_…`, all
    counted alike: also those of pages, where their figures tell what the page counted. The note
    says how that is known, or why a row cannot be restated.
    """
    if style == pytorch.NAME and (convention or prices):
        option = "--convention" if convention else "--price"
        message, remedy = "pytorch has no place for these figures", "choose another --format"
        raise InputError(Problem(option, message, remedy=remedy))
    known = priced.prices(prices)
    with opened(db) as connection:
        rows = restated(connection, CONVENTIONS[convention]) if convention else table(connection)
    written = FORMATS[style].render(priced.with_cost(rows, known) if known else rows)
    if output is None:
        sys.stdout.buffer.write(written)
        sys.stdout.flush()
        return
    try:
        output.write_bytes(written)
    except OSError as error:
        raise InputError(Problem(str(output), error.strerror or str(error))) from error
