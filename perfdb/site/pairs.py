"""Which releases of a framework are compared, and what each comparison says."""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from perfdb import catalog
from perfdb.catalog import titles
from perfdb.compare import Comparison, Match, Verdict, comparison, marked, report, usable
from perfdb.compare.read import of_rows
from perfdb.compare.verdict import gflop_per_token_apart
from perfdb.groups import grouped
from perfdb.record import Result
from perfdb.site import addresses
from perfdb.site.cells import FLOPS
from perfdb.site.grouping import release_title
from perfdb.stated import RATE
from perfdb.versions import Precedence, is_rolling, version_order

MOST_PAIRS: Final = 5
"""Comparisons of a framework that have a page; `perfdb compare` makes any other."""

Read = Callable[[str], tuple[Result, ...]]
Row = Mapping[str, object]
Work = Mapping[str, frozenset[object]]
"""The keys of the workloads of each release."""


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


@dataclass(frozen=True, kw_only=True)
class Disagreement:
    """A match whose TFLOP/s changed by another factor than its tokens/s: before and after."""

    work: str
    text: str
    """'tokens/s/GPU 9,000 → 9,000, TFLOP/s/GPU 722 → 72,000'."""


def of_results(rows: Iterable[Row], wrong: Iterable[int]) -> Iterator[ReleasePair]:
    """The comparisons of every framework, that of the newest release first.

    `rows` are those of `perfdb.queries.results.current`, each with its `build`. `wrong` are the
    results, by their number, that have errors which nobody has explained.
    """
    of_releases = [row for row in rows if row["release"] is not None]
    stored = grouped(of_releases, lambda row: str(row["framework"]))
    for framework in sorted(stored, key=titles.framework):
        releases = grouped(stored[framework], lambda row: str(row["release"]))
        newest_first = sorted(releases.items(), key=_order, reverse=True)
        yield from _of_framework(framework, dict(newest_first), frozenset(wrong))


def _order(release: tuple[str, Sequence[Row]]) -> Precedence:
    version, (row, *_) = release
    return version_order(version, int(str(row["build"])))


def _of_framework(
    framework: str, releases: Mapping[str, Sequence[Row]], wrong: frozenset[int]
) -> list[ReleasePair]:
    @cache
    def read(version: str) -> tuple[Result, ...]:
        return marked(of_rows(releases[version]), wrong)

    trials = {
        version
        for version, some in releases.items()
        if not any(catalog.has_gpus(str(row["system"])) for row in some)
    }
    work = {
        version: frozenset(row["workload_key"] for row in some)
        for version, some in releases.items()
    }
    return _pairs(framework, work, read, trials)


def _pairs(framework: str, work: Work, read: Read, trials: Container[str]) -> list[ReleasePair]:
    """Each release with the newest earlier one that shares work with it, the newest pair first.

    `work` has the releases, the newest first. A rolling branch is compared with a numbered
    release and comes last: it is no release's predecessor. The newest release has its comparison
    even where it shares work with none.
    `trials`, which have no result on a GPU, are neither the newest nor what others are compared
    with, unless there is nothing else.
    """
    ordered = list(work)
    numbered = [one for one in ordered if not is_rolling(one)]
    first = [one for one in numbered if one not in trials] or numbered
    candidates = [one for one in ordered if one not in trials] or ordered
    newest = next((one for one in candidates if not is_rolling(one)), None)
    made: list[ReleasePair] = []
    for after in [*first, *(one for one in numbered if one not in first)]:
        among = first if after in first else numbered
        earlier = among[among.index(after) + 1 :]
        if len(made) == MOST_PAIRS:
            break
        is_newest, before = after == newest, _sharing(after, earlier, work)
        if earlier and (is_newest or before):
            found = _pair(framework, after, earlier, before, read)
            made.append(replace(found, is_newest=is_newest))
    for after in [one for one in ordered if is_rolling(one)] if numbered else []:
        earlier = numbered if after in trials else first
        made.append(_pair(framework, after, earlier, _sharing(after, earlier, work), read))
    return made


def _sharing(after: str, earlier: Iterable[str], work: Work) -> str | None:
    """The first of the earlier releases that shares work: none but it has anything to compare."""
    return next((one for one in earlier if work[one] & work[after]), None)


def _pair(
    framework: str, after: str, earlier: Sequence[str], sharing: str | None, read: Read
) -> ReleasePair:
    """A release and the one of the earlier ones that shares work; of none the first of them."""
    before = sharing or earlier[0]
    skipped: list[SkippedRelease] = []
    for passed in earlier[: earlier.index(before)]:
        ends = (release_title(framework, passed), release_title(framework, after))
        nothing = report.why_nothing(*ends, comparison(read(passed), read(after)))
        skipped.append(SkippedRelease(release=passed, reason=nothing))
    return ReleasePair(
        framework=framework,
        before=before,
        after=after,
        comparison=comparison(read(before), read(after)),
        skipped=tuple(skipped),
    )


def tally(pair: ReleasePair) -> VerdictCounts:
    """How many matches have each verdict, in the order of these."""
    counts = Counter(match.judgement.verdict for match in pair.comparison.matched)
    return VerdictCounts(counts={one: counts[one] for one in Verdict})


def disagreement(match: Match) -> Disagreement | None:
    """That TFLOP/s changed by another factor than tokens/s, beyond the rounding of the four.

    The same work takes the same FLOPs per token, so that both change alike, unless two conventions
    count them.
    """
    a, b = match.a.shown, match.b.shown
    rates, tflops = _ends(match, RATE), _ends(match, FLOPS)
    conventions = {a.flops_convention, b.flops_convention} - {None}
    if rates is None or tflops is None or len(conventions) > 1 or not gflop_per_token_apart(a, b):
        return None
    figures = (
        f"{name} {report.figure(a, metric)} → {report.figure(b, metric)}"
        for name, metric in (("tokens/s/GPU", RATE), ("TFLOP/s/GPU", FLOPS))
    )
    return Disagreement(work=report.workload(b), text=", ".join(figures))


def _ends(match: Match, metric: str) -> tuple[float, float] | None:
    """A figure before and after; None where one of them is not known."""
    before, after = usable(match.a.shown, metric), usable(match.b.shown, metric)
    return (before, after) if before is not None and after is not None else None
