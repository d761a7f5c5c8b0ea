"""The parts of the report on a release, which `perfdb report` has in Markdown."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from markdown_it import MarkdownIt
from markupsafe import Markup

from perfdb.audit import report as of_audit
from perfdb.compare import Match, Verdict, release_report, report, triage
from perfdb.compare.release_report import (
    CHANGES,
    MOST_LISTED,
    SHORT_KEY,
    ReleaseHistory,
    ReleaseReport,
    Tally,
)
from perfdb.metrics import METRICS
from perfdb.site import addresses, charts
from perfdb.site.cells import HtmlCell
from perfdb.site.charts import ChartLine
from perfdb.site.page import Block, Section
from perfdb.site.pages.parts import heads, note
from perfdb.site.tables import plain
from perfdb.site.templates import code, joined, paragraph, render
from perfdb.units import UNKNOWN, figure

FEWEST_RELEASES = 3
"""From so many on a history says more than a ratio does."""
_MARKDOWN = MarkdownIt("js-default")
"""Without HTML: notes come from a file, and a page has a policy of its own."""


def prose(text: str) -> Markup:
    """What a person wrote, as HTML; nothing without a text."""
    if not text:
        return Markup("")
    return Markup('<div class="perf-prose">{}</div>\n').format(Markup(_MARKDOWN.render(text)))


def of_section(made: ReleaseReport, name: str) -> Markup:
    return prose(made.notes.of_sections.get(name, ""))


def of_rows(made: ReleaseReport, rows: Mapping[str, str]) -> Markup:
    """The notes on rows, by their keys, each below the words of its row."""
    return joined(
        Markup("<p><strong>{}</strong></p>\n{}").format(words, prose(made.notes.of_rows[key]))
        for key, words in rows.items()
        if key in made.notes.of_rows
    )


def summary(made: ReleaseReport, drawn: Markup) -> Section:
    """How many rows have each verdict and by how much they changed, and the largest as bars."""
    columns = ("#Rows", "#Mean|geometric mean of the change", "#Range|of the changes")
    tallies = [_cells(it) for it in release_report.by_verdict(made.comparison)]
    places: list[list[HtmlCell | str]] = [
        [*place, *_cells(it)[1:]] for place, it in release_report.by_place(made.comparison)
    ]
    tables = [plain("Verdicts", heads("Verdict", *columns), tallies)]
    if places:
        tables.append(plain("Change by place", heads("System", "Precision", *columns), places))
    speed = (
        "The mean is the geometric mean of the change in speed, over all results that have a "
        "verdict on it."
    )
    below = note(speed, release_report.at_other_sizes(made.comparison))
    shown = Markup('<div class="perf-tallies">{}</div>\n').format(joined(map(_narrow, tables)))
    name = release_report.SUMMARY
    return Section(name, [joined((of_section(made, name), shown, below, drawn))])


def _narrow(table: Markup) -> Markup:
    return Markup('<div class="perf-narrow">{}</div>\n').format(table)


def _cells(it: Tally) -> list[HtmlCell]:
    name, rows, mean, extent = it.cells
    return [
        HtmlCell(name),
        HtmlCell(rows),
        HtmlCell(mean, sort=it.geometric_mean),
        HtmlCell(extent),
    ]


def largest(
    made: ReleaseReport, histories: Mapping[str, ReleaseHistory], rows: Mapping[int, str]
) -> Iterator[Section]:
    """The largest changes each way, with their histories; `rows` are the anchors of results."""
    for name, group in CHANGES.items():
        matches = release_report.largest(made, name)
        if not matches and name not in made.notes.of_sections:
            continue
        count = len(triage.groups(made.comparison.matched).get(group, ()))
        words = report.told_apart([report.workload(it.b.shown) for it in matches], matches)
        shown = [
            _change(made, it, text, histories.get(release_report.key_of(it)))
            for it, text in zip(matches, words, strict=True)
        ]
        for it, card in zip(matches, shown, strict=True):
            card["target"] = addresses.table_row(it.b.shown) if it.b.shown.result_id in rows else ""
        some = f"The largest {len(matches)} of {count:,}." if count > len(matches) else ""
        low = "The axes of histories do not begin at zero. A ring is a change point."
        blocks: list[Block] = [
            of_section(made, name),
            render("release_changes", changes=shown) if shown else paragraph("None."),
            note(some, low if any(card["chart"] for card in shown) else ""),
        ]
        yield Section(name, blocks)


def _change(
    made: ReleaseReport, match: Match, words: str, history: ReleaseHistory | None
) -> dict[str, object]:
    """What the card of a change has."""
    metric, key = METRICS[match.metric], release_report.key_of(match)
    a, b = (report.figure(side.shown, metric.name) for side in (match.a, match.b))
    within = report.interval(match.judgement)
    interval = "" if within == UNKNOWN else f" (99\u00a0% interval {within})"
    return {
        "change": release_report.change(match),
        "is_good": match.judgement.verdict in (Verdict.FASTER, Verdict.RECOVERED),
        "work": words,
        "figures": f"{metric.title} {a} → {b}, B/A {figure(match.judgement.ratio, 3)}{interval}",
        "remarks": [
            report.how(match),
            report.remark(match),
            *triage.notes(match),
            f"row {key[:SHORT_KEY]}",
        ],
        "chart": _history(words, match.metric, history) if history else "",
        "note": prose(made.notes.of_rows.get(key, "")),
    }


def _history(words: str, name: str, known: ReleaseHistory) -> Markup:
    """The figures of a row over releases; nothing for two, which the ratio tells."""
    if len(known.releases) < FEWEST_RELEASES:
        return Markup("")
    scale = 100.0 if METRICS[name].unit == "fraction" else 1.0
    points = tuple((float(place), it * scale) for place, it in enumerate(known.figures))
    texts = tuple(report.printed(METRICS[name], it) for it in known.figures)
    least, most = min(known.figures) * scale, max(known.figures) * scale
    low = max(0.0, least - (most - least or least))
    line = ChartLine("", points, texts, moved=known.moved)
    return charts.over_releases(words, METRICS[name].title, known.releases, [line], low)


def findings(made: ReleaseReport) -> Iterator[Section]:
    """What the audit found in B: how much by rule, and its errors."""
    name = release_report.FINDINGS
    rules: list[list[HtmlCell | str]] = [
        [HtmlCell(code(rule), sort=rule), counts]
        for rule, counts in release_report.by_rule(made.findings)
    ]
    table = _narrow(plain(name, heads("Rule", "~Findings"), rows=rules)) if rules else ""
    grave = release_report.errors(made.findings)
    items = [f"{of_audit.subject(it)}: {of_audit.sentence(it)}" for it in grave[:MOST_LISTED]]
    more = f"and {len(grave) - len(items):,} more" if len(grave) > len(items) else ""
    listed = render("errors_of_release", errors=items, more=more) if items else Markup("")
    yield from _section(made, name, table, listed)


def _section(made: ReleaseReport, name: str, table: str, *others: str) -> Iterator[Section]:
    """A section with a table; without one only where there is a note on it."""
    if table or name in made.notes.of_sections:
        shown = table or _narrow(paragraph("None."))
        yield Section(name, [joined((of_section(made, name), shown, *others))])


def not_judged(made: ReleaseReport) -> Iterator[Section]:
    """What could not be judged, and why."""
    name = release_report.NOT_JUDGED
    known = release_report.not_judged(made.comparison)
    rows: list[Sequence[HtmlCell | str]] = [
        [verdict, why, f"{count:,}"] for verdict, why, count in known
    ]
    table = _narrow(plain(name, heads("Verdict", "~Why", "#Rows"), rows)) if rows else ""
    yield from _section(made, name, table)


def others(made: ReleaseReport) -> Iterator[Section]:
    """Notes on rows that are in no section of their own."""
    matches: Iterable[Match] = release_report.others_noted(made)
    rows = {release_report.key_of(it): report.workload(it.b.shown) for it in matches}
    if rows:
        name = release_report.OTHERS
        yield Section(name, [joined((of_section(made, name), of_rows(made, rows)))])
