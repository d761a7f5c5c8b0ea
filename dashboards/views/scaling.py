"""The same work on more and more GPUs: step time, efficiency, and days for a number of tokens."""

import pandas as pd
import streamlit as st
from pandas.api.types import is_numeric_dtype

from dashboards import axes, charts, data
from dashboards.choices import one_of
from dashboards.findings import plain
from dashboards.tables import download
from dashboards.views.history import choose, choose_precision
from perfdb import metrics, units
from perfdb.catalog import titles
from perfdb.compare import report
from perfdb.compare.scaling import Scaled, efficiency, series_of
from perfdb.metrics import METRICS, TRILLION
from perfdb.queries.best import Narrowing
from perfdb.record import Result
from perfdb.stated import RATE, figure
from perfdb.versions import natural

MOST_SERIES = 6
"""The most series that are drawn."""

BY = ("task", "variant", "qualifiers", "sequence_length", "global_batch_size", "num_gpus", "origin")
"""Of each the best result is read: nothing that is the same work at one scale is lost."""


def show() -> None:
    """The page."""
    st.title("Scaling")
    st.caption("The same work on more and more GPUs. Efficiency is the rate of each GPU as a share "
               "of that at the smallest scale. Rows with open errors are left out.")  # fmt: skip
    store = data.store()
    first_model, first_system, first_precision = data.widest(store)
    columns = st.columns(4)
    with columns[0]:
        model = choose(store, "model", titles.model, first_model)
    where = Narrowing.of(model=[model])
    with columns[1]:
        names = sorted(map(str, data.values(store, "system", where)), key=axes.system_order)
        first = first_system if first_system in names else names[0]
        system = one_of("System", names, first, "system", titles.system)
    where = where.but(system=[system])
    with columns[2]:
        where = where.but(precision=[choose_precision(store, where, first_precision)])
    with columns[3]:
        tokens = st.number_input("Tokens (trillions)", 0.001, 1e6, 1.0, key="tokens",
                                 bind="query-params", format="%g")  # fmt: skip
    _of_releases(store, where, f"{titles.model(model)} on {titles.system(system)}", tokens)


def _of_releases(store: data.Store, where: Narrowing, title: str, tokens: float) -> None:
    several = data.scaled_releases(store, where)
    known = {
        choice.name: choice.release_ids
        for choice in reversed(data.releases(store))
        if several.intersection(choice.release_ids)
    }
    if not known:
        st.info(plain(f"The store has {title} at one number of GPUs only, in this precision."))
        return
    release = one_of("Release", [*known], next(iter(known)), "release", titles.release)
    narrowed = where.but(release_id=known[release])
    results = data.ranked(store, RATE, BY, narrowed, data.wrong(store)).results
    found = list(series_of(results))
    if not found:
        st.info(plain(f"No two results of {title} are the same work on more GPUs in this release."))
        return
    series = sorted(found, key=lambda it: -len(it.points))[:MOST_SERIES]
    st.header(f"{title}, {titles.release(release)}")
    if len(series) == 1:
        st.caption(plain(_title(series[0])))
    rows = pd.DataFrame([row for it in series for row in _rows(it, tokens * TRILLION)])
    left, right = st.columns(2)
    with left:
        _chart(rows, "Tokens/s/GPU" if series[0].rate == RATE else METRICS[series[0].rate].title)
    with right:
        _chart(rows, "Efficiency")
    if len(series) < len(found):
        st.caption(f"{len(series)} of {len(found)} series are shown: the longest.")
    st.dataframe(rows, hide_index=True, placeholder=units.UNKNOWN, column_config={
        "Efficiency": st.column_config.NumberColumn(format="percent"),
        "Step time (s)": st.column_config.NumberColumn(format="%.4g"),
        "Tokens/s/GPU": st.column_config.NumberColumn(format="localized"),
        "Days": st.column_config.NumberColumn(
            f"Days for {tokens:g} trillion tokens", format="%.1f"
        ),
        "GPU-hours": st.column_config.NumberColumn(format="localized"),
    }, alt="Each series with its figures at each number of GPUs")  # fmt: skip
    download(rows, "perfdb-scaling.csv")


def _rows(series: Scaled[Result], tokens: float) -> list[dict[str, object]]:
    shares = efficiency(series.points, series.rate)
    return [
        {
            "Series": _title(series),
            "GPUs": it.num_gpus,
            "GBS": it.global_batch_size,
            "Step time (s)": it.step_time_s or _step_time_s(it),
            "Tokens/s/GPU": (rate := figure(it, RATE)),
            "TFLOP/s/GPU": figure(it, "model_tflops_per_sec_per_gpu"),
            "Efficiency": shares[it.num_gpus],
            "Days": rate and metrics.days_to_train(tokens, rate * it.num_gpus),
            "GPU-hours": rate and round(metrics.gpu_hours(tokens, rate)),
            "Configuration": report.configuration(it),
        }
        for it in series.points
    ]


def _step_time_s(it: Result) -> float | None:
    """The step time that follows from a rate: GBS × sequence length ÷ (tokens/s/GPU × GPUs)."""
    rate = figure(it, RATE)
    tokens = it.global_batch_size * it.sequence_length
    return tokens / (rate * it.num_gpus) if rate else None


def _title(series: Scaled[Result]) -> str:
    first = series.points[0]
    batch = f"{first.global_batch_size / first.num_gpus:g} samples per GPU"
    words = (
        f"{series.scaling} scaling", titles.task(first.task), first.qualifiers,
        f"sequence {first.sequence_length:,}",
        batch if series.scaling == "weak" else f"GBS {first.global_batch_size:,}",
        str(first.origin),
    )  # fmt: skip
    return ", ".join(filter(None, words))


@st.fragment
def _chart(rows: pd.DataFrame, column: str) -> None:
    """A line for each series over the numbers of GPUs."""
    # A rate is drawn from zero; of an efficiency, only the loss is of interest.
    is_share = column == "Efficiency"
    scale = {"zero": False, "padding": 20} if is_share else {"zero": True}
    names = sorted(rows["Series"].unique(), key=natural)
    legend = {"title": None, "orient": "bottom", "columns": 1, "labelLimit": 340}
    shared = {
        "x": charts.log_axis("GPUs", "GPUs", rows["GPUs"]),
        "y": charts.quantitative(column, axis={"format": "%" if is_share else ",.0f"}, scale=scale),
        "color": charts.nominal(
            "Series", scale=charts.scale(names), legend=legend if len(names) > 1 else None
        ),
        "tooltip": [
            charts.quantitative(name) if is_numeric_dtype(rows[name]) else charts.nominal(name)
            for name in map(str, rows)
        ],
    }
    drawn = charts.layered(rows, shared, ({"type": "line"}, {}), (charts.points(70), {}))
    st.vega_lite_chart(charts.tall(drawn, charts.LINES_PX), alt=f"{column} by GPUs")
