"""The history of a model: the same work in one release of a framework after another."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from perfdb import units
from perfdb.metrics import Metric
from perfdb.site import bests, charts, markup
from perfdb.site.charts import Line
from perfdb.site.data import Result
from perfdb.site.markup import Cell, Head, Html, joined, tag
from perfdb.site.words import framework_title, gpus
from perfdb.versions import is_rolling, natural

MOST_LINES: Final = 6
"""Lines that a chart has at most; the table below it has them all."""

Work = Mapping[str, Result]
"""The best result of a work, by the version of the release."""


def over_releases(title: str, results: Sequence[Result]) -> Html:
    """A chart and a table for each framework that did the same work in two or more releases."""
    by_framework: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        by_framework[result.framework].append(result)
    return joined(
        _of_framework(title, framework_title(name), by_framework[name])
        for name in sorted(by_framework, key=framework_title)
    )


def _of_framework(subject: str, framework: str, results: Sequence[Result]) -> Html:
    metric = bests.metric_for(results, bests.OF_A_MODEL)
    works = works_of(results, metric)
    if not works:
        return Html("")
    names = sorted({name for work in works for name in work}, key=natural)
    lines = [_line(work, names, metric) for work in works[:MOST_LINES]]
    heading = f"{framework} over its releases"
    title = f"{subject}: {heading}"
    drawn = charts.over_releases(title, metric.title, names, lines)
    some = f"The first {len(lines)} of {len(works)} rows are drawn."
    note = bests.note(
        some if len(works) > len(lines) else "",
        "The best figure of each release at the same work, whatever its configuration.",
        *_left_out(results),
    )
    return joined((tag("h3", heading), drawn, note, _table(title, names, works, metric)))


def _left_out(results: Sequence[Result]) -> tuple[str, str]:
    """Which results have no place in a history: rolling branches, and errors of the audit."""
    rolling = sorted({one.release for one in results if one.release and is_rolling(one.release)})
    branches = f"{', '.join(rolling)}, which moves on, has no place among them." if rolling else ""
    return branches, bests.contradicted(sum(one.has_open_errors for one in results))


def works_of(results: Iterable[Result], metric: Metric) -> list[Work]:
    """Each work that two or more numbered releases have a figure of, in the order they come.

    What the audit calls an error is in none.
    """
    works: dict[tuple[str, str], dict[str, Result]] = defaultdict(dict)
    for result in results:
        value = bests.figure(result, metric.name)
        if result.release is None or is_rolling(result.release):
            continue
        if value is None or result.has_open_errors:
            continue
        work = works[result.workload_key, result.origin]
        best = work.get(result.release)
        if best is None or value > (bests.figure(best, metric.name) or 0.0):
            work[result.release] = result
    return [work for work in works.values() if len(work) > 1]


def _line(work: Work, names: Sequence[str], metric: Metric) -> Line:
    points = [
        (float(place), bests.figure(work[name], metric.name) or 0.0)
        for place, name in enumerate(names)
        if name in work
    ]
    first = next(iter(work.values()))
    known = (first.system_title, bests.precision_of(first), gpus(first.num_gpus))
    return Line(" · ".join(filter(None, known)), tuple(points))


def _table(title: str, names: Sequence[str], works: Sequence[Work], metric: Metric) -> Html:
    heads = [Head("System"), Head("Work"), *(Head(name, numeric=True) for name in names)]
    rows = [
        [
            *_named(next(iter(work.values()))),
            *(
                Cell(bests.marked(work[name], metric.name) if name in work else units.UNKNOWN)
                for name in names
            ),
        ]
        for work in works
    ]
    return markup.table(markup.Table(title, heads, rows))


def _named(result: Result) -> tuple[Cell, Cell]:
    known = (
        bests.precision_of(result),
        gpus(result.num_gpus),
        f"GBS {result.global_batch_size:,}",
        f"sequence {result.sequence_length:,}",
        result.origin,
    )
    return Cell(result.system_title), Cell(" · ".join(filter(None, known)))
