"""The landing page's figures and cards: the newest release of each framework and its best runs."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from perfdb import catalog, units
from perfdb.record import Origin
from perfdb.site import addresses
from perfdb.site.addresses import Address
from perfdb.site.data import Overview, ReleaseCard, Result
from perfdb.site.markup import Content, Html, joined, link, tag
from perfdb.site.profiles import MODEL, TFLOPS
from perfdb.site.tables import as_printed, formatted, known
from perfdb.site.words import natural, release_title, slug

NO_DATA = Html(
    '<div class="admonition note"><p class="admonition-title">There is no data yet</p>'
    "<p>The store holds no results. Run a benchmark, read it into the store, and build the site "
    "again:</p><pre>perfdb run recipes/smoke\nperfdb ingest\nmake docs</pre>"
    "<p>Published pages are read in the same way: <code>perfdb ingest PAGE.md</code>.</p></div>"
)
"""What stands where there is nothing to show."""


def of_results(results: Sequence[Result], num_runs: int) -> Overview:
    """The counts and cards of all results in force."""
    releases = {(result.framework, result.release) for result in results}
    return Overview(
        releases=len(releases),
        results=len(results),
        runs=num_runs,
        models=len({result.model for result in results}),
        systems=len({result.system for result in results}),
        cards=tuple(_cards(results)),
    )


def _cards(results: Iterable[Result]) -> list[ReleaseCard]:
    """One card for each framework, for the newest of its releases that has a version."""
    by_release: dict[tuple[str, str | None], list[Result]] = defaultdict(list)
    for result in results:
        by_release[result.framework, result.release].append(result)
    newest: dict[str, tuple[str, str | None]] = {}
    for release in sorted(by_release, key=lambda one: natural(one[1] or "")):
        newest[release[0]] = release
    return [_card(*newest[name], by_release[newest[name]]) for name in sorted(newest)]


def _card(framework: str, release: str | None, results: Sequence[Result]) -> ReleaseCard:
    measured = sum(result.origin == Origin.MEASURED.value for result in results)
    best: dict[str, Result] = {}
    for result in sorted(results, key=lambda one: one.model_tflops_per_sec_per_gpu or 0):
        best[result.system] = result
    return ReleaseCard(
        framework=framework,
        release=release,
        measured=measured,
        published=len(results) - measured,
        best=tuple(best[name] for name in sorted(best)),
    )


def html(overview: Overview, address: Address) -> Html:
    """The landing page's part that is drawn from the store."""
    if not overview.results and not overview.runs:
        return NO_DATA
    cards = [_card_html(card, address) for card in overview.cards]
    newest = tag("h2", "Newest releases")
    return joined((_counts(overview, address), newest, tag("div", cards, class_="perf-cards")))


def _counts(overview: Overview, address: Address) -> Html:
    performance, runs = address(addresses.PERFORMANCE), address(addresses.RUNS)
    counts: list[tuple[int, Content]] = [
        (overview.releases, link("releases", performance)),
        (overview.results, link("results", performance)),
        (overview.runs, link("runs", runs)),
        (overview.models, "models"),
        (overview.systems, "systems"),
    ]
    shown = [
        tag("div", (tag("strong", units.number(count)), tag("span", what)))
        for count, what in counts
    ]
    return tag("div", shown, class_="perf-counts")


def _card_html(card: ReleaseCard, address: Address) -> Html:
    page = address(addresses.of_release(card.framework, card.release))
    title = tag("h3", link(release_title(card.framework, card.release), page))
    parts = [f"{card.measured:,} measured"] if card.measured else []
    parts += [f"{card.published:,} published"] if card.published else []
    counts = tag("p", " · ".join(parts), class_="perf-card-counts")
    best = [_best(result, page) for result in card.best if result.model_tflops_per_sec_per_gpu]
    return tag("section", (title, counts, tag("ul", best)), class_="perf-card")


def _best(result: Result, page: str) -> Html:
    """The highest figure on a system, with the tab it is in behind it."""
    figure = as_printed(TFLOPS, result) or formatted(TFLOPS, known(TFLOPS, result))
    rate = tag("span", (tag("strong", figure), " TFLOP/s/GPU"), class_="perf-rate")
    system = link(result.system_title, f"{page}?system={slug(result.system)}")
    model = as_printed(MODEL, result) or result.model_title
    gpus = f"{result.num_gpus:,} GPU{'s' if result.num_gpus > 1 else ''}"
    said = tag("small", f"best: {model}, {gpus}, {_precision(result)}")
    return tag("li", (tag("span", system), rate, said))


def _precision(result: Result) -> str:
    entry = catalog.precisions().get(result.precision or "")
    return entry.title if entry else "precision not stated"
