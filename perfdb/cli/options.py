"""Options and printing that several commands share."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import click

from perfdb.metrics import METRICS, PREFERRED
from perfdb.units import text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table

PIPE_WIDTH = 240
"""Columns where stdout is no terminal: wide enough that no cell of ours is broken."""

Command = TypeVar("Command", bound=Callable[..., object])


db_option = click.option(
    "--db",
    metavar="URL",
    help="The store: sqlite:///FILE or postgresql://… [default: $PERFDB_URL, else "
    "sqlite:///perfdb.sqlite]",
)
"""--db: which store."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout.")
"""--json: machine-readable output on stdout and nothing else there."""

json_format_option = click.option(
    "--json", "style", flag_value="json", help="The same as --format json."
)
"""--json next to a --format with the parameter name `style`."""

ONLY: Mapping[str, str] = {
    "release": "Only this release, such as 'nemo 25.04' or 25.04.",
    "framework": "Only results of this framework.",
    "system": "Only results on this system, such as dgx-h100.",
    "model": "Only results of this model, such as llama3-8b.",
}


def only_options(*names: str) -> Callable[[Command], Command]:
    """--release, --framework, --system, --model, as named: of which results; None: of all."""

    def narrowed(command: Command) -> Command:
        for name in reversed(names):
            command = click.option(f"--{name}", metavar="NAME", help=ONLY[name])(command)
        return command

    return narrowed


def metric_option(verb: str) -> Callable[[Command], Command]:
    """--metric: the figure to compare, or to follow."""
    *names, last = METRICS
    return click.option(
        "--metric",
        type=click.Choice(list(METRICS)),
        metavar="METRIC",
        help=f"The figure to {verb}: {', '.join(names)} or {last}. "
        f"[default: the first known of {', '.join(PREFERRED)}]",
    )


def window_option(default: str) -> Callable[[Command], Command]:
    """--window: the steps that figures are taken over, as `perfdb.aggregation.named` reads it."""
    return click.option(
        "--window",
        metavar="WINDOW",
        help="Take measured figures over these steps: last, last_n(N), window(FIRST,LAST) or "
        f"skip_warmup(N). [default: {default}]",
    )


class LazyChoice(click.ParamType[str]):
    """One of several names, which `load` imports only when an option has a value."""

    name = "name"

    def __init__(self, load: Callable[[], Iterable[str]]) -> None:
        self._load = load

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name, checked. Raises BadParameter with the names that there are."""
        return click.Choice(list(self._load())).convert(value, param, ctx)


def _conventions() -> Iterable[str]:
    from perfdb.flops import CONVENTIONS

    return CONVENTIONS


def convention_option(help_: str) -> Callable[[Command], Command]:
    """--convention: a FLOPs convention by its name."""
    return click.option("--convention", type=LazyChoice(_conventions), metavar="NAME", help=help_)


def watched_progress(*, quiet: bool = False) -> "Progress":
    """A progress bar on stderr, gone at its end; none where stderr is no terminal."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    return Progress(console=console, transient=True, disable=quiet or not console.is_terminal)


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
    console = _console(most_columns)
    console.print(title, style="italic")  # a title of the table's own is broken at its width
    console.print(_table(columns, rows))


def print_names(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    spare: Sequence[str],
) -> None:
    """A table as of `print_table` that begins with names to copy: no line breaks these.

    A terminal that is too narrow for it lacks the columns of `spare`, no more of them than must
    be, the first first; a line names what it lacks.
    """
    console, known = _console(), list(rows)
    left_out: list[str] = []
    table = _table(columns, known)
    for name in spare if console.is_terminal else ():
        if _width(table) <= console.width:
            break
        left_out.append(name)
        places = [place for place, column in enumerate(columns) if column not in left_out]
        kept = ([row[place] for place in places] for row in known)
        table = _table([columns[place] for place in places], kept)
    table.columns[0].no_wrap = True
    console.print(title, style="italic")
    console.print(table)
    if left_out:
        click.echo(f"no room for {', '.join(left_out)}: --json has them")


def _console(most_columns: int | None = None) -> "Console":
    from rich.console import Console

    console = Console(markup=False, highlight=False)
    if not console.is_terminal:
        console.width = min(PIPE_WIDTH, most_columns or PIPE_WIDTH)
    return console


def _table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*[text(cell) for cell in row])
    return table


def _width(table: "Table") -> int:
    """The columns of text that it takes if no cell of it is broken."""
    from rich.console import Console

    return Console(width=10_000, height=1).measure(table).maximum
