"""The best figures as bars: one for each piece of work, of the newest releases."""

from collections.abc import Hashable, Mapping, Sequence
from itertools import cycle, islice

import altair as alt
import pandas as pd
import streamlit as st

from dashboards import data
from dashboards.choices import warn_of_others
from dashboards.followed import column
from dashboards.look import COMPUTED, PALETTE, Layers, ink, printed, tall
from perfdb import catalog
from perfdb.catalog import titles
from perfdb.compare.words import counting
from perfdb.metrics import CONVENTION_BOUND, METRICS, Metric
from perfdb.record import Origin
from perfdb.versions import newness

ROW_PX = 58
"""The height of a bar with two lines of text above it, which have the chart's whole width."""

MOST_BARS = 40
"""The most bars that are drawn, as more cannot be read; the table has them all."""

CHARTABLE = {
    METRICS[name].title: METRICS[name]
    for name in ("tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu", "mfu")
}

PARTS = {
    "model_title": "model",
    "system_title": "system",
    "task": "task",
    "precision": "precision",
    "num_gpus": "number of GPUs",
    "release_name": "release",
    "origin": "origin",
}
"""The columns that each bar is one value of, and how the caption names them."""

DETAILS = ("variant", "sequence_length", "flops_convention")
"""What tells bars apart too; printed only if it is not the same in all of them."""


def show(results: pd.DataFrame, systems: Sequence[str], *, is_newest: bool) -> None:
    """Show the chart with its caption. `systems`: all in the store, each with its own colour.

    `is_newest`: draw only each framework's newest release among the results with the figure.
    """
    st.subheader("By model and system")
    warn_of_others("chart", CHARTABLE)
    title = st.segmented_control(
        "Figure", list(CHARTABLE), default=next(iter(CHARTABLE)), key="chart", bind="query-params"
    )
    metric = CHARTABLE[title or next(iter(CHARTABLE))]
    known = results[results[metric.name].notna()]
    without = len(results) - len(known)
    of_releases = newest(known) if is_newest else known
    best = best_of_each(of_releases, metric)
    if best.empty:
        st.info(f"None of these results has a figure for {metric.title} without an open error.")
        return
    drawn = highest(best, metric)
    sentences = (
        _meaning(is_newest=is_newest),
        f"The {len(drawn)} highest of {len(best)} are drawn." if len(drawn) < len(best) else "",
        _left_out(len(known) - len(of_releases), int(of_releases["is_wrong"].sum()), without),
        counting(
            metric,
            drawn["flops_convention"].astype(object).where(drawn["flops_convention"].notna(), None),
        ),
    )
    st.caption(" ".join(filter(None, sentences)))
    st.altair_chart(bars(drawn, metric, systems))


def _meaning(*, is_newest: bool) -> str:
    *some, last = PARTS.values()
    newest_ = ", in each framework's newest release among these results" if is_newest else ""
    bar = f"Each bar is the highest figure of a {', '.join(some)} and {last}{newest_}."
    return f"{bar} Published figures are paler."


def _left_out(others: int, wrong: int, without: int) -> str:
    reasons = (
        f"{others:,} of other releases (choose one to see it)" if others else "",
        f"{wrong:,} with an error that the audit found" if wrong else "",
        f"{without:,} without this figure" if without else "",
    )
    known = "; ".join(filter(None, reasons))
    return f"Left out: {known}." if known else ""


def newest(results: pd.DataFrame) -> pd.DataFrame:
    """The results of each framework's newest release among them.

    A release without a result on a GPU counts only if the framework has no other, as on the site
    (`perfdb.site.grouping.of_newest_releases`).
    """
    versions = results["release"].astype(object)
    versions = versions.where(versions.notna(), None)
    frameworks = results["framework"]
    on_gpus = results["system"].map(catalog.has_gpus)
    is_real = on_gpus.groupby([frameworks, versions], dropna=False).transform("any")
    has_real = is_real.groupby(frameworks).transform("any")
    order = pd.Series(map(newness, versions, results["build"]), results.index, dtype=object)
    of_each = order[is_real | ~has_real].groupby(frameworks).agg(max)
    return results[order == frameworks.map(of_each)]


def best_of_each(results: pd.DataFrame, metric: Metric) -> pd.DataFrame:
    """The highest figure of each piece of work, by model and system, without those with errors."""
    known = results[results[metric.name].notna() & ~results["is_wrong"]]
    by = [*PARTS, *_details(metric)]
    return known.sort_values(metric.name, ascending=False).drop_duplicates(by).sort_values(by)


def highest(best: pd.DataFrame, metric: Metric) -> pd.DataFrame:
    """The MOST_BARS highest figures, in the order given."""
    return best[best[metric.name].rank(ascending=False, method="first") <= MOST_BARS]


def _details(metric: Metric) -> list[str]:
    """The columns in DETAILS that a metric depends on."""
    bound = metric.name in CONVENTION_BOUND
    return [name for name in DETAILS if bound or name != "flops_convention"]


def bars(best: pd.DataFrame, metric: Metric, systems: Sequence[str]) -> Layers:
    """A bar for each result; published ones are paler, the label of the others says “measured”."""
    described = best[[*PARTS, *_details(metric)]]
    rows = described.assign(
        place=range(len(described)),
        figure=best[metric.name].astype(float),
        label=labels(best, metric),
    )
    base = alt.Chart(rows).encode(
        y=alt.Y("place:O", sort=None, axis=None), tooltip=[*described.columns, "figure"]
    )
    colours = alt.Scale(domain=list(systems), range=list(islice(cycle(PALETTE), len(systems))))
    drawn = base.mark_bar(height=14, yOffset=15).encode(
        x=alt.X("figure:Q", title=metric.title, axis=_axis(metric)),
        color=alt.Color("system_title:N", scale=colours, legend=None),
        fillOpacity=alt.condition("datum.origin === 'measured'", alt.value(1), alt.value(0.45)),
    )
    names = base.mark_text(
        align="left", dy=-22, fontSize=12, color=ink(), lineBreak="\n", lineHeight=15
    ).encode(x=alt.value(0), text="label")
    return tall(alt.layer(drawn, names), ROW_PX * len(rows))


def _axis(metric: Metric) -> alt.Axis:
    return alt.Axis(tickCount=5, format="%") if metric.name == "mfu" else alt.Axis(tickCount=5)


def labels(best: pd.DataFrame, metric: Metric) -> list[str]:
    """'Llama 3 8B · 8 × DGX-H100: 13,812', and on a line of its own what else tells bars apart."""
    differing = [name for name in _details(metric) if best[name].nunique(dropna=False) > 1]
    return [_label(row, metric, differing) for row in data.records(best)]


def _label(row: Mapping[Hashable, object], metric: Metric, differing: Sequence[str]) -> str:
    raw = row["raw"]
    figure = printed(metric, float(str(row[metric.name])), raw if isinstance(raw, dict) else None)
    figure += COMPUTED if row.get(column(metric.name)) is not None else ""
    others = (
        row["task"],
        row["precision"] or "precision unknown",
        row["release_name"],
        *(_detail(name, row[name]) for name in differing),
        "" if row["origin"] == Origin.PUBLISHED else row["origin"],
    )
    words = " · ".join(str(part) for part in others if part)
    where = f"{row['num_gpus']:,} × {row['system_title']}"
    return f"{row['model_title']} · {where}: {figure}\n{words}"


def _detail(name: str, value: object) -> str:
    if value is None or value == "":
        return ""
    if name == "variant":
        return f"variant {titles.framework(str(value))}"
    return f"sequence {value:,}" if name == "sequence_length" else str(value)
