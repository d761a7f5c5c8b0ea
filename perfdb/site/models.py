"""The page of a model: its shape, its best figures, its results in force, its findings."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from perfdb import catalog, flops, units
from perfdb.catalog import Model
from perfdb.flops.lora import parameters
from perfdb.groups import grouped
from perfdb.metrics import METRICS
from perfdb.record import Frozen
from perfdb.site import (
    across_systems,
    addresses,
    bests,
    findings,
    markup,
    precisions,
    profiles,
    subjects,
)
from perfdb.site.addresses import Address, slug
from perfdb.site.bests import RATE, Part
from perfdb.site.contents import Contents
from perfdb.site.data import Audited, Link, Result
from perfdb.site.grouping import by_task, of_newest_releases
from perfdb.site.history import over_releases
from perfdb.site.markup import Cell, Content, Head, Html, facts, joined, link, tag
from perfdb.site.page import Kind, Page, numbered, part
from perfdb.site.subjects import Entries, Entry, Subject
from perfdb.site.words import gpus, release_title, section_title
from perfdb.versions import natural


class FlopsCount(Frozen):
    """Model FLOPs of a token by a convention."""

    convention: str
    sequence_length: int
    flops_per_token: float


class ModelPage(Subject):
    """Everything on the page of a model. `entry` is None for a name that the catalogue lacks.

    `objections`: the results that the audit warns of; `num_noted`: how many it only notes.
    """

    entry: Model | None
    parameters: int | None
    flops: tuple[FlopsCount, ...]
    objections: tuple[Audited, ...]
    num_noted: int


def _pages(contents: Contents) -> Iterator[Page]:
    of_model = subjects.by_name(contents.results, lambda one: one.model)
    audited = grouped(contents.audited, lambda entry: entry.result.model)
    scaling: dict[str, list[Link]] = defaultdict(list)
    for page in contents.scaling:
        text = f"{release_title(page.framework, page.release)} on {page.system_title}"
        for scaled in page.models:
            scaling[scaled.model].append(Link(text=text, document=page.document))
    models = [
        _model(name, results, audited.get(name, ()), tuple(scaling[name]))
        for name, results in of_model.items()
    ]
    models.sort(key=lambda model: natural(model.title))
    introduction = "Every model that the store has results of.\n"
    yield subjects.list_of(addresses.MODELS, introduction, models, map(_entry, models))
    last = (("Findings", "model-findings"), ("Model", "model-shape"))
    yield from (subjects.page_of(model, "model", *last) for model in models)


def _model(
    name: str, results: Sequence[Result], audited: Sequence[Audited], scaling: tuple[Link, ...]
) -> ModelPage:
    entry = catalog.models().get(name)
    objections = [entry for entry in audited if findings.objections(entry)]
    lengths = sorted({result.sequence_length for result in results})
    return ModelPage(
        name=name,
        document=addresses.of_model(name),
        title=entry.title if entry else results[0].model_title,
        entry=entry,
        parameters=_parameters(entry) if entry else None,
        flops=tuple(_counts(entry, lengths)) if entry else (),
        tasks=by_task(results),
        objections=tuple(objections),
        num_noted=len(audited) - len(objections),
        scaling=scaling,
    )


def _parameters(entry: Model) -> int | None:
    formula = flops.FORMULAS.get(entry.family)
    cost = formula.cost(entry, 1, flops.DEFAULT) if formula else None
    return parameters(cost) if cost else None


def _counts(entry: Model, lengths: Sequence[int]) -> Iterator[FlopsCount]:
    for convention in flops.CONVENTIONS.values():
        for length in lengths:
            count = flops.flops_per_token(entry, length, convention)
            if count is not None:
                yield FlopsCount(
                    convention=convention.name, sequence_length=length, flops_per_token=count
                )


def _entry(page: ModelPage) -> Entry:
    first = page.tasks[0]
    best = bests.highest(of_newest_releases(first.results), RATE)
    apart = bests.differing((*bests.details(METRICS[RATE]), bests.ORIGIN), list(best.values()))
    listed = " · ".join(_best(result, apart) for result in best.values())
    rates = f"{section_title(first.task, None)}: {listed}" if best else ""
    return Entry(
        document=page.document,
        title=page.title,
        counts=subjects.counts(page, lambda result: result.system),
        rates=rates,
    )


def _best(result: Result, apart: Sequence[Part]) -> str:
    """'DGX-H100 13,812 in FP8 on 8 GPUs', and those parts in which systems differ."""
    precision = bests.precision_of(result)
    in_precision = f" in {precision}" if precision else ""
    size = gpus(result.num_gpus, result.system)
    figure = f"{result.system_title} {bests.marked(result, RATE)}{in_precision} on {size}"
    return ", ".join(filter(None, (figure, *(part.of(result) for part in apart))))


def index(page: Entries, address: Address) -> Html:
    """The list of models; the best rates where there are any."""
    rates = Head("Best tokens/s/GPU by system", _BESTS, wide=True)
    best = [(rates, [Cell(one.rates or units.UNKNOWN) for one in page.entries])]
    known = best if any(one.rates for one in page.entries) else []
    return subjects.index("Model", "Systems", page.entries, known, address)


_BESTS: Final = (
    "Of the newest release of each framework, as the bars on the page of the model; of no row with "
    "open errors. Where the best of the systems differ in more than precision and GPUs, that is "
    "said: they do not compare the systems alone."
)


def results(page: ModelPage, number: int, address: Address) -> Html:
    """The results of a task: the best as bars, by system, by precision, over releases, all."""
    task = page.tasks[number]
    title = f"{page.title}, {section_title(task.task, None)}"
    best = bests.chart(f"{title}: best figures", task.results, bests.OF_A_MODEL, _PARTS)
    compared = joined(
        compare(title, task.results, address)
        for compare in (across_systems.compared, precisions.compared, over_releases)
    )
    heading = tag("h3", "Results") if compared.text else Html("")
    every = subjects.newest_results(title, task.results, profiles.OF_MODEL, address)
    return joined((best, compared, heading, every))


_PARTS: Final = (bests.SYSTEM, bests.FRAMEWORK, bests.PRECISION, bests.GPUS)


def scaling(page: ModelPage, address: Address) -> Html:
    """The pages that show the model on more and more GPUs."""
    return subjects.scaling(page, address, f"#{slug(page.name)}")


def shape(page: ModelPage, _address: Address) -> Html:
    """The numbers of the architecture, and what a token costs by each convention."""
    entry = page.entry
    if entry is None:
        return tag("p", "The catalogue has no such model: its shape and its FLOPs are not known.")
    rows: list[tuple[str, Content]] = [
        (title, units.text(getattr(entry, name))) for title, name in _SHAPE
    ]
    rows += [("Parameters", _of_parameters(page.parameters)), ("Source", entry.source)]
    stated = [(name, value) for name, value in rows if value != units.UNKNOWN]
    return joined((facts("Shape", [("Name", tag("code", entry.name)), *stated]), _flops(page)))


_SHAPE: Final = (
    ("Family", "family"),
    ("Layers", "num_layers"),
    ("Hidden size", "hidden_size"),
    ("FFN size", "ffn_hidden_size"),
    ("Attention heads", "num_attention_heads"),
    ("Key/value heads", "num_query_groups"),
    ("Head size", "head_dim"),
    ("Vocabulary", "vocab_size"),
    ("Experts", "num_experts"),
    ("Experts per token", "moe_top_k"),
    ("Expert FFN size", "moe_ffn_hidden_size"),
)


def _of_parameters(count: int | None) -> str:
    if count is None:
        return units.UNKNOWN
    billions = f"{units.significant(count / 1e9)} billion"
    said = billions if count >= 1e8 else f"{units.significant(count / 1e6, 3)} million"
    return f"{said}; norms and biases are not counted"


def _flops(page: ModelPage) -> Html:
    """GFLOP per token, by sequence length; conventions that count the same share a row."""
    lengths = sorted({count.sequence_length for count in page.flops})
    if not lengths:
        return Html("")
    heads = [Head("GFLOP per token of pre-training, by convention")]
    heads += [Head(f"at {length:,}", numeric=True) for length in lengths]
    alike: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for convention, counts in grouped(page.flops, lambda count: count.convention).items():
        figures = tuple(units.significant(count.flops_per_token / 1e9) for count in counts)
        alike[figures].append(convention)
    rows = [[Cell(", ".join(names)), *map(Cell, figures)] for figures, names in alike.items()]
    table = markup.table(markup.Table("Model FLOPs per token", heads, rows))
    return tag("div", table, class_="perf-narrow")


def audited(page: ModelPage, address: Address) -> Html:
    """What the audit objects to in the model's results, and how much else it notes."""
    items = [_item(entry, address) for entry in page.objections]
    parts = [tag("ul", items, class_="perf-findings")]
    if not page.objections:
        parts = [tag("p", "The audit objects to none of its results.")]
    if page.num_noted:
        noted = units.counted(page.num_noted, "more note" if page.objections else "note")
        more = link(f"{noted} of the audit", address(addresses.AUDIT))
        parts.append(tag("p", (more, ", worth knowing before the figures are used.")))
    return joined(parts)


def _item(audited: Audited, address: Address) -> Html:
    result = audited.result
    size = gpus(result.num_gpus, result.system)
    where = (bests.release_of(result), result.system_title, size, bests.precision_of(result))
    entry = addresses.of_entry(result.framework, result.release, audited.anchor, address)
    messages = "; ".join(finding.message for finding in audited.findings)
    badge = findings.badge(findings.objections(audited)[0].kind)
    return tag("li", (badge, " ", link(", ".join(filter(None, where)), entry), f": {messages}."))


KIND = Kind(
    _pages,
    {
        "models": part(Entries, index),
        "model-results": numbered(ModelPage, results),
        "model-findings": part(ModelPage, audited),
        "model-scaling": part(ModelPage, scaling),
        "model-shape": part(ModelPage, shape),
    },
)
