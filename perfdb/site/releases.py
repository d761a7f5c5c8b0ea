"""The pages of releases, and the list of them: the newest first, and each with what it holds."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from perfdb.audit import Finding, Severity
from perfdb.audit.document import counts
from perfdb.record import Frozen
from perfdb.site import addresses, bests, sources
from perfdb.site.addresses import Address
from perfdb.site.contents import Contents
from perfdb.site.data import Audited, Link, ReleasePage, Result
from perfdb.site.grouping import sections
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
from perfdb.site.series import groups
from perfdb.site.words import UNATTRIBUTED, framework_title, release_title, version_order
from perfdb.units import UNKNOWN

FLOPS: Final = "model_tflops_per_sec_per_gpu"


class ListedRelease(Frozen):
    """A release in the list of them: how much there is of it, and its highest rate."""

    release: str | None
    document: str
    measured: int
    published: int
    models: int
    systems: int
    objections: str
    headline: str


class ReleaseList(Frozen):
    """The releases of each framework, in the order of the archive."""

    frameworks: tuple[tuple[ListedRelease, ...], ...]


class Releases(Frozen):
    """Which releases and systems there are: what a page that waits for one is made anew by."""

    names: tuple[tuple[str, str | None], ...]
    systems: tuple[str, ...]


def release_pages(results: Iterable[Result]) -> list[ReleasePage]:
    """The pages of all releases, by framework, the newest first."""
    by_release: dict[tuple[str, str | None], list[Result]] = defaultdict(list)
    for result in results:
        by_release[result.framework, result.release].append(result)
    newest_first = sorted(by_release, key=lambda one: version_order(one[1]), reverse=True)
    ordered = sorted(newest_first, key=lambda one: framework_title(one[0]))
    return [_release(*name, by_release[name]) for name in ordered]


def _release(framework: str, version: str | None, results: Sequence[Result]) -> ReleasePage:
    return ReleasePage(
        framework=framework,
        release=version,
        containers=tuple(sorted({one.container for one in results if one.container})),
        sections=sections(results, "system"),
    )


def _pages(contents: Contents) -> Iterator[Page]:
    found = release_pages(contents.results)
    names = tuple((one.framework, one.release) for one in found)
    systems = tuple(sorted({result.system for result in contents.results}))
    yield Page(addresses.RELEASES, None, Releases(names=names, systems=systems))
    objections = _objections(contents.audited)
    yield _index(found, objections)
    links = _links(contents)
    for one, said in objections.items():
        text = f"{said} found by the audit"
        links[one].append(Link(text=text, document=addresses.AUDIT))
    for release in found:
        name = addresses.of_release(release.framework, release.release)
        also = tuple(links[release.framework, release.release])
        text = document(
            release_title(release.framework, release.release),
            directive("perfdb-release-page"),
            label=f"ref-{name.replace('/', '-')}",
        )
        yield Page(name, text, release.model_copy(update={"also": also}))


def _objections(audited: Iterable[Audited]) -> dict[tuple[str, str | None], str]:
    """'2 errors, 1 warning': what is open of each release."""
    found: dict[tuple[str, str | None], list[Finding]] = defaultdict(list)
    for one in audited:
        found[one.result.framework, one.result.release] += [
            it
            for it in one.findings
            if not it.acknowledged and it.severity.reaches(Severity.WARNING)
        ]
    return {name: counts(some) for name, some in found.items() if some}


def _index(
    releases: Sequence[ReleasePage], objections: Mapping[tuple[str, str | None], str]
) -> Page:
    if not releases:
        return Page(addresses.PERFORMANCE, document("Performance", NO_DATA))
    parts = ["A page for each release of each framework, the newest first.\n"]
    listed: dict[str, list[ListedRelease]] = defaultdict(list)
    for one in releases:
        said = objections.get((one.framework, one.release), "")
        listed[one.framework].append(_listed(one, said))
    for number, (framework, some) in enumerate(listed.items()):
        below = toctree(one.document for one in some)
        parts.append(section(framework_title(framework), shown("releases", number), below))
    data = ReleaseList(frameworks=tuple(map(tuple, listed.values())))
    return Page(addresses.PERFORMANCE, document("Performance", *parts), data)


def _listed(page: ReleasePage, objections: str) -> ListedRelease:
    measured = sum(result.is_measured for result in page.results)
    return ListedRelease(
        release=page.release,
        document=addresses.of_release(page.framework, page.release),
        measured=measured,
        published=len(page.results) - measured,
        models=len({result.model for result in page.results}),
        systems=len({result.system for result in page.results}),
        objections=objections,
        headline=_headline(page.results),
    )


def _headline(results: Sequence[Result]) -> str:
    """The highest TFLOP/s of a release; empty where it states none without an error."""
    best = bests.highest(results, FLOPS).values()
    if not best:
        return ""
    top = max(best, key=lambda one: bests.figure(one, FLOPS) or 0.0)
    return f"{bests.said(top, FLOPS)} TFLOP/s/GPU: {top.model_title} on {top.system_title}"


def release_list(page: ReleaseList, number: int, address: Address) -> Html:
    """The releases of a framework, with how much there is of each and its headline."""
    heads = [Head("Release")]
    heads += [Head(name, numeric=True) for name in ("Measured", "Published", "Models", "Systems")]
    heads += [Head("Open findings"), Head("Highest figure", wide=True)]
    rows = [_listed_row(one, address) for one in page.frameworks[number]]
    return table(Table("Releases", heads, rows))


def _listed_row(one: ListedRelease, address: Address) -> list[Cell]:
    name = one.release or UNATTRIBUTED
    found = link(one.objections, address(addresses.AUDIT)) if one.objections else "none"
    return [
        Cell(link(name, address(one.document)), sort=name),
        *(Cell(f"{it:,}") for it in (one.measured, one.published, one.models, one.systems)),
        Cell(found),
        Cell(one.headline or UNKNOWN),
    ]


def _links(contents: Contents) -> dict[tuple[str, str | None], list[Link]]:
    """The pages that say more of each release."""
    links: dict[tuple[str, str | None], list[Link]] = defaultdict(list)
    for pair in contents.pairs:
        page = pair.document
        links[pair.framework, pair.after].append(
            Link(text=f"compared with {pair.before}", document=page)
        )
        links[pair.framework, pair.before].append(
            Link(text=f"compared with {pair.after}", document=page)
        )
    for one in groups(contents.results):
        title = f"scaling of {one.model_title} on {one.system_title}"
        links[one.framework, one.release].append(Link(text=title, document=one.document))
    return links


def head(page: ReleasePage, address: Address) -> Html:
    """The containers, what the labels mean, and the pages that say more."""
    said = sources.release_head(page, address)
    more = joined([link(one.text, address(one.document)) for one in page.also], " · ")
    also = tag("p", ("See also: ", more)) if page.also else Html("")
    return joined((said, also))


KIND = Kind(
    _pages,
    {"release-head": part(ReleasePage, head), "releases": numbered(ReleaseList, release_list)},
)
