"""The pages of models and of systems: best figures, results, and what the catalog has of each."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter, itemgetter
from typing import Final

from markupsafe import Markup

from perfdb import catalog, flops, units
from perfdb.catalog import Model
from perfdb.flops.lora import parameters
from perfdb.groups import grouped
from perfdb.metrics import METRICS
from perfdb.site import addresses, columns, grouping, page
from perfdb.site.cells import HtmlCell, gpus, marked
from perfdb.site.columns import Profile
from perfdb.site.data import Audited, Link, SiteData, SiteResult
from perfdb.site.grouping import ReleaseName, is_on_gpus, release_title, system_order
from perfdb.site.page import Block, Section, SitePage
from perfdb.site.pages import best_results, comparisons, parts
from perfdb.site.pages.parts import heads, link_cell, precision_of, release_of
from perfdb.site.tables import HtmlHead, Made, plain, table
from perfdb.site.templates import (
    code,
    facts,
    joined,
    paragraph,
    render,
    render_text,
    with_short_hashes,
)
from perfdb.stated import RATE
from perfdb.versions import natural

MOST_ROWS: Final = 300
"""Rows of a task's table, above which its older releases are only on pages of their own."""
MOST_FINDINGS: Final = 100
"""Results of a model whose errors and warnings are listed; the audit's pages have them all."""
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


@dataclass(frozen=True)
class Subject:
    """A model or a system, its results, the newest release first, and its pages of scaling."""

    name: str
    document: str
    title: str
    results: tuple[SiteResult, ...]
    scaling: tuple[Link, ...]


Subjects = tuple[Subject, ...]
ResultsByName = Mapping[str, Sequence[SiteResult]]
"""The results of each model or of each system, the newest release first."""


def pages(data: SiteData) -> Iterator[SitePage]:
    """The page of each model and of each system with results, and their lists."""
    by_work = sorted(data.results, key=grouping.work_order)
    results = grouping.newest_first(by_work, data.results)
    yield from _model_pages(data, grouped(results, attrgetter("model")))
    yield from _system_pages(data, grouped(results, attrgetter("system")))


def _model_pages(data: SiteData, by_model: ResultsByName) -> Iterator[SitePage]:
    scaling: dict[str, list[Link]] = defaultdict(list)
    for one in data.scaling:
        text = f"{release_title(one.framework, one.release)} on {one.system_title}"
        for scaled in one.models:
            scaling[scaled.model].append(Link(text, one.document))
    models = []
    for name, results in by_model.items():
        entry = catalog.models().get(name)
        title = entry.title if entry else results[0].model_title
        links, shown = tuple(scaling[name]), tuple(grouping.on_gpus(results))
        models.append(Subject(name, addresses.of_model(name), title, shown, links))
    models.sort(key=lambda model: natural(model.title))
    audited = grouped(data.audited, lambda entry: entry.result.model)
    bodies = [partial(_model, it, tuple(audited.get(it.name, ()))) for it in models]
    yield from _pages(addresses.MODELS, "model", models, _models, bodies)


def _system_pages(data: SiteData, by_system: ResultsByName) -> Iterator[SitePage]:
    scaling = grouped(data.scaling, lambda one: one.system)
    systems = []
    for name, results in by_system.items():
        entry = catalog.systems().get(name)
        title = entry.title if entry else results[0].system_title
        links = tuple(
            Link(release_title(one.framework, one.release), one.document)
            for one in scaling.get(name, ())
        )
        systems.append(Subject(name, addresses.of_system(name), title, tuple(results), links))
    systems.sort(key=lambda system: system_order(system.name))
    bodies = [partial(_system, it) for it in systems]
    yield from _pages(addresses.SYSTEMS, "system", systems, _systems, bodies)


def _pages(
    document: str,
    kind: str,
    subjects: Sequence[Subject],
    index: Callable[[Subjects], list[Block]],
    bodies: Sequence[partial[list[Block]]],
) -> Iterator[SitePage]:
    """The list of models or of systems, without those that only CPU tests have, and all pages."""
    listed = [it for it in subjects if any(map(is_on_gpus, it.results))] or subjects
    names = page.summary_of_names(subject.title for subject in listed) or "none yet"
    about = f"{units.counted(len(listed), kind)} with results: {names}."
    below = [subject.document for subject in listed]
    body = partial(index, tuple(listed))
    yield SitePage(document, f"{kind.capitalize()}s", about, body, below=below)
    for one, body in zip(subjects, bodies, strict=True):
        releases = page.summary_of_names(map(release_of, one.results))
        about = f"{one.title}: {page.summary_of_results(one.results)} of {releases}."
        yield SitePage(one.document, one.title, about, body)


def _models(models: Subjects) -> list[Block]:
    """The list of models with their best rates."""
    if not models:
        return [page.no_data()]
    rates = [_rates(it) for it in models]
    hint = (
        "Best of the newest release of each framework, without rows with open errors. Figures that "
        "differ in more than precision and GPU count say so."
    )
    head = HtmlHead("Best tokens/s/GPU by system", hint, wide=True)
    known = [(head, [HtmlCell(it or units.UNKNOWN) for it in rates])] if any(rates) else []
    made = _index_table("Model", "Systems", models, known, lambda it: it.system)
    return [paragraph("All models with results."), made]


def _rates(model: Subject) -> str:
    """The highest tokens/s/GPU of the first task in the newest releases, by system.

    'Pre-training: DGX-H100 13,812 in FP8 on 8 GPUs', with the parts in which the systems differ.
    """
    first = grouping.by_task(model.results)[0]
    newest = grouping.of_newest_releases(first.results)
    best = list(best_results.highest(newest, RATE).values())
    apart = parts.differing((*best_results.details(METRICS[RATE]), "origin"), best)
    listed = []
    for it in best:
        precision = f" in {precision_of(it)}" if it.precision else ""
        size = gpus(it.num_gpus, it.system)
        figure = f"{it.system_title} {marked(it, RATE)}{precision} on {size}"
        listed.append(", ".join(filter(None, (figure, *parts.words(apart, it)))))
    return f"{first.title}: {' · '.join(listed)}" if best else ""


def _systems(systems: Subjects) -> list[Block]:
    """The list of systems with their headlines, dense peaks and memory."""
    if not systems:
        return [page.no_data()]
    hint = f"Best of all releases, without rows with open errors; {best_results.RULE}"
    top = HtmlHead(best_results.HEADLINE, hint, wide=True, near=True)
    highest = [
        best_results.headline_cell(
            it.results, lambda result: f", in {with_short_hashes(release_of(result))}"
        )
        for it in systems
    ]
    entries = [catalog.systems().get(it.name) for it in systems]
    known: list[Made] = [(top, highest)]
    for name in dict.fromkeys(name for it in entries if it for name in it.peaks):
        peaks = [it.peaks[name].tflops if it and name in it.peaks else None for it in entries]
        head = HtmlHead(f"{name.upper()} peak", "dense, TFLOP/s/GPU", numeric=True)
        known.append((head, [HtmlCell(units.number(it)) for it in peaks]))
    memory = [it.memory_gb if it else None for it in entries]
    head = HtmlHead("Memory (GB)", "of each GPU", numeric=True)
    known.append((head, [HtmlCell(units.number(it)) for it in memory]))
    names = {it.name for it in systems}
    others = (it for name, it in catalog.systems().items() if name not in names)
    left = [system.title for system in others if catalog.has_gpus(system.name)]
    missing = f" No results yet: {', '.join(left)}." if left else ""
    made = _index_table("System", "Models", systems, known, lambda it: it.model)
    return [paragraph(f"All systems with results.{missing}"), made]


def _index_table(
    kind: str,
    counted: str,
    subjects: Subjects,
    known: Iterable[Made],
    of: Callable[[SiteResult], str],
) -> Markup:
    """What is known of each model or system, and how many results it has.

    `counted` is the title of the last column, with the number of different values of `of`.
    """
    counts = []
    for it in subjects:
        measured = sum(one.is_measured for one in it.results)
        releases = {(one.framework, one.release) for one in it.results}
        published = len(it.results) - measured
        others = (len(releases), len(set(map(of, it.results))))
        counts.append((len(it.results), measured, published, *others))
    titles = heads("#Results", "#Measured", "#Published", "#Releases", f"#{counted}")
    numbers = ([HtmlCell(f"{number:,}") for number in it] for it in zip(*counts, strict=True))
    names = [link_cell(it.title, it.document) for it in subjects]
    made = [(HtmlHead(kind), names), *known, *zip(titles, numbers, strict=True)]
    return table(f"{kind}s", made)


def _model(model: Subject, audited: Sequence[Audited]) -> list[Block]:
    label_parts = ("system", "framework", "precision", "number of GPUs")
    compared = (
        comparisons.compared_systems,
        comparisons.compared_precisions,
        best_results.over_releases,
    )
    lengths = sorted({result.sequence_length for result in model.results})
    return [
        *_tasks(model, columns.OF_MODEL, best_results.OF_A_MODEL, label_parts, compared),
        *_scaling(model, addresses.slug(model.name)),
        Section("Findings", [_findings(audited)]),
        Section("Model", [_shape(model.name, lengths)]),
    ]


def _system(system: Subject) -> list[Block]:
    label_parts = ("model", "framework", "precision")
    return [
        *_tasks(system, columns.ON_SYSTEM, best_results.ACROSS_MODELS, label_parts),
        *_scaling(system),
        Section("Specification", [_specification(system.name)]),
    ]


def _tasks(
    subject: Subject,
    profile: Profile,
    names: Sequence[str],
    label_parts: Sequence[str],
    compared: Sequence[Callable[[str, Sequence[SiteResult]], Markup]] = (),
) -> Iterator[Section]:
    """A section for each task: its best figures, what is compared, and its results."""
    for task in grouping.by_task(subject.results):
        title = f"{subject.title}, {task.title}"
        best = best_results.chart(f"{title}: best figures", task.results, names, label_parts)
        more = joined(compare(title, task.results) for compare in compared)
        heading = Markup("<h3>Results</h3>\n" if more else "")
        newest = _newest_results(title, task.results, profile)
        yield Section(task.title, [joined((best, more, heading)), *newest])


def _newest_results(title: str, results: Sequence[SiteResult], profile: Profile) -> list[Block]:
    """The table of a task, and links to the releases that it has no room for."""
    by_release = grouped(results, lambda result: (result.framework, result.release))
    shown = recent({release: len(of_release) for release, of_release in by_release.items()})
    rows = [result for result in results if (result.framework, result.release) in shown]
    made, *download = page.offered(title, rows, profile)
    older = [
        (release_title(*release), addresses.tab(*release, some[0].system), len(some))
        for release, some in by_release.items()
        if release not in shown
    ]
    return [made, *([render("older_releases", older=older)] if older else []), *download]


def recent(sizes: Mapping[ReleaseName, int]) -> set[ReleaseName]:
    """The releases that a table has room for, of frameworks' releases from the newest on.

    The newest of each framework always; of a framework none that is older than one left out.
    """
    by_framework = grouped(sizes, itemgetter(0)).values()
    ranked = [pair for some in by_framework for pair in enumerate(some)]
    shown, full, room = set[ReleaseName](), set[str](), MOST_ROWS
    for rank, release in sorted(ranked, key=itemgetter(0)):
        if rank and (release[0] in full or sizes[release] > room):
            full.add(release[0])
            continue
        shown.add(release)
        room -= sizes[release]
    return shown


def _scaling(subject: Subject, anchor: str = "") -> list[Block]:
    """Links to the pages of its scaling, and to an anchor in them."""
    listed = render_text(
        "<ul>{% for it in links %}<li>{{ link(it.text, it.document, anchor) }}</li>\n{% endfor %}"
        "</ul>",
        links=subject.scaling,
        anchor=anchor,
    )
    return [Section("Scaling", [listed])] if subject.scaling else []


def _findings(audited: Sequence[Audited]) -> Markup:
    """The audit's errors and warnings in the model's first results, and how many notes it has."""
    where = ("framework", "system", "number of GPUs", "precision")
    raised = [it for it in audited if it.objections]
    items = []
    for it in raised[:MOST_FINDINGS]:
        entry = addresses.audit_entry(it.result.framework, it.result.release, it.anchor)
        items.append((it, parts.label(where, it.result, ", "), entry))
    left = (
        units.counted(len(raised) - len(items), "more result") if len(raised) > len(items) else ""
    )
    noted = len(audited) - len(raised)
    text = units.counted(noted, "more note" if items else "note") if noted else ""
    return render("model_findings", items=items, left=left, noted=text, audit=addresses.AUDIT)


def _shape(name: str, lengths: Sequence[int]) -> Markup:
    """The numbers of the architecture, and the FLOPs of a token by each convention."""
    entry = catalog.models().get(name)
    if entry is None:
        return paragraph("This model is not in the catalog: its shape and FLOPs are unknown.")
    formula = flops.FORMULAS.get(entry.family)
    cost = formula.cost(entry, 1, flops.DEFAULT) if formula else None
    count = parameters(cost) if cost else None
    size = units.UNKNOWN
    if count is not None:
        billions = f"{units.significant(count / 1e9)} billion"
        size = billions if count >= 1e8 else f"{units.significant(count / 1e6, 3)} million"
        size = f"{size}; without norms and biases"
    rows = [(title, units.text(getattr(entry, field))) for title, field in SHAPE.items()]
    rows += [("Parameters", size), ("Source", entry.source)]
    stated = [(title, text) for title, text in rows if text != units.UNKNOWN]
    shown = facts("Shape", [("Name", code(entry.name)), *stated])
    return joined((shown, _flops(entry, lengths)))


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
    return Markup('<div class="perf-narrow">{}</div>\n').format(
        plain("Model FLOPs per token", titles, made)
    )


def _specification(name: str) -> Markup:
    """The system in the catalog, with its dense peaks and the source of each."""
    entry = catalog.systems().get(name)
    if entry is None:
        return paragraph("This system is not in the catalog: its peaks are unknown.")
    known: list[tuple[str, str]] = [
        ("Name", code(entry.name)),
        ("GPU", units.text(entry.gpu)),
        ("GPUs per node", units.text(entry.gpus_per_node)),
        ("NVLink domain (GPUs)", units.text(entry.nvlink_domain)),
        ("Memory per GPU (GB)", units.number(entry.memory_gb)),
        ("Memory per GPU, from nvidia-smi (MiB)", units.number(entry.gpu_memory_mib)),
        ("Source", entry.source),
    ]
    rows = [
        [name.upper(), units.number(peak.tflops), peak.source] for name, peak in entry.peaks.items()
    ]
    none = "The catalog has no peak for this system, so it has no MFU."
    titles = heads("Precision", "#Dense peak (TFLOP/s/GPU)", "~Source")
    peaks = plain("Dense peaks", titles, rows) if rows else paragraph(none)
    return joined((facts("Specification", known), peaks))
