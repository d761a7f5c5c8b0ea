"""The history of a model: the same work in one release of a framework after another."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from markupsafe import Markup

from perfdb.catalog import titles
from perfdb.groups import grouped
from perfdb.metrics import Metric
from perfdb.site import bests, charts
from perfdb.site.bests import LabelPart
from perfdb.site.cells import HtmlCell, figure_cell, figure_text
from perfdb.site.charts import ChartLine
from perfdb.site.data import SiteResult
from perfdb.site.tables import HtmlHead, plain
from perfdb.site.templates import joined
from perfdb.stated import figure
from perfdb.versions import is_rolling, version_order

Work = Mapping[str, SiteResult]
"""The best result of a work, by the version of the release."""

NAMES: Final = (bests.SYSTEM, bests.PRECISION, bests.GPUS)
"""What the name of a line always has."""

DETAILS: Final = (
    LabelPart("model qualifiers", lambda one: one.qualifiers),
    LabelPart("global batch size", lambda one: f"GBS {one.global_batch_size:,}"),
    bests.SEQUENCE,
    bests.ORIGIN,
)
"""What else tells one work from another: in the name of a line where the lines differ in it."""


def over_releases(title: str, results: Sequence[SiteResult]) -> Markup:
    """A chart and a table for each framework that did the same work in two or more releases."""
    by_framework = grouped(results, lambda one: one.framework)
    return joined(
        _of_framework(title, titles.framework(name), by_framework[name])
        for name in sorted(by_framework, key=titles.framework)
    )


def _of_framework(subject: str, framework: str, results: Sequence[SiteResult]) -> Markup:
    metric = bests.metric_for(results, bests.OF_A_MODEL)
    works = works_of(results, metric)
    if not works:
        return Markup("")
    builds = {name: one.build for work in works for name, one in work.items()}
    names = sorted(builds, key=lambda name: version_order(name, builds[name]))
    heading = f"{framework} over its releases"
    title = f"{subject}: {heading}"
    by_system = grouped(works, _system)
    drawn = joined(
        charts.over_releases(
            f"{title}, {name}",
            metric.title,
            names,
            _lines(some[: charts.MOST_LINES], names, metric),
        )
        for name, some in by_system.items()
    )
    count = sum(min(len(some), charts.MOST_LINES) for some in by_system.values())
    first = f"The first {charts.MOST_LINES} rows of each system are drawn, "
    note = bests.note(
        f"{first}{count:,} of {len(works):,} in all." if len(works) > count else "",
        "The best figure of each release at the same work, whatever its configuration.",
        *_left_out(results),
    )
    rows = [_row(work, names, metric) for work in works]
    heads = [
        HtmlHead("System"),
        HtmlHead("Work", wide=True),
        *(HtmlHead(it, numeric=True) for it in names),
    ]
    name = Markup("<h3>{}</h3>\n").format(heading)
    return joined((name, charts.with_note(drawn, note), plain(title, heads, rows)))


def _system(work: Work) -> str:
    return bests.SYSTEM.of(_first(work))


def _first(work: Work) -> SiteResult:
    """The one that says which work it is."""
    return next(iter(work.values()))


def _left_out(results: Sequence[SiteResult]) -> tuple[str, str]:
    """Which results have no place in a history: rolling branches, and errors of the audit."""
    rolling = sorted({one.release for one in results if one.release and is_rolling(one.release)})
    branches = "which moves on, has" if len(rolling) == 1 else "which move on, have"
    unplaced = f"{', '.join(rolling)}, {branches} no place among them." if rolling else ""
    return unplaced, bests.contradicted(sum(one.has_open_errors for one in results))


def works_of(results: Iterable[SiteResult], metric: Metric) -> list[Work]:
    """Each work that two or more numbered releases have a figure of, in the order they come.

    What the audit calls an error is in none.
    """
    works: dict[tuple[str, str], dict[str, SiteResult]] = defaultdict(dict)
    for result in results:
        value = figure(result, metric.name)
        if result.release is None or is_rolling(result.release):
            continue
        if value is None or result.has_open_errors:
            continue
        work = works[result.workload_key, result.origin]
        best = work.get(result.release)
        if best is None or value > (figure(best, metric.name) or 0.0):
            work[result.release] = result
    return [work for work in works.values() if len(work) > 1]


def _lines(works: Sequence[Work], names: Sequence[str], metric: Metric) -> list[ChartLine]:
    """A line for each work, through the figures of the releases that have it."""
    firsts = list(map(_first, works))
    parts = (*NAMES, *bests.differing(DETAILS, firsts))
    return [
        ChartLine(_said(parts, first), *_points(work, names, metric))
        for first, work in zip(firsts, works, strict=True)
    ]


def _points(
    work: Work, names: Sequence[str], metric: Metric
) -> tuple[tuple[tuple[float, float], ...], tuple[str, ...]]:
    """The places of its releases with their figures, and these as tables print them."""
    there = [(float(place), work[name]) for place, name in enumerate(names) if name in work]
    points = tuple((place, figure(one, metric.name) or 0.0) for place, one in there)
    return points, tuple(figure_text(one, metric.name) for _, one in there)


def _said(parts: Iterable[LabelPart], result: SiteResult) -> str:
    return " · ".join(filter(None, (part.of(result) for part in parts)))


def _row(work: Work, names: Sequence[str], metric: Metric) -> list[HtmlCell]:
    first = _first(work)
    system, *others = NAMES
    cells = (figure_cell(work.get(name), metric.name) for name in names)
    return [HtmlCell(system.of(first)), HtmlCell(_said((*others, *DETAILS), first)), *cells]
