"""The pages of the audit: what is open over all releases, and a page of entries for each."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from perfdb import units
from perfdb.audit.report import counts
from perfdb.groups import grouped
from perfdb.record import Finding, Frozen
from perfdb.site import addresses
from perfdb.site.addresses import Address
from perfdb.site.contents import Contents
from perfdb.site.data import Audited, Result
from perfdb.site.findings import KINDS, badge, gravity, objections, still_open, titles_of
from perfdb.site.grouping import newest_first
from perfdb.site.markup import Cell, Content, Head, Html, Table, joined, link, table, tag, terms
from perfdb.site.page import Kind, Page, document, part, shown, toctree
from perfdb.site.words import release_title

MOST_OBJECTIONS: Final = 100
"""Open errors and warnings that are listed over all releases, the gravest first."""

MEANING: Final = (
    "An error: numbers contradict one another by more than the rounding of what was printed. A "
    "warning: a number is very likely wrong, or missing where it could stand. Info: worth knowing "
    "before the number is used. Explained: somebody has looked at it and accepts it.",
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


Open = tuple[AuditedRelease, Audited, Finding]
"""What nobody has explained yet, and where it stands."""


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
    below, audit = toctree(release.document for release in releases), over_all(releases)
    summary = f"What the audit found in {units.counted(len(releases), 'release')}: {audit.said}."
    yield Page(addresses.AUDIT, document("Audit", summary, shown("audit"), below), audit)
    for release, count in zip(releases, audit.releases, strict=True):
        title = f"Audit of {release_title(release.framework, release.release)}"
        about = f"{title}: {count.said} in {units.counted(len(release.results), 'result')}."
        yield Page(release.document, document(title, about, shown("audit-entries")), release)


def of_releases(audited: Sequence[Audited]) -> list[AuditedRelease]:
    """By framework, the newest release first, and in it the gravest entry first."""
    by_release = grouped(audited, lambda entry: (entry.result.framework, entry.result.release))
    releases = [
        AuditedRelease(
            framework=framework, release=version, results=tuple(sorted(entries, key=_order))
        )
        for (framework, version), entries in by_release.items()
    ]
    return newest_first(releases, [entry.result for entry in audited])


def _order(audited: Audited) -> tuple[int, str, int, str]:
    result = audited.result
    return gravity(audited.findings[0]), result.source, result.source_line or 0, audited.anchor


def over_all(releases: Sequence[AuditedRelease]) -> Audit:
    """The counts of all releases, and the gravest of what is open."""
    found = [
        (release, audited, finding)
        for release in releases
        for audited in release.results
        for finding in still_open(audited)
    ]
    gravest_first = sorted(found, key=lambda it: gravity(it[2]))
    findings = [it for release in releases for one in release.results for it in one.findings]
    return Audit(
        said=counts(findings),
        releases=tuple(map(_count, releases)),
        objections=tuple(_objections(gravest_first[:MOST_OBJECTIONS])),
        left=len(gravest_first[MOST_OBJECTIONS:]),
    )


def _objections(listed: Sequence[Open]) -> Iterator[Objection]:
    """Those that are listed: to tell the title of an entry takes all entries of its release."""
    releases = {release.document: release for release, _, _ in listed}
    names = {name: titles_of(release.results) for name, release in releases.items()}
    for release, audited, finding in listed:
        yield Objection(
            kind=finding.kind,
            rule=finding.rule,
            title=names[release.document][audited.anchor],
            framework=release.framework,
            release=release.release,
            anchor=audited.anchor,
        )


def _count(release: AuditedRelease) -> Count:
    findings = [finding for audited in release.results for finding in audited.findings]
    of_kind = Counter(finding.kind for finding in findings)
    return Count(
        framework=release.framework,
        release=release.release,
        found=tuple(of_kind[kind] for kind in KINDS),
        said=counts(findings),
    )


def overview(page: Audit, address: Address) -> Html:
    """How many findings there are, what the kinds mean, where they are, and what is open."""
    text = (tag("p", tag("strong", f"{page.said}.")), *(tag("p", meaning) for meaning in MEANING))
    heads = [Head("Release"), *(Head(kind.capitalize(), numeric=True) for kind in KINDS)]
    rows = [[_release(count, address), *map(_number, count.found)] for count in page.releases]
    return joined((*text, table(Table("Findings by release", heads, rows)), *_open(page, address)))


def _release(entry: Count | Objection, address: Address) -> Cell:
    title = release_title(entry.framework, entry.release)
    return Cell(
        link(title, address(addresses.of_audit(entry.framework, entry.release))), sort=title
    )


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
        yield tag("p", f"On the pages of their releases: {page.left:,} more.")


def _row(objection: Objection, address: Address) -> list[Cell]:
    entry = addresses.of_entry(objection.framework, objection.release, objection.anchor, address)
    return [
        Cell(badge(objection.kind), sort=KINDS.index(objection.kind)),
        Cell(tag("code", objection.rule), sort=objection.rule),
        Cell(link(objection.title, entry), sort=objection.title),
        _release(objection, address),
    ]


def entries(release: AuditedRelease, address: Address) -> Html:
    """An entry for each result of a release that has findings; those worth knowing are folded."""
    names = titles_of(release.results)
    articles = [
        (audited, _entry(audited, names[audited.anchor], address)) for audited in release.results
    ]
    worth_knowing = [article for audited, article in articles if not objections(audited)]
    others = [article for audited, article in articles if objections(audited)]
    if not worth_knowing:
        return joined(others, "\n")
    count = units.counted(len(worth_knowing), "result")
    said = tag("summary", f"{count} with nothing but info")
    return joined((*others, tag("details", joined((said, *worth_knowing), "\n"))), "\n")


def _entry(audited: Audited, name: str, address: Address) -> Html:
    parts = (
        tag("h2", name),
        tag("p", _places(audited.result, address), class_="perf-entry-source"),
        tag("ul", [_item(finding) for finding in audited.findings]),
    )
    return tag("article", parts, class_="perf-entry", id=audited.anchor)


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
    rule = tag("code", finding.rule)
    sentence = tag("p", (badge(finding.kind), " ", rule, f" {finding.message}."))
    return tag("li", (sentence, terms(_details(finding))))


def _details(finding: Finding) -> Iterable[tuple[str, str]]:
    parts = [
        ("Expected", finding.expected or units.UNKNOWN),
        ("Found", finding.found or units.UNKNOWN),
        ("Suggestion", finding.suggestion or ""),
        ("Acknowledged", finding.acknowledged or ""),
    ]
    return [(name, text) for name, text in parts if text]


KIND = Kind(
    _pages, {"audit": part(Audit, overview), "audit-entries": part(AuditedRelease, entries)}
)
