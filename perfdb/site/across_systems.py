"""Systems side by side: the best of each at the same work, and what 10¹² tokens take there."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from perfdb import metrics, units
from perfdb.groups import grouped
from perfdb.metrics import METRICS, TRILLION
from perfdb.site import bests, columns, differences, figures, markup
from perfdb.site.addresses import Address, hashed
from perfdb.site.bests import RATE
from perfdb.site.data import Result
from perfdb.site.grouping import is_on_gpus, of_newest_releases, system_order
from perfdb.site.markup import Cell, Head, Html, joined, tag
from perfdb.site.profiles import GPUS, PRECISION, SYSTEM, ours
from perfdb.site.series import qualifiers

_WHERE: Final = ours(SYSTEM, PRECISION, GPUS)


@dataclass(frozen=True)
class Side:
    """The fastest result of some work on a system, and that on the first system that has it."""

    result: Result
    base: Result

    @property
    def rate(self) -> float:
        """Tokens/s/GPU."""
        return figures.figure(self.result, RATE) or 0.0

    @property
    def anchor(self) -> str:
        """What its row is called, the same in every build and whatever its figures."""
        known = (*_work(self.result), self.result.system)
        return hashed("systems", known)

    @property
    def is_first(self) -> bool:
        """Whether it is what the others are held against."""
        return self.result is self.base

    @property
    def ratio(self) -> float:
        """Its rate ÷ that of the base."""
        return self.rate / (figures.figure(self.base, RATE) or 1.0)


def compared(title: str, results: Sequence[Result], address: Address) -> Html:
    """The table of the newest release of each framework; nothing where no work ran on two."""
    newest = [result for result in of_newest_releases(results) if is_on_gpus(result)]
    sides = list(sides_of(newest))
    if all(side.is_first for side in sides):
        return Html("")
    fastest = [side.result for side in sides]
    before, after = (columns.described(some, fastest, address) for some in (_WHERE, columns.WORK))
    table = columns.table(
        f"{title}: by system",
        [*before, *_figures(sides, address), *after],
        ids=[side.anchor for side in sides],
        notes=[
            tuple(differences.note(side.result, side.base, lambda it: it.system_title))
            for side in sides
        ],
    )
    left_out = bests.contradicted(sum(result.has_open_errors for result in newest))
    return joined((tag("h3", "By system"), markup.table(table), bests.note(_NOTE, left_out)))


_NOTE: Final = (
    "The fastest of each system at the same work, in the newest release of each framework. "
    "GPU-hours are 10¹² ÷ tokens/s/GPU ÷ 3,600; times a price for an hour of a GPU they are the "
    "cost. Days are for the row's number of GPUs. Both are of training without a pause."
)


def sides_of(results: Iterable[Result]) -> Iterator[Side]:
    """The fastest of each work on each system, of rows without open errors."""
    best = bests.best_of_each(results, RATE, lambda result: (_work(result), result.system))
    for same in grouped(best.values(), _work).values():
        ordered = sorted(same, key=lambda result: system_order(result.system))
        yield from (Side(result, base=ordered[0]) for result in ordered)


def _work(result: Result) -> tuple[object, ...]:
    """What is the same on every system. Of GPUs and batches there are as many as it takes."""
    return (
        result.framework, result.release, result.precision or "", result.task, result.variant,
        qualifiers(result), result.sequence_length, result.origin,
    )  # fmt: skip


def _figures(sides: Sequence[Side], address: Address) -> Iterator[columns.Made]:
    """The rate, how much faster it is, and what a trillion tokens takes."""
    rate = METRICS[RATE].title
    head = Head(rate, numeric=True, falling=True)
    yield head, [columns.figure(one.result, RATE, address) for one in sides]
    head = Head("Against", f"{rate} ÷ that of the first system, computed", falling=True)
    yield head, [_against(side) for side in sides]
    head = Head("GPU-hours per 1T tokens", "10¹² ÷ tokens/s/GPU ÷ 3,600, computed", numeric=True)
    yield head, [Cell(f"{metrics.gpu_hours(TRILLION, one.rate):,.0f}") for one in sides]
    head = Head("Days to 1T tokens", "on the row's GPUs, computed", numeric=True)
    yield head, [Cell(units.significant(_days(one))) for one in sides]


def _against(side: Side) -> Cell:
    """'2.20 × DGX-H100'."""
    if side.is_first:
        return Cell(units.UNKNOWN)
    return Cell(f"{units.number(side.ratio, 2)} × {side.base.system_title}", sort=side.ratio)


def _days(side: Side) -> float:
    every = metrics.global_tokens_per_sec(side.rate, side.result.num_gpus)
    return metrics.days_to_train(TRILLION, every)
