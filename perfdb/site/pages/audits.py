"""The pages of the audit: the open findings of all releases, and the entries of each release."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from markupsafe import Markup

from perfdb import units
from perfdb.audit.report import of_kinds, summarized
from perfdb.groups import grouped
from perfdb.site import addresses, columns
from perfdb.site.cells import HtmlCell, formatted, known
from perfdb.site.data import KINDS, Audited, SiteData, SiteResult
from perfdb.site.grouping import ReleaseName, newest_first, release_title
from perfdb.site.page import Block, SitePage
from perfdb.site.pages.parts import heads, link_cell
from perfdb.site.pages.sources import work_title
from perfdb.site.tables import plain
from perfdb.site.templates import badge, code, href, joined, link, paragraph, render

MOST_OBJECTIONS: Final = 100
"""Open errors and warnings that the list over all releases has, the gravest first."""
NONE: Final = "There are no findings."

Releases = Mapping[ReleaseName, Sequence[Audited]]
"""The results with findings of each release, the gravest first."""


def pages(data: SiteData) -> Iterator[SitePage]:
    """The list of open findings, and a page for each release that has findings."""
    releases = _by_release(data.audited)
    numbers = {name: Counter(kind for it in some for kind in it.kinds)
               for name, some in releases.items()}  # fmt: skip
    number = units.counted(len(releases), "release")
    total = of_kinds(sum(numbers.values(), Counter()))
    about = f"What the audit found in {number}: {total}." if releases else NONE
    below = [addresses.of_audit(*name) for name in releases]
    body = partial(_audit, releases, numbers, total)
    yield SitePage(addresses.AUDIT, "Audit", about, body, below=below)
    for name, some in releases.items():
        title = f"Audit of {release_title(*name)}"
        results = units.counted(len(some), "result")
        about = f"{title}: {of_kinds(numbers[name])} in {results}."
        yield SitePage(addresses.of_audit(*name), title, about, partial(_entries, some))


def _by_release(audited: Iterable[Audited]) -> Releases:
    """The releases that have findings, the newest first."""
    found = grouped(audited, lambda it: (it.result.framework, it.result.release))
    results = [it.result for some in found.values() for it in some]
    names = dict.fromkeys((it.framework, it.release) for it in newest_first(results, results))
    return {name: tuple(sorted(found[name], key=_order)) for name in names}


def _order(audited: Audited) -> tuple[int, str, int, str]:
    result = audited.result
    gravity = KINDS.index(audited.kinds[0])
    return gravity, result.source, result.source_line or 0, audited.anchor


def _audit(
    releases: Releases, numbers: Mapping[ReleaseName, Counter[str]], total: str
) -> list[Block]:
    """How many findings each release has, and the errors and warnings that nobody explained."""
    if not releases:
        return [paragraph(NONE)]
    rows = [
        [_release(name), *(HtmlCell(f"{found[kind]:,}", sort=found[kind]) for kind in KINDS)]
        for name, found in numbers.items()
    ]
    titles = heads("Release", *(f"#{kind.capitalize()}" for kind in KINDS))
    found = [line for name, some in releases.items() for line in _open_lines(name, some)]
    found.sort(key=lambda it: KINDS.index(it.kind))
    return [
        render(
            "audit",
            total=total,
            by_release=plain("Findings by release", titles, rows),
            opened=_opened(found[:MOST_OBJECTIONS], releases) if found else "",
            left=len(found[MOST_OBJECTIONS:]),
        )
    ]


@dataclass(frozen=True)
class _OpenLine:
    """An open error or warning of a result, or one that so many results of a release share."""

    kind: str
    rule: str
    release: ReleaseName
    anchor: str
    count: int = 1


def _open_lines(name: ReleaseName, some: Sequence[Audited]) -> Iterator[_OpenLine]:
    """Each open error and warning; those of one cause share a line."""
    found = [(it, audited.anchor) for audited in some for it in audited.open]
    single, by_rule = summarized(it for it, _ in found)
    alone = set(map(id, single))
    for it, anchor in found:
        if id(it) in alone:
            yield _OpenLine(it.kind, it.rule, name, anchor)
    for rule, shared in by_rule.items():
        yield _OpenLine(shared[0].kind, rule, name, rule, len(shared))


def _opened(listed: Sequence[_OpenLine], releases: Releases) -> Markup:
    titles = {name: titles_of(releases[name]) for name in {it.release for it in listed}}
    rows = []
    for it in listed:
        many = units.counted(it.count, "result")
        text = many if it.count > 1 else titles[it.release][it.anchor]
        rows.append(
            [
                HtmlCell(badge(it.kind), sort=KINDS.index(it.kind)),
                HtmlCell(code(it.rule), sort=it.rule),
                link_cell(text, addresses.of_audit(*it.release), it.anchor),
                _release(it.release),
            ]
        )
    head = heads("Severity", "Rule", "~Result", "Release")
    return plain("Open errors and warnings", head, rows)


def _release(name: ReleaseName) -> HtmlCell:
    return link_cell(release_title(*name), addresses.of_audit(*name))


def _entries(some: Sequence[Audited]) -> list[Block]:
    """An entry for each result; those with nothing but info are folded, as are those of a rule
    that objects to many results for one cause."""
    names = titles_of(some)
    single, by_rule = summarized(it for audited in some for it in audited.findings)
    alone = set(map(id, single))
    left = [replace(it, findings=tuple(f for f in it.findings if id(f) in alone)) for it in some]
    entries = [(it, names[it.anchor], _place(it.result)) for it in left if it.findings]
    noted = [entry for entry in entries if not entry[0].objections]
    objections = [entry for entry in entries if entry[0].objections]
    count = units.counted(len(noted), "result")
    anchored = {it.anchor for it, _, _ in entries}
    rules = []
    for rule, shared in by_rule.items():
        own, lines = set(map(id, shared)), []
        for it in some:
            found = [finding for finding in it.findings if id(finding) in own]
            anchor = it.anchor if found and it.anchor not in anchored else None
            anchored.update([it.anchor] if found else [])
            lines += [(anchor, names[it.anchor], _place(it.result), found)] if found else []
        rules.append((rule, shared[0].kind, units.counted(len(lines), "result"), lines))
    return [render("audit_entries", objections=objections, noted=noted, count=count, rules=rules)]


def _place(result: SiteResult) -> Markup:
    """Links to the run or line that the figures are from, and to the table that shows them."""
    source = addresses.of_source(result.source_sha256)
    if result.run_id is not None:
        evidence = link(f"run {result.run_id}", addresses.of_run(result.run_id))
    elif result.source_line is None:
        evidence = link(result.source, source)
    else:
        line = f"{result.source}, line {result.source_line}"
        evidence = link(line, source, f"L{result.source_line}")
    tab = addresses.tab(result.framework, result.release, result.system)
    return joined((evidence, href("table", tab)), " · ")


def titles_of(some: Iterable[Audited]) -> dict[str, str]:
    """The title of each entry by its anchor: the work, and the fields that tell two apart."""
    found: dict[str, str] = {}
    for title, same in grouped(some, lambda one: work_title(one.result)).items():
        results = [one.result for one in same]
        apart = [it for it in columns.CASE.columns if len({known(it, one) for one in results}) > 1]
        names = []
        for one in results:
            values = ((column, known(column, one)) for column in apart)
            texts = (
                f"{it.title} {formatted(it, value)}" for it, value in values if value is not None
            )
            names.append(", ".join((title, *texts)))
        times = Counter(names)
        for audited, name in zip(same, names, strict=True):
            one = audited.result
            place = f"run {one.run_id}" if one.run_id else f"line {one.source_line}"
            found[audited.anchor] = name if times[name] == 1 else f"{name}, {place}"
    return found
