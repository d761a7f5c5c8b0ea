"""`perfdb compare`: two releases side by side, with verdicts."""

import shlex
from collections.abc import Iterable, Sequence

import click

from perfdb.cli.gate import gate_option, say_untold
from perfdb.cli.judged import Judging, judged_options, say_not_judged, wrong
from perfdb.cli.options import (
    db_option,
    json_format_option,
    metric_option,
    only_options,
    print_json,
    print_table,
)
from perfdb.compare import (
    Comparison,
    Match,
    Side,
    Verdict,
    both_named,
    comparison,
    marked,
    metric_for,
    read,
    report,
    together,
)
from perfdb.compare.match import nearest_text
from perfdb.compare.output import document
from perfdb.db.session import reading_current, store_url
from perfdb.metrics import METRICS
from perfdb.queries.scope import Only
from perfdb.record import Release
from perfdb.units import figure

Names = tuple[str, str]
"""Of release A and of release B."""


@click.command()
@click.argument("a")
@click.argument("b")
@db_option
@click.option(
    "--format",
    "style",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="How to print it.",
)
@json_format_option
@metric_option("compare")
@only_options("framework", "system", "model")
@gate_option(
    ("slower", "missing", "unknown"),
    "Exit with 1 where B is slower, where something of A is missing in B or failed there at more "
    "of its runs, or where no verdict can be given; several with a comma. [default: never]",
)
@judged_options
def compare(
    a: str, b: str, style: str, *, gate: frozenset[str], judging: Judging, **only: str | None
) -> int:
    """Compare release A with release B, case by case.

    A and B are names such as 'nemo 25.04' or nemo@25.04, or versions alone: where several
    frameworks have these, each is compared with itself. The ratio is B over A, with a 95 % interval
    where the runs' spread gives one. Verdicts speak of B: faster, slower, failed, same (no
    difference can be told), unknown, or not judged for an open error of the audit on either side.
    """
    db, metric = only.pop("db"), only.pop("metric")
    asked = Only(**only)
    compared = _compared((a, b), db, metric, asked, judging)
    found = together([one for _, one in compared])
    as_json = style == "json"
    for names, one in compared:
        if not one.matched:
            click.echo(report.why_nothing(*names, one, asked), err=as_json)
        if not as_json:
            _print(names, one, metric)
    if as_json:
        print_json(document(found))
    elif len(compared) > 1:
        click.echo(f"{len(compared)} frameworks: {report.summary(found)}")
    say_not_judged(len(found.matched) - len(found.judged), err=as_json)
    _say_pooled(found)
    return _gated(found, gate, judging.least)


def _say_pooled(found: Comparison) -> None:
    """Warn of releases whose containers are not told apart, though one may be the slower."""
    sides = [side for match in found.matched for side in (match.a, match.b)]
    pooled = [side.shown for side in sides if len(side.containers) > 1]
    for one in {(it.framework, it.release): it for it in pooled}.values():
        name = Release(framework=one.framework, version=one.release).name
        boxed = shlex.quote(f"{name} [{one.container or 'no container'}]")
        said = f"the runs of {name} are of several containers: name one, such as {boxed}"
        click.echo(f"warning: {said}", err=True)


def _gated(found: Comparison, gate: frozenset[str], least: float) -> int:
    """The exit code."""
    failed = len(found.failed)
    unknown = sum(match.judgement.verdict is Verdict.UNKNOWN for match in found.matched)
    say_untold(failed, unknown, gate)
    closing = {
        "slower": bool(found.slower(least)),
        "missing": found.missing,
        "unknown": failed + unknown > 0,
    }
    return 1 if any(closing[word] for word in gate) else 0


def _compared(
    asked: tuple[str, str], db: str | None, metric: str | None, only: Only, judging: Judging
) -> Sequence[tuple[Names, Comparison]]:
    with reading_current(store_url(db)) as connection:
        pairs = both_named(*asked, read.known_releases(connection), only.framework)
        errors = wrong(connection, judging)
        results = {
            one.name: marked(read.results_of(connection, one, only), errors)
            for pair in pairs
            for one in pair
        }
    return [
        ((a.name, b.name), comparison(results[a.name], results[b.name], metric)) for a, b in pairs
    ]


def _print(names: Names, found: Comparison, metric: str | None) -> None:
    if found.matched:
        title = f"A: {names[0]}, B: {names[1]}"
        columns = ["Case", "Figure", "A", "B", "B/A", "95 % interval", "B is"]
        print_table(title, columns, [_row(match) for match in found.matched])
    for name, sides in zip(names, (found.only_a, found.only_b), strict=True):
        if sides:
            others = found.only_b if sides is found.only_a else ()
            rows = [_unmatched(side, metric, nearest_text(side, others)) for side in sides]
            print_table(f"Only in {name}", ["Case", "Figure", "Value"], rows)
    click.echo(report.summary(found))


def _row(it: Match) -> tuple[str, ...]:
    metric, a, b = METRICS[it.metric], it.a.shown, it.b.shown
    notes = report.workload(a), report.how(it), report.remark(it)
    return (
        _cell(notes),
        metric.title,
        report.figure(a, metric.name),
        report.figure(b, metric.name),
        figure(it.judgement.ratio, 3),
        report.interval(it.judgement),
        "\n".join(filter(None, (report.verdict(it.judgement, it.metric), report.failed(it.b)))),
    )


def _unmatched(side: Side, asked: str | None, hint: str) -> tuple[str, ...]:
    metric, it = METRICS[metric_for([side], [side], asked)], side.shown
    notes = report.workload(it), report.configuration(it), report.remark_of(side), hint
    return _cell(notes), metric.title, report.figure(it, metric.name)


def _cell(notes: Iterable[str]) -> str:
    """Lines of a cell, the last one empty: rows of several lines need air between them."""
    return "\n".join((*filter(None, notes), ""))
