"""The same work on two systems, and in two precisions: tables of figures next to each other."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from markupsafe import Markup

from perfdb import catalog, metrics, units
from perfdb.groups import grouped
from perfdb.metrics import METRICS, TRILLION
from perfdb.site import columns
from perfdb.site.addresses import hashed
from perfdb.site.cells import FLOPS, HtmlCell, figure_cell, formatted, known
from perfdb.site.columns import (
    CP,
    EP,
    ETP,
    FSDP,
    GA,
    GBS,
    GPUS,
    LBS,
    MBS,
    PP,
    PRECISION,
    SP,
    SYSTEM,
    TP,
    VP,
    ShownColumn,
    ours,
)
from perfdb.site.data import SiteResult
from perfdb.site.grouping import catalog_order, is_on_gpus, of_newest_releases, system_order
from perfdb.site.pages import best_results
from perfdb.site.pages.best_results import RATES, Rate, precision_of, qualifiers
from perfdb.site.tables import HtmlHead, HtmlTable, Made, described, of_columns, table
from perfdb.site.templates import joined, render_text
from perfdb.stated import RATE, figure, is_computed
from perfdb.versions import Precedence, newness

MOST_OPTIONS: Final = 4
"""Options of a framework that are named with their values; the others are counted."""

_LAYOUT: Final = ours(MBS, LBS, TP, SP, PP, CP, VP, EP, ETP, FSDP)
_NAMED: Final = (*_LAYOUT, *ours(GA))
_OTHERS: Final = ("kernels", "container")
"""What is too long to be printed twice."""


def differences(its: SiteResult, that: SiteResult) -> Iterator[str]:
    """'TP 2 against 1', 'other kernels', 'recompute full against none': – where none is stated."""
    yield from _differing(_LAYOUT, its, that)
    for field in _OTHERS:
        if getattr(its, field) != getattr(that, field):
            yield f"other {field}"
    options = list(_options(its.options, that.options))
    for name in options[:MOST_OPTIONS]:
        mine, other = (units.text(it.options.get(name)) for it in (its, that))
        yield f"{name} {mine} against {other}"
    if more := len(options[MOST_OPTIONS:]):
        yield units.counted(more, "other option")


def _differing(columns: Iterable[ShownColumn], its: SiteResult, that: SiteResult) -> Iterator[str]:
    """'TP 2 against 1': the columns in which two results are printed differently."""
    for column in columns:
        mine, other = (formatted(column, known(column, it)) for it in (its, that))
        if mine != other:
            yield f"{column.title} {mine} against {other}"


def note(its: SiteResult, that: SiteResult, named: Callable[[SiteResult], str]) -> Iterator[str]:
    """The differences in a sentence; nothing where there are none."""
    if different := ", ".join(differences(its, that)):
        yield f"{named(its)} is configured differently from {named(that)}: {different}."


def names(results: Iterable[SiteResult], that: SiteResult) -> list[str]:
    """What any of some results has otherwise: 'TP', 'kernels', 'recompute'."""
    found: dict[str, None] = {}
    for it in results:
        differing = [one for one in _NAMED if known(one, it) != known(one, that)]
        found |= dict.fromkeys(column.title for column in differing)
        found |= dict.fromkeys(one for one in _OTHERS if getattr(it, one) != getattr(that, one))
        found |= dict.fromkeys(_options(it.options, that.options))
    return list(found)


def _options(its: Mapping[str, object], that: Mapping[str, object]) -> Iterator[str]:
    return (name for name in sorted({*its, *that}) if its.get(name) != that.get(name))


_SYSTEM_WHERE: Final = ours(SYSTEM, PRECISION, GPUS)
_SIZE: Final = ours(GPUS, GBS)
_Size = tuple[int, int]


@dataclass(frozen=True)
class SystemSide:
    """A result of some work on a system, and what it is held against on the first that has it."""

    result: SiteResult
    base: SiteResult

    @property
    def rate(self) -> float:
        """Tokens/s/GPU."""
        return figure(self.result, RATE) or 0.0

    @property
    def anchor(self) -> str:
        """What its row is called, the same in every build and whatever its figures."""
        known = (*_system_work(self.result), *_size(self.result), self.result.system)
        return hashed("systems", known)

    @property
    def is_first(self) -> bool:
        """Whether it is what the others are held against."""
        return self.result is self.base

    @property
    def ratio(self) -> float:
        """Its rate ÷ that of the base."""
        return self.rate / (figure(self.base, RATE) or 1.0)


def compared_systems(title: str, results: Sequence[SiteResult]) -> Markup:
    """The table of the newest release of each framework; nothing where no work ran on two."""
    newest = [result for result in of_newest_releases(results) if is_on_gpus(result)]
    sides = list(sides_of(newest))
    if all(side.is_first for side in sides):
        return Markup("")
    fastest = [side.result for side in sides]
    before, after = (described(some, fastest) for some in (_SYSTEM_WHERE, columns.WORK))
    made = table(
        f"{title}: by system",
        [*before, *_figures(sides), *after],
        ids=[side.anchor for side in sides],
        notes=[tuple(_side_notes(side)) for side in sides],
    )
    left_out = best_results.contradicted(sum(result.has_open_errors for result in newest))
    return joined((Markup("<h3>By system</h3>\n"), made, best_results.note(_NOTE, left_out)))


_NOTE: Final = (
    "The fastest of each system, in the newest release of each framework, at the number of GPUs "
    "and the global batch size (GBS) of a row of the first system; where it ran at none of these, "
    "the fastest of both, and a footnote names what differs. "
    "GPU-hours are 10¹² ÷ tokens/s/GPU ÷ 3,600; times a price for an hour of a GPU they are the "
    "cost. Days are for the row's number of GPUs. Both are of training without a pause."
)


def sides_of(results: Iterable[SiteResult]) -> Iterator[SystemSide]:
    """The fastest of each work on each system, of rows without open errors.

    Each at a number of GPUs and a GBS of the first system where it has such a row.
    """
    sized = best_results.best_of_each(
        results, RATE, lambda it: (_system_work(it), _size(it), it.system)
    )
    for same in grouped(sized.values(), _system_work).values():
        by_system = grouped(same, lambda result: result.system)
        first, *others = sorted(by_system, key=system_order)
        bases = {_size(result): result for result in by_system[first]}
        fastest = _fastest(by_system[first])
        sides = [_side(by_system[system], bases, fastest) for system in others]
        held = grouped(sides, lambda side: _size(side.base)) or {_size(fastest): []}
        for size, some in held.items():
            yield from (SystemSide(bases[size], base=bases[size]), *some)


def _side(
    results: Sequence[SiteResult], bases: Mapping[_Size, SiteResult], fastest: SiteResult
) -> SystemSide:
    """A system against the same size on the first one; without any, the fastest of both."""
    shared = [result for result in results if _size(result) in bases]
    result = _fastest(shared or results)
    return SystemSide(result, base=bases.get(_size(result), fastest))


def _fastest(results: Iterable[SiteResult]) -> SiteResult:
    return max(results, key=lambda result: figure(result, RATE) or 0.0)


def _system_work(result: SiteResult) -> tuple[object, ...]:
    """What two sides must share whatever their size."""
    return (
        result.framework, result.release, result.precision or "", result.task, result.variant,
        qualifiers(result), result.sequence_length, result.origin,
    )  # fmt: skip


def _size(result: SiteResult) -> _Size:
    return result.num_gpus, result.global_batch_size


def _side_notes(side: SystemSide) -> Iterator[str]:
    """Which of GPUs, batch and configuration are not those of the first system."""
    if different := ", ".join(_differing(_SIZE, side.result, side.base)):
        yield f"Not the same work: {different}."
    yield from note(side.result, side.base, lambda it: it.system_title)


def _figures(sides: Sequence[SystemSide]) -> Iterator[Made]:
    """The rate, how much faster it is, and what a trillion tokens takes."""
    rate = METRICS[RATE].title
    yield HtmlHead(rate, numeric=True, falling=True), [figure_cell(it.result, RATE) for it in sides]
    by = f"{rate} ÷ that of the first system, computed; a footnote names other GPUs and GBS"
    head = HtmlHead("Against", by, falling=True)
    yield head, [_against(side) for side in sides]
    head = HtmlHead(
        "GPU-hours per 1T tokens", "10¹² ÷ tokens/s/GPU ÷ 3,600, computed", numeric=True
    )
    yield head, [HtmlCell(f"{metrics.gpu_hours(TRILLION, one.rate):,.0f}") for one in sides]
    head = HtmlHead("Days to 1T tokens", "on the row's GPUs, computed", numeric=True)
    yield head, [HtmlCell(units.significant(_days(one))) for one in sides]


def _against(side: SystemSide) -> HtmlCell:
    """'2.20 × DGX-H100'."""
    if side.is_first:
        return HtmlCell(units.UNKNOWN)
    return HtmlCell(f"{units.number(side.ratio, 2)} × {side.base.system_title}", sort=side.ratio)


def _days(side: SystemSide) -> float:
    every = metrics.global_tokens_per_sec(side.rate, side.result.num_gpus)
    return metrics.days_to_train(TRILLION, every)


BASE: Final = "bf16"
"""What the other precisions are held against."""

MOST_WORKS: Final = 8
"""Works of a framework on a system that stand open; the others are folded."""

_PRECISION_WHERE: Final = ours(SYSTEM, GPUS)

_COMPUTED: Final = (
    "A rate that is marked as computed is the tokens/s of all GPUs ÷ GPUs, or GBS × sequence "
    "length ÷ step time ÷ GPUs."
)


@dataclass(frozen=True)
class Work:
    """The same work in BF16 and in other precisions: the fastest result of each, by its name.

    `rate` is the figure that all of them know. `wrong` counts the rows with open errors, of which
    none is among them.
    """

    rate: Rate
    best: Mapping[str, SiteResult]
    wrong: int

    @property
    def base(self) -> SiteResult:
        """The result in BF16."""
        return self.best[BASE]

    @property
    def anchor(self) -> str:
        """What its row is called, the same in every build and whatever its figures."""
        known = (self.rate, _precision_work(self.base), _convention(self.base, self.rate))
        return hashed("precisions", known)

    def speed_up(self, precision: str) -> float | None:
        """The rate in a precision ÷ that in BF16; None where the work was not done in it."""
        if precision not in self.best:
            return None
        rate, base = (figure(self.best[name], self.rate) for name in (precision, BASE))
        return rate / base if rate and base else None


def compared_precisions(title: str, results: Sequence[SiteResult]) -> Markup:
    """A table for each rate: of each framework on each system its newest release with such work.

    Nothing where no work was done in BF16 and in another precision.
    """
    works = newest(works_of(results))
    by_rate = {rate: [work for work in works if work.rate == rate] for rate in RATES}
    return joined(_of_rate(title, some) for some in by_rate.values() if some)


def works_of(results: Sequence[SiteResult]) -> list[Work]:
    """Each work that BF16 and another precision know a rate of, in tokens or else in FLOPs.

    By system, else in the order they come. What the audit calls an error is in none.
    """
    first, second = RATES
    in_tokens = list(_compared(results, first))
    done = {_precision_work(work.base) for work in in_tokens}
    others = [result for result in results if _precision_work(result) not in done]
    works = (*in_tokens, *_compared(others, second))
    return sorted(works, key=lambda work: system_order(work.base.system))


def _compared(results: Iterable[SiteResult], rate: Rate) -> Iterator[Work]:
    stating = [it for it in results if it.precision is not None and figure(it, rate)]
    for same in grouped(stating, lambda it: (_precision_work(it), _convention(it, rate))).values():
        best = best_results.best_of_each(same, rate, lambda result: result.precision or "")
        if BASE in best and len(best) > 1:
            yield Work(rate, best, wrong=sum(result.has_open_errors for result in same))


def _precision_work(result: SiteResult) -> tuple[object, ...]:
    """What is the same in every precision, and over which steps it was measured."""
    return (
        result.framework, result.release, result.system, result.task, result.variant,
        result.qualifiers, result.origin, result.num_gpus, result.sequence_length,
        result.global_batch_size, result.window,
    )  # fmt: skip


def _convention(result: SiteResult, rate: Rate) -> str | None:
    return result.flops_convention if rate == FLOPS else None


def newest(works: Sequence[Work]) -> list[Work]:
    """Those of the newest release of each framework on each system."""
    last = {where: max(map(_newness, there)) for where, there in grouped(works, _place).items()}
    return [work for work in works if last[_place(work)] == _newness(work)]


def _newness(work: Work) -> Precedence:
    return newness(work.base.release, work.base.build)


def _place(work: Work) -> tuple[str, str]:
    return work.base.framework, work.base.system


def _of_rate(title: str, works: Sequence[Work]) -> Markup:
    """The first works of each framework on each system as a table, and the others folded."""
    heading = f"By precision: {METRICS[works[0].rate].title}"
    every = _table(f"{title}: {heading}", works)
    pairs = list(zip(works, every.rows, strict=True))
    by_place = grouped(pairs, lambda pair: _place(pair[0])).values()
    first = {id(row) for some in by_place for _, row in some[:MOST_WORKS]}
    others = [row for row in every.rows if id(row) not in first]
    shown = replace(every, rows=[row for row in every.rows if id(row) in first]).html
    folded = render_text(
        "<details><summary>{{ count|counted('row') }} more</summary>{{ table }}</details>",
        count=len(others),
        table=replace(every, rows=others).html,
    )
    name = Markup("<h3>{}</h3>\n").format(heading)
    return joined((name, shown, _note(works), folded if others else ""))


def _table(label: str, works: Sequence[Work]) -> HtmlTable:
    bases = [work.base for work in works]
    before, after = (described(some, bases) for some in (_PRECISION_WHERE, columns.WORK))
    return of_columns(
        label,
        [*before, *_of_precisions(works), *after],
        ids=[work.anchor for work in works],
        notes=[tuple(_otherwise(work)) for work in works],
    )


def _of_precisions(works: Sequence[Work]) -> Iterator[Made]:
    """The rate in each precision, BF16 first, and next to it how much faster that is."""
    rate = METRICS[works[0].rate].title
    titles = {name: precision_of(it) for work in works for name, it in work.best.items()}
    for name in sorted(titles, key=_precision_order):
        head = HtmlHead(titles[name], rate, numeric=True, falling=True)
        yield head, [figure_cell(it.best.get(name), it.rate) for it in works]
        if name != BASE:
            formula = f"{rate} in {titles[name]} ÷ that in {titles[BASE]}, computed"
            head = HtmlHead(f"{titles[name]} ÷ {titles[BASE]}", formula, numeric=True, falling=True)
            yield head, [HtmlCell(units.number(work.speed_up(name), 2)) for work in works]


def _precision_order(name: str) -> tuple[bool, tuple[int, str]]:
    """BF16 first; a precision that the catalogue lacks comes last."""
    return name != BASE, catalog_order(name, catalog.precisions())


def _otherwise(work: Work) -> Iterator[str]:
    """What of each precision's configuration is not that of BF16."""
    for name in sorted(work.best, key=_precision_order):
        yield from note(work.best[name], work.base, precision_of)


def _note(works: Sequence[Work]) -> Markup:
    """What is next to each other, and what is left out."""
    rates = [(result, work.rate) for work in works for result in work.best.values()]
    computed = any(is_computed(result, rate) for result, rate in rates)
    return best_results.note(
        "On each system the newest release of each framework that did the same work in BF16 and in "
        "another precision. Of several configurations the fastest is taken; where it is not that "
        "of BF16 a note says so, and the ratio is of both changes. Ratios are computed from the "
        "rates.",
        _COMPUTED if computed else "",
        best_results.contradicted(sum(work.wrong for work in works)),
    )
