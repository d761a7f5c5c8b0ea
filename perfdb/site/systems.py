"""The page of a system: its specification, its best figures, its results in force."""

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Final

from perfdb import catalog, units
from perfdb.catalog import System
from perfdb.groups import grouped
from perfdb.site import addresses, bests, headline, markup, profiles, subjects
from perfdb.site.addresses import Address
from perfdb.site.columns import Made
from perfdb.site.contents import Contents
from perfdb.site.data import Link, Result
from perfdb.site.grouping import by_task, of_newest_releases, system_order
from perfdb.site.markup import Cell, Content, Head, Html, facts, joined, tag
from perfdb.site.page import Kind, Page, numbered, part
from perfdb.site.series import ScalingPage
from perfdb.site.subjects import Entries, Entry, Subject
from perfdb.site.words import release_title, section_title


class SystemPage(Subject):
    """Everything on the page of a system. `entry` is None for a name that the catalogue lacks."""

    entry: System | None


def _pages(contents: Contents) -> Iterator[Page]:
    on_system = subjects.by_name(contents.results, lambda one: one.system)
    scaling = grouped(contents.scaling, lambda one: one.system)
    systems = [
        _system(name, on_system[name], scaling.get(name, ()))
        for name in sorted(on_system, key=system_order)
    ]
    introduction = "Every system that the store has results on.\n" + _without_results(on_system)
    yield subjects.list_of(addresses.SYSTEMS, introduction, systems, map(_entry, systems))
    last = ("Specification", "system-specification")
    yield from (subjects.page_of(system, "system", last) for system in systems)


def _without_results(on_system: Container[str]) -> str:
    """The systems of the catalogue that the store has nothing on, for who looks for them."""
    left = [system.title for name, system in catalog.systems().items() if name not in on_system]
    return f"No results yet: {', '.join(left)}.\n" if left else ""


def _system(name: str, results: Sequence[Result], scaling: Iterable[ScalingPage]) -> SystemPage:
    entry = catalog.systems().get(name)
    return SystemPage(
        name=name,
        document=addresses.of_system(name),
        title=entry.title if entry else results[0].system_title,
        entry=entry,
        tasks=by_task(results),
        scaling=tuple(
            Link(text=release_title(one.framework, one.release), document=one.document)
            for one in scaling
        ),
    )


def _entry(page: SystemPage) -> Entry:
    results = [result for task in page.tasks for result in task.results]
    system = page.entry
    return Entry(
        document=page.document,
        title=page.title,
        counts=subjects.counts(page, lambda result: result.model),
        highest=headline.highest(
            of_newest_releases(results), lambda result: f", in {bests.release_of(result)}"
        ),
        peaks={name: peak.tflops for name, peak in system.peaks.items()} if system else {},
        memory_gb=system.memory_gb if system else None,
    )


def index(page: Entries, address: Address) -> Html:
    """The list of systems, with the headline, the dense peaks and the memory of each."""
    return subjects.index("System", "Models", page.entries, _known(page.entries, address), address)


def _known(given: Sequence[Entry], address: Address) -> Iterator[Made]:
    top = Head(headline.TITLE, f"{_NEWEST}, {headline.RULE}", wide=True, near=True)
    yield top, [headline.cell(one.highest, address) for one in given]
    for name in dict.fromkeys(name for one in given for name in one.peaks):
        peak = Head(f"{name.upper()} peak", "dense, TFLOP/s/GPU", numeric=True)
        yield peak, [Cell(units.number(one.peaks.get(name))) for one in given]
    memory = Head("Memory (GB)", "of each GPU", numeric=True)
    yield memory, [Cell(units.number(one.memory_gb)) for one in given]


_NEWEST: Final = "Of the newest release of each framework, without rows with open errors"


def results(page: SystemPage, number: int, address: Address) -> Html:
    """The results of a task: the best of each model as bars, the newest of them as a table."""
    task = page.tasks[number]
    title = f"{page.title}, {section_title(task.task, None)}"
    best = bests.chart(f"{title}: best figures", task.results, bests.ACROSS_MODELS, _PARTS)
    every = subjects.newest_results(title, task.results, profiles.ON_SYSTEM, address)
    return joined((best, every))


_PARTS: Final = (bests.MODEL, bests.FRAMEWORK, bests.PRECISION)


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
        ("Memory per GPU, as nvidia-smi says (MiB)", units.number(entry.gpu_memory_mib)),
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
        "systems": part(Entries, index),
        "system-results": numbered(SystemPage, results),
        "system-scaling": part(SystemPage, subjects.scaling),
        "system-specification": part(SystemPage, specification),
    },
)
