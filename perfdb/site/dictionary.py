"""The columns of downloads and exports: what each means, its unit and where it comes from."""

from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from perfdb.export.results import COLUMNS, COMPUTED
from perfdb.metrics import EMITTED, METRICS
from perfdb.record import Figures
from perfdb.site import columns, downloads
from perfdb.site.cells import HtmlCell
from perfdb.site.columns import TERMS
from perfdb.site.tables import HtmlHead, plain
from perfdb.site.templates import code
from perfdb.stated import MFU, RATE


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
    heads = [
        HtmlHead("Column"),
        HtmlHead("Unit"),
        HtmlHead("Meaning", wide=True),
        HtmlHead("From", wide=True),
    ]
    rows: list[list[HtmlCell | str]] = [
        [
            HtmlCell(code(one.name), sort=one.name),
            HtmlCell(one.unit),
            HtmlCell(one.meaning),
            HtmlCell(one.source),
        ]
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
