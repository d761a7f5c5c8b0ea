"""The pages of models: best figures, results, findings, shape and FLOPs."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from markupsafe import Markup

from perfdb import catalog, flops, units
from perfdb.catalog import Model
from perfdb.flops.lora import parameters
from perfdb.groups import grouped
from perfdb.metrics import METRICS
from perfdb.site import addresses, columns
from perfdb.site.addresses import slug
from perfdb.site.cells import HtmlCell, gpus, marked
from perfdb.site.data import Audited, Link, SiteData, SiteResult
from perfdb.site.grouping import of_newest_releases, release_title
from perfdb.site.page import Block, Page, Section
from perfdb.site.pages import best_results, comparisons
from perfdb.site.pages.best_results import LabelPart, over_releases
from perfdb.site.pages.systems import (
    Subject,
    index_table,
    list_page,
    newest_results,
    results_by,
    scaling_section,
)
from perfdb.site.tables import HtmlHead, plain
from perfdb.site.templates import code, facts, joined, paragraph, render, render_text
from perfdb.stated import RATE
from perfdb.versions import natural

_PARTS: Final = (
    best_results.SYSTEM,
    best_results.FRAMEWORK,
    best_results.PRECISION,
    best_results.GPUS,
)
_BESTS: Final = (
    "Of the newest release of each framework, as the bars on the page of the model; of no row with "
    "open errors. Where the best of the systems differ in more than precision and GPUs, that is "
    "said: they do not compare the systems alone."
)


def pages(data: SiteData) -> Iterator[Page]:
    """The page of each model with results, and their list."""
    of_model = results_by(data.results, lambda one: one.model)
    audited = grouped(data.audited, lambda entry: entry.result.model)
    scaling: dict[str, list[Link]] = defaultdict(list)
    for page in data.scaling:
        text = f"{release_title(page.framework, page.release)} on {page.system_title}"
        for scaled in page.models:
            scaling[scaled.model].append(Link(text, page.document))
    models = [
        Subject(
            name,
            addresses.of_model(name),
            entry.title if (entry := catalog.models().get(name)) else results[0].model_title,
            tuple(results),
            tuple(scaling[name]),
        )
        for name, results in of_model.items()
    ]
    models.sort(key=lambda model: natural(model.title))
    yield list_page(addresses.MODELS, "model", models, partial(_index, tuple(models)))
    for one in models:
        body = partial(_model, one, tuple(audited.get(one.name, ())))
        yield Page(one.document, one.title, one.about, body)


def _index(models: Sequence[Subject]) -> list[Block]:
    rates = [_rates(it) for it in models]
    head = HtmlHead("Best tokens/s/GPU by system", _BESTS, wide=True)
    known = [(head, [HtmlCell(it or units.UNKNOWN) for it in rates])] if any(rates) else []
    return [
        paragraph("Every model that the store has results of."),
        index_table("Model", "Systems", models, known, lambda it: it.system),
    ]


def _rates(model: Subject) -> str:
    """The highest tokens/s/GPU of the first task in the newest releases, by system."""
    first = model.tasks[0]
    best = best_results.highest(of_newest_releases(first.results), RATE)
    apart = best_results.differing(
        (*best_results.details(METRICS[RATE]), best_results.ORIGIN), list(best.values())
    )
    listed = " · ".join(_best(result, apart) for result in best.values())
    return f"{first.title}: {listed}" if best else ""


def _best(result: SiteResult, apart: Sequence[LabelPart]) -> str:
    """'DGX-H100 13,812 in FP8 on 8 GPUs', and those parts in which systems differ."""
    precision = best_results.precision_of(result)
    in_precision = f" in {precision}" if precision else ""
    size = gpus(result.num_gpus, result.system)
    figure = f"{result.system_title} {marked(result, RATE)}{in_precision} on {size}"
    return ", ".join(filter(None, (figure, *(part.of(result) for part in apart))))


def _model(model: Subject, audited: Sequence[Audited]) -> list[Block]:
    made: list[Block] = []
    for task in model.tasks:
        title = f"{model.title}, {task.title}"
        best = best_results.chart(
            f"{title}: best figures", task.results, best_results.OF_A_MODEL, _PARTS
        )
        compared = joined(
            compare(title, task.results)
            for compare in (
                comparisons.compared_systems,
                comparisons.compared_precisions,
                over_releases,
            )
        )
        heading = Markup("<h3>Results</h3>\n" if compared else "")
        newest = newest_results(title, task.results, columns.OF_MODEL)
        made.append(Section(task.title, [joined((best, compared, heading)), *newest]))
    made += scaling_section(model, slug(model.name))
    lengths = sorted({result.sequence_length for result in model.results})
    return [
        *made,
        Section("Findings", [_findings(audited)]),
        Section("Model", [_shape(model.name, lengths)]),
    ]


def _findings(audited: Sequence[Audited]) -> Markup:
    """What the audit objects to in the model's results, and how much else it notes."""
    objections = [it for it in audited if it.objections]
    noted = len(audited) - len(objections)
    return render(
        "model_findings",
        items=[
            (
                it,
                _where(it.result),
                addresses.audit_entry(it.result.framework, it.result.release, it.anchor),
            )
            for it in objections
        ],
        noted=units.counted(noted, "more note" if objections else "note") if noted else "",
        audit=addresses.AUDIT,
    )


def _where(result: SiteResult) -> str:
    size = gpus(result.num_gpus, result.system)
    parts = (
        best_results.release_of(result),
        result.system_title,
        size,
        best_results.precision_of(result),
    )
    return ", ".join(filter(None, parts))


def _shape(name: str, lengths: Sequence[int]) -> Markup:
    """The numbers of the architecture, and what a token costs by each convention."""
    entry = catalog.models().get(name)
    if entry is None:
        return paragraph("The catalogue has no such model: its shape and its FLOPs are not known.")
    rows = [(title, units.text(getattr(entry, field))) for title, field in SHAPE.items()]
    rows += [("Parameters", _parameters(entry)), ("Source", entry.source)]
    stated = [(title, text) for title, text in rows if text != units.UNKNOWN]
    shown = facts("Shape", [("Name", code(entry.name)), *stated])
    return joined((shown, _flops(entry, lengths)))


SHAPE: Final[Mapping[str, str]] = {
    "Family": "family",
    "Layers": "num_layers",
    "Hidden size": "hidden_size",
    "FFN size": "ffn_hidden_size",
    "Attention heads": "num_attention_heads",
    "Key/value heads": "num_query_groups",
    "Head size": "head_dim",
    "Vocabulary": "vocab_size",
    "Experts": "num_experts",
    "Experts per token": "moe_top_k",
    "Expert FFN size": "moe_ffn_hidden_size",
}


def _parameters(entry: Model) -> str:
    formula = flops.FORMULAS.get(entry.family)
    cost = formula.cost(entry, 1, flops.DEFAULT) if formula else None
    count = parameters(cost) if cost else None
    if count is None:
        return units.UNKNOWN
    billions = f"{units.significant(count / 1e9)} billion"
    text = billions if count >= 1e8 else f"{units.significant(count / 1e6, 3)} million"
    return f"{text}; norms and biases are not counted"


def _flops(entry: Model, lengths: Sequence[int]) -> Markup:
    """GFLOP per token, by sequence length; conventions that count the same share a row."""
    rows: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for convention in flops.CONVENTIONS.values():
        counts = [flops.flops_per_token(entry, length, convention) for length in lengths]
        if all(count is not None for count in counts):
            figures = tuple(units.significant((count or 0.0) / 1e9) for count in counts)
            rows[figures].append(convention.name)
    if not rows:
        return Markup("")
    heads = [HtmlHead("GFLOP per token of pre-training, by convention")]
    heads += [HtmlHead(f"at {length:,}", numeric=True) for length in lengths]
    made = [[", ".join(names), *figures] for figures, names in rows.items()]
    return render_text(
        '<div class="perf-narrow">{{ table }}</div>\n',
        table=plain("Model FLOPs per token", heads, made),
    )
