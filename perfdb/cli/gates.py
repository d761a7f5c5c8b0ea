"""Options on findings of the audit: which are accepted, and for which a gate closes."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from sqlalchemy import Connection

from perfdb.audit import report
from perfdb.audit.review import REVIEWED, accepted
from perfdb.cli import tables
from perfdb.cli.options import NEVER, Command
from perfdb.compare import Choice, Comparison, baselines, releases
from perfdb.compare.accepted import FILE
from perfdb.compare.comparability import why_nothing
from perfdb.compare.releases import open_errors
from perfdb.errors import suggestion
from perfdb.metrics import METRICS
from perfdb.queries.scope import Scope
from perfdb.record import Finding, Severity

acknowledged_option = click.option(
    "--acknowledged",
    "reviewed",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help=f"The file of accepted findings. [default: {REVIEWED}, if it exists]",
)
"""The reviewed file, which `perfdb.audit.review.accepted` reads."""


accepted_option = click.option(
    "--accepted",
    "accepted_path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help=f"The file of accepted regressions. [default: {FILE}, if it exists]",
)
"""The file that `perfdb.compare.accepted.read` reads."""


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
        help=f"{help_} Without a value, it means error.",
    )


def findings_at_gate(findings: Iterable[Finding], gate: str) -> list[Finding]:
    """The findings as grave as the gate or graver, less those that are accepted."""
    if gate == NEVER:
        return []
    return [it for it in findings if it.severity.reaches(Severity(gate)) and not it.acknowledged]


def finding_lines(it: Finding, more: int = 0) -> Iterator[str]:
    """'page.md:29: error [rule] message', then the fix, and who accepted it; for stdout.

    `more`: how many others it stands for.
    """
    where = f"{report.place(it)}{f' and {more:,} more' if more else ''}"
    subject = report.subject(it)
    message = ": ".join(filter(None, (subject, it.message)))
    rule = tables.styled(f"[{it.rule}]", dim=True)
    yield f"{tables.styled(where, bold=True)}: {tables.colored(it.kind)} {rule} {message}"
    for name, text in (("fix", it.suggestion), ("accepted", it.acknowledged)):
        if text:
            yield f"  {name}: {text}"


@dataclass(frozen=True)
class Least:
    """The change from which on a gate closes, as a fraction, for all metrics and for some."""

    of_all: float = 0.0
    of_metrics: Mapping[str, float] = field(default_factory=dict)

    def __call__(self, metric: str) -> float:
        """That of a metric."""
        return self.of_metrics.get(metric, self.of_all)


def judging_options(command: Command) -> Command:
    """--judge-all, --margin and --acknowledged: verdicts."""
    judge_all = click.option(
        "--judge-all",
        flag_value="yes",
        help="Judge results with open audit errors, too.",
    )
    margin = click.option(
        "--margin",
        metavar="PERCENT",
        default="1%",
        show_default=True,
        callback=fraction,
        help="Changes surely within this percentage count as the same.",
    )
    return judge_all(margin(acknowledged_option(command)))


def verdict_options(command: Command) -> Command:
    """The same and --min-change: verdicts, and what closes a gate."""
    min_change = click.option(
        "--min-change",
        "least",
        metavar="[METRIC=]PERCENT",
        multiple=True,
        callback=_least,
        help="Ignore slowdowns below this percentage for --fail-on, such as 2% or "
        "peak_memory_bytes=5%. May be repeated.",
    )
    return judging_options(min_change(command))


def _least(context: object, option: object, values: tuple[str, ...]) -> Least:
    parts = [value.rpartition("=")[::2] for value in values]
    if unknown := [name for name, _ in parts if name and name not in METRICS]:
        raise click.BadParameter(f"no metric {unknown[0]!r}; {suggestion(unknown[0], METRICS)}")
    found = {name: fraction(context, option, value) for name, value in parts}
    return Least(found.pop("", 0.0), found)


def fraction(_context: object, _option: object, value: str) -> float:
    """0.02 for '2%', '2 %' and '2'."""
    found = re.fullmatch(r"([0-9]{1,2}(?:\.[0-9]+)?) ?%?", value.strip())
    if found is None:
        raise click.BadParameter(f"{value!r} is not a percentage below 100, such as 2%")
    return float(found[1]) / 100


def unaccepted(
    connection: Connection, reviewed: Path | None, judge_all: str | None
) -> frozenset[int]:
    """The results with open errors of the audit; none with --judge-all.

    Raises InputError for a reviewed file that is wrong.
    """
    return frozenset() if judge_all else open_errors(connection, accepted(reviewed))


def named_pairs(
    connection: Connection, a: str, b: str, frameworks: Sequence[str]
) -> tuple[tuple[Choice, Choice], ...]:
    """The releases that two names mean, of each of these frameworks. Raises InputError."""
    known = releases.known_releases(connection)
    return releases.both_named(a, b, known, frameworks, baselines.read())


def compared(
    connection: Connection,
    pairs: Iterable[tuple[Choice, Choice]],
    asked: Mapping[str, Any],
    wrong: Collection[int],
    *,
    err: bool,
) -> Iterator[tuple[Choice, Choice, Comparison]]:
    """Releases and their comparison. Says why there is nothing to compare.

    `asked` are the options of the command. Raises InputError.
    """
    scope = Scope(asked["framework"], asked["system"], asked["model"])
    how = releases.Judging(wrong, asked["metric"], asked["margin"])
    for a, b in pairs:
        found = releases.compared(connection, (a, b), scope, how)
        if not found.matched:
            click.echo(why_nothing(a.name, b.name, found, scope), err=err)
        yield a, b, found


def print_not_judged(count: int, *, err: bool) -> None:
    """How many have no verdict because of open errors, and what shows these errors."""
    if count:
        why = "not judged because of open audit errors (⚑); see `perfdb audit` or use --judge-all"
        click.echo(f"{count} {why}", err=err)
