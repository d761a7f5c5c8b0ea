"""Tables: words over columns, figures with the digits of their page, computed ones marked."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import partial
from itertools import repeat

import altair as alt
import pandas as pd
import streamlit as st
from pandas.io.formats.style import Styler
from streamlit.column_config import Column, DatetimeColumn, LinkColumn, NumberColumn
from streamlit.elements.lib.column_types import ColumnConfig

from dashboards import data
from perfdb import stated
from perfdb.compare import report as digits
from perfdb.compare.report import SHORT, Printed, decimals
from perfdb.metrics import METRICS, Metric
from perfdb.stated import FOLLOWING, FigureInputs
from perfdb.units import UNKNOWN

GREY = "#808080"
"""For marks: 3.9:1 on white, 4.6:1 on the dark theme's background. Too faint for words (`ink`)."""

PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
"""Okabe and Ito's colours, for what has no order."""

LABELS: Mapping[str, str] = {
    "release_name": "Release",
    "layout": "Layout",
    "audit": "Audit",
    "run_name": "Name",
    "system_title": "System",
    "model_title": "Model",
    "task": "Task",
    "precision": "Precision",
    "num_gpus": "GPUs",
    "sequence_length": "Sequence",
    "global_batch_size": "GBS",
    **SHORT,
    "flops_convention": "FLOPs convention",
    "window": "Window",
    "num_steps": "Steps",
    "num_results": "Runs",
    "num_finished": "Finished",
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
    "attempt": "Repeat",
    "ended_at": "Ended",
    "exit_code": "Exit code",
    "name": "File",
    "sha256": "SHA-256",
    "size_bytes": "Bytes",
}
"""The title of a column."""

WIDTHS_PX: Mapping[str, int] = {
    "model_title": 180,
    "system_title": 88,
    "task": 92,
    "precision": 70,
    "release_name": 160,
    "audit": 130,
    "outcome": 110,
    "error": 320,
    "started_at": 140,
    "ended_at": 140,
    "recipe": 150,
    "sha256": 150,
}
"""How wide a column is that would cut its words off, or take the room of others; else as it is."""

CHARACTER_PX, MARGINS_PX = 7, 20
"""What a digit takes in a table, a letter less on average, and what the margins of a cell take."""

SIZES = ("num_gpus", "sequence_length", "global_batch_size")

NAMES = ("run_name", "name")
"""Columns whose rows often differ in their last characters alone: nothing of them is cut off."""

MOMENTS = ("started_at", "ended_at")

STYLED = 2_000
"""The most rows that are formatted one by one: five thousand take a second."""

PLAIN = "%.7g"
"""The format of figures in a longer table."""

Layers = alt.LayerChart | alt.FacetChart
"""The type that `alt.layer` returns."""

Computed = Mapping[str, "pd.Series[bool]"]
"""Which figures of a metric follow from others that are stated, and are not stated themselves."""

COMPUTED = " (computed)"
"""The mark after a computed figure, as on the pages of the site."""


def ink() -> str:
    """The colour of text in a chart, which does not follow the theme by itself."""
    return "#d5d5d5" if st.context.theme.type == "dark" else "#4a4a4a"


def printed(metric: Metric, value: float | None, cell_texts: Printed | None = None) -> str:
    """A figure as text, as `perfdb.compare.report.printed` says; – also for pandas' NA."""
    return digits.printed(metric, None if pd.isna(value) else value, cell_texts)


def grid(
    rows: pd.DataFrame,
    described: str,
    cell_texts: Sequence[Printed] | None = None,
    computed: Computed | None = None,
) -> None:
    """A table to sort and search; `described` says what it is to those who do not see it.

    `cell_texts`: what pages print of each row, where its figures are to have those digits.
    `computed`: those that no row states. A table of more than STYLED rows is as of `plainly`.
    """
    follow = {name: those for name, those in (computed or {}).items() if name in rows}
    shown: pd.DataFrame | Styler
    if len(rows) > STYLED:
        shown = plainly(rows, follow)
        config = columns(map(str, shown), widths_px(whole(rows) | plain_texts(shown)), PLAIN)
    else:
        shown = figures(rows, cell_texts, follow)
        config = columns(map(str, rows), widths_px(whole(rows) | texts(rows, cell_texts, follow)))
    st.dataframe(shown, hide_index=True, column_config=config, placeholder=UNKNOWN, alt=described)


def tall(chart: Layers, rows_px: int) -> Layers:
    """The chart with rows of this height in pixels, plus its axes and legend.

    Streamlit's own choice, `fit`, takes axes and legend out of the height: one row vanishes.
    """
    return chart.properties(
        height=rows_px, autosize=alt.AutoSizeParams(type="fit-x", contains="padding")
    )


def figures(
    rows: pd.DataFrame,
    cell_texts: Sequence[Printed] | None = None,
    computed: Computed | None = None,
) -> Styler:
    """The rows with their figures printed one by one, and what is computed with its mark."""
    names: list[Hashable] = [name for name in METRICS if name in rows]
    styled = rows.style.format(
        {name: partial(printed, METRICS[str(name)]) for name in names}, subset=names, na_rep=UNKNOWN
    )
    sizes: list[Hashable] = [name for name in SIZES if name in rows]
    styled.format("{:,}", subset=sizes, na_rep=UNKNOWN)
    for name in names:
        metric = METRICS[str(name)]
        for like, labels in _alike(metric, rows[name], cell_texts or ()).items():
            styled.format(partial(digits.with_digits, metric, found=like), subset=(labels, [name]))
    for name, those in (computed or {}).items():
        styled.format(partial(_marked, METRICS[name]), subset=(those[those].index, [name]))
    return styled


def plainly(rows: pd.DataFrame, computed: Computed) -> pd.DataFrame:
    """The rows as they are, with the computed figures of a metric in a column after its own."""
    found: dict[Hashable, pd.Series] = {}
    for name, column in rows.items():
        those = computed.get(str(name))
        found[name] = column if those is None else column.mask(those)
        if those is not None and those.any():
            found[f"{name}{COMPUTED}"] = column.where(those)
    return pd.DataFrame(found)


def plain_texts(rows: pd.DataFrame) -> dict[str, list[str]]:
    """What each column of numbers shows without texts: figures as PLAIN has them."""
    figures = {
        str(name): [PLAIN % value for value in column.dropna()]
        for name, column in rows.items()
        if _metric(str(name))
    }
    return figures | {name: list(map(str, rows[name].dropna())) for name in SIZES if name in rows}


def texts(
    rows: pd.DataFrame,
    cell_texts: Sequence[Printed] | None = None,
    computed: Computed | None = None,
) -> dict[str, list[str]]:
    """What `figures` prints in each column of numbers."""
    printing = {
        name: list(map(partial(printed, METRICS[name]), rows[name], cell_texts or repeat({})))
        for name in METRICS
        if name in rows
    }
    for name, those in (computed or {}).items():
        if name in printing:
            marks = those.map({True: COMPUTED, False: ""})
            printing[name] = list(map(str.__add__, printing[name], marks))
    return printing | {
        name: [f"{size:,}" for size in rows[name].dropna()] for name in SIZES if name in rows
    }


def whole(rows: pd.DataFrame) -> dict[str, list[str]]:
    """The texts of the columns that are shown whole: those of NAMES."""
    return {name: list(map(str, rows[name])) for name in NAMES if name in rows}


def widths_px(written: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """How wide columns are that show these texts whole, and their titles.

    A cell with a number cuts the first digits off where it is too narrow, and says nothing.
    """
    return {
        name: CHARACTER_PX * max(map(len, (_title(name), *some))) + MARGINS_PX
        for name, some in written.items()
    }


def _metric(name: str) -> Metric | None:
    return METRICS.get(name.removesuffix(COMPUTED))


def _title(name: str) -> str:
    metric, mark = _metric(name), COMPUTED if name.endswith(COMPUTED) else ""
    return f"{metric.title}{mark}" if metric else LABELS[name]


def _marked(metric: Metric, value: float) -> str:
    return f"{printed(metric, value)}{COMPUTED}"


def _alike(
    metric: Metric, values: "pd.Series[float]", cell_texts: Sequence[Printed]
) -> dict[int, list[Hashable]]:
    """The rows whose pages print a figure with so many decimals: a Styler formats many at once."""
    groups: dict[int, list[Hashable]] = defaultdict(list)
    for (label, value), cells in zip(values.items(), cell_texts, strict=False):
        if not pd.isna(value) and (found := decimals(cells, metric.name, value)) is not None:
            groups[found].append(label)
    return groups


def columns(
    names: Iterable[str], widths: Mapping[str, int] | None = None, form: str | None = None
) -> dict[str, ColumnConfig]:
    """How a table shows its columns: the words over them, and how wide they are.

    `widths` has those in pixels that the texts ask for (`widths_px`). `form` is the format of
    figures in a table without texts: a browser would put it in the place of these.
    """
    known = {**WIDTHS_PX, **(widths or {})}
    return {name: _column(name, known.get(name), form) for name in names}


def _column(name: str, width: int | None, form: str | None) -> ColumnConfig:
    if metric := _metric(name):
        return NumberColumn(_title(name), format=form, help=metric.meaning, width=width)
    if name == "run_link":
        return LinkColumn("Run", display_text="run=(.+)$", help="Look into the run")
    if name in MOMENTS:
        return DatetimeColumn(LABELS[name], format="YYYY-MM-DD HH:mm", width=width)
    return Column(LABELS[name], width=width)


def column(metric: str) -> str:
    """The name of the column with a metric's computed figures, empty in rows that state it."""
    return f"computed_{metric}"


def followed(results: pd.DataFrame) -> pd.DataFrame:
    """The results with a column of computed figures for each metric that can follow from others."""
    rows = [FigureInputs.model_validate(row) for row in data.records(results)]
    return results.assign(
        **{
            column(metric): pd.array(
                [stated.computed(row, metric) for row in rows], dtype="Float64"
            )
            for metric in FOLLOWING
        }
    )


def filled(results: pd.DataFrame) -> pd.DataFrame:
    """The results with the computed figures filled into their metric's own column."""
    return results.assign(
        **{metric: results[metric].fillna(results[column(metric)]) for metric in FOLLOWING}
    )


def computed(results: pd.DataFrame) -> Computed:
    """For each metric, which results have a computed figure."""
    return {metric: results[column(metric)].notna() for metric in FOLLOWING}
