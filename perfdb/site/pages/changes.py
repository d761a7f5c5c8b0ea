"""Each release against the newest before it that shares work: what is matched, what is not."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import compress
from operator import itemgetter
from typing import Final

from markupsafe import Markup

from perfdb import units
from perfdb.catalog import titles
from perfdb.compare import Match, Side, Verdict, metric_for, report, usable
from perfdb.groups import grouped
from perfdb.metrics import METRICS
from perfdb.record import Result
from perfdb.site import addresses, charts
from perfdb.site.addresses import result_row
from perfdb.site.cells import HtmlCell, gpus
from perfdb.site.charts import BAD, FAINT, GOOD, ChartBar
from perfdb.site.data import SiteData
from perfdb.site.grouping import release_title
from perfdb.site.page import Block, Page, Section, no_data
from perfdb.site.pages import parts, best_results
from perfdb.site.pages.releases import TRIAL
from perfdb.site.pairs import ReleasePair, disagreement, tally
from perfdb.site.tables import HtmlHead, plain
from perfdb.site.templates import (
    badge,
    joined,
    link,
    paragraph,
    render,
    render_text,
    short_hash,
    to,
)
from perfdb.versions import is_rolling

ALWAYS: Final = (True, False, True, True, True, False, False)
"""Which words of a label stand also where they are the same in all."""

NO_CHANGE: Final = units.percent(0.0)

COLOURS: Final = {Verdict.FASTER: GOOD, Verdict.SLOWER: BAD}


def change_of(match: Match) -> float | None:
    """B against A as a fraction of A: 0.02 is two per cent more; None where it is unknown."""
    ratio = match.judgement.ratio
    return None if ratio is None else ratio - 1


def signed(fraction: float | None) -> str:
    """'+2.0%', '−1.3%', '0.0%'; – when unknown."""
    if fraction is None:
        return units.UNKNOWN
    text = units.percent(abs(fraction))
    sign = "" if text == NO_CHANGE else "+" if fraction > 0 else "−"
    return f"{sign}{text}"


def chart(pair: ReleasePair) -> Markup:
    """The largest changes as bars, coloured by verdict. Nothing where nothing has changed."""
    known = [
        (change, match)
        for match in pair.comparison.judged
        for change in (change_of(match),)
        if change is not None and signed(change) != NO_CHANGE
    ]
    if not known:
        return Markup("")
    largest = sorted(known, key=lambda one: abs(one[0]), reverse=True)[: charts.MOST_BARS]
    ranked = sorted(largest, key=lambda one: one[0], reverse=True)
    labels = _labels([match for _, match in ranked])
    given = [
        ChartBar(label, change * 100, signed(change), COLOURS.get(match.judgement.verdict, FAINT))
        for label, (change, match) in zip(labels, ranked, strict=True)
    ]
    drawn = charts.bars(pair.title, f"change from {pair.before} to {pair.after} (%)", given)
    return charts.with_note(drawn, _note(pair, len(given), len(known)))


def _note(pair: ReleasePair, drawn: int, known: int) -> Markup:
    """Which changes are drawn, and what has no bar."""
    some = f"{drawn} largest of {known}" if known > drawn else f"{drawn}"
    some += " change is" if known == 1 else " changes are"
    unchanged = len(pair.comparison.judged) - known
    still = f"; of {unchanged:,} more the figure has not changed or is not known"
    wrong = tally(pair).not_judged
    return parts.note(
        f"The {some} drawn, grey where no difference can be told{still if unchanged else ''}.",
        f"{wrong}: no bar." if wrong else "",
        "The table has them all.",
    )


def _labels(matches: Sequence[Match]) -> list[str]:
    """What each bar is of; a detail only where the bars differ in it, or would be named alike."""
    rows = [_named(match.b.shown) for match in matches]
    differ = [len(set(column)) > 1 for column in zip(*rows, strict=True)]
    shown_parts = [always or differs for always, differs in zip(ALWAYS, differ, strict=True)]
    labels = [" · ".join(filter(None, compress(row, shown_parts))) for row in rows]
    return report.told_apart(labels, matches)


def _named(it: Result) -> tuple[str, ...]:
    """The words of a label; ALWAYS says which of them every label has."""
    return (
        titles.qualified(it.model_title, it.qualifiers),
        titles.task(it.task),
        it.system_title,
        titles.precision(it.precision),
        gpus(it.num_gpus, it.system),
        f"sequence {it.sequence_length:,}",
        f"GBS {it.global_batch_size:,}",
    )


RULE: Final = (
    "Results are matched where the work is the same: at equal configuration, and once more with "
    "the best configuration of each release where these differ. Measured pairs have a 95 % "
    "interval from the spread of their runs, and are the same where it includes 1, or unknown "
    "where it is also wider than ±5 %; published pairs are the same where they differ by no more "
    "than the rounding of their digits; what is measured on one side and published on the other, "
    "or over different windows of its steps, or has no figure, is unknown; what finished in A and "
    "not in B is failed. What has an open error of the audit on either side is not judged."
)

ORDER: Final = (
    Verdict.FAILED, Verdict.SLOWER, Verdict.FASTER, Verdict.SAME, Verdict.UNKNOWN,
    Verdict.NOT_JUDGED,
)  # fmt: skip
"""In which order matches stand: a regression is what nobody may miss."""
WHAT: Final = "Each release against the newest before it that shares work with it"
NONE: Final = "The store has no release with a version yet, so that there is nothing to compare."

BADGES: Final = {Verdict.FASTER: "good", Verdict.SLOWER: "bad", Verdict.FAILED: "bad"}


Rows = Mapping[int, str]
"""The anchors of the rows of results, by their numbers in the store."""


def pages(data: SiteData) -> Iterator[Page]:
    """The page of each comparison, and their list."""
    below = [pair.document for pair in data.pairs]
    about = f"{WHAT}: {units.counted(len(below), 'comparison')}."
    releases = {(it.framework, it.release) for it in data.results if it.release}
    known = grouped(sorted(releases, key=repr), itemgetter(0))
    alone = tuple(
        _why_alone(framework, [version or "" for _, version in known[framework]])
        for framework in sorted(
            known.keys() - {pair.framework for pair in data.pairs}, key=titles.framework
        )
    )
    body = partial(_index, tuple(map(_outcome, data.pairs)), alone, bool(data.results))
    yield Page(addresses.CHANGES, "Changes", about, body, below=below)
    rows = {result.result_id: result_row(result) for result in data.results}
    for pair in data.pairs:
        body = partial(_changes, pair, _rows_of(pair, rows))
        yield Page(pair.document, pair.title, f"{pair.title}: {_came_out(pair)}.", body)


def _why_alone(framework: str, releases: Sequence[str]) -> str:
    """Why no two releases of a framework are compared."""
    name = titles.framework(framework)
    if len(releases) > 1 and all(map(is_rolling, releases)):
        order = "which have no order: perfdb compare and the dashboard compare any two"
        return f"{name} has rolling branches only, {order}."
    which = "" if len(releases) == 1 else f" that is not {TRIAL}"
    return f"{name} has one release{which}: there is nothing to compare it with."


def _rows_of(pair: ReleasePair, rows: Rows) -> Rows:
    """The anchors of the rows that the figures of a comparison are in."""
    found = pair.comparison
    sides = [side for match in found.matched for side in (match.a, match.b)]
    shown = {side.shown.result_id for side in (*sides, *found.only_a, *found.only_b)}
    return {number: rows[number] for number in sorted(shown & rows.keys())}


Outcome = tuple[str, str, str, str, tuple[int, ...]]
"""The framework, both releases, the page and the counts of a comparison."""


def _outcome(pair: ReleasePair) -> Outcome:
    """How a comparison came out: how many are matched, of each verdict, and on one side alone."""
    found = pair.comparison
    verdicts = tally(pair).counts.values()
    counts = (len(found.matched), *verdicts, len(found.only_a), len(found.only_b))
    return pair.framework, pair.before, pair.after, pair.document, counts


def _index(outcomes: Sequence[Outcome], alone: Sequence[str], any_results: bool) -> list[Block]:
    """How each comparison came out, and which frameworks have nothing to compare yet."""
    if not outcomes and not alone:
        return [paragraph(NONE) if any_results else no_data()]
    names = ("Matched", *Verdict, "Only before", "Only after")
    heads = [
        HtmlHead("Framework"),
        HtmlHead("Before"),
        HtmlHead("After"),
        *(HtmlHead(name, numeric=True) for name in names),
    ]
    # by its title: a version alone would be sorted as a number, 0.10 before 0.9
    rows: list[list[HtmlCell | str]] = [
        [
            link(titles.framework(name), document),
            *(HtmlCell(short_hash(it), sort=release_title(name, it)) for it in (before, after)),
            *(f"{count:,}" for count in counts),
        ]
        for name, before, after, document, counts in outcomes
    ]
    return [
        paragraph(f"{WHAT}; a rolling branch, such as main, against the newest release."),
        plain("Changes", heads, rows) if rows else Markup(""),
        joined(map(paragraph, alone)),
    ]


def _changes(pair: ReleasePair, rows: Rows) -> list[Block]:
    made: list[Block] = [_head(pair)]
    if pair.comparison.matched:
        made.append(Section("Matched", [_matched(pair, rows)]))
    found = pair.comparison
    for name, sides in ((pair.before, found.only_a), (pair.after, found.only_b)):
        if sides:
            title = f"Only in {name}"
            unmatched = [_unmatched_row(side, rows) for side in sides]
            made.append(Section(title, [_table(title, (name,), (), unmatched)]))
    return made


def _head(pair: ReleasePair) -> Markup:
    """Both releases, how the comparison came out, and the rule."""
    found = pair.comparison
    only = f" {len(found.only_a):,} only in A, {len(found.only_b):,} only in B."
    ends = [
        (release_title(pair.framework, name), addresses.of_release(pair.framework, name))
        for name in (pair.before, pair.after)
    ]
    return render(
        "changes_head",
        pair=pair,
        ends=ends,
        outcome=f"{_came_out(pair)}.{only if found.matched else ''}",
        rule=RULE,
    )


def _came_out(pair: ReleasePair) -> str:
    """How many are faster and slower, or why nothing is compared."""
    found = pair.comparison
    if found.matched:
        return tally(pair).text()
    before, after = (release_title(pair.framework, name) for name in (pair.before, pair.after))
    return report.why_nothing(before, after, found).removesuffix(".")


def _matched(pair: ReleasePair, rows: Rows) -> Markup:
    """The changes as bars, and every match with its figures and verdict."""
    verdict = [
        HtmlHead("Change", numeric=True, falling=True),
        HtmlHead("95\u00a0%\u00a0interval\u00a0of\u00a0B/A", numeric=True),
        HtmlHead("B\u00a0is", falling=True),
    ]
    matches = [_match_row(match, rows) for match in sorted(pair.comparison.matched, key=_order)]
    made = _table("Matched cases", (pair.before, pair.after), verdict, matches)
    return joined((chart(pair), _disagreements(pair), made))


def _table(
    label: str,
    releases: Sequence[str],
    verdict: Sequence[HtmlHead],
    rows: Sequence[Sequence[HtmlCell]],
) -> Markup:
    """Cases with their figures in releases; one that all are of is named in the heads of these."""
    names = {row[_FIGURE].content for row in rows}
    [shared] = names if len(names) == 1 else [""]
    named = [HtmlHead("Figure")] if not shared else []
    figures = [
        HtmlHead(f"{release} {shared}".strip(), numeric=True, falling=bool(shared))
        for release in releases
    ]
    heads = [HtmlHead("Model"), HtmlHead("Work", wide=True), *named, *figures, *verdict, *_HOW]
    cells = [row if named else [*row[:_FIGURE], *row[_FIGURE + 1 :]] for row in rows]
    return plain(label, heads, cells)


_FIGURE: Final = 2
"""Where the name of its figure stands in a row: behind the model and the work."""
_HOW: Final = (HtmlHead("Configuration", wide=True), HtmlHead("Origin", wide=True))


def _order(match: Match) -> tuple[int, float]:
    """Changes by their size, those for the worse first; the others stay as they come."""
    verdict = match.judgement.verdict
    size = abs(change_of(match) or 0.0) if verdict in (Verdict.SLOWER, Verdict.FASTER) else 0.0
    return ORDER.index(verdict), -size


def _disagreements(pair: ReleasePair) -> Markup:
    """Where the TFLOP/s changed otherwise than the tokens/s."""
    found = [(one, it) for it in pair.comparison.matched if (one := disagreement(it))]
    works = report.told_apart([one.work for one, _ in found], [match for _, match in found])
    return render_text(
        "{% if items %}<p>The same work takes the same FLOPs per token, so that both figures "
        "change alike. Here TFLOP/s/GPU and tokens/s/GPU disagree:</p>\n<ul>"
        "{% for work, text in items %}<li>{{ work }}: {{ text }}</li>\n{% endfor %}</ul>"
        "{% endif %}",
        items=[(work, one.text) for work, (one, _) in zip(works, found, strict=True)],
    )


def _match_row(match: Match, rows: Rows) -> list[HtmlCell]:
    percent = change_of(match)
    return [
        *_case(match.b.shown),
        HtmlCell(METRICS[match.metric].title),
        *(_figure(side.shown, match.metric, rows) for side in (match.a, match.b)),
        HtmlCell(signed(percent), sort=percent),
        HtmlCell(report.interval(match.judgement), sort=match.judgement.low),
        HtmlCell(_verdict(match)),
        HtmlCell(report.how(match)),
        HtmlCell(report.remark(match)),
    ]


def _figure(result: Result, metric: str, rows: Rows) -> HtmlCell:
    """A figure, leading to its row on the page of its release."""
    row = rows.get(result.result_id)
    at = to(addresses.of_release(result.framework, result.release), row) if row else ""
    return HtmlCell(report.figure(result, metric), sort=usable(result, metric), evidence=at)


def _case(result: Result) -> tuple[HtmlCell, HtmlCell]:
    """The model, leading to the table that shows the figure, and the rest of the work."""
    page = addresses.tab(result.framework, result.release, result.system)
    model, *rest = report.workload(result).split(" · ")
    content = Markup('<a href="{}">{}</a>').format(page, model)
    return HtmlCell(content, sort=report.workload(result)), HtmlCell(" · ".join(rest))


def _verdict(match: Match) -> Markup:
    """The verdict in a box, how B ended where it failed, and whether errors keep it from one."""
    verdict = match.judgement.verdict
    kind = BADGES.get(verdict, "explained")
    box = badge(report.verdict(match.judgement, match.metric), kind)
    if verdict is not Verdict.NOT_JUDGED:
        return box
    return Markup('{} <span class="perf-flag error">{}</span>').format(box, report.OPEN_ERRORS)


def _unmatched_row(side: Side, rows: Rows) -> list[HtmlCell]:
    metric, result = METRICS[metric_for([side], [side], None)], side.shown
    return [
        *_case(result),
        HtmlCell(metric.title),
        _figure(result, metric.name, rows),
        HtmlCell(report.configuration(result)),
        HtmlCell(report.remark_of(side)),
    ]
