"""Precisions side by side: the same work in BF16 and in others, and how much faster they are."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Final

from markupsafe import Markup

from perfdb import catalog, units
from perfdb.groups import grouped
from perfdb.metrics import METRICS
from perfdb.site import bests, columns, differences
from perfdb.site.addresses import hashed
from perfdb.site.bests import precision_of
from perfdb.site.cells import FLOPS, HtmlCell, figure_cell
from perfdb.site.columns import GPUS, SYSTEM, ours
from perfdb.site.data import SiteResult
from perfdb.site.grouping import catalog_order, system_order
from perfdb.site.series import RATES, Rate
from perfdb.site.tables import HtmlHead, HtmlTable, Made, described, of_columns
from perfdb.site.templates import joined, render_text
from perfdb.stated import figure, is_computed
from perfdb.versions import Precedence, newness

BASE: Final = "bf16"
"""What the other precisions are held against."""

MOST_WORKS: Final = 8
"""Works of a framework on a system that stand open; the others are folded."""

_WHERE: Final = ours(SYSTEM, GPUS)

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
        known = (self.rate, _work(self.base), _convention(self.base, self.rate))
        return hashed("precisions", known)

    def speed_up(self, precision: str) -> float | None:
        """The rate in a precision ÷ that in BF16; None where the work was not done in it."""
        if precision not in self.best:
            return None
        rate, base = (figure(self.best[name], self.rate) for name in (precision, BASE))
        return rate / base if rate and base else None


def compared(title: str, results: Sequence[SiteResult]) -> Markup:
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
    done = {_work(work.base) for work in in_tokens}
    others = [result for result in results if _work(result) not in done]
    works = (*in_tokens, *_compared(others, second))
    return sorted(works, key=lambda work: system_order(work.base.system))


def _compared(results: Iterable[SiteResult], rate: Rate) -> Iterator[Work]:
    stating = [it for it in results if it.precision is not None and figure(it, rate)]
    for same in grouped(stating, lambda it: (_work(it), _convention(it, rate))).values():
        best = bests.best_of_each(same, rate, lambda result: result.precision or "")
        if BASE in best and len(best) > 1:
            yield Work(rate, best, wrong=sum(result.has_open_errors for result in same))


def _work(result: SiteResult) -> tuple[object, ...]:
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
    is_first = list(_is_first(works))
    others = [row for row, first in zip(every.rows, is_first, strict=True) if not first]
    shown = replace(every, rows=list(compress(every.rows, is_first))).html
    folded = render_text(
        "<details><summary>{{ count|counted('row') }} more</summary>{{ table }}</details>",
        count=len(others),
        table=replace(every, rows=others).html,
    )
    name = Markup("<h3>{}</h3>\n").format(heading)
    return joined((name, shown, _note(works), folded if others else ""))


def _is_first(works: Iterable[Work]) -> Iterator[bool]:
    counts: Counter[tuple[str, str]] = Counter()
    for work in works:
        counts[_place(work)] += 1
        yield counts[_place(work)] <= MOST_WORKS


def _table(label: str, works: Sequence[Work]) -> HtmlTable:
    bases = [work.base for work in works]
    before, after = (described(some, bases) for some in (_WHERE, columns.WORK))
    return of_columns(
        label,
        [*before, *_of_precisions(works), *after],
        ids=[work.anchor for work in works],
        notes=[tuple(_otherwise(work)) for work in works],
    )


def _of_precisions(works: Sequence[Work]) -> Iterator[Made]:
    """The rate in each precision, BF16 first, and beside it how much faster that is."""
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
        yield from differences.note(work.best[name], work.base, precision_of)


def _note(works: Sequence[Work]) -> Markup:
    """What is beside one another, and what is left out."""
    rates = [(result, work.rate) for work in works for result in work.best.values()]
    computed = any(is_computed(result, rate) for result, rate in rates)
    return bests.note(
        "On each system the newest release of each framework that did the same work in BF16 and in "
        "another precision. Of several configurations the fastest is taken; where it is not that "
        "of BF16 a note says so, and the ratio is of both changes. Ratios are computed from the "
        "rates.",
        _COMPUTED if computed else "",
        bests.contradicted(sum(work.wrong for work in works)),
    )
