"""How `perfdb trend` prints series: tables of releases, bars of runs, and what needs a look."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean

import click

from perfdb.cli.options import print_table
from perfdb.compare import Level, Verdict, report
from perfdb.compare.report import printed
from perfdb.compare.trend import Decline, Point, Series
from perfdb.metrics import METRICS
from perfdb.record import Result
from perfdb.units import UNKNOWN, counted, percent

BLOCKS = "▁▂▃▄▅▆▇█"
MOST_BARS = 20
"""From so many runs on, neighbours share a bar, and how many they are is said."""

PIPE_WIDTH = 120
"""Columns where stdout is no terminal."""


def print_series(found: Sequence[Series], results: Sequence[Result], *, only_news: bool) -> None:
    """Series over releases, and what is in one alone; with `only_news` those that have some.

    `results` are all that they were made of.
    """
    for one in found:
        if len(one.points) > 1 and (one.has_news or not only_news):
            _print(one)
    if not only_news:
        _print_single(found)
    _print_missing([one for one in found if one.missing_in])
    _print_failed(found)
    _print_untold(found)
    click.echo(_summary(found, only_news=only_news))
    shown = {run.case_key for one in found for point in one.points for run in point.runs}
    if more := len({result.case_key for result in results} - shown):
        said = counted(more, "further case")
        click.echo(f"not shown: {said} of the same work; --each-case follows each")


def _print(one: Series) -> None:
    metric, it = METRICS[one.metric], one.shown
    title = f"{report.workload(it)}\n{it.framework}, {it.origin}"
    if one.level is Level.CONFIGURATION:
        title += f", {report.configuration(it)}"
    columns = ("Release", metric.title, "Change", "95 % interval", "Verdict", "Runs")
    print_table(title, columns, (_row(one, point) for point in one.points), PIPE_WIDTH)
    if said := _said(one):
        click.echo(f"  {said}\n")


def _said(one: Series) -> str:
    worse = report.named(Verdict.SLOWER, one.metric)
    said = [f"first {worse}: {one.regression.release}"] if one.regression else []
    said += ["made up for since"] if one.recovered else []
    said += [_declined(one.decline, worse)] if one.decline else []
    said += [f"missing in {one.missing_in}"] if one.missing_in else []
    said += ["another layout has taken its place"] if one.gave_way else []
    apart = [point for point in one.points if point.is_apart]
    slower = [point for point in apart if point.verdict is Verdict.SLOWER]
    said += [f"{worse} than {point.against}: {point.release}" for point in slower]
    names = ", ".join(point.release for point in apart)
    said += [f"{names} have no order: none is compared with another"] if len(apart) > 1 else []
    return "; ".join(said)


def _declined(found: Decline, worse: str) -> str:
    """'1.20 is slower than the best release, 1.0: -21.2 % (0.777 – 0.799)'."""
    ratio, within = found.judgement.ratio, report.interval(found.judgement)
    change = UNKNOWN if ratio is None else _signed(ratio - 1)
    said = (
        f"{found.newest.release} is {worse} than the best release, {found.best.release}: {change}"
    )
    return said if within == UNKNOWN else f"{said} ({within})"


def _print_single(found: Sequence[Series]) -> None:
    """What is in one release alone has nothing to be held against yet."""
    rows = [_last(one) for one in found if len(one.points) == 1 and not one.missing_in]
    known = [row for row in rows if UNKNOWN not in row]
    if known:
        columns = ("Work", "Release", "Figure", "Runs")
        print_table("In one release alone", columns, known, PIPE_WIDTH)


def _print_missing(found: Sequence[Series]) -> None:
    """What the newest release lacks, by its name."""
    for name in dict.fromkeys(f"{one.shown.framework} {one.missing_in}" for one in found):
        columns = ("Work", "Last in", "Figure", "Runs")
        lacking = [one for one in found if f"{one.shown.framework} {one.missing_in}" == name]
        print_table(f"Missing in {name}", columns, map(_last, lacking), PIPE_WIDTH)


def _print_failed(found: Sequence[Series]) -> None:
    """What finished before and does not today, with how it ended."""
    rows = [(_work(one), _step(one, point), _how(point)) for one in found for point in one.failed]
    if rows:
        print_table("Failed", ("Work", "Releases", "Why"), rows, PIPE_WIDTH)


def _how(point: Point) -> str:
    """How many runs failed; 'out of memory', and on the next line why it has no figures."""
    reason = point.judgement.reason if point.judgement else None
    return report.failed(point.side) or "\n".join(filter(None, (reason, report.ended(point.side))))


def _print_untold(found: Sequence[Series]) -> None:
    rows = [(_work(one), _step(one, point), _why(point)) for one in found for point in one.untold]
    if rows:
        print_table("Cannot be told", ("Work", "Releases", "Why"), rows, PIPE_WIDTH)


def _why(point: Point) -> str:
    if point.cannot_be_told:
        return point.cannot_be_told
    has_ratio = point.judgement is not None and point.judgement.ratio is not None
    return report.ended(point.side) or ("no spread" if has_ratio else "no figure of one of them")


def _work(one: Series, *marks: str) -> str:
    """Its work, of a case by itself how it was done, and marks: each on a line, the last empty."""
    of_case = one.level is Level.CONFIGURATION
    how = report.configuration(one.shown) if of_case else ""
    return "\n".join((*filter(None, (report.workload(one.shown), how, *marks)), ""))


def _step(one: Series, point: Point) -> str:
    return f"{one.shown.framework} {point.against} → {point.release}"


def _last(one: Series) -> tuple[str, ...]:
    point, metric = (one.releases or one.points)[-1], METRICS[one.metric]
    figure = report.figure(point.side.shown, metric.name)
    marks = ", ".join(filter(None, (one.shown.origin, metric.title, report.flag(point.side))))
    return _work(one, marks), f"{one.shown.framework} {point.release}", figure, _runs(one, point)


def _row(series: Series, point: Point) -> tuple[str, ...]:
    metric, judged = METRICS[series.metric], point.judgement
    ratio = judged.ratio if judged else None
    against = f"against {point.against}" if point.is_apart and point.against else ""
    lost = report.runs(point.side) if point.side.finished != point.side.results else ""
    notes = (
        report.changes(point.differences),
        lost,
        report.containers(point.side),
        report.ended(point.side),
        report.flag(point.side),
        report.median(point.side, metric.name),
    )
    return (
        "\n".join(filter(None, (point.release, against, *notes))),
        report.figure(point.side.shown, metric.name),
        UNKNOWN if ratio is None else _signed(ratio - 1),
        report.interval(judged) if judged else UNKNOWN,
        report.verdict(judged, series.metric) if judged else "",
        _runs(series, point),
    )


def _runs(series: Series, point: Point) -> str:
    """A bar for each run; of many also how many they are, and from where to where."""
    figures = series.figures(point.runs)
    bars = sparkline(figures, _range(series))
    if len(figures) <= MOST_BARS:
        return bars
    low, high = (printed(METRICS[series.metric], end(figures)) for end in (min, max))
    return f"{bars}\n{len(figures)} runs, {low}–{high}"


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


def _summary(found: Sequence[Series], *, only_news: bool) -> str:
    followed = [one for one in found if len(one.points) > 1]
    counts = {
        "made up for": sum(one.recovered for one in found),
        "missing in the newest": sum(one.missing_in is not None for one in found),
        "failed": sum(bool(one.failed) for one in found),
        "cannot be told": sum(bool(one.untold) for one in found),
    }
    named = dict.fromkeys(report.named(Verdict.SLOWER, one.metric) for one in found)
    worse = " or ".join(named or [Verdict.SLOWER])
    parts = [f"{sum(one.is_slower() for one in found)} {worse} than before"]
    parts += [f"{count} {word}" for word, count in counts.items() if count]
    said = f"{len(followed)} followed over releases: {', '.join(parts)}"
    hidden = sum(not (one.has_news or one.untold) for one in followed) if only_news else 0
    return f"{said}; {hidden} without news are not listed: --all lists them" if hidden else said
