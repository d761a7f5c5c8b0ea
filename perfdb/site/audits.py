"""The pages of the audit: what is open over all releases, and a page of entries for each."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from perfdb import units
from perfdb.audit import Finding, Severity
from perfdb.audit.document import counts
from perfdb.groups import grouped
from perfdb.record import Frozen
from perfdb.site import addresses
from perfdb.site.addresses import Address
from perfdb.site.contents import Contents
from perfdb.site.data import Audited, Result
from perfdb.site.findings import KINDS, badge, gravity, still_open, titles_of
from perfdb.site.grouping import newest_first, trials
from perfdb.site.markup import Cell, Content, Head, Html, Table, joined, link, table, tag, terms
from perfdb.site.page import Kind, Page, document, part, shown, toctree
from perfdb.site.words import release_title

MOST_OBJECTIONS: Final = 100
"""Open errors and warnings that are listed over all releases, the gravest first."""

MEANING: Final = (
    "An error: numbers contradict one another, within the rounding of what was printed. A warning: "
    "a number is very likely wrong, or missing where it could stand. Info: worth knowing before "
    "the number is used. Explained: somebody has looked at it and accepts it.",
    "The tables show every figure as it was published or measured; the audit changes none.",
)


class AuditedRelease(Frozen):
    """The results of a release that have findings, the gravest first."""

    framework: str
    release: str | None
    results: tuple[Audited, ...]

    @property
    def document(self) -> str:
        """Its page."""
        return addresses.of_audit(self.framework, self.release)


class Objection(Frozen):
    """An error or a warning that nobody has explained, and the entry that it stands in."""

    kind: str
    rule: str
    title: str
    framework: str
    release: str | None
    anchor: str


class Count(Frozen):
    """How many findings of each of KINDS a release has, and in all."""

    framework: str
    release: str | None
    found: tuple[int, ...]
    said: str


class Audit(Frozen):
    """What the last audit found over all releases. `left` objections are not listed."""

    said: str
    releases: tuple[Count, ...]
    objections: tuple[Objection, ...]
    left: int


def _pages(contents: Contents) -> Iterator[Page]:
    releases = of_releases(contents.audited)
    if not releases:
        none = "There are no findings."
        yield Page(addresses.AUDIT, document("Audit", none, f"{none}\n"))
        return
    listed, every = toctree(one.document for one in releases), over_all(releases)
    told = f"What the audit found in {units.counted(len(releases), 'release')}: {every.said}."
    yield Page(addresses.AUDIT, document("Audit", told, shown("audit"), listed), every)
    for one, count in zip(releases, every.releases, strict=True):
        title = f"Audit of {release_title(one.framework, one.release)}"
        about = f"{title}: {count.said} in {units.counted(len(one.results), 'result')}."
        yield Page(one.document, document(title, about, shown("audit-entries")), one)


def of_releases(every: Sequence[Audited]) -> list[AuditedRelease]:
    """By framework, the newest release first, and in it the gravest entry first."""
    by_release = grouped(every, lambda one: (one.result.framework, one.result.release))
    releases = [
        AuditedRelease(
            framework=framework, release=version, results=tuple(sorted(found, key=_order))
        )
        for (framework, version), found in by_release.items()
    ]
    return newest_first(releases, trials(one.result for one in every))


def _order(one: Audited) -> tuple[int, str, int, str]:
    result = one.result
    return gravity(one.findings[0]), result.source, result.source_line or 0, one.anchor


def over_all(releases: Sequence[AuditedRelease]) -> Audit:
    """The counts of all releases, and the gravest of what is open."""
    objections = sorted(
        (it for one in releases for it in _objections(one)), key=lambda it: KINDS.index(it.kind)
    )
    every = [it for one in releases for result in one.results for it in result.findings]
    return Audit(
        said=counts(every),
        releases=tuple(map(_count, releases)),
        objections=tuple(objections[:MOST_OBJECTIONS]),
        left=len(objections[MOST_OBJECTIONS:]),
    )


def _objections(release: AuditedRelease) -> Iterator[Objection]:
    names = titles_of(release.results)
    for one in release.results:
        for finding in still_open(one):
            yield Objection(
                kind=finding.kind,
                rule=finding.rule,
                title=names[one.anchor],
                framework=release.framework,
                release=release.release,
                anchor=one.anchor,
            )


def _count(release: AuditedRelease) -> Count:
    every = [it for one in release.results for it in one.findings]
    found = Counter(one.kind for one in every)
    return Count(
        framework=release.framework,
        release=release.release,
        found=tuple(found[one] for one in KINDS),
        said=counts(every),
    )


def overview(page: Audit, address: Address) -> Html:
    """How many findings there are, what the kinds mean, where they are, and what is open."""
    said = (tag("p", tag("strong", f"{page.said}.")), *(tag("p", it) for it in MEANING))
    heads = [Head("Release"), *(Head(one.capitalize(), numeric=True) for one in KINDS)]
    rows = [[_release(one, address), *map(_number, one.found)] for one in page.releases]
    return joined((*said, table(Table("Findings by release", heads, rows)), *_open(page, address)))


def _release(of: Count | Objection, address: Address) -> Cell:
    title = release_title(of.framework, of.release)
    return Cell(link(title, address(addresses.of_audit(of.framework, of.release))), sort=title)


def _number(count: int) -> Cell:
    return Cell(f"{count:,}", sort=count)


def _open(page: Audit, address: Address) -> Iterator[Html]:
    """Errors and warnings that nobody has explained, the errors first."""
    yield tag("h2", "Open errors and warnings")
    if not page.objections:
        yield tag("p", "There are none.")
        return
    heads = [Head("Severity"), Head("Rule"), Head("Result", wide=True), Head("Release")]
    rows = [_row(one, address) for one in page.objections]
    yield table(Table("Open errors and warnings", heads, rows))
    if page.left:
        yield tag("p", f"{page.left:,} more stand on the pages of their releases.")


def _row(one: Objection, address: Address) -> list[Cell]:
    entry = addresses.of_entry(one.framework, one.release, one.anchor, address)
    return [
        Cell(badge(one.kind), sort=KINDS.index(one.kind)),
        Cell(tag("code", one.rule), sort=one.rule),
        Cell(link(one.title, entry), sort=one.title),
        _release(one, address),
    ]


def entries(release: AuditedRelease, address: Address) -> Html:
    """An entry for each result of a release that has findings; those worth knowing are folded."""
    names = titles_of(release.results)
    made = [(it, _entry(it, names[it.anchor], address)) for it in release.results]
    worth_knowing = [entry for it, entry in made if _is_worth_knowing(it)]
    others = [entry for it, entry in made if not _is_worth_knowing(it)]
    if not worth_knowing:
        return joined(others, "\n")
    count = units.counted(len(worth_knowing), "result")
    said = tag("summary", f"{count} with nothing but info")
    return joined((*others, tag("details", joined((said, *worth_knowing), "\n"))), "\n")


def _is_worth_knowing(one: Audited) -> bool:
    """Whether there is nothing but info; an error stays one to look at where it is accepted."""
    return not any(finding.severity.reaches(Severity.WARNING) for finding in one.findings)


def _entry(one: Audited, name: str, address: Address) -> Html:
    parts = (
        tag("h2", name),
        tag("p", _places(one.result, address), class_="perf-entry-source"),
        tag("ul", [_item(finding) for finding in one.findings]),
    )
    return tag("article", parts, class_="perf-entry", id=one.anchor)


def _places(result: Result, address: Address) -> Html:
    """Where the figures are from, and the table that shows them."""
    page = addresses.of_tab(result.framework, result.release, result.system, address)
    return joined((_evidence(result, address), link("table", page)), " · ")


def _evidence(result: Result, address: Address) -> Content:
    if result.run_id is not None:
        return link(f"run {result.run_id}", address(addresses.of_run(result.run_id)))
    source = address(addresses.of_source(result.source_sha256))
    if result.source_line is None:
        return link(result.source, source)
    line = f"{result.source}, line {result.source_line}"
    return link(line, f"{source}#L{result.source_line}")


def _item(finding: Finding) -> Html:
    said = tag("p", (badge(finding.kind), " ", tag("code", finding.rule), f" {finding.message}."))
    return tag("li", (said, terms(_details(finding))))


def _details(finding: Finding) -> Iterable[tuple[str, str]]:
    known = [
        ("Expected", finding.expected or units.UNKNOWN),
        ("Found", finding.found or units.UNKNOWN),
        ("Suggestion", finding.suggestion or ""),
        ("Acknowledged", finding.acknowledged or ""),
    ]
    return [(name, text) for name, text in known if text]


KIND = Kind(
    _pages, {"audit": part(Audit, overview), "audit-entries": part(AuditedRelease, entries)}
)
