"""The same work on two systems, and in two precisions: tables of figures next to each other."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from perfdb import metrics, units
from perfdb.compare.scaling import RATES, Rate, best_of_each, qualifiers
from perfdb.groups import grouped
from perfdb.metrics import METRICS, TRILLION
from perfdb.site import columns
from perfdb.site.addresses import hashed
from perfdb.site.cells import FLOPS, HtmlCell, as_printed, figure_cell, formatted, known
from perfdb.site.columns import ShownColumn, ours
from perfdb.site.data import SiteResult
from perfdb.site.grouping import is_on_gpus, of_newest_releases, precision_order, system_order
from perfdb.site.pages.parts import precision_of, rows_left_out
from perfdb.site.tables import HtmlHead, Made, described, table
from perfdb.site.templates import joined, render
from perfdb.stated import RATE, figure, is_computed
from perfdb.versions import newness

BASE: Final = "bf16"
"""The precision that the others are compared with."""

_LAYOUT: Final = ours(
    columns.MBS, columns.LBS, columns.TP, columns.SP, columns.PP, columns.CP, columns.VP,
    columns.EP, columns.ETP, columns.FSDP,
)  # fmt: skip
_LONG: Final = ("kernels", "container")
"""Fields that are too long to be printed for both sides."""
_SIZE: Final = ours(columns.GPUS, columns.GBS)


def note(its: SiteResult, that: SiteResult, named: Callable[[SiteResult], str]) -> Iterator[str]:
    """What one result has configured differently from another in a sentence; none if nothing.

    'FP8 is configured differently from BF16: TP 2 against 1, other kernels.'
    """
    different = [*_differing(_LAYOUT, its, that), *(f"other {it}" for it in _long(its, that))]
    for name in _options(its, that):
        mine, other = (units.text(it.options.get(name)) for it in (its, that))
        different.append(f"{name} {mine} against {other}")
    if different:
        yield f"{named(its)} is configured differently from {named(that)}: {', '.join(different)}."


def _differing(some: Iterable[ShownColumn], its: SiteResult, that: SiteResult) -> Iterator[str]:
    """'TP 2 against 1': the columns in which two results are printed differently."""
    for column in some:
        mine, other = (formatted(column, known(column, it)) for it in (its, that))
        if mine != other:
            shown = (as_printed(column, its) or mine, as_printed(column, that) or other)
            yield f"{column.title} {' against '.join(shown)}"


def _long(its: SiteResult, that: SiteResult) -> list[str]:
    return [field for field in _LONG if getattr(its, field) != getattr(that, field)]


def _options(its: SiteResult, that: SiteResult) -> list[str]:
    every = sorted({*its.options, *that.options})
    return [name for name in every if its.options.get(name) != that.options.get(name)]


def names(results: Iterable[SiteResult], that: SiteResult) -> list[str]:
    """The names of what any of some results has configured otherwise: 'TP', 'kernels'."""
    found: dict[str, None] = {}
    for it in results:
        every = (*_LAYOUT, *ours(columns.GA))
        found |= dict.fromkeys(one.title for one in every if known(one, it) != known(one, that))
        found |= dict.fromkeys((*_long(it, that), *_options(it, that)))
    return list(found)


Side = tuple[SiteResult, SiteResult]
"""A result of some work on a system, and what it is compared with on the first system."""


def compared_systems(title: str, results: Sequence[SiteResult]) -> Markup:
    """The table of the newest release of each framework; nothing where no work ran on two."""
    newest = [result for result in of_newest_releases(results) if is_on_gpus(result)]
    sides = list(sides_of(newest))
    if all(result is base for result, base in sides):
        return Markup("")
    fastest = [result for result, _ in sides]
    where, work = ours(columns.SYSTEM, columns.PRECISION, columns.GPUS), columns.WORK
    made = table(
        f"{title}: by system",
        [*described(where, fastest), *_figures(sides), *described(work, fastest)],
        ids=[hashed("systems", (*_system_work(it), *_size(it), it.system)) for it in fastest],
        notes=[tuple(_side_notes(*side)) for side in sides],
    )
    left_out = rows_left_out(sum(result.has_open_errors for result in newest))
    return render("by_system", table=made, left_out=left_out)


def sides_of(results: Iterable[SiteResult]) -> Iterator[Side]:
    """The fastest of each work on each system, of rows without open errors.

    A system is compared at the number of GPUs and the GBS of a row of the first system; where it
    ran at none of these, its fastest row is compared with the fastest of the first.
    """
    sized = best_of_each(results, RATE, lambda it: (_system_work(it), _size(it), it.system))
    for same in grouped(sized.values(), _system_work).values():
        by_system = grouped(same, lambda result: result.system)
        first, *others = sorted(by_system, key=system_order)
        bases = {_size(result): result for result in by_system[first]}
        fastest = max(by_system[first], key=_rate)
        held: dict[tuple[int, int], list[Side]] = {}
        for system in others:
            shared = [it for it in by_system[system] if _size(it) in bases]
            result = max(shared or by_system[system], key=_rate)
            base = bases.get(_size(result), fastest)
            held.setdefault(_size(base), []).append((result, base))
        for size, sides in (held or {_size(fastest): []}).items():
            yield from ((bases[size], bases[size]), *sides)


def _rate(result: SiteResult) -> float:
    return figure(result, RATE) or 0.0


def _system_work(result: SiteResult) -> tuple[object, ...]:
    """What two sides must share whatever their size."""
    return (
        result.framework, result.release, result.precision or "", result.task, result.variant,
        qualifiers(result), result.sequence_length, result.origin,
    )  # fmt: skip


def _size(result: SiteResult) -> tuple[int, int]:
    return result.num_gpus, result.global_batch_size


def _side_notes(result: SiteResult, base: SiteResult) -> Iterator[str]:
    """What of the size and the configuration is not as on the first system."""
    if different := ", ".join(_differing(_SIZE, result, base)):
        yield f"Not the same work: {different}."
    yield from note(result, base, lambda it: it.system_title)


def _figures(sides: Sequence[Side]) -> Iterator[Made]:
    """The rate, how much faster it is, and the time that a trillion tokens take."""
    rate, computed = METRICS[RATE].title, "10¹² ÷ tokens/s/GPU ÷ 3,600"
    by = f"{rate} ÷ that of the first system"
    against, hours, days = [], [], []
    for result, base in sides:
        ratio = _rate(result) / (_rate(base) or 1.0)
        text = f"{units.number(ratio, 2)} × {base.system_title}"
        is_first = result is base
        against.append(HtmlCell(units.UNKNOWN) if is_first else HtmlCell(text, sort=ratio))
        hours.append(HtmlCell(f"{metrics.gpu_hours(TRILLION, _rate(result)):,.0f}"))
        every = metrics.global_tokens_per_sec(_rate(result), result.num_gpus)
        days.append(HtmlCell(units.significant(metrics.days_to_train(TRILLION, every))))
    figures = [figure_cell(result, RATE) for result, _ in sides]
    yield HtmlHead(rate, numeric=True, falling=True), figures
    yield HtmlHead("Against", by, falling=True), against
    yield HtmlHead("GPU-hours per 1T tokens", computed, numeric=True), hours
    yield HtmlHead("Days to 1T tokens", "on the row's GPUs", numeric=True), days


@dataclass(frozen=True)
class PrecisionWork:
    """The same work in BF16 and in other precisions: the fastest result of each, by its name.

    `rate` is the figure that all of them know. `wrong` counts the rows with open errors, which are
    left out.
    """

    rate: Rate
    best: Mapping[str, SiteResult]
    wrong: int

    @property
    def base(self) -> SiteResult:
        return self.best[BASE]

    @property
    def place(self) -> tuple[str, str]:
        return self.base.framework, self.base.system


def compared_precisions(title: str, results: Sequence[SiteResult]) -> Markup:
    """A table for each rate: of each framework on each system its newest release with such work.

    Nothing where no work was done in BF16 and in another precision.
    """
    first, second = RATES
    in_tokens = list(_compared(results, first))
    done = {_precision_work(work.base) for work in in_tokens}
    others = [result for result in results if _precision_work(result) not in done]
    works = [*in_tokens, *_compared(others, second)]
    last = {
        place: max(newness(it.base.release, it.base.build) for it in there)
        for place, there in grouped(works, lambda work: work.place).items()
    }
    newest = [it for it in works if last[it.place] == newness(it.base.release, it.base.build)]
    newest.sort(key=lambda work: system_order(work.base.system))
    return joined(
        _of_rate(title, rate, some) for rate, some in grouped(newest, lambda it: it.rate).items()
    )


def _compared(results: Iterable[SiteResult], rate: Rate) -> Iterator[PrecisionWork]:
    """Each work of which BF16 and another precision state a rate."""
    stating = [it for it in results if it.precision is not None and figure(it, rate)]
    for same in grouped(stating, lambda it: (_precision_work(it), _convention(it, rate))).values():
        best = best_of_each(same, rate, lambda result: result.precision or "")
        if BASE in best and len(best) > 1:
            yield PrecisionWork(rate, best, wrong=sum(result.has_open_errors for result in same))


def _precision_work(result: SiteResult) -> tuple[object, ...]:
    """What is the same in every precision, and over which steps it was measured."""
    return (
        result.framework, result.release, result.system, result.task, result.variant,
        result.qualifiers, result.origin, result.num_gpus, result.sequence_length,
        result.global_batch_size, result.window,
    )  # fmt: skip


def _convention(result: SiteResult, rate: Rate) -> str | None:
    return result.flops_convention if rate == FLOPS else None


def _of_rate(title: str, rate: Rate, works: Sequence[PrecisionWork]) -> Markup:
    """The rate in each precision, BF16 first, and next to it how much faster that is."""
    heading = f"By precision: {METRICS[rate].title}"
    bases = [work.base for work in works]
    titles = {name: precision_of(it) for work in works for name, it in work.best.items()}
    columns_ = [*described(ours(columns.SYSTEM, columns.GPUS), bases)]
    for name in sorted(titles, key=_precision_order):
        head = HtmlHead(titles[name], METRICS[rate].title, numeric=True, falling=True)
        columns_.append((head, [figure_cell(it.best.get(name), rate) for it in works]))
        if name != BASE:
            by = f"{METRICS[rate].title} in {titles[name]} ÷ that in {titles[BASE]}"
            head = HtmlHead(f"{titles[name]} ÷ {titles[BASE]}", by, numeric=True, falling=True)
            columns_.append((head, [_speed_up(work, name) for work in works]))
    made = table(
        f"{title}: {heading}",
        [*columns_, *described(columns.WORK, bases)],
        ids=[
            hashed("precisions", (rate, _precision_work(it), _convention(it, rate))) for it in bases
        ],
        notes=[
            [
                sentence
                for name in sorted(work.best, key=_precision_order)
                for sentence in note(work.best[name], work.base, precision_of)
            ]
            for work in works
        ],
    )
    return render(
        "by_precision",
        heading=heading,
        table=made,
        computed=any(is_computed(it, rate) for work in works for it in work.best.values()),
        left_out=rows_left_out(sum(work.wrong for work in works)),
    )


def _speed_up(work: PrecisionWork, precision: str) -> HtmlCell:
    """The rate in a precision ÷ that in BF16; – where the work was not done in it."""
    result = work.best.get(precision)
    rate, base = result and figure(result, work.rate), figure(work.base, work.rate)
    return HtmlCell(units.number(rate / base if rate and base else None, 2))


def _precision_order(name: str) -> tuple[bool, tuple[int, str]]:
    """BF16 first; a precision that the catalog lacks comes last."""
    return name != BASE, precision_order(name)
