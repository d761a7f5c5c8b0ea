"""The archive: every release there has been, by framework, with how much the store has of it."""

from collections.abc import Iterator

from perfdb import units
from perfdb.record import Frozen
from perfdb.site import addresses, markup
from perfdb.site.addresses import Address
from perfdb.site.contents import Contents
from perfdb.site.markup import Cell, Head, Html, link, tag
from perfdb.site.page import NO_DATA, Kind, Page, document, numbered, section, shown
from perfdb.site.releases import release_pages
from perfdb.site.words import UNATTRIBUTED, framework_title, is_rolling, newest_version


class ArchivedRelease(Frozen):
    """A release, and how much there is of it."""

    framework: str
    release: str | None
    containers: tuple[str, ...]
    measured: int
    published: int
    models: int
    systems: int


class Archive(Frozen):
    """The releases of each framework: rolling branches, then by number, the newest first."""

    frameworks: tuple[tuple[ArchivedRelease, ...], ...]


def _pages(contents: Contents) -> Iterator[Page]:
    by_framework: dict[str, list[ArchivedRelease]] = {}
    for page in release_pages(contents.results):
        measured = sum(result.is_measured for result in page.results)
        one = ArchivedRelease(
            framework=page.framework,
            release=page.release,
            containers=page.containers,
            measured=measured,
            published=len(page.results) - measured,
            models=len({result.model for result in page.results}),
            systems=len({result.system for result in page.results}),
        )
        by_framework.setdefault(page.framework, []).append(one)
    archive = Archive(frameworks=tuple(map(tuple, by_framework.values())))
    if not archive.frameworks:
        yield Page(addresses.ARCHIVE, document("Archive", NO_DATA, orphan=True))
        return
    parts = ["Every release in the store. A page stays where it is when a newer one comes.\n"]
    parts += [
        section(framework_title(name), shown("archive", number))
        for number, name in enumerate(by_framework)
    ]
    yield Page(addresses.ARCHIVE, document("Archive", *parts, orphan=True), archive)


def releases(archive: Archive, number: int, address: Address) -> Html:
    """The releases of a framework."""
    given = archive.frameworks[number]
    heads = [Head("Release")]
    heads += [Head(name, numeric=True) for name in ("Measured", "Published", "Models", "Systems")]
    heads.append(Head("Container", wide=True))
    newest = newest_version(one.release for one in given)
    rows = [_row(one, address, is_newest=one.release == newest) for one in given]
    label = f"Releases of {framework_title(given[0].framework)}"
    return markup.table(markup.Table(label, heads, rows))


def _row(one: ArchivedRelease, address: Address, *, is_newest: bool) -> list[Cell]:
    name = one.release or UNATTRIBUTED
    page = link(name, address(addresses.of_release(one.framework, one.release)))
    said = ("rolling" if is_rolling(one.release) else "", "newest" if is_newest else "")
    known = one.release is not None and any(said)
    mark = tag("small", f", {', '.join(filter(None, said))}") if known else Html("")
    counts = (one.measured, one.published, one.models, one.systems)
    return [
        Cell(markup.joined((page, mark)), sort=name),
        *(Cell(f"{count:,}") for count in counts),
        Cell(", ".join(one.containers) or units.UNKNOWN),
    ]


KIND = Kind(_pages, {"archive": numbered(Archive, releases)})
