"""The pages of releases, and the list of them: the newest first, and each with what it holds."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from itertools import permutations
from typing import Final

from perfdb.audit.report import counts
from perfdb.groups import grouped
from perfdb.record import Frozen
from perfdb.site import about, addresses, headline, sources
from perfdb.site.addresses import UNATTRIBUTED, Address
from perfdb.site.contents import Contents
from perfdb.site.data import Audited, Link, ReleasePage, Result
from perfdb.site.findings import still_open
from perfdb.site.grouping import is_on_gpus, newest_first, sections
from perfdb.site.headline import Highest
from perfdb.site.markup import Cell, Head, Html, Table, joined, link, table, tag
from perfdb.site.page import (
    NO_DATA,
    Kind,
    Page,
    directive,
    document,
    numbered,
    part,
    section,
    shown,
    toctree,
)
from perfdb.site.words import TRIAL, framework_title, release_title
from perfdb.units import UNKNOWN, counted
from perfdb.versions import is_numbered, is_rolling

LABEL: Final = "ref-performance"
"""What {ref} calls the list of releases; the page of each is called by its name behind that."""

LISTED: Final = (
    "A page for each release of each framework: rolling branches, then the highest version first, "
    f"and {TRIAL} last. The highest TFLOP/s is shown, {headline.RULE}.\n"
)

KEPT: Final = (
    "Every release that counts; withdrawn ones are in the "
    "[changelog of the data](/performance/changelog.md). A page stays where it is when a newer one "
    "comes.\n"
)

NONE: Final = "No releases yet: the store holds no results."


class ListedRelease(Frozen):
    """A release in the lists of them: how much there is of it, and its headline.

    `day` is that of its newest page or run; None where nothing says one.
    """

    framework: str
    release: str | None
    document: str
    day: date | None
    on_gpus: bool
    containers: tuple[str, ...]
    measured: int
    published: int
    models: int
    systems: int
    objections: str
    audit: str
    highest: Highest | None


class ReleaseList(Frozen):
    """The releases of each framework: rolling branches, then by number, the newest first."""

    frameworks: tuple[tuple[ListedRelease, ...], ...]


class Releases(Frozen):
    """Which releases and systems there are: what a page that waits for one is made anew by."""

    names: tuple[tuple[str, str | None], ...]
    systems: tuple[str, ...]


def release_pages(results: Iterable[Result]) -> list[ReleasePage]:
    """The pages of all releases, by framework, the newest first."""
    by_release = grouped(results, lambda result: (result.framework, result.release))
    pages = [
        ReleasePage(
            framework=framework,
            release=version,
            containers=tuple(sorted({it.container for it in of_release if it.container})),
            sections=sections(of_release, "system"),
        )
        for (framework, version), of_release in by_release.items()
    ]
    return newest_first(pages, [result for page in pages for result in page.results])


def _pages(contents: Contents) -> Iterator[Page]:
    releases = release_pages(contents.results)
    names = tuple((release.framework, release.release) for release in releases)
    systems = tuple(sorted({result.system for result in contents.results}))
    yield Page(addresses.RELEASES, None, Releases(names=names, systems=systems))
    objections = _objections(contents.audited)
    yield from _lists(releases, objections)
    links = _links(contents)
    for name, counted_objections in objections.items():
        text = f"{counted_objections} found by the audit"
        links[name].append(Link(text=text, document=addresses.of_audit(*name)))
    for release in releases:
        also = tuple(links[release.framework, release.release])
        title = release_title(release.framework, release.release)
        text = document(
            title, _about(release), directive("perfdb-release-page"), label=release.label
        )
        yield Page(release.document, text, release.model_copy(update={"also": also}))


def _about(release: ReleasePage) -> str:
    """'NeMo Framework 25.04: 39 published results of 8 models on DGX-H100 and DGX-B200.'"""
    models = counted(len({result.model for result in release.results}), "model")
    systems = about.names(tab.title for section in release.sections for tab in section.tabs)
    title = release_title(release.framework, release.release)
    return f"{title}: {about.results(release.results)} of {models} on {systems}."


def _objections(audited: Iterable[Audited]) -> dict[tuple[str, str | None], str]:
    """'2 errors, 1 warning': what is open of each release."""
    by_release = grouped(audited, lambda entry: (entry.result.framework, entry.result.release))
    open_findings = {
        name: counts(finding for entry in entries for finding in still_open(entry))
        for name, entries in by_release.items()
    }
    return {name: text for name, text in open_findings.items() if text}


def _lists(
    releases: Sequence[ReleasePage], objections: Mapping[tuple[str, str | None], str]
) -> Iterator[Page]:
    """The list of what each release has achieved, and the archive of how much there is of it."""
    if not releases:
        yield Page(addresses.PERFORMANCE, document("Performance", NONE, NO_DATA, label=LABEL))
        yield Page(addresses.ARCHIVE, document("Archive", NONE, NO_DATA))
        return
    lines = (_listed(it, objections.get((it.framework, it.release), "")) for it in releases)
    by_framework = grouped(lines, lambda line: line.framework)
    data = ReleaseList(frameworks=tuple(map(tuple, by_framework.values())))
    listed, archived = [LISTED, directive("perfdb-downloads")], [KEPT]
    for number, (framework, some) in enumerate(by_framework.items()):
        title, below = framework_title(framework), toctree(line.document for line in some)
        listed.append(section(title, shown("releases", number), below))
        archived.append(section(title, shown("archive", number)))
    frameworks = about.names(map(framework_title, by_framework))
    releases_of = f"{counted(len(releases), 'release')} of {frameworks}"
    about_list = f"{releases_of}: the results, open findings and headline figure of each."
    text = document("Performance", about_list, *listed, label=LABEL)
    yield Page(addresses.PERFORMANCE, text, data)
    about_archive = (
        f"{releases_of}: the date, results and containers of each, and which is the newest."
    )
    yield Page(addresses.ARCHIVE, document("Archive", about_archive, *archived), data)


def _day(results: Sequence[Result]) -> date | None:
    """The newest day of results: of their pages and of their runs."""
    days = [result.published_on for result in results]
    days += [result.started_at.date() for result in results if result.started_at]
    return max(filter(None, days), default=None)


def _listed(page: ReleasePage, objections: str) -> ListedRelease:
    measured = sum(result.is_measured for result in page.results)
    return ListedRelease(
        framework=page.framework,
        release=page.release,
        document=page.document,
        day=_day(page.results),
        on_gpus=any(map(is_on_gpus, page.results)),
        containers=page.containers,
        measured=measured,
        published=len(page.results) - measured,
        models=len({result.model for result in page.results}),
        systems=len({result.system for result in page.results}),
        objections=objections,
        audit=addresses.of_audit(page.framework, page.release),
        highest=headline.highest(page.results, lambda one: f" on {one.system_title}"),
    )


def release_list(page: ReleaseList, number: int, address: Address) -> Html:
    """The releases of a framework, with how much there is of each and its headline."""
    heads = [*_COUNTED, Head("Open findings"), Head(headline.TITLE, wide=True, near=True)]
    rows = []
    for release in page.frameworks[number]:
        objections = release.objections
        findings = link(objections, address(release.audit)) if objections else "none"
        top = headline.cell(release.highest, address)
        rows.append([*_counted(release, (), address), Cell(findings), top])
    return table(Table(_label(page, number), heads, rows))


def archive(page: ReleaseList, number: int, address: Address) -> Html:
    """The releases of a framework, which of them is the newest, and their containers."""
    releases = page.frameworks[number]
    newest = _newest([one for one in releases if one.on_gpus] or releases)
    rows = []
    for release in releases:
        version = release.release
        marks = ["rolling"] if is_rolling(version) else []
        marks += ["newest"] if version is not None and release == newest else []
        containers = ", ".join(release.containers) or UNKNOWN
        rows.append([*_counted(release, marks, address), Cell(containers)])
    return table(Table(_label(page, number), [*_COUNTED, Head("Container", wide=True)], rows))


def _newest(releases: Sequence[ListedRelease]) -> ListedRelease:
    """The first that has a number; a rolling branch only where none has."""
    return next((one for one in releases if is_numbered(one.release)), releases[0])


def _label(page: ReleaseList, number: int) -> str:
    """'Releases of NeMo DFM'."""
    first, *_ = page.frameworks[number]
    return f"Releases of {framework_title(first.framework)}"


_COUNTED: Final = (
    Head("Release"),
    Head("Date", "of its newest page or run"),
    *(Head(name, numeric=True) for name in ("Measured", "Published", "Models", "Systems")),
)


def _counted(release: ListedRelease, marks: Sequence[str], address: Address) -> list[Cell]:
    """The name of a release, with its marks, and how much there is of it."""
    name, title = release.release or UNATTRIBUTED, release_title(release.framework, release.release)
    every = [*marks] if release.on_gpus else [*marks, TRIAL]
    beside = tag("small", f", {', '.join(every)}") if every else Html("")
    counts = (release.measured, release.published, release.models, release.systems)
    return [
        # by its title: a version alone would be sorted as a number, 0.10 before 0.9
        Cell(joined((link(name, address(release.document)), beside)), sort=title),
        Cell(release.day.isoformat() if release.day else UNKNOWN),
        *(Cell(f"{count:,}") for count in counts),
    ]


def _links(contents: Contents) -> dict[tuple[str, str | None], list[Link]]:
    """The pages that say more of each release."""
    links: dict[tuple[str, str | None], list[Link]] = defaultdict(list)
    for pair in contents.pairs:
        for release, other in permutations((pair.after, pair.before)):
            text = f"compared with {other}"
            links[pair.framework, release].append(Link(text=text, document=pair.document))
    for one in contents.scaling:
        title = f"scaling on {one.system_title}"
        links[one.framework, one.release].append(Link(text=title, document=one.document))
    return links


def head(page: ReleasePage, address: Address) -> Html:
    """The containers, what the labels mean, and the pages that say more."""
    links = joined([link(other.text, address(other.document)) for other in page.also], " · ")
    also = tag("p", ("See also: ", links)) if page.also else Html("")
    return joined((sources.release_head(page, address), also))


KIND = Kind(
    _pages,
    {
        "archive": numbered(ReleaseList, archive),
        "release-head": part(ReleasePage, head),
        "releases": numbered(ReleaseList, release_list),
    },
)
