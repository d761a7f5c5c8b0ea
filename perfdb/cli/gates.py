"""Options on findings of the audit: which are accepted, and for which a gate closes."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path

import click
from sqlalchemy import Connection

from perfdb.audit.review import REVIEWED, accepted
from perfdb.cli.options import NEVER, Command
from perfdb.compare.releases import open_errors
from perfdb.record import Finding, Severity

acknowledged_option = click.option(
    "--acknowledged",
    "reviewed",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help=f"Findings that were looked at and are accepted. [default: {REVIEWED}, where it is]",
)
"""The reviewed file, which `perfdb.audit.review.accepted` reads."""


def severity_option(default: str, help_: str) -> Callable[[Command], Command]:
    """--fail-on: the least severity that closes a gate, for `findings_at_gate`."""
    return click.option(
        "--fail-on",
        "gate",
        is_flag=False,
        flag_value=str(Severity.ERROR),
        default=default,
        show_default=True,
        type=click.Choice([*map(str, Severity), NEVER]),
        help=f"{help_} --fail-on at the end of the line, without a value, means error.",
    )


def findings_at_gate(findings: Iterable[Finding], gate: str) -> list[Finding]:
    """The findings as grave as the gate or graver, less those that are accepted."""
    if gate == NEVER:
        return []
    return [it for it in findings if it.severity.reaches(Severity(gate)) and not it.acknowledged]


def verdict_options(command: Command) -> Command:
    """--judge-all, --min-change and --acknowledged: what has a verdict, and closes a gate."""
    judge_all = click.option(
        "--judge-all",
        flag_value="yes",
        help="Judge also what has an error of the audit that nobody has accepted.",
    )
    min_change = click.option(
        "--min-change",
        "least",
        metavar="PERCENT",
        default="0%",
        callback=fraction,
        help="Let no gate close on what is slower by less than this, such as 2%.",
    )
    return judge_all(min_change(acknowledged_option(command)))


def fraction(_context: object, _option: object, value: str) -> float:
    """0.02 for '2%', '2 %' and '2'."""
    found = re.fullmatch(r"([0-9]{1,2}(?:\.[0-9]+)?) ?%?", value.strip())
    if found is None:
        raise click.BadParameter(f"{value!r} is no percentage below 100, such as 2%")
    return float(found[1]) / 100


def unaccepted(
    connection: Connection, reviewed: Path | None, judge_all: str | None
) -> frozenset[int]:
    """The results with open errors of the audit; none with --judge-all.

    Raises InputError for a reviewed file that is wrong.
    """
    return frozenset() if judge_all else open_errors(connection, accepted(reviewed))


def print_not_judged(count: int, *, err: bool) -> None:
    """How many have no verdict because of open errors, and what shows these errors."""
    if count:
        why = "not judged for open errors (⚑): see `perfdb audit`, or give --judge-all"
        click.echo(f"{count} {why}", err=err)
