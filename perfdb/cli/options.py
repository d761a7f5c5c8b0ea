"""Options that several commands share, and the printing of tables and JSON."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import click

from perfdb.cli import output, tables
from perfdb.errors import suggestion
from perfdb.metrics import METRICS, PREFERRED

if TYPE_CHECKING:
    from rich.progress import Progress

NEVER = "never"
"""The word of --fail-on for no gate."""

Command = TypeVar("Command", bound=Callable[..., object])

ONLY: Mapping[str, str] = {
    "release": "Only this release, such as 'nemo 25.04' or 25.04.",
    "framework": "Only results of this framework.",
    "system": "Only results on this system, such as dgx-h100.",
    "model": "Only results of this model, such as llama3-8b.",
}

print_table, wide_option = tables.print_table, tables.wide_option
"""Of `perfdb.cli.tables`: nearly every command that has options prints a table."""

db_option = click.option(
    "--db",
    metavar="URL",
    help="The store: sqlite:///FILE or postgresql://… [default: $PERFDB_URL, or "
    "sqlite:///perfdb.sqlite]",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout.")
json_format_option = click.option(
    "--json", "style", flag_value="json", help="Short for --format json."
)
max_cases_option = click.option(
    "--max-cases", metavar="N", default=10_000, show_default=True, type=click.IntRange(min=1),
    help="Reject a recipe with more cases.",
)  # fmt: skip
only_cases_option = click.option(
    "--only", metavar="GLOB|FIELD=VALUE", multiple=True,
    help="Only cases with this name or value, such as precision=fp8. May be repeated.",
)  # fmt: skip
set_option = click.option(
    "--set", "given", metavar="FIELD=VALUE", multiple=True,
    help="Set a field of every case, in place of the recipe's value. May be repeated.",
)  # fmt: skip
dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Show what would change, and store nothing."
)


def examples(*lines: str) -> str:
    """The end of a command's help: command lines to copy, which a test parses."""
    return "\b\n" + "\n".join(["Examples:", *(f"  {line}" for line in lines)])


def format_option(styles: Sequence[str], help_: str) -> Callable[[Command], Command]:
    """--format, as `style`: one of several, the first by default."""
    return click.option(
        "--format",
        "style",
        type=click.Choice(styles),
        default=styles[0],
        show_default=True,
        help=help_,
    )


def only_options(*names: str, several: bool = False) -> Callable[[Command], Command]:
    """--release, --framework, --system, --model, as named: of which results; None: of all.

    `several`: each may be repeated, and is a tuple.
    """

    def narrowed(command: Command) -> Command:
        for name in reversed(names):
            text = ONLY[name].removesuffix(".") + ". May be repeated." if several else ONLY[name]
            option = click.option(f"--{name}", metavar="NAME", help=text, multiple=several)
            command = option(command)
        return command

    return narrowed


def metric_option(verb: str) -> Callable[[Command], Command]:
    """--metric: the figure to compare, or to follow."""
    *names, last = METRICS
    return click.option(
        "--metric",
        type=click.Choice(list(METRICS)),
        metavar="METRIC",
        help=f"The figure to {verb}: {', '.join(names)}, or {last}. "
        f"[default: the first known of {', '.join(PREFERRED)}]",
    )


def window_option(default: str) -> Callable[[Command], Command]:
    """--window: the steps that figures are taken over, as `perfdb.aggregation.named` reads it."""
    return click.option(
        "--window",
        metavar="WINDOW",
        help="The steps to average: last, last_n(N), window(FIRST,LAST), or skip_warmup(N). "
        f"[default: {default}]",
    )


class LazyChoice(click.ParamType[str]):
    """One of several names, which `load` imports only when an option has a value."""

    name = "name"

    def __init__(self, load: Callable[[], Iterable[str]]) -> None:
        self._load = load

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name, checked. Raises BadParameter with the names that there are."""
        return click.Choice(list(self._load())).convert(value, param, ctx)


def convention_option(help_: str) -> Callable[[Command], Command]:
    """--convention: a FLOPs convention by its name."""

    def conventions() -> Iterable[str]:
        from perfdb.flops import CONVENTIONS

        return CONVENTIONS

    return click.option("--convention", type=LazyChoice(conventions), metavar="NAME", help=help_)


def gate_option(choices: Sequence[str], help_: str) -> Callable[[Command], Command]:
    """--fail-on, which may be repeated and takes a comma: a frozenset of `choices`."""
    known = (*choices, NEVER)

    def checked(_context: object, _option: object, values: tuple[str, ...]) -> frozenset[str]:
        words = [word.strip().lower() for value in values for word in value.split(",")]
        for word in words:
            if word not in known:
                raise click.BadParameter(f"no {word!r}; {suggestion(word, known)}")
        if NEVER in words and set(words) != {NEVER}:
            raise click.BadParameter("'never' excludes other values")
        return frozenset(words) - {NEVER}

    return click.option(
        "--fail-on",
        "gate",
        multiple=True,
        metavar=f"[{'|'.join(known)}]",
        callback=checked,
        help=help_,
    )


def warn_of_ungated(failed: int, unknown: int, gate: frozenset[str]) -> None:
    """Warn of failures and of missing verdicts, unless a gate closes on them."""
    if gate and failed and not gate & {"missing", "unknown"}:
        message = f"{failed} failed; --fail-on missing would fail here"
        click.echo(f"warning: {message}", err=True)
    if gate and unknown and "unknown" not in gate:
        message = f"{unknown} inconclusive; --fail-on unknown would fail here"
        click.echo(f"warning: {message}", err=True)


def nothing_judged(judged: bool, gate: frozenset[str]) -> bool:
    """Whether a gate closes as no verdict was given at all; stderr then says so."""
    if judged or not gate:
        return False
    click.echo("error: no comparison has a verdict, so --fail-on exits with 1", err=True)
    return True


def progress_bar(*, quiet: bool = False) -> "Progress":
    """A progress bar on stderr, gone at its end; none where stderr is no terminal."""
    from rich.progress import Progress

    console = output.console()
    return Progress(console=console, transient=True, disable=quiet or not console.is_terminal)


def cell(*lines: str) -> str:
    """Lines of a table's cell, the last one empty: rows of several lines need air between them."""
    return "\n".join((*filter(None, lines), ""))


def print_json(value: object) -> None:
    """One JSON document on stdout."""
    click.echo(json.dumps(value, indent=2, default=str))
