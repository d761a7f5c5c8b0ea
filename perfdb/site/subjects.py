"""What the pages of models and of systems share: results by task, and the list of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Final

from perfdb import units
from perfdb.groups import grouped
from perfdb.record import Frozen
from perfdb.site import about, addresses, columns, markup, tables
from perfdb.site.addresses import Address
from perfdb.site.columns import Made
from perfdb.site.data import Link, Result
from perfdb.site.grouping import Release, TaskResults, newest_first, work_order
from perfdb.site.headline import Highest
from perfdb.site.markup import Cell, Head, Html, joined, link, tag
from perfdb.site.page import NO_DATA, Page, document, listing, section, shown
from perfdb.site.profile import Profile
from perfdb.site.words import release_title, section_title

MOST_ROWS: Final = 300
"""Rows of a task's table, above which its older releases are only on pages of their own."""


class Subject(Frozen):
    """A model or a system: its page, its results in force by task, and its pages of scaling."""

    name: str
    document: str
    title: str
    tasks: tuple[TaskResults, ...]
    scaling: tuple[Link, ...]


class Counts(Frozen):
    """How much there is of a model or a system.

    `beside`: how many systems a model has results on, or models a system has results of.
    """

    results: int
    measured: int
    releases: int
    beside: int


class Entry(Frozen):
    """A model or a system in the list of them, and the document that is its page.

    `rates` says a model's highest tokens/s/GPU at a task in the newest releases, by system.
    `highest` is the headline of a system in these, `peaks` are its dense TFLOP/s/GPU by precision.
    """

    document: str
    title: str
    counts: Counts
    rates: str = ""
    highest: Highest | None = None
    peaks: Mapping[str, float] = {}
    memory_gb: float | None = None


class Entries(Frozen):
    """The list of models or of systems."""

    entries: tuple[Entry, ...]


def by_name(results: Sequence[Result], name_of: Callable[[Result], str]) -> dict[str, list[Result]]:
    """The results of each model or of each system, the newest release first."""
    return grouped(newest_first(sorted(results, key=work_order), results), name_of)


def list_of(
    name: str, introduction: str, subjects: Sequence[Subject], entries: Iterable[Entry]
) -> Page:
    """The list of models or of systems."""
    kind = name.partition("/")[0].removesuffix("s")
    titles = about.names(subject.title for subject in subjects) or "none yet"
    summary = f"{units.counted(len(subjects), kind)} with results: {titles}."
    if not subjects:
        return listing(name, summary, NO_DATA, None)
    below = [subject.document for subject in subjects]
    return listing(name, summary, introduction, Entries(entries=tuple(entries)), below)


def page_of(subject: Subject, kind: str, *others: tuple[str, str]) -> Page:
    """The page: a section for each task, the pages of scaling, then others by title and part."""
    parts = [
        section(section_title(task.task, None), shown(f"{kind}-results", number))
        for number, task in enumerate(subject.tasks)
    ]
    parts += [section("Scaling", shown(f"{kind}-scaling"))] if subject.scaling else []
    parts += [section(title, shown(part)) for title, part in others]
    return Page(subject.document, document(subject.title, _about(subject), *parts), subject)


def _about(subject: Subject) -> str:
    """'Llama 3 8B: 12 published results of NeMo Framework 25.04 and NeMo AutoModel main.'"""
    results = [result for task in subject.tasks for result in task.results]
    releases = about.names(release_title(one.framework, one.release) for one in results)
    return f"{subject.title}: {about.results(results)} of {releases}."


def counts(subject: Subject, beside: Callable[[Result], str]) -> Counts:
    """How much there is of it; `beside` names what is counted of each result."""
    results = [result for task in subject.tasks for result in task.results]
    return Counts(
        results=len(results),
        measured=sum(result.is_measured for result in results),
        releases=len({(one.framework, one.release) for one in results}),
        beside=len(set(map(beside, results))),
    )


def newest_results(
    title: str, results: Sequence[Result], profile: Profile, address: Address
) -> Html:
    """The table of a task, and where the releases are that it has no room for."""
    by_release = grouped(results, lambda result: (result.framework, result.release))
    shown = recent({release: len(of_release) for release, of_release in by_release.items()})
    rows = [result for result in results if (result.framework, result.release) in shown]
    table = markup.table(tables.results_table(title, rows, profile, address))
    older = [
        _older(release, of_release, address)
        for release, of_release in by_release.items()
        if release not in shown
    ]
    if not older:
        return table
    heading = tag("summary", f"Older releases ({len(older):,}) stand on their own pages alone")
    return joined((table, tag("details", (heading, tag("ul", older)))))


def _older(release: Release, results: Sequence[Result], address: Address) -> Html:
    tab = addresses.of_tab(*release, results[0].system, address)
    count = units.counted(len(results), "result")
    return tag("li", (link(release_title(*release), tab), f": {count}"))


def recent(sizes: Mapping[Release, int]) -> set[Release]:
    """The releases that a table has room for, of frameworks' releases from the newest on.

    The newest of each framework always; of a framework none that is older than one left out.
    """
    by_framework = grouped(sizes, itemgetter(0)).values()
    ranked = [pair for some in by_framework for pair in enumerate(some)]
    shown, full, room = set[Release](), set[str](), MOST_ROWS
    for rank, release in sorted(ranked, key=itemgetter(0)):
        if rank and (release[0] in full or sizes[release] > room):
            full.add(release[0])
            continue
        shown.add(release)
        room -= sizes[release]
    return shown


def scaling(subject: Subject, address: Address, anchor: str = "") -> Html:
    """The pages that show it on more and more GPUs, from an anchor in them on."""
    items = [
        tag("li", link(one.text, f"{address(one.document)}{anchor}")) for one in subject.scaling
    ]
    return tag("ul", items)


def index(
    label: str, beside: str, given: Sequence[Entry], known: Iterable[Made], address: Address
) -> Html:
    """The list of models or of systems; the columns of what is known of each before the counts."""
    names = [Cell(link(entry.title, address(entry.document)), sort=entry.title) for entry in given]
    each = [entry.counts for entry in given]
    numbers = {
        "Results": [it.results for it in each],
        "Measured": [it.measured for it in each],
        "Published": [it.results - it.measured for it in each],
        "Releases": [it.releases for it in each],
        beside: [it.beside for it in each],
    }
    counted = [
        (Head(title, numeric=True), [Cell(f"{number:,}") for number in column])
        for title, column in numbers.items()
    ]
    return markup.table(columns.table(f"{label}s", [(Head(label), names), *known, *counted]))
