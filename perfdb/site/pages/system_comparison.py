"""The page that has systems side by side: the same model, precision and sequence length on each."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from perfdb import catalog, metrics, units
from perfdb.catalog import titles
from perfdb.compare.scaling import qualifiers
from perfdb.groups import grouped
from perfdb.metrics import METRICS, TRILLION
from perfdb.site import addresses, cells, grouping
from perfdb.site.cells import HtmlCell, figure_cell
from perfdb.site.data import SiteData, SiteResult
from perfdb.site.grouping import catalog_order, newest_system_order
from perfdb.site.page import Block, Section, SitePage, summary_of_names
from perfdb.site.pages import flagships
from perfdb.site.pages.parts import link_cell, note, precision_of, release_of
from perfdb.site.tables import HtmlHead, Made, table
from perfdb.site.templates import paragraph, with_short_hashes
from perfdb.stated import RATE, figure
from perfdb.versions import natural

NONE: Final = "No model has results on two systems in the same precision and sequence length yet."
WHAT: Final = (
    "Tokens/s/GPU of the same model, precision and sequence length on each system: the fastest of "
    "the newest release that has it there."
)
NOTE: Final = (
    "The ratio compares a system with the oldest one of the row. GPU-hours are 10¹² ÷ "
    "tokens/s/GPU ÷ 3,600; multiply them by your price of a GPU-hour to get the cost. A "
    "footnote names releases and numbers of GPUs: where these differ between systems, so does more "
    "than the system. Rows with open errors are left out."
)

SideBySide = Mapping[str, SiteResult]
"""The results of some work by system, of the newest system first."""


def pages(data: SiteData) -> Iterator[SitePage]:
    """The page; it is there without a result, too."""
    works = side_by_side(grouping.on_gpus(data.results))
    systems = sorted({it for one in works for it in one}, key=newest_system_order)
    names = summary_of_names(map(titles.system, systems))
    about = f"{names} side by side for the same models." if systems else NONE
    body = partial(_page, tuple(tuple(one.values()) for one in works))
    yield SitePage(addresses.COMPARED_SYSTEMS, "Compare systems", about, body)


def side_by_side(results: Iterable[SiteResult]) -> list[SideBySide]:
    """Each work that two systems or more have done, with its newest best result on each."""
    known = [it for it in results if not it.has_open_errors and figure(it, RATE)]
    dates = grouping.release_dates(known)
    known.sort(key=lambda it: (flagships.day(it, dates), figure(it, RATE) or 0.0))
    works = [
        {it.system: it for it in sorted(some, key=lambda it: newest_system_order(it.system))}
        for some in grouped({(_work(it), it.system): it for it in known}.values(), _work).values()
    ]
    return sorted((one for one in works if len(one) > 1), key=_order)


def _work(one: SiteResult) -> tuple[object, ...]:
    precision = one.precision or ""
    return one.task, one.model, qualifiers(one), one.variant, precision, one.sequence_length


def _order(work: SideBySide) -> tuple[object, ...]:
    one = next(iter(work.values()))
    precision = catalog_order(one.precision or "", catalog.precisions())
    return natural(one.model_title), precision, one.sequence_length, qualifiers(one)


def _page(works: Sequence[Sequence[SiteResult]]) -> list[Block]:
    if not works:
        return [paragraph(WHAT), paragraph(NONE)]
    of_task = {str(some[0].task): some for some in works}
    tasks = sorted(of_task, key=lambda task: catalog_order(task, titles.TASKS))
    return [
        paragraph(WHAT),
        *(
            Section(titles.task(task), [_table(task, [it for it in works if it[0].task == task])])
            for task in tasks
        ),
        note(NOTE),
    ]


def _table(task: str, works: Sequence[Sequence[SiteResult]]) -> Block:
    by_system = [{it.system: it for it in some} for some in works]
    systems = sorted({it for one in by_system for it in one}, key=newest_system_order)
    made: list[Made] = [*_names(works)]
    for system in systems:
        of_system = [one.get(system) for one in by_system]
        head = HtmlHead(titles.system(system), METRICS[RATE].title, numeric=True, falling=True)
        made.append((head, [figure_cell(it, RATE) for it in of_system]))
    for system in systems[:-1]:
        head = HtmlHead(f"{titles.system(system)} ratio", "to the oldest system of the row",
                        numeric=True, falling=True)  # fmt: skip
        made.append((head, [_ratio(one, system) for one in by_system]))
    for system in systems:
        head = HtmlHead(f"{titles.system(system)} GPU-hours per 1T tokens", numeric=True)
        made.append((head, [_hours(one.get(system)) for one in by_system]))
    ids = [addresses.hashed("compared", _work(some[0])) for some in works]
    return table(f"{titles.task(task)} by system", made, ids, [[_releases(it)] for it in works])


def _names(works: Sequence[Sequence[SiteResult]]) -> Iterator[Made]:
    firsts = [some[0] for some in works]
    names = [
        link_cell(titles.qualified(it.model_title, qualifiers(it)), addresses.of_model(it.model))
        for it in firsts
    ]
    yield HtmlHead("Model"), names
    precisions = [HtmlCell(precision_of(it) or units.UNKNOWN) for it in firsts]
    yield HtmlHead("Precision", near=True), precisions
    lengths = [HtmlCell(f"{it.sequence_length:,}") for it in firsts]
    yield HtmlHead("Sequence length", numeric=True), lengths


def _ratio(one: SideBySide, system: str) -> HtmlCell:
    """The rate on a system ÷ that on the oldest of the row; – for the oldest itself."""
    *_, oldest = one.values()
    result = one.get(system)
    if result is None or result is oldest:
        return HtmlCell(units.UNKNOWN)
    ratio = (figure(result, RATE) or 0.0) / (figure(oldest, RATE) or 1.0)
    return HtmlCell(f"{ratio:.2f} ×", sort=ratio)


def _hours(result: SiteResult | None) -> HtmlCell:
    rate = result and figure(result, RATE)
    return HtmlCell(f"{metrics.gpu_hours(TRILLION, rate):,.0f}" if rate else units.UNKNOWN)


def _releases(some: Sequence[SiteResult]) -> str:
    """'Megatron-Bridge 26.08, 64 GPUs', and the systems of each where these differ."""
    systems = grouped(
        some,
        lambda it: f"{with_short_hashes(release_of(it))}, {cells.gpus(it.num_gpus, it.system)}",
    )
    if len(systems) == 1:
        return next(iter(systems))
    return "; ".join(
        f"{release}: {', '.join(it.system_title for it in of_release)}"
        for release, of_release in systems.items()
    )
