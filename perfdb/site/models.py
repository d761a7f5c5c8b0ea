"""The page of a model: its shape, its best figures, every result of it in force, its findings."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from perfdb import catalog, flops, units
from perfdb.audit import Severity
from perfdb.catalog import Model
from perfdb.flops.training import parameters
from perfdb.record import Frozen
from perfdb.site import addresses, bests, findings, markup, profiles, tables
from perfdb.site.addresses import Address
from perfdb.site.bests import Entry
from perfdb.site.contents import Contents
from perfdb.site.data import Audited, Link, Result
from perfdb.site.grouping import TaskResults, by_task, newest_first
from perfdb.site.history import over_releases
from perfdb.site.markup import Cell, Content, Head, Html, facts, joined, link, tag
from perfdb.site.page import (
    NO_DATA,
    Kind,
    Page,
    document,
    numbered,
    part,
    section,
    shown,
    toctree,
)
from perfdb.site.series import groups
from perfdb.site.words import release_title, section_title


class FlopsCount(Frozen):
    """Model FLOPs of a token by a convention."""

    convention: str
    sequence_length: int
    flops_per_token: float


class ModelPage(Frozen):
    """Everything on the page of a model. `entry` is None for a name that the catalogue lacks."""

    model: str
    title: str
    entry: Model | None
    parameters: int | None
    flops: tuple[FlopsCount, ...]
    tasks: tuple[TaskResults, ...]
    audited: tuple[Audited, ...]
    scaling: tuple[Link, ...] = ()


class ModelsPage(Frozen):
    """The list of models."""

    entries: tuple[Entry, ...]


def _pages(contents: Contents) -> Iterator[Page]:
    by_model: dict[str, list[Result]] = defaultdict(list)
    for result in newest_first(contents.results):
        by_model[result.model].append(result)
    found: dict[str, list[Audited]] = defaultdict(list)
    for one in contents.audited:
        found[one.result.model].append(one)
    pages = [_model(name, by_model[name], found[name]) for name in sorted(by_model)]
    yield _index(pages)
    scaling = _scaling(contents.results)
    for page in pages:
        yield _document(page.model_copy(update={"scaling": tuple(scaling[page.model])}))


def _scaling(results: Sequence[Result]) -> dict[str, list[Link]]:
    """The pages that show each model over numbers of GPUs."""
    links: dict[str, list[Link]] = defaultdict(list)
    for one in groups(results):
        text = f"{release_title(one.framework, one.release)} on {one.system_title}"
        links[one.model].append(Link(text=text, document=one.document))
    return links


def _model(name: str, results: Sequence[Result], audited: Sequence[Audited]) -> ModelPage:
    entry = catalog.models().get(name)
    lengths = sorted({result.sequence_length for result in results})
    return ModelPage(
        model=name,
        title=entry.title if entry else results[0].model_title,
        entry=entry,
        parameters=_parameters(entry) if entry else None,
        flops=tuple(_counts(entry, lengths)) if entry else (),
        tasks=by_task(results),
        audited=tuple(audited),
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


def _index(pages: Sequence[ModelPage]) -> Page:
    if not pages:
        return Page(addresses.MODELS, document("Models", NO_DATA, orphan=True))
    text = document(
        "Models",
        "Every model that the store has results of.\n",
        shown("models"),
        toctree(addresses.of_model(page.model) for page in pages),
        orphan=True,
    )
    return Page(addresses.MODELS, text, ModelsPage(entries=tuple(map(_entry, pages))))


def _entry(page: ModelPage) -> Entry:
    results = [result for task in page.tasks for result in task.results]
    entry = bests.entry(page.model, page.title, results, (one.system for one in results))
    first = page.tasks[0]
    return entry.model_copy(
        update={"task": first.task, "bests": bests.rates_by_system(first.results)}
    )


def _document(page: ModelPage) -> Page:
    parts = [
        section(section_title(task.task, None), shown("model-results", number))
        for number, task in enumerate(page.tasks)
    ]
    parts += [section("Scaling", shown("model-scaling"))] if page.scaling else []
    parts += [section("Findings", shown("model-findings"))]
    parts += [section("Model", shown("model-shape"))]
    return Page(addresses.of_model(page.model), document(page.title, *parts), page)


def models_index(page: ModelsPage, address: Address) -> Html:
    """The list of models."""
    return bests.index("Model", "Systems", page.entries, addresses.of_model, address)


def results(page: ModelPage, number: int, address: Address) -> Html:
    """The results of a task: the best as bars, over releases as lines, all of them as a table."""
    given = page.tasks[number]
    title = f"{page.title}, {section_title(given.task, None)}"
    made = tables.results_table(title, given.results, profiles.OF_MODEL, address)
    over = over_releases(title, given.results)
    every = tag("h3", "Every result") if over.text else Html("")
    best = bests.chart(f"{title}: best figures", given.results, bests.OF_A_MODEL, _label)
    return joined((best, over, every, markup.table(made)))


def _label(result: Result) -> tuple[str, ...]:
    return (
        result.system_title,
        bests.release_of(result),
        bests.precision_of(result),
        bests.gpus(result.num_gpus),
    )


def scaling(page: ModelPage, address: Address) -> Html:
    """The pages that show the model on more and more GPUs."""
    items = [tag("li", link(one.text, address(one.document))) for one in page.scaling]
    return tag("ul", items)


def shape(page: ModelPage, _address: Address) -> Html:
    """The numbers of the architecture, and what a token costs by each convention."""
    entry = page.entry
    if entry is None:
        return tag("p", "The catalogue has no such model: its shape and its FLOPs are not known.")
    rows: list[tuple[str, Content]] = [
        (title, units.text(getattr(entry, name))) for title, name in _SHAPE
    ]
    rows += [("Parameters", _of_parameters(page.parameters)), ("Source", entry.source)]
    known = [(name, value) for name, value in rows if value != units.UNKNOWN]
    return joined((facts("Shape", [("Name", tag("code", entry.name)), *known]), _flops(page)))


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
    return f"{units.significant(count / 1e9)} billion; norms and biases are not counted"


def _flops(page: ModelPage) -> Html:
    """GFLOP per token, a row for each convention and a column for each sequence length."""
    lengths = sorted({one.sequence_length for one in page.flops})
    if not lengths:
        return Html("")
    counts = {(one.convention, one.sequence_length): one.flops_per_token for one in page.flops}
    heads = [Head("GFLOP per token of pre-training, by convention")]
    heads += [Head(f"at {length:,}", numeric=True) for length in lengths]
    rows = [
        [
            Cell(name),
            *(Cell(units.significant(_giga(counts.get((name, length))))) for length in lengths),
        ]
        for name in dict.fromkeys(one.convention for one in page.flops)
    ]
    made = markup.table(markup.Table("Model FLOPs per token", heads, rows))
    return tag("div", made, class_="perf-narrow")


def _giga(value: float | None) -> float | None:
    return None if value is None else value / 1e9


def audited(page: ModelPage, address: Address) -> Html:
    """What the audit objects to in the model's results, and how much else it notes."""
    objections = [one for one in page.audited if one.findings[0].severity.reaches(Severity.WARNING)]
    noted = len(page.audited) - len(objections)
    parts = [tag("ul", [_item(one, address) for one in objections], class_="perf-findings")]
    if not objections:
        parts = [tag("p", "The audit objects to none of its results.")]
    if noted:
        more = link(f"{noted:,} more", address(addresses.AUDIT))
        parts.append(tag("p", ("Worth knowing before the figures are used: ", more, ".")))
    return joined(parts)


def _item(one: Audited, address: Address) -> Html:
    result, gravest = one.result, findings.kind(one.findings[0])
    where = f"{bests.release_of(result)}, {result.system_title}, {bests.gpus(result.num_gpus)}"
    entry = link(where, addresses.of_entry(one.anchor, address))
    messages = "; ".join(finding.message for finding in one.findings)
    badge = tag("span", gravest, class_=f"perf-badge {gravest}")
    return tag("li", (badge, " ", entry, f": {messages}."))


KIND = Kind(
    _pages,
    {
        "models": part(ModelsPage, models_index),
        "model-results": numbered(ModelPage, results),
        "model-findings": part(ModelPage, audited),
        "model-scaling": part(ModelPage, scaling),
        "model-shape": part(ModelPage, shape),
    },
)
