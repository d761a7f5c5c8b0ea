"""`perfdb export`: results in one of several formats, and the steps of runs as Parquet."""

from pathlib import Path

import click

from perfdb.cli.options import convention_option, db_option, json_format_option, only_options
from perfdb.cli.output import write_bytes
from perfdb.errors import Diagnostic, InputError, suggestion

STYLES = ("csv", "json", "parquet", "markdown", "pytorch")
"""The names in `perfdb.export.FORMATS`, which are imported only to write."""


@click.group()
def export() -> None:
    """Write results as CSV, JSON, Parquet, Markdown or PyTorch benchmark records, or steps."""


@export.command("results")
@click.option(
    "--format", "style", type=click.Choice(STYLES), required=True, help="How to write them."
)
@json_format_option
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where to write. [default: stdout]",
)
@only_options("release", "framework", "system", "model")
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
def export_results(
    style: str,
    output: Path | None,
    convention: str | None,
    prices: tuple[str, ...],
    **only: str | None,
) -> None:
    """Write a row for each result, empty where a value is unknown.

    All current results are written, measured and published, or those of one release, framework,
    system or model. With --format pytorch there is a record of the PyTorch benchmark database for
    each figure instead.

    With --convention, figures that count FLOPs are repeated in columns `restated_…`, all counted
    the same way: also those of pages, where their figures show what the page counted. The note
    says how that is known, or why a row cannot be restated.
    """
    from perfdb.compare.releases import release_ids
    from perfdb.db.session import reading_current, store_url
    from perfdb.export import FORMATS, results
    from perfdb.export.restated import table as restated
    from perfdb.flops import CONVENTIONS
    from perfdb.queries.scope import Scope

    if style == "pytorch" and (convention or prices):
        option = "--convention" if convention else "--price"
        message, remedy = "pytorch has no place for these figures", "choose another --format"
        raise InputError(Diagnostic(option, message, remedy=remedy))
    known = results.prices(prices)
    url, release = store_url(only.pop("db")), only.pop("release")
    with reading_current(url) as connection:
        scope = Scope(**only, release_ids=release_ids(connection, release))
        table = (
            restated(connection, CONVENTIONS[convention], scope)
            if convention
            else results.table(connection, scope)
        )
    write_bytes(FORMATS[style].render(results.with_cost(table, known) if known else table), output)


@export.command("runs")
@click.option("--format", "style", type=click.Choice(STYLES[:-1]), required=True,
              help="How to write them.")  # fmt: skip
@json_format_option
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Where to write. [default: stdout]")  # fmt: skip
@db_option
def export_runs(style: str, output: Path | None, db: str | None) -> None:
    """Write a row for each run: benchmarks, profiles and checkpoints.

    A checkpoint has the seconds that it took to save and to load, its bytes, and the losses of the
    next step.
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


@export.command("steps")
@click.option(
    "--format", "style", type=click.Choice(["parquet"]), required=True, help="How to write them."
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    required=True,
    help="The folder to make.",
)
@click.option(
    "--partition",
    metavar="NAMES",
    callback=_partition,
    help="Part them into folders by framework, release, system or model; several with a comma.",
)
@db_option
def export_steps(style: str, output: Path, partition: tuple[str, ...], db: str | None) -> None:
    """Write every step of the runs that count, for DuckDB.

    Folders are named as Hive does, such as release=25.04/system=dgx-h100. A step has its run's id,
    which `perfdb export results` has too. Memory does not grow with the number of steps.
    """
    from perfdb.db.session import reading_current, store_url
    from perfdb.export.steps import write

    with reading_current(store_url(db)) as connection:
        write(connection, output, partition)
