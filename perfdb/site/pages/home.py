"""The landing page: the newest release of each framework, what changed in it, the latest runs."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from perfdb import units
from perfdb.catalog import titles
from perfdb.compare import Comparison, Match, Verdict, report
from perfdb.groups import grouped
from perfdb.site import addresses, columns
from perfdb.site.cells import FLOPS, figure_text, work
from perfdb.site.data import SiteData, SiteResult
from perfdb.site.grouping import is_on_gpus, of_newest_releases, release_title
from perfdb.site.page import no_data
from perfdb.site.pages import parts, best_results
from perfdb.site.pages.changes import change_of, signed
from perfdb.site.pages.releases import TRIAL
from perfdb.site.pages.runs import latest_first
from perfdb.site.pairs import ReleasePair, disagreement, tally
from perfdb.site.tables import results_table
from perfdb.site.templates import render
from perfdb.stated import RATE

MOST_RUNS: Final = 5
UNITS: Final = {RATE: "tokens/s/GPU", FLOPS: "TFLOP/s/GPU", "step_time_s": "step time"}
"""The names of figures in a sentence."""


@dataclass(frozen=True)
class BestFigure:
    """The headline of a system: its figure, its row, the tab of the system, and the work."""

    system: str
    tab: str
    row: str
    figure: str
    work: str


@dataclass(frozen=True)
class ReleaseCard:
    """The newest release of a framework, its best figures, and what changed since the last."""

    results: Sequence[SiteResult]
    pair: ReleasePair | None

    @property
    def title(self) -> str:
        """'NeMo Framework 25.04'."""
        return release_title(self.results[0].framework, self.results[0].release)

    @property
    def document(self) -> str:
        """The page of the release."""
        return addresses.of_release(self.results[0].framework, self.results[0].release)

    @property
    def counts(self) -> str:
        """'39 published', '4 measured · 2 published'."""
        measured = sum(result.is_measured for result in self.results)
        published = len(self.results) - measured
        parts = [f"{measured:,} measured"] if measured else []
        parts += [f"{published:,} published"] if published else []
        return " · ".join([*parts, *([] if self.is_on_gpus else [TRIAL])])

    @property
    def is_on_gpus(self) -> bool:
        """Whether it has a result on a GPU."""
        return any(map(is_on_gpus, self.results))

    @property
    def left_out(self) -> Markup:
        """How many results with open errors are no best figure."""
        return parts.note(parts.rows_left_out(sum(it.has_open_errors for it in self.results)))

    @property
    def best(self) -> list[BestFigure]:
        """The headline of each system."""
        return [
            BestFigure(
                it.system_title,
                addresses.tab(it.framework, it.release, it.system),
                addresses.table_row(it),
                figure_text(it, FLOPS),
                work(it),
            )
            for it in best_results.headlines(self.results)
        ]

    @property
    def changes(self) -> list[str]:
        """What changed since the release before, in lines."""
        return list(_changes(self.pair)) if self.pair else []

    @property
    def order(self) -> tuple[bool, int, str]:
        """Those with results on GPUs come first, and of them the one with the most results."""
        name = titles.framework(self.results[0].framework)
        return not self.is_on_gpus, -len(self.results), name


def overview(data: SiteData) -> Markup:
    """The part of the landing page that is drawn from the store."""
    if not data.results and not data.runs:
        return no_data()
    latest = [page.result for page in latest_first(data.runs)[:MOST_RUNS]]
    table = results_table("Latest runs", latest, columns.LATEST).html if latest else ""
    unattributed = Counter(it.framework for it in data.results if it.release is None)
    total = unattributed.total()
    return render(
        "home",
        counts=list(_counts(data)),
        cards=_cards(data),
        headline=f"{best_results.HEADLINE} on each system, {best_results.RULE}",
        unattributed=[
            (release_title(name, None), addresses.of_release(name, None), count)
            for name, count in sorted(
                unattributed.items(), key=lambda one: titles.framework(one[0])
            )
        ],
        total=total,
        latest=table,
        runs=addresses.RUNS,
    )


def _counts(data: SiteData) -> Iterator[tuple[str, str, str]]:
    """How many there are of what is on the site, and the pages that list them."""
    results = data.results
    counts = {
        "release": (len({(it.framework, it.release) for it in results}), addresses.ARCHIVE),
        "result": (len(results), addresses.PERFORMANCE),
        "run": (len(data.runs), addresses.RUNS),
        "model": (len({it.model for it in results}), addresses.MODELS),
        "system": (len({it.system for it in results}), addresses.SYSTEMS),
        "open finding": (sum(len(it.open) for it in data.audited), addresses.AUDIT),
    }
    for what, (count, page) in counts.items():
        yield units.number(count), what if count == 1 else f"{what}s", page


def _cards(data: SiteData) -> list[ReleaseCard]:
    """One card for each framework, for its newest release."""
    by_framework = grouped(of_newest_releases(data.results), lambda one: one.framework)
    compared = {pair.framework: pair for pair in data.pairs if pair.is_newest}
    cards = [ReleaseCard(some, compared.get(name)) for name, some in by_framework.items()]
    return sorted(cards, key=lambda card: card.order)


def _changes(pair: ReleasePair) -> Iterator[str]:
    """How the comparison came out, where TFLOP/s changed otherwise, the extremes, the models."""
    found = pair.comparison
    figures = dict.fromkeys(UNITS[match.metric] for match in found.judged)
    yield tally(pair).text(f" by {' or '.join(figures)}" if figures else "")
    disagreements = list(filter(None, map(disagreement, found.matched)))
    for one in disagreements[:1]:
        some = f"{len(disagreements):,} of {len(found.matched):,} matched"
        yield f"TFLOP/s disagree in {some}: {one.work}: {one.text}"
    yield from _extremes(found)
    sides = [*(match.a for match in found.matched), *found.only_a]
    before = {side.shown.model_title for side in sides}
    sides = [*(match.b for match in found.matched), *found.only_b]
    after = {side.shown.model_title for side in sides}
    for name, models in (("new", after - before), ("no longer there", before - after)):
        if models:
            yield f"{name}: {', '.join(sorted(models))}"


def _extremes(found: Comparison) -> Iterator[str]:
    """The largest change for the better and for the worse."""
    named = {"best": _extreme(found, Verdict.FASTER), "worst": _extreme(found, Verdict.SLOWER)}
    known = {name: most for name, most in named.items() if most}
    names = [report.workload(it.b.shown) for it in known.values()]
    works = report.told_apart(names, [*known.values()])
    for (name, most), work_ in zip(known.items(), works, strict=True):
        yield f"{name}: {signed(change_of(most))} {UNITS[most.metric]}, {work_}"


def _extreme(found: Comparison, verdict: Verdict) -> Match | None:
    """The largest change of a verdict: one that is the same within its noise may be larger."""
    changed = (match for match in found.matched if match.judgement.verdict is verdict)
    return max(changed, key=lambda match: abs(change_of(match) or 0.0), default=None)
