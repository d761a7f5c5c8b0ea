"""The pages of releases, and their list, the newest first."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import PurePosixPath
from typing import Final

from markupsafe import Markup

from perfdb.audit.report import of_kinds
from perfdb.catalog import titles
from perfdb.groups import grouped
from perfdb.site import addresses, columns, grouping, page
from perfdb.site.addresses import UNATTRIBUTED
from perfdb.site.cells import HtmlCell
from perfdb.site.data import GRAVE, Audited, Link, SiteData, SiteResult
from perfdb.site.grouping import ReleaseName, is_on_gpus, release_title
from perfdb.site.page import Block, Section, SitePage, Tab
from perfdb.site.pages import best_results, flagships
from perfdb.site.pages.best_results import HEADLINE, headline_cell
from perfdb.site.pages.parts import heads
from perfdb.site.tables import HtmlHead, plain
from perfdb.site.templates import joined, link, paragraph, render, render_text, with_short_hashes
from perfdb.units import UNKNOWN, counted
from perfdb.versions import is_numbered, is_rolling

LABEL: Final = "ref-performance"
"""What {ref} calls the list of releases; the page of each is called by its name behind that."""
BELOW: Final = (addresses.CHANGELOG, addresses.AUDIT)
"""Other pages that the navigation lists below the list of releases."""
TRIAL: Final = "CPU test"
"""What a release without a result on a GPU is."""
NONE: Final = "No releases yet."


@dataclass(frozen=True)
class ReleaseData:
    """A release of a framework and its results; `also` are pages that have more of it."""

    framework: str
    release: str | None
    results: tuple[SiteResult, ...]
    also: tuple[Link, ...] = ()

    @property
    def document(self) -> str:
        return addresses.of_release(self.framework, self.release)

    @property
    def title(self) -> str:
        return release_title(self.framework, self.release)

    @property
    def month(self) -> date | None:
        """The first day of the month in its version, as of 25.04."""
        return grouping.month_of(self.release)

    @property
    def on_gpus(self) -> bool:
        return any(map(is_on_gpus, self.results))

    @property
    def shown(self) -> Sequence[SiteResult]:
        """Its results in lists of releases: without CPU tests, where it has others."""
        return grouping.on_gpus(self.results)

    @property
    def containers(self) -> list[str]:
        return sorted({it.container for it in self.results if it.container})


def of_results(results: Iterable[SiteResult]) -> list[ReleaseData]:
    """All releases, by framework, the newest first."""
    by_release = grouped(results, lambda result: (result.framework, result.release))
    made = [ReleaseData(*name, tuple(some)) for name, some in by_release.items()]
    return grouping.newest_first(made, [result for one in made for result in one.results])


def of_data(data: SiteData) -> list[ReleaseData]:
    """All releases, with links to the pages that have more of each."""
    return _linked(data, _objections(data.audited))


def _linked(data: SiteData, objections: Mapping[ReleaseName, str]) -> list[ReleaseData]:
    links: dict[ReleaseName, list[Link]] = defaultdict(list)
    for pair in data.pairs:
        for release, other in itertools.permutations((pair.after, pair.before)):
            links[pair.framework, release].append(Link(f"compared with {other}", pair.document))
    for one in data.scaling:
        title = f"scaling on {one.system_title}"
        links[one.framework, one.release].append(Link(title, one.document))
    for name, text in objections.items():
        links[name].append(Link(f"{text} found by the audit", addresses.of_audit(*name)))
    return [
        replace(one, also=tuple(links[one.framework, one.release]))
        for one in of_results(data.results)
    ]


def _objections(audited: Iterable[Audited]) -> dict[ReleaseName, str]:
    """'2 errors, 1 warning': the open findings of each release."""
    found: dict[ReleaseName, Counter[str]] = defaultdict(Counter)
    for entry in audited:
        still_open = [it for it in entry.kinds if it in GRAVE]
        found[entry.result.framework, entry.result.release].update(still_open)
    return {name: of_kinds(numbers) for name, numbers in found.items() if numbers}


def pages(data: SiteData) -> Iterator[SitePage]:
    """The page of each release, and the list of them."""
    objections = _objections(data.audited)
    every = _linked(data, objections)
    releases = [one for one in every if one.on_gpus] or every
    frameworks = grouped(releases, lambda release: release.framework)
    names = page.summary_of_names(titles.framework(one.framework) for one in releases)
    about = f"{counted(len(releases), 'release')} of {names}: dates, results and best figures."
    yield SitePage(
        addresses.PERFORMANCE,
        "Performance",
        about if releases else NONE,
        partial(_list, frameworks, None if data.is_public else objections),
        below=[*(release.document for release in releases), *BELOW],
        label=LABEL,
    )
    for one in every:
        models = counted(len({result.model for result in one.results}), "model")
        parts = grouping.sections(one.results)
        systems = page.summary_of_names(
            title for part in parts for title in grouping.system_titles(part.results)
        )
        about = f"{one.title}: {page.summary_of_results(one.results)} of {models} on {systems}."
        label = addresses.label(one.framework, one.release)
        yield SitePage(one.document, one.title, about, partial(_release, one), label=label)


def _release(release: ReleaseData) -> list[Block]:
    """A chart, the head, and a section for each task with a tab for each system."""
    # the search passes over words of digits alone, and '25.07' is two of them
    entry = f"{release.release}; {release.framework} {release.release}"
    made: list[Block] = [_chart(release), head(release)]
    made += [page.IndexEntry(entry)] if release.release else []
    for part in grouping.sections(release.results):
        tabs = []
        for one in grouping.newest_systems_first(part.results):
            label = f"{part.title}, {one.title} results"
            profile = columns.figures_first(columns.of_results(one.results))
            blocks = page.offered(label, one.results, profile)
            tabs.append(Tab(one.name, one.title, blocks))
        made.append(Section(part.title, [page.Tabs("system", tabs)]))
    return made


def _chart(release: ReleaseData) -> Markup:
    """A chart for each of its flagship models, with a bar for each system.

    Where no model ran on two systems, the best of each model, of pre-training where there is any.
    """
    shown = grouping.on_gpus(release.results)
    models = flagships.of(shown, grouping.release_dates(shown))
    if any(len(some) > 1 for some in models):
        note = (
            "The fastest pre-training of each model on each system, in tokens/s/GPU. "
            "The tables have every figure."
        )
        drawn = flagships.panels(models, ("system", "precision", "number of GPUs"))
        return joined((drawn, paragraph(note, "perf-note")))
    first = [it for it in shown if it.task == best_results.PRETRAINING] or shown
    names = ("model", "system", "precision")
    title = f"{release.title}: best figures"
    return best_results.chart(title, first, best_results.ACROSS_MODELS, names, of_release=True)


def head(release: ReleaseData) -> Markup:
    """The containers of a release, its labels, its originals, and pages with more of it."""
    results = release.results
    originals = {it.source_sha256: it for it in results if it.source_url or it.published_on}
    return render(
        "release_head",
        also=release.also,
        containers=dict(sorted(Counter(it.container for it in results if it.container).items())),
        count=len(results),
        is_measured=any(it.is_measured for it in results),
        is_published=any(not it.is_measured for it in results),
        is_of_several=any(it.num_results > 1 and not it.is_measured for it in results),
        originals=[
            (it, PurePosixPath(it.source).name, addresses.of_source(it.source_sha256))
            for it in originals.values()
        ],
    )


Frameworks = Mapping[str, Sequence[ReleaseData]]
"""The releases of each framework, the newest first."""


def _list(frameworks: Frameworks, objections: Mapping[ReleaseName, str] | None) -> list[Block]:
    """What each release has achieved, and how many open findings it has; not where that is None."""
    if not frameworks:
        return [paragraph(NONE), page.no_data()]
    intro = (
        "<p>Rolling branches first, then the newest release. Best figure: pre-training, else "
        "fine-tuning. See also the {{ link('changelog of the data', changelog) }} and the "
        "{{ link('audit', audit) }}.</p>\n"
    )
    rows: Rows = []
    for releases in frameworks.values():
        newest = next((one for one in releases if is_numbered(one.release)), releases[0])
        for one in releases:
            marks = ["rolling"] if is_rolling(one.release) else []
            marks += ["newest"] if one.release is not None and one == newest else []
            cells = _counted(one, marks)
            if objections is not None:
                text = objections.get((one.framework, one.release), "")
                audit = addresses.of_audit(one.framework, one.release)
                cells.append(link(text, audit) if text else "none")
            best = headline_cell(one.shown, lambda result: f" on {result.system_title}")
            rows.append((one, [*cells, best]))
    last = [] if objections is None else [HtmlHead("Open findings")]
    last.append(HtmlHead(HEADLINE, wide=True, near=True))
    head = render_text(intro, changelog=addresses.CHANGELOG, audit=addresses.AUDIT)
    return [head, page.AllDownloads(), *_sections(last, rows)]


Rows = list[tuple[ReleaseData, list[HtmlCell | str]]]


def _sections(last: Sequence[HtmlHead], rows: Rows) -> Iterator[Section]:
    """A table of the releases of each framework."""
    first = heads(
        "Release", "Date|of its newest page or run, else the month in its version", "#Measured",
        "#Published", "#Models", "#Systems",
    )  # fmt: skip
    for framework, some in grouped(rows, lambda row: row[0].framework).items():
        title = titles.framework(framework)
        made = plain(f"Releases of {title}", [*first, *last], [cells for _, cells in some])
        yield Section(title, [made])


def _counted(release: ReleaseData, marks: Sequence[str]) -> list[HtmlCell | str]:
    """The name of a release, with its marks, and how much there is of it."""
    every = [*marks] if release.on_gpus else [*marks, TRIAL]
    if release.release and with_short_hashes(release.release) != release.release:
        every += release.containers
    name = render_text(
        "{{ link(name, document) }}{% if marks %}<small>, {{ marks }}</small>{% endif %}",
        name=release.release or UNATTRIBUTED,
        document=release.document,
        marks=", ".join(every),
    )
    days = [it.published_on for it in release.results if it.published_on]
    days += [it.started_at.date() for it in release.results if it.started_at]
    month = release.month
    shown = release.shown
    measured = sum(result.is_measured for result in shown)
    models, systems = ({getattr(one, name) for one in shown} for name in ("model", "system"))
    numbers = (measured, len(shown) - measured, len(models), len(systems))
    return [
        # sorted by title: a version alone would be sorted as a number, 0.10 before 0.9
        HtmlCell(name, sort=release.title),
        max(days).isoformat() if days else f"{month:%Y-%m}" if month else UNKNOWN,
        *(f"{number:,}" for number in numbers),
    ]
