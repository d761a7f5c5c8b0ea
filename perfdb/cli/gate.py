"""--fail-on: the things that make a command exit with 1, one or several of them."""

from collections.abc import Callable, Sequence

import click

from perfdb.cli.options import Command
from perfdb.errors import suggestion

NEVER = "never"


def gate_option(choices: Sequence[str], help_: str) -> Callable[[Command], Command]:
    """--fail-on, which may be repeated and takes a comma: a frozenset of `choices`."""

    def checked(_context: object, _option: object, given: tuple[str, ...]) -> frozenset[str]:
        words = [word.strip().lower() for one in given for word in one.split(",")]
        for word in words:
            if word not in (*choices, NEVER):
                raise click.BadParameter(f"no {word!r}; {suggestion(word, (*choices, NEVER))}")
        if NEVER in words and set(words) != {NEVER}:
            raise click.BadParameter("'never' stands alone")
        return frozenset(words) - {NEVER}

    metavar = f"[{'|'.join((*choices, NEVER))}]"
    return click.option(
        "--fail-on", "gate", multiple=True, metavar=metavar, callback=checked, help=help_
    )


def say_untold(failed: int, unknown: int, gate: frozenset[str]) -> None:
    """Warn of failures and of missing verdicts, unless a gate closes on them."""
    if gate and failed and not gate & {"missing", "unknown"}:
        said = f"{failed} failed, and --fail-on missing was not asked for"
        click.echo(f"warning: {said}", err=True)
    if gate and unknown and "unknown" not in gate:
        said = f"{unknown} cannot be told, and --fail-on unknown was not asked for"
        click.echo(f"warning: {said}", err=True)
