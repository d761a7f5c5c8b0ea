"""How fast flagship models train: a small chart for each, with a bar for each system."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Final

from markupsafe import Markup

from perfdb.catalog import colors
from perfdb.compare import match
from perfdb.site import addresses, charts
from perfdb.site.cells import figure_text
from perfdb.site.charts import ChartBar
from perfdb.site.data import SiteResult
from perfdb.site.grouping import ReleaseName, newest_system_order
from perfdb.site.pages.best_results import PRETRAINING
from perfdb.site.pages.parts import label
from perfdb.site.templates import render, with_short_hashes
from perfdb.stated import RATE, figure

MOST: Final = 5
"""Models that have a chart."""

Dates = Mapping[ReleaseName, date]
"""When each release came out."""
Flagships = Sequence[Sequence[SiteResult]]
"""The results of each model, one for each system, of the newest system first."""


def of(results: Iterable[SiteResult], dates: Dates) -> Flagships:
    """The models that were pre-trained on the most systems, each with its newest best results.

    The bars of a model are of one precision and sequence length: of those with the most systems,
    then the newest, then the fastest. On each system it is the highest tokens/s/GPU of the newest
    release that has the model there. Rows with open errors are left out.
    """
    known = [
        it
        for it in results
        if it.task == PRETRAINING and not it.has_open_errors and figure(it, RATE)
    ]

    def newest_fastest(one: SiteResult) -> tuple[date, float]:
        return day(one, dates), figure(one, RATE) or 0.0

    alike: dict[tuple[object, ...], dict[str, SiteResult]] = {}
    for one in sorted(known, key=newest_fastest):
        alike.setdefault(match.kind(one)[1:], {})[one.system] = one
    groups = sorted(
        (list(some.values()) for some in alike.values()),
        key=lambda some: (len(some), max(map(newest_fastest, some))),
    )
    by_model = list({some[0].model: some for some in groups}.values())
    rows = Counter(one.model for one in known)
    by_model.sort(key=lambda some: (-len(some), -rows[some[0].model], some[0].model_title))
    return [sorted(some, key=lambda it: newest_system_order(it.system)) for some in by_model[:MOST]]


def day(result: SiteResult, dates: Dates) -> date:
    """When the release of a result came out."""
    return dates[result.framework, result.release]


def panels(flagships: Flagships, parts: Sequence[str]) -> Markup:
    """The charts with one key; nothing without a model. `parts` are those of the labels of bars."""
    if not flagships:
        return Markup("")
    systems = {it.system: it.system_title for some in flagships for it in some}
    colours = {systems[it]: _colour(it) for it in sorted(systems, key=newest_system_order)}
    drawn = [_panel(some, parts) for some in flagships]
    return render("flagships", key=charts.key(colours), panels=drawn)


def _panel(results: Sequence[SiteResult], parts: Sequence[str]) -> dict[str, object]:
    """A model with a bar for each system."""
    first = results[0]
    bars = [
        ChartBar(
            with_short_hashes(label(parts, it)),
            figure(it, RATE) or 0.0,
            figure_text(it, RATE),
            _colour(it.system),
        )
        for it in results
    ]
    title = f"{first.model_title}: tokens/s/GPU by system"
    return {
        "title": first.model_title,
        "document": addresses.of_model(first.model),
        "chart": charts.bars(title, "Tokens/s/GPU", bars),
    }


def _colour(system: str) -> str:
    return charts.colour(colors.of_system(system))
