"""The best figures: of each system, and the headline of a release."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from markupsafe import Markup

from perfdb import units
from perfdb.site.next import addresses
from perfdb.site.next.cells import FLOPS, HtmlCell, figure_text, work
from perfdb.site.next.data import SiteResult
from perfdb.site.next.grouping import system_order
from perfdb.stated import figure

Key = TypeVar("Key")

HEADLINE: Final = "Highest TFLOP/s"
RULE: Final = "of pre-training where there is any"
PRETRAINING: Final = "pretrain"


def best_of_each(
    results: Iterable[SiteResult], metric: str, key: Callable[[SiteResult], Key]
) -> dict[Key, SiteResult]:
    """For each key the result of the highest figure; rows with open errors are left out."""
    clean = [it for it in results if figure(it, metric) is not None and not it.has_open_errors]
    rising = sorted(clean, key=lambda result: figure(result, metric) or 0.0)
    return {key(result): result for result in rising}


def highest(results: Iterable[SiteResult], metric: str) -> dict[str, SiteResult]:
    """The highest figure on each system, in the order of the catalog, of rows without errors."""
    best = best_of_each(results, metric, lambda one: one.system)
    return {name: best[name] for name in sorted(best, key=system_order)}


def headlines(results: Sequence[SiteResult]) -> tuple[SiteResult, ...]:
    """The headline of each system: its highest TFLOP/s, of pre-training where it has any."""
    first = [one for one in results if one.task == PRETRAINING]
    return tuple((highest(results, FLOPS) | highest(first, FLOPS)).values())


@dataclass(frozen=True)
class Headline:
    """The highest TFLOP/s of several results, and where it was reached."""

    result: SiteResult
    where: str

    @property
    def cell(self) -> HtmlCell:
        """The figure, which leads to its row, and its work; sorted by the figure."""
        content = Markup('<a href="{}">{}</a> TFLOP/s/GPU: {}{}').format(
            addresses.table_row(self.result), figure_text(self.result, FLOPS), work(self.result),
            self.where,
        )  # fmt: skip
        return HtmlCell(content, sort=figure(self.result, FLOPS))


def headline_cell(results: Sequence[SiteResult], where: Callable[[SiteResult], str]) -> HtmlCell:
    """The headline of results; – where no row without an error states TFLOP/s.

    `where` says what comes behind the work.
    """
    ranked = ((one.task == PRETRAINING, figure(one, FLOPS) or 0.0) for one in headlines(results))
    pairs = zip(ranked, headlines(results), strict=True)
    top = max(pairs, key=lambda pair: pair[0], default=None)
    return Headline(top[1], where(top[1])).cell if top else HtmlCell(units.UNKNOWN)
