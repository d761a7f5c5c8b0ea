"""What the audit found, where the figure is: the mark beside a row, and the page of entries."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from perfdb import units
from perfdb.audit import Finding, Severity
from perfdb.audit.check import ordered
from perfdb.audit.document import counts
from perfdb.catalog import titles
from perfdb.site import addresses, tables
from perfdb.site.addresses import Address
from perfdb.site.data import Audited, AuditedRelease, AuditPage, Flag, Result
from perfdb.site.grouping import newest_first, trials
from perfdb.site.markup import Cell, Content, Head, Html, Table, joined, link, table, tag, terms
from perfdb.site.profiles import CASE
from perfdb.site.words import gpus, model_title, release_title, section_title

ERROR = Severity.ERROR.value
KINDS = (*(severity.value for severity in Severity), "explained")
"""The gravest first. A finding that is acknowledged is explained, however grave it was."""


MEANING = (
    "An error: numbers contradict one another, within the rounding of what was printed. A warning: "
    "a number is very likely wrong, or missing where it could stand. Info: worth knowing before "
    "the number is used. Explained: somebody has looked at it and accepts it.",
    "The tables show every figure as it was published or measured; the audit changes none.",
)


def kind(finding: Finding) -> str:
    """How grave a finding is, or that it is explained."""
    return "explained" if finding.acknowledged else finding.severity.value


def badge(how: str) -> Html:
    """One of the kinds as a word in a box."""
    return tag("span", how, class_=f"perf-badge {how}")


def audited(result: Result, key: str, found: Iterable[Finding]) -> Audited:
    """A result with its findings; `key` is its identity, the same in every revision."""
    gravest_first = sorted(ordered(found), key=_gravity)
    return Audited(result=result, anchor=f"result-{key[:12]}", findings=tuple(gravest_first))


def flag(one: Audited) -> Flag | None:
    """The mark of a result; None where the findings are only worth knowing."""
    objections = [it for it in one.findings if it.severity.reaches(Severity.WARNING)]
    if not objections:
        return None
    return Flag(said=counts(objections), kind=kind(objections[0]), anchor=one.anchor)


def page_of(every: Sequence[Audited]) -> AuditPage:
    """The page: by framework, the newest release first, and in it the gravest entry first."""
    by_release: dict[tuple[str, str | None], list[Audited]] = defaultdict(list)
    for one in every:
        by_release[one.result.framework, one.result.release].append(one)
    releases = [
        AuditedRelease(
            framework=framework, release=version, results=tuple(sorted(found, key=_order))
        )
        for (framework, version), found in by_release.items()
    ]
    return AuditPage(releases=tuple(newest_first(releases, trials(one.result for one in every))))


def _order(one: Audited) -> tuple[int, str, int, str]:
    result = one.result
    return _gravity(one.findings[0]), result.source, result.source_line or 0, one.anchor


def _gravity(finding: Finding) -> int:
    return KINDS.index(kind(finding))


def head(page: AuditPage, address: Address) -> Html:
    """How many findings of each kind there are, what the kinds mean, and the open errors first."""
    every = [it for release in page.releases for one in release.results for it in one.findings]
    said = (tag("p", tag("strong", f"{counts(every)}.")), *(tag("p", it) for it in MEANING))
    return joined((*said, _summary(page, address)))


def _summary(page: AuditPage, address: Address) -> Html:
    """Every error and warning that nobody has explained, over all releases, the errors first."""
    objections = [
        (kind(finding), finding, one)
        for release in page.releases
        for one in release.results
        for finding in one.findings
        if not finding.acknowledged and finding.severity.reaches(Severity.WARNING)
    ]
    if not objections:
        return tag("p", "There are no open errors or warnings.")
    names = _titles(one for release in page.releases for one in release.results)
    rows = [
        _summary_row(how, finding, (one, names[one.anchor]), address)
        for how, finding, one in sorted(objections, key=lambda it: KINDS.index(it[0]))
    ]
    heads = [Head("Severity"), Head("Rule"), Head("Result", wide=True), Head("Release")]
    return table(Table("Open errors and warnings", heads, rows))


def _summary_row(
    how: str, finding: Finding, named: tuple[Audited, str], address: Address
) -> list[Cell]:
    one, name = named
    release = release_title(one.result.framework, one.result.release)
    page = address(addresses.of_release(one.result.framework, one.result.release))
    return [
        Cell(badge(how), sort=KINDS.index(how)),
        Cell(tag("code", finding.rule), sort=finding.rule),
        Cell(link(name, f"#{one.anchor}"), sort=name),
        Cell(link(release, page), sort=release),
    ]


def entries(release: AuditedRelease, address: Address) -> Html:
    """An entry for each result of a release that has findings; those worth knowing are folded."""
    names = _titles(release.results)
    made = [(it, _entry(it, names[it.anchor], address)) for it in release.results]
    worth_knowing = [entry for it, entry in made if _is_worth_knowing(it)]
    others = [entry for it, entry in made if not _is_worth_knowing(it)]
    if not worth_knowing:
        return joined(others, "\n")
    count = units.counted(len(worth_knowing), "result")
    said = tag("summary", f"{count} with nothing but info")
    return joined((*others, tag("details", joined((said, *worth_knowing), "\n"))), "\n")


def _is_worth_knowing(one: Audited) -> bool:
    return kind(one.findings[0]) == Severity.INFO.value


def _entry(one: Audited, name: str, address: Address) -> Html:
    parts = (
        tag("h3", name),
        tag("p", _places(one.result, address), class_="perf-entry-source"),
        tag("ul", [_item(finding) for finding in one.findings]),
    )
    return tag("article", parts, class_="perf-entry", id=one.anchor)


def _titles(given: Iterable[Audited]) -> dict[str, str]:
    """What each entry is called, by its anchor: with all in which those of one name differ."""
    alike: dict[tuple[str, str | None, str], list[Audited]] = defaultdict(list)
    for one in given:
        alike[one.result.framework, one.result.release, title(one.result)].append(one)
    return {
        one.anchor: ", ".join((name, *_apart(one, some)))
        for (_, _, name), some in alike.items()
        for one in some
    }


def _apart(one: Audited, others: Sequence[Audited]) -> Iterator[str]:
    for column in CASE.columns:
        value = tables.known(column, one.result)
        if value is not None and {tables.known(column, it.result) for it in others} != {value}:
            yield f"{column.title} {tables.formatted(column, value)}"


def title(result: Result) -> str:
    """What was run: model, precision, task, GPUs and system."""
    model = model_title(result.model_title, result.qualifiers)
    work = (titles.precision(result.precision), section_title(result.task, result.variant))
    where = f"{gpus(result.num_gpus)} on {result.system_title}"
    return ", ".join(filter(None, (model, *work, where)))


def _places(result: Result, address: Address) -> Html:
    """Where the figures are from, and the table that shows them."""
    page = addresses.of_tab(result.framework, result.release, result.system, address)
    shown = link("table", page)
    return joined((_evidence(result, address), shown), " · ")


def _evidence(result: Result, address: Address) -> Content:
    if result.run_id is not None:
        return link(f"run {result.run_id}", address(addresses.of_run(result.run_id)))
    source = address(addresses.of_source(result.source_sha256))
    if result.source_line is None:
        return link(result.source, source)
    line = f"{result.source}, line {result.source_line}"
    return link(line, f"{source}#L{result.source_line}")


def _item(finding: Finding) -> Html:
    said = tag("p", (badge(kind(finding)), " ", tag("code", finding.rule), f" {finding.message}."))
    return tag("li", (said, terms(_details(finding))))


def _details(finding: Finding) -> Sequence[tuple[str, str]]:
    known = [
        ("Expected", finding.expected or units.UNKNOWN),
        ("Found", finding.found or units.UNKNOWN),
        ("Suggestion", finding.suggestion or ""),
        ("Acknowledged", finding.acknowledged or ""),
    ]
    return [(name, text) for name, text in known if text]
