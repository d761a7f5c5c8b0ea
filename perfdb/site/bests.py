"""The best figures: of a result, of a system, and of the newest releases as bars."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from perfdb import catalog, units
from perfdb.catalog import titles
from perfdb.compare import words
from perfdb.metrics import CONVENTION_BOUND, METRICS, Metric
from perfdb.site import charts, figures, palette, tables
from perfdb.site.addresses import UNATTRIBUTED
from perfdb.site.charts import Bar
from perfdb.site.data import Result
from perfdb.site.figures import COMPUTED, figure, is_computed
from perfdb.site.grouping import of_newest_releases, system_order
from perfdb.site.markup import Html, tag
from perfdb.site.profiles import MFU, STEP_TIME, TFLOPS, TOKENS, ours
from perfdb.site.words import framework_title, gpus, release_title

Key = TypeVar("Key")

COLUMNS: Final = {column.fields[0]: column for column in ours(TOKENS, TFLOPS, MFU, STEP_TIME)}
"""How each figure is printed, by its name."""

RATE: Final = figures.RATE
FLOPS: Final = "model_tflops_per_sec_per_gpu"

OF_A_MODEL: Final = (RATE, FLOPS, "mfu")
ACROSS_MODELS: Final = (FLOPS, "mfu")
"""The figures a chart may show, the first of them that most results know: a token is not the same
work in two models, a floating-point operation is."""


def release_of(result: Result) -> str:
    """'Megatron-Bridge 26.06'."""
    return release_title(result.framework, result.release)


def precision_of(result: Result) -> str:
    """'FP8-CS'; empty where no precision is stated."""
    return titles.precision(result.precision)


@dataclass(frozen=True)
class Part:
    """A part of a bar's label: what it tells, and its words; no words where that is unknown."""

    title: str
    of: Callable[[Result], str]


SYSTEM: Final = Part("system", lambda one: one.system_title)
MODEL: Final = Part("model", lambda one: one.model_title)
FRAMEWORK: Final = Part("framework", release_of)
PRECISION: Final = Part("precision", precision_of)
GPUS: Final = Part("number of GPUs", lambda one: gpus(one.num_gpus, one.system))
CONVENTION: Final = Part("FLOPs convention", lambda one: one.flops_convention or "")

SEQUENCE: Final = Part("sequence length", lambda one: f"sequence {one.sequence_length:,}")

ORIGIN: Final = Part("origin", lambda one: one.origin)

DETAILS: Final = (
    SEQUENCE,
    Part("variant", lambda one: f"variant {framework_title(one.variant)}" if one.variant else ""),
    CONVENTION,
)
"""What a label tells only where it is not the same in every bar."""


def metric_for(results: Iterable[Result], names: Sequence[str]) -> Metric:
    """The figure that most results know; of several the first."""
    stated = Counter(name for it in results for name in names if figure(it, name) is not None)
    return METRICS[max(names, key=lambda name: stated[name])]


def marked(result: Result, metric: str) -> str:
    """A figure with the mark of one that is computed."""
    return f"{said(result, metric)}{COMPUTED if is_computed(result, metric) else ''}"


def said(result: Result, metric: str) -> str:
    """A figure as tables print it."""
    if is_computed(result, metric):
        return figures.said(result, metric)
    column = COLUMNS[metric]
    value = tables.known(column, result)
    return tables.as_printed(column, result) or tables.formatted(column, value)


def chart(
    title: str, results: Sequence[Result], names: Sequence[str], parts: Sequence[Part]
) -> Html:
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
        return note("" if clean else _all_wrong(len(newest)))
    drawn = ranked[: charts.MOST_BARS]
    shown = [result for _, result in drawn]
    below = note(
        _meaning(label, shown),
        words.counting(metric, (result.flops_convention for result in shown)),
        f"The {len(drawn)} highest of {len(ranked)} are drawn." if len(ranked) > len(drawn) else "",
        contradicted(len(newest) - len(clean)),
        _without(metric, len(clean) - len(stating)),
        _unattributed(results, newest),
        "The table has every figure of the newest releases.",
    )
    origin = differing([ORIGIN], shown)
    bars = [_bar((*key, *(part.of(it) for part in origin)), it, metric) for key, it in drawn]
    return charts.beside(charts.bars(title, metric.title, bars), below)


def _ranked(
    results: Iterable[Result], parts: Sequence[Part], metric: Metric
) -> list[tuple[tuple[str, ...], Result]]:
    """The highest result of each label, the highest of them first."""
    best = best_of_each(results, metric.name, lambda one: tuple(part.of(one) for part in parts))
    return sorted(best.items(), key=lambda bar: (-(figure(bar[1], metric.name) or 0.0), bar[0]))


def _all_wrong(count: int) -> str:
    """Why there is no chart; empty where one row, or none, would make no chart anyway."""
    why = f"No bars are drawn: all {count:,} rows of the newest releases have open errors."
    return why if count > 1 else ""


def _without(metric: Metric, count: int) -> str:
    """'3 results have no TFLOP/s/GPU.'; empty for none."""
    has = "has" if count == 1 else "have"
    return f"{units.counted(count, 'result')} {has} no {metric.title}." if count else ""


def _unattributed(results: Iterable[Result], newest: Iterable[Result]) -> str:
    """How many results no bar may be of, as nobody stated their release; empty for none."""
    drawn = {result.framework for result in newest if result.release is None}
    count = sum(it.release is None and it.framework not in drawn for it in results)
    if not count:
        return ""
    releases = f"an {UNATTRIBUTED} release is" if count == 1 else f"{UNATTRIBUTED} releases are"
    return f"{units.counted(count, 'result')} of {releases} not drawn."


def details(metric: Metric) -> list[Part]:
    """The details that matter to a figure."""
    bound = metric.name in CONVENTION_BOUND
    return [part for part in DETAILS if part is not CONVENTION or bound]


def differing(parts: Iterable[Part], results: Sequence[Result]) -> list[Part]:
    """The parts that results differ in, without which their labels would seem to be alike."""
    return [part for part in parts if len({part.of(one) for one in results}) > 1]


def _meaning(parts: Sequence[Part], drawn: Sequence[Result]) -> str:
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


def _bar(key: tuple[str, ...], result: Result, metric: Metric) -> Bar:
    value = figure(result, metric.name) or 0.0
    shown = value * 100 if metric.unit == "fraction" else value
    label = (*key, "computed") if is_computed(result, metric.name) else key
    colour = _colour(result.precision)
    return Bar(" · ".join(filter(None, label)), shown, said(result, metric.name), colour)


def _colour(precision: str | None) -> str:
    """By the peak that a precision is held against; one for all that have none."""
    entry = catalog.precisions().get(precision or "")
    peak = entry.peak if entry else None
    return palette.OF_PEAKS.get(peak or "", palette.MUTED)


def note(*said: str) -> Html:
    """What a drawing leaves out, below it; nothing where nothing is said."""
    text = " ".join(filter(None, said))
    return tag("p", text, class_="perf-note") if text else Html("")


def contradicted(count: int) -> str:
    """'1 row with open errors is left out.'; empty for none."""
    if not count:
        return ""
    left = f"{'is' if count == 1 else 'are'} left out."
    return f"{units.counted(count, 'row')} with open errors {left}"


def highest(results: Iterable[Result], metric: str) -> dict[str, Result]:
    """The highest figure on each system, in the order of the catalogue, of rows without errors."""
    best = best_of_each(results, metric, lambda one: one.system)
    return {name: best[name] for name in sorted(best, key=system_order)}


def best_of_each(
    results: Iterable[Result], metric: str, key: Callable[[Result], Key]
) -> dict[Key, Result]:
    """For each key the result of the highest figure; rows with open errors are left out."""
    clean = [it for it in results if figure(it, metric) is not None and not it.has_open_errors]
    rising = sorted(clean, key=lambda result: figure(result, metric) or 0.0)
    return {key(result): result for result in rising}
