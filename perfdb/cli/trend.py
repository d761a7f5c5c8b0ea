"""`perfdb trend`: the figures of the same work over releases, and where they got worse."""

from collections.abc import Iterable, Sequence

import click

from perfdb import trend as trending
from perfdb.cli.gate import gate_option, say_untold
from perfdb.cli.judged import Known, judged_options, say_not_judged, wrong
from perfdb.cli.options import (
    db_option,
    json_option,
    metric_option,
    only_options,
    print_json,
)
from perfdb.cli.store import opened
from perfdb.cli.trended import print_series
from perfdb.compare import Level, Verdict, marked
from perfdb.compare.read import known_releases
from perfdb.queries.only import Only
from perfdb.trend import Series, Timed, read
from perfdb.trend.document import document


@click.command()
@click.argument("asked", nargs=-1, metavar="[MODEL_OR_CASE]...")
@db_option
@only_options("framework", "system")
@metric_option("follow")
@gate_option(
    ("regression", "missing", "unknown"),
    "Exit with 1 where a release is slower than the one before it and no later one has made up for "
    "it, where the newest release lacks what the one before has or failed at it, or where no "
    "verdict can be given; several with a comma. [default: never]",
)
@click.option("--all", "all_", is_flag=True, help="Without a model list also what has no news.")
@json_option
@judged_options
def trend(
    asked: Sequence[str],
    gate: frozenset[str],
    known: Known,
    *,
    all_: bool,
    as_json: bool,
    **only: str | None,
) -> int:
    """Follow the figures of the same work over releases, and say where they got worse.

    MODEL_OR_CASE is a model, such as llama3-8b, or the first six characters or more of a workload
    or case key. Of a model or a workload each release stands with its best configuration, of a
    case with that one. Changes and verdicts are those of `perfdb compare`, against the release
    before; a rolling branch, such as main, is held against the newest release. The bars are the
    runs of a release in time (of logs as they were ingested), lowest to highest over the whole
    series. A figure with open errors of the audit is listed, not judged and then stepped over.

    Without MODEL_OR_CASE everything is followed, and listed where the newest release is faster or
    slower than the one before, failed or lacks something.
    """
    db, metric = only.pop("db"), only.pop("metric")
    found = _followed(asked, db, metric, Only(**only), known)
    if as_json:
        print_json({"series": [document(one) for one in found]})
    else:
        print_series(found, only_news=not asked and not all_)
    not_judged = sum(not point.is_judged for one in found for point in one.points)
    say_not_judged(not_judged, err=as_json)
    return _gated(found, gate)


def _gated(found: Sequence[Series], gate: frozenset[str]) -> int:
    """The exit code."""
    failed = sum(bool(one.ends(Verdict.FAILED)) for one in found)
    unknown = sum(bool(one.untold) for one in found)
    say_untold(failed, unknown, gate)
    closing = {
        "regression": any(one.is_slower for one in found),
        "missing": failed > 0 or any(one.missing_in for one in found),
        "unknown": failed + unknown > 0,
    }
    return 1 if any(closing[word] for word in gate) else 0


def _followed(
    asked: Sequence[str], db: str | None, metric: str | None, only: Only, known: Known
) -> list[Series]:
    with opened(db) as connection:
        results = marked(read.results(connection, asked, only), wrong(connection, known))
        choices = known_releases(connection)
        versions = read.versions(connection, choices)
    of_cases = [result for result in results if _is_of_case(result, asked)]
    of_work = [result for result in results if not _is_of_case(result, asked)]
    found = [
        *trending.follow(of_work, choices, Level.WORKLOAD, metric),
        *trending.follow(of_cases, choices, Level.CONFIGURATION, metric),
    ]
    return [trending.noted_missing(one, versions) for one in found]


def _is_of_case(result: Timed, asked: Iterable[str]) -> bool:
    keys = [word.lower() for word in asked if read.is_key(word)]
    return any(result.case_key.startswith(key) for key in keys)
