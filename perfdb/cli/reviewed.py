"""Options for the reviewed file, and for the findings that close a gate."""

from collections.abc import Callable, Iterable
from pathlib import Path

import click

from perfdb.audit.review import REVIEWED
from perfdb.cli.gate import NEVER
from perfdb.cli.options import Command
from perfdb.record import Finding, Severity

acknowledged_option = click.option(
    "--acknowledged",
    "reviewed",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help=f"Findings that were looked at and are accepted. [default: {REVIEWED}, where it is]",
)
"""--acknowledged: the reviewed file, which `perfdb.audit.review.accepted` reads."""


def severity_option(default: str, help_: str) -> Callable[[Command], Command]:
    """--fail-on: the least severity that closes a gate, which `closing` takes."""
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


def closing(found: Iterable[Finding], gate: str) -> list[Finding]:
    """The findings as grave as the gate or graver, less those that are accepted."""
    if gate == NEVER:
        return []
    return [it for it in found if it.severity.reaches(Severity(gate)) and not it.acknowledged]
