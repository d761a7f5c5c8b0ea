"""Options and printing that several commands share."""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import click

from perfdb.units import text

PIPE_WIDTH = 240
"""Columns where stdout is no terminal: wide enough that no cell of ours is broken."""

Command = TypeVar("Command", bound=Callable[..., Any])


def db_option(command: Command) -> Command:
    """--db: which store."""
    return click.option(
        "--db",
        metavar="URL",
        help="The store: sqlite:///FILE or postgresql://… [default: $PERFDB_URL, else "
        "sqlite:///perfdb.sqlite]",
    )(command)


def json_option(command: Command) -> Command:
    """--json: machine-readable output on stdout and nothing else there."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout.")(command)


def print_json(value: object) -> None:
    """One JSON document on stdout."""
    click.echo(json.dumps(value, indent=2, default=str))


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    most_columns: int | None = None,
) -> None:
    """A table on stdout, of so many columns of text where it is no terminal; unknown is –."""
    from rich import box  # noqa: PLC0415  a JSON command should not pay for it
    from rich.console import Console  # noqa: PLC0415  likewise
    from rich.table import Table  # noqa: PLC0415  likewise

    console = Console(markup=False, highlight=False)
    if not console.is_terminal:
        console.width = min(PIPE_WIDTH, most_columns or PIPE_WIDTH)
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*[text(cell) for cell in row])
    console.print(table)
