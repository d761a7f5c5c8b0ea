"""A model over releases on each system, and a system over releases with each model."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import streamlit as st

from dashboards import axes, data
from dashboards.axes import AXES
from dashboards.charts import ChartAxes, figures
from dashboards.choices import one_of, warn_of_others
from dashboards.tables import listing
from perfdb.catalog import titles
from perfdb.compare.report import counting
from perfdb.metrics import METRICS, Metric
from perfdb.queries.best import Narrowing
from perfdb.record import Result
from perfdb.stated import RATE
from perfdb.units import UNKNOWN
from perfdb.versions import natural

MOST_LINES = 6
"""The most lines that can be told apart; the table has the others."""

PER_GPU = (RATE, "model_tflops_per_sec_per_gpu", "mfu")
"""Figures that say something across numbers of GPUs."""


class HistoryPage(NamedTuple):
    """What a page is of, what its lines are of, and the figures, the one to show first first."""

    axis: str
    other: str
    metrics: Sequence[str]
    title: Callable[[str], str]


MODEL = HistoryPage("model", "system", PER_GPU, titles.model)
SYSTEM = HistoryPage("system", "model", (PER_GPU[1], PER_GPU[2], PER_GPU[0]), titles.system)


def show_model() -> None:
    """The page of a model."""
    _show(MODEL)


def show_system() -> None:
    """The page of a system."""
    _show(SYSTEM)


def _show(subject: HistoryPage) -> None:
    axis, other = AXES[subject.axis], AXES[subject.other]
    store = data.store()
    st.title(axis.title)
    columns = st.columns([2, 2, 2, 3])  # the last is three buttons
    with columns[0]:
        name = choose(store, subject.axis, subject.title)
    where = Narrowing.of(**{axis.column: [name]})
    if subject.axis == "model":
        where = where.but(system=data.systems_to_draw(store))
    with columns[1]:
        where = where.but(task=[choose_task(store, where)])
    with columns[2]:
        precision = choose_precision(store, where)
    with columns[3]:
        metric = _figure(subject.metrics)
    where = where.but(precision=[precision])
    st.header(subject.title(name))
    axes_of = ChartAxes(metric, "release", subject.other)
    _history(store, where, axes_of)
    st.subheader(f"Best configuration of each {other.title.lower()}")
    st.caption("Of all releases, at any number of GPUs, batch size and sequence length.")
    if found := _best_of_each(store, where, axes_of):
        shown = [metric.name, *(it for it in subject.metrics if it != metric.name), "step_time_s"]
        file_name, title = f"perfdb-{subject.axis}.csv", f"{subject.axis}_title"
        listing(found, shown, "The best configurations", file_name, title)
    else:
        st.info(f"None of these results has {metric.title} without an open error.")


def _best_of_each(store: data.Store, where: Narrowing, layout: ChartAxes) -> list[Result]:
    """The best result of each line of the history; it is there already, unless there are many."""
    column, wrong = AXES[layout.color].column, data.wrong(store)
    found = data.ranked(store, layout.metric.name, layout.columns, where, wrong)
    if found.num_groups > len(found.results):
        found = data.ranked(store, layout.metric.name, (column,), where, wrong)
    best = {getattr(it, column): it for it in reversed(found.results)}
    return sorted(best.values(), key=_order(layout.color))


def _order(axis: str) -> Callable[[Result], tuple[float | str | int, ...]]:
    if axis == "system":
        return lambda it: axes.system_order(it.system)
    return lambda it: natural(it.model_title)


@st.fragment
def _history(store: data.Store, where: Narrowing, layout: ChartAxes) -> None:
    """Lines over releases, of those with the most points."""
    found = data.ranked(store, layout.metric.name, layout.columns, where, data.wrong(store))
    text = AXES[layout.color].text
    counts: dict[str, int] = {}
    for it in found.results:
        counts[text(it)] = counts.get(text(it), 0) + 1
    # the results come with the best first: of lines with as many points the better ones are drawn
    drawn = sorted(counts, key=lambda name: -counts[name])[:MOST_LINES]
    results = [it for it in found.results if text(it) in drawn]
    if not results:
        return
    caption = [f"The best {layout.metric.title} of each release, at any size."]
    if len(drawn) < len(counts):
        caption.append(f"{len(drawn)} of {len(counts)} are drawn: those with the most releases.")
    caption.append(counting(layout.metric, (it.flops_convention for it in results)))
    st.caption(" ".join(filter(None, caption)))
    releases = [titles.release(one.name) for one in data.releases(store)]
    st.vega_lite_chart(figures(results, layout, releases), alt=f"{layout.metric.title} by release")


def choose(
    store: data.Store, axis: str, title: Callable[[str], str], first: str | None = None
) -> str:
    """The value of an axis that the page is of, at first `first`, or the one of most cases."""
    counts = {str(name): count for name, count in data.values(store, AXES[axis].column).items()}
    if axis == "system":
        drawn = data.systems_to_draw(store)
        names = sorted(counts, key=axes.system_order)
        first = first or max(drawn, key=counts.__getitem__)
    else:
        names = sorted(counts, key=lambda name: natural(title(name)))
        first = first or max(counts, key=counts.__getitem__)
    return one_of(AXES[axis].title, names, first, axis, title)


def choose_task(store: data.Store, where: Narrowing) -> str:
    """The task, at first pre-training where there is any."""
    known = sorted(map(str, data.values(store, "task", where)), key=[*titles.TASKS].index)
    return one_of("Task", known, known[0], "task", titles.task)


def choose_precision(store: data.Store, where: Narrowing, first: str | None = None) -> str | None:
    """The precision, at first `first` where there is any, else that of most cases."""
    counts = data.values(store, "precision", where)
    names = {UNKNOWN if it is None else str(it): count for it, count in counts.items()}
    if not names:
        return None
    if first not in names:
        first = max(names, key=names.__getitem__)
    chosen = one_of("Precision", sorted(names), first, "precision",
                    lambda name: titles.precision(name) or "not stated")  # fmt: skip
    return None if chosen == UNKNOWN else chosen


def _figure(names: Sequence[str]) -> Metric:
    known = {METRICS[name].title: METRICS[name] for name in names}
    warn_of_others("figure", known)
    title = st.segmented_control(
        "Figure", [*known], default=next(iter(known)), key="figure", bind="query-params"
    )
    return known[title or next(iter(known))]
