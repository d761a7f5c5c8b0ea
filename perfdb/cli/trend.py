"""`perfdb trend`: the figures of the same work over releases, and where they got worse."""

from collections.abc import Iterable, Sequence

import click

from perfdb import trend as trending
from perfdb.cli.options import db_option, json_option, print_json, print_table
from perfdb.compare import Level, words
from perfdb.compare.read import known_releases
from perfdb.db.migrate import require_current
from perfdb.db.session import reading, store_url
from perfdb.metrics import METRICS
from perfdb.queries.only import Only
from perfdb.trend import Point, Series, Timed, read
from perfdb.units import UNKNOWN, number, percent

BLOCKS = "▁▂▃▄▅▆▇█"


@click.command()
@click.argument("asked", nargs=-1, required=True, metavar="MODEL_OR_CASE...")
@db_option
@click.option("--framework", help="Only results of this framework.")
@click.option("--system", help="Only results on this system, such as dgx-h100.")
@click.option(
    "--metric",
    type=click.Choice(list(METRICS)),
    help="The figure to follow. [default: tokens_per_sec_per_gpu, or "
    "model_tflops_per_sec_per_gpu where only that is known]",
)
@click.option(
    "--fail-on",
    type=click.Choice(["regression", "never"]),
    default="never",
    show_default=True,
    help="Exit with 1 where a release is slower than the one before it, and no later one has made "
    "up for it.",
)
@json_option
def trend(
    asked: Sequence[str],
    db: str | None,
    metric: str | None,
    fail_on: str,
    *,
    as_json: bool,
    **only: str | None,
) -> int:
    """Follow the figures of the same work over releases, and say where they got worse.

    MODEL_OR_CASE is a model, such as llama3-8b, or the first six characters or more of a workload
    or case key. Of a model or a workload each release stands with its best configuration, of a
    case with that one. Changes and verdicts are those of `perfdb compare`, against the release
    before. The bars are the runs of a release in time, lowest to highest over the whole series.
    """
    found = _followed(asked, db, Only(**only), metric)
    if as_json:
        print_json({"series": [_document(one) for one in found]})
    else:
        for one in found:
            if len(one.points) > 1:
                _print(one)
        _print_single([one for one in found if len(one.points) == 1])
        click.echo(_summary(found))
    stands = any(one.regression and not one.recovered for one in found)
    return 1 if fail_on == "regression" and stands else 0


def _followed(asked: Sequence[str], db: str | None, only: Only, metric: str | None) -> list[Series]:
    url = store_url(db)
    with reading(url) as connection:
        require_current(connection, url.render_as_string())
        results = read.results(connection, asked, only)
        choices = known_releases(connection)
    of_cases = [result for result in results if _is_of_case(result, asked)]
    of_work = [result for result in results if not _is_of_case(result, asked)]
    return [
        *trending.follow(of_work, choices, Level.WORKLOAD, metric),
        *trending.follow(of_cases, choices, Level.CONFIGURATION, metric),
    ]


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
        "differences": {one.field: [one.a, one.b] for one in point.differences},
        "runs": runs,
    }


def _print(one: Series) -> None:
    metric, it = METRICS[one.metric], one.shown
    title = f"{words.workload(it)}\n{it.framework}, {it.origin}"
    if one.level is Level.CONFIGURATION:
        title += f", {words.configuration(it)}"
    columns = ("Release", metric.title, "Change", "95 % interval", "Verdict", "Runs")
    print_table(title, columns, (_row(one, point) for point in one.points))
    if said := _regression(one):
        click.echo(f"  {said}\n")


def _print_single(found: Sequence[Series]) -> None:
    """What is in one release alone has nothing to be held against yet."""
    if found:
        columns = ("Work", "Release", "Figure", "Runs")
        print_table("In one release alone", columns, map(_single, found))


def _single(one: Series) -> tuple[str, ...]:
    [point], metric = one.points, METRICS[one.metric]
    figure = number(point.side.shown.figure(metric.name), metric.digits)
    work = f"{words.workload(one.shown)}\n{one.shown.origin}, {metric.title}\n"
    bars = sparkline(one.figures(point.runs), _range(one))
    return work, f"{one.shown.framework} {point.release}", figure, bars


def _row(series: Series, point: Point) -> tuple[str, ...]:
    metric, judged = METRICS[series.metric], point.judgement
    ratio = judged.ratio if judged else None
    changed = [words.changes(point.differences)] if point.differences else []
    ended = [words.ended(point.side)] if words.ended(point.side) else []
    return (
        "\n".join([point.release, *changed, *ended]),
        number(point.side.shown.figure(metric.name), metric.digits),
        UNKNOWN if ratio is None else _signed(ratio - 1),
        words.interval(judged) if judged else UNKNOWN,
        str(judged.verdict) if judged else "",
        sparkline(series.figures(point.runs), _range(series)),
    )


def _signed(change: float) -> str:
    return f"{'+' if change >= 0 else ''}{percent(change)}"


def _range(series: Series) -> tuple[float, float]:
    figures = [value for point in series.points for value in series.figures(point.runs)]
    return (min(figures), max(figures)) if figures else (0.0, 0.0)


def sparkline(figures: Iterable[float], between: tuple[float, float]) -> str:
    """A bar for each figure, from the lowest to the highest; half-way up where all are equal."""
    low, high = between
    top = len(BLOCKS) - 1
    places = [(figure - low) / (high - low) if high > low else 0.5 for figure in figures]
    return "".join(BLOCKS[round(place * top)] for place in places)


def _regression(one: Series) -> str:
    if one.regression is None:
        return ""
    since = f"first slower: {one.regression.release}"
    return f"{since}; made up for since" if one.recovered else since


def _summary(found: Sequence[Series]) -> str:
    worse = [one for one in found if one.regression]
    stand = sum(not one.recovered for one in worse)
    made_up = len(worse) - stand
    parts = [f"{stand} slower than before", *([f"{made_up} made up for"] if made_up else [])]
    followed = sum(len(one.points) > 1 for one in found)
    return f"{followed} followed over releases: {', '.join(parts)}"
