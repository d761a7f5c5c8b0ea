"""How the pages look: the words over columns, and colours that do not rely on telling hues."""

from collections.abc import Iterable, Mapping, Sequence

import streamlit as st
from streamlit.column_config import Column, LinkColumn, NumberColumn
from streamlit.elements.lib.column_types import ColumnConfig

from perfdb.compare import Verdict
from perfdb.compare.words import SHORT
from perfdb.metrics import METRICS, Metric
from perfdb.units import number, percent

MARKS: Mapping[Verdict, str] = {
    Verdict.FASTER: "▲ faster",
    Verdict.SLOWER: "▼ slower",
    Verdict.SAME: "= same",
    Verdict.UNKNOWN: "? unknown",
}
"""A verdict as it is printed: a sign and a word, so that no colour is needed to read it."""

GREY = "#808080"
"""For marks: 3.9:1 on white, 4.6:1 on the dark theme's background. Too faint for words (`ink`)."""

COLOURS: Mapping[Verdict, str] = {
    Verdict.FASTER: "#0072B2",
    Verdict.SLOWER: "#D55E00",
    Verdict.SAME: GREY,
    Verdict.UNKNOWN: GREY,
}
"""Blue and vermilion of Okabe and Ito (2008), apart in every common colour blindness."""

SHAPES: Mapping[Verdict, str] = {
    Verdict.FASTER: "triangle-up",
    Verdict.SLOWER: "triangle-down",
    Verdict.SAME: "circle",
    Verdict.UNKNOWN: "cross",
}

FILLS: Mapping[Verdict, str] = {
    Verdict.FASTER: "background-color: #cfe6f5; color: #06324d",
    Verdict.SLOWER: "background-color: #fbdcc8; color: #5c2500",
    Verdict.SAME: "",
    Verdict.UNKNOWN: "",
}
"""The same for a cell. It sets both of its colours and so reads in a light and a dark theme."""

PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
"""Okabe and Ito's colours, for what has no order."""

LABELS: Mapping[str, str] = {
    "release_name": "Release",
    "system_title": "System",
    "model_title": "Model",
    "qualifiers": "Qualifiers",
    "task": "Task",
    "precision": "Precision",
    "num_gpus": "GPUs",
    "sequence_length": "Sequence",
    "global_batch_size": "GBS",
    **SHORT,
    "gradient_accumulation": "GA",
    "data_parallel": "DP",
    "flops_convention": "FLOPs convention",
    "window": "Window",
    "num_steps": "Steps",
    "num_results": "Runs",
    "origin": "Origin",
    "outcome": "Outcome",
    "withheld": "Why no figures",
    "source": "Source",
    "run_id": "Run",
    "container": "Container",
    "started_at": "Started",
    "recipe": "Recipe",
    "error": "Error",
    "system": "System",
    "attempt": "Attempt",
    "ended_at": "Ended",
    "exit_code": "Exit code",
    "name": "File",
    "sha256": "SHA-256",
    "size_bytes": "Bytes",
}
"""What stands over a column."""


def ink() -> str:
    """The colour of words inside a chart, which do not follow the theme by themselves."""
    return "#d5d5d5" if st.context.theme.type == "dark" else "#4a4a4a"


def remembered(label: str, options: Sequence[str], first: str, key: str) -> str:
    """A select box whose choice is always in the address, the first one too.

    `bind="query-params"` keeps a default out of the address, and a link to the page would show
    another release when the default has moved on. A link to what is not in the store says so.
    """
    if st.session_state.get(key) not in options:
        asked = st.query_params.get(key)
        if asked and asked not in options:
            st.warning(f"The store has no {label.lower()} “{asked}”; {first} is shown instead.")
        st.session_state[key] = asked if asked in options else first
    chosen = st.selectbox(label, options, key=key, persist_state="session")
    st.query_params[key] = chosen
    return chosen


def printed(metric: Metric, value: float | None) -> str:
    """A figure as text: as many digits as the metric has, MFU in percent; – when unknown."""
    return percent(value) if metric.name == "mfu" else number(value, metric.digits)


def columns(names: Iterable[str]) -> dict[str, ColumnConfig]:
    """How a table shows its columns: figures with their digits, words over the rest."""
    return {name: _column(name) for name in names}


def _column(name: str) -> ColumnConfig:
    if name in METRICS:
        return _figure(METRICS[name])
    if name == "run_link":
        return LinkColumn("Run", display_text="run=(.+)$", help="Look into the run")
    return Column(LABELS[name])


def _figure(metric: Metric) -> ColumnConfig:
    if metric.name == "mfu":
        return NumberColumn(metric.title, format="percent", help=metric.meaning)
    return NumberColumn(metric.title, format=f"%,.{metric.digits}f", help=metric.meaning)
