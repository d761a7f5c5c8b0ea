"""Every result, narrowed down: the best ones along any axis, and a table with their sources."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import streamlit as st

from dashboards import axes, data
from dashboards.axes import AXES
from dashboards.charts import ChartAxes, figures
from dashboards.choices import remembered_some, warn_of_others
from dashboards.findings import FLAG, Findings, is_wrong, listed, plain
from dashboards.release_choice import opening_pair, shared_in
from dashboards.tables import COMPUTED, cells, results_grid
from perfdb.catalog import titles
from perfdb.compare.releases import of_rows
from perfdb.compare.report import counting
from perfdb.export import csv
from perfdb.export.results import table_of
from perfdb.metrics import METRICS
from perfdb.queries.best import Narrowing
from perfdb.record import CONFIGURATION_FIELDS, Origin, Result
from perfdb.stated import FOLLOWING, is_computed
from perfdb.units import UNKNOWN, counted
from perfdb.versions import natural

FILTERS: Mapping[str, tuple[str, Callable[[str], str]]] = {
    "release": ("Release", titles.release),
    "system": ("System", titles.system),
    "model": ("Model", titles.model),
    "task": ("Task", titles.task),
    "precision": ("Precision", titles.precision),
    "gpus": ("GPUs", lambda count: count),
    "origin": ("Origin", str),
}
"""By its name in the address each filter's label, and how values read."""

SHOWN = (
    "model_title", "tokens_per_sec_per_gpu", "system_title", "task", "precision", "release_name",
    "num_gpus", "global_batch_size", "sequence_length", "layout", "model_tflops_per_sec_per_gpu",
    "mfu", "audit", "step_time_s", "origin", "outcome", "withheld",
    *(name for name in CONFIGURATION_FIELDS if name != "options"),
    "num_results", "num_finished", "window", "num_steps", "flops_convention", "container", "source",
    "run_link",
)  # fmt: skip
"""A model, its figure and its system are in view on a phone; what distinguishes rows is next."""

MOST_DRAWN = 20
"""The most bars that are drawn, as more cannot be read."""

CHARTABLE = {metric.title: metric for metric in METRICS.values()}
ALONG = {axis.title: name for name, axis in AXES.items() if name != "origin"}
COLORS = {axis.title: name for name, axis in AXES.items() if not axis.is_number}
FIRST_FIGURE = METRICS["tokens_per_sec_per_gpu"].title


def show() -> None:
    """The page."""
    st.title("Explore results")
    store = data.store()
    where = _narrowing(store)
    found = data.rows(store, where)
    if not found:
        st.info("No result is like this. Take a filter away, in the bar on the left.")
        return
    _chart(store, where)
    audited, results = data.findings_of(store), of_rows(found)
    st.caption(f"{counts(len(found), *data.totals(store, where))} {_legend(results, audited)}")
    described = "The results with their figures, configuration and source"
    results_grid(results, cells(results, SHOWN, audited), described)
    st.download_button("Download as CSV", lambda: exported(found), "perfdb-results.csv", "text/csv")
    listed((titled(it), audited.get(it.result_id, ())) for it in results)


def counts(listed_rows: int, printed: int, of: int) -> str:
    """'9 results, one for each case, release and origin; …': how many are listed and not."""
    shown = f"{counted(printed, 'result')}, one for each case, release and origin"
    if listed_rows < printed:
        shown += f"; the first {listed_rows:,} are listed: filters lead to the others"
    if behind := of - printed:
        shown += f"; repeats, and runs without figures: {behind:,}"
    return f"{shown}."


# ----------------------------------------------------------------------------- the filters


def _narrowing(store: data.Store) -> Narrowing:
    """What the filters let through; at first the newest release in its most frequent precision.

    The page says what that is: on a phone the filters are not in view.
    """
    st.sidebar.header("Filters")
    ids = {choice.name: choice.release_ids for choice in data.releases(store)}
    chosen = _filter("release", dict.fromkeys(ids, 1), _newest(store))
    only = [*map(titles.release, chosen)]
    where = Narrowing.of(release_id=[number for name in chosen for number in ids[name]])
    values: dict[str, list[str | int | None]] = {}
    for name in ("system", "model", "task", "precision", "gpus"):
        column = AXES[name].column
        of_release = data.values(store, column, where)
        most = max(of_release, key=lambda it: of_release[it], default=None)
        by_text = {UNKNOWN if it is None else str(it): it for it in data.values(store, column)}
        first = [UNKNOWN if most is None else str(most)] if name == "precision" else []
        chosen = _filter(name, dict.fromkeys(by_text, 1), first)
        only += (f"{it} GPUs" if name == "gpus" else FILTERS[name][1](it) for it in chosen)
        values[column] = [by_text[text] for text in chosen]  # type: ignore[misc]
    origins = _filter("origin", dict.fromkeys(map(str, Origin), 1), [])
    values["origin"] = list(origins)
    if known := ", ".join([*only, *origins]):
        st.caption(plain(f"Only {known}. Change the filters in the sidebar."))
    return where.but(**values)


def _newest(store: data.Store) -> list[str]:
    known = data.releases(store)
    pair = opening_pair(known, shared_in(store)) or known[-1:]
    return [pair[-1].name] if pair else []


def _filter(name: str, values: Mapping[str, object], first: list[str]) -> list[str]:
    label, words = FILTERS[name]
    ordered = sorted(values, key=lambda value: natural(words(value)))
    options = {value: words(value) for value in ordered}
    return remembered_some(label, options, name, st.sidebar, first)


# ------------------------------------------------------------------------------ the chart


@st.fragment
def _chart(store: data.Store, where: Narrowing) -> None:
    """The best figure of each group along an axis."""
    chosen = _layout()
    narrowed = where
    if not dict(where.values).get("system"):
        narrowed = where.but(system=data.systems_to_draw(store))
    wrong = data.wrong(store)
    found = data.ranked(store, chosen.metric.name, chosen.columns, narrowed, wrong)
    if not found.results:
        title = chosen.metric.title
        st.info(f"None of these results has a figure for {title} without an open error.")
        return
    drawn = found.results
    if chosen.along != "release" and not AXES[chosen.along].is_number:
        drawn = drawn[:MOST_DRAWN]
    along, color = AXES[chosen.along].title, AXES[chosen.color].title
    caption = [f"The best figure of each {along.lower()} and {color.lower()}."]
    if any(it.origin == Origin.PUBLISHED for it in drawn):
        caption.append("Published figures are paler." if len(drawn) <= MOST_DRAWN else "")
    if len(drawn) < found.num_groups:
        caption.append(f"The best {len(drawn)} of {found.num_groups} are drawn.")
    if wrong:
        caption.append("Results with an error that the audit found are left out.")
    if narrowed != where and len(data.values(store, "system")) > len(data.systems_to_draw(store)):
        caption.append("So are CPU tests, unless you choose the system.")
    caption.append(counting(chosen.metric, (it.flops_convention for it in drawn)))
    st.caption(" ".join(filter(None, caption)))
    releases = [titles.release(one.name) for one in data.releases(store)]
    st.vega_lite_chart(figures(drawn, chosen, releases), alt=f"{chosen.metric.title} by {along}")


def _layout() -> ChartAxes:
    warn_of_others("chart", CHARTABLE)
    left, middle, right = st.columns(3)
    title = left.selectbox("Figure", list(CHARTABLE), list(CHARTABLE).index(FIRST_FIGURE),
                           key="chart", bind="query-params")  # fmt: skip
    along = middle.selectbox("Along", list(ALONG), 0, key="along", bind="query-params")
    color = right.selectbox("Color", list(COLORS), 1, key="color", bind="query-params")
    return ChartAxes(CHARTABLE[title], ALONG[along], COLORS[color])


def _legend(results: Sequence[Result], audited: Findings) -> str:
    """What the signs that occur in the table mean."""
    sentences = ["– means unknown."]
    if any(is_computed(it, metric) for it in results for metric in FOLLOWING):
        sentences.append(f"{COMPUTED.strip()}: it follows from what the page states.")
    if any(is_wrong(audited.get(it.result_id, ())) for it in results):
        sentences.append(f"{FLAG} before a model: the audit finds an error.")
    return " ".join(sentences)


def titled(it: Result) -> str:
    """'Llama 3 8B, 8 × DGX-H100, NeMo Framework 25.04 (page.md:22)': a result in words."""
    systems = f"{it.num_gpus:,} × {it.system_title}"
    return f"{axes.model(it)}, {systems}, {axes.release_name(it)} ({it.place})"


def exported(rows: Iterable[Mapping[str, object]]) -> str:
    """CSV with the columns and the names that `perfdb export results` has."""
    return csv.render(table_of(rows)).decode()
