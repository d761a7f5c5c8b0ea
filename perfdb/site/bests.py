"""The best figures: of a result, of a system, and of the newest releases as bars."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from perfdb import catalog
from perfdb.compare.verdict import CONVENTION_BOUND
from perfdb.metrics import METRICS, Metric
from perfdb.site import charts, tables
from perfdb.site.charts import Bar
from perfdb.site.data import Result
from perfdb.site.grouping import of_newest_releases, system_order
from perfdb.site.markup import Html, joined, tag
from perfdb.site.profiles import MFU, STEP_TIME, TFLOPS, TOKENS
from perfdb.site.words import release_title

MOST_BARS: Final = 24
"""Bars that a chart has at most; the table below it has every figure."""

COLUMNS: Final = {column.fields[0]: column for column in (TOKENS, TFLOPS, MFU, STEP_TIME)}
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


def metric_for(results: Iterable[Result], names: Sequence[str]) -> Metric:
    """The figure that most results know; of several the first."""
    known = dict.fromkeys(names, 0)
    for result in results:
        for name in names:
            known[name] += figure(result, name) is not None
    return METRICS[max(names, key=lambda name: known[name])]


def figure(result: Result, metric: str) -> float | None:
    """The value of a metric; None where it is unknown, withheld, or no rate."""
    value: float | None = getattr(result, metric)
    return value if value is not None and value > 0 and result.withheld is None else None


def said(result: Result, metric: str) -> str:
    """A figure as tables print it."""
    column = COLUMNS[metric]
    known = tables.known(column, result)
    return tables.as_printed(column, result) or tables.formatted(column, known)


def chart(
    title: str,
    results: Sequence[Result],
    names: Sequence[str],
    label: Callable[[Result], tuple[str, ...]],
) -> Html:
    """The best of the newest releases as bars: one for each label. Nothing for fewer than two.

    Rows that the audit calls an error are left out, and counted below. Where the FLOPs of the rest
    are counted by several conventions, each bar says by which, where that is known.
    """
    newest = of_newest_releases(results)
    clean = [result for result in newest if not result.has_open_errors]
    metric = metric_for(clean, names)
    known = [one for one in clean if figure(one, metric.name) is not None]
    mixed = metric.name in CONVENTION_BOUND and len({one.flops_convention for one in known}) > 1
    best: dict[tuple[str, ...], Result] = {}
    for result in sorted(known, key=lambda one: figure(one, metric.name) or 0.0):
        first, *rest = label(result)
        best[first, *([result.flops_convention or ""] if mixed else []), *rest] = result
    ranked = sorted(best, key=lambda key: (-(figure(best[key], metric.name) or 0.0), key))
    if len(ranked) < 2:
        return Html("")
    given = [_bar(key, best[key], metric) for key in ranked[:MOST_BARS]]
    said = (
        "The highest figure in the newest release of each framework.",
        f"The {len(given)} highest of {len(ranked)} are drawn." if len(ranked) > len(given) else "",
        contradicted(len(newest) - len(clean)),
        _MIXED if mixed else "",
        "The table has them all.",
    )
    return joined((charts.bars(title, metric.title, given), note(*said)))


def _bar(key: tuple[str, ...], result: Result, metric: Metric) -> Bar:
    value = figure(result, metric.name) or 0.0
    shown = value * 100 if metric.unit == "fraction" else value
    return Bar(" · ".join(filter(None, key)), shown, said(result, metric.name))


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


def release_of(result: Result) -> str:
    """'Megatron-Bridge 26.06'."""
    return release_title(result.framework, result.release)


def precision_of(result: Result) -> str:
    """'FP8-CS'; empty where no precision is stated."""
    entry = catalog.precisions().get(result.precision or "")
    return entry.title if entry else result.precision or ""
