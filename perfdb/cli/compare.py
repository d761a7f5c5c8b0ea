"""`perfdb compare`: two releases side by side, with verdicts."""

import shlex
from collections.abc import Sequence
from pathlib import Path

import click

from perfdb.cli import gates, options
from perfdb.compare import Comparison, Match, Side, Verdict, marked, match, releases, report
from perfdb.compare.report import document
from perfdb.db.session import reading_current, store_url
from perfdb.metrics import METRICS
from perfdb.queries.scope import Scope
from perfdb.record import Release
from perfdb.units import figure


@click.command()
@click.argument("a")
@click.argument("b")
@options.db_option
@options.format_option(["table", "json"], "How to print it.")
@options.json_format_option
@options.metric_option("compare")
@options.only_options("framework", "system", "model")
@options.gate_option(
    ("slower", "missing", "unknown"),
    "Exit with 1 where B is slower, where something of A is missing in B or failed there at more "
    "of its runs, or where no verdict can be given; several with a comma. Any of them exits with 1 "
    "where nothing at all could be judged. [default: never]",
)
@gates.verdict_options
def compare(
    gate: frozenset[str], least: float, reviewed: Path | None, *, a: str, b: str, **only: str | None
) -> int:
    """Compare release A with release B, case by case.

    A and B are names such as 'nemo 25.04' or nemo@25.04, or versions alone: where several
    frameworks have these, each is compared with itself. The ratio is B over A, with a 95 % interval
    where the runs' spread gives one. Verdicts speak of B: faster, slower, failed, same (no
    difference can be told), unknown, or not judged for an open error of the audit on either side.
    """
    db, metric, as_json = only.pop("db"), only.pop("metric"), only.pop("style") == "json"
    judge_all, compared = only.pop("judge_all"), []
    asked = Scope(**only, release_ids=None)
    with reading_current(store_url(db)) as connection:
        wrong = gates.unaccepted(connection, reviewed, judge_all)
        for pair in releases.both_named(a, b, releases.known_releases(connection), asked.framework):
            of_a, of_b = (marked(releases.results_of(connection, it, asked), wrong) for it in pair)
            compared.append((pair[0].name, pair[1].name, match.comparison(of_a, of_b, metric)))
    for name_a, name_b, found in compared:
        if not found.matched:
            click.echo(report.why_nothing(name_a, name_b, found, asked), err=as_json)
        if not as_json:
            _print(name_a, name_b, found, metric)
    whole = match.together([found for _, _, found in compared])
    if as_json:
        options.print_json(document(whole))
    elif len(compared) > 1:
        click.echo(f"{len(compared)} frameworks: {report.summary(whole)}")
    gates.print_not_judged(len(whole.matched) - len(whole.judged), err=as_json)
    _warn_of_containers(whole)
    failed = len(whole.failed)
    unknown = sum(it.judgement.verdict is Verdict.UNKNOWN for it in whole.matched)
    options.warn_of_ungated(failed, unknown, gate)
    closing = {
        "slower": bool(whole.slower(least)),
        "missing": whole.missing,
        "unknown": failed + unknown > 0,
    }
    unjudged = options.nothing_judged(len(whole.judged) > unknown, gate)
    return 1 if unjudged or any(closing[word] for word in gate) else 0


def _warn_of_containers(whole: Comparison) -> None:
    """Warn of releases whose containers are not distinguished, though one may be the slower."""
    sides = [side for it in whole.matched for side in (it.a, it.b)]
    pooled = [side.shown for side in sides if len(side.containers) > 1]
    for it in {(it.framework, it.release): it for it in pooled}.values():
        name = Release(framework=it.framework, version=it.release).name
        boxed = shlex.quote(f"{name} [{it.container or 'no container'}]")
        message = f"the runs of {name} are of several containers: name one, such as {boxed}"
        click.echo(f"warning: {message}", err=True)


def _print(name_a: str, name_b: str, found: Comparison, metric: str | None) -> None:
    if found.matched:
        columns = ["Case", "Figure", "A", "B", "B/A", "95 % interval", "B is"]
        options.print_table(f"A: {name_a}, B: {name_b}", columns, map(_row, found.matched))
    for name, sides, others in ((name_a, found.only_a, found.only_b), (name_b, found.only_b, ())):
        if sides:
            rows = [_unmatched(side, metric, others) for side in sides]
            options.print_table(f"Only in {name}", ["Case", "Figure", "Value"], rows)
    click.echo(report.summary(found))


def _row(it: Match) -> tuple[str, ...]:
    a, b = it.a.shown, it.b.shown
    verdict = (report.verdict(it.judgement, it.metric), report.failed(it.b))
    return (
        options.cell(report.workload(a), report.how(it), report.remark(it)),
        METRICS[it.metric].title,
        report.figure(a, it.metric),
        report.figure(b, it.metric),
        figure(it.judgement.ratio, 3),
        report.interval(it.judgement),
        "\n".join(filter(None, verdict)),
    )


def _unmatched(side: Side, asked: str | None, others: Sequence[Side]) -> tuple[str, ...]:
    metric, it = METRICS[match.metric_for([side], [side], asked)], side.shown
    notes = report.remark_of(side), match.nearest_text(side, others)
    case = options.cell(report.workload(it), report.configuration(it), *notes)
    return case, metric.title, report.figure(it, metric.name)
