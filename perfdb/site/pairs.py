"""Which releases of a framework are compared, and what each comparison says."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from perfdb import catalog
from perfdb.catalog import titles
from perfdb.compare import Comparison, Match, Verdict, comparison, marked, report, usable
from perfdb.compare.releases import of_rows
from perfdb.compare.verdict import gflop_per_token_apart
from perfdb.groups import grouped
from perfdb.record import Result
from perfdb.site import addresses
from perfdb.site.cells import FLOPS
from perfdb.site.grouping import release_title
from perfdb.stated import RATE
from perfdb.versions import is_rolling, version_order

MOST_PAIRS: Final = 5
"""Comparisons of a framework that have a page; `perfdb compare` makes any other."""

Row = Mapping[str, object]


@dataclass(frozen=True, kw_only=True)
class SkippedRelease:
    """A release that a later one is not compared with, and why."""

    release: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class ReleasePair:
    """A release of a framework against the newest before it that shares work.

    `skipped` are those between.
    """

    framework: str
    before: str
    after: str
    comparison: Comparison
    skipped: tuple[SkippedRelease, ...] = ()
    is_newest: bool = False

    @property
    def document(self) -> str:
        """The name of its page: that of the newest release is the framework's own."""
        return addresses.of_changes(self.framework, None if self.is_newest else self.after)

    @property
    def title(self) -> str:
        """'NeMo Framework: 25.02 → 25.04'."""
        return f"{titles.framework(self.framework)}: {self.before} → {self.after}"


def of_results(rows: Iterable[Row], wrong: Iterable[int]) -> Iterator[ReleasePair]:
    """The comparisons of every framework, that of the newest release first.

    `rows` are those of `perfdb.queries.results.current`, each with its `build`. `wrong` are the
    results, by their number, that have errors which nobody has explained.
    """
    refused = frozenset(wrong)
    of_releases = [row for row in rows if row["release"] is not None]
    stored = grouped(of_releases, lambda row: str(row["framework"]))
    for framework in sorted(stored, key=titles.framework):
        releases = grouped(stored[framework], lambda row: str(row["release"]))
        newest_first = sorted(
            releases.items(),
            key=lambda one: version_order(one[0], int(str(one[1][0]["build"]))),
            reverse=True,
        )
        yield from _of_framework(framework, dict(newest_first), refused)


def _of_framework(
    framework: str, releases: Mapping[str, Sequence[Row]], wrong: frozenset[int]
) -> list[ReleasePair]:
    """Each release with the newest earlier one that shares work with it, the newest pair first.

    `releases` come the newest first. The newest has its comparison even where it shares work with
    none, and so has a rolling branch.
    """
    work = {name: {row["workload_key"] for row in some} for name, some in releases.items()}

    @cache
    def read(name: str) -> tuple[Result, ...]:
        return marked(of_rows(releases[name]), wrong)

    made: list[ReleasePair] = []
    for after, earlier, is_newest in _candidates(releases):
        sharing = next((name for name in earlier if work[name] & work[after]), None)
        is_left_out = len(made) >= MOST_PAIRS or not (sharing or is_newest)
        if not earlier or (is_left_out and not is_rolling(after)):
            continue
        before = sharing or earlier[0]
        skipped = []
        for name in earlier[: earlier.index(before)]:
            ends = (release_title(framework, name), release_title(framework, after))
            reason = report.why_nothing(*ends, comparison(read(name), read(after)))
            skipped.append(SkippedRelease(release=name, reason=reason))
        found = ReleasePair(
            framework=framework,
            before=before,
            after=after,
            comparison=comparison(read(before), read(after)),
            skipped=tuple(skipped),
            is_newest=is_newest,
        )
        made.append(found)
    return made


def _candidates(
    releases: Mapping[str, Sequence[Row]],
) -> Iterator[tuple[str, Sequence[str], bool]]:
    """Each release, those that it may be compared with, and whether it is the newest.

    A release without a result on a GPU is neither the newest nor what others are compared with,
    unless there is nothing else. Rolling branches come last: they are no release's predecessor.
    """
    on_gpus = [
        name
        for name, some in releases.items()
        if any(catalog.has_gpus(str(row["system"])) for row in some)
    ]
    numbered = [name for name in releases if not is_rolling(name)]
    first = [name for name in numbered if name in on_gpus] or numbered
    newest = next((name for name in on_gpus or releases if not is_rolling(name)), None)
    for after in [*first, *(name for name in numbered if name not in first)]:
        among = first if after in first else numbered
        yield after, among[among.index(after) + 1 :], after == newest
    for after in releases:
        if is_rolling(after):
            yield after, first if after in on_gpus else numbered, False


@dataclass(frozen=True, kw_only=True)
class VerdictCounts:
    """How a comparison came out: how many matches have each verdict."""

    counts: Mapping[Verdict, int]

    @property
    def not_judged(self) -> str:
        """'4 not judged (open errors)'; empty for none."""
        count = self.counts[Verdict.NOT_JUDGED]
        return f"{count:,} {Verdict.NOT_JUDGED} (open errors)" if count else ""

    def text(self, by: str = "") -> str:
        """'35 compared: 4 faster, 2 slower, 29 same; 4 not judged (open errors)'."""
        judged = {it: count for it, count in self.counts.items() if it != Verdict.NOT_JUDGED}
        verdicts = ", ".join(f"{count:,} {verdict}" for verdict, count in judged.items() if count)
        compared = f"{sum(judged.values()):,} compared{by}{f': {verdicts}' if verdicts else ''}"
        return "; ".join(filter(None, (compared, self.not_judged)))


def tally(pair: ReleasePair) -> VerdictCounts:
    """How many matches have each verdict, in the order of these."""
    counts = Counter(match.judgement.verdict for match in pair.comparison.matched)
    return VerdictCounts(counts={one: counts[one] for one in Verdict})


@dataclass(frozen=True, kw_only=True)
class Disagreement:
    """A match whose TFLOP/s changed by another factor than its tokens/s: before and after."""

    work: str
    text: str
    """'tokens/s/GPU 9,000 → 9,000, TFLOP/s/GPU 722 → 72,000'."""


def disagreement(match: Match) -> Disagreement | None:
    """That TFLOP/s changed by another factor than tokens/s, beyond the rounding of the four.

    The same work takes the same FLOPs per token, so that both change alike, unless two conventions
    count them.
    """
    a, b = match.a.shown, match.b.shown
    known = all(usable(side, metric) is not None for side in (a, b) for metric in (RATE, FLOPS))
    conventions = {a.flops_convention, b.flops_convention} - {None}
    if not known or len(conventions) > 1 or not gflop_per_token_apart(a, b):
        return None
    figures = (
        f"{name} {report.figure(a, metric)} → {report.figure(b, metric)}"
        for name, metric in (("tokens/s/GPU", RATE), ("TFLOP/s/GPU", FLOPS))
    )
    return Disagreement(work=report.workload(b), text=", ".join(figures))
