"""The best figures: of a result, of a system, and of the newest releases as bars."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from perfdb import metrics, units
from perfdb.catalog import titles
from perfdb.compare.verdict import CONVENTION_BOUND
from perfdb.metrics import METRICS, Metric
from perfdb.site import charts, tables
from perfdb.site.charts import Bar
from perfdb.site.data import Result
from perfdb.site.grouping import of_newest_releases, system_order
from perfdb.site.markup import Html, joined, tag
from perfdb.site.profiles import MFU, STEP_TIME, TFLOPS, TOKENS, ours
from perfdb.site.words import framework_title, gpus, release_title

MOST_BARS: Final = 24
"""Bars that a chart has at most; the table below it has every figure."""

COLUMNS: Final = {column.fields[0]: column for column in ours(TOKENS, TFLOPS, MFU, STEP_TIME)}
"""How each figure is printed, by its name."""

_MIXED: Final = (
    "Conventions that differ count other FLOPs for the same work; where none is named, none is "
    "stated."
)

RATE: Final = "tokens_per_sec_per_gpu"
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
GPUS: Final = Part("number of GPUs", lambda one: gpus(one.num_gpus))
CONVENTION: Final = Part("FLOPs convention", lambda one: one.flops_convention or "")

DETAILS: Final = (
    Part("sequence length", lambda one: f"sequence {one.sequence_length:,}"),
    Part("variant", lambda one: f"variant {framework_title(one.variant)}" if one.variant else ""),
    CONVENTION,
)
"""What a label tells only where it is not the same in every bar."""


def metric_for(results: Iterable[Result], names: Sequence[str]) -> Metric:
    """The figure that most results know; of several the first."""
    known = dict.fromkeys(names, 0)
    for result in results:
        for name in names:
            known[name] += figure(result, name) is not None
    return METRICS[max(names, key=lambda name: known[name])]


def figure(result: Result, metric: str) -> float | None:
    """The value of a metric; None where it is unknown, withheld, or no rate.

    A rate of each GPU in tokens that is not stated follows from what is stated of the whole job.
    """
    known = _stated(result, metric)
    if known is not None or metric != RATE or result.withheld is not None:
        return known
    if result.tokens_per_sec:
        return result.tokens_per_sec / result.num_gpus
    if result.step_time_s:
        return metrics.tokens_per_sec_per_gpu(
            result.global_batch_size, result.sequence_length, result.step_time_s, result.num_gpus
        )
    return None


def _stated(result: Result, metric: str) -> float | None:
    value: float | None = getattr(result, metric)
    return value if value is not None and value > 0 and result.withheld is None else None


def is_computed(result: Result, metric: str) -> bool:
    """Whether a figure follows from others that are stated and is not stated itself."""
    return _stated(result, metric) is None and figure(result, metric) is not None


def marked(result: Result, metric: str) -> str:
    """A figure with the mark of one that is computed."""
    return f"{said(result, metric)}{' (computed)' if is_computed(result, metric) else ''}"


def said(result: Result, metric: str) -> str:
    """A figure as tables print it."""
    if is_computed(result, metric):
        return units.significant(figure(result, metric))
    column = COLUMNS[metric]
    known = tables.known(column, result)
    return tables.as_printed(column, result) or tables.formatted(column, known)


def chart(
    title: str, results: Sequence[Result], names: Sequence[str], parts: Sequence[Part]
) -> Html:
    """The best of the newest releases as bars: one for each label. Nothing for fewer than two.

    A label has the parts, and of the DETAILS those in which the results differ. Rows that the
    audit calls an error are left out, and counted below.
    """
    newest = of_newest_releases(results)
    clean = [result for result in newest if not result.has_open_errors]
    metric = metric_for(clean, names)
    known = [one for one in clean if figure(one, metric.name) is not None]
    first, *others = parts
    every = (first, *_differing(known, metric), *others)
    best: dict[tuple[str, ...], Result] = {}
    for result in sorted(known, key=lambda one: figure(one, metric.name) or 0.0):
        best[tuple(part.of(result) for part in every)] = result
    ranked = sorted(best, key=lambda key: (-(figure(best[key], metric.name) or 0.0), key))
    if len(ranked) < 2:
        return Html("")
    drawn = ranked[:MOST_BARS]
    below = note(
        _meaning(every, [best[key] for key in drawn]),
        f"The {len(drawn)} highest of {len(ranked)} are drawn." if len(ranked) > len(drawn) else "",
        contradicted(len(newest) - len(clean)),
        _MIXED if CONVENTION in every else "",
        "The table has them all.",
    )
    bars = [_bar(key, best[key], metric) for key in drawn]
    return joined((charts.bars(title, metric.title, bars), below))


def _differing(results: Sequence[Result], metric: Metric) -> list[Part]:
    """The details that results differ in, without which their bars would seem to be alike."""
    return [
        part
        for part in DETAILS
        if (part is not CONVENTION or metric.name in CONVENTION_BOUND)
        and len({part.of(one) for one in results}) > 1
    ]


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
        f"{bar} Bars of different frameworks differ in more than one thing: they compare no "
        "precision by itself."
    )


def _bar(key: tuple[str, ...], result: Result, metric: Metric) -> Bar:
    value = figure(result, metric.name) or 0.0
    shown = value * 100 if metric.unit == "fraction" else value
    label = (*key, "computed") if is_computed(result, metric.name) else key
    return Bar(" · ".join(filter(None, label)), shown, said(result, metric.name))


def note(*said: str) -> Html:
    """What a drawing leaves out, below it; nothing where nothing is said."""
    known = " ".join(filter(None, said))
    return tag("p", known, class_="perf-note") if known else Html("")


def contradicted(count: int) -> str:
    """'1 row with open errors is left out.'; empty for none."""
    if not count:
        return ""
    rows = "1 row" if count == 1 else f"{count:,} rows"
    return f"{rows} with open errors {'is' if count == 1 else 'are'} left out."


def highest(results: Iterable[Result], metric: str) -> dict[str, Result]:
    """The highest figure on each system, in the order of the catalogue, of rows without errors."""
    best: dict[str, Result] = {}
    known = [it for it in results if figure(it, metric) is not None and not it.has_open_errors]
    for result in sorted(known, key=lambda one: figure(one, metric) or 0.0):
        best[result.system] = result
    return {name: best[name] for name in sorted(best, key=system_order)}
