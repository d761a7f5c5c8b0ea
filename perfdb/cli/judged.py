"""What is judged: --acknowledged, --judge-all, and the line that says how much is not."""

from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path

import click
from sqlalchemy import Connection

from perfdb.audit.acknowledged import Entry
from perfdb.cli.reviewed import accepted, acknowledged_option
from perfdb.compare import read

Known = Sequence[Entry] | None
"""The findings that are accepted; None where errors do not matter."""


def judged_options(command: Callable[..., int]) -> Callable[..., int]:
    """--acknowledged and --judge-all, which the command takes as one: `known`."""

    @click.option(
        "--judge-all",
        is_flag=True,
        help="Judge also what has an error of the audit that nobody has accepted.",
    )
    @acknowledged_option
    @wraps(command)
    def judged(*, reviewed: Path | None, judge_all: bool, **given: object) -> int:
        return command(known=None if judge_all else accepted(reviewed), **given)

    return judged


def wrong(connection: Connection, known: Known) -> frozenset[int]:
    """The results, by their number, that are not to be judged."""
    return frozenset() if known is None else read.open_errors(connection, known)


def say_not_judged(count: int, *, err: bool) -> None:
    """Say how many have no verdict for the errors in their figures, and what tells these."""
    if count:
        said = "not judged for open errors (⚑): see `perfdb audit`, or give --judge-all"
        click.echo(f"{count} {said}", err=err)
