"""Which releases of a framework are compared, and what each comparison says."""

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from perfdb import catalog
from perfdb.compare import Comparison, Match, Result, Verdict, comparison, marked, words
from perfdb.compare.verdict import half_unit
from perfdb.record import Frozen
from perfdb.site.bests import FLOPS, RATE
from perfdb.site.contents import ReleasePair, Skipped
from perfdb.site.words import framework_title, release_title
from perfdb.units import significant
from perfdb.versions import is_rolling, newest_version, version_order

MOST_PAIRS: Final = 5
"""Comparisons of a framework that have a page; `perfdb compare` makes any other."""

Read = Callable[[str], tuple[Result, ...]]
Releases = dict[str, list[Mapping[str, object]]]
"""The rows of each release of a framework."""


class Tally(Frozen):
    """How a comparison came out: every verdict with its count, and what is not judged."""

    verdicts: tuple[tuple[Verdict, int], ...]
    not_judged: int

    @property
    def compared(self) -> int:
        """How many matches have a verdict."""
        return sum(count for _, count in self.verdicts)

    @property
    def matched(self) -> int:
        """How many matches there are."""
        return self.compared + self.not_judged

    def said(self, by: str = "") -> str:
        """'35 compared: 4 faster, 2 slower, 29 same; 4 not judged (open errors)'."""
        told = ", ".join(f"{count:,} {verdict}" for verdict, count in self.verdicts if count)
        compared = f"{self.compared:,} compared{by}{f': {told}' if told else ''}"
        return "; ".join(filter(None, (compared, not_judged(self.not_judged))))


class Disagreement(Frozen):
    """A match whose TFLOP/s changed by another factor than its tokens/s: before and after."""

    work: str
    rates: tuple[float, float]
    tflops: tuple[float, float]

    @property
    def said(self) -> str:
        """'tokens/s/GPU 9,000 → 9,000, TFLOP/s/GPU 722.0 → 72,000'."""
        rates, tflops = (" → ".join(map(significant, ends)) for ends in (self.rates, self.tflops))
        return f"tokens/s/GPU {rates}, TFLOP/s/GPU {tflops}"


def of_results(rows: Iterable[Mapping[str, object]], wrong: Iterable[int]) -> Iterator[ReleasePair]:
    """The comparisons of every framework, that of the newest release first.

    `rows` are those of `perfdb.queries.results.current`. `wrong` are the results, by their number,
    that have errors which nobody has explained.
    """
    stored: dict[str, Releases] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row["release"] is not None:
            stored[str(row["framework"])][str(row["release"])].append(row)
    for framework in sorted(stored, key=framework_title):
        yield from _of_framework(framework, stored[framework], frozenset(wrong))


def _of_framework(
    framework: str, releases: Releases, wrong: frozenset[int]
) -> Iterator[ReleasePair]:
    @cache
    def read(version: str) -> tuple[Result, ...]:
        return marked(map(Result.model_validate, releases[version]), wrong)

    on_gpus = {
        version
        for version, rows in releases.items()
        if any(catalog.has_gpus(str(row["system"])) for row in rows)
    }
    yield from pairs(framework, list(releases), read, releases.keys() - on_gpus)


def pairs(
    framework: str, versions: Sequence[str], read: Read, trials: Container[str] = ()
) -> list[ReleasePair]:
    """Each release with the newest earlier one that shares work with it, the newest pair first.

    A rolling branch is compared with a numbered release and comes last: it is no release's
    predecessor. The newest release has its comparison even where it shares work with none.
    `trials`, which have no result on a GPU, are neither the newest nor what others are compared
    with, unless there is nothing else.
    """

    @cache
    def work(version: str) -> frozenset[str]:
        return frozenset(result.workload_key for result in read(version))

    ordered = sorted(versions, key=version_order, reverse=True)
    numbered = [one for one in ordered if not is_rolling(one)]
    first = [one for one in numbered if one not in trials] or numbered
    newest = newest_version([one for one in ordered if one not in trials] or ordered)
    made: list[ReleasePair] = []
    for after in [*first, *(one for one in numbered if one not in first)]:
        earlier = _earlier(after, first if after in first else numbered)
        if len(made) == MOST_PAIRS:
            break
        is_newest = after == newest
        if earlier and (is_newest or any(work(after) & work(before) for before in earlier)):
            found = _pair(framework, after, earlier, read)
            made.append(found.model_copy(update={"is_newest": is_newest}))
    for after in [one for one in ordered if is_rolling(one)] if numbered else []:
        made.append(_pair(framework, after, numbered if after in trials else first, read))
    return made


def _earlier(version: str, among: Sequence[str]) -> list[str]:
    return [one for one in among if version_order(one) < version_order(version)]


def _pair(framework: str, after: str, earlier: Sequence[str], read: Read) -> ReleasePair:
    """A release and the first of the earlier ones that shares work; else the first of them."""
    skipped: list[Skipped] = []
    for before in earlier:
        found = comparison(read(before), read(after))
        if found.matched:
            return _made(framework, (before, after), found, skipped)
        skipped.append(Skipped(release=before, reason=_reason(framework, before, after, found)))
    return _made(framework, (earlier[0], after), comparison(read(earlier[0]), read(after)), ())


def _made(
    framework: str, ends: tuple[str, str], found: Comparison, skipped: Sequence[Skipped]
) -> ReleasePair:
    before, after = ends
    return ReleasePair(
        framework=framework, before=before, after=after, comparison=found, skipped=tuple(skipped)
    )


def _reason(framework: str, before: str, after: str, found: Comparison) -> str:
    ends = (release_title(framework, before), release_title(framework, after))
    return words.why_nothing(*ends, found)


def tally(pair: ReleasePair) -> Tally:
    """The verdicts on the matches without open errors, and how many have some."""
    counts = Counter(match.judgement.verdict for match in pair.comparison.matched)
    return Tally(
        verdicts=tuple((one, counts[one]) for one in Verdict if one is not Verdict.NOT_JUDGED),
        not_judged=counts[Verdict.NOT_JUDGED],
    )


def not_judged(count: int) -> str:
    """'4 not judged (open errors)'; empty for none."""
    return f"{count:,} {Verdict.NOT_JUDGED} (open errors)" if count else ""


def disagreement(match: Match) -> Disagreement | None:
    """That TFLOP/s changed by another factor than tokens/s, beyond the rounding of the four.

    The same work takes the same FLOPs per token, so that both change alike, unless two conventions
    count them.
    """
    a, b = match.a.shown, match.b.shown
    rates, tflops = _ends(match, RATE), _ends(match, FLOPS)
    conventions = {a.flops_convention, b.flops_convention} - {None}
    if rates is None or tflops is None or len(conventions) > 1:
        return None
    rounding = sum(half_unit(figure) / figure for figure in (*rates, *tflops))
    if abs((tflops[1] / tflops[0]) / (rates[1] / rates[0]) - 1) <= rounding + 1e-9:
        return None
    return Disagreement(work=words.workload(b), rates=rates, tflops=tflops)


def _ends(match: Match, metric: str) -> tuple[float, float] | None:
    """A figure before and after; None where one of them is not known."""
    before, after = match.a.shown.figure(metric), match.b.shown.figure(metric)
    return (before, after) if before is not None and after is not None else None
