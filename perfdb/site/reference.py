"""Tables made from the code itself, so that they cannot say anything else than it does."""

from collections.abc import Callable, Mapping
from inspect import getdoc
from typing import Final

from sqlalchemy import Column, Table

from perfdb import catalog, flops, metrics, units
from perfdb.catalog import Model, System
from perfdb.db import tables as schema
from perfdb.site import diagram, dictionary, markup
from perfdb.site.markup import Cell, Content, Head, Html, joined, tag

_SOURCE: Final = Head("Source", wide=True)


def systems() -> Html:
    """Every system of the catalogue."""
    heads = _heads("System", "Name", "GPU", n=("GPUs per node", "NVLink domain", "Memory (GB)"))
    rows = [_system_row(entry) for entry in catalog.systems().values()]
    return _table("Systems", [*heads, _SOURCE], rows)


def _system_row(entry: System) -> list[Content]:
    return [
        entry.title,
        tag("code", entry.name),
        units.text(entry.gpu),
        units.text(entry.gpus_per_node),
        units.text(entry.nvlink_domain),
        units.number(entry.memory_gb),
        entry.source,
    ]


def peaks() -> Html:
    """The dense peaks that MFU is computed against, each with its source."""
    heads = [*_heads("System", "Precision", n=("Dense peak (TFLOP/s/GPU)",)), _SOURCE]
    rows: list[list[Content]] = [
        [entry.title, name.upper(), units.number(peak.tflops), peak.source]
        for entry in catalog.systems().values()
        for name, peak in entry.peaks.items()
    ]
    return _table("Dense peaks", heads, rows)


def precisions() -> Html:
    """Every precision recipe, how it scales, and the peak that it is measured against."""
    rows: list[list[Content]] = [
        [
            entry.title,
            tag("code", entry.name),
            units.text(entry.peak and entry.peak.upper()),
            units.text(entry.scaling),
        ]
        for entry in catalog.precisions().values()
    ]
    heads = [*_heads("Precision", "Name", "Measured against the peak of"), *_wide("Scaling")]
    return _table("Precisions", heads, rows)


def models() -> Html:
    """Every model of the catalogue, with the numbers that its FLOPs follow from."""
    numbers = (
        "Layers", "Hidden", "FFN", "Heads", "KV heads", "Vocabulary", "Experts", "Top-k",
        f"GFLOP per token at {flops.LISTED_AT:,}",
    )  # fmt: skip
    heads = [*_heads("Model", "Name", "Family", n=numbers), _SOURCE]
    return _table("Models", heads, [_model_row(entry) for entry in catalog.models().values()])


def _model_row(entry: Model) -> list[Content]:
    per_token = flops.flops_per_token(entry, flops.LISTED_AT)
    return [
        entry.title,
        tag("code", entry.name),
        entry.family,
        *(units.text(getattr(entry, name)) for name in _SHAPE),
        units.significant(per_token / 1e9 if per_token else None),
        entry.source,
    ]


_SHAPE: Final = (
    "num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads", "num_query_groups",
    "vocab_size", "num_experts", "moe_top_k",
)  # fmt: skip


def metric_list() -> Html:
    """Every figure: its name, its unit, which way is better, its formula."""
    rows: list[list[Content]] = [
        [one.title, tag("code", one.name), one.unit, one.better, one.meaning, one.formula]
        for one in metrics.METRICS.values()
    ]
    heads = [*_heads("Figure", "Field", "Unit", "Better"), *_wide("Meaning", "Formula")]
    return _table("Metrics", heads, rows)


def conventions() -> Html:
    """What is counted as model FLOPs, by the name that stands with each figure."""
    rows: list[list[Content]] = [
        [
            one.name,
            "half, for the causal mask" if one.causal_attention else "in full",
            "yes" if one.logits else "no",
            "yes" if one is flops.DEFAULT else "no",
            one.meaning,
        ]
        for one in flops.CONVENTIONS.values()
    ]
    heads = _heads("Convention", "Attention", "Logits", "Used for measured figures")
    heads += _wide("Meaning")
    return _table("FLOPs conventions", heads, rows)


def formulas() -> Html:
    """The FLOPs formula of each architecture family, in its own words."""
    rows: list[list[Content]] = [
        [tag("code", family), formula.covers, getdoc(formula.cost) or ""]
        for family, formula in flops.FORMULAS.items()
    ]
    heads = [*_heads("Family"), *_wide("Covers", "Formula of a token's forward pass")]
    return _table("FLOPs formulas", heads, rows)


def tables_of_schema() -> Html:
    """Every table of the store with its columns."""
    return joined(_schema_table(one) for one in schema.metadata.sorted_tables)


def diagram_of_schema() -> Html:
    """The tables of the store, and which refers to which."""
    return diagram.drawing(schema.metadata)


def _schema_table(given: Table) -> Html:
    rows = [_column_row(column) for column in given.columns]
    heads = [*_heads("Column", "Type", "Null", "Key"), *_wide("Holds")]
    title = tag("h2", tag("code", given.name))
    return tag("section", (title, _table(given.name, heads, rows)), id=f"table-{given.name}")


def _column_row(column: "Column[object]") -> list[Content]:
    target = next((key.target_fullname for key in column.foreign_keys), None)
    key = "primary" if column.primary_key else f"→ {target}" if target else ""
    null = "yes" if column.nullable else "no"
    return [tag("code", column.name), str(column.type), null, key, column.comment or ""]


def _heads(*titles: str, n: tuple[str, ...] = ()) -> list[Head]:
    return [*(Head(title) for title in titles), *(Head(title, numeric=True) for title in n)]


def _wide(*titles: str) -> list[Head]:
    return [Head(title, wide=True) for title in titles]


def _table(label: str, heads: list[Head], rows: list[list[Content]]) -> Html:
    cells = [[Cell(content) for content in row] for row in rows]
    return markup.table(markup.Table(label, heads, cells))


TABLES: Final[Mapping[str, Callable[[], Html]]] = {
    "conventions": conventions,
    "data": dictionary.table,
    "diagram": diagram_of_schema,
    "formulas": formulas,
    "metrics": metric_list,
    "models": models,
    "peaks": peaks,
    "precisions": precisions,
    "schema": tables_of_schema,
    "systems": systems,
}
"""Every table by the name that pages call it."""
