"""Tables made from the code itself, so that they cannot differ from what it does."""

from collections.abc import Callable, Mapping
from inspect import getdoc
from typing import Final

from markupsafe import Markup
from sqlalchemy import Column as SchemaColumn
from sqlalchemy import Table as SchemaTable

from perfdb import catalog, flops, metrics, units
from perfdb.catalog import Model, System
from perfdb.db import tables as schema
from perfdb.site.diagram import drawing
from perfdb.site.dictionary import dictionary_table
from perfdb.site.tables import HtmlHead, plain
from perfdb.site.templates import code, joined, render_text

_SOURCE: Final = HtmlHead("Source", wide=True)


def systems() -> Markup:
    """Every system of the catalogue."""
    heads = _heads("System", "Name", "GPU", n=("GPUs per node", "NVLink domain", "Memory (GB)"))
    rows = [_system_row(entry) for entry in catalog.systems().values()]
    return _table("Systems", [*heads, _SOURCE], rows)


def _system_row(entry: System) -> list[str]:
    return [
        entry.title,
        code(entry.name),
        units.text(entry.gpu),
        units.text(entry.gpus_per_node),
        units.text(entry.nvlink_domain),
        units.number(entry.memory_gb),
        entry.source,
    ]


def peaks() -> Markup:
    """The dense peaks that MFU is computed against, each with its source."""
    heads = [*_heads("System", "Precision", n=("Dense peak (TFLOP/s/GPU)",)), _SOURCE]
    rows: list[list[str]] = [
        [entry.title, name.upper(), units.number(peak.tflops), peak.source]
        for entry in catalog.systems().values()
        for name, peak in entry.peaks.items()
    ]
    return _table("Dense peaks", heads, rows)


def precisions() -> Markup:
    """Every precision recipe, how it scales, and the peak that it is measured against."""
    rows: list[list[str]] = [
        [
            entry.title,
            code(entry.name),
            units.text(entry.peak and entry.peak.upper()),
            units.text(entry.scaling),
        ]
        for entry in catalog.precisions().values()
    ]
    heads = [*_heads("Precision", "Name", "Measured against the peak of"), *_wide("Scaling")]
    return _table("Precisions", heads, rows)


def models() -> Markup:
    """Every model of the catalogue, with the numbers that its FLOPs follow from."""
    numbers = (
        "Layers", "Hidden", "FFN", "Heads", "KV heads", "Vocabulary", "Experts", "Top-k",
        f"GFLOP per token at {flops.LISTED_AT:,}",
    )  # fmt: skip
    heads = [*_heads("Model", "Name", "Family", n=numbers), _SOURCE]
    return _table("Models", heads, [_model_row(entry) for entry in catalog.models().values()])


def _model_row(entry: Model) -> list[str]:
    per_token = flops.flops_per_token(entry, flops.LISTED_AT)
    return [
        entry.title,
        code(entry.name),
        entry.family,
        *(units.text(getattr(entry, name)) for name in _SHAPE),
        units.significant(per_token / 1e9 if per_token else None),
        entry.source,
    ]


_SHAPE: Final = (
    "num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads", "num_query_groups",
    "vocab_size", "num_experts", "moe_top_k",
)  # fmt: skip


def metric_list() -> Markup:
    """Every figure: its name, its unit, which way is better, its formula."""
    rows: list[list[str]] = [
        [one.title, code(one.name), one.unit, one.better, one.meaning, one.formula]
        for one in metrics.METRICS.values()
    ]
    heads = [*_heads("Figure", "Field", "Unit", "Better"), *_wide("Meaning", "Formula")]
    return _table("Metrics", heads, rows)


def conventions() -> Markup:
    """What is counted as model FLOPs, by the name that stands with each figure."""
    rows: list[list[str]] = [
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


def formulas() -> Markup:
    """The FLOPs formula of each architecture family, in its own words."""
    rows: list[list[str]] = [
        [code(family), formula.covers, getdoc(formula.cost) or ""]
        for family, formula in flops.FORMULAS.items()
    ]
    heads = [*_heads("Family"), *_wide("Covers", "Formula of a token's forward pass")]
    return _table("FLOPs formulas", heads, rows)


def tables_of_schema() -> Markup:
    """Every table of the store with its columns."""
    return joined(_schema_table(one) for one in schema.metadata.sorted_tables)


def diagram_of_schema() -> Markup:
    """The tables of the store, and which refers to which."""
    return drawing(schema.metadata)


def _schema_table(table: SchemaTable) -> Markup:
    rows = [_column_row(column) for column in table.columns]
    heads = [*_heads("Column", "Type", "Null", "Key"), *_wide("Holds")]
    return render_text(
        '<section id="table-{{ name }}"><h2><code>{{ name }}</code></h2>\n{{ table }}</section>\n',
        name=table.name,
        table=_table(table.name, heads, rows),
    )


def _column_row(column: "SchemaColumn[object]") -> list[str]:
    target = next((key.target_fullname for key in column.foreign_keys), None)
    key = "primary" if column.primary_key else f"→ {target}" if target else ""
    null = "yes" if column.nullable else "no"
    return [code(column.name), str(column.type), null, key, column.comment or ""]


def _heads(*titles: str, n: tuple[str, ...] = ()) -> list[HtmlHead]:
    return [*(HtmlHead(title) for title in titles), *(HtmlHead(title, numeric=True) for title in n)]


def _wide(*titles: str) -> list[HtmlHead]:
    return [HtmlHead(title, wide=True) for title in titles]


def _table(label: str, heads: list[HtmlHead], rows: list[list[str]]) -> Markup:
    return plain(label, heads, rows)


TABLES: Final[Mapping[str, Callable[[], Markup]]] = {
    "conventions": conventions,
    "data": dictionary_table,
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
