"""The best figures: of each system, the headline of a release, and the newest as bars."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeVar, get_args

from markupsafe import Markup

from perfdb import catalog, units
from perfdb.catalog import titles
from perfdb.compare import report
from perfdb.groups import grouped
from perfdb.metrics import CONVENTION_BOUND, METRICS, Metric
from perfdb.site import addresses, charts
from perfdb.site.addresses import UNATTRIBUTED
from perfdb.site.cells import FLOPS, HtmlCell, figure_cell, figure_text, gpus, work
from perfdb.site.charts import ChartBar, ChartLine
from perfdb.site.data import SiteResult
from perfdb.site.grouping import of_newest_releases, release_title, system_order
from perfdb.site.tables import HtmlHead, plain
from perfdb.site.templates import joined, paragraph
from perfdb.stated import RATE, figure, is_computed
from perfdb.versions import is_rolling, version_order

Key = TypeVar("Key")
Rate = Literal["tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu"]
RATES: Final[Sequence[Rate]] = get_args(Rate)

_NODES: Final = re.compile(r"\d+[- ]nodes?")

HEADLINE: Final = "Highest TFLOP/s"
RULE: Final = "of pre-training where there is any"
PRETRAINING: Final = "pretrain"


def best_of_each(
    results: Iterable[SiteResult], metric: str, key: Callable[[SiteResult], Key]
) -> dict[Key, SiteResult]:
    """For each key the result of the highest figure; rows with open errors are left out."""
    clean = [it for it in results if figure(it, metric) is not None and not it.has_open_errors]
    rising = sorted(clean, key=lambda result: figure(result, metric) or 0.0)
    return {key(result): result for result in rising}


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
    content = Markup('<a href="{}">{}</a> TFLOP/s/GPU: {}{}').format(
        addresses.table_row(top), figure_text(top, FLOPS), work(top), where(top)
    )
    return HtmlCell(content, sort=figure(top, FLOPS))


def qualifiers(result: SiteResult) -> str:
    """What sets its model apart; '2-node' says how many GPUs there are."""
    every = result.qualifiers.split(", ")
    return ", ".join(one for one in every if not _NODES.fullmatch(one))


def release_of(result: SiteResult) -> str:
    """'Megatron-Bridge 26.06'."""
    return release_title(result.framework, result.release)


def precision_of(result: SiteResult) -> str:
    """'FP8-CS'; empty where no precision is stated."""
    return titles.precision(result.precision)


OF_A_MODEL: Final = (RATE, FLOPS, "mfu")
ACROSS_MODELS: Final = (FLOPS, "mfu")
"""The figures of a chart: the first of them that most results have. A token is not the same work in
two models, a floating-point operation is."""


@dataclass(frozen=True)
class LabelPart:
    """A part of a bar's label: what it tells, and its words; no words where that is unknown."""

    title: str
    of: Callable[[SiteResult], str]


SYSTEM: Final = LabelPart("system", lambda one: one.system_title)
MODEL: Final = LabelPart("model", lambda one: one.model_title)
FRAMEWORK: Final = LabelPart("framework", release_of)
PRECISION: Final = LabelPart("precision", precision_of)
GPUS: Final = LabelPart("number of GPUs", lambda one: gpus(one.num_gpus, one.system))
CONVENTION: Final = LabelPart("FLOPs convention", lambda one: one.flops_convention or "")

SEQUENCE: Final = LabelPart("sequence length", lambda one: f"sequence {one.sequence_length:,}")

ORIGIN: Final = LabelPart("origin", lambda one: one.origin)

DETAILS: Final = (
    SEQUENCE,
    LabelPart(
        "variant", lambda one: f"variant {titles.framework(one.variant)}" if one.variant else ""
    ),
    CONVENTION,
)
"""What a label tells only where it is not the same in every bar."""


def metric_for(results: Iterable[SiteResult], names: Sequence[str]) -> Metric:
    """The figure that most results know; of several the first."""
    stated = Counter(name for it in results for name in names if figure(it, name) is not None)
    return METRICS[max(names, key=lambda name: stated[name])]


def chart(
    title: str, results: Sequence[SiteResult], names: Sequence[str], parts: Sequence[LabelPart]
) -> Markup:
    """The best of the newest releases as bars: one for each label. Nothing for fewer than two.

    A label has the parts, and of the DETAILS those in which the results differ. What has no bar is
    counted below. Where the audit calls every row an error, a sentence says so.
    """
    newest = of_newest_releases(results)
    clean = [result for result in newest if not result.has_open_errors]
    metric = metric_for(clean, names)
    stating = [result for result in clean if figure(result, metric.name) is not None]
    first, *others = parts
    label = (first, *differing(details(metric), stating), *others)
    ranked = _ranked(stating, label, metric)
    if len(ranked) < 2:
        why = (
            f"No bars are drawn: all {len(newest):,} rows of the newest releases have open errors."
        )
        return note(why if len(newest) > 1 and not clean else "")
    drawn = ranked[: charts.MOST_BARS]
    shown = [result for _, result in drawn]
    below = note(
        _meaning(label, shown),
        report.counting(metric, (result.flops_convention for result in shown)),
        f"The {len(drawn)} highest of {len(ranked)} are drawn." if len(ranked) > len(drawn) else "",
        contradicted(len(newest) - len(clean)),
        _without(metric, len(clean) - len(stating)),
        _unattributed(results, newest),
        "The table has every figure of the newest releases.",
    )
    origin = differing([ORIGIN], shown)
    bars = [_bar((*key, *(part.of(it) for part in origin)), it, metric) for key, it in drawn]
    return charts.with_note(charts.bars(title, metric.title, bars), below)


def _ranked(
    results: Iterable[SiteResult], parts: Sequence[LabelPart], metric: Metric
) -> list[tuple[tuple[str, ...], SiteResult]]:
    """The highest result of each label, the highest of them first."""
    best = best_of_each(results, metric.name, lambda one: tuple(part.of(one) for part in parts))
    return sorted(best.items(), key=lambda bar: (-(figure(bar[1], metric.name) or 0.0), bar[0]))


def _without(metric: Metric, count: int) -> str:
    """'3 results have no TFLOP/s/GPU.'; empty for none."""
    has = "has" if count == 1 else "have"
    return f"{units.counted(count, 'result')} {has} no {metric.title}." if count else ""


def _unattributed(results: Iterable[SiteResult], newest: Iterable[SiteResult]) -> str:
    """How many results no bar may be of, as nobody stated their release; empty for none."""
    drawn = {result.framework for result in newest if result.release is None}
    count = sum(it.release is None and it.framework not in drawn for it in results)
    if not count:
        return ""
    releases = f"an {UNATTRIBUTED} release is" if count == 1 else f"{UNATTRIBUTED} releases are"
    return f"{units.counted(count, 'result')} of {releases} not drawn."


def details(metric: Metric) -> list[LabelPart]:
    """The details that matter to a figure."""
    bound = metric.name in CONVENTION_BOUND
    return [part for part in DETAILS if part is not CONVENTION or bound]


def differing(parts: Iterable[LabelPart], results: Sequence[SiteResult]) -> list[LabelPart]:
    """The parts that results differ in, without which their labels would seem to be alike."""
    return [part for part in parts if len({part.of(one) for one in results}) > 1]


def _meaning(parts: Sequence[LabelPart], drawn: Sequence[SiteResult]) -> str:
    """What a bar is, and what bars of several frameworks do not tell."""
    *some, last = (part.title for part in parts)
    bar = (
        f"Each bar is the highest figure of a {', '.join(some)} and {last}, in the newest release "
        "of each framework."
    )
    if len({one.framework for one in drawn}) < 2:
        return bar
    return (
        f"{bar} Bars of different frameworks differ in more than their precision: they do not "
        "compare precisions alone."
    )


def _bar(key: tuple[str, ...], result: SiteResult, metric: Metric) -> ChartBar:
    value = figure(result, metric.name) or 0.0
    shown = value * 100 if metric.unit == "fraction" else value
    label = (*key, "computed") if is_computed(result, metric.name) else key
    colour = _colour(result.precision)
    return ChartBar(
        " · ".join(filter(None, label)), shown, figure_text(result, metric.name), colour
    )


def _colour(precision: str | None) -> str:
    """By the peak that a precision is held against; one for all that have none."""
    entry = catalog.precisions().get(precision or "")
    peak = entry.peak if entry else None
    return charts.OF_PEAKS.get(peak or "", charts.MUTED)


def note(*sentences: str) -> Markup:
    """What a drawing leaves out, below it; nothing without a sentence."""
    return paragraph(" ".join(filter(None, sentences)), "perf-note")


def contradicted(count: int) -> str:
    """'1 row with open errors is left out.'; empty for none."""
    if not count:
        return ""
    left = f"{'is' if count == 1 else 'are'} left out."
    return f"{units.counted(count, 'row')} with open errors {left}"


Work = Mapping[str, SiteResult]
"""The best result of a work, by the version of the release."""

NAMES: Final = (SYSTEM, PRECISION, GPUS)
"""What the name of a line always has."""

HISTORY_DETAILS: Final = (
    LabelPart("model qualifiers", lambda one: one.qualifiers),
    LabelPart("global batch size", lambda one: f"GBS {one.global_batch_size:,}"),
    SEQUENCE,
    ORIGIN,
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
    metric = metric_for(results, OF_A_MODEL)
    works = works_of(results, metric)
    if not works:
        return Markup("")
    builds = {name: one.build for work in works for name, one in work.items()}
    names = sorted(builds, key=lambda name: version_order(name, builds[name]))
    heading = f"{framework} over its releases"
    title = f"{subject}: {heading}"
    by_system = grouped(works, lambda work: SYSTEM.of(_first(work)))
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
    below = note(
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
    return joined((name, charts.with_note(drawn, below), plain(title, heads, rows)))


def _first(work: Work) -> SiteResult:
    """The one that says which work it is."""
    return next(iter(work.values()))


def _left_out(results: Sequence[SiteResult]) -> tuple[str, str]:
    """Which results have no place in a history: rolling branches, and errors of the audit."""
    rolling = sorted({one.release for one in results if one.release and is_rolling(one.release)})
    branches = "which moves on, has" if len(rolling) == 1 else "which move on, have"
    unplaced = f"{', '.join(rolling)}, {branches} no place among them." if rolling else ""
    return unplaced, contradicted(sum(one.has_open_errors for one in results))


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
    parts = (*NAMES, *differing(HISTORY_DETAILS, firsts))
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
    return [HtmlCell(system.of(first)), HtmlCell(_said((*others, *HISTORY_DETAILS), first)), *cells]
