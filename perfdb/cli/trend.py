"""`perfdb trend`: the figures of the same work over releases, and where they got worse."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import NamedTuple

import click

from perfdb.cli.gate import gate_option, say_untold
from perfdb.cli.judged import Judging, judged_options, say_not_judged, wrong
from perfdb.cli.options import (
    db_option,
    json_option,
    metric_option,
    only_options,
    print_json,
)
from perfdb.cli.trended import print_series
from perfdb.compare import Choice, Level, marked, read
from perfdb.compare import trend as trending
from perfdb.compare.output import series
from perfdb.compare.read import known_releases
from perfdb.compare.trend import Series
from perfdb.db.session import reading_current, store_url
from perfdb.queries.scope import Only
from perfdb.record import Result

Gates = Sequence[frozenset[str]]
"""The gates that each series closes."""


class Listing(NamedTuple):
    """What is listed: also what has no news, and each case by itself."""

    all_: bool
    each_case: bool


def listing_options(command: Callable[..., int]) -> Callable[..., int]:
    """--all and --each-case, which the command takes as one: `listing`."""

    @click.option("--all", "all_", is_flag=True, help="Without a model list also what has no news.")
    @click.option(
        "--each-case",
        is_flag=True,
        help="Follow each case of a workload, not only the best one, as --fail-on does.",
    )
    @wraps(command)
    def listed(*, all_: bool, each_case: bool, **given: object) -> int:
        return command(listing=Listing(all_, each_case), **given)

    return listed


@click.command()
@click.argument("asked", nargs=-1, metavar="[MODEL_OR_CASE]...")
@db_option
@only_options("framework", "system")
@metric_option("follow")
@gate_option(
    ("regression", "missing", "unknown"),
    "Follow each case and exit with 1 where a release is slower than the one before it and no "
    "later one has made up for it, or the newest one than the best; where the newest release lacks "
    "what an earlier one has or failed at more of its runs; or where no verdict can be given; "
    "several with a comma. "
    "[default: never]",
)
@listing_options
@json_option
@judged_options
def trend(
    asked: Sequence[str],
    gate: frozenset[str],
    judging: Judging,
    *,
    listing: Listing,
    as_json: bool,
    **only: str | None,
) -> int:
    """Follow the figures of the same work over releases, and say where they got worse.

    MODEL_OR_CASE is a model, such as llama3-8b, or the first six characters or more of a workload
    or case key. Of a model or a workload each release stands with its best configuration, of a
    case with that one; --fail-on and --each-case follow each case of a workload. Of a version in
    several containers each is a release, in the order of time. Changes and verdicts are those of
    `perfdb compare`, against the release before; a rolling branch, such as main, is held against
    the newest release. The bars are the runs of a release in time (of logs as they were ingested),
    lowest to highest over the whole series. A figure with open errors of the audit is listed, not
    judged and then stepped over.

    Without MODEL_OR_CASE everything is followed, and listed where the newest release is faster or
    slower than the one before, failed or lacks something.
    """
    db, metric = only.pop("db"), only.pop("metric")
    with reading_current(store_url(db)) as connection:
        asked_for = read.results_of_words(connection, asked, Only(**only))
        results = marked(asked_for, wrong(connection, judging))
        choices = known_releases(connection)
        versions = read.versions(connection, choices)
    keys = [word.lower() for word in asked if read.is_key(word)]
    each = listing.each_case or gate
    followed = _followed(results, choices, metric, None if each else keys)
    found = trending.noted_missing(followed, versions)
    closed = [_closed(one, gate, judging.least) for one in found]
    if as_json:
        print_json(_document(found, closed))
    else:
        print_series(found, results, only_news=not asked and not listing.all_)
    not_judged = sum(not point.is_judged for one in found for point in one.points)
    say_not_judged(not_judged, err=as_json)
    say_untold(sum(bool(one.failed) for one in found), sum(bool(one.untold) for one in found), gate)
    return 1 if any(closed) else 0


def _document(found: Sequence[Series], closed: Gates) -> dict[str, object]:
    listed = [series(*one) for one in zip(found, closed, strict=True)]
    return {"closed": sorted(frozenset().union(*closed)), "series": listed}


def _closed(one: Series, gate: frozenset[str], least: float) -> frozenset[str]:
    """The gates that a series closes, of those that were asked for."""
    return frozenset(word for word, is_closed in one.closes(least).items() if is_closed) & gate


def _followed(
    results: Sequence[Result],
    choices: Sequence[Choice],
    metric: str | None,
    keys: Sequence[str] | None,
) -> list[Series]:
    """With each case by itself whose key begins with one of `keys`; None: with every one."""
    if keys is None:
        return trending.follow_each(results, choices, metric)
    of_cases = [one for one in results if one.case_key.startswith(tuple(keys))]
    of_work = [one for one in results if not one.case_key.startswith(tuple(keys))]
    return [
        *trending.follow(of_work, choices, Level.WORKLOAD, metric),
        *trending.follow(of_cases, choices, Level.CONFIGURATION, metric),
    ]
