"""The page that has systems side by side: the same model, precision and sequence length on each."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from perfdb import metrics, units
from perfdb.catalog import titles
from perfdb.compare import match
from perfdb.compare.scaling import qualifiers
from perfdb.groups import grouped
from perfdb.metrics import METRICS, TRILLION
from perfdb.site import addresses, cells, grouping
from perfdb.site.cells import HtmlCell, figure_cell
from perfdb.site.data import SiteData, SiteResult
from perfdb.site.grouping import catalog_order, newest_system_order, precision_order
from perfdb.site.page import Block, Section, SitePage, summary_of_names
from perfdb.site.pages import flagships
from perfdb.site.pages.parts import link_cell, note, precision_of, release_of
from perfdb.site.tables import HtmlHead, Made, table
from perfdb.site.templates import paragraph, with_short_hashes
from perfdb.stated import RATE, figure
from perfdb.versions import natural

NONE: Final = "No model has results on two systems in the same precision and sequence length yet."
WHAT: Final = (
    "Tokens/s/GPU for the same model, precision and sequence length. Each figure is the fastest of "
    "the newest release with that work. Rows with open errors are left out."
)
NOTE: Final = (
    "Ratios are to the oldest system of the row. Footnotes name releases and GPU counts: where "
    "these differ, so does more than the system."
)
HOURS: Final = "GPU-hours for 10¹² tokens: 10¹² ÷ tokens/s/GPU ÷ 3,600. State prices to see costs."
COSTS: Final = "Cost: price of a GPU-hour ÷ (tokens/s/GPU × 3,600) × 10⁶. Prices per GPU-hour:"
FRAMEWORKS: Final = "From one framework to another"
ACROSS: Final = (
    "The newest result of each framework for the same work on the same system; rows with open "
    "errors are left out. Releases, layouts and software differ, too."
)

MILLION: Final = 1_000_000

SideBySide = Mapping[str, SiteResult]
"""The results of some work by system, of the newest system first."""


def pages(data: SiteData) -> Iterator[SitePage]:
    """The page; it is there without a result, too."""
    works = side_by_side(grouping.on_gpus(data.results))
    systems = sorted({it for one in works for it in one}, key=newest_system_order)
    names = summary_of_names(map(titles.system, systems))
    about = f"{names} side by side for the same models." if systems else NONE
    across = across_frameworks(grouping.on_gpus(data.results))
    prices = tuple(sorted(data.prices.items()))
    body = partial(_page, tuple(tuple(one.values()) for one in works), across, prices)
    yield SitePage(addresses.COMPARED_SYSTEMS, "Compare systems", about, body)


def side_by_side(results: Iterable[SiteResult]) -> list[SideBySide]:
    """Each work that two systems or more have done, with its newest best result on each."""
    newest = _newest_best(results, lambda one: (_work(one), one.system))
    works = [
        {it.system: it for it in sorted(some, key=lambda it: newest_system_order(it.system))}
        for some in grouped(newest, _work).values()
    ]
    return sorted(
        (one for one in works if len(one) > 1), key=lambda one: _named(next(iter(one.values())))
    )


def across_frameworks(results: Iterable[SiteResult]) -> tuple[tuple[SiteResult, SiteResult], ...]:
    """Work on a system that two frameworks have done: that of the older one, and the newest.

    Of precisions their family counts: frameworks name the kinds of FP8 differently, or not at all.
    """
    newest = _newest_best(results, lambda one: (match.kind(one), one.framework))
    pairs = [(some[0], some[-1]) for some in grouped(newest, match.kind).values() if len(some) > 1]
    return tuple(sorted(pairs, key=lambda it: (newest_system_order(it[0].system), *_named(it[0]))))


def _newest_best(
    results: Iterable[SiteResult], key: Callable[[SiteResult], object]
) -> list[SiteResult]:
    """The best result of the newest release for each key, in the order of their dates."""
    known = [it for it in results if not it.has_open_errors and figure(it, RATE)]
    dates = grouping.release_dates(known)
    known.sort(key=lambda it: (flagships.day(it, dates), figure(it, RATE) or 0.0))
    best = {key(it): it for it in known}
    return sorted(best.values(), key=lambda it: flagships.day(it, dates))


def _work(one: SiteResult) -> tuple[object, ...]:
    precision = one.precision or ""
    return one.task, one.model, qualifiers(one), one.variant, precision, one.sequence_length


def _named(one: SiteResult) -> tuple[object, ...]:
    precision = precision_order(one.precision)
    return natural(one.model_title), precision, one.sequence_length, qualifiers(one)


def _page(
    works: Sequence[Sequence[SiteResult]],
    across: Sequence[tuple[SiteResult, SiteResult]],
    prices: Sequence[tuple[str, float]],
) -> list[Block]:
    of_frameworks = [Section(FRAMEWORKS, [_frameworks(across), note(ACROSS)])] if across else []
    if not works:
        return [paragraph(WHAT), paragraph(NONE), *of_frameworks]
    of_task = grouped(works, lambda one: str(one[0].task))
    tasks = sorted(of_task, key=lambda task: catalog_order(task, titles.TASKS))
    listed = ", ".join(f"{titles.system(name)} ${price:,.2f}" for name, price in prices)
    return [
        paragraph(WHAT),
        *(
            Section(titles.task(task), [_table(task, of_task[task], dict(prices))])
            for task in tasks
        ),
        note(NOTE, f"{COSTS} {listed}." if prices else HOURS),
        *of_frameworks,
    ]


def _table(task: str, works: Sequence[Sequence[SiteResult]], prices: Mapping[str, float]) -> Block:
    by_system = [{it.system: it for it in some} for some in works]
    systems = sorted({it for one in by_system for it in one}, key=newest_system_order)
    made: list[Made] = [*_names([some[0] for some in works])]
    for system in systems:
        of_system = [one.get(system) for one in by_system]
        head = HtmlHead(titles.system(system), METRICS[RATE].title, numeric=True, falling=True)
        made.append((head, [figure_cell(it, RATE) for it in of_system]))
    for system in systems[:-1]:
        head = HtmlHead(f"{_short(system)} ratio", "to the oldest system of the row",
                        numeric=True, falling=True)  # fmt: skip
        made.append((head, [_ratio(one, system) for one in by_system]))
    for system in systems:
        of_system = [one.get(system) for one in by_system]
        if prices:
            title, hint = f"{_short(system)} $/1M", "US dollars per million tokens"
            head = HtmlHead(title, hint, numeric=True)
            made.append((head, [_cost(it, prices.get(system)) for it in of_system]))
        else:
            title, hint = f"{_short(system)} GPU-h/1T", "GPU-hours for 10¹² tokens"
            head = HtmlHead(title, hint, numeric=True)
            made.append((head, [_hours(it) for it in of_system]))
    ids = [addresses.hashed("compared", _work(some[0])) for some in works]
    return table(f"{titles.task(task)} by system", made, ids, [[_releases(it)] for it in works])


def _short(system: str) -> str:
    """'GB200': narrow, for the heads of columns."""
    return titles.system(system).removeprefix("DGX-")


def _frameworks(pairs: Sequence[tuple[SiteResult, SiteResult]]) -> Block:
    """A row for each work: both releases, both rates and their ratio."""
    before, after = zip(*pairs, strict=True)
    model, _, length = _names(before)
    systems = [link_cell(it.system_title, addresses.of_system(it.system)) for it in before]
    made: list[Made] = [model, (HtmlHead("System", near=True), systems), length]
    for title, side in (("From", before), ("To", after)):
        made.append((HtmlHead(title), [_release(it) for it in side]))
        precisions = [HtmlCell(precision_of(it) or units.UNKNOWN) for it in side]
        made.append((HtmlHead("Precision"), precisions))
        gpus = [HtmlCell(f"{it.num_gpus:,}") for it in side]
        made.append((HtmlHead("GPUs", numeric=True), gpus))
        rates = [figure_cell(it, RATE) for it in side]
        made.append((HtmlHead(METRICS[RATE].title, numeric=True, falling=True), rates))
    ratios = [_quotient(new, old) for old, new in pairs]
    made.append((HtmlHead("Ratio", numeric=True, falling=True), ratios))
    ids = [addresses.hashed("across", match.kind(it)) for it in before]
    return table(FRAMEWORKS, made, ids)


def _release(one: SiteResult) -> HtmlCell:
    document = addresses.of_release(one.framework, one.release)
    return link_cell(with_short_hashes(release_of(one)), document)


def _names(firsts: Sequence[SiteResult]) -> Iterator[Made]:
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
    return _quotient(result, oldest)


def _quotient(new: SiteResult, old: SiteResult) -> HtmlCell:
    ratio = (figure(new, RATE) or 0.0) / (figure(old, RATE) or 1.0)
    return HtmlCell(f"{ratio:.2f} ×", sort=ratio)


def _cost(result: SiteResult | None, price: float | None) -> HtmlCell:
    """US dollars per million tokens; – where the system has no price."""
    rate = result and figure(result, RATE)
    if not rate or price is None:
        return HtmlCell(units.UNKNOWN)
    cost = price * metrics.gpu_hours(MILLION, rate)
    return HtmlCell(units.significant(cost, 3), sort=cost)


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
