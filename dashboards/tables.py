"""Tables: words over columns, figures with the digits of their page, computed ones marked."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from urllib.parse import quote

import pandas as pd
import streamlit as st
from pandas.io.formats.style import Styler
from streamlit.column_config import Column, DatetimeColumn, LinkColumn, NumberColumn
from streamlit.elements.lib.column_types import ColumnConfig

from dashboards import axes, data
from dashboards.findings import FLAG, Findings, is_wrong, mark
from perfdb import stated
from perfdb.catalog import titles
from perfdb.compare import report
from perfdb.compare.report import Printed
from perfdb.export.formats import Cell, Table, csv
from perfdb.export.formats import Column as ExportColumn
from perfdb.messages import note_text
from perfdb.metrics import METRICS, Metric
from perfdb.record import Result
from perfdb.stated import FOLLOWING
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
    `computed`: those that no row states. The rows are formatted one by one: give hundreds.
    """
    follow = {name: those for name, those in (computed or {}).items() if name in rows}
    shown = figures(rows, cell_texts, follow)
    names = {name: max(map(len, map(str, rows[name])), default=0) for name in NAMES if name in rows}
    config = columns(map(str, shown.columns), names)
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


def columns(
    names: Iterable[str], characters: Mapping[str, int] | None = None
) -> dict[str, ColumnConfig]:
    """How a table shows its columns: the words over them, and how wide they are.

    `characters` are the most in a column that is shown whole.
    """
    return {name: _column(name, (characters or {}).get(name)) for name in names}


def _column(name: str, characters: int | None) -> ColumnConfig:
    metric = METRICS.get(name)
    if name == "run_link":
        return LinkColumn("Run", display_text="run=(.+)$", help="Open the run")
    title = LABELS.get(name, name.replace("_", " ").capitalize())
    if metric:
        # A cell that is too narrow drops the first digits of a number without a sign.
        title = metric.title
        characters = FIGURE_CHARACTERS + (len(COMPUTED) if metric.name in FOLLOWING else 0)
    if name in SIZES:
        characters = FIGURE_CHARACTERS
    width = WIDTHS_PX.get(name)
    if characters is not None:
        width = CHARACTER_PX * max(characters, len(title)) + MARGINS_PX
    if metric:
        return NumberColumn(title, help=metric.meaning, width=width)
    if name in MOMENTS:
        return DatetimeColumn(title, format="YYYY-MM-DD HH:mm", width=width)
    return Column(title, width=width)


def download(rows: pd.DataFrame | Callable[[], pd.DataFrame], file_name: str) -> None:
    """A button for the rows as CSV, made at the click; no text is a formula for a spreadsheet."""
    st.download_button(
        "Download as CSV",
        lambda: as_csv(rows() if callable(rows) else rows),
        file_name,
        "text/csv",
        key=file_name,
    )


def as_csv(rows: pd.DataFrame) -> bytes:
    """The rows as `perfdb export` writes CSV."""
    columns = tuple(ExportColumn(str(name), str) for name in rows.columns)
    cells = data.records(rows)
    return csv.render(Table(columns, tuple(tuple(map(_cell, row.values())) for row in cells)))


def _cell(value: object) -> Cell:
    return value if value is None or isinstance(value, str | int | float) else str(value)


PER_RESULT = ("tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu", "mfu", "step_time_s")
"""The figures of a list of results."""

RESULTS = (
    "model_title", "system_title", "release_name", "precision", "num_gpus", "layout",
    "global_batch_size", "sequence_length", "task", "origin", "source", "run_link",
)  # fmt: skip
"""The columns of a list of results, beside their figures."""


def listing(
    results: Sequence[Result],
    metrics: Sequence[str],
    described: str,
    file_name: str,
    left_out: str = "",
) -> None:
    """A table of results with some of their figures, and the button that downloads it.

    `left_out`: the column that has the title of the page in each row.
    """
    names = [name for name in (*RESULTS[:3], *metrics, *RESULTS[3:]) if name != left_out]
    rows = cells(results, names)
    results_grid(results, rows, described)
    names.remove("run_link")
    download(lambda: pd.DataFrame(rows, columns=names, dtype=object), file_name)


def results_grid(
    results: Sequence[Result], rows: Sequence[Mapping[str, object]], described: str
) -> None:
    """A table of results, whose cells are the rows, without the columns that are all unknown."""
    known = [name for name in rows[0] if any(row[name] not in (None, "") for row in rows)]
    marks = {name: pd.Series([stated.is_computed(it, name) for it in results])
             for name in FOLLOWING}  # fmt: skip
    # Objects, so that numbers of GPUs stay integers where some are unknown.
    shown = pd.DataFrame(rows, columns=known, dtype=object)
    grid(shown, described, [it.printed for it in results], marks)


def cells(
    results: Iterable[Result], names: Sequence[str], audited: Findings | None = None
) -> list[dict[str, object]]:
    """The cells of results by column: words in place of the store's names, and figures.

    `audited`: what the audit found, for a flag before the models that it finds an error in.
    """
    rows = []
    for it in results:
        found = (audited or {}).get(it.result_id, ())
        words: dict[str, object] = {
            "model_title": (f"{FLAG} " if is_wrong(found) else "") + axes.model(it),
            "precision": titles.precision(it.precision) or None,
            "release_name": axes.release_name(it), "layout": layout(vars(it)),
            "task": titles.task(it.task), "origin": str(it.origin), "outcome": str(it.outcome),
            "withheld": note_text(it.withheld) if it.withheld else None, "audit": mark(found),
            "source": it.place, "run_link": f"runs?run={quote(it.run_id)}" if it.run_id else None,
        }  # fmt: skip
        words |= {name: stated.figure(it, name) for name in METRICS}
        rows.append({name: words[name] if name in words else it.value(name) for name in names})
    return rows


LAYOUT = (
    "tensor_parallel", "pipeline_parallel", "context_parallel", "expert_parallel",
    "expert_tensor_parallel", "virtual_pipeline", "fsdp_size", "fsdp_enabled", "data_parallel",
)  # fmt: skip

WAYS = {**report.SHORT, "fsdp_size": "FSDP"}
"""How a layout names each way to divide the work."""


def layout(row: Mapping[str, object] | Mapping[Hashable, object]) -> str | None:
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
