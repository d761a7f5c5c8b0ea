"""Every result, narrowed down: its figures, where they come from, and the best ones as bars."""

from collections.abc import Callable, Hashable, Mapping

import pandas as pd
import streamlit as st

from dashboards import data
from dashboards.charts import PARTS, bars, details
from dashboards.choices import remembered_some, warn_of_others
from dashboards.findings import FLAG, Findings, is_wrong, listed, mark
from dashboards.tables import COMPUTED, STYLED, computed, filled, followed, grid
from perfdb import catalog
from perfdb.catalog import titles
from perfdb.compare.report import SHORT, counting
from perfdb.export import csv
from perfdb.export.results import table_of
from perfdb.messages import note_text
from perfdb.metrics import METRICS, Metric
from perfdb.record import CONFIGURATION_FIELDS, Note, Origin
from perfdb.units import UNKNOWN, counted
from perfdb.versions import natural, newness

FILTERS: Mapping[str, tuple[str, str, Callable[[str], str]]] = {
    "release": ("Release", "release_name", titles.release),
    "system": ("System", "system", titles.system),
    "model": ("Model", "model", titles.model),
    "task": ("Task", "task", titles.task),
    "precision": ("Precision", "precision", titles.precision),
    "gpus": ("GPUs", "num_gpus", str),
    "origin": ("Origin", "origin", str),
}
"""By its name in the address each filter's label, the column that it narrows, how values read."""

SHOWN = (
    "model_title", "tokens_per_sec_per_gpu", "system_title", "task", "precision", "release_name",
    "num_gpus", "global_batch_size", "sequence_length", "layout", "model_tflops_per_sec_per_gpu",
    "mfu", "audit", "step_time_s", "origin", "outcome", "withheld",
    *(name for name in CONFIGURATION_FIELDS if name != "options"),
    "num_results", "num_finished", "window", "num_steps", "flops_convention", "container", "source",
    "run_link",
)  # fmt: skip
"""A model, its figure and its system are in view on a phone; what distinguishes rows is next."""

LAYOUT = (
    "tensor_parallel", "pipeline_parallel", "context_parallel", "expert_parallel",
    "expert_tensor_parallel", "virtual_pipeline", "fsdp_size", "fsdp_enabled", "data_parallel",
)  # fmt: skip

WAYS = {**SHORT, "fsdp_size": "FSDP"}
"""How a layout names each way to divide the work."""

MOST_BARS = 40
"""The most bars that are drawn, as more cannot be read; the table has them all."""

CHARTABLE = {
    METRICS[name].title: METRICS[name]
    for name in ("tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu", "mfu")
}


def show() -> None:
    """The page."""
    st.title("Explore results")
    store = data.store()
    audited = data.findings_of(store)
    everything = followed(labelled(data.representative(store), audited))
    found = _narrowed(everything)
    st.caption(f"{counts(found, len(everything))} {_legend(found)}")
    if found.empty:
        st.info("No result is like this. Take a filter away, in the bar on the left.")
        return
    shown = worded(found)
    marked = [FLAG + " " if wrong else "" for wrong in shown["is_wrong"]]
    table = filled(shown).assign(model_title=marked + shown["model_title"])
    # Columns in which nothing is known are left out, so that the others have room.
    known = table.notna() & (table != "")
    names = [name for name in SHOWN if name in table and known[name].any()]
    described = "The results with their figures, configuration and source"
    grid(table[names], described, list(shown["printed"]), computed(shown))
    st.download_button("Download as CSV", exported(found), "perfdb-results.csv", "text/csv")
    listed(
        (titled(row), audited.get(int(str(row["result_id"])), ())) for row in data.records(shown)
    )
    _bests(filled(shown), is_newest=not st.session_state["release"])


def counts(found: pd.DataFrame, of: int) -> str:
    """'9 of 9 results, one for each case, release and origin; …': how many are shown and not."""
    shown = f"{len(found):,} of {counted(of, 'result')}, one for each case, release and origin"
    behind = found["num_results"] - 1
    runs = int(behind[found["origin"] == Origin.MEASURED].sum())
    rows = int(behind.sum()) - runs
    if runs:
        shown += f"; under “Look into runs” repeats and runs without figures: {runs:,}"
    if rows:
        shown += f"; more published results of the same cases: {rows:,}"
    return f"{shown}."


def _legend(found: pd.DataFrame) -> str:
    """What the signs that occur in the table mean."""
    sentences = ["– stands for unknown."]
    if any(those.any() for those in computed(found).values()):
        sentences.append(f"{COMPUTED.strip()}: it follows from what the page states.")
    if len(found) > STYLED:
        sentences.append(
            f"Of more than {STYLED:,} results figures are plain numbers, MFU a share of 1."
        )
    if found["is_wrong"].any():
        sentences.append(f"{FLAG} before a model: the audit finds an error.")
    return " ".join(sentences)


def titled(row: Mapping[Hashable, object]) -> str:
    """'Llama 3 8B, 8 × DGX-H100, NeMo Framework 25.04 (page.md:22)': a row in words."""
    systems = f"{row['num_gpus']:,} × {row['system_title']}"
    return f"{row['model_title']}, {systems}, {row['release_name']} ({row['source']})"


def labelled(results: pd.DataFrame, audited: Findings) -> pd.DataFrame:
    """The results with their release, layout and findings in words, and the link to the run."""
    found = [audited.get(int(result_id), ()) for result_id in results["result_id"]]
    layouts = [layout(row) for row in data.records(results[list(LAYOUT)])]
    return results.assign(
        release_name=data.release_names(results),
        run_link="runs?run=" + results["run_id"],
        layout=pd.array(layouts, dtype="string"),
        audit=pd.array([mark(those) for those in found], dtype="string"),
        is_wrong=[is_wrong(those) for those in found],
    )


def worded(results: pd.DataFrame) -> pd.DataFrame:
    """The results with titles in place of the store's names, and their source with its line."""
    titled_columns = {
        column: results[column].astype("string").map(words, na_action="ignore").astype("string")
        for column, words in (
            ("task", titles.task),
            ("precision", titles.precision),
            ("release_name", titles.release),
        )
    }
    lines = ":" + results["source_line"].astype("string")
    withheld = [note_text(one) if isinstance(one, Note) else None for one in results["withheld"]]
    return results.assign(
        **titled_columns,
        model_title=list(map(titles.qualified, results["model_title"], results["qualifiers"])),
        withheld=pd.array(withheld, dtype="string"),
        source=results["source"] + lines.fillna(""),
    )


def layout(row: Mapping[Hashable, object]) -> str | None:
    """'TP4·PP2', 'FSDP64': how the work is divided; None if unknown.

    'TP1' if it is not divided as far as is known; 'DP64' if only the data are divided.
    """
    known = {name: row[name] for name in LAYOUT if row.get(name) is not None}
    data_parallel = known.pop("data_parallel", 1)
    if known.pop("fsdp_enabled", False) and "fsdp_size" not in known:
        known["fsdp_size"] = ""
    ways = [f"{WAYS[name]}{size}" for name, size in known.items()]
    divided = [f"{WAYS[name]}{size}" for name, size in known.items() if size != 1]
    if not divided and data_parallel != 1:
        return f"DP{data_parallel}"
    return "·".join(divided or ways[:1]) or None


def _narrowed(results: pd.DataFrame) -> pd.DataFrame:
    """The results that the filters let through; a filter with nothing chosen lets all through."""
    st.sidebar.header("Show only")
    kept = pd.Series(data=True, index=results.index)
    for name, (label, column, words) in FILTERS.items():
        known = results[column].fillna(UNKNOWN).astype(str)
        values = sorted(known.unique(), key=lambda value: natural(words(value)))
        options = {value: words(value) for value in values}
        chosen = remembered_some(label, options, name, st.sidebar)
        kept &= known.isin(chosen) if chosen else True
    return results[kept]


def exported(results: pd.DataFrame) -> str:
    """CSV with the columns and the names that `perfdb export results` has."""
    rows = ({str(name): value for name, value in row.items()} for row in data.records(results))
    return csv.render(table_of(rows)).decode()


def _bests(results: pd.DataFrame, *, is_newest: bool) -> None:
    """Show the chart with its caption.

    `is_newest`: draw only each framework's newest release among the results with the figure.
    """
    st.subheader("By model and system")
    warn_of_others("chart", CHARTABLE)
    first = next(iter(CHARTABLE))
    title = st.segmented_control(
        "Figure", list(CHARTABLE), default=first, key="chart", bind="query-params"
    )
    metric = CHARTABLE[title or first]
    known = results[results[metric.name].notna()]
    of_releases = newest(known) if is_newest else known
    best = best_of_each(of_releases, metric)
    if best.empty:
        st.info(f"None of these results has a figure for {metric.title} without an open error.")
        return
    drawn = best[best[metric.name].rank(ascending=False, method="first") <= MOST_BARS]
    *some, last = PARTS.values()
    among = ", in each framework's newest release among these results" if is_newest else ""
    caption = [
        f"Each bar is the highest figure of a {', '.join(some)} and {last}{among}.",
        "Published figures are paler.",
    ]
    if len(drawn) < len(best):
        caption.append(f"The {len(drawn)} highest of {len(best)} are drawn.")
    left_out = {
        "of other releases (choose one to see it)": len(known) - len(of_releases),
        "with an error that the audit found": int(of_releases["is_wrong"].sum()),
        "without this figure": len(results) - len(known),
    }
    if reasons := [f"{number:,} {reason}" for reason, number in left_out.items() if number]:
        caption.append(f"Left out: {'; '.join(reasons)}.")
    conventions = drawn["flops_convention"].astype(object)
    caption.append(counting(metric, conventions.where(conventions.notna(), None)))
    st.caption(" ".join(filter(None, caption)))
    st.altair_chart(bars(drawn, metric))


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
    by = [*PARTS, *details(metric)]
    return known.sort_values(metric.name, ascending=False).drop_duplicates(by).sort_values(by)
