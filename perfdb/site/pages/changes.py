"""Each release against the newest before it that shares work: what is matched, what is not."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import log
from operator import itemgetter
from typing import Final

from markupsafe import Markup

from perfdb import units
from perfdb.catalog import titles
from perfdb.compare import Match, Side, Verdict, metric_for, report
from perfdb.compare.comparability import gflop_per_token_apart, why_nothing
from perfdb.compare.release_report import MISSING, NEW, ReleaseReport, key_of_side
from perfdb.compare.sides import usable
from perfdb.groups import grouped
from perfdb.metrics import METRICS
from perfdb.record import Result
from perfdb.site import addresses, charts
from perfdb.site.cells import FLOPS, HtmlCell
from perfdb.site.charts import BAD, FAINT, GOOD, ChartBar
from perfdb.site.data import SiteData
from perfdb.site.grouping import release_title
from perfdb.site.page import Block, Section, SitePage, no_data
from perfdb.site.pages import release_reports
from perfdb.site.pages.parts import differing, heads, label, note
from perfdb.site.pages.release_pairs import ReleasePair, not_judged, tally, tally_text
from perfdb.site.pages.releases import TRIAL
from perfdb.site.tables import HtmlHead, plain
from perfdb.site.templates import (
    badge,
    href,
    joined,
    link,
    paragraph,
    render,
    short_hash,
    to,
    with_short_hashes,
)
from perfdb.stated import RATE
from perfdb.versions import is_rolling

WHAT: Final = "Each release against the newest before it that shares work with it"
NONE: Final = "The store has no release with a version yet, so that there is nothing to compare."
ORDER: Final = (
    Verdict.FAILED, Verdict.SLOWER, Verdict.FASTER, Verdict.RECOVERED, Verdict.UNKNOWN,
    Verdict.SAME, Verdict.NOT_COMPARABLE, Verdict.NOT_JUDGED,
)  # fmt: skip
"""The order of matches: regressions come first."""
BADGES: Final = {
    Verdict.FASTER: "good", Verdict.RECOVERED: "good", Verdict.SLOWER: "bad", Verdict.FAILED: "bad",
}  # fmt: skip
COLOURS: Final = {Verdict.FASTER: GOOD, Verdict.RECOVERED: GOOD, Verdict.SLOWER: BAD}
ALWAYS: Final = ("qualified model", "system", "precision", "number of GPUs")
PARTS: Final = (
    "qualified model", "task", "system", "precision", "number of GPUs", "sequence length",
    "global batch size",
)  # fmt: skip
"""The parts of the label of a bar: those that it always has, and all of them."""
Rows = Mapping[int, str]
"""The anchors of the rows of results, by their numbers in the store."""
Outcome = tuple[str, str, str, str, tuple[int, ...]]
"""The framework, both releases, the page and the counts of a comparison."""


def is_within_quantum(match: Match) -> bool:
    """Whether tokens/s/GPU differ by no more than the rounding of samples/s in their releases."""
    ratio = match.judgement.ratio
    allowed = match.a.rounding(match.metric) + match.b.rounding(match.metric)
    return ratio is not None and abs(log(ratio)) <= allowed


def disagreement(match: Match) -> str | None:
    """The figures of a match whose TFLOP/s changed by another factor than its tokens/s, if any.

    'tokens/s/GPU 9,000 → 9,000, TFLOP/s/GPU 722 → 72,000'. The change must be beyond the rounding
    of the four, and that of samples/s. The same work takes the same FLOPs per token, so that both
    change alike, unless two conventions count them.
    """
    a, b = match.a.shown, match.b.shown
    known = all(usable(side, metric) is not None for side in (a, b) for metric in (RATE, FLOPS))
    conventions = {a.flops_convention, b.flops_convention} - {None}
    if not known or len(conventions) > 1 or not gflop_per_token_apart(match.a, match.b):
        return None
    return ", ".join(
        f"{name} {report.figure(a, metric)} → {report.figure(b, metric)}"
        for name, metric in (("tokens/s/GPU", RATE), ("TFLOP/s/GPU", FLOPS))
    )


def pages(data: SiteData) -> Iterator[SitePage]:
    """The page of each comparison, and their list."""
    listed = [pair for pair in data.pairs if pair.is_on_gpus] or data.pairs
    below = [pair.document for pair in listed]
    about = f"{WHAT}: {units.counted(len(below), 'comparison')}."
    releases = {(it.framework, it.release) for it in data.results if it.release}
    known = grouped(sorted(releases, key=repr), itemgetter(0))
    alone = known.keys() - {pair.framework for pair in data.pairs}
    reasons = tuple(
        _why_alone(framework, [version or "" for _, version in known[framework]])
        for framework in sorted(alone, key=titles.framework)
    )
    body = partial(_index, tuple(map(_outcome, listed)), reasons, bool(data.results))
    yield SitePage(addresses.CHANGES, "Changes", about, body, below=below)
    rows = {result.result_id: result for result in data.results}
    for pair in data.pairs:
        found = pair.comparison
        sides = [side for match in found.matched for side in (match.a, match.b)]
        shown = {side.shown.result_id for side in (*sides, *found.only_a, *found.only_b)}
        own = {it: addresses.result_row(rows[it]) for it in sorted(shown & rows.keys())}
        body = partial(_changes, pair, own)
        yield SitePage(pair.document, pair.title, f"{pair.title}: {_summary(pair)}.", body)


def _why_alone(framework: str, releases: Sequence[str]) -> str:
    """Why no two releases of a framework are compared."""
    name = titles.framework(framework)
    if len(releases) > 1 and all(map(is_rolling, releases)):
        order = "which have no order: perfdb compare and the dashboard compare any two"
        return f"{name} has rolling branches only, {order}."
    which = "" if len(releases) == 1 else f" that is not {TRIAL}"
    return f"{name} has one release{which}: there is nothing to compare it with."


def _outcome(pair: ReleasePair) -> Outcome:
    """How many cases of a comparison are matched, have each verdict, and are on one side only."""
    found = pair.comparison
    verdicts = tally(pair).values()
    counts = (len(found.matched), *verdicts, len(found.only_a), len(found.only_b))
    return pair.framework, pair.before, pair.after, pair.document, counts


def _index(outcomes: Sequence[Outcome], alone: Sequence[str], any_results: bool) -> list[Block]:
    """The outcome of each comparison, and the frameworks that have nothing to compare yet."""
    if not outcomes and not alone:
        return [paragraph(NONE) if any_results else no_data()]
    names = ("Matched", *map(str.capitalize, Verdict), "Only before", "Only after")
    numbers = (f"#{name}" for name in names)
    # sorted by title: a version alone would be sorted as a number, 0.10 before 0.9
    rows: list[list[HtmlCell | str]] = [
        [
            link(titles.framework(name), document),
            *(HtmlCell(short_hash(it), sort=release_title(name, it)) for it in (before, after)),
            *(f"{count:,}" for count in counts),
        ]
        for name, before, after, document, counts in outcomes
    ]
    made = plain("Changes", heads("Framework", "Before", "After", *numbers), rows) if rows else ""
    intro = f"{WHAT}; a rolling branch, such as main, against the newest release."
    return [joined((paragraph(intro), made, *map(paragraph, alone)))]


def _summary(pair: ReleasePair) -> str:
    """How many are faster and slower, or why nothing is compared."""
    found = pair.comparison
    if found.matched:
        return tally_text(pair)
    before, after = (release_title(pair.framework, name) for name in (pair.before, pair.after))
    return why_nothing(before, after, found).removesuffix(".")


def _changes(pair: ReleasePair, rows: Rows) -> list[Block]:
    found = pair.comparison
    only = f" {len(found.only_a):,} only in A, {len(found.only_b):,} only in B."
    ends = [
        (release_title(pair.framework, name), addresses.of_release(pair.framework, name))
        for name in (pair.before, pair.after)
    ]
    outcome = f"{_summary(pair)}.{only if found.matched else ''}"
    told = pair.report
    made: list[Block] = [
        render("changes_head", pair=pair, ends=ends, outcome=outcome, short=with_short_hashes),
        release_reports.prose(told.notes.front),
    ]
    if found.matched:
        made.append(release_reports.summary(told, chart(pair)))
        made += release_reports.largest(told, pair.histories, rows)
    for title, name, sides in (
        (NEW, pair.after, found.only_b),
        (MISSING, pair.before, found.only_a),
    ):
        if sides or title in told.notes.of_sections:
            made.append(Section(title, _alone(told, title, name, [*sides], rows)))
    made += [*release_reports.findings(told), *release_reports.not_judged(told)]
    made += release_reports.others(told)
    if found.matched:
        made.append(Section("All compared", [_matched(pair, rows)]))
    return made


def _alone(
    told: ReleaseReport, title: str, release: str, sides: Sequence[Side], rows: Rows
) -> list[Block]:
    """What one release has alone, and the notes on it."""
    words = {key_of_side(side): report.workload(side.shown) for side in sides}
    cells = [_unmatched_row(side, rows) for side in sides]
    table = _table(f"Only in {release}", (release,), (), cells) if cells else paragraph("None.")
    above = release_reports.of_section(told, title)
    return [above, table, release_reports.of_rows(told, words)]


def _matched(pair: ReleasePair, rows: Rows) -> Markup:
    """Where figures disagree, and every match with its verdict."""
    found = [(text, it) for it in pair.comparison.matched if (text := disagreement(it))]
    labels = [report.workload(match.b.shown) for _, match in found]
    works = report.told_apart(labels, [match for _, match in found])
    texts = [(work, text) for work, (text, _) in zip(works, found, strict=True)]
    verdict = [
        HtmlHead("Change", numeric=True, falling=True),
        HtmlHead("99\u00a0%\u00a0interval\u00a0of\u00a0B/A", numeric=True),
        HtmlHead("B\u00a0is", falling=True),
    ]
    matches = [_match_row(match, rows) for match in sorted(pair.comparison.matched, key=_order)]
    made = _table("Matched cases", (pair.before, pair.after), verdict, matches)
    return joined((render("disagreements", items=texts), made))


def _order(match: Match) -> tuple[int, float]:
    """Changes by their size, those for the worse first; the others stay as they come."""
    verdict = match.judgement.verdict
    size = abs(change_of(match) or 0.0) if verdict in (Verdict.SLOWER, Verdict.FASTER) else 0.0
    return ORDER.index(verdict), -size


def change_of(match: Match) -> float | None:
    """B against A as a fraction of A: 0.02 is two per cent more; None where it is unknown."""
    ratio = match.judgement.ratio
    return None if ratio is None else ratio - 1


def chart(pair: ReleasePair) -> Markup:
    """The largest changes as bars, coloured by verdict. Nothing where nothing has changed."""
    judged = pair.comparison.judged
    changes = [(change, match) for match in judged if (change := change_of(match)) is not None]
    known = [
        (change, match)
        for change, match in changes
        if report.signed(change) != report.NO_CHANGE and not is_within_quantum(match)
    ]
    if not known:
        return Markup("")
    largest = sorted(known, key=lambda one: abs(one[0]), reverse=True)[: charts.MOST_BARS]
    ranked = sorted(largest, key=lambda one: one[0], reverse=True)
    matches = [match for _, match in ranked]
    shown = [match.b.shown for match in matches]
    apart = (*ALWAYS, *differing(PARTS, shown))
    labels = [label((part for part in PARTS if part in apart), one) for one in shown]
    bars = [
        ChartBar(
            text, change * 100, report.signed(change), COLOURS.get(match.judgement.verdict, FAINT)
        )
        for text, (change, match) in zip(report.told_apart(labels, matches), ranked, strict=True)
    ]
    drawn = charts.bars(
        pair.title, with_short_hashes(f"change from {pair.before} to {pair.after} (%)"), bars
    )
    some = f"{len(bars)} largest of {len(known)}" if len(known) > len(bars) else f"{len(bars)}"
    some += " change is" if len(known) == 1 else " changes are"
    unchanged = len(judged) - len(known)
    still = f"; of {unchanged:,} more the figure has not changed or is not known"
    wrong = not_judged(pair)
    below = note(
        f"The {some} drawn{still if unchanged else ''}.",
        f"{wrong}: no bar." if wrong else "",
        "The table has them all.",
    )
    names = {GOOD: "faster", BAD: "slower", FAINT: "same or inconclusive"}
    key = charts.key(
        {text: one for one, text in names.items() if one in {it.colour for it in bars}}
    )
    return charts.with_note(drawn, below, key)


def _table(
    title: str,
    releases: Sequence[str],
    verdict: Sequence[HtmlHead],
    rows: Sequence[Sequence[HtmlCell]],
) -> Markup:
    """Cases with their figures in releases; a figure that all have is named in the heads."""
    model, work, figure, *how = heads("Model", "~Work", "Figure", "~Configuration", "~Origin")
    names = {row[2].content for row in rows}
    if len(names) > 1:
        figures = [HtmlHead(release, numeric=True) for release in releases]
        return plain(title, [model, work, figure, *figures, *verdict, *how], rows)
    figures = [
        HtmlHead(f"{release} {name}", numeric=True, falling=True)
        for name in names
        for release in releases
    ]
    cells = [[*row[:2], *row[3:]] for row in rows]
    return plain(title, [model, work, *figures, *verdict, *how], cells)


def _match_row(match: Match, rows: Rows) -> list[HtmlCell]:
    percent = change_of(match)
    verdict = match.judgement.verdict
    box = badge(report.verdict(match.judgement, match.metric), BADGES.get(verdict, "explained"))
    if verdict is Verdict.NOT_JUDGED:
        box += Markup(' <span class="perf-flag error">{}</span>').format(report.OPEN_ERRORS)
    return [
        *_case(match.b.shown),
        HtmlCell(METRICS[match.metric].title),
        *(_figure(side.shown, match.metric, rows) for side in (match.a, match.b)),
        HtmlCell(report.signed(percent), sort=percent),
        HtmlCell(report.interval(match.judgement), sort=match.judgement.low),
        HtmlCell(box),
        HtmlCell(report.how(match)),
        HtmlCell(report.remark(match)),
    ]


def _unmatched_row(side: Side, rows: Rows) -> list[HtmlCell]:
    metric, result = METRICS[metric_for([side], [side], None)], side.shown
    return [
        *_case(result),
        HtmlCell(metric.title),
        _figure(result, metric.name, rows),
        HtmlCell(report.configuration(result)),
        HtmlCell(report.remark_of(side)),
    ]


def _figure(result: Result, metric: str, rows: Rows) -> HtmlCell:
    """A figure, leading to its row on the page of its release."""
    row = rows.get(result.result_id)
    at = to(addresses.of_release(result.framework, result.release), row) if row else ""
    return HtmlCell(report.figure(result, metric), sort=usable(result, metric), evidence=at)


def _case(result: Result) -> tuple[HtmlCell, HtmlCell]:
    """The model, leading to the table that shows the figure, and the rest of the work."""
    tab = addresses.tab(result.framework, result.release, result.system)
    model, *rest = report.workload(result).split(" · ")
    return HtmlCell(href(model, tab), sort=report.workload(result)), HtmlCell(" · ".join(rest))
