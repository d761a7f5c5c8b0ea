"""The pages of systems: specification, best figures, results; and what pages of models share."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Final

from markupsafe import Markup

from perfdb import catalog, units
from perfdb.groups import grouped
from perfdb.site import addresses, columns, grouping, page
from perfdb.site.cells import HtmlCell
from perfdb.site.columns import Profile
from perfdb.site.data import Link, SiteData, SiteResult
from perfdb.site.grouping import ReleaseName, TaskGroup, release_title, system_order
from perfdb.site.page import Block, Page, Section
from perfdb.site.pages import best_results
from perfdb.site.pages.parts import heads, link_cell, release_of
from perfdb.site.tables import HtmlHead, Made, plain, table
from perfdb.site.templates import code, facts, joined, paragraph, render, render_text

MOST_ROWS: Final = 300
"""Rows of a task's table, above which its older releases are only on pages of their own."""


@dataclass(frozen=True)
class Subject:
    """A model or a system, its results, the newest release first, and its pages of scaling."""

    name: str
    document: str
    title: str
    results: tuple[SiteResult, ...]
    scaling: tuple[Link, ...]

    @property
    def tasks(self) -> list[TaskGroup]:
        """Its results by task."""
        return grouping.by_task(self.results)

    @property
    def about(self) -> str:
        """'Llama 3 8B: 12 published results of NeMo Framework 25.04 and NeMo AutoModel main.'"""
        releases = page.summary_of_names(map(release_of, self.results))
        return f"{self.title}: {page.summary_of_results(self.results)} of {releases}."


def pages(data: SiteData) -> Iterator[Page]:
    """The page of each system with results, and their list."""
    on_system = results_by(data.results, lambda one: one.system)
    scaling = grouped(data.scaling, lambda one: one.system)
    systems = []
    for name, some in sorted(on_system.items(), key=lambda it: system_order(it[0])):
        entry = catalog.systems().get(name)
        title = entry.title if entry else some[0].system_title
        links = (
            Link(release_title(one.framework, one.release), one.document)
            for one in scaling.get(name, ())
        )
        document = addresses.of_system(name)
        systems.append(Subject(name, document, title, tuple(some), tuple(links)))
    yield list_page(addresses.SYSTEMS, "system", systems, partial(_index, tuple(systems)))
    for one in systems:
        yield Page(one.document, one.title, one.about, partial(_system, one))


def results_by(
    results: Sequence[SiteResult], name_of: Callable[[SiteResult], str]
) -> dict[str, list[SiteResult]]:
    """The results of each model or of each system, the newest release first."""
    in_order = sorted(results, key=grouping.work_order)
    return grouped(grouping.newest_first(in_order, results), name_of)


def list_page(
    name: str, kind: str, subjects: Sequence[Subject], body: partial[list[Block]]
) -> Page:
    """The list of models or of systems."""
    titles = page.summary_of_names(subject.title for subject in subjects) or "none yet"
    about = f"{units.counted(len(subjects), kind)} with results: {titles}."
    below = [subject.document for subject in subjects]
    return Page(name, f"{kind.capitalize()}s", about, body if subjects else _NOTHING, below=below)


def _nothing() -> list[Block]:
    return [page.no_data()]


_NOTHING: Final = partial(_nothing)


def index_table(
    label: str,
    counted: str,
    subjects: Sequence[Subject],
    known: Iterable[Made],
    of: Callable[[SiteResult], str],
) -> Markup:
    """The list of models or of systems: what is known of each, and how many results it has.

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
    made = [
        (head, [HtmlCell(f"{numbers[place]:,}") for numbers in counts])
        for place, head in enumerate(titles)
    ]
    names = [link_cell(it.title, it.document) for it in subjects]
    return table(f"{label}s", [(HtmlHead(label), names), *known, *made])


def _index(systems: Sequence[Subject]) -> list[Block]:
    hint = "Of the newest release of each framework, without rows with open errors"
    top = HtmlHead(best_results.HEADLINE, f"{hint}, {best_results.RULE}", wide=True, near=True)
    highest = [
        best_results.headline_cell(
            grouping.of_newest_releases(it.results), lambda result: f", in {release_of(result)}"
        )
        for it in systems
    ]
    names = {it.name for it in systems}
    left = [system.title for name, system in catalog.systems().items() if name not in names]
    missing = f" No results yet: {', '.join(left)}." if left else ""
    known = [(top, highest), *_hardware(systems)]
    return [
        paragraph(f"Every system that the store has results on.{missing}"),
        index_table("System", "Models", systems, known, lambda it: it.model),
    ]


def _hardware(systems: Sequence[Subject]) -> Iterator[Made]:
    """The dense peaks and the memory of each system."""
    entries = [catalog.systems().get(it.name) for it in systems]
    peaks = [it.peaks if it else {} for it in entries]
    for name in dict.fromkeys(name for it in peaks for name in it):
        head = HtmlHead(f"{name.upper()} peak", "dense, TFLOP/s/GPU", numeric=True)
        figures = [it[name].tflops if name in it else None for it in peaks]
        yield head, [HtmlCell(units.number(figure)) for figure in figures]
    memory = HtmlHead("Memory (GB)", "of each GPU", numeric=True)
    yield memory, [HtmlCell(units.number(it.memory_gb if it else None)) for it in entries]


def _system(system: Subject) -> list[Block]:
    made: list[Block] = []
    for task in system.tasks:
        title = f"{system.title}, {task.title}"
        best = best_results.chart(
            f"{title}: best figures",
            task.results,
            best_results.ACROSS_MODELS,
            ("model", "framework", "precision"),
        )
        newest = newest_results(title, task.results, columns.ON_SYSTEM)
        made.append(Section(task.title, [best, *newest]))
    made += scaling_section(system)
    return [*made, Section("Specification", [_specification(system.name)])]


def scaling_section(subject: Subject, anchor: str = "") -> list[Block]:
    """Links to the pages of its scaling, and to an anchor in them."""
    if not subject.scaling:
        return []
    listed = render_text(
        "<ul>{% for it in links %}<li>{{ link(it.text, it.document, anchor) }}</li>\n{% endfor %}"
        "</ul>",
        links=subject.scaling,
        anchor=anchor,
    )
    return [Section("Scaling", [listed])]


def newest_results(title: str, results: Sequence[SiteResult], profile: Profile) -> list[Block]:
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


def _specification(name: str) -> Markup:
    """The system in the catalog, with its dense peaks and the source of each."""
    entry = catalog.systems().get(name)
    if entry is None:
        return paragraph("The catalogue has no such system: its peaks are not known, nor any MFU.")
    known: list[tuple[str, str]] = [
        ("Name", code(entry.name)),
        ("GPU", units.text(entry.gpu)),
        ("GPUs per node", units.text(entry.gpus_per_node)),
        ("NVLink domain (GPUs)", units.text(entry.nvlink_domain)),
        ("Memory per GPU (GB)", units.number(entry.memory_gb)),
        ("Memory per GPU, as nvidia-smi says (MiB)", units.number(entry.gpu_memory_mib)),
        ("Source", entry.source),
    ]
    rows = [
        [name.upper(), units.number(peak.tflops), peak.source] for name, peak in entry.peaks.items()
    ]
    none = "The catalogue has no peak of this system, so that there is no MFU on it."
    titles = heads("Precision", "#Dense peak (TFLOP/s/GPU)", "~Source")
    peaks = plain("Dense peaks", titles, rows) if rows else paragraph(none)
    return joined((facts("Specification", known), peaks))
