"""Each release against the newest before it that shares work: what is matched, what is not."""

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Final

from perfdb import units
from perfdb.compare import Match, Side, Verdict, metric_for, words
from perfdb.compare import Result as Compared
from perfdb.groups import grouped
from perfdb.metrics import METRICS
from perfdb.record import Frozen
from perfdb.site import addresses, markup
from perfdb.site.addresses import Address
from perfdb.site.change_chart import change_of, chart, signed
from perfdb.site.contents import Contents, ReleasePair
from perfdb.site.markup import Cell, Head, Html, joined, link, tag
from perfdb.site.page import NO_DATA, Kind, Page, document, listing, numbered, part, section, shown
from perfdb.site.pairs import disagreement, tally
from perfdb.site.rows import row_id
from perfdb.site.words import TRIAL, framework_title, release_title
from perfdb.versions import is_rolling

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
NONE: Final = "The store has no release with a version yet, so that there is nothing to compare.\n"

BADGES: Final = {Verdict.FASTER: "good", Verdict.SLOWER: "bad", Verdict.FAILED: "bad"}


class Outcome(Frozen):
    """How a comparison came out: how many are matched, of each verdict, and on one side alone."""

    framework: str
    before: str
    after: str
    document: str
    counts: tuple[int, ...]


class ChangesIndex(Frozen):
    """The list of comparisons, and of each framework without one the sentence that says why."""

    pairs: tuple[Outcome, ...]
    alone: tuple[str, ...]


def _pages(contents: Contents) -> Iterator[Page]:
    below = [pair.document for pair in contents.pairs]
    about = f"{WHAT}: {units.counted(len(below), 'comparison')}."
    index, nothing = _index(contents), NONE if contents.results else NO_DATA
    text = f"{WHAT}; a rolling branch, such as main, against the newest release.\n"
    yield listing(addresses.CHANGES, about, text if index else nothing, index, below)
    rows = {result.result_id: row_id(result) for result in contents.results}
    yield from (_document(_with_rows(pair, rows)) for pair in contents.pairs)


def _index(contents: Contents) -> ChangesIndex | None:
    """The data of the list; None where no release has a version."""
    releases = {(result.framework, result.release) for result in contents.results if result.release}
    if not releases:
        return None
    by_framework = grouped(releases, itemgetter(0))
    compared = {pair.framework for pair in contents.pairs}
    alone = sorted(by_framework.keys() - compared, key=framework_title)
    return ChangesIndex(
        pairs=tuple(map(_outcome, contents.pairs)),
        alone=tuple(_why_alone(framework, by_framework[framework]) for framework in alone),
    )


def _why_alone(framework: str, releases: Sequence[tuple[str, str]]) -> str:
    """Why no two releases of a framework are compared."""
    name = framework_title(framework)
    if len(releases) > 1 and all(is_rolling(version) for _, version in releases):
        order = "which have no order: perfdb compare and the dashboard compare any two"
        return f"{name} has rolling branches only, {order}."
    which = "" if len(releases) == 1 else f" that is not {TRIAL}"
    return f"{name} has one release{which}: there is nothing to compare it with."


def _with_rows(pair: ReleasePair, rows: Mapping[int, str]) -> ReleasePair:
    """The comparison with the names of the rows that its figures stand in."""
    found = pair.comparison
    sides = [side for match in found.matched for side in (match.a, match.b)]
    shown_ids = {side.shown.result_id for side in (*sides, *found.only_a, *found.only_b)}
    named = {number: rows[number] for number in sorted(shown_ids & rows.keys())}
    return pair.model_copy(update={"rows": named})


def _document(pair: ReleasePair) -> Page:
    title = f"{framework_title(pair.framework)}: {pair.before} → {pair.after}"
    parts = [shown("changes-head")]
    if pair.comparison.matched:
        parts.append(section("Matched", shown("changes-matched")))
    for number, (name, sides) in enumerate(_unmatched(pair)):
        if sides:
            parts.append(section(f"Only in {name}", shown("changes-unmatched", number)))
    return Page(pair.document, document(title, f"{title}: {_came_out(pair)}.", *parts), pair)


def _unmatched(pair: ReleasePair) -> tuple[tuple[str, Sequence[Side]], ...]:
    found = pair.comparison
    return (pair.before, found.only_a), (pair.after, found.only_b)


def index(page: ChangesIndex, address: Address) -> Html:
    """How each comparison came out, and which frameworks have nothing to compare yet."""
    rows = [_index_row(pair, address) for pair in page.pairs]
    heads = [Head("Framework"), Head("Before"), Head("After")]
    heads += [
        Head(name, numeric=True) for name in ("Matched", *Verdict, "Only before", "Only after")
    ]
    table = [markup.table(markup.Table("Changes", heads, rows))] if rows else []
    return joined([*table, *(tag("p", reason) for reason in page.alone)])


def _outcome(pair: ReleasePair) -> Outcome:
    found = pair.comparison
    verdicts = tally(pair).counts.values()
    return Outcome(
        framework=pair.framework,
        before=pair.before,
        after=pair.after,
        document=pair.document,
        counts=(len(found.matched), *verdicts, len(found.only_a), len(found.only_b)),
    )


def _index_row(one: Outcome, address: Address) -> list[Cell]:
    ends = {it: release_title(one.framework, it) for it in (one.before, one.after)}
    # by its title: a version alone would be sorted as a number, 0.10 before 0.9
    return [
        Cell(link(framework_title(one.framework), address(one.document))),
        *(Cell(markup.shortened(version), sort=title) for version, title in ends.items()),
        *(Cell(f"{count:,}") for count in one.counts),
    ]


def head(pair: ReleasePair, address: Address) -> Html:
    """Both releases, how the comparison came out, and the rule."""
    ends = [
        link(
            release_title(pair.framework, name), address(addresses.of_release(pair.framework, name))
        )
        for name in (pair.before, pair.after)
    ]
    found = pair.comparison
    only = f" {len(found.only_a):,} only in A, {len(found.only_b):,} only in B."
    outcome = f"{_came_out(pair)}.{only if found.matched else ''}"
    names = f"A is {pair.before}, B is {pair.after}."
    skipped = [
        tag("p", f"{between.release} stands between them and is left out. {between.reason}")
        for between in pair.skipped
    ]
    summary = tag("p", (tag("strong", outcome), " ", names))
    rule = tag("details", (tag("summary", "How verdicts are reached"), tag("p", RULE)))
    return joined((tag("p", joined(ends, " → ")), summary, *skipped, rule))


def _came_out(pair: ReleasePair) -> str:
    """How many are faster and slower, or why nothing is compared."""
    found = pair.comparison
    if found.matched:
        return tally(pair).said()
    before, after = (release_title(pair.framework, name) for name in (pair.before, pair.after))
    return words.why_nothing(before, after, found).removesuffix(".")


def matched(pair: ReleasePair, address: Address) -> Html:
    """The changes as bars, and every match with its figures and verdict."""
    verdict = [Head("Change", numeric=True, falling=True)]
    verdict += [Head("95\u00a0%\u00a0interval\u00a0of\u00a0B/A", numeric=True)]
    verdict += [Head("B\u00a0is", falling=True)]
    matches = sorted(pair.comparison.matched, key=_order)
    rows = [_match_row(match, pair, address) for match in matches]
    table = _table("Matched cases", (pair.before, pair.after), verdict, rows)
    return joined((chart(pair), *_disagreements(pair), table))


def _table(
    label: str, releases: Sequence[str], verdict: Sequence[Head], rows: Sequence[Sequence[Cell]]
) -> Html:
    """Cases with their figures in releases; one that all are of is named in the heads of these."""
    names = {row[_FIGURE].content for row in rows}
    [shared] = names if len(names) == 1 else [""]
    named = [Head("Figure")] if not shared else []
    figures = [
        Head(f"{release} {shared}".strip(), numeric=True, falling=bool(shared))
        for release in releases
    ]
    heads = [Head("Model"), Head("Work", wide=True), *named, *figures, *verdict, *_HOW]
    cells = [row if named else [*row[:_FIGURE], *row[_FIGURE + 1 :]] for row in rows]
    return markup.table(markup.Table(label, heads, cells))


_FIGURE: Final = 2
"""Where the name of its figure stands in a row: behind the model and the work."""
_HOW: Final = (Head("Configuration", wide=True), Head("Origin", wide=True))


def _order(match: Match) -> tuple[int, float]:
    """Changes by their size, those for the worse first; the others stay as they come."""
    verdict = match.judgement.verdict
    size = abs(change_of(match) or 0.0) if verdict in (Verdict.SLOWER, Verdict.FASTER) else 0.0
    return ORDER.index(verdict), -size


def _disagreements(pair: ReleasePair) -> list[Html]:
    """Where the TFLOP/s tell another story than the tokens/s."""
    found = [(one, it) for it in pair.comparison.matched if (one := disagreement(it))]
    if not found:
        return []
    works = words.told_apart([one.work for one, _ in found], [match for _, match in found])
    said = (f"{work}: {one.said}" for work, (one, _) in zip(works, found, strict=True))
    items = [tag("li", one) for one in said]
    rule = "The same work takes the same FLOPs per token, so that both figures change alike. Here "
    return [tag("p", f"{rule}TFLOP/s/GPU and tokens/s/GPU disagree:"), tag("ul", items)]


def _match_row(match: Match, pair: ReleasePair, address: Address) -> list[Cell]:
    percent = change_of(match)
    return [
        *_case(match.b.shown, address),
        Cell(METRICS[match.metric].title),
        *(_figure(side.shown, match.metric, pair, address) for side in (match.a, match.b)),
        Cell(signed(percent), sort=percent),
        Cell(words.interval(match.judgement), sort=match.judgement.low),
        Cell(_verdict(match)),
        Cell(words.how(match)),
        Cell(words.remark(match)),
    ]


def _figure(result: Compared, metric: str, pair: ReleasePair, address: Address) -> Cell:
    """A figure, leading to its row on the page of its release."""
    value, row = result.figure(metric), pair.rows.get(result.result_id)
    at = addresses.of_row(result.framework, result.release, row, address) if row else None
    return Cell(words.figure(result, metric), sort=value, evidence=at)


def _case(result: Compared, address: Address) -> tuple[Cell, Cell]:
    """The model, leading to the table that shows the figure, and the rest of the work."""
    page = addresses.of_tab(result.framework, result.release, result.system, address)
    model, *rest = words.workload(result).split(" · ")
    return Cell(link(model, page), sort=words.workload(result)), Cell(" · ".join(rest))


def _verdict(match: Match) -> Html:
    """The verdict in a box, how B ended where it failed, and whether errors keep it from one."""
    verdict = match.judgement.verdict
    kind = BADGES.get(verdict, "explained")
    badge = tag("span", words.verdict(match.judgement, match.metric), class_=f"perf-badge {kind}")
    if verdict is not Verdict.NOT_JUDGED:
        return badge
    return joined((badge, tag("span", words.OPEN_ERRORS, class_="perf-flag error")), " ")


def unmatched(pair: ReleasePair, number: int, address: Address) -> Html:
    """What only one of the two releases has."""
    name, sides = _unmatched(pair)[number]
    rows = [_unmatched_row(side, pair, address) for side in sides]
    return _table(f"Only in {name}", (name,), (), rows)


def _unmatched_row(side: Side, pair: ReleasePair, address: Address) -> list[Cell]:
    metric, result = METRICS[metric_for([side], [side], None)], side.shown
    return [
        *_case(result, address),
        Cell(metric.title),
        _figure(result, metric.name, pair, address),
        Cell(words.configuration(result)),
        Cell(words.remark_of(side)),
    ]


KIND = Kind(
    _pages,
    {
        "changes": part(ChangesIndex, index),
        "changes-head": part(ReleasePair, head),
        "changes-matched": part(ReleasePair, matched),
        "changes-unmatched": numbered(ReleasePair, unmatched),
    },
)
