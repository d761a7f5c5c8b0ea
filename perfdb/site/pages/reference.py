"""Tables made from the code itself, so that they cannot differ from what it does."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import getdoc
from typing import Final

from markupsafe import Markup
from sqlalchemy import Column as SchemaColumn
from sqlalchemy import MetaData, Table
from sqlalchemy import Table as SchemaTable

from perfdb import catalog, flops, metrics, units
from perfdb.catalog import Model, System
from perfdb.db import tables as schema
from perfdb.export.results import COLUMNS, COMPUTED
from perfdb.metrics import EMITTED, METRICS
from perfdb.record import Figures
from perfdb.site import columns, downloads
from perfdb.site.cells import HtmlCell
from perfdb.site.charts import GROUND, MUTED, RULE, SERIES, TEXT
from perfdb.site.columns import TERMS
from perfdb.site.tables import HtmlHead, plain
from perfdb.site.templates import code, joined, render, render_text
from perfdb.stated import MFU, RATE

ROW: Final = 20
BOX_WIDTH: Final = 120
GUTTER: Final = 64
BETWEEN: Final = 22
MARGIN: Final = 16
LANE: Final = 8
"""In units of the drawing: a row of a table, a box, the rooms between boxes, and between lines."""


@dataclass(frozen=True)
class TableBox:
    """Where a table stands, and the columns that are written in it."""

    table: Table
    level: int
    top: int

    @property
    def keys(self) -> list[str]:
        """The columns that refer to other tables."""
        return [column.name for column in self.table.columns if column.foreign_keys]

    @property
    def left(self) -> int:
        """The left side."""
        return MARGIN + self.level * (BOX_WIDTH + GUTTER)

    @property
    def height(self) -> int:
        """A row for the name, one for each reference, one for the other columns."""
        return (len(self.keys) + 2) * ROW

    @property
    def bottom(self) -> int:
        """The lower side."""
        return self.top + self.height

    @property
    def lines(self) -> list[str]:
        """The references, and how many columns there are more."""
        others = len(self.table.columns) - len(self.keys)
        more = f"and {others} more" if self.keys else units.counted(others, "column")
        return [*self.keys, more]

    def middle(self, row: int) -> int:
        """The middle of a row; 0 is the name."""
        return self.top + row * ROW + ROW // 2


@dataclass(frozen=True)
class Edge:
    """A line from a reference to the table that it leads to, and where it ends."""

    way: str
    end: int
    height: int
    color: str


def drawing(metadata: MetaData) -> Markup:
    """The diagram of the tables."""
    boxes = placed(metadata.sorted_tables)
    width = max(box.left for box in boxes.values()) + BOX_WIDTH + MARGIN
    height = max(box.bottom for box in boxes.values()) + MARGIN
    return render(
        "diagram",
        width=width,
        height=height,
        sentence="; ".join(_sentences(boxes.values())),
        edges=list(_edges(boxes)),
        boxes=list(boxes.values()),
        box_width=BOX_WIDTH,
        colors={"ground": GROUND, "rule": RULE, "text": TEXT, "muted": MUTED},
    )


def levels(tables: Iterable[Table]) -> dict[str, int]:
    """How many references lie between a table and one that refers to none, at most."""
    found: dict[str, int] = {}
    for table in tables:
        below = [found[name] for name in _targets(table)]
        found[table.name] = max(below) + 1 if below else 0
    return found


def placed(tables: Sequence[Table]) -> dict[str, TableBox]:
    """A box for each table, one below the other in the columns of their levels.

    Tables that many refer to stand lowest, so that long lines pass below the boxes between.
    """
    level_of = levels(tables)
    referred = [name for table in tables for name in _targets(table)]
    free = dict.fromkeys(level_of.values(), MARGIN)
    boxes: dict[str, TableBox] = {}
    for table in sorted(tables, key=lambda one: (referred.count(one.name), one.name)):
        level = level_of[table.name]
        box = boxes[table.name] = TableBox(table, level, free[level])
        free[level] = box.bottom + BETWEEN
    return {table.name: boxes[table.name] for table in tables}


def _targets(table: Table) -> list[str]:
    return [key.column.table.name for column in table.columns for key in column.foreign_keys]


def _references(boxes: Iterable[TableBox]) -> Iterator[tuple[TableBox, int, str]]:
    """Each reference: the box, the row of the column in it, the table that it leads to."""
    for box in boxes:
        for row, target in enumerate(_targets(box.table), start=1):
            yield box, row, target


def _sentences(boxes: Iterable[TableBox]) -> Iterator[str]:
    for box, row, target in _references(boxes):
        yield f"{box.table.name}.{box.keys[row - 1]} refers to {target}"


def _edges(boxes: Mapping[str, TableBox]) -> Iterator[Edge]:
    """A line for each reference; those to the same table share their way."""
    farthest: dict[str, int] = {}
    for box, _, name in _references(boxes.values()):
        farthest[name] = max(box.level, farthest.get(name, 0))
    targets = list(farthest)
    lanes = {
        name: _lane(
            boxes[name],
            [box for box in boxes.values() if boxes[name].level < box.level < farthest[name]],
        )
        for name in targets
    }
    for box, row, name in _references(boxes.values()):
        number = targets.index(name)
        way = _way(box, row, boxes[name], (lanes[name], LANE * (number + 1)))
        colour = SERIES[number % len(SERIES)]
        yield Edge(way, boxes[name].left + BOX_WIDTH, boxes[name].middle(0), colour)


def _lane(target: TableBox, between: Sequence[TableBox]) -> int:
    """The height nearest to a table's name at which a line meets none of the boxes between."""
    wanted = target.middle(0)
    edges = [side for box in between for side in (box.top - LANE, box.bottom + LANE)]
    free = (
        height
        for height in [wanted, *edges]
        if height > 0 and not any(box.top - LANE < height < box.bottom + LANE for box in between)
    )
    return min(free, key=lambda height: abs(height - wanted))


def _way(box: TableBox, row: int, target: TableBox, course: tuple[int, int]) -> str:
    """From a row to the name of a table: straight across one gutter, else along its lane.

    `course` is the height of the lane, and how far from a box the line turns.
    """
    lane, turn = course
    start, end = (box.left, box.middle(row)), (target.left + BOX_WIDTH, target.middle(0))
    near_end = end[0] + turn
    if box.level == target.level + 1:
        return f"M{start[0]} {start[1]}H{near_end}V{end[1]}H{end[0]}"
    near_start = box.left - GUTTER + turn
    return f"M{start[0]} {start[1]}H{near_start}V{lane}H{near_end}V{end[1]}H{end[0]}"


@dataclass(frozen=True)
class FileColumn:
    """A column: its unit, '' for words; its meaning; what it is taken from."""

    name: str
    unit: str
    meaning: str
    source: str


CASE: Final = "the recipe of a run, the row of a page"
STEPS: Final = "the steps of a run; empty for pages"
PAGE: Final = "the heading or row of a page; the recipe of a run"

WORDS: Final = (
    FileColumn("framework", "", "What trained: nemo, dfm, automodel, …", CASE),
    FileColumn("release", "", "Its version; empty where nobody states it.", PAGE),
    FileColumn("container", "", "The image it ran in.", PAGE),
    FileColumn("system", "", "The machine, by its name in the catalogue.", PAGE),
    FileColumn("model", "", "The model, by its name in the catalogue.", CASE),
    FileColumn("qualifiers", "", "What a page puts behind the model's name.", CASE),
    FileColumn("task", "", "pretrain, sft or lora.", PAGE),
    FileColumn(
        "sequence_length", "tokens", "Tokens of a sample; of a packed one, its length.", CASE
    ),
    FileColumn("num_gpus", "GPUs", "GPUs that took part, all nodes together.", CASE),
    FileColumn(
        "fsdp_enabled", "true or false", "Whether the training state is sharded (FSDP).", CASE
    ),
    FileColumn("fsdp_size", "GPUs", "GPUs that share one copy of the training state.", CASE),
    FileColumn("kernels", "", "Kernels that are switched on, joined by a comma.", CASE),
    FileColumn(
        "variant", "", "What else tells rows of a page apart: megatron-core, automodel, …", CASE
    ),
    FileColumn("options", "", "Settings of the framework, as JSON, that make another case.", CASE),
    FileColumn("step_time_mean_s", "s", "Mean of the step times of the window.", STEPS),
    FileColumn("step_time_stdev_s", "s", "Their standard deviation; unknown of one step.", STEPS),
    FileColumn("step_time_p10_s", "s", "The step time that a tenth of them are below.", STEPS),
    FileColumn("step_time_p90_s", "s", "The step time that nine tenths of them are below.", STEPS),
    FileColumn("tokens_per_sec", "tokens/s", "Tokens of all GPUs together.", "the page, if stated"),
    FileColumn(
        "flops_convention", "", "How model FLOPs are counted; empty: not said.", "the formulas"
    ),
    FileColumn("window", "", "Which steps the figures are taken over.", "the ingest, or a page"),
    FileColumn("num_steps", "steps", "How many steps the window holds.", "the run, or a page"),
    FileColumn("origin", "", "measured: of a run; published: read off a page.", "how it was read"),
    FileColumn("outcome", "", "How the run ended; published rows are finished.", "the run"),
    FileColumn("withheld", "", "Why there are no figures; empty: there are.", "the run"),
    FileColumn(
        "notes", "", "Notes and footnotes to the row, joined by ' | '.", "the page, or the log"
    ),
    FileColumn(
        "run_id", "", "The run it was measured in; its page is runs/RUN_ID.html.", "the run"
    ),
    FileColumn("source", "", "The file it was read from.", "the ingest"),
    FileColumn("source_line", "", "The line of that file.", "the ingest"),
    FileColumn("source_url", "", "Where the original of that file is.", "the page's front matter"),
    FileColumn(
        "published_on", "", "The day of the original: 2025-04-30.", "the page's front matter"
    ),
    FileColumn(
        "findings",
        "",
        "The rules of the audit that object to the row, each with how grave it is, explained or "
        "not: micro_batch (error), …; empty: none does.",
        "the audit",
    ),
    FileColumn(
        "printed",
        "",
        "What the page printed, by the titles of its own columns, as JSON: a VP printed as 1 is no "
        "virtual pipeline, and virtual_pipeline is empty. Empty for runs.",
        "the row of a page",
    ),
)
"""Columns that no abbreviation and no metric stands for."""

FORMULAS: Final = {
    RATE: f"tokens_per_sec ÷ num_gpus; where that is not stated, {METRICS[RATE].formula}",
    MFU: METRICS[MFU].formula,
}
"""How figures follow from those that are stated."""


def fields() -> tuple[FileColumn, ...]:
    """Every column, in the order of the files."""
    known = {one.name: one for one in (*_terms(), *WORDS, *_metrics())}
    aside = (column.name for column in downloads.EXTRA_COLUMNS)
    return tuple(known[name] for name in (*COLUMNS, *aside))


def dictionary_table() -> Markup:
    """The columns as a table."""
    heads = [*_heads("Column", "Unit"), *_wide("Meaning", "From")]
    rows: list[list[HtmlCell | str]] = [
        [HtmlCell(code(one.name), sort=one.name), one.unit, one.meaning, one.source]
        for one in fields()
    ]
    return plain("Columns of the files", heads, rows)


def _terms() -> list[FileColumn]:
    """The columns that tables print under an abbreviation."""
    return [
        FileColumn(name, _unit(name), TERMS[column.term].hint, CASE)
        for column in columns.MEASURED.columns
        for name in column.fields
        if column.term and not column.is_figure
    ]


def _unit(name: str) -> str:
    if name == "sequence_parallel":
        return "true or false"
    return "samples" if name.endswith("batch_size") else ""


def _metrics() -> list[FileColumn]:
    """The figures: as they are computed of a run, or as a page or a program states them."""
    of_page = dict.fromkeys(Figures.model_fields, "; of a published row: the page")
    computed = [
        FileColumn(one.name, one.unit, one.meaning, one.formula + of_page.get(one.name, ""))
        for one in METRICS.values()
    ]
    emitted = [
        FileColumn(
            f"emitted_{name}", METRICS[name].unit, METRICS[name].meaning, "the program's own log"
        )
        for name in EMITTED
    ]
    following = [
        FileColumn(
            f"computed_{name}",
            METRICS[name].unit,
            f"{METRICS[name].title} of a published row that does not state it; else empty.",
            FORMULAS[name],
        )
        for name in COMPUTED
    ]
    return [*computed, *emitted, *following]


_SOURCE: Final = HtmlHead("Source", wide=True)


def systems() -> Markup:
    """Every system of the catalogue."""
    heads = _heads("System", "Name", "GPU", n=("GPUs per node", "NVLink domain", "Memory (GB)"))
    rows = [_system_row(entry) for entry in catalog.systems().values()]
    return plain("Systems", [*heads, _SOURCE], rows)


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
    return plain("Dense peaks", heads, rows)


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
    return plain("Precisions", heads, rows)


def models() -> Markup:
    """Every model of the catalogue, with the numbers that its FLOPs follow from."""
    numbers = (
        "Layers", "Hidden", "FFN", "Heads", "KV heads", "Vocabulary", "Experts", "Top-k",
        f"GFLOP per token at {flops.LISTED_AT:,}",
    )  # fmt: skip
    heads = [*_heads("Model", "Name", "Family", n=numbers), _SOURCE]
    return plain("Models", heads, [_model_row(entry) for entry in catalog.models().values()])


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
    return plain("Metrics", heads, rows)


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
    return plain("FLOPs conventions", heads, rows)


def formulas() -> Markup:
    """The FLOPs formula of each architecture family, in its own words."""
    rows: list[list[str]] = [
        [code(family), formula.covers, getdoc(formula.cost) or ""]
        for family, formula in flops.FORMULAS.items()
    ]
    heads = [*_heads("Family"), *_wide("Covers", "Formula of a token's forward pass")]
    return plain("FLOPs formulas", heads, rows)


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
        table=plain(table.name, heads, rows),
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
