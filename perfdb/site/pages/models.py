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
from perfdb.site.data import Audited, Link, SiteData
from perfdb.site.grouping import of_newest_releases, release_title
from perfdb.site.page import Block, Page, Section
from perfdb.site.pages import best_results, comparisons, systems
from perfdb.site.pages.parts import LABELS, differing, heads, label, precision_of
from perfdb.site.pages.systems import Subject
from perfdb.site.tables import HtmlHead, plain
from perfdb.site.templates import code, facts, joined, paragraph, render, render_text
from perfdb.stated import RATE
from perfdb.versions import natural

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


def pages(data: SiteData) -> Iterator[Page]:
    """The page of each model with results, and their list."""
    audited = grouped(data.audited, lambda entry: entry.result.model)
    scaling: dict[str, list[Link]] = defaultdict(list)
    for page in data.scaling:
        text = f"{release_title(page.framework, page.release)} on {page.system_title}"
        for scaled in page.models:
            scaling[scaled.model].append(Link(text, page.document))
    models = []
    for name, results in systems.results_by(data.results, lambda one: one.model).items():
        entry = catalog.models().get(name)
        title = entry.title if entry else results[0].model_title
        links = tuple(scaling[name])
        models.append(Subject(name, addresses.of_model(name), title, tuple(results), links))
    models.sort(key=lambda model: natural(model.title))
    yield systems.list_page(addresses.MODELS, "model", models, partial(_index, tuple(models)))
    for one in models:
        body = partial(_model, one, tuple(audited.get(one.name, ())))
        yield Page(one.document, one.title, one.about, body)


def _index(models: Sequence[Subject]) -> list[Block]:
    rates = [_rates(it) for it in models]
    hint = (
        "Of the newest release of each framework, as the bars on the page of the model; of no row "
        "with open errors. Where the best of the systems differ in more than precision and GPUs, "
        "that is said: they do not compare the systems alone."
    )
    head = HtmlHead("Best tokens/s/GPU by system", hint, wide=True)
    known = [(head, [HtmlCell(it or units.UNKNOWN) for it in rates])] if any(rates) else []
    return [
        paragraph("Every model that the store has results of."),
        systems.index_table("Model", "Systems", models, known, lambda it: it.system),
    ]


def _rates(model: Subject) -> str:
    """The highest tokens/s/GPU of the first task in the newest releases, by system.

    'Pre-training: DGX-H100 13,812 in FP8 on 8 GPUs', with the parts in which the systems differ.
    """
    first = model.tasks[0]
    best = list(best_results.highest(of_newest_releases(first.results), RATE).values())
    apart = differing((*best_results.details(METRICS[RATE]), "origin"), best)
    listed = []
    for it in best:
        precision = f" in {precision_of(it)}" if it.precision else ""
        size = gpus(it.num_gpus, it.system)
        figure = f"{it.system_title} {marked(it, RATE)}{precision} on {size}"
        listed.append(", ".join(filter(None, (figure, *(LABELS[part](it) for part in apart)))))
    return f"{first.title}: {' · '.join(listed)}" if best else ""


def _model(model: Subject, audited: Sequence[Audited]) -> list[Block]:
    made: list[Block] = []
    for task in model.tasks:
        title = f"{model.title}, {task.title}"
        best = best_results.chart(
            f"{title}: best figures",
            task.results,
            best_results.OF_A_MODEL,
            ("system", "framework", "precision", "number of GPUs"),
        )
        compared = joined(
            (
                comparisons.compared_systems(title, task.results),
                comparisons.compared_precisions(title, task.results),
                best_results.over_releases(title, task.results),
            )
        )
        heading = Markup("<h3>Results</h3>\n" if compared else "")
        newest = systems.newest_results(title, task.results, columns.OF_MODEL)
        made.append(Section(task.title, [joined((best, compared, heading)), *newest]))
    made += systems.scaling_section(model, slug(model.name))
    lengths = sorted({result.sequence_length for result in model.results})
    return [
        *made,
        Section("Findings", [_findings(audited)]),
        Section("Model", [_shape(model.name, lengths)]),
    ]


def _findings(audited: Sequence[Audited]) -> Markup:
    """The audit's errors and warnings in the model's results, and how many notes it has."""
    where = ("framework", "system", "number of GPUs", "precision")
    items = []
    for it in (it for it in audited if it.objections):
        entry = addresses.audit_entry(it.result.framework, it.result.release, it.anchor)
        items.append((it, label(where, it.result, ", "), entry))
    noted = len(audited) - len(items)
    text = units.counted(noted, "more note" if items else "note") if noted else ""
    return render("model_findings", items=items, noted=text, audit=addresses.AUDIT)


def _shape(name: str, lengths: Sequence[int]) -> Markup:
    """The numbers of the architecture, and the FLOPs of a token by each convention."""
    entry = catalog.models().get(name)
    if entry is None:
        return paragraph("The catalogue has no such model: its shape and its FLOPs are not known.")
    rows = [(title, units.text(getattr(entry, field))) for title, field in SHAPE.items()]
    rows += [("Parameters", _parameters(entry)), ("Source", entry.source)]
    stated = [(title, text) for title, text in rows if text != units.UNKNOWN]
    shown = facts("Shape", [("Name", code(entry.name)), *stated])
    return joined((shown, _flops(entry, lengths)))


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
    at = (f"#at {length:,}" for length in lengths)
    titles = heads("GFLOP per token of pre-training, by convention", *at)
    made = [[", ".join(names), *figures] for figures, names in rows.items()]
    return render_text(
        '<div class="perf-narrow">{{ table }}</div>\n',
        table=plain("Model FLOPs per token", titles, made),
    )
