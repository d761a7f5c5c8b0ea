"""Tables made from the code itself, so that they cannot differ from what it does."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import getdoc
from typing import Final

from markupsafe import Markup
from sqlalchemy import Table

from perfdb import catalog, flops, units
from perfdb.db import tables as schema
from perfdb.export import results as export
from perfdb.fields import BY_NAME
from perfdb.metrics import EMITTED, METRICS
from perfdb.record import Figures
from perfdb.site import charts, columns, downloads
from perfdb.site.pages.parts import heads
from perfdb.site.tables import plain
from perfdb.site.templates import code, joined, render, render_text
from perfdb.stated import MFU, RATE

ROW, WIDTH, GUTTER, BETWEEN, MARGIN = 20, 120, 64, 22, 16
"""In units of the diagram: a row of a table, a box, the space between boxes, and the margin."""

CASE: Final = "the recipe of a run, the row of a page"
PAGE: Final = "the heading or row of a page; the recipe of a run"
STEPS: Final = "the steps of a run; empty for pages"
FRONT_MATTER: Final = "the page's front matter"

SOURCES: Final[Mapping[str, str]] = {
    "release": PAGE, "container": PAGE, "system": PAGE, "task": PAGE,
    "step_time_mean_s": STEPS, "step_time_p10_s": STEPS,
    "step_time_p90_s": STEPS, "tokens_per_sec": "the page, if stated",
    "window": "the ingest, or a page",
    "num_steps": "the run, or a page", "origin": "how it was read", "outcome": "the run",
}  # fmt: skip
"""What the fields of a result are taken from that are no part of its case."""

MEANINGS: Final[Mapping[str, tuple[str, str]]] = {
    "variant": ("What else distinguishes rows of a page: megatron-core, automodel, …", CASE),
    "options": ("Framework settings that define the case, as JSON.", CASE),
    "step_time_stdev_s": ("Their standard deviation; empty for a single step.", STEPS),
    "flops_convention": ("How model FLOPs are counted; empty if not stated.", "the formulas"),
    "withheld": ("Why there are no figures; else empty.", "the run"),
    "notes": ("Notes and footnotes of the row, joined by ' | '.", "the page, or the log"),
    "run_id": ("The run it was measured in; its page is runs/RUN_ID.html.", "the run"),
    "source": ("The file it was read from.", "the ingest"),
    "source_line": ("The line of that file.", "the ingest"),
    "source_url": ("Address of the original.", FRONT_MATTER),
    "published_on": ("Date of the original: 2025-04-30.", FRONT_MATTER),
    "findings": (
        "Audit findings of the row, each a rule with its severity: micro_batch (error), …; else "
        "empty.",
        "the audit",
    ),
    "printed": (
        "Cells as printed, by the column titles of the page, as JSON; empty for runs. If VP is 1, "
        "virtual_pipeline is empty.",
        "the row of a page",
    ),
}
"""The meaning and the source of columns that are no fields of a result, or need more words."""

FORMULAS: Final = {
    RATE: f"tokens_per_sec ÷ num_gpus; where that is not stated, {METRICS[RATE].formula}",
    MFU: METRICS[MFU].formula,
}
"""How figures follow from those that are stated."""


def dictionary() -> Markup:
    """The columns of the files that can be downloaded, in their order."""
    extra = (column.name for column in downloads.EXTRA_COLUMNS)
    rows = [[code(name), *_column(name)] for name in (*export.COLUMNS, *extra)]
    return plain("Columns of the files", heads("Column", "Unit", "~Meaning", "~From"), rows)


def _column(name: str) -> tuple[str, str, str]:
    """The unit, the meaning and the source of a column."""
    kind, _, metric = name.partition("_")
    if kind == "emitted" and metric in EMITTED:
        return METRICS[metric].unit, METRICS[metric].meaning, "the program's own log"
    if kind == "computed" and metric in FORMULAS:
        meaning = f"{METRICS[metric].title} of a published row that does not state it; else empty."
        return METRICS[metric].unit, meaning, FORMULAS[metric]
    if name in METRICS:
        of_page = "; of a published row: the page" if name in Figures.model_fields else ""
        return METRICS[name].unit, METRICS[name].meaning, METRICS[name].formula + of_page
    field = BY_NAME.get(name)
    unit = "" if field is None else "true or false" if field.kind is bool else field.unit
    if name in MEANINGS or field is None:
        return unit, *MEANINGS[name]
    return unit, _hints().get(name, field.meaning), SOURCES.get(name, CASE)


def _hints() -> dict[str, str]:
    """The entries of the glossary for the fields that tables print under an abbreviation."""
    return {
        column.fields[0]: columns.TERMS[column.term].hint
        for column in columns.MEASURED.columns
        if column.term and not column.is_figure and len(column.fields) == 1
    }


def systems() -> Markup:
    rows = [
        [
            one.title, code(one.name), units.text(one.gpu), units.text(one.gpus_per_node),
            units.text(one.nvlink_domain), units.number(one.memory_gb), one.source,
        ]
        for one in catalog.systems().values()
    ]  # fmt: skip
    numbers = ("#GPUs per node", "#NVLink domain", "#Memory (GB)")
    return plain("Systems", heads("System", "Name", "GPU", *numbers, "~Source"), rows)


def peaks() -> Markup:
    """The dense peaks that MFU is computed against, each with its source."""
    rows: list[list[str]] = [
        [one.title, name.upper(), units.number(peak.tflops), peak.source]
        for one in catalog.systems().values()
        for name, peak in one.peaks.items()
    ]
    titles = heads("System", "Precision", "#Dense peak (TFLOP/s/GPU)", "~Source")
    return plain("Dense peaks", titles, rows)


def precisions() -> Markup:
    """Every precision recipe, how it scales, and the peak that it is measured against."""
    rows: list[list[str]] = [
        [one.title, code(one.name), units.text(one.peak and one.peak.upper()),
         units.text(one.scaling)]
        for one in catalog.precisions().values()
    ]  # fmt: skip
    titles = heads("Precision", "Name", "Measured against the peak of", "~Scaling")
    return plain("Precisions", titles, rows)


def models() -> Markup:
    """Every model of the catalog, with the numbers that its FLOPs follow from."""
    shape = {
        "#Layers": "num_layers", "#Hidden": "hidden_size", "#FFN": "ffn_hidden_size",
        "#Heads": "num_attention_heads", "#KV heads": "num_query_groups",
        "#Vocabulary": "vocab_size", "#Experts": "num_experts", "#Top-k": "moe_top_k",
    }  # fmt: skip
    rows = []
    for one in catalog.models().values():
        per_token = flops.flops_per_token(one, flops.LISTED_AT)
        cost = units.significant(per_token / 1e9 if per_token else None)
        numbers = (units.text(getattr(one, name)) for name in shape.values())
        rows.append([one.title, code(one.name), one.family, *numbers, cost, one.source])
    gflop = f"#GFLOP per token at {flops.LISTED_AT:,}"
    return plain("Models", heads("Model", "Name", "Family", *shape, gflop, "~Source"), rows)


def metric_list() -> Markup:
    """Every figure: its name, its unit, which way is better, its formula."""
    rows: list[list[str]] = [
        [one.title, code(one.name), one.unit, one.better, one.meaning, one.formula]
        for one in METRICS.values()
    ]
    titles = heads("Figure", "Field", "Unit", "Better", "~Meaning", "~Formula")
    return plain("Metrics", titles, rows)


def conventions() -> Markup:
    """What is counted as model FLOPs, by the name that is printed with each figure."""
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
    used = "Used for measured figures"
    titles = heads("Convention", "Attention", "Logits", used, "~Meaning")
    return plain("FLOPs conventions", titles, rows)


def formulas() -> Markup:
    """The FLOPs formula of each architecture family, in its own words."""
    rows: list[list[str]] = [
        [code(family), formula.covers, getdoc(formula.cost) or ""]
        for family, formula in flops.FORMULAS.items()
    ]
    titles = heads("Family", "~Covers", "~Formula of a token's forward pass")
    return plain("FLOPs formulas", titles, rows)


def tables_of_schema() -> Markup:
    """Every table of the store with its columns."""
    return joined(_schema_table(one) for one in schema.metadata.sorted_tables)


def _schema_table(table: Table) -> Markup:
    rows = []
    for column in table.columns:
        target = next((key.target_fullname for key in column.foreign_keys), None)
        key = "primary" if column.primary_key else f"→ {target}" if target else ""
        null = "yes" if column.nullable else "no"
        rows.append([code(column.name), str(column.type), null, key, column.comment or ""])
    titles = heads("Column", "Type", "Null", "Key", "~Holds")
    return render_text(
        '<section id="table-{{ name }}"><h2><code>{{ name }}</code></h2>\n{{ table }}</section>\n',
        name=table.name,
        table=plain(table.name, titles, rows),
    )


@dataclass(frozen=True)
class TableBox:
    """A table of the diagram: its place, its references and how many columns it has besides."""

    name: str
    left: int
    top: int
    lines: Sequence[str]

    @property
    def height(self) -> int:
        return (len(self.lines) + 1) * ROW


def diagram() -> Markup:
    """The tables of the store as boxes, and a line for each reference to another table."""
    tables: Sequence[Table] = schema.metadata.sorted_tables
    references = [
        (table.name, row, key.column.table.name)
        for table in tables
        for row, key in enumerate((it for one in table.columns for it in one.foreign_keys), 1)
    ]
    boxes = _boxes(tables, references)
    names = list(dict.fromkeys(target for _, _, target in references))
    edges = []
    for name, row, target in references:
        color = charts.SERIES[names.index(target) % len(charts.SERIES)]
        edges.append({"start": boxes[name], "row": row, "end": boxes[target], "color": color})
    return render(
        "diagram",
        width=max(box.left for box in boxes.values()) + WIDTH + MARGIN,
        height=max(box.top + box.height for box in boxes.values()) + MARGIN,
        sentence="; ".join(
            f"{name}.{boxes[name].lines[row - 1]} refers to {target}"
            for name, row, target in references
        ),
        edges=edges,
        boxes=boxes.values(),
        box_width=WIDTH,
        gutter=GUTTER,
        row_height=ROW,
        charts=charts,
    )


def _boxes(
    tables: Sequence[Table], references: Sequence[tuple[str, int, str]]
) -> dict[str, TableBox]:
    """A table is to the right of those that it refers to; those that many refer to are lowest."""
    targets = [target for _, _, target in references]
    levels: dict[str, int] = {}
    for table in tables:
        below = [levels[target] for name, _, target in references if name == table.name]
        levels[table.name] = max(below, default=-1) + 1
    free = dict.fromkeys(levels.values(), MARGIN)
    boxes: dict[str, TableBox] = {}
    for table in sorted(tables, key=lambda one: (targets.count(one.name), one.name)):
        keys = [column.name for column in table.columns if column.foreign_keys]
        others = len(table.columns) - len(keys)
        more = f"and {others} more" if keys else units.counted(others, "column")
        level = levels[table.name]
        left = MARGIN + level * (WIDTH + GUTTER)
        box = boxes[table.name] = TableBox(table.name, left, free[level], [*keys, more])
        free[level] += box.height + BETWEEN
    return {table.name: boxes[table.name] for table in tables}


TABLES: Final[Mapping[str, Callable[[], Markup]]] = {
    "conventions": conventions,
    "data": dictionary,
    "diagram": diagram,
    "formulas": formulas,
    "metrics": metric_list,
    "models": models,
    "peaks": peaks,
    "precisions": precisions,
    "schema": tables_of_schema,
    "systems": systems,
}
"""Every table by the name that pages call it."""
