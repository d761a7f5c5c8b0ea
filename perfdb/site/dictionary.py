"""The columns of downloads and exports: what each means, its unit and where it comes from."""

from dataclasses import dataclass
from typing import Final

from perfdb.export.results import COLUMNS, COMPUTED
from perfdb.metrics import EMITTED, METRICS
from perfdb.record import Figures
from perfdb.site import downloads, markup, profiles
from perfdb.site.glossary import TERMS
from perfdb.site.markup import Cell, Head, Html, tag
from perfdb.stated import MFU, RATE


@dataclass(frozen=True)
class Field:
    """A column: its unit, '' for words; its meaning; what it is taken from."""

    name: str
    unit: str
    meaning: str
    source: str


CASE: Final = "the recipe of a run, the row of a page"
STEPS: Final = "the steps of a run; empty for pages"
PAGE: Final = "the heading or row of a page; the recipe of a run"

WORDS: Final = (
    Field("framework", "", "What trained: nemo, dfm, automodel, …", CASE),
    Field("release", "", "Its version; empty where nobody states it.", PAGE),
    Field("container", "", "The image it ran in.", PAGE),
    Field("system", "", "The machine, by its name in the catalogue.", PAGE),
    Field("model", "", "The model, by its name in the catalogue.", CASE),
    Field("qualifiers", "", "What a page puts behind the model's name.", CASE),
    Field("task", "", "pretrain, sft or lora.", PAGE),
    Field("sequence_length", "tokens", "Tokens of a sample; of a packed one, its length.", CASE),
    Field("num_gpus", "GPUs", "GPUs that took part, all nodes together.", CASE),
    Field("fsdp_enabled", "true or false", "Whether the training state is sharded (FSDP).", CASE),
    Field("fsdp_size", "GPUs", "GPUs that share one copy of the training state.", CASE),
    Field("kernels", "", "Kernels that are switched on, joined by a comma.", CASE),
    Field("variant", "", "What else tells rows of a page apart: megatron-core, automodel, …", CASE),
    Field("options", "", "Settings of the framework, as JSON, that make another case.", CASE),
    Field("step_time_mean_s", "s", "Mean of the step times of the window.", STEPS),
    Field("step_time_stdev_s", "s", "Their standard deviation; unknown of one step.", STEPS),
    Field("step_time_p10_s", "s", "The step time that a tenth of them are below.", STEPS),
    Field("step_time_p90_s", "s", "The step time that nine tenths of them are below.", STEPS),
    Field("tokens_per_sec", "tokens/s", "Tokens of all GPUs together.", "the page, if stated"),
    Field("flops_convention", "", "How model FLOPs are counted; empty: not said.", "the formulas"),
    Field("window", "", "Which steps the figures are taken over.", "the ingest, or a page"),
    Field("num_steps", "steps", "How many steps the window holds.", "the run, or a page"),
    Field("origin", "", "measured: of a run; published: read off a page.", "how it was read"),
    Field("outcome", "", "How the run ended; published rows are finished.", "the run"),
    Field("withheld", "", "Why there are no figures; empty: there are.", "the run"),
    Field("notes", "", "Notes and footnotes to the row, joined by ' | '.", "the page, or the log"),
    Field("run_id", "", "The run it was measured in; its page is runs/RUN_ID.html.", "the run"),
    Field("source", "", "The file it was read from.", "the ingest"),
    Field("source_line", "", "The line of that file.", "the ingest"),
    Field("source_url", "", "Where the original of that file is.", "the page's front matter"),
    Field("published_on", "", "The day of the original: 2025-04-30.", "the page's front matter"),
    Field(
        "findings",
        "",
        "The rules of the audit that object to the row, each with how grave it is, explained or "
        "not: micro_batch (error), …; empty: none does.",
        "the audit",
    ),
    Field(
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


def fields() -> tuple[Field, ...]:
    """Every column, in the order of the files."""
    known = {one.name: one for one in (*_terms(), *WORDS, *_metrics())}
    aside = (column.name for column in downloads.ASIDE)
    return tuple(known[name] for name in (*COLUMNS, *aside))


def table() -> Html:
    """The columns as a table."""
    heads = [Head("Column"), Head("Unit"), Head("Meaning", wide=True), Head("From", wide=True)]
    rows = [
        [
            Cell(tag("code", one.name), sort=one.name),
            Cell(one.unit),
            Cell(one.meaning),
            Cell(one.source),
        ]
        for one in fields()
    ]
    return markup.table(markup.Table("Columns of the files", heads, rows))


def _terms() -> list[Field]:
    """The columns that tables print under an abbreviation."""
    return [
        Field(name, _unit(name), TERMS[column.term].hint, CASE)
        for column in profiles.MEASURED.columns
        for name in column.fields
        if column.term and not column.is_figure
    ]


def _unit(name: str) -> str:
    if name == "sequence_parallel":
        return "true or false"
    return "samples" if name.endswith("batch_size") else ""


def _metrics() -> list[Field]:
    """The figures: as they are computed of a run, or as a page or a program states them."""
    of_page = dict.fromkeys(Figures.model_fields, "; of a published row: the page")
    computed = [
        Field(one.name, one.unit, one.meaning, one.formula + of_page.get(one.name, ""))
        for one in METRICS.values()
    ]
    emitted = [
        Field(f"emitted_{name}", METRICS[name].unit, METRICS[name].meaning, "the program's own log")
        for name in EMITTED
    ]
    following = [
        Field(
            f"computed_{name}",
            METRICS[name].unit,
            f"{METRICS[name].title} of a published row that does not state it; else empty.",
            FORMULAS[name],
        )
        for name in COMPUTED
    ]
    return [*computed, *emitted, *following]
