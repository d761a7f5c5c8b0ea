"""`perfdb trend`: the figures of the same work over releases, and where they got worse."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from statistics import fmean

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
    print_table,
)
from perfdb.cli.store import opened
from perfdb.compare import Level, Verdict, marked, words
from perfdb.compare.read import known_releases
from perfdb.metrics import METRICS
from perfdb.queries.only import Only
from perfdb.trend import Point, Series, Timed, read
from perfdb.units import UNKNOWN, number, percent

BLOCKS = "▁▂▃▄▅▆▇█"
MOST_BARS = 20
"""From so many runs on, neighbours share a bar, and how many they are is said."""

PIPE_WIDTH = 120
"""Columns where stdout is no terminal."""


@click.command()
@click.argument("asked", nargs=-1, required=True, metavar="MODEL_OR_CASE...")
@db_option
@only_options("framework", "system")
@metric_option("follow")
@gate_option(
    ("regression", "missing", "unknown"),
    "Exit with 1 where a release is slower than the one before it and no later one has made up for "
    "it, where the newest release lacks what the one before has, or where no verdict can be given; "
    "several with a comma. [default: never]",
)
@json_option
@judged_options
def trend(
    asked: Sequence[str],
    gate: frozenset[str],
    known: Known,
    *,
    as_json: bool,
    **only: str | None,
) -> int:
    """Follow the figures of the same work over releases, and say where they got worse.

    MODEL_OR_CASE is a model, such as llama3-8b, or the first six characters or more of a workload
    or case key. Of a model or a workload each release stands with its best configuration, of a
    case with that one. Changes and verdicts are those of `perfdb compare`, against the release
    before. The bars are the runs of a release in time, lowest to highest over the whole series. A
    figure with open errors of the audit is listed, not judged and then stepped over.
    """
    db, metric = only.pop("db"), only.pop("metric")
    found = _followed(asked, db, metric, Only(**only), known)
    if as_json:
        print_json({"series": [_document(one) for one in found]})
    else:
        for one in found:
            if len(one.points) > 1:
                _print(one)
        _print_single([one for one in found if len(one.points) == 1 and not one.missing_in])
        _print_missing([one for one in found if one.missing_in])
        _print_untold(found)
        click.echo(_summary(found))
    not_judged = sum(not point.is_judged for one in found for point in one.points)
    say_not_judged(not_judged, err=as_json)
    return _gated(found, gate)


def _gated(found: Sequence[Series], gate: frozenset[str]) -> int:
    """The exit code."""
    unknown = sum(_is_unknown(one) for one in found)
    say_untold(unknown, gate)
    closing = {
        "regression": any(one.regression and not one.recovered for one in found),
        "missing": any(one.missing_in for one in found),
        "unknown": unknown > 0,
    }
    return 1 if any(closing[word] for word in gate) else 0


def _is_unknown(one: Series) -> bool:
    """Whether the newest release has no verdict, or two that have a figure are no measure."""
    judged = one.points[-1].judgement
    newest = judged is not None and judged.verdict is Verdict.UNKNOWN
    return newest or any(point.cannot_be_told for point in one.points)


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


def _document(one: Series) -> dict[str, object]:
    it, metric = one.shown, METRICS[one.metric]
    return {
        "workload_key": it.workload_key,
        "case_key": it.case_key if one.level is Level.CONFIGURATION else None,
        "level": one.level,
        "framework": it.framework,
        "model": it.model,
        "qualifiers": it.qualifiers,
        "task": it.task,
        "system": it.system,
        "num_gpus": it.num_gpus,
        "precision": it.precision,
        "sequence_length": it.sequence_length,
        "global_batch_size": it.global_batch_size,
        "origin": it.origin,
        "metric": metric.name,
        "unit": metric.unit,
        "points": [_point(one, point) for point in one.points],
        "first_regression": one.regression.release if one.regression else None,
        "recovered": one.recovered,
        "missing_in": one.missing_in,
    }


def _point(series: Series, point: Point) -> dict[str, object]:
    judged = point.judgement
    runs = [
        {"run_id": run.run_id, "started_at": run.started_at, "figure": run.figure(series.metric)}
        for run in point.runs
    ]
    return {
        "release": point.release,
        "case_key": point.side.shown.case_key,
        "figure": point.side.shown.figure(series.metric),
        "ratio": judged.ratio if judged else None,
        "low": judged.low if judged else None,
        "high": judged.high if judged else None,
        "verdict": judged.verdict if judged else None,
        "reason": judged.reason if judged else None,
        "has_open_errors": point.has_open_errors,
        "window": point.side.window,
        "num_steps": point.side.shown.num_steps,
        "differences": {one.field: [one.a, one.b] for one in point.differences},
        "runs": runs,
    }


def _print(one: Series) -> None:
    metric, it = METRICS[one.metric], one.shown
    title = f"{words.workload(it)}\n{it.framework}, {it.origin}"
    if one.level is Level.CONFIGURATION:
        title += f", {words.configuration(it)}"
    columns = ("Release", metric.title, "Change", "95 % interval", "Verdict", "Runs")
    print_table(title, columns, (_row(one, point) for point in one.points), PIPE_WIDTH)
    if said := _regression(one):
        click.echo(f"  {said}\n")


def _print_single(found: Sequence[Series]) -> None:
    """What is in one release alone has nothing to be held against yet."""
    if found:
        columns = ("Work", "Release", "Figure", "Runs")
        print_table("In one release alone", columns, map(_last, found), PIPE_WIDTH)


def _print_missing(found: Sequence[Series]) -> None:
    """What the newest release lacks, by its name."""
    for name in dict.fromkeys(f"{one.shown.framework} {one.missing_in}" for one in found):
        columns = ("Work", "Last in", "Figure", "Runs")
        lacking = [one for one in found if f"{one.shown.framework} {one.missing_in}" == name]
        print_table(f"Missing in {name}", columns, map(_last, lacking), PIPE_WIDTH)


def _print_untold(found: Sequence[Series]) -> None:
    rows = [row for one in found for row in _untold(one)]
    if rows:
        print_table("Cannot be told", ("Work", "Releases", "Why"), rows, PIPE_WIDTH)


def _untold(one: Series) -> Iterator[tuple[str, ...]]:
    for before, point in pairwise(one.points):
        if point.cannot_be_told:
            work = f"{words.workload(one.shown)}\n"
            yield work, f"{before.release} → {point.release}", point.cannot_be_told


def _last(one: Series) -> tuple[str, ...]:
    point, metric = one.points[-1], METRICS[one.metric]
    figure = number(point.side.shown.figure(metric.name), metric.digits)
    marks = ", ".join(filter(None, (one.shown.origin, metric.title, words.flag(point.side))))
    work = f"{words.workload(one.shown)}\n{marks}\n"
    return work, f"{one.shown.framework} {point.release}", figure, _runs(one, point)


def _row(series: Series, point: Point) -> tuple[str, ...]:
    metric, judged = METRICS[series.metric], point.judgement
    ratio = judged.ratio if judged else None
    notes = words.changes(point.differences), words.ended(point.side), words.flag(point.side)
    return (
        "\n".join(filter(None, (point.release, *notes))),
        number(point.side.shown.figure(metric.name), metric.digits),
        UNKNOWN if ratio is None else _signed(ratio - 1),
        words.interval(judged) if judged else UNKNOWN,
        str(judged.verdict) if judged else "",
        _runs(series, point),
    )


def _runs(series: Series, point: Point) -> str:
    """A bar for each run; of many also how many they are, and from where to where."""
    figures = series.figures(point.runs)
    bars = sparkline(figures, _range(series))
    if len(figures) <= MOST_BARS:
        return bars
    digits = METRICS[series.metric].digits
    ends = f"{number(min(figures), digits)}–{number(max(figures), digits)}"
    return f"{bars}\n{len(figures)} runs, {ends}"


def _signed(change: float) -> str:
    return f"{'+' if change >= 0 else ''}{percent(change)}"


def _range(series: Series) -> tuple[float, float]:
    figures = [value for point in series.points for value in series.figures(point.runs)]
    return (min(figures), max(figures)) if figures else (0.0, 0.0)


def sparkline(figures: Sequence[float], between: tuple[float, float]) -> str:
    """A bar for each figure, from the lowest to the highest; half-way up where all are equal.

    Of more than MOST_BARS figures a bar is the mean of neighbours.
    """
    low, high = between
    top, count = len(BLOCKS) - 1, min(len(figures), MOST_BARS)
    cuts = [place * len(figures) // count for place in range(count)] if count else []
    shared = [figures[a:b] for a, b in pairwise([*cuts, len(figures)])]
    means = [fmean(part) if len(part) > 1 else part[0] for part in shared]
    places = [(mean - low) / (high - low) if high > low else 0.5 for mean in means]
    return "".join(BLOCKS[round(place * top)] for place in places)


def _regression(one: Series) -> str:
    said = [f"first slower: {one.regression.release}"] if one.regression else []
    said += ["made up for since"] if one.recovered else []
    said += [f"missing in {one.missing_in}"] if one.missing_in else []
    return "; ".join(said)


def _summary(found: Sequence[Series]) -> str:
    worse = [one for one in found if one.regression]
    stand = sum(not one.recovered for one in worse)
    made_up = len(worse) - stand
    counts = {
        "made up for": made_up,
        "missing in the newest": sum(one.missing_in is not None for one in found),
        "cannot be told": sum(_is_unknown(one) for one in found),
    }
    parts = [f"{stand} slower than before"]
    parts += [f"{count} {word}" for word, count in counts.items() if count]
    followed = sum(len(one.points) > 1 for one in found)
    return f"{followed} followed over releases: {', '.join(parts)}"
