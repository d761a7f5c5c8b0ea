"""The pages of releases, their list, the newest first, and the archive of them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import permutations
from pathlib import PurePosixPath
from typing import Final

from markupsafe import Markup

from perfdb.audit.report import counts
from perfdb.catalog import titles
from perfdb.groups import grouped
from perfdb.site import addresses, columns
from perfdb.site.addresses import UNATTRIBUTED
from perfdb.site.cells import CHOSEN, HtmlCell
from perfdb.site.data import Audited, Link, SiteData, SiteResult
from perfdb.site.grouping import (
    Grouping,
    ReleaseName,
    by_name,
    is_on_gpus,
    newest_first,
    release_title,
    sections,
)
from perfdb.site.page import (
    AllDownloads,
    Block,
    IndexEntry,
    Page,
    Section,
    Tab,
    Tabs,
    no_data,
    offered,
    summary_of_names,
    summary_of_results,
)
from perfdb.site.pages.best_results import HEADLINE, RULE, headline_cell
from perfdb.site.tables import HtmlHead, plain
from perfdb.site.templates import link, paragraph, render, render_text
from perfdb.units import UNKNOWN, counted
from perfdb.versions import is_numbered, is_rolling

LABEL: Final = "ref-performance"
"""What {ref} calls the list of releases; the page of each is called by its name behind that."""
TRIAL: Final = "a trial without a GPU"
"""What a release without a result on a GPU is."""
NONE: Final = "No releases yet: the store holds no results."


@dataclass(frozen=True)
class ReleaseData:
    """A release of a framework and its results."""

    framework: str
    release: str | None
    results: tuple[SiteResult, ...]
    also: tuple[Link, ...] = ()
    """Pages that have more of it."""

    @property
    def document(self) -> str:
        """The name of its page."""
        return addresses.of_release(self.framework, self.release)

    @property
    def title(self) -> str:
        """'NeMo Framework 25.04'."""
        return release_title(self.framework, self.release)

    @property
    def on_gpus(self) -> bool:
        """Whether it has a result on a GPU."""
        return any(map(is_on_gpus, self.results))

    @property
    def containers(self) -> list[str]:
        """The containers of its results."""
        return sorted({it.container for it in self.results if it.container})


def of_results(results: Iterable[SiteResult]) -> list[ReleaseData]:
    """All releases, by framework, the newest first."""
    by_release = grouped(results, lambda result: (result.framework, result.release))
    made = [ReleaseData(*name, tuple(some)) for name, some in by_release.items()]
    return newest_first(made, [result for one in made for result in one.results])


def of_data(data: SiteData) -> list[ReleaseData]:
    """All releases, with links to the pages that have more of each."""
    links = _links(data)
    for name, text in _objections(data.audited).items():
        links[name].append(Link(f"{text} found by the audit", addresses.of_audit(*name)))
    return [
        replace(one, also=tuple(links[one.framework, one.release]))
        for one in of_results(data.results)
    ]


def pages(data: SiteData) -> Iterator[Page]:
    """The page of each release, the list of them, and the archive."""
    releases = of_data(data)
    yield from _lists(releases, _objections(data.audited))
    for release in releases:
        label = addresses.label(release.framework, release.release)
        body = partial(_release, release)
        yield Page(release.document, release.title, _about(release), body, label=label)


def _about(release: ReleaseData) -> str:
    """'NeMo Framework 25.04: 39 published results of 8 models on DGX-H100 and DGX-B200.'"""
    models = counted(len({result.model for result in release.results}), "model")
    tabs = [one for part in sections(release.results) for one in by_name(part.results, "system")]
    systems = summary_of_names(tab.title for tab in tabs)
    return f"{release.title}: {summary_of_results(release.results)} of {models} on {systems}."


def _objections(audited: Iterable[Audited]) -> dict[ReleaseName, str]:
    """'2 errors, 1 warning': what is open of each release."""
    by_release = grouped(audited, lambda entry: (entry.result.framework, entry.result.release))
    still_open = {
        name: counts(finding for entry in entries for finding in entry.open)
        for name, entries in by_release.items()
    }
    return {name: text for name, text in still_open.items() if text}


def _links(data: SiteData) -> dict[ReleaseName, list[Link]]:
    """The pages that have more of each release."""
    links: dict[ReleaseName, list[Link]] = defaultdict(list)
    for pair in data.pairs:
        for release, other in permutations((pair.after, pair.before)):
            links[pair.framework, release].append(Link(f"compared with {other}", pair.document))
    for one in data.scaling:
        title = f"scaling on {one.system_title}"
        links[one.framework, one.release].append(Link(title, one.document))
    return links


def _release(release: ReleaseData) -> list[Block]:
    entry = f"{release.release}; {release.framework} {release.release}"
    # The search passes over words of digits alone, and '25.07' is two of them.
    found = [IndexEntry(entry)] if release.release is not None else []
    return [head(release), *found, *of_tasks(release.results)]


def of_tasks(results: Sequence[SiteResult], group_by: Grouping = "system") -> list[Block]:
    """A section for each task of a release, with a tab for each system or model."""
    made: list[Block] = []
    for part in sections(results):
        tabs = [
            Tab(one.name, one.title, release_table(f"{part.title}, {one.title}", one.results))
            for one in by_name(part.results, group_by)
        ]
        made.append(Section(part.title, [Tabs(group_by, tabs)]))
    return made


def release_table(label: str, results: Sequence[SiteResult]) -> list[Block]:
    """The table of a tab: as the framework's pages print the task."""
    return offered(f"{label} results", results, columns.of_results(results))


def head(release: ReleaseData) -> Markup:
    """The containers of a release, its labels, its originals, and pages with more of it."""
    results = release.results
    containers = {it.container: 0 for it in sorted(results, key=lambda it: it.container or "")}
    for one in results:
        containers[one.container] += 1
    originals = {it.source_sha256: it for it in results if it.source_url or it.published_on}
    return render(
        "release_head",
        also=release.also,
        chosen=CHOSEN,
        containers={name: count for name, count in containers.items() if name},
        count=len(results),
        is_measured=any(it.is_measured for it in results),
        is_published=any(not it.is_measured for it in results),
        is_of_several=any(it.num_results > 1 and not it.is_measured for it in results),
        originals=[
            (it, PurePosixPath(it.source).name, addresses.of_source(it.source_sha256))
            for it in originals.values()
        ],
    )


def _lists(
    releases: Sequence[ReleaseData], objections: Mapping[ReleaseName, str]
) -> Iterator[Page]:
    """The list of what each release has achieved, and the archive of how much there is of it."""
    if not releases:
        yield Page(addresses.PERFORMANCE, "Performance", NONE, partial(_nothing), label=LABEL)
        yield Page(addresses.ARCHIVE, "Archive", NONE, partial(_nothing))
        return
    frameworks = grouped(releases, lambda release: release.framework)
    names = summary_of_names(map(titles.framework, frameworks))
    summary = f"{counted(len(releases), 'release')} of {names}"
    yield Page(
        addresses.PERFORMANCE,
        "Performance",
        f"{summary}: the results, open findings and headline figure of each.",
        partial(_list, frameworks, objections),
        below=[release.document for release in releases],
        label=LABEL,
    )
    about = f"{summary}: the date, results and containers of each, and which is the newest."
    yield Page(addresses.ARCHIVE, "Archive", about, partial(_archive, frameworks))


def _nothing() -> list[Block]:
    return [paragraph(NONE), no_data()]


def _list(
    frameworks: Mapping[str, Sequence[ReleaseData]], objections: Mapping[ReleaseName, str]
) -> list[Block]:
    intro = (
        "A page for each release of each framework: rolling branches, then the highest version "
        f"first, and {TRIAL} last. The highest TFLOP/s is shown, {RULE}."
    )
    made: list[Block] = [paragraph(intro), AllDownloads()]
    heads = [*_COUNTED, HtmlHead("Open findings"), HtmlHead(HEADLINE, wide=True, near=True)]
    for framework, releases in frameworks.items():
        rows = []
        for one in releases:
            text = objections.get((one.framework, one.release), "")
            audit = addresses.of_audit(one.framework, one.release)
            top = headline_cell(one.results, lambda result: f" on {result.system_title}")
            rows.append([*_counted(one, ()), link(text, audit) if text else "none", top])
        title = titles.framework(framework)
        made.append(Section(title, [plain(f"Releases of {title}", heads, rows)]))
    return made


def _archive(frameworks: Mapping[str, Sequence[ReleaseData]]) -> list[Block]:
    made: list[Block] = [
        render_text(
            "<p>Every release that counts; withdrawn ones are in the "
            "{{ link('changelog of the data', changelog) }}. A page stays where it is when a newer "
            "one comes.</p>\n",
            changelog=addresses.CHANGELOG,
        )
    ]
    heads = [*_COUNTED, HtmlHead("Container", wide=True)]
    for framework, releases in frameworks.items():
        some = [one for one in releases if one.on_gpus] or releases
        newest = next((one for one in some if is_numbered(one.release)), some[0])
        rows = []
        for one in releases:
            marks = ["rolling"] if is_rolling(one.release) else []
            marks += ["newest"] if one.release is not None and one == newest else []
            rows.append([*_counted(one, marks), ", ".join(one.containers) or UNKNOWN])
        title = titles.framework(framework)
        made.append(Section(title, [plain(f"Releases of {title}", heads, rows)]))
    return made


_COUNTED: Final = (
    HtmlHead("Release"),
    HtmlHead("Date", "of its newest page or run"),
    *(HtmlHead(name, numeric=True) for name in ("Measured", "Published", "Models", "Systems")),
)


def _counted(release: ReleaseData, marks: Sequence[str]) -> list[HtmlCell | str]:
    """The name of a release, with its marks, and how much there is of it."""
    every = [*marks] if release.on_gpus else [*marks, TRIAL]
    name = render_text(
        "{{ link(name, document) }}{% if marks %}<small>, {{ marks }}</small>{% endif %}",
        name=release.release or UNATTRIBUTED,
        document=release.document,
        marks=", ".join(every),
    )
    days = [it.published_on for it in release.results if it.published_on]
    days += [it.started_at.date() for it in release.results if it.started_at]
    measured = sum(result.is_measured for result in release.results)
    models = {result.model for result in release.results}
    systems = {result.system for result in release.results}
    numbers = (measured, len(release.results) - measured, len(models), len(systems))
    return [
        # by its title: a version alone would be sorted as a number, 0.10 before 0.9
        HtmlCell(name, sort=release.title),
        max(days).isoformat() if days else UNKNOWN,
        *(f"{number:,}" for number in numbers),
    ]
