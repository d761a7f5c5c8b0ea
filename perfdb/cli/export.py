"""`perfdb export`: results in one of several formats, and the steps of runs as Parquet."""

from collections.abc import Callable
from pathlib import Path

import click

from perfdb.cli.options import (
    Command,
    convention_option,
    db_option,
    examples,
    json_format_option,
    only_options,
)
from perfdb.cli.output import write_bytes
from perfdb.errors import Diagnostic, InputError, suggestion

STYLES = ("csv", "json", "parquet", "markdown", "pytorch")
"""The names in `perfdb.export.FORMATS`, which are imported only to write."""


def _format_option(*styles: str) -> Callable[[Command], Command]:
    """--format, which has no default: one of several styles."""
    return click.option(
        "--format", "style", type=click.Choice(styles), required=True, help="The output format."
    )


output_option = click.option(
    "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
    help="The output file. [default: stdout]",
)  # fmt: skip


@click.group(epilog=examples("perfdb export results --format csv --output results.csv"))
def export() -> None:
    """Export results, runs, or steps as CSV, JSON, Parquet, Markdown, or PyTorch records."""


@export.command(
    "results",
    epilog=examples(
        "perfdb export results --format csv --output results.csv",
        "perfdb export results --format markdown --release 'nemo 25.04'",
        "perfdb export results --format json --convention megatron-lm",
    ),
)
@_format_option(*STYLES)
@json_format_option
@output_option
@only_options("release", "framework", "system", "model")
@convention_option("Add model TFLOP/s/GPU and MFU in this FLOPs convention, such as megatron-lm.")
@click.option(
    "--price",
    "prices",
    multiple=True,
    metavar="SYSTEM=AMOUNT",
    help="Add the cost of a million tokens at this price per GPU-hour, such as dgx-h100=2.49. May "
    "be repeated.",
)
@db_option
def export_results(
    style: str,
    output: Path | None,
    convention: str | None,
    prices: tuple[str, ...],
    **only: str | None,
) -> None:
    """Write one row per current result, measured or published.

    An unknown value is empty. --format pytorch writes records for the PyTorch benchmark database.
    --convention adds `restated_…` columns that count FLOPs the same way in every row. The column
    `restated_note` gives the evidence, or the reason that a row cannot be restated.
    """
    from perfdb.compare.releases import scope_of
    from perfdb.db.session import reading_current, store_url
    from perfdb.export import FORMATS, results
    from perfdb.export.restated import table as restated
    from perfdb.flops import CONVENTIONS

    if style == "pytorch" and (convention or prices):
        option = "--convention" if convention else "--price"
        message, remedy = "--format pytorch cannot hold these figures", "choose another --format"
        raise InputError(Diagnostic(option, message, remedy=remedy))
    known = results.prices(prices)
    with reading_current(store_url(only.pop("db"))) as connection:
        scope = scope_of(connection, **only)
        table = (
            restated(connection, CONVENTIONS[convention], scope)
            if convention
            else results.table(connection, scope)
        )
    write_bytes(FORMATS[style].render(results.with_cost(table, known) if known else table), output)


@export.command("runs", epilog=examples("perfdb export runs --format csv --output runs.csv"))
@_format_option(*STYLES[:-1])
@json_format_option
@output_option
@db_option
def export_runs(style: str, output: Path | None, db: str | None) -> None:
    """Write one row per run: benchmarks, profiles, and checkpoints.

    A checkpoint row has the save and load times in seconds, the size in bytes, and the next losses.
    """
    from perfdb.db.session import reading_current, store_url
    from perfdb.export import FORMATS, runs

    with reading_current(store_url(db)) as connection:
        table = runs.table(connection)
    write_bytes(FORMATS[style].render(table), output)


def _partition(_context: object, _option: object, value: str | None) -> tuple[str, ...]:
    from perfdb.queries.runs import PARTITIONS

    names = tuple(value.split(",")) if value else ()
    for name in names:
        if name not in PARTITIONS:
            raise click.BadParameter(f"no {name!r}; {suggestion(name, PARTITIONS)}")
    if len(set(names)) < len(names):
        raise click.BadParameter("a name is given twice")
    return names


@export.command(
    "steps",
    epilog=examples("perfdb export steps --format parquet --output steps --partition release"),
)
@_format_option("parquet")
@click.option("--output", type=click.Path(path_type=Path), metavar="FOLDER", required=True,
              help="The folder to create.")  # fmt: skip
@click.option("--partition", metavar="NAMES", callback=_partition,
              help="Folders by framework, release, system, or model. Separate several with "
              "commas.")  # fmt: skip
@db_option
def export_steps(style: str, output: Path, partition: tuple[str, ...], db: str | None) -> None:
    """Write every step of the current runs, for DuckDB.

    Folder names follow Hive, such as release=25.04/system=dgx-h100. The run ID of each step joins
    with `perfdb export results`. Memory use does not grow with the number of steps.
    """
    from perfdb.db.session import reading_current, store_url
    from perfdb.export.runs import write_steps

    with reading_current(store_url(db)) as connection:
        write_steps(connection, output, partition)
