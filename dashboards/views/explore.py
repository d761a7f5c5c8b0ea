"""Every result, narrowed down: its figures, where they come from, and the best ones as bars."""

from collections.abc import Hashable, Mapping

import altair as alt
import pandas as pd
import streamlit as st

from dashboards import data
from dashboards.findings import Findings, is_wrong, listed, mark
from dashboards.look import PALETTE, Layers, grid, ink, printed, tall
from perfdb.compare.words import SHORT
from perfdb.metrics import METRICS
from perfdb.record import CONFIGURATION_FIELDS, Origin, Release
from perfdb.units import UNKNOWN, counted

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
    "model_title", "tokens_per_sec_per_gpu", "system_title", "precision", "num_gpus",
    "global_batch_size", "sequence_length", "layout", "model_tflops_per_sec_per_gpu", "mfu",
    "audit", "step_time_s", "release_name", "origin", "qualifiers", "task", "outcome", "withheld",
    *(name for name in CONFIGURATION_FIELDS if name != "options"),
    "num_results", "window", "num_steps", "flops_convention", "container", "source", "run_link",
)  # fmt: skip
"""A model, its figure and its system are in view on a telephone; what tells rows apart follows."""

LAYOUT = (
    "tensor_parallel", "pipeline_parallel", "context_parallel", "expert_parallel",
    "virtual_pipeline",
)  # fmt: skip

ROW_PX = 44
"""A bar with its name above it, so that the name has the chart's whole width."""

CHARTABLE = {
    METRICS[name].title: name
    for name in ("tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu", "mfu")
}


def show() -> None:
    """The page."""
    st.title("Explore results")
    now = data.store()
    audited = data.findings_of(now)
    everything = labelled(data.representative(now), audited)
    found = _narrowed(everything)
    st.caption(f"{told(found, len(everything))} – stands for unknown.")
    if found.empty:
        st.info("No result is like this. Take a filter away, in the bar on the left.")
        return
    _table(found)
    listed(
        (titled(row), audited.get(int(str(row["result_id"])), ())) for row in data.records(found)
    )
    _chart(found)


def told(found: pd.DataFrame, of: int) -> str:
    """'9 of 9 results, one for each case, release and origin; …': what is shown, what is not."""
    shown = f"{len(found):,} of {counted(of, 'result')}, one for each case, release and origin"
    behind = found["num_results"] - 1
    runs = int(behind[found["origin"] == Origin.MEASURED].sum())
    rows = int(behind.sum()) - runs
    others = (
        f"under “Look into runs” repeats and runs without figures: {runs:,}" if runs else "",
        f"more rows of pages that print the same cases: {rows:,}" if rows else "",
    )
    return "; ".join(filter(None, (shown, *others))) + "."


def titled(row: Mapping[Hashable, object]) -> str:
    """'Llama 3 8B, DGX-H100, 8 GPUs, nemo 25.04 (page.md:22)': a row in words."""
    named = (row["model_title"], row["system_title"], f"{row['num_gpus']} GPUs")
    return f"{', '.join(map(str, named))}, {row['release_name']} ({row['source']})"


def labelled(results: pd.DataFrame, audited: Findings) -> pd.DataFrame:
    """The results with their release, layout and findings in words, source, and link to the run."""
    found = [audited.get(int(result_id), ()) for result_id in results["result_id"]]
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
        layout=pd.array(
            [layout(row) for row in data.records(results[list(LAYOUT)])], dtype="string"
        ),
        audit=pd.array([mark(those) for those in found], dtype="string"),
        is_wrong=[is_wrong(those) for those in found],
    )


def layout(row: Mapping[Hashable, object]) -> str | None:
    """'TP4·PP2': the ways in which the model is divided; 'TP1' where it is not; None: unknown."""
    known = {name: row[name] for name in LAYOUT if row[name] is not None}
    divided = [name for name, ways in known.items() if ways != 1] or list(known)[:1]
    return "·".join(f"{SHORT[name]}{known[name]}" for name in divided) or None


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
    wrong = int((results["is_wrong"] & results[metric].notna()).sum())
    left_out = f" Left out: {wrong:,} with an error that the audit found." if wrong else ""
    st.caption(f"The best of these results for each model, system and origin.{left_out}")
    st.altair_chart(bars(best, metric))


def best_of_each(results: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The result with the highest figure for each model, system and origin; none that is wrong."""
    known = results[results[metric].notna() & ~results["is_wrong"]]
    by = ["model_title", "system_title", "origin"]
    return known.sort_values(metric, ascending=False).drop_duplicates(by).sort_values(by)


def bars(best: pd.DataFrame, metric: str) -> Layers:
    """A bar for each result; published ones are paler, and every bar's line says which it is."""
    told = best[["model_title", "system_title", "origin", "release_name", "precision", "num_gpus"]]
    figures = [printed(METRICS[metric], value) for value in best[metric]]
    case = best["model_title"] + " · " + best["system_title"] + " · " + best["origin"]
    rows = told.assign(figure=best[metric].astype(float), label=case + ": " + figures)
    base = alt.Chart(rows).encode(
        y=alt.Y("label:N", sort=None, axis=None), tooltip=[*told.columns, "figure"]
    )
    drawn = base.mark_bar(height=14, yOffset=8).encode(
        x=alt.X("figure:Q", title=METRICS[metric].title, axis=alt.Axis(tickCount=5)),
        color=alt.Color("system_title:N", scale=alt.Scale(range=PALETTE), legend=None),
        fillOpacity=alt.condition("datum.origin === 'measured'", alt.value(1), alt.value(0.45)),
    )
    names = base.mark_text(align="left", dy=-9, fontSize=12, color=ink()).encode(
        x=alt.value(0), text="label"
    )
    return tall(alt.layer(drawn, names), ROW_PX * len(rows))


def _table(results: pd.DataFrame) -> None:
    names = [name for name in SHOWN if name in results and _says_something(results[name])]
    grid(results[names], "The results with their figures, configuration and source")
    st.download_button(
        "Download as CSV",
        results[list(SHOWN)].to_csv(index=False),
        "perfdb-results.csv",
        "text/csv",
    )


def _says_something(column: pd.Series) -> bool:
    """Columns in which nothing is known are left out, so that the others have room."""
    return bool((column.notna() & (column != "")).any())
