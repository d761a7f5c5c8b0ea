"""Systems side by side: the best of each at work that is alike, and what 10¹² tokens take."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from perfdb import metrics, units
from perfdb.groups import grouped
from perfdb.metrics import METRICS, TRILLION
from perfdb.site import bests, columns, differences
from perfdb.site.addresses import hashed
from perfdb.site.cells import HtmlCell, figure_cell
from perfdb.site.columns import GBS, GPUS, PRECISION, SYSTEM, ours
from perfdb.site.data import SiteResult
from perfdb.site.grouping import is_on_gpus, of_newest_releases, system_order
from perfdb.site.series import qualifiers
from perfdb.site.tables import HtmlHead, Made, described, table
from perfdb.site.templates import joined
from perfdb.stated import RATE, figure

_WHERE: Final = ours(SYSTEM, PRECISION, GPUS)
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
        known = (*_work(self.result), *_size(self.result), self.result.system)
        return hashed("systems", known)

    @property
    def is_first(self) -> bool:
        """Whether it is what the others are held against."""
        return self.result is self.base

    @property
    def ratio(self) -> float:
        """Its rate ÷ that of the base."""
        return self.rate / (figure(self.base, RATE) or 1.0)


def compared(title: str, results: Sequence[SiteResult]) -> Markup:
    """The table of the newest release of each framework; nothing where no work ran on two."""
    newest = [result for result in of_newest_releases(results) if is_on_gpus(result)]
    sides = list(sides_of(newest))
    if all(side.is_first for side in sides):
        return Markup("")
    fastest = [side.result for side in sides]
    before, after = (described(some, fastest) for some in (_WHERE, columns.WORK))
    made = table(
        f"{title}: by system",
        [*before, *_figures(sides), *after],
        ids=[side.anchor for side in sides],
        notes=[
            (*_other_size(side), *differences.note(side.result, side.base, _system))
            for side in sides
        ],
    )
    left_out = bests.contradicted(sum(result.has_open_errors for result in newest))
    return joined((Markup("<h3>By system</h3>\n"), made, bests.note(_NOTE, left_out)))


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
    sized = bests.best_of_each(results, RATE, lambda it: (_work(it), _size(it), it.system))
    for same in grouped(sized.values(), _work).values():
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


def _work(result: SiteResult) -> tuple[object, ...]:
    """What two sides must share whatever their size."""
    return (
        result.framework, result.release, result.precision or "", result.task, result.variant,
        qualifiers(result), result.sequence_length, result.origin,
    )  # fmt: skip


def _size(result: SiteResult) -> _Size:
    return result.num_gpus, result.global_batch_size


def _system(result: SiteResult) -> str:
    return result.system_title


def _other_size(side: SystemSide) -> Iterator[str]:
    """That the work is not the same, as the GPUs or the batch are not; nothing where they are."""
    if different := ", ".join(differences.of_columns(_SIZE, side.result, side.base)):
        yield f"Not the same work: {different}."


def _figures(sides: Sequence[SystemSide]) -> Iterator[Made]:
    """The rate, how much faster it is, and what a trillion tokens takes."""
    rate = METRICS[RATE].title
    head = HtmlHead(rate, numeric=True, falling=True)
    yield head, [figure_cell(one.result, RATE) for one in sides]
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
