"""`perfdb compare`: two releases side by side, with verdicts."""

import shlex
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from perfdb.cli import gates, options
from perfdb.compare import (
    Comparison,
    Match,
    Side,
    accepted,
    across,
    match,
    releases,
    report,
    triage,
)
from perfdb.compare.report import document
from perfdb.compare.verdict import OPEN
from perfdb.db.session import reading_current, store_url
from perfdb.queries.scope import Scope
from perfdb.record import Release

Compared = list[tuple[str, str, Comparison]]
"""The names of A and B, and their comparison, of each framework."""


@click.command(
    epilog=options.examples(
        "perfdb compare 25.07 25.09",
        "perfdb compare 'nemo 25.07' 'nemo 25.09' --system dgx-h100 --only slower",
        "perfdb compare 25.07 25.09 --fail-on slower,missing --min-change 2%",
    )
)
@click.argument("a")
@click.argument("b")
@options.db_option
@options.format_option(
    triage.FORMATS,
    "The output format: markdown for pull requests, junit and github for CI.",
)
@options.json_format_option
@options.wide_option
@options.metric_option("compare")
@options.only_options("framework", "system", "model", several=True)
@click.option(
    "--across",
    type=click.Choice(["systems"]),
    help="Compare two systems: A on the first --system with B on the second. Shows the best result "
    "of each, without verdicts. A and B may be equal.",
)
@click.option(
    "--only",
    "shown",
    multiple=True,
    metavar="GROUP",
    type=click.Choice(triage.ONLY),
    help=f"Print only this group: {', '.join(triage.ONLY)}. May be repeated.",
)
@options.gate_option(
    ("slower", "missing", "unknown"),
    "Exit with 1 if B is slower, lacks or fails what A has, or if a verdict is unknown. Separate "
    "several with commas. Each also exits with 1 if nothing has a verdict. [default: never]",
)
@gates.accepted_option
@gates.verdict_options
def compare(
    gate: frozenset[str],
    least: gates.Least,
    reviewed: Path | None,
    *,
    a: str,
    b: str,
    **asked: Any,
) -> int:
    """Compare release B with release A, case by case.

    A and B are releases, such as 'nemo 25.04' or nemo@25.04, or baselines (`perfdb baseline`). A
    version alone, such as 25.04, means every framework that has it. B/A is the ratio. The 99 %
    interval shows the noise of repeated runs. Each verdict is about B, and the largest changes
    come first.

    \b
    slower, faster    the change exceeds --margin
    recovered         faster again, after A had become slower
    can't tell        the noise is too large, or unknown
    same              the change is surely within --margin
    not comparable    the two results differ in more than the release
    not judged        a result has an open audit error
    """
    if asked.pop("across"):
        _across((a, b), reviewed, gate, asked)
        return 0
    if asked["shown"] and asked["style"] not in ("table", "markdown"):
        raise click.UsageError("--only takes --format table or markdown")
    shown: Collection[str] = asked.pop("shown") or triage.ONLY
    style = str(asked["style"])
    with reading_current(store_url(asked["db"])) as connection:
        wrong = gates.unaccepted(connection, reviewed, asked["judge_all"])
        pairs = gates.named_pairs(connection, a, b, asked["framework"])
        found = gates.compared(connection, pairs, asked, wrong, err=style != "table")
        compared = [(one.name, other.name, it) for one, other, it in found]
    whole = match.together([found for _, _, found in compared])
    slower, notes = accepted.left(
        whole.slower(least), accepted.read(asked["accepted_path"]), datetime.now(UTC).date()
    )
    closing = _closing(whole, slower)
    _print_all(compared, style, shown, {id(it) for word in gate for it in closing[word]})
    for note in notes if "slower" in gate else ():
        click.echo(f"note: {note}", err=True)
    gates.print_not_judged(len(whole.matched) - len(whole.judged), err=style != "table")
    _warn_of_containers(whole)
    options.warn_of_ungated(len(whole.failed), len(_open(whole)), gate)
    told = any(it.judgement.is_told for it in whole.matched)
    unjudged = options.nothing_judged(told, gate)
    return 1 if unjudged or any(closing[word] for word in gate) else 0


def _across(
    names: tuple[str, str], reviewed: Path | None, gate: frozenset[str], asked: dict[str, Any]
) -> None:
    """Print the best of two systems. Raises UsageError for an option that is of verdicts."""
    style = str(asked["style"])
    if gate or asked["shown"] or style not in ("table", "json"):
        message = (
            "--across systems gives no verdict: it takes no --fail-on, no --only, and --format"
        )
        raise click.UsageError(f"{message} table or json alone")
    scope = Scope(asked["framework"], asked["system"], asked["model"])
    with reading_current(store_url(asked["db"])) as connection:
        wrong = gates.unaccepted(connection, reviewed, asked["judge_all"])
        frameworks = asked["framework"]
        known = [it for it in releases.known_releases(connection)
                 if not frameworks or it.framework in frameworks]  # fmt: skip
        a, b = (releases.named(name, known) for name in names)
        found = across.of_systems(connection, (a, b), scope, wrong, asked["metric"])
    if style == "json":
        options.print_json(across.document(found))
        return
    ends = (f"{name} is {it.name} on {system}"
            for name, it, system in zip("AB", (a, b), asked["system"], strict=True))  # fmt: skip
    rows = [across.cells(it) for it in found.pairs]
    options.print_table(f"Across systems: {', '.join(ends)}", across.COLUMNS, rows)
    click.echo(across.summary(found))


def _closing(whole: Comparison, slower: Sequence[Match]) -> dict[str, Sequence[Match | Side]]:
    """What closes each gate: matches, and what is missing in B."""
    return {
        "slower": slower,
        "missing": (*whole.failed, *whole.only_a),
        "unknown": (*whole.failed, *_open(whole)),
    }


def _open(whole: Comparison) -> list[Match]:
    return [it for it in whole.matched if it.judgement.verdict in OPEN]


def _print_all(
    compared: Compared, style: str, shown: Collection[str], closing: Collection[int]
) -> None:
    """`closing` are the ids of the matches and sides that close a gate."""
    whole = match.together([found for _, _, found in compared])
    if style == "json":
        options.print_json(document(whole))
        return
    if style == "junit":
        suites = ((f"{a} → {b}", triage.checks(found, closing)) for a, b, found in compared)
        click.echo(triage.junit(suites))
        return
    for name_a, name_b, found in compared:
        title = f"{name_a} → {name_b}"
        if style == "markdown":
            click.echo(triage.markdown(title, found, shown))
        elif style == "github":
            click.echo(triage.github(title, found, closing))
        else:
            _print(name_a, name_b, found, shown)
    if style == "table" and len(compared) > 1:
        click.echo(f"{len(compared)} frameworks: {report.summary(whole)}")


def _warn_of_containers(whole: Comparison) -> None:
    """Warn of releases whose containers are not distinguished, though one may be the slower."""
    sides = [side for it in whole.matched for side in (it.a, it.b)]
    pooled = [side.shown for side in sides if len(side.containers) > 1]
    for it in {(it.framework, it.release): it for it in pooled}.values():
        name = Release(framework=it.framework, version=it.release).name
        boxed = shlex.quote(f"{name} [{it.container or 'no container'}]")
        message = f"the runs of {name} are of several containers: name one, such as {boxed}"
        click.echo(f"warning: {message}", err=True)


def _print(name_a: str, name_b: str, found: Comparison, shown: Collection[str]) -> None:
    alone = {triage.MISSING: name_a, triage.NEW: name_b}
    of_groups = {name: (columns, rows) for name, columns, rows in triage.tables(found, shown)}
    for name, (columns, rows) in of_groups.items():
        if name not in alone:
            title = f"{triage.named(name)}: A is {name_a}, B is {name_b}"
            options.print_table(title, columns, rows)
    if found.best and set(shown) == set(triage.ONLY):
        rows = [triage.cells(one) for some in triage.groups(found.best).values() for one in some]
        options.print_table("Best of each, at other sizes", triage.COLUMNS, rows)
    for group, name in alone.items():
        if group in of_groups:
            options.print_table(f"Only in {name}", *of_groups[group])
    click.echo(report.summary(found))
