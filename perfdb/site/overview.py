"""The landing page: the newest release of each framework, what changed in it, the latest runs."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from perfdb import units
from perfdb.compare import Comparison, Match, Side, Verdict, words
from perfdb.groups import grouped
from perfdb.record import Frozen
from perfdb.site import addresses, headline, markup, tables
from perfdb.site.addresses import Address
from perfdb.site.bests import FLOPS, RATE, contradicted, note, said
from perfdb.site.change_chart import change_of, signed
from perfdb.site.contents import Contents, ReleasePair
from perfdb.site.data import Result
from perfdb.site.evidence import latest_first
from perfdb.site.findings import still_open
from perfdb.site.grouping import is_on_gpus, of_newest_releases
from perfdb.site.markup import Html, joined, link, tag
from perfdb.site.page import Kind, Page
from perfdb.site.pairs import disagreement, tally
from perfdb.site.profiles import LATEST
from perfdb.site.rows import row_id
from perfdb.site.words import TRIAL, framework_title, release_title

MOST_RUNS: Final = 5

UNITS: Final = {RATE: "tokens/s/GPU", FLOPS: "TFLOP/s/GPU", "step_time_s": "step time"}
"""What figures that matches are judged by are called in a sentence."""

NO_DATA = Html(
    '<div class="admonition note"><p class="admonition-title">There is no data yet</p>'
    "<p>The store holds no results. Run a benchmark, read it into the store, and build the site "
    "again:</p><pre>perfdb run recipes/smoke\nperfdb ingest\nmake docs</pre>"
    "<p>Published pages are read in the same way: <code>perfdb ingest PAGE.md</code>.</p></div>"
)
"""What stands where there is nothing to show."""


class Since(Frozen):
    """What changed since the release before, in lines; `page` compares the two."""

    before: str
    page: str
    changes: tuple[str, ...]


class ReleaseCard(Frozen):
    """The newest release of a framework, its best figure on each system, and what changed.

    `wrong` counts the results with open errors, of which none is the best.
    """

    framework: str
    release: str | None
    on_gpus: bool
    wrong: int
    measured: int
    published: int
    best: tuple[Result, ...]
    since: Since | None


class Overview(Frozen):
    """Everything on the landing page. `open_findings`: warnings and errors.

    `unattributed` counts the results of each framework that are of no release that is known.
    """

    releases: int
    results: int
    runs: int
    models: int
    systems: int
    open_findings: int
    unattributed: tuple[tuple[str, int], ...]
    cards: tuple[ReleaseCard, ...]
    latest: tuple[Result, ...]


def of_contents(contents: Contents) -> Overview:
    """The counts, cards and latest runs of a store."""
    results = contents.results
    return Overview(
        releases=len({(one.framework, one.release) for one in results}),
        results=len(results),
        runs=len(contents.runs),
        models=len({result.model for result in results}),
        systems=len({result.system for result in results}),
        open_findings=sum(len(still_open(one)) for one in contents.audited),
        unattributed=_unattributed(results),
        cards=tuple(_cards(results, contents.pairs)),
        latest=tuple(page.result for page in latest_first(contents.runs)[:MOST_RUNS]),
    )


def _unattributed(results: Iterable[Result]) -> tuple[tuple[str, int], ...]:
    """The frameworks by their titles, and how many results of each name no release."""
    found = Counter(one.framework for one in results if one.release is None)
    return tuple(sorted(found.items(), key=lambda one: framework_title(one[0])))


def _cards(results: Sequence[Result], pairs: Iterable[ReleasePair]) -> list[ReleaseCard]:
    """One card for each framework, for its newest release.

    Those with results on GPUs come first, and of them the one with the most results.
    """
    by_framework = grouped(of_newest_releases(results), lambda one: one.framework)
    compared = {pair.framework: pair for pair in pairs if pair.is_newest}
    made = [_card(some, compared.get(name)) for name, some in by_framework.items()]
    return sorted(made, key=_place)


def _place(card: ReleaseCard) -> tuple[bool, int, str]:
    return not card.on_gpus, -(card.measured + card.published), framework_title(card.framework)


def _card(results: Sequence[Result], pair: ReleasePair | None) -> ReleaseCard:
    measured = sum(result.is_measured for result in results)
    return ReleaseCard(
        framework=results[0].framework,
        release=results[0].release,
        on_gpus=any(map(is_on_gpus, results)),
        wrong=sum(result.has_open_errors for result in results),
        measured=measured,
        published=len(results) - measured,
        best=headline.of_systems(results),
        since=_since(pair) if pair else None,
    )


def _since(pair: ReleasePair) -> Since:
    return Since(before=pair.before, page=pair.document, changes=tuple(_changes(pair)))


def _changes(pair: ReleasePair) -> Iterator[str]:
    """How the comparison came out, where TFLOP/s tell another story, the extremes, the models."""
    found, counted = pair.comparison, tally(pair)
    figures = dict.fromkeys(UNITS[match.metric] for match in found.judged)
    yield counted.said(f" by {' or '.join(figures)}" if figures else "")
    disagreements = list(filter(None, map(disagreement, found.matched)))
    for one in disagreements[:1]:
        some = f"{len(disagreements):,} of {len(found.matched):,} matched"
        yield f"TFLOP/s disagree in {some}: {one.work}: {one.said}"
    extremes = {"best": _extreme(found, Verdict.FASTER), "worst": _extreme(found, Verdict.SLOWER)}
    known = {name: most for name, most in extremes.items() if most}
    works = words.told_apart(
        [words.workload(it.b.shown) for it in known.values()], [*known.values()]
    )
    for (name, most), work in zip(known.items(), works, strict=True):
        yield f"{name}: {signed(change_of(most))} {UNITS[most.metric]}, {work}"
    before = _models([*(match.a for match in found.matched), *found.only_a])
    after = _models([*(match.b for match in found.matched), *found.only_b])
    for name, models in (("new", after - before), ("no longer there", before - after)):
        if models:
            yield f"{name}: {', '.join(sorted(models))}"


def _models(sides: Iterable[Side]) -> set[str]:
    """The titles of the models that sides are of."""
    return {side.shown.model_title for side in sides}


def _extreme(found: Comparison, verdict: Verdict) -> Match | None:
    """The largest change of a verdict: one that is the same within its noise may be larger."""
    changed = (match for match in found.matched if match.judgement.verdict is verdict)
    return max(changed, key=lambda match: abs(change_of(match) or 0.0), default=None)


def _pages(contents: Contents) -> Iterator[Page]:
    yield Page(addresses.OVERVIEW, None, of_contents(contents))


def html(overview: Overview, address: Address) -> Html:
    """The landing page's part that is drawn from the store."""
    if not overview.results and not overview.runs:
        return NO_DATA
    cards = [_card_html(card, address) for card in overview.cards]
    parts = [
        _counts(overview, address),
        tag("h2", "Newest releases"),
        tag("div", cards, class_="perf-cards"),
        *_left_out(overview.unattributed, address),
    ]
    return joined((*parts, *_latest(overview.latest, address)))


def _counts(overview: Overview, address: Address) -> Html:
    counts = (
        (overview.releases, "release", addresses.ARCHIVE),
        (overview.results, "result", addresses.PERFORMANCE),
        (overview.runs, "run", addresses.RUNS),
        (overview.models, "model", addresses.MODELS),
        (overview.systems, "system", addresses.SYSTEMS),
        (overview.open_findings, "open finding", addresses.AUDIT),
    )
    shown = []
    for count, what, page in counts:
        counted = link(what if count == 1 else f"{what}s", address(page))
        shown.append(tag("div", (tag("strong", units.number(count)), tag("span", counted))))
    return tag("div", shown, class_="perf-counts")


def _left_out(unattributed: Sequence[tuple[str, int]], address: Address) -> list[Html]:
    """How many results name no release, and where they are."""
    if not unattributed:
        return []
    count = sum(number for _, number in unattributed)
    said = f"{units.counted(count, 'result')} {'is' if count == 1 else 'are'}"
    pages = [
        joined((link(release_title(name, None), address(addresses.of_release(name, None))),
                f" ({number:,})" if number < count else ""))
        for name, number in unattributed
    ]  # fmt: skip
    return [tag("p", (f"{said} of a release that nobody stated: ", joined(pages, ", "), "."))]


def _latest(latest: Sequence[Result], address: Address) -> list[Html]:
    if not latest:
        return []
    made = tables.results_table("Latest runs", latest, LATEST, address)
    more = tag("p", link("All runs", address(addresses.RUNS)))
    return [tag("h2", "Latest runs"), markup.table(made), more]


def _card_html(card: ReleaseCard, address: Address) -> Html:
    page = address(addresses.of_release(card.framework, card.release))
    title = tag("h3", link(release_title(card.framework, card.release), page))
    parts = [f"{card.measured:,} measured"] if card.measured else []
    parts += [f"{card.published:,} published"] if card.published else []
    parts += [] if card.on_gpus else [TRIAL]
    counts = tag("p", " · ".join(parts), class_="perf-card-counts")
    left_out = note(contradicted(card.wrong))
    since = [_since_html(card.since, address)] if card.since else []
    best = _best(card.best, address)
    return tag("section", (title, counts, *best, left_out, *since), class_="perf-card")


def _best(results: Sequence[Result], address: Address) -> list[Html]:
    if not results:
        return []
    title = f"{headline.TITLE} on each system, {headline.RULE}"
    said = tag("p", title, class_="perf-card-counts")
    return [said, tag("ul", [_headline(result, address) for result in results])]


def _headline(result: Result, address: Address) -> Html:
    """The headline of a system, with its row behind it, and behind the system's name its tab."""
    row = addresses.of_row(result.framework, result.release, row_id(result), address)
    figure = tag("strong", link(said(result, FLOPS), row))
    rate = tag("span", (figure, " TFLOP/s/GPU"), class_="perf-rate")
    tab = addresses.of_tab(result.framework, result.release, result.system, address)
    work = tag("small", headline.work(result))
    return tag("li", joined((tag("span", link(result.system_title, tab)), rate, work), "\n"))


def _since_html(since: Since, address: Address) -> Html:
    """What changed since the release before, with the comparison behind it."""
    title = tag("h4", ("Since ", link(since.before, address(since.page))))
    return tag("div", (title, *(tag("p", line) for line in since.changes)), class_="perf-since")


KIND = Kind(_pages)
