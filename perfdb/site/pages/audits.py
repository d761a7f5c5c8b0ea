"""The pages of the audit: what is open over all releases, and a page of entries for each."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from markupsafe import Markup

from perfdb import units
from perfdb.audit.report import counts
from perfdb.groups import grouped
from perfdb.record import Finding
from perfdb.site import addresses, columns
from perfdb.site.addresses import audit_entry
from perfdb.site.cells import HtmlCell, formatted, known
from perfdb.site.columns import ShownColumn
from perfdb.site.data import KINDS, Audited, SiteData, SiteResult
from perfdb.site.grouping import newest_first, release_title
from perfdb.site.page import Block, Page
from perfdb.site.pages.sources import work_title
from perfdb.site.tables import HtmlHead, plain
from perfdb.site.templates import badge, code, joined, link, paragraph, render

MOST_OBJECTIONS: Final = 100
"""Open errors and warnings that are listed over all releases, the gravest first."""

MEANING: Final = (
    "An error: numbers contradict one another by more than the rounding of what was printed. A "
    "warning: a number is very likely wrong, or missing where it could stand. Info: worth knowing "
    "before the number is used. Explained: somebody has looked at it and accepts it.",
    "The tables show every figure as it was published or measured; the audit changes none.",
)


@dataclass(frozen=True)
class AuditedRelease:
    """The results of a release that have findings, the gravest first."""

    framework: str
    release: str | None
    results: tuple[Audited, ...]

    @property
    def document(self) -> str:
        """Its page."""
        return addresses.of_audit(self.framework, self.release)

    @property
    def title(self) -> str:
        """'NeMo Framework 25.04'."""
        return release_title(self.framework, self.release)

    @property
    def findings(self) -> list[Finding]:
        """The findings of all its results."""
        return [finding for audited in self.results for finding in audited.findings]


def pages(data: SiteData) -> Iterator[Page]:
    """The findings of each release, and what is open over all of them."""
    releases = of_releases(data.audited)
    found = counts(finding for release in releases for finding in release.findings)
    number = units.counted(len(releases), "release")
    about = f"What the audit found in {number}: {found}." if releases else NONE
    below = [release.document for release in releases]
    yield Page(addresses.AUDIT, "Audit", about, partial(_audit, tuple(releases)), below=below)
    for release in releases:
        title = f"Audit of {release.title}"
        results = units.counted(len(release.results), "result")
        about = f"{title}: {counts(release.findings)} in {results}."
        yield Page(release.document, title, about, partial(_entries, release))


NONE: Final = "There are no findings."


def of_releases(audited: Iterable[Audited]) -> list[AuditedRelease]:
    """The releases that have findings, the newest first."""
    by_release = grouped(audited, lambda it: (it.result.framework, it.result.release))
    found = [
        AuditedRelease(framework, version, tuple(sorted(some, key=_order)))
        for (framework, version), some in by_release.items()
    ]
    return newest_first(found, [it.result for one in found for it in one.results])


def _order(audited: Audited) -> tuple[int, str, int, str]:
    result = audited.result
    gravity = KINDS.index(audited.findings[0].kind)
    return gravity, result.source, result.source_line or 0, audited.anchor


def _audit(releases: Sequence[AuditedRelease]) -> list[Block]:
    """How many findings there are, what the kinds mean, where they are, and what is open."""
    if not releases:
        return [paragraph(NONE)]
    total = counts(finding for release in releases for finding in release.findings)
    heads = [HtmlHead("Release"), *(HtmlHead(it.capitalize(), numeric=True) for it in KINDS)]
    rows = []
    for release in releases:
        of_kind = Counter(finding.kind for finding in release.findings)
        numbers = (HtmlCell(f"{of_kind[kind]:,}", sort=of_kind[kind]) for kind in KINDS)
        rows.append([_release(release), *numbers])
    strong = Markup("<p><strong>{}.</strong></p>\n").format(total)
    table = plain("Findings by release", heads, rows)
    return [strong, *map(paragraph, MEANING), table, *_open(releases)]


def _release(release: AuditedRelease) -> HtmlCell | str:
    return HtmlCell(link(release.title, release.document), sort=release.title)


def _open(releases: Sequence[AuditedRelease]) -> Iterator[Block]:
    """Errors and warnings that nobody has explained, the errors first."""
    yield Markup("<h2>Open errors and warnings</h2>\n")
    found = [
        (release, audited, finding)
        for release in releases
        for audited in release.results
        for finding in audited.open
    ]
    if not found:
        yield paragraph("There are none.")
        return
    found.sort(key=lambda it: KINDS.index(it[2].kind))
    listed = found[:MOST_OBJECTIONS]
    shown = {release.document: release for release, _, _ in listed}
    names = {document: titles_of(release.results) for document, release in shown.items()}
    heads = [
        HtmlHead("Severity"),
        HtmlHead("Rule"),
        HtmlHead("Result", wide=True),
        HtmlHead("Release"),
    ]
    rows = [
        _row(release, audited, finding, names[release.document][audited.anchor])
        for release, audited, finding in listed
    ]
    yield plain("Open errors and warnings", heads, rows)
    left = len(found) - len(listed)
    yield paragraph(f"On the pages of their releases: {left:,} more." if left else "")


def _row(
    release: AuditedRelease, audited: Audited, finding: Finding, name: str
) -> list[HtmlCell | str]:
    entry = audit_entry(release.framework, release.release, audited.anchor)
    content = Markup('<a href="{}">{}</a>').format(entry, name)
    return [
        HtmlCell(badge(finding.kind), sort=KINDS.index(finding.kind)),
        HtmlCell(code(finding.rule), sort=finding.rule),
        HtmlCell(content, sort=name),
        _release(release),
    ]


def _entries(release: AuditedRelease) -> list[Block]:
    """An entry for each result of a release that has findings; those worth knowing are folded."""
    names = titles_of(release.results)
    entries = [(it, names[it.anchor], _place(it.result)) for it in release.results]
    noted = [entry for entry in entries if not entry[0].objections]
    return [
        render(
            "audit_entries",
            objections=[entry for entry in entries if entry[0].objections],
            noted=noted,
            count=units.counted(len(noted), "result"),
        )
    ]


def _place(result: SiteResult) -> Markup:
    """Where the figures are from, and the table that shows them."""
    tab = addresses.tab(result.framework, result.release, result.system)
    table = Markup('<a href="{}">table</a>').format(tab)
    return joined((_evidence(result), table), " · ")


def _evidence(result: SiteResult) -> Markup:
    if result.run_id is not None:
        return link(f"run {result.run_id}", addresses.of_run(result.run_id))
    source = addresses.of_source(result.source_sha256)
    if result.source_line is None:
        return link(result.source, source)
    line = f"{result.source}, line {result.source_line}"
    return link(line, source, f"L{result.source_line}")


def titles_of(given: Iterable[Audited]) -> dict[str, str]:
    """What each entry of a release is called: with all in which those of one name differ.

    By its anchor.
    """
    names: dict[str, str] = {}
    for name, some in grouped(given, lambda one: work_title(one.result)).items():
        apart = [
            it for it in columns.CASE.columns if len({known(it, one.result) for one in some}) > 1
        ]
        named = {one.anchor: ", ".join((name, *_configured(one, apart))) for one in some}
        times = Counter(named.values())
        names |= {
            one.anchor: it if times[it] == 1 else f"{it}, {_from(one.result)}"
            for one, it in zip(some, named.values(), strict=True)
        }
    return names


def _from(result: SiteResult) -> str:
    return f"run {result.run_id}" if result.run_id else f"line {result.source_line}"


def _configured(one: Audited, columns_: Iterable[ShownColumn]) -> Iterator[str]:
    for column in columns_:
        value = known(column, one.result)
        if value is not None:
            yield f"{column.title} {formatted(column, value)}"
