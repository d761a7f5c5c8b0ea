"""What pages of models and of systems share: results by task, the best of each release, as bars."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from perfdb import catalog, units
from perfdb.compare.verdict import CONVENTION_BOUND
from perfdb.metrics import METRICS, Metric
from perfdb.record import Frozen
from perfdb.site import charts, markup, tables
from perfdb.site.addresses import Address
from perfdb.site.charts import Bar
from perfdb.site.data import Result
from perfdb.site.grouping import of_newest_releases, system_order
from perfdb.site.markup import Cell, Content, Head, Html, joined, tag
from perfdb.site.profiles import MFU, STEP_TIME, TFLOPS, TOKENS, Column
from perfdb.site.words import release_title, section_title

MOST_BARS: Final = 24
"""Bars that a chart has at most; the table below it has every figure."""

COLUMNS: Final = {column.fields[0]: column for column in (TOKENS, TFLOPS, MFU, STEP_TIME)}
"""How each figure is printed, by its name."""

OF_A_MODEL: Final = ("tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu", "mfu")
ACROSS_MODELS: Final = ("model_tflops_per_sec_per_gpu", "mfu")
"""The figures a chart may show, the first of them that most results know: a token is not the same
work in two models, a floating-point operation is."""


class Best(Frozen):
    """The highest rate of a model on a system."""

    system: str
    said: str


class Entry(Frozen):
    """A model or a system in the list of them.

    `beside`: how many systems a model has results on, or models a system has results of. `bests`
    are a model's highest tokens/s/GPU at a task, by system.
    """

    name: str
    title: str
    results: int
    measured: int
    releases: int
    beside: int
    task: str = ""
    bests: tuple[Best, ...] = ()


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
    return tables.as_printed(column, result) or _formatted(column, result)


def _formatted(column: Column, result: Result) -> str:
    return tables.formatted(column, tables.known(column, result))


def chart(
    title: str,
    results: Sequence[Result],
    names: Sequence[str],
    label: Callable[[Result], tuple[str, ...]],
) -> Html:
    """The best of the newest releases as bars: one for each label. Nothing for fewer than two.

    Rows that the audit calls an error are left out, and counted below. Where the FLOPs of the rest
    are counted by several conventions, each bar says by which.
    """
    newest = of_newest_releases(results)
    clean = [result for result in newest if not result.has_open_errors]
    metric = metric_for(clean, names)
    known = [one for one in clean if figure(one, metric.name) is not None]
    mixed = metric.name in CONVENTION_BOUND and len({one.flops_convention for one in known}) > 1
    best: dict[tuple[str, ...], Result] = {}
    for result in sorted(known, key=lambda one: figure(one, metric.name) or 0.0):
        first, *rest = label(result)
        best[first, *([convention_of(result)] if mixed else []), *rest] = result
    ranked = sorted(best, key=lambda key: (-(figure(best[key], metric.name) or 0.0), key))
    left_out = contradicted(len(newest) - len(clean))
    if len(ranked) < 2:
        return Html("")
    given = [_bar(key, best[key], metric) for key in ranked[:MOST_BARS]]
    some = _some(len(given), len(ranked))
    return joined((charts.bars(title, metric.title, given), _note(some, left_out, mixed=mixed)))


def _bar(key: tuple[str, ...], result: Result, metric: Metric) -> Bar:
    value = figure(result, metric.name) or 0.0
    shown = value * 100 if metric.unit == "fraction" else value
    return Bar(" · ".join(filter(None, key)), shown, said(result, metric.name))


def _some(shown: int, every: int) -> str:
    return f"The {shown} highest of {every} are drawn." if every > shown else ""


def _note(some: str, left_out: str, *, mixed: bool) -> Html:
    apart = "Conventions that differ count other FLOPs for the same work." if mixed else ""
    first = "The highest figure in the newest release of each framework."
    known = (first, some, left_out, apart, "The table has them all.")
    return tag("p", " ".join(filter(None, known)), class_="perf-note")


def contradicted(count: int) -> str:
    """'1 row with open errors is left out.'; empty for none."""
    if not count:
        return ""
    return f"{count:,} row{'s' if count > 1 else ''} with open errors {_is(count)} left out."


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


def convention_of(result: Result) -> str:
    """How the FLOPs of a result are counted, in a word."""
    return result.flops_convention or "convention not stated"


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


def gpus(count: int) -> str:
    """'1 GPU', '2,048 GPUs'."""
    return f"{count:,} GPU{'s' if count != 1 else ''}"


def entry(name: str, title: str, results: Sequence[Result], beside: Iterable[str]) -> Entry:
    """A line of the list of models or systems."""
    return Entry(
        name=name,
        title=title,
        results=len(results),
        measured=sum(result.is_measured for result in results),
        releases=len({(one.framework, one.release) for one in results}),
        beside=len(set(beside)),
    )


def rates_by_system(results: Iterable[Result]) -> tuple[Best, ...]:
    """The highest tokens/s/GPU of a model on each system."""
    best = highest(results, TOKENS.fields[0])
    return tuple(
        Best(system=result.system_title, said=said(result, TOKENS.fields[0]))
        for result in best.values()
    )


def index(
    label: str, beside: str, entries: Sequence[Entry], document: Callable[[str], str],
    address: Address,
) -> Html:  # fmt: skip
    """The list of models or of systems."""
    counts = ("Results", "measured", "published", "Releases", beside)
    heads = [Head(label), *(Head(title, numeric=True) for title in counts)]
    rows = [_index_row(one, address(document(one.name))) for one in entries]
    if any(one.bests for one in entries):
        heads.append(Head("Best tokens/s/GPU by system", wide=True))
        rows = [[*row, Cell(_said(one))] for row, one in zip(rows, entries, strict=True)]
    return markup.table(markup.Table(f"{label}s", heads, rows))


def _said(one: Entry) -> str:
    if not one.bests:
        return units.UNKNOWN
    listed = " · ".join(f"{best.system} {best.said}" for best in one.bests)
    return f"{section_title(one.task, None)}: {listed}"


def _index_row(one: Entry, page: str) -> list[Cell]:
    published = one.results - one.measured
    counts = (one.results, one.measured, published, one.releases, one.beside)
    cells: list[Content] = [f"{count:,}" for count in counts]
    return [Cell(markup.link(one.title, page), sort=one.title), *map(Cell, cells)]
