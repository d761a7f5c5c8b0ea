"""The pages of releases, and the list of them: the newest first, and each with what it holds."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from itertools import permutations
from typing import Final

from perfdb.audit.document import counts
from perfdb.groups import grouped
from perfdb.record import Frozen
from perfdb.site import about, addresses, headline, sources
from perfdb.site.addresses import UNATTRIBUTED, Address
from perfdb.site.contents import Contents
from perfdb.site.data import Audited, Link, ReleasePage, Result
from perfdb.site.findings import still_open
from perfdb.site.grouping import is_on_gpus, newest_first, sections, trials
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
from perfdb.versions import is_rolling, newest_version

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
    by_release = grouped(results, lambda one: (one.framework, one.release))
    pages = [
        ReleasePage(
            framework=framework,
            release=version,
            containers=tuple(sorted({one.container for one in some if one.container})),
            sections=sections(some, "system"),
        )
        for (framework, version), some in by_release.items()
    ]
    return newest_first(pages, trials(one for page in pages for one in page.results))


def _pages(contents: Contents) -> Iterator[Page]:
    found = release_pages(contents.results)
    names = tuple((one.framework, one.release) for one in found)
    systems = tuple(sorted({result.system for result in contents.results}))
    yield Page(addresses.RELEASES, None, Releases(names=names, systems=systems))
    objections = _objections(contents.audited)
    yield from _lists(found, objections)
    links = _links(contents)
    for one, said in objections.items():
        text = f"{said} found by the audit"
        links[one].append(Link(text=text, document=addresses.of_audit(*one)))
    for release in found:
        also = tuple(links[release.framework, release.release])
        title = release_title(release.framework, release.release)
        text = document(
            title, _about(release), directive("perfdb-release-page"), label=release.label
        )
        yield Page(release.document, text, release.model_copy(update={"also": also}))


def _about(release: ReleasePage) -> str:
    """'NeMo Framework 25.04: 39 published results of 8 models on DGX-H100 and DGX-B200.'"""
    models = counted(len({one.model for one in release.results}), "model")
    systems = about.names(tab.title for section in release.sections for tab in section.tabs)
    title = release_title(release.framework, release.release)
    return f"{title}: {about.results(release.results)} of {models} on {systems}."


def _objections(audited: Iterable[Audited]) -> dict[tuple[str, str | None], str]:
    """'2 errors, 1 warning': what is open of each release."""
    by_release = grouped(audited, lambda one: (one.result.framework, one.result.release))
    found = {
        name: counts(it for one in some for it in still_open(one))
        for name, some in by_release.items()
    }
    return {name: said for name, said in found.items() if said}


def _lists(
    releases: Sequence[ReleasePage], objections: Mapping[tuple[str, str | None], str]
) -> Iterator[Page]:
    """The list of what each release has achieved, and the archive of how much there is of it."""
    if not releases:
        yield Page(addresses.PERFORMANCE, document("Performance", NONE, NO_DATA))
        yield Page(addresses.ARCHIVE, document("Archive", NONE, NO_DATA))
        return
    lines = (_listed(one, objections.get((one.framework, one.release), "")) for one in releases)
    listed = grouped(lines, lambda one: one.framework)
    data = ReleaseList(frameworks=tuple(map(tuple, listed.values())))
    parts, kept = [LISTED, directive("perfdb-downloads")], [KEPT]
    for number, (framework, some) in enumerate(listed.items()):
        title, below = framework_title(framework), toctree(one.document for one in some)
        parts.append(section(title, shown("releases", number), below))
        kept.append(section(title, shown("archive", number)))
    said = f"{counted(len(releases), 'release')} of {about.names(map(framework_title, listed))}"
    figures = f"{said}: the results, open findings and headline figure of each."
    yield Page(addresses.PERFORMANCE, document("Performance", figures, *parts), data)
    dated = f"{said}: the date, results and containers of each, and which is the newest."
    yield Page(addresses.ARCHIVE, document("Archive", dated, *kept), data)


def _day(results: Sequence[Result]) -> date | None:
    """The newest day of results: of their pages and of their runs."""
    known = [one.published_on for one in results]
    known += [one.started_at.date() for one in results if one.started_at]
    return max(filter(None, known), default=None)


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
    for one in page.frameworks[number]:
        found = link(one.objections, address(one.audit)) if one.objections else "none"
        more = (Cell(found), headline.cell(one.highest))
        rows.append([*_counted(one, (), address), *more])
    return table(Table(_label(page, number), heads, rows))


def archive(page: ReleaseList, number: int, address: Address) -> Html:
    """The releases of a framework, which of them is the newest, and their containers."""
    given = page.frameworks[number]
    on_gpus = [one for one in given if one.on_gpus]
    newest = newest_version(one.release for one in on_gpus or given)
    rows = []
    for one in given:
        is_newest = one.release is not None and one.release == newest
        known = {"rolling": is_rolling(one.release), "newest": is_newest}
        said = [word for word, holds in known.items() if holds]
        containers = ", ".join(one.containers) or UNKNOWN
        rows.append([*_counted(one, said, address), Cell(containers)])
    return table(Table(_label(page, number), [*_COUNTED, Head("Container", wide=True)], rows))


def _label(page: ReleaseList, number: int) -> str:
    """'Releases of NeMo DFM'."""
    first, *_ = page.frameworks[number]
    return f"Releases of {framework_title(first.framework)}"


_COUNTED: Final = (
    Head("Release"),
    Head("Date", "of its newest page or run"),
    *(Head(name, numeric=True) for name in ("Measured", "Published", "Models", "Systems")),
)


def _counted(one: ListedRelease, said: Sequence[str], address: Address) -> list[Cell]:
    """The name of a release, with what is said of it, and how much there is of it."""
    name = one.release or UNATTRIBUTED
    marks = [*said] if one.on_gpus else [*said, TRIAL]
    mark = tag("small", f", {', '.join(marks)}") if marks else Html("")
    counts = (one.measured, one.published, one.models, one.systems)
    return [
        Cell(joined((link(name, address(one.document)), mark)), sort=name),
        Cell(one.day.isoformat() if one.day else UNKNOWN),
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
    said = sources.release_head(page, address)
    more = joined([link(one.text, address(one.document)) for one in page.also], " · ")
    also = tag("p", ("See also: ", more)) if page.also else Html("")
    return joined((said, also))


KIND = Kind(
    _pages,
    {
        "archive": numbered(ReleaseList, archive),
        "release-head": part(ReleasePage, head),
        "releases": numbered(ReleaseList, release_list),
    },
)
