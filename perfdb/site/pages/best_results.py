"""The best figures: bars of the newest releases, headlines, and lines over releases."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from markupsafe import Markup

from perfdb import units
from perfdb.catalog import colors, titles
from perfdb.compare import Side, change_points, report
from perfdb.compare.scaling import best_of_each
from perfdb.compare.verdict import TERMS
from perfdb.groups import grouped
from perfdb.metrics import CONVENTION_BOUND, METRICS, Metric
from perfdb.site import addresses, charts
from perfdb.site.cells import FLOPS, HtmlCell, figure_cell, figure_text, work
from perfdb.site.charts import ChartBar, ChartLine
from perfdb.site.data import SiteResult
from perfdb.site.grouping import of_newest_releases, precision_order, system_order
from perfdb.site.pages import parts
from perfdb.site.pages.parts import differing, label, note, rows_left_out
from perfdb.site.tables import HtmlHead, plain
from perfdb.site.templates import href, joined, render
from perfdb.stated import RATE, figure, is_computed
from perfdb.versions import is_rolling, version_order

HEADLINE: Final = "Best pre-training TFLOP/s/GPU"
RULE: Final = "else fine-tuning"
PRETRAINING: Final = "pretrain"

OF_A_MODEL: Final = (RATE, FLOPS, "mfu")
ACROSS_MODELS: Final = (FLOPS, "mfu")
"""The figures of a chart: the first of them that most results have. A token is not the same work in
two models, a floating-point operation is."""

DETAILS: Final = ("sequence length", "variant", "FLOPs convention")
"""Parts that the labels of bars have only where the bars differ in them."""
NAMES: Final = ("system", "precision", "number of GPUs")
HISTORY_DETAILS: Final = ("model qualifiers", "global batch size", "sequence length", "origin")
"""The parts that the label of a line always has, and those it has where the lines differ."""


def highest(results: Iterable[SiteResult], metric: str) -> dict[str, SiteResult]:
    """The highest figure on each system, in the order of the catalog, of rows without errors."""
    best = best_of_each(results, metric, lambda one: one.system)
    return {name: best[name] for name in sorted(best, key=system_order)}


def headlines(results: Sequence[SiteResult]) -> tuple[SiteResult, ...]:
    """The headline of each system: its highest TFLOP/s, of pre-training where it has any."""
    first = [one for one in results if one.task == PRETRAINING]
    return tuple((highest(results, FLOPS) | highest(first, FLOPS)).values())


def headline_cell(results: Sequence[SiteResult], where: Callable[[SiteResult], str]) -> HtmlCell:
    """The highest TFLOP/s with a link to its row; – where no row without an error states it.

    `where` is the text behind the work.
    """
    top = max(
        headlines(results),
        key=lambda it: (it.task == PRETRAINING, figure(it, FLOPS) or 0.0),
        default=None,
    )
    if top is None:
        return HtmlCell(units.UNKNOWN)
    row = href(figure_text(top, FLOPS), addresses.table_row(top))
    content = Markup("{} TFLOP/s/GPU: {}{}").format(row, work(top), where(top))
    return HtmlCell(content, sort=figure(top, FLOPS))


def metric_for(results: Iterable[SiteResult], names: Sequence[str]) -> Metric:
    """The figure that most results know; of several the first."""
    stated = Counter(name for it in results for name in names if figure(it, name) is not None)
    return METRICS[max(names, key=lambda name: stated[name])]


def details(metric: Metric) -> list[str]:
    """The details that matter to a figure: only some figures depend on the FLOPs convention."""
    is_bound = metric.name in CONVENTION_BOUND
    return [part for part in DETAILS if part != "FLOPs convention" or is_bound]


def chart(
    title: str,
    results: Sequence[SiteResult],
    names: Sequence[str],
    label_parts: Sequence[str],
    *,
    of_release: bool = False,
) -> Markup:
    """The best of the newest releases as bars: one for each label. Nothing for fewer than two.

    `of_release`: the results are of one release.

    A label has the parts, and of the DETAILS those in which the results differ. What has no bar is
    counted below. Where every row has open errors, a sentence says so.
    """
    newest = of_newest_releases(results)
    clean = [result for result in newest if not result.has_open_errors]
    metric = metric_for(clean, names)
    stating = [result for result in clean if figure(result, metric.name) is not None]
    first, *others = label_parts
    named = (first, *differing(details(metric), stating), *others)
    best = best_of_each(stating, metric.name, lambda one: parts.words(named, one))
    ranked = sorted(best.items(), key=lambda bar: (-(figure(bar[1], metric.name) or 0.0), bar[0]))
    if len(ranked) < 2:
        why = f"No chart: all {len(newest):,} rows of the newest releases have open errors."
        return note(why if len(newest) > 1 and not clean else "")
    shown = [result for _, result in ranked[: charts.MOST_BARS]]
    drawn = {result.framework for result in newest if result.release is None}
    below = render(
        "bars_note",
        parts=named,
        of_release=of_release,
        frameworks=len({result.framework for result in shown}),
        counting=report.counting(metric, (result.flops_convention for result in shown)),
        drawn=len(shown),
        ranked=len(ranked),
        left_out=rows_left_out(len(newest) - len(clean)),
        without=len(clean) - len(stating),
        metric=metric.title,
        unattributed=sum(it.release is None and it.framework not in drawn for it in results),
    )
    full = (*named, *differing(["origin"], shown))
    bars = [_bar(label(full, result), result, metric) for result in shown]
    return charts.with_note(charts.bars(title, metric.title, bars), below, of_precisions(shown))


def of_precisions(shown: Iterable[SiteResult]) -> Markup:
    """The key of a drawing whose colors are those of precisions, in the order of the catalog."""
    names = sorted({it.precision for it in shown}, key=precision_order)
    return charts.key({precision_text(it): _colour(it) for it in names})


def precision_text(name: str | None) -> str:
    """'FP8-CS'; that it is not stated, where it is unknown."""
    return titles.precision(name) or "precision not stated"


def _colour(precision: str | None) -> str:
    return charts.colour(colors.of_precision(precision))


def _bar(text: str, result: SiteResult, metric: Metric) -> ChartBar:
    """A bar in the color of its precision."""
    value = figure(result, metric.name) or 0.0
    shown = value * 100 if metric.unit == "fraction" else value
    computed = " · computed" if is_computed(result, metric.name) else ""
    printed = figure_text(result, metric.name)
    return ChartBar(f"{text}{computed}", shown, printed, _colour(result.precision))


Work = Mapping[str, SiteResult]
"""The best result of some work, by the version of the release."""


def over_releases(title: str, results: Sequence[SiteResult]) -> Markup:
    """A chart and a table for each framework that did the same work in two or more releases."""
    by_framework = grouped(results, lambda one: one.framework)
    return joined(
        _of_framework(title, titles.framework(name), by_framework[name])
        for name in sorted(by_framework, key=titles.framework)
    )


def _of_framework(subject: str, framework: str, results: Sequence[SiteResult]) -> Markup:
    metric = metric_for(results, OF_A_MODEL)
    works = works_of(results, metric)
    if not works:
        return Markup("")
    builds = {name: one.build for work in works for name, one in work.items()}
    names = sorted(builds, key=lambda name: version_order(name, builds[name]))
    heading = f"{framework} over its releases"
    title = f"{subject}: {heading}"
    by_system = grouped(works, lambda work: _first(work).system_title)
    most = charts.MOST_LINES
    drawn = joined(
        charts.over_releases(
            f"{title}, {system}", metric.title, names, _lines(some[:most], names, metric)
        )
        for system, some in by_system.items()
    )
    count = sum(min(len(some), most) for some in by_system.values())
    rolling = sorted({one.release for one in results if one.release and is_rolling(one.release)})
    below = render(
        "history_note",
        most=most,
        drawn=count,
        works=len(works),
        rolling=rolling,
        left_out=rows_left_out(sum(one.has_open_errors for one in results)),
        moved=any(_moved(work, names, metric) for work in works),
    )
    rows = [
        [
            HtmlCell(_first(work).system_title),
            HtmlCell(label((*NAMES[1:], *HISTORY_DETAILS), _first(work))),
            *_history_cells(work, names, metric),
        ]
        for work in works
    ]
    releases = (HtmlHead(name, numeric=True) for name in names)
    table = plain(title, [*parts.heads("System", "~Work"), *releases], rows)
    return joined((Markup("<h3>{}</h3>\n").format(heading), charts.with_note(drawn, below), table))


def _history_cells(work: Work, names: Sequence[str], metric: Metric) -> Iterator[HtmlCell]:
    """The figures of a work, those from which on it is at another level with a mark."""
    there, moved = [name for name in names if name in work], _moved(work, names, metric)
    marked = {there[place]: ratio for place, ratio in moved.items()}
    for name in names:
        cell = figure_cell(work.get(name), metric.name)
        sign = f" ◆ {report.signed(marked[name] - 1)}" if name in marked else ""
        yield cell._replace(content=f"{cell.content}{sign}")


def _moved(work: Work, names: Sequence[str], metric: Metric) -> dict[int, float]:
    """The change points of a work, by their places among the releases that have it."""
    sides = [Side((work[name],)) for name in names if name in work]
    return change_points.of_sides(sides, metric.name, TERMS)


def _first(work: Work) -> SiteResult:
    return next(iter(work.values()))


def works_of(results: Iterable[SiteResult], metric: Metric) -> list[Work]:
    """Each work that two or more numbered releases have a figure of, in the order they come.

    Rows with open errors are left out.
    """
    works: dict[tuple[str, str], dict[str, SiteResult]] = defaultdict(dict)
    for result in results:
        value, release = figure(result, metric.name), result.release
        if release is None or is_rolling(release) or value is None or result.has_open_errors:
            continue
        work = works[result.workload_key, result.origin]
        if release not in work or value > (figure(work[release], metric.name) or 0.0):
            work[release] = result
    return [work for work in works.values() if len(work) > 1]


def _lines(works: Sequence[Work], names: Sequence[str], metric: Metric) -> list[ChartLine]:
    """A line for each work, through the figures of the releases that have it."""
    named = (*NAMES, *differing(HISTORY_DETAILS, list(map(_first, works))))
    lines = []
    for one in works:
        there = [(float(place), one[name]) for place, name in enumerate(names) if name in one]
        points = tuple((place, figure(it, metric.name) or 0.0) for place, it in there)
        texts = tuple(figure_text(it, metric.name) for _, it in there)
        colour = _colour(_first(one).precision)
        moved = tuple(_moved(one, names, metric))
        title = label(named, _first(one))
        lines.append(ChartLine(title, points, texts, colour=colour, moved=moved))
    return lines
