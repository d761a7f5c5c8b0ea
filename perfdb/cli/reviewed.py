"""Findings that close a gate, and those that a reviewed file accepts."""

from collections.abc import Callable, Iterable
from pathlib import Path

import click

from perfdb.audit import Finding, Severity, acknowledged
from perfdb.audit.acknowledged import Entry
from perfdb.cli.gate import NEVER
from perfdb.cli.options import Command

REVIEWED = Path("data/acknowledged.yaml")


def acknowledged_option(command: Command) -> Command:
    """--acknowledged: the reviewed file, which `accepted` reads."""
    return click.option(
        "--acknowledged",
        "reviewed",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help=f"Findings that were looked at and are accepted. [default: {REVIEWED}, where it is]",
    )(command)


def accepted(reviewed: Path | None) -> tuple[Entry, ...]:
    """The findings that a reviewed file accepts: the one given, or the project's, or none."""
    path = reviewed or REVIEWED
    return acknowledged.entries(str(path), path.read_text()) if path.is_file() else ()


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
