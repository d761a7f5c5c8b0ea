"""Every result, narrowed down: its figures, where they come from, and the best ones as bars."""

from collections.abc import Mapping

import altair as alt
import pandas as pd
import streamlit as st

from dashboards import data
from dashboards.look import PALETTE, columns, ink, printed
from perfdb.metrics import METRICS
from perfdb.record import CONFIGURATION_FIELDS, Release
from perfdb.units import UNKNOWN

FILTERS: Mapping[str, str] = {
    "release": "release_name",
    "system": "system_title",
    "model": "model_title",
    "task": "task",
    "precision": "precision",
    "origin": "origin",
}
"""Each filter's name in the address, and the column that it narrows."""

SHOWN = (
    "model_title", "qualifiers", "system_title", "release_name", "origin", "precision", "num_gpus",
    "tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu", "mfu", "step_time_s",
    "outcome", "withheld", "task", "sequence_length", "global_batch_size",
    *(name for name in CONFIGURATION_FIELDS if name != "options"),
    "num_results", "window", "num_steps", "flops_convention", "container", "source", "run_link",
)  # fmt: skip

CHARTABLE = {
    METRICS[name].title: name
    for name in ("tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu", "mfu")
}


def show() -> None:
    """The page."""
    st.title("Explore results")
    everything = labelled(data.representative(data.store()))
    found = _narrowed(everything)
    st.caption(f"{len(found):,} of {len(everything):,} results. – stands for unknown.")
    if found.empty:
        st.info("No result is like this. Take a filter away, in the bar on the left.")
        return
    _table(found)
    _chart(found)


def labelled(results: pd.DataFrame) -> pd.DataFrame:
    """The results with a release's name as text, a place to look for each, a link to its run."""
    return results.assign(
        release_name=[
            Release(framework=framework, version=version if pd.notna(version) else None).name
            for framework, version in zip(results["framework"], results["release"], strict=True)
        ],
        source=[
            f"{path}:{line}" if pd.notna(line) else path
            for path, line in zip(results["source"], results["source_line"], strict=True)
        ],
        run_link="runs?run=" + results["run_id"],
    )


def _narrowed(results: pd.DataFrame) -> pd.DataFrame:
    """The results that the filters let through; a filter with nothing chosen lets all through."""
    st.sidebar.header("Show only")
    kept = pd.Series(data=True, index=results.index)
    for name, column in FILTERS.items():
        said = results[column].fillna(UNKNOWN)
        options = sorted(said.unique())
        chosen = st.sidebar.multiselect(name.capitalize(), options, key=name, bind="query-params")
        kept &= said.isin(chosen) if chosen else True
    return results[kept]


def _chart(results: pd.DataFrame) -> None:
    st.subheader("By model and system")
    title = st.segmented_control(
        "Figure", list(CHARTABLE), default=next(iter(CHARTABLE)), key="chart", bind="query-params"
    )
    metric = CHARTABLE[title or next(iter(CHARTABLE))]
    best = best_of_each(results, metric)
    if best.empty:
        st.info(f"None of these results has a figure for {METRICS[metric].title}.")
        return
    st.caption("The best of these results for each model, system and origin.")
    st.altair_chart(bars(best, metric))


def best_of_each(results: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The result with the highest figure for each model, system and origin."""
    known = results[results[metric].notna()]
    by = ["model_title", "system_title", "origin"]
    return known.sort_values(metric, ascending=False).drop_duplicates(by).sort_values(by)


def bars(best: pd.DataFrame, metric: str) -> alt.LayerChart | alt.FacetChart:
    """A bar for each result; published ones are paler, and every bar's line says which it is."""
    told = best[["model_title", "system_title", "origin", "release_name", "precision", "num_gpus"]]
    rows = told.assign(
        figure=best[metric].astype(float),
        printed=[printed(METRICS[metric], value) for value in best[metric]],
        label=best["model_title"] + " · " + best["system_title"] + " · " + best["origin"],
    )
    base = alt.Chart(rows).encode(
        x=alt.X("figure:Q", title=METRICS[metric].title, axis=alt.Axis(tickCount=6)),
        y=alt.Y("label:N", title=None, sort=None, axis=alt.Axis(labelLimit=260)),
        tooltip=[*told.columns, "figure"],
    )
    drawn = base.mark_bar().encode(
        color=alt.Color("system_title:N", scale=alt.Scale(range=PALETTE), legend=None),
        fillOpacity=alt.condition("datum.origin === 'measured'", alt.value(1), alt.value(0.45)),
    )
    figures = base.mark_text(align="left", dx=4, color=ink()).encode(text="printed")
    return alt.layer(drawn, figures).properties(height=26 * len(rows) + 40)


def _table(results: pd.DataFrame) -> None:
    names = [name for name in SHOWN if name in results and _says_something(results[name])]
    st.dataframe(
        results[names],
        hide_index=True,
        column_config=columns(names),
        placeholder=UNKNOWN,
        alt="The results with their figures, configuration and source",
    )
    st.download_button(
        "Download as CSV",
        results[list(SHOWN)].to_csv(index=False),
        "perfdb-results.csv",
        "text/csv",
    )


def _says_something(column: pd.Series) -> bool:
    """Columns in which nothing is known are left out, so that the others have room."""
    return bool((column.notna() & (column != "")).any())
