"""The page of a system: its specification, its best figures, every result on it in force."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from perfdb import catalog, units
from perfdb.catalog import System
from perfdb.record import Frozen
from perfdb.site import addresses, bests, markup, profiles, tables
from perfdb.site.addresses import Address
from perfdb.site.bests import Entry
from perfdb.site.contents import Contents
from perfdb.site.data import Result
from perfdb.site.grouping import TaskResults, by_task, newest_first, system_order
from perfdb.site.markup import Cell, Content, Head, Html, facts, joined, tag
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
from perfdb.site.words import section_title


class SystemPage(Frozen):
    """Everything on the page of a system. `entry` is None for a name that the catalogue lacks."""

    system: str
    title: str
    entry: System | None
    tasks: tuple[TaskResults, ...]


class SystemsPage(Frozen):
    """The list of systems."""

    entries: tuple[Entry, ...]


def _pages(contents: Contents) -> Iterator[Page]:
    by_system: dict[str, list[Result]] = defaultdict(list)
    for result in newest_first(contents.results):
        by_system[result.system].append(result)
    ordered = sorted(by_system, key=system_order)
    pages = [_system(name, by_system[name]) for name in ordered]
    yield _index(pages)
    yield from map(_document, pages)


def _system(name: str, results: Sequence[Result]) -> SystemPage:
    entry = catalog.systems().get(name)
    title = entry.title if entry else results[0].system_title
    return SystemPage(system=name, title=title, entry=entry, tasks=by_task(results))


def _index(pages: Sequence[SystemPage]) -> Page:
    if not pages:
        return Page(addresses.SYSTEMS, document("Systems", NO_DATA, orphan=True))
    text = document(
        "Systems",
        "Every system that the store has results on.\n",
        shown("systems"),
        toctree(addresses.of_system(page.system) for page in pages),
        orphan=True,
    )
    return Page(addresses.SYSTEMS, text, SystemsPage(entries=tuple(map(_entry, pages))))


def _entry(page: SystemPage) -> Entry:
    results = [result for task in page.tasks for result in task.results]
    return bests.entry(page.system, page.title, results, (one.model for one in results))


def _document(page: SystemPage) -> Page:
    parts = [
        section(section_title(task.task, None), shown("system-results", number))
        for number, task in enumerate(page.tasks)
    ]
    parts += [section("Specification", shown("system-specification"))]
    return Page(addresses.of_system(page.system), document(page.title, *parts), page)


def systems_index(page: SystemsPage, address: Address) -> Html:
    """The list of systems."""
    return bests.index("System", "Models", page.entries, addresses.of_system, address)


def results(page: SystemPage, number: int, address: Address) -> Html:
    """The results of a task: the best of each model as bars, all of them as a table."""
    given = page.tasks[number]
    title = f"{page.title}, {section_title(given.task, None)}"
    made = tables.results_table(title, given.results, profiles.ON_SYSTEM, address)
    drawn = bests.chart(f"{title}: best figures", given.results, bests.ACROSS_MODELS, _label)
    return joined((drawn, markup.table(made)))


def _label(result: Result) -> tuple[str, ...]:
    return result.model_title, bests.release_of(result), bests.precision_of(result)


def specification(page: SystemPage, _address: Address) -> Html:
    """What the catalogue knows of the system, with the dense peaks and where each is from."""
    entry = page.entry
    if entry is None:
        return tag("p", "The catalogue has no such system: its peaks are not known, nor any MFU.")
    given: list[tuple[str, Content]] = [
        ("Name", tag("code", entry.name)),
        ("GPU", units.text(entry.gpu)),
        ("GPUs per node", units.text(entry.gpus_per_node)),
        ("NVLink domain (GPUs)", units.text(entry.nvlink_domain)),
        ("Memory per GPU (GB)", units.number(entry.memory_gb)),
        ("Source", entry.source),
    ]
    return joined((facts("Specification", given), _peaks(entry)))


def _peaks(entry: System) -> Html:
    if not entry.peaks:
        return tag("p", "The catalogue has no peak of this system, so that there is no MFU on it.")
    heads = [Head("Precision"), Head("Dense peak (TFLOP/s/GPU)", numeric=True)]
    rows = [
        [Cell(name.upper()), Cell(units.number(peak.tflops)), Cell(peak.source)]
        for name, peak in entry.peaks.items()
    ]
    return markup.table(markup.Table("Dense peaks", [*heads, Head("Source", wide=True)], rows))


KIND = Kind(
    _pages,
    {
        "systems": part(SystemsPage, systems_index),
        "system-results": numbered(SystemPage, results),
        "system-specification": part(SystemPage, specification),
    },
)
