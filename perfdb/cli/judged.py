"""What is judged: --acknowledged, --judge-all, --min-change, and the line for what is not."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path

import click
from sqlalchemy import Connection

from perfdb.audit.review import Entry, accepted
from perfdb.cli.reviewed import acknowledged_option
from perfdb.compare import read


@dataclass(frozen=True)
class Judging:
    """The findings that are accepted, None where errors do not matter; and what closes a gate."""

    known: Sequence[Entry] | None
    least: float
    """The smallest change, as a fraction, for which a gate closes on what is slower."""


def judged_options(command: Callable[..., int]) -> Callable[..., int]:
    """--acknowledged, --judge-all and --min-change, which the command takes as one: `judging`."""

    @click.option(
        "--judge-all",
        is_flag=True,
        help="Judge also what has an error of the audit that nobody has accepted.",
    )
    @click.option(
        "--min-change",
        "least",
        metavar="PERCENT",
        default="0%",
        callback=_fraction,
        help="Let no gate close on what is slower by less than this, such as 2%.",
    )
    @acknowledged_option
    @wraps(command)
    def judged(*, reviewed: Path | None, judge_all: bool, least: float, **given: object) -> int:
        known = None if judge_all else accepted(reviewed)
        return command(judging=Judging(known, least), **given)

    return judged


def _fraction(_context: object, _option: object, given: str) -> float:
    """0.02 for '2%', '2 %' and '2'."""
    found = re.fullmatch(r"([0-9]{1,2}(?:\.[0-9]+)?) ?%?", given.strip())
    if found is None:
        raise click.BadParameter(f"{given!r} is no percentage below 100, such as 2%")
    return float(found[1]) / 100


def wrong(connection: Connection, judging: Judging) -> frozenset[int]:
    """The results, by their number, that are not to be judged."""
    return frozenset() if judging.known is None else read.open_errors(connection, judging.known)


def say_not_judged(count: int, *, err: bool) -> None:
    """Say how many have no verdict because of open errors, and what shows these errors."""
    if count:
        said = "not judged for open errors (⚑): see `perfdb audit`, or give --judge-all"
        click.echo(f"{count} {said}", err=err)
