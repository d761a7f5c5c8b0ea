"""Tables: words over columns, figures with the digits of their page, computed ones marked."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import partial

import pandas as pd
import streamlit as st
from pandas.io.formats.style import Styler
from streamlit.column_config import Column, DatetimeColumn, LinkColumn, NumberColumn
from streamlit.elements.lib.column_types import ColumnConfig

from dashboards import data
from perfdb import stated
from perfdb.compare import report
from perfdb.compare.report import Printed
from perfdb.metrics import METRICS, Metric
from perfdb.stated import FOLLOWING, FigureInputs
from perfdb.units import UNKNOWN

LABELS: Mapping[str, str] = {
    "release_name": "Release", "run_name": "Name", "system_title": "System", "model_title": "Model",
    "num_gpus": "GPUs", "sequence_length": "Sequence", "global_batch_size": "GBS", **report.SHORT,
    "flops_convention": "FLOPs convention", "num_steps": "Steps", "num_results": "Runs",
    "num_finished": "Finished", "withheld": "Why no figures", "run_id": "Run", "attempt": "Repeat",
    "started_at": "Started", "ended_at": "Ended", "name": "File", "sha256": "SHA-256",
    "size_bytes": "Bytes",
}  # fmt: skip
"""The title of a column where it is not its name in words: `exit_code` is Exit code."""

WIDTHS_PX: Mapping[str, int] = {
    "model_title": 180, "system_title": 88, "task": 92, "precision": 70, "release_name": 160,
    "audit": 130, "outcome": 110, "error": 320, "started_at": 140, "ended_at": 140, "recipe": 150,
    "sha256": 150,
}  # fmt: skip
"""How wide a column is that would cut its words off, or take the room of others; else as it is."""

CHARACTER_PX, MARGINS_PX = 7, 20
"""What a digit takes in a table, a letter less on average, and what the margins of a cell take."""

FIGURE_CHARACTERS = 10
"""The most characters of a figure, without its mark."""

SIZES = ("num_gpus", "sequence_length", "global_batch_size")

NAMES = ("run_name", "name")
"""Columns that are never cut off: their rows often differ in the last characters only."""

MOMENTS = ("started_at", "ended_at")

STYLED = 2_000
"""The most rows that are formatted one by one: five thousand take a second."""

PLAIN = "%.7g"
"""The format of figures in a longer table."""

Computed = Mapping[str, "pd.Series[bool]"]
"""Which figures of a metric follow from others that are stated, and are not stated themselves."""

COMPUTED = " (computed)"
"""The mark after a computed figure, as on the pages of the site."""


def printed(metric: Metric, value: float | None, cell_texts: Printed | None = None) -> str:
    """A figure as text, by `perfdb.compare.report.printed`; – also for pandas' NA."""
    return report.printed(metric, None if pd.isna(value) else value, cell_texts)


def grid(
    rows: pd.DataFrame,
    described: str,
    cell_texts: Sequence[Printed] = (),
    computed: Computed | None = None,
) -> None:
    """A table to sort and search; `described` is its text for those who do not see it.

    `cell_texts`: what pages print of each row, where its figures are to have those digits.
    `computed`: those that no row states. More than STYLED rows are as of `plainly`.
    """
    follow = {name: those for name, those in (computed or {}).items() if name in rows}
    is_long = len(rows) > STYLED
    shown = plainly(rows, follow) if is_long else figures(rows, cell_texts, follow)
    names = {name: max(map(len, map(str, rows[name])), default=0) for name in NAMES if name in rows}
    config = columns(map(str, shown.columns), names, PLAIN if is_long else None)
    st.dataframe(shown, hide_index=True, column_config=config, placeholder=UNKNOWN, alt=described)


def figures(
    rows: pd.DataFrame, cell_texts: Sequence[Printed] = (), computed: Computed | None = None
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
        # A Styler formats many rows at once: here all with the same number of decimals.
        by_decimals: dict[int, list[Hashable]] = defaultdict(list)
        for (label, value), cells in zip(rows[name].items(), cell_texts, strict=False):
            known = None if pd.isna(value) else report.decimals(cells, metric.name, value)
            if known is not None:
                by_decimals[known].append(label)
        for found, labels in by_decimals.items():
            styled.format(partial(report.with_digits, metric, found=found), subset=(labels, [name]))
    for metric_name, those in (computed or {}).items():
        marked = partial(_marked, METRICS[metric_name])
        styled.format(marked, subset=(those[those].index, [metric_name]))
    return styled


def _marked(metric: Metric, value: float) -> str:
    return f"{printed(metric, value)}{COMPUTED}"


def plainly(rows: pd.DataFrame, computed: Computed) -> pd.DataFrame:
    """The rows as they are, with the computed figures of a metric in a column after its own."""
    found: dict[Hashable, pd.Series] = {}
    for name, column in rows.items():
        those = computed.get(str(name))
        found[name] = column if those is None else column.mask(those)
        if those is not None and those.any():
            found[f"{name}{COMPUTED}"] = column.where(those)
    return pd.DataFrame(found)


def columns(
    names: Iterable[str], characters: Mapping[str, int] | None = None, form: str | None = None
) -> dict[str, ColumnConfig]:
    """How a table shows its columns: the words over them, and how wide they are.

    `characters` are the most in a column that is shown whole. `form` is the format of figures in a
    table without texts: a browser would put it in the place of these.
    """
    return {name: _column(name, (characters or {}).get(name), form) for name in names}


def _column(name: str, characters: int | None, form: str | None) -> ColumnConfig:
    metric = METRICS.get(name.removesuffix(COMPUTED))
    if name == "run_link":
        return LinkColumn("Run", display_text="run=(.+)$", help="Look into the run")
    title = LABELS.get(name, name.replace("_", " ").capitalize())
    if metric:
        # A cell that is too narrow drops the first digits of a number without a sign.
        title = metric.title + (COMPUTED if name.endswith(COMPUTED) else "")
        characters = FIGURE_CHARACTERS + (len(COMPUTED) if metric.name in FOLLOWING else 0)
    if name in SIZES:
        characters = FIGURE_CHARACTERS
    width = WIDTHS_PX.get(name)
    if characters is not None:
        width = CHARACTER_PX * max(characters, len(title)) + MARGINS_PX
    if metric:
        return NumberColumn(title, format=form, help=metric.meaning, width=width)
    if name in MOMENTS:
        return DatetimeColumn(title, format="YYYY-MM-DD HH:mm", width=width)
    return Column(title, width=width)


def column(metric: str) -> str:
    """The name of the column with a metric's computed figures, empty in rows that state it."""
    return f"computed_{metric}"


def followed(results: pd.DataFrame) -> pd.DataFrame:
    """The results with a column of computed figures for each metric that can follow from others."""
    rows = [FigureInputs.model_validate(row) for row in data.records(results)]
    return results.assign(
        **{
            column(metric): pd.array([stated.computed(row, metric) for row in rows], "Float64")
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
