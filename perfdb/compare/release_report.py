"""What a release changed, as a release manager sends it round: `perfdb report`. Pure functions.

After the weekly triage of rustc-perf: the machine makes it, and people add notes to it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, log
from statistics import fmean
from textwrap import indent
from typing import Final

from perfdb.audit import report as of_audit
from perfdb.catalog import titles
from perfdb.compare import change_points, report, triage
from perfdb.compare.match import Comparison, Earlier, Level, Match
from perfdb.compare.release_notes import ReleaseNotes, ReleaseNotesFile, settled
from perfdb.compare.sides import Side
from perfdb.compare.verdict import Verdict, best_of
from perfdb.groups import grouped
from perfdb.metrics import CONVENTION_BOUND, METRICS
from perfdb.record import Finding, Result
from perfdb.units import UNKNOWN, counted
from perfdb.versions import natural

MOST_CHANGES: Final = 10
"""How many of the largest changes of each kind a report has, beside those with a note."""
MOST_LISTED: Final = 20
"""How many new and missing rows, and errors of the audit, a report in Markdown lists."""
CHANGES: Final[Mapping[str, str]] = {
    "Slower": "slower", "Faster": "faster", "Recovered": "recovered",
}  # fmt: skip
"""The sections of changes, and the groups of `perfdb.compare.triage` that they are of."""
SUMMARY, NEW, MISSING = "Summary", "New", "Missing"
FINDINGS, NOT_JUDGED, OTHERS = "Findings of the audit", "Not judged", "Others with a note"
SECTIONS: Final = (SUMMARY, *CHANGES, NEW, MISSING, FINDINGS, NOT_JUDGED, OTHERS)
"""The titles of the sections, which notes name."""
SHORT_KEY: Final = 8
"""Characters of a row's key that a report prints."""
COLUMNS: Final = ("Change", "Case", "Figure", "Baseline", "New", "Ratio", "99 % interval")

Link = Callable[[Result], str | None]
"""The address of the page that has a result; None: there is none."""


def no_link(_result: Result) -> None:
    """Where there is no site, a report has no links."""


@dataclass(frozen=True)
class ReleaseReport:
    """Release B against A, the findings of the last audit in B, and what people say of it."""

    a: str
    b: str
    comparison: Comparison
    findings: tuple[Finding, ...]
    notes: ReleaseNotes = field(default_factory=ReleaseNotes)

    @property
    def title(self) -> str:
        """'nemo 25.02 → nemo 25.04'."""
        return f"{self.a} → {self.b}"


def noted(file: ReleaseNotesFile | None, comparison: Comparison) -> ReleaseNotes:
    """The notes of a file on a comparison. Raises InputError where they name what is not there."""
    if file is None:
        return ReleaseNotes()
    sides = (*comparison.only_a, *comparison.only_b)
    keys = [*map(key_of, comparison.matched), *map(key_of_side, sides)]
    return settled(file, SECTIONS, dict.fromkeys(keys))


def key_of(match: Match) -> str:
    """The key of a row: of its case, or of its work where that was done differently."""
    return match.b.shown.workload_key if match.level is Level.WORKLOAD else key_of_side(match.b)


def key_of_side(side: Side) -> str:
    """The key of the row of a case that one release has alone."""
    return side.shown.case_key


def speed(match: Match) -> float | None:
    """B over A, or A over B of a metric of which less is better: more than 1 is better."""
    ratio = match.judgement.ratio
    if not ratio:
        return None
    return ratio if METRICS[match.metric].better == "higher" else 1 / ratio


def geometric_mean(matches: Iterable[Match]) -> float | None:
    """The geometric mean of the speed of B over that of A; None where none is known."""
    known = [log(value) for match in matches if (value := speed(match))]
    return exp(fmean(known)) if known else None


def measured(found: Comparison) -> list[Match]:
    """The matches that a mean is of: each work once at each configuration that both have.

    Of a work that both did differently it is the best of each. What is not comparable or not
    judged, or failed, is in no mean.
    """
    known = [it for it in found.matched if it.judgement.is_told and speed(it)]
    same = {it.a.shown.workload_key for it in known if it.level is Level.CONFIGURATION}
    return [
        it for it in known if it.level is Level.CONFIGURATION or it.a.shown.workload_key not in same
    ]


@dataclass(frozen=True)
class Tally:
    """How many matches there are of a kind, and their speed: geometric mean, least and most."""

    name: str
    rows: int
    geometric_mean: float | None = None
    least: float | None = None
    most: float | None = None

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """Its name, its rows, the mean change, and the range of the changes."""
        ends = [signed(one) for one in (self.least, self.most)]
        extent = UNKNOWN if self.least is None else " to ".join(dict.fromkeys(ends))
        return self.name, f"{self.rows:,}", signed(self.geometric_mean), extent


TALLY_COLUMNS: Final = ("Rows", "Geometric mean", "Range")


def _tally(name: str, rows: int, of_mean: Sequence[Match]) -> Tally:
    known = [value for match in of_mean if (value := speed(match))]
    if not known:
        return Tally(name, rows)
    return Tally(name, rows, geometric_mean(of_mean), min(known), max(known))


def by_verdict(found: Comparison) -> list[Tally]:
    """A tally of each verdict that there is, all that were held against each other, and the rest.

    The mean of all is that of `measured`.
    """
    groups = grouped(found.matched, lambda it: it.judgement.verdict)
    told = [it for it in found.matched if it.judgement.is_told]
    listed = [
        _tally(str(verdict).capitalize(), len(some), [it for it in some if it.judgement.is_told])
        for verdict in Verdict
        if (some := groups.get(verdict))
    ]
    alone = [(NEW, found.only_b), (MISSING, found.only_a)]
    return [
        *listed,
        _tally("All compared", len(told), measured(found)),
        *(Tally(name, len(sides)) for name, sides in alone if sides),
    ]


def by_place(found: Comparison) -> list[tuple[tuple[str, str], Tally]]:
    """A tally for each system and precision of what is `measured`."""

    def place(match: Match) -> tuple[str, str]:
        precision = match.b.shown.precision or match.a.shown.precision
        return match.b.shown.system_title, titles.precision(precision) or "precision unknown"

    groups = grouped(measured(found), place)
    return [(name, _tally("", len(groups[name]), groups[name])) for name in sorted(groups, key=_at)]


def _at(place: tuple[str, str]) -> tuple[object, ...]:
    return natural(place[0]), place[1]


def largest(made: ReleaseReport, section: str) -> list[Match]:
    """The largest changes of a section, and all that have a note, the largest first."""
    ranked = triage.groups(made.comparison.matched).get(CHANGES[section], [])
    return [
        it
        for place, it in enumerate(ranked)
        if place < MOST_CHANGES or key_of(it) in made.notes.of_rows
    ]


def others_noted(made: ReleaseReport) -> list[Match]:
    """The matches with a note that are in no section of changes."""
    groups = triage.groups(made.comparison.matched)
    rest = (it for name, some in groups.items() if name not in CHANGES.values() for it in some)
    return [it for it in rest if key_of(it) in made.notes.of_rows]


def not_judged(found: Comparison) -> list[tuple[str, str, int]]:
    """Verdicts that say nothing, why, and of how many rows; the most frequent first."""
    open_ = (Verdict.UNKNOWN, Verdict.NOT_COMPARABLE, Verdict.NOT_JUDGED)
    known = [it.judgement for it in found.matched if it.judgement.verdict in open_]
    counts = Counter((str(it.verdict), it.cause or it.reason or UNKNOWN) for it in known)
    return [(*what, count) for what, count in counts.most_common()]


def by_rule(findings: Iterable[Finding]) -> list[tuple[str, str]]:
    """Each rule with its counts, '2 errors, 1 warning'; those of the gravest first."""
    groups = grouped(of_audit.ordered(findings), lambda it: it.rule)
    return [(rule, of_audit.counts(some)) for rule, some in groups.items()]


def errors(findings: Iterable[Finding]) -> list[Finding]:
    """The errors that nobody has accepted."""
    return [it for it in of_audit.ordered(findings) if it.is_open_error]


def signed(value: float | None) -> str:
    """The change that a ratio is: '+2.0%', '-1.3%'; – where it is unknown."""
    return report.signed(None if value is None else value - 1)


def change(match: Match) -> str:
    """'+2.0%'; 'failed: out of memory' where there is none."""
    failed = match.judgement.verdict is Verdict.FAILED
    return (
        report.verdict(match.judgement, match.metric) if failed else signed(match.judgement.ratio)
    )


@dataclass(frozen=True)
class ReleaseHistory:
    """The figures of a match over releases, the oldest first; B is the last."""

    releases: tuple[str, ...]
    figures: tuple[float, ...]
    moved: tuple[int, ...]
    """The places of its change points."""


def history(match: Match, found: Comparison, earlier: Earlier) -> ReleaseHistory:
    """What the releases before A had of the same case, or best of the same work, then A and B.

    Without those whose figures are no measure: of open errors, or counted by another convention.
    """
    a, b, metric = match.a, match.b, match.metric
    of_work = match.level is Level.WORKLOAD
    known = earlier.of_work(a) if of_work else earlier.of_case(a)
    by_release = grouped(known, lambda it: it.shown.release_id).values()
    before = [best for some in by_release if (best := best_of(some, metric))]
    sides = [*reversed(before), a, b]
    if metric in CONVENTION_BOUND:
        sides = [it for it in sides if it.shown.flops_convention == b.shown.flops_convention]
    names = tuple(it.shown.release or UNKNOWN for it in sides)
    figures = tuple(it.median(metric) or 0.0 for it in sides)
    moved = change_points.of_sides(sides, metric, found.terms)
    return ReleaseHistory(names, figures, tuple(moved))


def markdown(made: ReleaseReport, link: Link = no_link) -> str:
    """The report as Markdown, with its notes; `link` leads to the page of a result."""
    parts = [f"# {made.title}", made.notes.front]
    for name, blocks in _sections(made, link):
        parts += [f"## {name}", made.notes.of_sections.get(name, ""), *blocks]
    return "\n\n".join(filter(None, parts)) + "\n"


def _sections(made: ReleaseReport, link: Link) -> Iterator[tuple[str, list[str]]]:
    """Each section with its blocks."""
    found = made.comparison
    yield SUMMARY, _summary(found)
    for section in CHANGES:
        some = largest(made, section)
        count = len(triage.groups(found.matched).get(CHANGES[section], ()))
        yield section, _of_matches(made, some, count, link)
    for name, sides in ((NEW, found.only_b), (MISSING, found.only_a)):
        yield name, _of_sides(made, name, sides, link)
    yield FINDINGS, _of_findings(made.findings)
    rows = [(verdict, why, f"{count:,}") for verdict, why, count in not_judged(found)]
    yield NOT_JUDGED, [triage.table(("Verdict", "Why", "Rows"), rows) if rows else "None."]
    if others := others_noted(made):
        yield OTHERS, _of_matches(made, others, len(others), link)


def _summary(found: Comparison) -> list[str]:
    rows = [it.cells for it in by_verdict(found)]
    places = [(*place, *it.cells[1:]) for place, it in by_place(found)]
    blocks = [triage.table(("Verdict", *TALLY_COLUMNS), rows)]
    if places:
        blocks.append(triage.table(("System", "Precision", *TALLY_COLUMNS), places))
    return [*blocks, *filter(None, [at_other_sizes(found)])]


def at_other_sizes(found: Comparison) -> str:
    """How many cases both have at other sizes alone; empty for none."""
    many = counted(len(found.best), "case")
    return f"Both have {many} more at other sizes alone: in no count." if found.best else ""


def _of_matches(made: ReleaseReport, matches: Sequence[Match], count: int, link: Link) -> list[str]:
    if not matches:
        return ["None."]
    blocks = [triage.table(COLUMNS, [_row(it, link) for it in matches])]
    if count > len(matches):
        blocks.append(f"The largest {len(matches)} of {count:,}.")
    texts = [(key_of(it), report.workload(it.b.shown)) for it in matches]
    return [*blocks, *_notes(made.notes, texts)]


def _row(match: Match, link: Link) -> tuple[str, ...]:
    case, *figures = triage.cells(match)[:-1]
    return change(match), _case(case, key_of(match), link(match.b.shown)), *figures


def _case(lines: str, key: str, address: str | None) -> str:
    """The lines of a case with its key below the first, which leads to an address."""
    work, *rest = lines.split("\n")
    return "\n".join((_linked(work, address), f"`{key[:SHORT_KEY]}`", *rest))


def _linked(text: str, address: str | None) -> str:
    plain = text.replace("[", "\\[").replace("]", "\\]")
    return f"[{plain}]({address})" if address else text


def _notes(notes: ReleaseNotes, rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    """A list of the notes on rows, each with the key and the words of its row."""
    for key, words in dict(rows).items():
        if text := notes.of_rows.get(key):
            yield f"- `{key[:SHORT_KEY]}` {words}\n\n{indent(text, '  ')}"


def _of_sides(made: ReleaseReport, name: str, sides: Sequence[Side], link: Link) -> list[str]:
    """The rows that one release has alone, those with a note first."""
    if not sides:
        return ["None."]
    ranked = sorted(sides, key=lambda it: key_of_side(it) not in made.notes.of_rows)
    others = made.comparison.only_b if name == MISSING else ()
    rows = [
        (_case(case, key_of_side(side), link(side.shown)), *figures)
        for side in ranked[:MOST_LISTED]
        for case, *figures in [triage.lone(side, others)]
    ]
    blocks = [triage.table(("Case", "Figure", "Value"), rows)]
    if len(sides) > len(rows):
        blocks.append(
            f"{len(rows)} of {len(sides):,}; `perfdb compare --only {name.lower()}` has all."
        )
    texts = [(key_of_side(it), report.workload(it.shown)) for it in ranked[:MOST_LISTED]]
    return [*blocks, *_notes(made.notes, texts)]


def _of_findings(findings: Sequence[Finding]) -> list[str]:
    if not findings:
        return ["None."]
    rules = [(f"`{rule}`", counts) for rule, counts in by_rule(findings)]
    grave = errors(findings)
    lines = [
        f"- {of_audit.place(it)}: {of_audit.subject(it)}: {of_audit.sentence(it)}"
        for it in grave[:MOST_LISTED]
    ]
    if len(grave) > len(lines):
        lines.append(f"- and {len(grave) - len(lines):,} more: `perfdb audit`")
    blocks = [triage.table(("Rule", "Findings"), rules)]
    return [*blocks, "Errors:\n\n" + "\n".join(lines)] if lines else blocks


def document(made: ReleaseReport, link: Link = no_link) -> report.Fields:
    """The report as JSON: what the Markdown has, whole; null is unknown."""
    found, notes = made.comparison, made.notes

    def added(key: str, result: Result) -> report.Fields:
        return {"row": key, "note": notes.of_rows.get(key), "link": link(result)}

    def row(match: Match) -> report.Fields:
        known = {**added(key_of(match), match.b.shown), "known_issues": list(triage.notes(match))}
        return {**known, **report.matched(match)}

    def lone(side: Side) -> report.Fields:
        return {**added(key_of_side(side), side.shown), **report.unmatched(side)}

    return {
        "a": made.a,
        "b": made.b,
        "front": notes.front or None,
        "notes": dict(notes.of_sections),
        "verdicts": [vars(it) for it in by_verdict(found)],
        "geometric_means": [
            {**vars(it), "system": system, "precision": precision}
            for (system, precision), it in by_place(found)
        ],
        **{group: list(map(row, largest(made, name))) for name, group in CHANGES.items()},
        "others": list(map(row, others_noted(made))),
        "new": list(map(lone, found.only_b)),
        "missing": list(map(lone, found.only_a)),
        "rules": [{"rule": rule, "findings": counts} for rule, counts in by_rule(made.findings)],
        "errors": of_audit.objects(errors(made.findings)),
        "not_judged": [
            {"verdict": verdict, "reason": why, "rows": count}
            for verdict, why, count in not_judged(found)
        ],
    }
